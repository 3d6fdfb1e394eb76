//! Who is let in, and how many at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tonic::Request;

use crate::errors;
use crate::fault::Fault;
use crate::guard::visitors::{Taken, full};
use crate::guard::{Admitted, Guard};

/// How much is taken in. Beyond it callers are told so, and nothing queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest request, in bytes. Default 64 KiB.
    pub message: usize,
    /// Calls that are answered at once. Default 256.
    pub calls: usize,
    /// Of these one caller's. Default 64.
    pub calls_each: usize,
    /// Streams that are open at once, over all connections. Default 4096.
    pub streams: usize,
    /// Of these one caller's. Default 2048.
    pub streams_each: usize,
    /// Streams and calls of one connection. Default 1024.
    pub of_a_connection: u32,
    /// Connections that are open at once. Default 768.
    pub connections: usize,
    /// Of these one caller's. Default 256.
    pub connections_each: usize,
    /// Different callers at once. Default 1024.
    pub callers: usize,
    /// Requests of one caller in a second, in the long run. Default 500.
    pub rate: u32,
    /// Requests of one caller at once, after a rest. Default 2000.
    pub burst: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 64 * 1_024,
            calls: 256,
            calls_each: 64,
            streams: 4_096,
            streams_each: 2_048,
            of_a_connection: 1_024,
            connections: 768,
            connections_each: 256,
            callers: 1_024,
            rate: 500,
            burst: 2_000,
        }
    }
}

/// The door.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) guard: Arc<Guard>,
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
    /// What they may.
    pub(crate) who: Admitted,
    /// Their place.
    pub(crate) place: Place,
}

/// A place among the caller's own, and among all.
#[derive(Debug)]
pub(crate) struct Place {
    _own: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Door {
    pub(crate) fn new(limits: &Limits, guard: Arc<Guard>, stop: CancellationToken) -> Self {
        let places = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        let (calls, streams) = (places(limits.calls), places(limits.streams));
        Self { guard, calls, streams, limits: limits.clone(), stop }
    }

    /// Ends when the gateway goes down.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Lets a caller in who waits for one answer.
    pub(crate) fn call<T>(&self, request: &Request<T>) -> Result<Guest, Fault> {
        self.enter(request, Taken::Call)
    }

    /// Lets a caller in who stays for a stream.
    pub(crate) fn stream<T>(&self, request: &Request<T>) -> Result<Guest, Fault> {
        self.enter(request, Taken::Stream)
    }

    fn enter<T>(&self, request: &Request<T>, kind: Taken) -> Result<Guest, Fault> {
        if self.stop.is_cancelled() {
            return Err(errors::shutting_down());
        }
        // The gate has put it there; without it nobody may do anything.
        let who = request.extensions().get::<Admitted>().cloned().unwrap_or_else(Admitted::nobody);
        let caller = who.caller.name.clone();
        let call = who.call.map_or("", |call| call.name);
        let place = self.place(&caller, kind).map_err(|fault| self.guard.denied(&caller, call, fault))?;
        Ok(Guest { caller, who, place })
    }

    fn place(&self, caller: &str, kind: Taken) -> Result<Place, Fault> {
        let own = self.guard.visitors.place(caller, kind)?;
        let (places, what, limit) = match kind {
            Taken::Stream => (&self.streams, "streams", self.limits.streams),
            Taken::Call | Taken::Connection => (&self.calls, "calls", self.limits.calls),
        };
        let taken = places.clone().try_acquire_owned();
        let of_all = taken.map_err(|_| full(what, limit, "", Duration::from_secs(1)))?;
        Ok(Place { _own: own, _of_all: of_all })
    }
}
