//! A store in one file, held by one process.
//!
//! **Purpose.** What is answered survives a crash of the process or the machine at any moment.
//!
//! # Invariants
//!
//! - Every write is durable before it is answered: committed in two phases, each flushed, so that a lost
//!   commit shows as damage and never as an older state. Shown by
//!   `a_write_that_the_disk_lost_is_never_an_older_state_unseen`.
//! - Writes that arrive together share a commit.
//! - After an I/O error the file is read anew from the disk. Whether the write is there decides what is
//!   answered. Shown by `whichever_call_of_the_disk_fails_the_answer_is_true`.
//! - No call blocks the async runtime.

mod db_file;
mod disk;
mod error;
#[cfg(test)]
mod faulty;
mod filesystem;
mod lock;
mod open;
mod queue;
mod table;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use picket_core::ids::{FenceId, Incarnation, NodeId, Revision, Term, Version};
use picket_core::record::Fence;
use picket_core::store::{
    Content, FenceQuery, Guard, KeyEntry, Note, Store, StoreError, Stored, Write, Written,
};
use picket_core::time::WallTime;
use tokio::task::spawn_blocking;

use crate::map::{OrderedRead, OrderedWrite};
use crate::{content, notes, semantics};
use db_file::DbFile;
use queue::{Queue, QueueWorker};

pub use error::OpenError;
pub use open::SealMark;

/// Keeps everything in one file. Dropping it closes the file and frees its lock, after the commit under way.
///
/// Its calls want a tokio runtime; the last one to leave waits for the disk.
pub struct EmbeddedStore {
    db_file: Arc<DbFile>,
    queue: Arc<Queue>,
}

impl EmbeddedStore {
    /// Opens the store at `path`; where there is none, makes one that begins the life `fresh`.
    ///
    /// Reads and verifies all of the file, so it blocks for as long as that takes (about a second for 200 MB).
    /// An error means that nothing may be fenced from this store; it says what to do.
    pub fn open(path: &Path, fresh: Incarnation) -> Result<Self, OpenError> {
        Self::open_on(path, fresh, disk::Faults::default())
    }

    /// Looks whether a start would find what it needs at `path`, and makes and locks nothing: another gateway may have the
    /// store open. What is in the file is not looked at.
    pub fn check(path: &Path) -> Result<(), OpenError> {
        open::check(path)
    }

    fn open_on(path: &Path, fresh: Incarnation, faults: disk::Faults) -> Result<Self, OpenError> {
        Ok(Self { db_file: Arc::new(DbFile::open(path, fresh, faults)?), queue: Arc::default() })
    }

    /// Makes the store at `path` with all of this in it; there must be none. Wholly, durably, or not at all.
    pub fn restore(path: &Path, content: &Content) -> Result<(), OpenError> {
        db_file::restore(path, content)
    }

    /// Marks the store as moved `to` another one, in words: from then on no gateway opens it.
    pub async fn seal(&self, to: String) -> Result<(), StoreError> {
        self.change(move |map| content::seal(map, &to)).await
    }

    /// Takes that mark away from the store at `path`. Answers what it said.
    pub fn unseal(path: &Path) -> Result<SealMark, OpenError> {
        db_file::unseal(path)
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn OrderedRead) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let db_file = Arc::clone(&self.db_file);
        match spawn_blocking(move || db_file.read(work)).await {
            Ok(answer) => answer,
            Err(gone) => Err(StoreError::Unavailable(format!("the read did not end: {gone}"))),
        }
    }

    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn OrderedWrite) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, first) = self.queue.enter(work);
        if first {
            let worker = QueueWorker::new(Arc::clone(&self.queue), Arc::clone(&self.db_file));
            drop(spawn_blocking(move || worker.run()));
        }
        let gone = |_| StoreError::Unknown("the process is ending".to_owned());
        answer.await.map_err(gone)?
    }
}

impl std::fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedStore").field("path", &self.db_file.path()).finish_non_exhaustive()
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.db_file.close();
    }
}

#[async_trait]
impl Store for EmbeddedStore {
    fn incarnation(&self) -> Incarnation {
        self.db_file.incarnation()
    }

    async fn take_term(&self) -> Result<Term, StoreError> {
        self.change(semantics::take_term).await
    }

    async fn load_all(&self) -> Result<Vec<Stored>, StoreError> {
        self.read(semantics::load_all).await
    }

    async fn load(&self, node: &NodeId) -> Result<Option<Stored>, StoreError> {
        let node = node.clone();
        self.read(move |map| semantics::load(map, &node)).await
    }

    async fn write(&self, guard: Guard, write: Write) -> Result<Written, StoreError> {
        self.change(move |map| semantics::write(map, guard, &write)).await
    }

    async fn check(&self, guard: Guard, node: &NodeId, version: Version) -> Result<(), StoreError> {
        let node = node.clone();
        self.read(move |map| semantics::check(map, guard, &node, version)).await
    }

    async fn key(&self, node: &NodeId, key: &str) -> Result<Option<KeyEntry>, StoreError> {
        let (node, key) = (node.clone(), key.to_owned());
        self.read(move |map| semantics::key(map, &node, &key)).await
    }

    async fn fence(&self, id: FenceId) -> Result<Option<Fence>, StoreError> {
        self.read(move |map| semantics::fence(map, id)).await
    }

    async fn fences(&self, query: FenceQuery) -> Result<Vec<Fence>, StoreError> {
        self.read(move |map| semantics::fences(map, &query)).await
    }

    async fn revision(&self) -> Result<Revision, StoreError> {
        self.read(semantics::revision).await
    }

    async fn changed_since(&self, since: Revision) -> Result<Vec<(Revision, NodeId)>, StoreError> {
        self.read(move |map| semantics::changed_since(map, since)).await
    }

    async fn note(&self, name: &str) -> Result<Option<Note>, StoreError> {
        let name = name.to_owned();
        self.read(move |map| notes::note(map, &name)).await
    }

    async fn notes(&self, prefix: &str) -> Result<Vec<(String, Note)>, StoreError> {
        let prefix = prefix.to_owned();
        self.read(move |map| notes::notes(map, &prefix)).await
    }

    async fn put_note(
        &self,
        guard: Guard,
        name: &str,
        expected: Version,
        text: Option<String>,
    ) -> Result<Version, StoreError> {
        let name = name.to_owned();
        self.change(move |map| notes::put(map, guard, &name, expected, text)).await
    }

    async fn dump(&self) -> Result<Content, StoreError> {
        self.read(content::dump).await
    }

    async fn forget(&self, guard: Guard, before: WallTime) -> Result<usize, StoreError> {
        let mut fences = 0;
        let mut from = None;
        loop {
            let step = self.change(move |map| semantics::forget(map, guard, before, from)).await?;
            fences += step.fences;
            from = step.next;
            if from.is_none() {
                return Ok(fences);
            }
        }
    }
}

#[cfg(test)]
mod tests;
