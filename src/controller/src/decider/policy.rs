//! Policies, and which of them speaks for a Node.

use std::collections::BTreeSet;
use std::time::Duration;

use super::condition_meaning;
use super::node::Node;
use super::selector::Selector;

/// What becomes of a node that was fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFence {
    /// It stays off until somebody drops the hold.
    StayOff,
    /// It is powered on once everything is released.
    PowerOn,
}

/// The least grade of the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// Trusted, not verified.
    Claimed,
    /// Seen off by a device whose identity was learned from itself.
    Learned,
    /// A cloud, or the parent, says so.
    Hypervisor,
    /// Seen off.
    Observed,
}

/// A condition that makes a Node unhealthy, and how long it must have been so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unhealthy {
    /// The condition's type.
    pub kind: String,
    /// The status that is unhealthy.
    pub status: String,
    /// For how long it must have been seen so.
    pub least: Duration,
}

/// A `FencingPolicy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Of its spec.
    pub generation: i64,
    /// The Nodes for which it speaks.
    pub selector: Selector,
    /// That it selects every Node of the cluster is meant.
    pub every_node: bool,
    /// Nodes of the control plane for which it speaks, by name (K11).
    pub control_plane: BTreeSet<String>,
    /// What is unhealthy.
    pub unhealthy: Vec<Unhealthy>,
    /// How long a Node that turned healthy again is left alone.
    pub quiet: Duration,
    /// What comes after the fence.
    pub then: AfterFence,
    /// The least grade.
    pub grade: Grade,
    /// From the intent to the confirmation; `None`: what the gateway's settings say.
    pub deadline: Option<Duration>,
    /// Nodes for which it does not speak.
    pub excluded: BTreeSet<String>,
    /// Nodes for which it does not speak, by their labels.
    pub excluding: Option<Selector>,
    /// Leave Nodes alone that were cordoned before they failed (K10).
    pub spare_cordoned: bool,
    /// Leave Nodes alone that have a known lock for a reboot (K10).
    pub spare_rebooting: bool,
    /// It asks for nothing.
    pub paused: bool,
}

/// What is wrong with a policy, for its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFault {
    /// One word, for machines.
    pub reason: &'static str,
    /// For people: what is so, and what would help.
    pub message: String,
}

impl Policy {
    pub(super) fn spares(&self, node: &Node) -> bool {
        self.excluded.contains(&node.name)
            || self.excluding.as_ref().is_some_and(|selector| selector.meets(&node.labels))
    }

    /// Whether such a condition is unhealthy.
    pub(super) fn is_unhealthy(&self, kind: &str, status: &str) -> bool {
        self.unhealthy.iter().any(|one| one.kind == kind && one.status == status)
    }

    /// Whether that Node is unhealthy to it by a condition of a type that is not known.
    pub(super) fn takes_at_its_word(&self, node: &Node) -> bool {
        let mut unknown = self.unhealthy.iter().filter(|one| !condition_meaning::is_known(&one.kind));
        unknown.any(|one| node.conditions.get(&one.kind).is_some_and(|now| now.status == one.status))
    }

    /// What it takes for unhealthy, and every healthy Node says. The definition refuses it, and may have been another when it was stored.
    pub(super) fn healthy(&self) -> impl Iterator<Item = &Unhealthy> {
        self.unhealthy.iter().filter(|one| condition_meaning::is_healthy(&one.kind, &one.status))
    }
}
