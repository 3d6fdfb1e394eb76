//! Identities that devices of more than one node claim: they identify nobody (S13).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use picket_core::device::Identity;
use picket_core::ids::NodeId;

/// Who was heard to claim which identity. Boards that left the factory with the same UUID are not rare.
#[derive(Debug, Default)]
pub struct Twins(Mutex<BTreeMap<String, BTreeSet<NodeId>>>);

impl Twins {
    /// Notes that a device of `node` says it is `said`; true if a device of another node said the same.
    pub fn is_twin(&self, node: &NodeId, said: &Identity) -> bool {
        let Some(claimed) = said.uuid.clone().or_else(|| said.serial.clone()) else { return false };
        let mut claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let nodes = claims.entry(claimed).or_default();
        nodes.insert(node.clone());
        nodes.len() > 1
    }

    /// What a node claimed that left the settings: whoever has its machine now is no twin.
    pub fn forget(&self, node: &NodeId) {
        let mut claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        claims.retain(|_, nodes| {
            nodes.remove(node);
            !nodes.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_claim_makes_twins_of_both_and_two_devices_of_one_node_do_not() {
        let twins = Twins::default();
        let node = |name| NodeId::new(name).expect("a good name");
        let said = Identity { uuid: Identity::usable_uuid("00112233445566778899aabbccddeeff"), serial: None };
        assert!(!twins.is_twin(&node("n1"), &said));
        assert!(!twins.is_twin(&node("n1"), &said));
        assert!(twins.is_twin(&node("n2"), &said));
        assert!(twins.is_twin(&node("n1"), &said));
        assert!(!twins.is_twin(&node("n1"), &Identity::default()));
        twins.forget(&node("n1"));
        assert!(!twins.is_twin(&node("n2"), &said), "the other one is gone");
    }
}
