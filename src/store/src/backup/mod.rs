//! A backup: all that a store keeps in one file of JSON lines, the same for every store (S21).
//! `docs/backup.md` has the format.
//!
//! **Purpose.** Take a store's content out, and put it into a new store, also one of another kind.
//! **Non-goals.** No signature: whoever may write the store, or its backups, may forge it. No part of a
//! store.
//!
//! # Invariants
//!
//! - The first line says what the file is and how much there is. The last one has the digest of all before
//!   it, so that what was cut off or changed is refused as a whole. Shown by
//!   `what_is_not_whole_is_refused_with_what_is_wrong`.
//! - A restored store is another life: its incarnation is new, its terms and generations are beyond any of
//!   the old one, and its nodes stand on nothing (`picket_core::restore`). Shown by
//!   `a_restored_store_is_another_life_in_which_nothing_is_proven`.

mod error;
mod read;
mod restore;
mod write;

pub use error::BackupError;
pub use read::read;
pub use restore::{RestoreOptions, restored_content};
pub use write::Lines;

use picket_core::ids::{Incarnation, Term};
use picket_core::store::Content;
use picket_core::time::WallTime;
use serde::{Deserialize, Serialize};

/// The format that is written, and the newest that is read.
pub const FORMAT: u64 = 1;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The format of the file.
    pub picket_backup: u64,
    /// When it was taken.
    pub taken_at: WallTime,
    /// What took it (`picketd 0.1.0`).
    pub by: String,
    /// The store's life.
    pub incarnation: Incarnation,
    /// The highest term that was given out.
    pub term: Term,
    /// How many records of nodes follow.
    pub nodes: u64,
    /// How many fences.
    pub fences: u64,
    /// How many idempotency keys.
    pub keys: u64,
    /// How many notes.
    pub notes: u64,
}

/// A backup that was read: whole, and what it says it is.
#[derive(Clone, Debug)]
pub struct Backup {
    /// Its first line.
    pub header: Header,
    /// What the store kept.
    pub content: Content,
}

/// One line between the first and the last.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Node { name: String, stored: serde_json::Value },
    Fence { id: String, stored: serde_json::Value },
    Key { node: String, key: String, stored: serde_json::Value },
    Note { name: String, stored: serde_json::Value },
}

/// The last line: how many lines there are before it, and the SHA-256 of all their bytes in hexadecimal digits.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Last {
    end: u64,
    sha256: String,
}
