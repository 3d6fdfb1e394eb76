//! Identities that devices of more than one node claim identify nobody (S13). The same holds of identities
//! of orphans, whose machines are kept off.
//!
//! # Invariants
//!
//! - A device claims what the settings, or the store, expect of it, until it is heard. Then it claims what
//!   it said last. Shown by `what_was_heard_counts_for_more_than_what_is_expected_until_all_is_forgotten`,
//!   `what_twins_say_of_themselves_identifies_neither`.
//! - A board that moved to another node is no twin of itself once the device where it was says something
//!   else, or is gone. Shown by
//!   `a_board_that_moved_is_no_twin_of_itself_once_the_node_where_it_was_says_or_has_something_else`.
//! - Silence takes nothing back, and neither does a device that does not say what it controls.
//! - Where nothing is known of a device's machine, an identity that is another node's stays that node's:
//!   two addresses may be swapped. Shown by
//!   `what_is_expected_of_another_is_that_ones_whatever_its_device_says_by_now`,
//!   `nor_is_one_whose_own_device_says_that_it_controls_another`.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use picket_core::device::{Identity, IdentityMatch};
use picket_core::ids::{DeviceId, NodeId};
use picket_core::topology::Topology;

/// One device of one node.
type Whose = (NodeId, DeviceId);

/// What each device claims. Boards that left the factory with the same UUID are not rare.
#[derive(Debug, Default)]
pub struct Twins(Mutex<Claims>);

#[derive(Debug, Default)]
struct Claims {
    said: BTreeMap<Whose, Identity>,
    /// What the settings, or the store, expect of each.
    expected: BTreeMap<Whose, Identity>,
    /// Who may say the same, by [`keys`], in order.
    by: BTreeMap<String, Vec<Whose>>,
    /// Of the machines that orphans keep off, as far as they are known.
    orphans: BTreeMap<NodeId, Vec<Identity>>,
}

/// Under what it is found: a UUID by its bytes in whatever order, and a serial number.
fn keys(identity: &Identity) -> impl Iterator<Item = String> {
    let uuid = identity.uuid.iter().map(|uuid| {
        let mut bytes: Vec<&[u8]> = uuid.as_bytes().chunks(2).collect();
        bytes.sort_unstable();
        format!("uuid {}", String::from_utf8_lossy(&bytes.concat()))
    });
    uuid.chain(identity.serial.iter().map(|serial| format!("serial {serial}")))
}

/// Whether one may be taken for the other: a serial number counts only where one of them has nothing better.
fn are_twins(one: &Identity, other: &Identity) -> bool {
    let by_uuid = |identity: &Identity| Identity { uuid: identity.uuid.clone(), serial: None };
    let compared = match one.uuid.is_some() && other.uuid.is_some() {
        // The byte orders of the two may differ from that of the third: either way round.
        true => [by_uuid(one).compare(other), by_uuid(other).compare(one)],
        false => [one.compare(other); 2],
    };
    compared.contains(&IdentityMatch::Match)
}

impl Claims {
    fn take(&mut self, whose: &Whose) -> Identity {
        let said = self.said.remove(whose).unwrap_or_default();
        for key in keys(&said) {
            if let Some(others) = self.by.get_mut(&key) {
                others.retain(|other| other != whose);
                if others.is_empty() {
                    self.by.remove(&key);
                }
            }
        }
        said
    }

    fn put(&mut self, whose: Whose, said: Identity) {
        for key in keys(&said) {
            let others = self.by.entry(key).or_default();
            if let Err(at) = others.binary_search(&whose) {
                others.insert(at, whose.clone());
            }
        }
        self.said.insert(whose, said);
    }

    /// Takes back what devices of that node claim.
    fn take_of(&mut self, node: &NodeId, goes: impl Fn(&DeviceId) -> bool) {
        let of_node = self.said.keys().filter(|(one, device)| one == node && goes(device));
        let going: Vec<Whose> = of_node.cloned().collect();
        for whose in going {
            self.take(&whose);
        }
        self.expected.retain(|(one, device), _| one != node || !goes(device));
    }
}

