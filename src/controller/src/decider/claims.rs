//! Identities that two Nodes claim: they are nobody's (K1). A kubelet may write its Node's system UUID, and its providerID while that is empty.

use picket_core::device::{Identity, IdentityMatch};

use super::Decider;
use super::node::Node;
use super::verdict::SkipReason;
use crate::settings::Select;

impl Decider {
    /// One that has seen nothing yet. `select`: how the gateway is told which machine is meant.
    pub fn selecting(select: Select) -> Self {
        Self { select, ..Self::default() }
    }

    /// Why nobody knows which machine is meant: another Node says the same of its machine.
    pub(super) fn claimed(&self, node: &Node) -> Option<SkipReason> {
        let others =
            self.nodes.values().map(|observation| &observation.node).filter(|other| other.name != node.name);
        let found = |what, other: &Node| Some(SkipReason::Claimed { what, other: other.name.clone() });
        match self.select {
            Select::Name => None,
            Select::ProviderId => {
                let mut others = others.filter(|other| !other.provider_id.is_empty());
                found("providerID", others.find(|other| other.provider_id == node.provider_id)?)
            }
            Select::SystemUuid => {
                let own = said_by(node);
                let is_same = |other: &&Node| own.compare(&said_by(other)) == IdentityMatch::Match;
                found("system UUID", others.into_iter().find(is_same)?)
            }
        }
    }
}

/// What a Node says of its machine.
fn said_by(node: &Node) -> Identity {
    Identity { uuid: Identity::usable_uuid(&node.system_uuid), serial: None }
}
