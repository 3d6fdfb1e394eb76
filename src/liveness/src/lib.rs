//! Liveness sources: whether a node recovered, asked before anything is done to it (S15).
//!
//! **Purpose.** One look at one node: a `command` of the operator's, an `http` probe, or what is made elsewhere ([`Asking`]:
//! Kubernetes), asked as often in a row as the settings say.
//! **Non-goals.** No watching: nobody is asked but within a fence, and right before one whose node it is. No proof: what a source says never means off.
//! **Invariants.** It fails towards *the fence goes on*: only an explicit word, given as often as was asked for, is
//! [`Look::Recovered`]; silence, a fault, an answer that means nothing and the end of the time are not. But for an API server of
//! Kubernetes that cannot be reached ([`Look::Away`]): whoever fences by its word waits for it. A look ends within its
//! [`Liveness::patience`].

mod command;
mod http;
mod look;
mod pace;
mod source;

pub use look::{Liveness, Sign};
pub use picket_answers::liveness::Look;
pub use picket_reach::SettingFault;
pub use source::{Ask, Asking, KINDS, Source};
