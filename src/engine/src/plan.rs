//! What a fence would do, as its caller sees it.

use std::time::Duration;

use picket_core::budget::Bar;
use picket_core::device::Grade;
use picket_core::ids::{FenceId, Generation};
use picket_core::outcome::Reason;
use picket_core::record::Phase;

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanAction {
    /// Looks whether the decision still stands.
    LastLook,
    /// Compares a device's identity.
    Identify,
    /// Tells a device to stay off.
    Hold,
    /// Switches a device off.
    Off,
    /// Reads until Off is proven.
    Confirm,
    /// Waits until storage has finished writing.
    Settle,
    /// Lets volumes go.
    Release,
    /// Powers on again.
    PowerOn,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// What it does.
    pub action: PlanAction,
    /// The level to which it belongs, from 1; 0: none.
    pub level: usize,
    /// The device or the release; empty: the node.
    pub target: String,
    /// In words.
    pub text: String,
    /// How long it takes at the longest.
    pub at_most: Option<Duration>,
    /// The best grade that it can yield.
    pub grade: Option<Grade>,
    /// What would be in its way now.
    pub obstacles: Vec<String>,
}

/// How the request would be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Planned {
    /// It would open a fence. The text says what of it is special.
    Opens(String),
    /// It would join this one, which goes on.
    Joins(FenceId),
    /// The node is proven off, and read Off just now: nothing would be sent.
    Already {
        /// Whether every release is complete or abandoned.
        released: bool,
    },
    /// It was proven off, and that would have to be proven anew.
    ProvenAnew(FenceId, String),
    /// It would be opened, and undone before anything was sent: the node recovered.
    Aborts(String),
    /// A pause or a limit bars it.
    Barred(Box<Bar>),
    /// Something else does.
    Blocked(Reason, String),
}

/// What a fence would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The node's phase.
    pub phase: Phase,
    /// The node's generation.
    pub generation: Generation,
    /// What would happen, in order. Steps of later levels come only if those of earlier ones did not hold.
    pub steps: Vec<PlanStep>,
    /// How the request would be taken.
    pub planned: Planned,
}
