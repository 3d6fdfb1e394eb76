//! Which machine a request means: under the same name the settings may have another one by the time its
//! turn comes.
//!
//! # Invariants
//!
//! - A request fences the machine that its node had when the request came (S13). Shown by
//!   `another_address_or_another_identity_is_another_machine_and_what_is_learned_is_not`,
//!   `a_request_that_waits_is_void_once_the_settings_have_another_machine`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::device::{Identity, IdentityMatch};
use crate::ids::DeviceId;
use crate::record::NodeRecord;
use crate::topology::Topology;

/// A node's machine as it was known when a request came: where its devices are, and what they must say of themselves (S13).
///
/// The default is of a request that was stored before this was: it knows nothing, and no machine is another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    places: Option<Topology>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    identities: BTreeMap<DeviceId, Identity>,
}

impl Target {
    /// The machine of that record, by these levels of the settings.
    pub fn of(record: &NodeRecord, topology: &Topology) -> Self {
        let places = Topology::none().at(topology.addresses().clone()).of_simulated(topology.is_simulated());
        let known = topology.devices().map(|spec| (spec.id.clone(), record.expected(spec).identity));
        Self {
            places: Some(places),
            identities: known.filter(|(_, identity)| !identity.is_empty()).collect(),
        }
    }

    /// Why the node's machine may be another one now, in words: a device is elsewhere, or must say another identity than before.
    /// `None`: nothing speaks for it. What was learned of it since is no other identity.
    pub fn is_another(&self, record: &NodeRecord, topology: &Topology) -> Option<String> {
        if let Some(how) = self.places.as_ref().and_then(|places| places.elsewhere(topology)) {
            return Some(how);
        }
        topology.devices().find_map(|spec| {
            let (was, is) = (self.identities.get(&spec.id)?, record.expected(spec).identity);
            let differs = was.compare(&is) == IdentityMatch::Mismatch;
            differs.then(|| {
                format!("device {} was of the machine {}, and is of {} now", spec.id, was.words(), is.words())
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceSpec;
    use crate::ids::NodeId;
    use crate::support::{device, host, topology};

    fn at(address: &str, identity: &Identity) -> Topology {
        let spec = DeviceSpec { identity: identity.clone(), ..host("bmc") };
        topology(&[&[spec]]).at([(device("bmc"), address.to_owned())].into())
    }

    fn uuid(digit: &str) -> Identity {
        Identity { uuid: Identity::usable_uuid(&digit.repeat(32)), serial: None }
    }

    #[test]
    fn another_address_or_another_identity_is_another_machine_and_what_is_learned_is_not() {
        let record = NodeRecord::new(NodeId::new("n1").expect("a good name"));
        let (unknown, a, b) = (Identity::default(), uuid("a"), uuid("b"));
        for (was, is, said) in [
            (at("here", &a), at("here", &a), None),
            (at("here", &unknown), at("here", &a), None),
            (at("here", &a), at("there", &a), Some("was here and is there")),
            (at("here", &a), at("here", &b), Some("was of the machine uuid aaaa")),
        ] {
            let target = Target::of(&record, &was);
            let stored = serde_json::to_string(&target).expect("written");
            let read: Target = serde_json::from_str(&stored).expect("read");
            assert_eq!(read, target);
            let another = read.is_another(&record, &is);
            assert_eq!(another.is_some(), said.is_some(), "{another:?}");
            assert!(another.unwrap_or_default().contains(said.unwrap_or_default()));
            assert_eq!(Target::default().is_another(&record, &is), None);
        }
    }

    #[test]
    fn an_identity_that_a_person_accepted_since_is_another_machine_s() {
        let mut record = NodeRecord::new(NodeId::new("n1").expect("a good name"));
        let levels = at("here", &Identity::default());
        record.learned.insert(device("bmc"), uuid("a").into());
        let target = Target::of(&record, &levels);
        assert_eq!(target.is_another(&record, &levels), None);
        record.learned.insert(device("bmc"), uuid("b").into());
        assert!(target.is_another(&record, &levels).is_some());
    }
}
