//! Releasers: how volumes are let go, once a node is proven off.
//!
//! **Purpose.** One attempt under a permit, and seeing it through: [`webhook`], [`command`], the volumes of
//! a cloud's machine, none. What a receiver owes is written in this crate's `README.md`.
//! **Non-goals.** No decision whether a release is due: the permit is that decision. No retries: each
//! attempt wants a permit of its own, so whoever makes permits retries.
//!
//! # Invariants
//!
//! - Every attempt takes a [`ReleasePermit`](picket_core::ground::ReleasePermit) (S4) and is idempotent by
//!   its key. Shown by `an_order_and_a_permit_that_do_not_belong_together_send_nothing`.
//! - Accepted and complete are told apart, and only an explicit word is complete. Shown by
//!   `only_the_three_words_are_a_status`.
//! - An error says whether the effect did not happen or is unknown (S10). Shown by
//!   `a_refusal_did_not_happen_and_everything_else_is_unknown`.
//! - No secret is in an error or a debug print (S18). Shown by `the_token_is_sent_and_never_told`.

mod allowed;
mod choice;
pub mod command;
pub mod message;
mod nothing;
mod pace;
pub mod quarantine;
pub mod registry;
pub mod releaser;
mod reply;
mod volumes;
pub mod webhook;

pub use pace::Pace;
pub use picket_answers::release::{Found, Left, LetOn, Prepared, Progress, ReleaseError, Subject, Whose};
pub use picket_reach::{SettingFault, unmade};
pub use quarantine::{Machine, Quarantine};
pub use registry::{KINDS, make};
pub use releaser::{Devices, ForNode, InParts, Releaser};
