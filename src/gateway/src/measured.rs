//! A store whose writes are counted and measured, also those that are not answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::ids::{FenceId, Incarnation, NodeId, Revision, Term, Version};
use picket_core::record::Fence;
use picket_core::store::{
    Content, FenceQuery, Guard, KeyEntry, Note, Store, StoreError, Stored, Write, Written,
};
use picket_core::time::WallTime;
use picket_metrics::{self as metrics, Metrics};

/// Writes that were not answered yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unanswered(Arc<Mutex<BTreeMap<Instant, usize>>>);

impl Unanswered {
    /// For how long the oldest of them has been waited for.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        let all = self.0.lock();
        all.keys().next().map(Instant::elapsed)
    }

    fn begin(&self) -> Writing {
        let from = Instant::now();
        *self.0.lock().entry(from).or_default() += 1;
        Writing { all: self.clone(), from }
    }
}

/// One of them; it ends with its value, also where nobody waits for it any more.
struct Writing {
    all: Unanswered,
    from: Instant,
}

impl Drop for Writing {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        if let Some(left) =
            all.remove(&self.from).and_then(|count| count.checked_sub(1)).filter(|left| *left > 0)
        {
            all.insert(self.from, left);
        }
    }
}

/// Hands everything on to the store within.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) metrics: Metrics,
    pub(crate) unanswered: Unanswered,
}

impl Measured {
    fn wrote<T>(&self, writing: Writing, result: &Result<T, StoreError>) {
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
        self.metrics.took(&metrics::STORE_WRITE, &[], writing.from.elapsed());
    }
}

#[async_trait]
impl Store for Measured {
    fn incarnation(&self) -> Incarnation {
        self.inner.incarnation()
    }

    async fn take_term(&self) -> Result<Term, StoreError> {
        let writing = self.unanswered.begin();
        let taken = self.inner.take_term().await;
        self.wrote(writing, &taken);
        taken
    }

    async fn load_all(&self) -> Result<Vec<Stored>, StoreError> {
        self.inner.load_all().await
    }

    async fn load(&self, node: &NodeId) -> Result<Option<Stored>, StoreError> {
        self.inner.load(node).await
    }

    async fn write(&self, guard: Guard, write: Write) -> Result<Written, StoreError> {
        let writing = self.unanswered.begin();
        let written = self.inner.write(guard, write).await;
        self.wrote(writing, &written);
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
        let writing = self.unanswered.begin();
        let put = self.inner.put_note(guard, name, expected, text).await;
        self.wrote(writing, &put);
        put
    }

    async fn forget(&self, guard: Guard, before: WallTime) -> Result<usize, StoreError> {
        let writing = self.unanswered.begin();
        let forgot = self.inner.forget(guard, before).await;
        self.wrote(writing, &forgot);
        forgot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_the_writes_that_hang_is_told_until_it_ends() {
        let all = Unanswered::default();
        assert_eq!(all.oldest(), None);
        let first = all.begin();
        let second = all.begin();
        let (oldest, since) = (all.oldest().expect("two hang"), first.from.elapsed());
        assert!(oldest <= since);
        drop(first);
        assert!(all.oldest().expect("one hangs") <= second.from.elapsed());
        drop(second);
        assert_eq!(all.oldest(), None);
    }
}
