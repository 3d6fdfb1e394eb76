//! Why a request was not taken.

use picket_core::machine::Refused;
use picket_core::outcome::Reason;
use picket_core::store::StoreError;

/// Why the engine did not do what was asked. Nothing was changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// No such node.
    #[error("there is no node {name:?}{}", near_words(.near))]
    UnknownNode {
        /// What was asked for.
        name: String,
        /// Names like it.
        near: Vec<String>,
    },
    /// The rules do not allow it.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Nothing was sent, and why.
    #[error("blocked ({}): {detail}", .reason.label())]
    Blocked {
        /// The stable reason.
        reason: Reason,
        /// In words.
        detail: String,
    },
    /// The request came too late, or the node moved on.
    #[error("{0}")]
    Stale(String),
    /// The key is bound to other parameters.
    #[error("the idempotency key {0:?} is already used with other parameters")]
    KeyTaken(String),
    /// The store does not answer, or refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This gateway does not lead at the moment.
    #[error("no gateway leads at the moment: {0}")]
    NoLeader(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
}

fn near_words(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) }
}
