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

use super::wire::{LONGEST, LastAttempt, hidden, place, prepared, private, response, without};

/// One question of the SDK's own, for credentials.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where the metadata service has the token that each question to it bears (IMDSv2).
const TOKEN: &str = "/latest/api/token";

/// For what the SDK asks to come by its credentials: STS, the metadata service.
#[derive(Clone, Debug)]
pub(super) struct CredentialTransport {
    pub(super) client: Client,
    /// Why the last of it came to nothing, which the SDK's own errors leave out; `None`: it was answered.
    pub(super) unheard: LastAttempt,
}

impl HttpConnector for CredentialTransport {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Self { client, unheard } = self.clone();
        HttpConnectorFuture::new(async move {
            let place = place(&request).unwrap_or_default();
            // The SDK has limits of its own, and waits for no answer after them.
            let late = format!("{place}: no answer in time{}", hint(&request));
            unheard.set(Some(late.clone()));
            let failed = |why: String| {
                let why = format!("{place}: {why}");
                unheard.set(Some(why.clone()));
                why.into()
            };
            // The instance's own metadata service has no TLS.
            let private = private(&request, address::stays_near);
            let hidden = hidden(&request);
            let request = private.and_then(|()| prepared(&client, request));
            let request = request.map_err(|why| ConnectorError::user(why.into()))?;
            match web::exchange_up_to(LONGEST, request, Instant::now() + PATIENCE).await {
                Ok(answer) if answer.cut => Err(ConnectorError::other("the answer is too long".into(), None)),
                Ok(answer) => {
                    unheard.set(None);
                    response(without(answer, &hidden))
                }
                Err(NoAnswer::NeverSent(why)) => Err(ConnectorError::io(failed(why)).never_connected()),
                Err(NoAnswer::Broken(why)) => Err(ConnectorError::io(failed(why))),
                Err(NoAnswer::Late) => Err(ConnectorError::timeout(late.into())),
            }
        })
    }
}

impl HttpClient for CredentialTransport {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

/// A cause that a missing answer may have, in words; empty: none is known.
fn hint(request: &HttpRequest) -> &'static str {
    match request.method() == "PUT" && request.uri().ends_with(TOKEN) {
        true => {
            " to a question for its token; where the gateway runs in a container, the answer has one hop more to go: \
             aws ec2 modify-instance-metadata-options --http-put-response-hop-limit 2 --instance-id ID (of this machine)"
        }
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use aws_smithy_types::body::SdkBody;
    use futures::FutureExt;
    use tokio::net::TcpListener;

    use super::*;

    /// The SDK ends an attempt by itself after a second or two: who was asked is known by then.
    #[tokio::test]
    async fn a_metadata_service_that_does_not_answer_is_named_with_its_hop_limit() {
        let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let origin = format!("http://{}", silent.local_addr().expect("an address"));
        let client = web::client(false, None).expect("a client");
        for (method, path, hops) in
            [("PUT", TOKEN, true), ("GET", "/latest/meta-data/", false), ("POST", "/", false)]
        {
            let asking = CredentialTransport { client: client.clone(), unheard: LastAttempt::default() };
            let request = http::Request::builder().method(method).uri(format!("{origin}{path}"));
            let request = request.body(SdkBody::from("")).expect("a request");
            let request = HttpRequest::try_from(request).expect("a request");
            assert!(asking.call(request).now_or_never().is_none(), "nobody answers");
            let words = asking.unheard.get().expect("known");
            assert!(words.starts_with(&format!("{origin}: no answer in time")), "{words}");
            assert_eq!(words.contains("--http-put-response-hop-limit 2"), hops, "{words}");
        }
    }
}
