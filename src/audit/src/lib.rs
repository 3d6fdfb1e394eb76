//! What was asked, decided and done: an append-only chain of entries in local files.
//!
//! **Purpose.** One JSON line an entry, each with the SHA-256 of the one before; written by a thread of its own
//! ([`Audit`]), read back by fence ([`exchanges`]), exported ([`export`]) and verified ([`verify`]).
//! **Non-goals.** No rule is made here, and nothing waits for it: what cannot be written is counted and told, and no
//! fence stops. Whoever may write the files may write a chain of their own from any entry on: what shows that is that
//! the head stands in the store's fence records as well.
//! **Invariants.** Nothing that was written whole is ever changed; a file goes only once all of it is older than it is
//! to be kept, and an entry said so before. An entry is in the chain once, or counted in an entry `gap`.
//! **Boundary.** Knows nothing of ours: whoever tells brings words.
//!
//! # The form
//!
//! A directory holds `audit-<number of its first entry>.jsonl`, in twenty digits. A line ends with
//! `,"hash":"<64 hexadecimal digits>"}`; the hash is the SHA-256 of everything in the line before that, which ends with
//! `"prev":"<the hash of the entry before>"`. The first entry of all follows 64 zeros.

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
