//! Who is let in, and how many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tonic::Request;

use crate::errors;
use crate::fault::Fault;
use crate::guard::peer::Peer;
use crate::guard::rate_limits::{SlotKind, Slots, full};
use crate::guard::{CallerRights, Guard};

/// How much is taken in. Beyond it callers are told so, and nothing queues. One caller has no more calls and streams than are left for
/// all others.
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
    /// neither way is taken by the other's crowd. Of each way's a twelfth is for those who have no role. Default 768.
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
    fn all(&self, kind: SlotKind) -> usize {
        match kind {
            SlotKind::Call | SlotKind::Act => self.calls,
            SlotKind::Stream | SlotKind::ActStream => self.streams,
            SlotKind::Aside => self.asides,
            SlotKind::Connection => self.connections,
        }
    }

    /// How many one caller may have at once.
    pub(crate) fn each(&self, kind: SlotKind) -> usize {
        match kind {
            SlotKind::Call | SlotKind::Act => self.calls_each,
            SlotKind::Stream | SlotKind::ActStream => self.streams_each,
            SlotKind::Aside => self.asides_each,
            SlotKind::Connection => self.connections_each,
        }
    }
}

/// So many read files of the audit at once.
const READERS: usize = 2;

/// Admission control.
#[derive(Debug)]
pub(crate) struct AdmissionControl {
    pub(crate) guard: Arc<Guard>,
    /// Turns of those who read files.
    pub(crate) readers: Arc<Semaphore>,
    taking: RwLock<Taking>,
    /// Streams that are open, and calls that are being answered.
    open: [Arc<AtomicUsize>; 2],
    stop: CancellationToken,
    /// Ends the streams that are open, and them alone.
    streams_end: RwLock<CancellationToken>,
}

/// How much is taken in now.
#[derive(Debug)]
struct Taking {
    slots: Slots,
    limits: Limits,
}

impl Taking {
    fn of(limits: &Limits) -> RwLock<Self> {
        RwLock::new(Self { slots: Slots::new(|kind| limits.all(kind)), limits: limits.clone() })
    }
}

/// A caller who was let in, and their slot until all of these are dropped.
#[derive(Clone, Debug)]
pub(crate) struct AuthenticatedCaller {
    /// Their name.
    pub(crate) name: String,
    /// What they may.
    pub(crate) rights: CallerRights,
    /// Their slot.
    pub(crate) slot: Slot,
    /// Ends their stream when the gateway goes down, or when they are to come again.
    pub(crate) stop: CancellationToken,
}

/// A slot among the caller's own, and among all.
#[derive(Clone, Debug)]
pub(crate) struct Slot(
    Arc<[OwnedSemaphorePermit; 2]>,
    #[expect(dead_code, reason = "it is kept, and counted off when dropped")] Option<Arc<Open>>,
);

/// Something that is open for as long as this lives.
#[derive(Debug)]
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Slot {
    pub(crate) fn new(own: OwnedSemaphorePermit, of_all: OwnedSemaphorePermit) -> Self {
        Self(Arc::new([own, of_all]), None)
    }

    fn counted(self, open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(self.0, Some(Arc::new(Open(open.clone()))))
    }
}

impl AdmissionControl {
    pub(crate) fn new(limits: &Limits, guard: Arc<Guard>, stop: CancellationToken) -> Self {
        let readers = Arc::new(Semaphore::new(READERS));
        let streams_end = RwLock::new(stop.child_token());
        Self { guard, readers, taking: Taking::of(limits), open: Default::default(), stop, streams_end }
    }

    /// How much is taken in now.
    pub(crate) fn limits(&self) -> Limits {
        self.taking.read().limits.clone()
    }

    /// Takes in as much from now on; who is in already does not count against it.
    pub(crate) fn change(&self, limits: &Limits) {
        let mut taking = self.taking.write();
        if taking.limits != *limits {
            *taking = Taking { slots: Slots::new(|kind| limits.all(kind)), limits: limits.clone() };
        }
    }

    /// Ends the streams that are open now.
    pub(crate) fn end_streams(&self) {
        let mut end = self.streams_end.write();
        std::mem::replace(&mut *end, self.stop.child_token()).cancel();
    }

    /// Streams that are open, and calls that are being answered.
    pub(crate) fn open(&self) -> (usize, usize) {
        (self.open[0].load(Ordering::Relaxed), self.open[1].load(Ordering::Relaxed))
    }

    /// Ends when the gateway goes down, or when streams are to come again.
    fn stop(&self) -> CancellationToken {
        self.streams_end.read().clone()
    }

