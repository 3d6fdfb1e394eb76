//! A store that dies with the process: for tests and demonstrations.

use std::collections::BTreeMap;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::ids::{FenceId, Incarnation, NodeId, Revision, Term, Version};
use picket_core::record::Fence;
use picket_core::store::{
    Content, FenceQuery, Guard, KeyEntry, Note, Store, StoreError, Stored, Write, Written,
};
use picket_core::time::WallTime;

use crate::{content, notes, semantics};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keeps everything in memory, in the same form and by the same code as the embedded store. Nothing survives the
/// process: fences, open effects and idempotency keys are forgotten, so it never stands in front of real machines.
pub struct MemoryStore {
    incarnation: Incarnation,
    map: Mutex<Map>,
}

impl MemoryStore {
    /// An empty store that begins the life `incarnation`.
    pub fn new(incarnation: Incarnation) -> Result<Self, StoreError> {
        let mut map = Map::new();
        semantics::create(&mut map, incarnation)?;
        Ok(Self { incarnation, map: Mutex::new(map) })
    }

    /// A store that begins with all of this.
    pub fn filled(content: &Content) -> Result<Self, StoreError> {
        let mut map = Map::new();
        content::fill(&mut map, content)?;
        Ok(Self { incarnation: content.incarnation, map: Mutex::new(map) })
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").field("incarnation", &self.incarnation).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    async fn take_term(&self) -> Result<Term, StoreError> {
        semantics::take_term(&mut *self.map.lock())
    }

    async fn load_all(&self) -> Result<Vec<Stored>, StoreError> {
        semantics::load_all(&*self.map.lock())
    }

    async fn load(&self, node: &NodeId) -> Result<Option<Stored>, StoreError> {
        semantics::load(&*self.map.lock(), node)
    }

    async fn write(&self, guard: Guard, write: Write) -> Result<Written, StoreError> {
        semantics::write(&mut *self.map.lock(), guard, &write)
    }

    async fn check(&self, guard: Guard, node: &NodeId, version: Version) -> Result<(), StoreError> {
        semantics::check(&*self.map.lock(), guard, node, version)
    }

    async fn key(&self, node: &NodeId, key: &str) -> Result<Option<KeyEntry>, StoreError> {
        semantics::key(&*self.map.lock(), node, key)
    }

    async fn fence(&self, id: FenceId) -> Result<Option<Fence>, StoreError> {
        semantics::fence(&*self.map.lock(), id)
    }

    async fn fences(&self, query: FenceQuery) -> Result<Vec<Fence>, StoreError> {
        semantics::fences(&*self.map.lock(), &query)
    }

    async fn revision(&self) -> Result<Revision, StoreError> {
        semantics::revision(&*self.map.lock())
    }

    async fn changed_since(&self, since: Revision) -> Result<Vec<(Revision, NodeId)>, StoreError> {
        semantics::changed_since(&*self.map.lock(), since)
    }

    async fn note(&self, name: &str) -> Result<Option<Note>, StoreError> {
        notes::note(&*self.map.lock(), name)
    }

    async fn notes(&self, prefix: &str) -> Result<Vec<(String, Note)>, StoreError> {
        notes::notes(&*self.map.lock(), prefix)
    }

    async fn put_note(
        &self,
        guard: Guard,
        name: &str,
        expected: Version,
        text: Option<String>,
    ) -> Result<Version, StoreError> {
        notes::put(&mut *self.map.lock(), guard, name, expected, text)
    }

    async fn dump(&self) -> Result<Content, StoreError> {
        content::dump(&*self.map.lock())
    }

    async fn forget(&self, guard: Guard, before: WallTime) -> Result<usize, StoreError> {
        let mut fences = 0;
        let mut from = None;
        loop {
            let step = semantics::forget(&mut *self.map.lock(), guard, before, from)?;
            fences += step.fences;
            from = step.next;
            if from.is_none() {
                return Ok(fences);
            }
        }
    }
}
