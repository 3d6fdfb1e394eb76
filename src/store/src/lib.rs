//! Stores of the node records: in memory, and embedded in one file.
//!
//! **Purpose.** Keep the records with their ledger, the history of fences, the idempotency keys and the
//! revisions from which a watch resumes; compare term, incarnation and version on every write.
//! **Non-goals.** No rule of fencing, no secrets, no clock. Stores only implement: what proves a write is
//! made in core.
//!
//! # Invariants
//!
//! - What a store does is written once, in `semantics`, over an ordered map of bytes (`map`). The stores
//!   differ only in where the map lives. Shown by `the_stores_and_the_model_agree`.
//! - What is stored is written once, in [`mod@format`].
//! - A write happens wholly or not at all, and is durable once it is answered. Shown by
//!   `what_was_acknowledged_survives_kill_9`, `a_power_cut_at_any_moment_loses_nothing_that_was_answered`.
//! - A file that cannot be read is an error, never an empty store. Shown by
//!   `one_record_that_cannot_be_read_stops_everything_and_is_named`,
//!   `a_store_that_is_gone_is_not_replaced_by_an_empty_one`.

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
