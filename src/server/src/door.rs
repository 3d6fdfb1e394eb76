//! Who is let in, and how many at once.

use std::sync::Arc;
use std::time::Duration;

use picket_proto::v1::ErrorReason;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tonic::Request;

use crate::caller;
use crate::errors;
use crate::fault::Fault;

/// How much is taken in. Beyond it callers are told so, and nothing queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest request, in bytes. Default 64 KiB.
    pub message: usize,
    /// Calls that are answered at once. Default 256.
    pub calls: usize,
    /// Streams that are open at once, over all connections. Default 4096.
    pub streams: usize,
    /// Streams and calls of one connection. Default 1024.
    pub of_a_connection: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message: 64 * 1_024, calls: 256, streams: 4_096, of_a_connection: 1_024 }
    }
}

/// The door.
#[derive(Debug)]
pub(crate) struct Door {
    calls: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    limits: Limits,
    stop: CancellationToken,
}

/// A caller who was let in, and their place until it is dropped.
#[derive(Debug)]
pub(crate) struct Guest {
    /// Their name.
    pub(crate) caller: String,
    /// Their place.
    pub(crate) place: OwnedSemaphorePermit,
}

impl Door {
    pub(crate) fn new(limits: &Limits, stop: CancellationToken) -> Self {
        let places = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self { calls: places(limits.calls), streams: places(limits.streams), limits: limits.clone(), stop }
    }

    /// Ends when the gateway goes down.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Lets a caller in who waits for one answer.
    pub(crate) fn call<T>(&self, request: &Request<T>) -> Result<Guest, Fault> {
        self.enter(request, &self.calls, "calls", self.limits.calls)
    }

    /// Lets a caller in who stays for a stream.
    pub(crate) fn stream<T>(&self, request: &Request<T>) -> Result<Guest, Fault> {
        self.enter(request, &self.streams, "streams", self.limits.streams)
    }

    fn enter<T>(
        &self,
        request: &Request<T>,
        places: &Arc<Semaphore>,
        what: &str,
        limit: usize,
    ) -> Result<Guest, Fault> {
        if self.stop.is_cancelled() {
            return Err(errors::shutting_down());
        }
        let caller = caller::name(request)?;
        let place = places.clone().try_acquire_owned().map_err(|_| full(what, limit))?;
        Ok(Guest { caller, place })
    }
}

fn full(what: &str, limit: usize) -> Fault {
    let message =
        format!("this gateway answers {limit} {what} at once, and all are taken: ask again in a second");
    Fault::new(ErrorReason::Limit, message.clone())
        .with("limit", format!("{limit} {what}"))
        .quota(what, &message)
        .retry_after(Duration::from_secs(1))
}
