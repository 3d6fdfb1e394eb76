//! Liveness sources: whether a node recovered, asked before anything is done to it (S15).
//!
//! **Purpose.** One look at one node: a `command` of the operator's, an `http` probe, or what is made
//! elsewhere ([`Asking`]: Kubernetes), asked as often in a row as the settings say.
//! **Non-goals.** No watching: a source is asked only within a fence, and right before one whose node it
//! is. No proof: what a source says never means off.
//!
//! # Invariants
//!
//! - A look fails towards *the fence goes on*. Only an explicit word, given as often as was asked for, is
//!   [`Look::Recovered`]. Shown by
//!   `a_source_that_hangs_or_fails_never_stops_a_fence_nor_keeps_it_longer_than_its_patience`.
//! - An API server of Kubernetes that cannot be reached is [`Look::Away`]: whoever fences by its word waits
//!   for it (K9).
//! - A look ends within its [`Liveness::patience`].

mod command;
mod http;
mod look;
mod pace;
mod source;

pub use look::{Liveness, Sign};
pub use picket_answers::liveness::Look;
pub use picket_reach::SettingFault;
pub use source::{Ask, Asking, KINDS, Source};
