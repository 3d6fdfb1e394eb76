//! placeholder
use crate::ids::*;
use crate::power::Epoch;
use crate::record::Evidence;
/// x
#[derive(Debug)]
pub struct ConfirmedOff {
    node: NodeId,
    fence: FenceId,
    term: Term,
    evidence: Evidence,
    devices: Vec<(DeviceId, Option<Epoch>)>,
}
impl ConfirmedOff {
    /// x
    pub fn node(&self) -> &NodeId {
        &self.node
    }
    /// x
    pub fn fence(&self) -> FenceId {
        self.fence
    }
    /// x
    pub fn term(&self) -> Term {
        self.term
    }
    /// x
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }
    /// x
    pub fn devices(&self) -> impl Iterator<Item = (&DeviceId, Option<Epoch>)> {
        self.devices.iter().map(|(d, e)| (d, *e))
    }
}
