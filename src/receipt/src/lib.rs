//! Receipts as they are signed and read: keys, bodies, signatures.
//!
//! **Purpose.** Signs what the store has as issued, and tells a receipt of ours from any other. The format
//! stands in `docs/receipts-form.md`.
//! **Non-goals.** Whether a receipt holds: the record says that, and the leader answers. No store, no
//! clock, no network.
//!
//! # Invariants
//!
//! - Nothing is signed but a [`ReceiptOrder`](picket_core::receipt::ReceiptOrder), which only the store's
//!   `Saved` opens (S19). Shown by `nobody_else_makes_what_opens_a_door`.
//! - A body is verified as the very bytes that were signed, and read only after that. Shown by
//!   `one_changed_bit_is_found`, `signed_and_not_to_be_read_is_said_as_such`.
//! - A private key is in no error, log or debug print (S18).

mod body;
mod file;
mod key;
mod keys;
mod listed;
mod signed;
#[cfg(test)]
mod tests;

pub use body::{Body, BodyFault};
pub use file::KeyFault;
pub use key::{KeyId, SigningKey};
pub use keys::Keys;
pub use listed::{ListedKey, NOTES, PublicKeys};
pub use signed::{ALGORITHM, CONTEXT, Forged, Signed};
