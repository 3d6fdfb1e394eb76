//! What the gateways of the model stand on: the store, the election and the clock, all of which answer at once.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::election::{Election, ElectionError, Leadership, Lease, Won, lead};
use crate::ids::{FenceId, Incarnation, NodeId, Revision, Term, Version};
use crate::record::Fence;
use crate::store::{FenceQuery, Guard, KeyEntry, Note, Store, StoreError, Stored, Write, Written};
use crate::time::{BootTime, Clock, WallTime};

/// One tick of the model: every deadline is a whole number of them.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// Before the first tick machines were up for so long.
const UP: u64 = 1_000;

/// The moment of a tick on everybody's boot-time clock: they run equally fast, and what compares them is none of ours.
pub(super) fn boot(tick: u64) -> BootTime {
    BootTime::from_boot(TICK * u32::try_from(UP + tick).unwrap_or(u32::MAX))
}

/// Both clocks, standing still at one tick.
#[derive(Debug)]
pub(super) struct Now(pub(super) u64);

impl Clock for Now {
    fn boot(&self) -> BootTime {
        boot(self.0)
    }

    fn wall(&self) -> WallTime {
        WallTime::from_millis(1_700_000_000_000 + (UP + self.0) * 1_000)
    }
}

/// Polls what never waits: the model's store answers at once.
pub(super) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("nothing waits in the model"),
    }
}

/// One node's record, and the newest term. Compares as a real store does, unless it is told not to look.
#[derive(Debug)]
pub(super) struct OneRecord {
    inner: Mutex<(Arc<Stored>, Term)>,
    /// S6 weakened: neither term nor version is compared.
    blind: bool,
}

impl OneRecord {
    pub(super) fn new(stored: Arc<Stored>, term: Term, blind: bool) -> Self {
        Self { inner: Mutex::new((stored, term)), blind }
    }

    /// What stands in it now.
    pub(super) fn into_inner(self) -> (Arc<Stored>, Term) {
        self.inner.into_inner()
    }

    fn compared(&self, guard: Guard, node: &NodeId, expected: Version) -> Result<(), StoreError> {
        let inner = self.inner.lock();
        let (stored, term) = &*inner;
        if self.blind {
            return Ok(());
        }
        if guard != (Guard { term: *term, incarnation: self.incarnation() }) {
            return Err(StoreError::Deposed(format!("term {term} has begun")));
        }
        let (found, node) = (stored.version, node.clone());
        if found == expected { Ok(()) } else { Err(StoreError::Conflict { node, expected, found }) }
    }
}

/// What nothing in the model asks for.
fn none_of_ours<T>() -> Result<T, StoreError> {
    Err(StoreError::Damaged("the model's store has no such thing".to_owned()))
}

#[async_trait]
impl Store for OneRecord {
    fn incarnation(&self) -> Incarnation {
        Incarnation::from(uuid::Uuid::nil())
    }

    async fn take_term(&self) -> Result<Term, StoreError> {
        let mut inner = self.inner.lock();
        inner.1 = inner.1.next();
        Ok(inner.1)
    }

    async fn load_all(&self) -> Result<Vec<Stored>, StoreError> {
        none_of_ours()
    }

    async fn load(&self, _: &NodeId) -> Result<Option<Stored>, StoreError> {
        let inner = self.inner.lock();
        Ok(Some(Stored::clone(&inner.0)))
    }

    async fn write(&self, guard: Guard, write: Write) -> Result<Written, StoreError> {
        self.compared(guard, &write.record.node, write.expected)?;
        let version = write.expected.next();
        let revision = Revision(version.0);
        let mut inner = self.inner.lock();
        inner.0 = Arc::new(Stored { version, revision, record: write.record });
        Ok(Written { version, revision })
    }

    async fn check(&self, guard: Guard, node: &NodeId, version: Version) -> Result<(), StoreError> {
        self.compared(guard, node, version)
    }

    async fn key(&self, _: &NodeId, _: &str) -> Result<Option<KeyEntry>, StoreError> {
        none_of_ours()
    }

    async fn fence(&self, _: FenceId) -> Result<Option<Fence>, StoreError> {
        none_of_ours()
    }

    async fn fences(&self, _: FenceQuery) -> Result<Vec<Fence>, StoreError> {
        none_of_ours()
    }

    async fn revision(&self) -> Result<Revision, StoreError> {
        none_of_ours()
    }

    async fn changed_since(&self, _: Revision) -> Result<Vec<(Revision, NodeId)>, StoreError> {
        none_of_ours()
    }

    async fn note(&self, _: &str) -> Result<Option<Note>, StoreError> {
        none_of_ours()
    }

    async fn notes(&self, _: &str) -> Result<Vec<(String, Note)>, StoreError> {
        none_of_ours()
    }

    async fn put_note(
        &self,
        _: Guard,
        _: &str,
        _: Version,
        _: Option<String>,
    ) -> Result<Version, StoreError> {
        none_of_ours()
    }

    async fn forget(&self, _: Guard, _: WallTime) -> Result<usize, StoreError> {
        none_of_ours()
    }
}

/// An election that was won already: it only tells the real [`lead`] what it needs to make the permit.
#[derive(Debug)]
struct WonAlready(Term, Arc<Lease>);

#[async_trait]
impl Election for WonAlready {
    async fn campaign(&self) -> Result<Won, ElectionError> {
        let incarnation = Incarnation::from(uuid::Uuid::nil());
        Ok(Won { term: self.0, incarnation, lease: self.1.clone() })
    }

    async fn resign(&self) -> Result<(), ElectionError> {
        Ok(())
    }
}

/// The permit of a leadership as it is at `tick`; `until`: `None` where S6 is weakened, and nothing ends it.
pub(super) fn leadership(term: Term, until: Option<u64>, tick: u64) -> Arc<Leadership> {
    let lease = until.map_or_else(Lease::endless, |until| Lease::until(boot(until)));
    match now(lead(&WonAlready(term, lease), Arc::new(Now(tick)), TICK)) {
        Ok(leadership) => leadership,
        Err(error) => unreachable!("it was won already: {error}"),
    }
}
