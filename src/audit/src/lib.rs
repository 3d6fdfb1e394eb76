//! What was asked, decided and done: an append-only chain of entries in local files.
//!
//! **Purpose.** One JSON line an entry, each with the SHA-256 of the one before; written by a thread of its
//! own behind a bounded queue ([`Audit`]), read back by fence ([`exchanges`]), exported ([`export`]) and
//! verified ([`verify`]).
//! **Non-goals.** No rule is made here. Whoever may write the files may write a chain of their own from any
//! entry on. The head stands in the store's fence records as well, with each phase, and shows that.
//! **Boundary.** Knows no type of ours: the callers bring words.
//!
//! # Invariants
//!
//! - Nothing that was written whole is ever changed. A line that a crash cut off stays, and the entry after
//!   it names its hash. Shown by `a_line_that_was_cut_off_stays_and_is_told_of`,
//!   `what_was_changed_removed_added_or_moved_is_found_where_it_is`.
//! - A file goes only once all of it is older than it is to be kept, and an entry said so before. Shown by
//!   `files_follow_one_another_and_go_at_their_age`.
//! - An entry is in the chain once, or counted in an entry `gap`. Shown by
//!   `whatever_happens_the_chain_verifies_and_every_entry_is_in_it_or_counted`.
//! - Nothing waits for the audit: a full or slow disk stops no fence. Shown by
//!   `more_than_can_be_written_is_counted_and_holds_nobody_up`.
//! - An end that was cut off is seen by the fences. Shown by
//!   `an_end_that_was_cut_off_or_written_anew_is_seen_by_the_fences`.
//!
//! # The form
//!
//! A directory holds `audit-<number of its first entry>.jsonl`, in twenty digits. A line ends with
//! `,"hash":"<64 hexadecimal digits>"}`; the hash is the SHA-256 of everything in the line before that,
//! which ends with `"prev":"<the hash of the entry before>"`. The first entry of all follows 64 zeros.

mod chain;
mod denials;
mod entry;
mod error;
mod files;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod log;
mod open;
mod prune;
mod read;
mod state;
mod time;
mod verify;
mod writer;

pub use entry::{Entry, GATEWAY, Head, NOBODY, Told};
pub use error::{OpenError, ReadError};
pub use log::{Audit, Keeper, Now, Options};
pub use read::{Bounds, Exchange, Found, Window, exchanges, export};
pub use state::State;
pub use time::{from_rfc3339, rfc3339};
pub use verify::{Anchor, Fault, Report, verify};
pub use writer::Writer;
