//! The way to who gives credentials, or tells the region.

use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use picket_reach::address;
use picket_reach::web::{self, NoAnswer};
use reqwest::Client;
use tokio::time::Instant;

use super::wire::{LONGEST, place, prepared, private, response};

/// One question of the SDK's own, for credentials.
const PATIENCE: Duration = Duration::from_secs(10);

/// For what the SDK asks to come by its credentials: STS, the metadata service.
#[derive(Clone, Debug)]
pub(super) struct Asking(pub(super) Client);

impl HttpConnector for Asking {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let client = self.0.clone();
        HttpConnectorFuture::new(async move {
            let place = place(&request);
            // The instance's own metadata service has no TLS.
            let private = private(&request, address::stays_near);
            let request = private.and_then(|()| prepared(&client, request));
            let request = request.map_err(|why| ConnectorError::user(why.into()))?;
            match web::exchange_up_to(LONGEST, request, Instant::now() + PATIENCE).await {
                Ok(answer) if answer.cut => Err(ConnectorError::other("the answer is too long".into(), None)),
                Ok(answer) => response(answer),
                Err(NoAnswer::NeverSent(why)) => {
                    Err(ConnectorError::io(format!("{place}: {why}").into()).never_connected())
                }
                Err(NoAnswer::Broken(why)) => Err(ConnectorError::io(format!("{place}: {why}").into())),
                Err(NoAnswer::Late) => {
                    Err(ConnectorError::timeout(format!("{place}: no answer in time").into()))
                }
            }
        })
    }
}

impl HttpClient for Asking {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
