//! What the judge hands out.

use crate::ids::{DeviceId, FenceId, Generation, NodeId, Term};
use crate::record::Evidence;

/// Proof that a node is off: made by the [judge](super::Judge) alone, after it saw it.
///
/// Not `Clone`, not stored, not deserializable: whoever leads next begins from zero.
#[derive(Debug)]
pub struct ConfirmedOff {
    pub(super) node: NodeId,
    pub(super) fence: FenceId,
    pub(super) generation: Generation,
    pub(super) term: Term,
    pub(super) round: u32,
    pub(super) evidence: Evidence,
    /// The devices of the level that held, each with the epoch in which it read Off.
    pub(super) devices: Vec<(DeviceId, Option<u64>)>,
}

impl ConfirmedOff {
    /// The node.
    pub fn node(&self) -> &NodeId {
        &self.node
    }

    /// The fence.
    pub fn fence(&self) -> FenceId {
        self.fence
    }

    /// The generation in which it holds.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The leadership in which it was found.
    pub fn term(&self) -> Term {
        self.term
    }

    /// The fence's round in which it was found.
    pub(crate) fn round(&self) -> u32 {
        self.round
    }

    /// What was seen, for people.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The devices that must go on reading Off, and the epoch (its id) in which they must.
    pub fn devices(&self) -> impl Iterator<Item = (&DeviceId, Option<u64>)> {
        self.devices.iter().map(|(device, epoch)| (device, *epoch))
    }
}