    /// Lets a request in and gives it a slot, before anything of it is read; or says why not.
    pub(crate) fn admit(&self, path: &str, peer: Option<&Peer>) -> Result<AuthenticatedCaller, Fault> {
        // Before the roles are read: a change of the roles that is not seen there ends the stream.
        let stop = self.stop();
        let rights = self.guard.authorize(path, peer)?;
        if self.stop.is_cancelled() && rights.call.is_some() {
            return Err(errors::shutting_down());
        }
        let slot = self
            .slot(&rights)
            .map_err(|fault| self.guard.denied(&rights.origin, rights.target.word(), fault))?;
        Ok(AuthenticatedCaller { name: rights.caller.name.clone(), rights, slot, stop })
    }

    fn slot(&self, rights: &CallerRights) -> Result<Slot, Fault> {
        let kind = SlotKind::by(rights.target);
        let taking = self.taking.read();
        let own = self.guard.rate_limits.slot(&rights.origin.as_one, kind, taking.slots.left(kind))?;
        let of_all = taking.slots.take(kind);
        let of_all =
            of_all.ok_or_else(|| full(kind.words(), taking.limits.all(kind), "", Duration::from_secs(1)))?;
        let stays = matches!(kind, SlotKind::Stream | SlotKind::ActStream);
        Ok(Slot::new(own, of_all).counted(&self.open[usize::from(!stays)]))
    }

    /// Whom the gate let in for one answer.
    pub(crate) fn call<T>(&self, request: &Request<T>) -> Result<AuthenticatedCaller, Fault> {
        admitted(request, false)
    }

    /// Whom the gate let in for a stream.
    pub(crate) fn stream<T>(&self, request: &Request<T>) -> Result<AuthenticatedCaller, Fault> {
        admitted(request, true)
    }
}

/// The gate has put the caller there; a request that did not come through it, or not for such an answer, is none.
fn admitted<T>(request: &Request<T>, stays: bool) -> Result<AuthenticatedCaller, Fault> {
    let caller = request.extensions().get::<AuthenticatedCaller>();
    let caller = caller.filter(|caller| caller.rights.call.is_some_and(|call| call.stays == stays));
    caller.cloned().ok_or_else(|| errors::internal("a request did not come through the gate"))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use picket_core::roles::{Grant, Pattern, Role, Roles, Scope};
    use picket_core::time::{BootTime, Clock, WallTime};

    use super::*;
    use crate::guard::AccessRules;

    #[derive(Debug)]
    struct Stands;

    impl Clock for Stands {
        fn boot(&self) -> BootTime {
            BootTime::default()
        }

        fn wall(&self) -> WallTime {
            WallTime::from_millis(0)
        }
    }

    /// S14: who acts finds a slot, however many streams two others keep open.
    #[tokio::test]
    async fn no_caller_has_more_streams_than_are_left_for_others() {
        let roles = Roles::new(vec![Grant {
            name: "all".to_owned(),
            role: Role::Admin,
            callers: vec![Pattern::new("*").expect("a good pattern")],
            uids: Vec::new(),
            gids: Vec::new(),
            nodes: Scope::default(),
            holders: Vec::new(),
        }]);
        let limits = Limits { streams: 16, streams_each: 8, ..Limits::default() };
        let rules = AccessRules { roles, limits: limits.clone(), ..AccessRules::default() };
        let admission = AdmissionControl::new(
            &limits,
            Arc::new(Guard::new(rules, Arc::new(Stands))),
            CancellationToken::new(),
        );
        let path = format!("/{}/Fence", picket_proto::SERVICE_NAME);
        let mut open = Vec::new();
        let mut takes = |name: &str| {
            let peer = Peer::Certified { name: name.into(), not_after: 1_000 };
            let before = open.len();
            open.extend((0..16).map_while(|_| admission.admit(&path, Some(&peer)).ok()));
            open.len() - before
        };
        assert_eq!(["a", "b", "c", "a", "b", "d"].map(&mut takes), [8, 4, 2, 0, 0, 1]);
        open.clear();
        let peer = Peer::Certified { name: "a".into(), not_after: 1_000 };
        assert!(admission.admit(&path, Some(&peer)).is_ok(), "they are free again");
    }

    /// It was judged by the roles of before, and its stream begins after the change.
    #[tokio::test]
    async fn whoever_is_let_in_while_the_roles_change_comes_again() {
        let rules = AccessRules { roles: Roles::of_this_machine(), ..AccessRules::default() };
        let limits = rules.limits.clone();
        let guard = Arc::new(Guard::new(rules, Arc::new(Stands)));
        let admission = AdmissionControl::new(&limits, guard, CancellationToken::new());
        let peer = Peer::Loopback(Ipv4Addr::LOCALHOST.into());
        let path = format!("/{}/WatchNodes", picket_proto::SERVICE_NAME);
        let early = admission.admit(&path, Some(&peer)).expect("let in");
        assert!(admission.guard.change(Roles::new(Vec::new())));
        admission.end_streams();
        assert!(early.stop.is_cancelled());
        assert!(admission.admit(&path, Some(&peer)).is_err(), "it has no role any more");
    }
}
