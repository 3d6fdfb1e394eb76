//! Releasers: how volumes are let go, once a node is proven off.
//!
//! **Purpose.** One attempt under a permit, and seeing it through: [`webhook`], [`command`], the volumes of a
//! cloud's machine, none.
//! **Non-goals.** No decision whether a release is due: the permit is that decision. No retries: each attempt wants
//! a permit of its own, so whoever makes permits retries.
//! **Invariants.** Every attempt takes a [`ReleasePermit`](picket_core::ground::ReleasePermit) (S4) and is idempotent by
//! its key; accepted and complete are told apart, and only an explicit word is complete;
//! an error says whether the effect did not happen or is unknown (S10). No secret is in an error or a debug print (S18).
//!
//! What a receiver owes is written in this crate's `README.md`.

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
