//! What is noted on a Node: `picket.dev/status`.

use serde::{Deserialize, Serialize};

use super::node::Node;

/// The annotation.
pub const STATUS: &str = "picket.dev/status";

/// How far a Node's fence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The gateway was asked.
    Fencing,
    /// It is off, and stays so.
    Fenced,
    /// It was off, and is brought back.
    Returning,
    /// It is not asked for now, and will be again.
    Blocked,
    /// The gateway refuses the request.
    Refused,
    /// A person must decide, or see to a machine that does not come on.
    NeedsOperator,
    /// It was alive after all.
    Recovered,
}

/// What it says, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// How far it is.
    pub phase: Phase,
    /// In words.
    pub text: String,
    /// The policy by which it was asked for.
    pub policy: String,
    /// The key under which it was asked for: who takes over goes on with it.
    pub key: String,
    /// When, on the controller's wall clock; for people.
    pub at: String,
}

impl Note {
    /// What is noted there; `None`: nothing, or nothing of ours.
    pub fn of(node: &Node) -> Option<Self> {
        serde_json::from_str(node.annotations.get(STATUS)?).ok()
    }

    /// Whether something may be under way under its key.
    pub fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Recovered)
    }
}