impl Twins {
    /// What a device of `node` is expected to say, by the settings or the store. That counts until it is heard.
    pub(crate) fn expects(&self, node: &NodeId, device: &DeviceId, expected: Identity) {
        let (mut claims, whose) = (self.0.lock(), (node.clone(), device.clone()));
        if expected.is_empty() {
            claims.expected.remove(&whose);
            return;
        }
        claims.expected.insert(whose.clone(), expected.clone());
        if !claims.said.contains_key(&whose) {
            claims.put(whose, expected);
        }
    }

    /// The device of another node of which the settings, or the store, expect that, if there is one.
    pub(crate) fn expected_of_another(&self, node: &NodeId, said: &Identity) -> Option<Whose> {
        let claims = self.0.lock();
        let is_its = |(whose, known): &(&Whose, &Identity)| whose.0 != *node && are_twins(said, known);
        claims.expected.iter().find(is_its).map(|(whose, _)| whose.clone())
    }

    /// Notes that the device of `node` says it is `said`. A device of another node that claims the same, if there is one.
    pub fn twin_of(&self, node: &NodeId, device: &DeviceId, said: &Identity) -> Option<(NodeId, DeviceId)> {
        if said.is_empty() {
            return None;
        }
        let mut claims = self.0.lock();
        let whose = (node.clone(), device.clone());
        let before = claims.take(&whose);
        let now = match is_another(&before, said) {
            true => said.clone(),
            false => Identity {
                uuid: said.uuid.clone().or(before.uuid),
                serial: said.serial.clone().or(before.serial),
            },
        };
        claims.put(whose, now);
        let near = keys(said).filter_map(|key| claims.by.get(&key)).flatten();
        let is_twin = |other: &&Whose| {
            other.0 != *node && claims.said.get(other).is_some_and(|claim| are_twins(said, claim))
        };
        near.into_iter().find(is_twin).cloned()
    }

    /// Whether a device of another node claims that, or is expected to.
    pub(crate) fn is_claimed_beside(&self, node: &NodeId, identity: &Identity) -> bool {
        let claims = self.0.lock();
        let mut all = claims.said.iter().chain(&claims.expected);
        all.any(|(whose, claim)| whose.0 != *node && are_twins(identity, claim))
    }

    /// The machine of an orphan has these identities. None of them: it is no orphan, or nothing is known of its machine.
    pub(crate) fn keeps_off(&self, orphan: &NodeId, identities: Vec<Identity>) {
        let orphans = &mut self.0.lock().orphans;
        match identities.is_empty() {
            true => drop(orphans.remove(orphan)),
            false => drop(orphans.insert(orphan.clone(), identities)),
        }
    }

    /// The orphan that keeps the machine of that identity off, in words: whatever the settings call it now, nothing is sent to it.
    pub(crate) fn kept_off_by(&self, said: &Identity) -> Option<String> {
        let claims = self.0.lock();
        let is_its = |known: &Identity| known.compare(said) == IdentityMatch::Match;
        let (orphan, _) = claims.orphans.iter().find(|(_, known)| known.iter().any(is_its))?;
        Some(format!(
            "the machine of {}, which the orphan {orphan} keeps off: retire that one, then reload",
            said.words()
        ))
    }

    /// What an earlier leadership heard: another one may have stored since what is expected now.
    pub(crate) fn forget_all(&self) {
        let mut claims = self.0.lock();
        (claims.said, claims.by, claims.expected) = Default::default();
    }

    /// What a node claimed that left the settings: whoever has its machine now is no twin.
    pub fn forget(&self, node: &NodeId) {
        self.0.lock().take_of(node, |_| true);
    }

