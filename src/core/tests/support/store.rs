//! A store of one node that compares as a real one does and can be told to fail.

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::ids::{FenceId, Incarnation, NodeId, Revision, Term, Version};
use picket_core::record::Fence;
use picket_core::store::{FenceQuery, Guard, KeyEntry, Note, Store, StoreError, Stored, Write, Written};
use picket_core::time::WallTime;

/// How the next write, or check, goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The write does not happen, and says so.
    Unavailable,
    /// The write happens, and the store does not say so.
    SilentlyDone,
    /// The write does not happen, and the store does not say so.
    SilentlyLost,
    /// The store does not say so, and the write happens once the record was read again: it was on its way.
    Late,
}

#[derive(Debug, Default)]
struct Inner {
    stored: Option<Stored>,
    term: Term,
    trouble: Option<Trouble>,
    last: Option<Write>,
    /// On its way, and not read past yet.
    late: Option<Write>,
    /// It lands before the next write.
    lands: bool,
}

#[derive(Debug, Default)]
pub struct OneNode(Mutex<Inner>);

pub fn incarnation() -> Incarnation {
    Incarnation::mint(WallTime::default(), [7; 10])
}

impl OneNode {
    pub fn fails_next(&self, trouble: Trouble) {
        self.0.lock().trouble = Some(trouble);
    }

    /// What was written last: with its fences and keys.
    pub fn last_write(&self) -> Write {
        self.0.lock().last.clone().unwrap()
    }

    /// What is stored, once everything that was on its way has arrived.
    pub fn in_the_end(&self) -> Option<Stored> {
        let mut inner = self.0.lock();
        inner.lands = true;
        inner.land();
        inner.stored.clone()
    }

    /// Another gateway takes the term.
    pub fn deposes(&self) {
        let mut inner = self.0.lock();
        inner.term = inner.term.next();
    }

    /// The store comes out of a backup, in which the record stands so.
    pub fn restores(&self, stored: Stored) {
        let mut inner = self.0.lock();
        inner.term = picket_core::restore::raised_term(inner.term, WallTime::from_millis(1));
        inner.stored = Some(stored);
    }

    /// Somebody else writes the record.
    pub fn overtakes(&self) {
        if let Some(stored) = &mut self.0.lock().stored {
            stored.version = stored.version.next();
        }
    }
}

impl Inner {
    fn put(&mut self, write: Write) -> Written {
        let version = write.expected.next();
        let revision = Revision(version.0);
        self.stored = Some(Stored { version, revision, record: write.record.clone() });
        self.last = Some(write);
        Written { version, revision }
    }

    /// What was on its way arrives.
    fn land(&mut self) {
        if std::mem::take(&mut self.lands)
            && let Some(late) = self.late.take()
            && self.versioned(&late.record.node, late.expected).is_ok()
        {
            self.put(late);
        }
    }

    fn guarded(&self, guard: Guard) -> Result<(), StoreError> {
        let same = guard.term == self.term && guard.incarnation == incarnation();
        same.then_some(()).ok_or_else(|| StoreError::Deposed(format!("term {}", self.term)))
    }

    fn versioned(&self, node: &NodeId, expected: Version) -> Result<(), StoreError> {
        let found = self.stored.as_ref().map_or(Version(0), |stored| stored.version);
        let conflict = StoreError::Conflict { node: node.clone(), expected, found };
        (found == expected).then_some(()).ok_or(conflict)
    }
}

#[async_trait]
impl Store for OneNode {
    fn incarnation(&self) -> Incarnation {
        incarnation()
    }

    async fn take_term(&self) -> Result<Term, StoreError> {
        let mut inner = self.0.lock();
        inner.term = inner.term.next();
        Ok(inner.term)
    }

    async fn load_all(&self) -> Result<Vec<Stored>, StoreError> {
        Ok(self.0.lock().stored.clone().into_iter().collect())
    }

    async fn load(&self, _: &NodeId) -> Result<Option<Stored>, StoreError> {
        let mut inner = self.0.lock();
        inner.lands = inner.late.is_some();
        Ok(inner.stored.clone())
    }

    async fn write(&self, guard: Guard, write: Write) -> Result<Written, StoreError> {
        let mut inner = self.0.lock();
        inner.land();
        inner.guarded(guard)?;
        // What is lost is compared with nothing.
        if inner.trouble.take_if(|trouble| *trouble == Trouble::SilentlyLost).is_some() {
            return Err(StoreError::Unknown("no answer".to_owned()));
        }
        inner.versioned(&write.record.node, write.expected)?;
        let trouble = inner.trouble.take();
        match trouble {
            Some(Trouble::Late) => {
                inner.late = Some(write);
                return Err(StoreError::Unknown("no answer".to_owned()));
            }
            Some(Trouble::Unavailable) => return Err(StoreError::Unavailable("disk full".to_owned())),
            Some(Trouble::SilentlyDone | Trouble::SilentlyLost) | None => {}
        }
        let written = inner.put(write);
        match trouble {
            Some(_) => Err(StoreError::Unknown("no answer".to_owned())),
            None => Ok(written),
        }
    }

    async fn check(&self, guard: Guard, node: &NodeId, version: Version) -> Result<(), StoreError> {
        let inner = self.0.lock();
        inner.guarded(guard)?;
        inner.versioned(node, version)
    }

    async fn key(&self, _: &NodeId, _: &str) -> Result<Option<KeyEntry>, StoreError> {
        Ok(None)
    }

    async fn fence(&self, _: FenceId) -> Result<Option<Fence>, StoreError> {
        Ok(None)
    }

    async fn fences(&self, _: FenceQuery) -> Result<Vec<Fence>, StoreError> {
        Ok(Vec::new())
    }

    async fn revision(&self) -> Result<Revision, StoreError> {
        Ok(Revision(0))
    }

    async fn changed_since(&self, _: Revision) -> Result<Vec<(Revision, NodeId)>, StoreError> {
        Ok(Vec::new())
    }

    async fn note(&self, _: &str) -> Result<Option<Note>, StoreError> {
        Ok(None)
    }

    async fn notes(&self, _: &str) -> Result<Vec<(String, Note)>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_note(
        &self,
        _: Guard,
        _: &str,
        expected: Version,
        _: Option<String>,
    ) -> Result<Version, StoreError> {
        Ok(expected.next())
    }

    async fn forget(&self, _: Guard, _: WallTime) -> Result<usize, StoreError> {
        Ok(0)
    }
}
