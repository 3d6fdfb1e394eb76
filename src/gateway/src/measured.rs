//! A store whose writes are counted and measured.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use picket_core::ids::{FenceId, Incarnation, NodeId, Revision, Term, Version};
use picket_core::record::Fence;
use picket_core::store::{
    Content, FenceQuery, Guard, KeyEntry, Note, Store, StoreError, Stored, Write, Written,
};
use picket_core::time::WallTime;
use picket_metrics::{self as metrics, Metrics};

/// Hands everything on to the store within.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) metrics: Metrics,
}

impl Measured {
    fn wrote<T>(&self, from: Instant, result: &Result<T, StoreError>) {
        let word = match result {
            Ok(_) => "ok",
            Err(StoreError::Deposed(_)) => "deposed",
            Err(StoreError::Conflict { .. } | StoreError::NoteChanged { .. }) => "conflict",
            Err(StoreError::KeyTaken(_)) => "key_taken",
            Err(StoreError::Unavailable(_)) => "unavailable",
            Err(StoreError::Unknown(_)) => "unknown",
            Err(StoreError::Damaged(_)) => "damaged",
            Err(StoreError::Moved(_)) => "moved",
            Err(StoreError::Compacted(_)) => "compacted",
        };
        self.metrics.count(&metrics::STORE_WRITES, &[word]);
        self.metrics.took(&metrics::STORE_WRITE, &[], from.elapsed());
    }
}

#[async_trait]
impl Store for Measured {
    fn incarnation(&self) -> Incarnation {
        self.inner.incarnation()
    }

    async fn take_term(&self) -> Result<Term, StoreError> {
        let from = Instant::now();
        let taken = self.inner.take_term().await;
        self.wrote(from, &taken);
        taken
    }

    async fn load_all(&self) -> Result<Vec<Stored>, StoreError> {
        self.inner.load_all().await
    }

    async fn load(&self, node: &NodeId) -> Result<Option<Stored>, StoreError> {
        self.inner.load(node).await
    }

    async fn write(&self, guard: Guard, write: Write) -> Result<Written, StoreError> {
        let from = Instant::now();
        let written = self.inner.write(guard, write).await;
        self.wrote(from, &written);
        written
    }

    async fn check(&self, guard: Guard, node: &NodeId, version: Version) -> Result<(), StoreError> {
        self.inner.check(guard, node, version).await
    }

    async fn silent_members(&self) -> BTreeSet<String> {
        self.inner.silent_members().await
    }

    async fn key(&self, node: &NodeId, key: &str) -> Result<Option<KeyEntry>, StoreError> {
        self.inner.key(node, key).await
    }

    async fn fence(&self, id: FenceId) -> Result<Option<Fence>, StoreError> {
        self.inner.fence(id).await
    }

    async fn fences(&self, query: FenceQuery) -> Result<Vec<Fence>, StoreError> {
        self.inner.fences(query).await
    }

    async fn revision(&self) -> Result<Revision, StoreError> {
        self.inner.revision().await
    }

    async fn changed_since(&self, since: Revision) -> Result<Vec<(Revision, NodeId)>, StoreError> {
        self.inner.changed_since(since).await
    }

    async fn changed(&self, since: Revision) -> Result<(), StoreError> {
        self.inner.changed(since).await
    }

    async fn dump(&self) -> Result<Content, StoreError> {
        self.inner.dump().await
    }

    async fn note(&self, name: &str) -> Result<Option<Note>, StoreError> {
        self.inner.note(name).await
    }

    async fn notes(&self, prefix: &str) -> Result<Vec<(String, Note)>, StoreError> {
        self.inner.notes(prefix).await
    }

    async fn put_note(
        &self,
        guard: Guard,
        name: &str,
        expected: Version,
        text: Option<String>,
    ) -> Result<Version, StoreError> {
        let from = Instant::now();
        let put = self.inner.put_note(guard, name, expected, text).await;
        self.wrote(from, &put);
        put
    }

    async fn forget(&self, guard: Guard, before: WallTime) -> Result<usize, StoreError> {
        let from = Instant::now();
        let forgot = self.inner.forget(guard, before).await;
        self.wrote(from, &forgot);
        forgot
    }
}