    /// The settings of a node changed: what its devices claimed that are gone, at another address, or of another machine
    /// now, they claim no more.
    pub fn moved(&self, node: &NodeId, before: &Topology, now: &Topology) {
        let is_same = |device: &DeviceId| {
            let identity = |topology: &Topology| topology.device(device).map(|spec| spec.identity.clone());
            before.addresses().get(device) == now.addresses().get(device)
                && now.device(device).is_some()
                && identity(before) == identity(now)
        };
        self.0.lock().take_of(node, |device| !is_same(device));
    }
}

/// Whether it says something else than before: that it says less is nothing else.
fn is_another(before: &Identity, now: &Identity) -> bool {
    let differ = |a: &Option<String>, b: &Option<String>| a.is_some() && b.is_some() && a != b;
    differ(&before.uuid, &now.uuid) || differ(&before.serial, &now.serial)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeId {
        NodeId::new(name).expect("a good name")
    }

    fn device(name: &str) -> DeviceId {
        DeviceId::new(name).expect("a good name")
    }

    fn uuid(digit: char) -> Identity {
        Identity { uuid: Identity::usable_uuid(&digit.to_string().repeat(32)), serial: None }
    }

    fn serial(text: &str) -> Identity {
        Identity { uuid: None, serial: Some(text.to_owned()) }
    }

    fn both(digit: char, text: &str) -> Identity {
        Identity { uuid: uuid(digit).uuid, ..serial(text) }
    }

    fn twin(twins: &Twins, name: &str, at: &str, said: &Identity) -> Option<String> {
        let found = twins.twin_of(&node(name), &device(at), said);
        found.map(|(node, device)| format!("{device} of {node}"))
    }

    fn is_twin(twins: &Twins, name: &str, said: &Identity) -> bool {
        twin(twins, name, "bmc", said).is_some()
    }

    #[test]
    fn the_second_claim_makes_twins_of_both_and_two_devices_of_one_node_do_not() {
        let twins = Twins::default();
        let said = uuid('1');
        assert!(!is_twin(&twins, "n1", &said));
        assert_eq!(twin(&twins, "n1", "agent", &said), None);
        assert_eq!(twin(&twins, "n2", "bmc", &said).as_deref(), Some("agent of n1"));
        assert!(is_twin(&twins, "n1", &said));
        assert!(!is_twin(&twins, "n1", &Identity::default()));
        twins.forget(&node("n1"));
        assert!(!is_twin(&twins, "n2", &said), "the other one is gone");
    }

    /// The devices of two nodes were swapped, and the one of which it is known said so.
    #[test]
    fn what_is_expected_of_another_is_that_ones_whatever_its_device_says_by_now() {
        let (twins, bmc) = (Twins::default(), device("bmc"));
        twins.expects(&node("n1"), &bmc, uuid('1'));
        assert!(!is_twin(&twins, "n1", &uuid('2')));
        assert!(!is_twin(&twins, "n2", &uuid('1')), "nobody says the same");
        let owner = |name: &str| twins.expected_of_another(&node(name), &uuid('1'));
        assert_eq!(owner("n2"), Some((node("n1"), bmc.clone())));
        assert_eq!(owner("n1"), None);
        twins.expects(&node("n1"), &bmc, uuid('3'));
        assert_eq!(owner("n2"), None, "a person accepted another board there");
        twins.expects(&node("n1"), &bmc, uuid('1'));
        twins.forget(&node("n1"));
        assert_eq!(owner("n2"), None);
    }

    #[test]
    fn twins_are_found_in_each_byte_order_and_by_a_serial_number_alone_where_one_says_no_more() {
        let said = |text: &str, serial: &str| Identity {
            uuid: Identity::usable_uuid(text),
            serial: Some(serial.to_owned()).filter(|serial| !serial.is_empty()),
        };
        let ours = said("00112233-4455-6677-8899-aabbccddeeff", "a");
        for (other, is_twin) in [
            (said("33221100-5544-7766-8899-aabbccddeeff", "b"), true),
            (said("ffeeddcc-bbaa-9988-7766-554433221100", ""), true),
            (said("11002233-4455-6677-8899-aabbccddeeff", "a"), false),
            (said("", "a"), true),
            (said("", "b"), false),
        ] {
            for (first, second) in [(&ours, &other), (&other, &ours)] {
                let twins = Twins::default();
                twins.expects(&node("n1"), &device("bmc"), first.clone());
                assert_eq!(self::is_twin(&twins, "n2", second), is_twin, "{first:?}, {second:?}");
            }
        }
    }

    #[test]
    fn what_was_heard_counts_for_more_than_what_is_expected_until_all_is_forgotten() {
        let twins = Twins::default();
        twins.expects(&node("n1"), &device("bmc"), uuid('1'));
        assert!(is_twin(&twins, "n2", &uuid('1')), "nobody heard n1 yet");
        assert!(!is_twin(&twins, "n1", &uuid('2')));
        twins.expects(&node("n1"), &device("bmc"), uuid('1'));
        assert!(!is_twin(&twins, "n2", &uuid('1')));
        twins.forget_all();
        twins.expects(&node("n1"), &device("bmc"), uuid('1'));
        assert!(is_twin(&twins, "n2", &uuid('1')));
    }

    #[test]
    fn a_board_that_moved_is_no_twin_once_the_device_where_it_was_says_something_else() {
        let twins = Twins::default();
        let (old, new) = (both('1', "a"), both('2', "b"));
        assert!(!is_twin(&twins, "n1", &old));
        assert!(is_twin(&twins, "n2", &old), "nobody asked n1 since");
        assert!(!is_twin(&twins, "n1", &Identity::default()), "what it does not say takes nothing back");
        assert!(is_twin(&twins, "n2", &old));
        assert!(is_twin(&twins, "n1", &uuid('1')));
        assert!(is_twin(&twins, "n2", &serial("a")), "that it says less takes nothing back either");
        assert!(!is_twin(&twins, "n1", &new));
        assert!(!is_twin(&twins, "n2", &old));
    }

    #[test]
    fn other_settings_of_a_device_take_its_claim_back_and_those_of_others_do_not() {
        use picket_core::topology::Level;

        let topology = |at: &str, identity: &Identity| {
            let spec = spec(identity.clone());
            let levels = vec![Level { devices: vec![spec] }];
            let addresses = BTreeMap::from([(device("bmc"), at.to_owned())]);
            Topology::new(levels).expect("a good topology").at(addresses)
        };
        let (said, none) = (uuid('1'), Identity::default());
        let before = topology("here", &said);
        let same = topology("here", &said);
        for (now, stays) in [
            (same, true),
            (topology("there", &said), false),
            (topology("here", &uuid('2')), false),
            (topology("here", &none), false),
            (Topology::none(), false),
        ] {
            let twins = Twins::default();
            assert!(!is_twin(&twins, "n1", &said));
            twins.moved(&node("n2"), &before, &now);
            assert!(is_twin(&twins, "n2", &said), "of another node");
            twins.moved(&node("n1"), &before, &now);
            assert_eq!(is_twin(&twins, "n2", &said), stays, "{now:?}");
        }
    }

    fn spec(identity: Identity) -> picket_core::device::DeviceSpec {
        use std::time::Duration;

        use picket_core::device::{DeviceClass, DeviceSpec, Grade, MaxInFlight};
        DeviceSpec {
            id: device("bmc"),
            class: DeviceClass::Host,
            grade: Grade::Observed,
            has_epochs: true,
            longest_cycle: Duration::from_secs(15),
            call: Duration::from_secs(5),
            dwell: Duration::from_secs(1),
            readings: 2,
            max_in_flight: MaxInFlight { off: None, on: None },
            trust_after_restart: None,
            verified: false,
            identity,
        }
    }
}
