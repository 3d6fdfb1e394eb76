//! Why an event is not applied, and why a node's task ends.

use picket_core::machine::Refused;
use picket_core::store::StoreError;

/// Why a node's task ended by itself.
#[derive(Debug)]
pub(crate) enum Gone {
    /// This leadership cannot go on with the node.
    Fatal(StoreError),
    /// It made room for a task with another plan.
    Aside,
}

/// This leadership cannot go on with the node; nothing more is sent.
#[derive(Debug)]
pub(crate) struct Fatal(pub(crate) StoreError);

/// Why an event was not applied.
#[derive(Debug)]
pub(super) enum Failure {
    /// The rules do not allow it; nothing changed.
    Refused(Refused),
    /// The write did not happen; a later one may.
    Unavailable(String),
    /// This leadership is over.
    Fatal(StoreError),
}

impl From<Fatal> for Failure {
    fn from(fatal: Fatal) -> Self {
        Failure::Fatal(fatal.0)
    }
}
