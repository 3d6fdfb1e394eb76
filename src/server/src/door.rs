//! Who is let in, and how many at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tonic::Request;

use crate::errors;
use crate::fault::Fault;
use crate::guard::peer::Peer;
use crate::guard::visitors::{Places, Taken, full};
use crate::guard::{Admitted, Guard};

/// How much is taken in. Beyond it callers are told so, and nothing queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest request, in bytes. Default 64 KiB.
    pub message: usize,
    /// Calls that are answered at once: so many that look, and as many that act. Default 256.
    pub calls: usize,
    /// Of these one caller's. Default 64.
    pub calls_each: usize,
    /// Streams that are open at once, over all connections: so many that look, and as many that act. Default 4096.
    pub streams: usize,
    /// Of these one caller's. Default 2048.
    pub streams_each: usize,
    /// Requests for health and reflection that are open at once. Default 1024.
    pub asides: usize,
    /// Of these one caller's. Default 64.
    pub asides_each: usize,
    /// Streams and calls of one connection. Default 1024.
    pub of_a_connection: u32,
    /// Connections that are open at once, of which at most three quarters over the Unix socket, and as many over TCP:
    /// neither way is taken by the other's crowd. Default 768.
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
            asides: 1_024,
            asides_each: 64,
            of_a_connection: 1_024,
            connections: 768,
            connections_each: 256,
            callers: 1_024,
            rate: 500,
            burst: 2_000,
        }
    }
}

impl Limits {
    /// How many there may be at once.
    fn all(&self, kind: Taken) -> usize {
        match kind {
            Taken::Call | Taken::Act => self.calls,
            Taken::Stream | Taken::ActStream => self.streams,
            Taken::Aside => self.asides,
            Taken::Connection => self.connections,
        }
    }

    /// How many one caller may have at once.
    pub(crate) fn each(&self, kind: Taken) -> usize {
        match kind {
            Taken::Call | Taken::Act => self.calls_each,
            Taken::Stream | Taken::ActStream => self.streams_each,
            Taken::Aside => self.asides_each,
            Taken::Connection => self.connections_each,
        }
    }
}

/// So many read files of the audit at once.
const READERS: usize = 2;

/// The door.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) guard: Arc<Guard>,
    /// Turns of those who read files.
    pub(crate) readers: Arc<Semaphore>,
    places: Places,
    limits: Limits,
    stop: CancellationToken,
}

/// A caller who was let in, and their place until all of these are dropped.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    /// Their name.
    pub(crate) caller: String,
    /// What they may.
    pub(crate) who: Admitted,
    /// Their place.
    pub(crate) place: Place,
}

/// A place among the caller's own, and among all.
#[derive(Clone, Debug)]
pub(crate) struct Place(
    #[expect(dead_code, reason = "it is kept, and freed when dropped")] Arc<[OwnedSemaphorePermit; 2]>,
);

impl Place {
    pub(crate) fn new(own: OwnedSemaphorePermit, of_all: OwnedSemaphorePermit) -> Self {
        Self(Arc::new([own, of_all]))
    }
}

impl Door {
    pub(crate) fn new(limits: &Limits, guard: Arc<Guard>, stop: CancellationToken) -> Self {
        let places = Places::new(|kind| limits.all(kind));
        let readers = Arc::new(Semaphore::new(READERS));
        Self { guard, readers, places, limits: limits.clone(), stop }
    }

    /// Ends when the gateway goes down.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Lets a request in and gives it a place, before anything of it is read; or says why not.
    pub(crate) fn enter(&self, path: &str, peer: Option<&Peer>) -> Result<Guest, Fault> {
        let who = self.guard.admit(path, peer)?;
        if self.stop.is_cancelled() && who.call.is_some() {
            return Err(errors::shutting_down());
        }
        let place =
            self.place(&who).map_err(|fault| self.guard.denied(&who.origin, who.asked.word(), fault))?;
        Ok(Guest { caller: who.caller.name.clone(), who, place })
    }

    fn place(&self, who: &Admitted) -> Result<Place, Fault> {
        let kind = Taken::by(who.asked);
        let own = self.guard.visitors.place(&who.origin.as_one, kind)?;
        let of_all = self.places.take(kind);
        let of_all =
            of_all.ok_or_else(|| full(kind.words(), self.limits.all(kind), "", Duration::from_secs(1)))?;
        Ok(Place::new(own, of_all))
    }

    /// Whom the gate let in for one answer.
    pub(crate) fn call<T>(&self, request: &Request<T>) -> Result<Guest, Fault> {
        let_in(request, false)
    }

    /// Whom the gate let in for a stream.
    pub(crate) fn stream<T>(&self, request: &Request<T>) -> Result<Guest, Fault> {
        let_in(request, true)
    }
}

/// The gate has put the guest there; a request that did not come through it, or not for such an answer, is none.
fn let_in<T>(request: &Request<T>, stays: bool) -> Result<Guest, Fault> {
    let guest = request.extensions().get::<Guest>();
    let guest = guest.filter(|guest| guest.who.call.is_some_and(|call| call.stays == stays));
    guest.cloned().ok_or_else(|| errors::internal("a request did not come through the gate"))
}
