//! What a store must do. Stores only implement this; what proves that a write happened is made in [`crate::step`].

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::ids::{FenceId, Incarnation, NodeId, Revision, Term, Version};
use crate::outcome::Outcome;
use crate::record::{Fence, NodeRecord};
use crate::time::WallTime;

/// Why the store did not do it.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum StoreError {
    /// Another leadership or another life of the store: whoever asked leads no more.
    #[error("this gateway does not lead any more: {0}")]
    Deposed(String),
    /// The record was changed by somebody else since it was read.
    #[error("the record of {node} has version {found}, expected {expected}")]
    Conflict {
        /// The node.
        node: NodeId,
        /// The version that the writer had read.
        expected: Version,
        /// The version that is stored.
        found: Version,
    },
    /// A note was changed by somebody else since it was read.
    #[error("the note {name:?} has version {found}, expected {expected}")]
    NoteChanged {
        /// The note.
        name: String,
        /// The version that the writer had read.
        expected: Version,
        /// The version that is stored; 0: it is not there.
        found: Version,
    },
    /// The idempotency key is bound to another request.
    #[error("the idempotency key {0:?} is already used with other parameters")]
    KeyTaken(String),
    /// The write did not happen, and a later one may: disk full, quorum lost.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Whether the write happened is not known. The record must be read again before anything else.
    #[error("the store did not say whether the write happened: {0}")]
    Unknown(String),
    /// What is stored cannot be read; nothing may be done on its ground.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Everything was moved to another store, which says the rest: nothing is done by this one any more. Where it went, in
    /// words.
    #[error("{0}")]
    Moved(String),
    /// A watch wants to resume from changes that are no longer kept, or from another life of the store.
    #[error("changes since {0} are no longer kept")]
    Compacted(Revision),
}

/// Which leadership writes. Every write and every check compares it (S6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// The leadership.
    pub term: Term,
    /// The store's life.
    pub incarnation: Incarnation,
}

/// A record as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its version, from 1.
    pub version: Version,
    /// When it was last changed.
    pub revision: Revision,
    /// The record.
    pub record: NodeRecord,
}

/// What an idempotency key is bound to (S20).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyEntry {
    /// A digest of the request's parameters; another digest under the same key is refused.
    pub digest: String,
    /// The node's fence then, such as the one that it opened or joined. `None`: the node had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<FenceId>,
    /// When it was bound.
    pub at: WallTime,
    /// The outcome that was stored for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// One atomic write: the record, its fence for the history, and the keys bound by it. All or nothing.
#[derive(Clone, Debug)]
pub struct Write {
    /// The version that was read; 0: the record must not exist yet.
    pub expected: Version,
    /// The new record.
    pub record: NodeRecord,
    /// Fences to put into the history (the open one, and one that ends with this write), by id.
    pub fences: Vec<Fence>,
    /// Keys to bind. A key that exists with another digest refuses the whole write.
    pub keys: Vec<(String, KeyEntry)>,
}

/// What a write became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The record's new version.
    pub version: Version,
    /// The store's new revision.
    pub revision: Revision,
}

/// A small value of the whole fleet (a pause, a public key), stored beside the nodes' records under a name of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// How often it was written since it last came to be, from 1.
    pub version: Version,
    /// What it says: JSON, as its owner writes it.
    pub text: String,
}

/// An idempotency key, with the node of which it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundEntry {
    /// The node.
    pub node: NodeId,
    /// The key.
    pub key: String,
    /// What it is bound to.
    pub entry: KeyEntry,
}

/// All that a store keeps, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The store's life.
    pub incarnation: Incarnation,
    /// The highest term that was given out.
    pub term: Term,
    /// The records, by node.
    pub records: Vec<Stored>,
    /// The history, oldest first, and the open fences.
    pub fences: Vec<Fence>,
    /// What keys are bound to.
    pub keys: Vec<BoundEntry>,
    /// The notes, by name.
    pub notes: Vec<(String, Note)>,
}

/// A narrow question to the history.
#[derive(Clone, Debug, Default)]
pub struct FenceQuery {
    /// Only of this node.
    pub node: Option<NodeId>,
    /// Only those older than this fence.
    pub before: Option<FenceId>,
    /// At most so many, newest first.
    pub limit: usize,
}

/// A store of node records. Implementations serialise writes; all of them are durable once answered.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// The store's present life.
    fn incarnation(&self) -> Incarnation;

    /// Takes leadership under a new term: the stored maximum plus one, stored before it is answered.
    /// From then on every other term is refused.
    async fn take_term(&self) -> Result<Term, StoreError>;

    /// All records.
    async fn load_all(&self) -> Result<Vec<Stored>, StoreError>;

    /// One record; `None` if nothing was ever stored of the node.
    async fn load(&self, node: &NodeId) -> Result<Option<Stored>, StoreError>;

    /// Writes if the guard holds and the record's version is the expected one.
    async fn write(&self, guard: Guard, write: Write) -> Result<Written, StoreError>;

    /// One round trip that compares guard and version and changes nothing (S6).
    async fn check(&self, guard: Guard, node: &NodeId, version: Version) -> Result<(), StoreError>;

    /// Those of its members, by name, that do not answer now: for its quorum they count as lost (S17, K11). Whoever cannot tell, or has no
    /// members, names none.
    async fn silent_members(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// What a key is bound to. Keys are kept as long as the history.
    async fn key(&self, node: &NodeId, key: &str) -> Result<Option<KeyEntry>, StoreError>;

    /// One fence of the history.
    async fn fence(&self, id: FenceId) -> Result<Option<Fence>, StoreError>;

    /// Fences, newest first.
    async fn fences(&self, query: FenceQuery) -> Result<Vec<Fence>, StoreError>;

    /// The newest revision.
    async fn revision(&self) -> Result<Revision, StoreError>;

    /// Nodes changed after `since`, each once, in the order of their last change.
    async fn changed_since(&self, since: Revision) -> Result<Vec<(Revision, NodeId)>, StoreError>;

    /// Waits until something newer than `since` may have been stored, by whomever; it may also return for nothing. A store
    /// of one process alone has nobody to wait for.
    async fn changed(&self, _since: Revision) -> Result<(), StoreError> {
        std::future::pending().await
    }

    /// One note of the fleet; `None`: there is none of that name.
    async fn note(&self, name: &str) -> Result<Option<Note>, StoreError>;

    /// All notes whose names begin with `prefix`, by name.
    async fn notes(&self, prefix: &str) -> Result<Vec<(String, Note)>, StoreError>;

    /// Writes a note, or takes it away (`None`), if the guard holds and its version is the expected one; 0: it must not
    /// exist yet. Returns its new version, 0 where it was taken away. A name is 1 to 512 bytes without a zero byte.
    async fn put_note(
        &self,
        guard: Guard,
        name: &str,
        expected: Version,
        text: Option<String>,
    ) -> Result<Version, StoreError>;

    /// All of it, as it was at one moment: for a backup.
    async fn dump(&self) -> Result<Content, StoreError> {
        Err(StoreError::Unavailable("this store takes no backup of itself".to_owned()))
    }

    /// Forgets ended fences and keys older than `before`; open fences stay. Returns how many fences went.
    async fn forget(&self, guard: Guard, before: WallTime) -> Result<usize, StoreError>;
}
