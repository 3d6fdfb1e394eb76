//! One command's connection, streams and limits.

use std::future::Future;
use std::time::Duration;

use crate::connect::Client;
use crate::console::Console;
use crate::context;
use crate::endpoints::Endpoints;
use crate::fault::Fault;
use crate::gateway_error::GatewayError;
use crate::global::{Format, Global};

/// How long calls that only ask may take, unless `--timeout` says otherwise.
const ASKING: Duration = Duration::from_secs(30);

/// What a command works with.
#[derive(Debug)]
pub struct Session<'a> {
    /// What all commands take.
    pub global: Global,
    /// The streams of the process.
    pub console: &'a mut Console,
    /// Where gateways answer.
    pub endpoint: Endpoints,
    /// The gateway.
    pub client: Client,
}

impl<'a> Session<'a> {
    /// Finds the gateway and connects to it.
    pub async fn open(global: Global, console: &'a mut Console) -> Result<Self, Fault> {
        let endpoint = context::endpoint(&global, |name| std::env::var(name).ok())?;
        let client = endpoint.connect().await?;
        Ok(Self { global, console, endpoint, client })
    }

    /// Whether answers are for people.
    pub fn for_people(&self) -> bool {
        self.global.output == Format::Table
    }

    /// Waits for an answer to a question, no longer than such may take.
    pub async fn asked<T>(&self, call: impl Future<Output = Result<T, tonic::Status>>) -> Result<T, Fault> {
        let limit = self.global.timeout.unwrap_or(ASKING);
        match tokio::time::timeout(limit, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(status)) => Err(self.endpoint.with_hint(self.fault(&status)).await),
            Err(_) => Err(Fault::TimedOut(limit)),
        }
    }

    /// A status as a fault: one of the gateway's own, or that it is not to be reached any more.
    fn fault(&self, status: &tonic::Status) -> Fault {
        let told = GatewayError::from(status);
        if told.is_of_the_way() {
            return self.endpoint.lost(&told.message);
        }
        Fault::Gateway(Box::new(told))
    }
}
