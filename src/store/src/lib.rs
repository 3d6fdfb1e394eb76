//! Stores of the node records: in memory, and embedded in one file.
//!
//! **Purpose.** Keep the records with their ledger, the history of fences, the idempotency keys and the revisions
//! from which a watch resumes; compare term, incarnation and version on every write.
//! **Non-goals.** No rule of fencing, no secrets, no clock.
//! **Invariants.** What a store does is written once, in `semantics`, over an ordered map of bytes (`map`);
//! the stores differ only in where the map lives. What is stored is written once, in [`mod@format`]. A write happens
//! wholly or not at all, and is durable once it is answered. A file that cannot be read is an error, never an empty store.

pub mod backup;
mod content;
mod embedded;
pub mod format;
mod map;
mod memory;
mod notes;
mod semantics;

pub use embedded::{EmbeddedStore, OpenError, SealMark};
pub use memory::MemoryStore;
