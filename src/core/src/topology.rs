//! The levels of a node: what must hold together, and what comes next when it does not.
//!
//! # Invariants
//!
//! - The topology that a fence stores says whether its devices are simulated (S1). Evidence, audit and
//!   receipts go by that, whichever gateway answers. Shown by
//!   `it_says_whether_the_devices_of_its_fence_are_simulated`.
//! - A node whose fence and settings differ in that is an orphan. Shown by
//!   `simulated_devices_are_never_the_place_of_real_ones`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::device::{DeviceClass, DeviceSpec};
use crate::ids::DeviceId;

/// What must hold together: its host devices **or** all its supplies read Off in one window (S3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Its devices, all of one class.
    pub devices: Vec<DeviceSpec>,
}

/// Why a topology cannot be used.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum TopologyFault {
    /// No device proves nothing.
    #[error("a node needs at least one level")]
    NoLevels,
    /// No device proves nothing.
    #[error("level {0} has no device: no device proves nothing")]
    EmptyLevel(usize),
    /// Host devices and supplies prove in different ways.
    #[error("level {0} mixes device classes: put host devices and supplies into levels of their own")]
    MixedClasses(usize),
    /// A machine runs on one other machine.
    #[error("level {0} has a parent beside another device: a parent is a level of its own")]
    ParentBeside(usize),
    /// One of two outlets proves nothing.
    #[error(
        "levels {0} and {1} have outlets of one machine: while one of them is on it has power, so put all of them into one level"
    )]
    SuppliesApart(usize, usize),
    /// The same device twice.
    #[error("device {0} stands in the topology twice")]
    Twice(DeviceId),
}

/// The levels of a node, tried in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    levels: Vec<Level>,
    /// Where each device is, as its driver names it; in records of before this was stored there is none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    addresses: BTreeMap<DeviceId, String>,
    /// The devices switch no real machine, so what they prove is worth nothing outside of a rehearsal (S1).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
}

impl Topology {
    /// Checks the levels; all faults at once.
    pub fn new(levels: Vec<Level>) -> Result<Self, Vec<TopologyFault>> {
        let mut faults = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        if levels.is_empty() {
            faults.push(TopologyFault::NoLevels);
        }
        for (index, level) in levels.iter().enumerate() {
            match level.devices.first() {
                None => faults.push(TopologyFault::EmptyLevel(index + 1)),
                Some(first) if level.devices.iter().any(|d| d.class != first.class) => {
                    faults.push(TopologyFault::MixedClasses(index + 1));
                }
                Some(first) if first.class == DeviceClass::Parent && level.devices.len() > 1 => {
                    faults.push(TopologyFault::ParentBeside(index + 1));
                }
                Some(_) => {}
            }
            for device in &level.devices {
                if !seen.insert(device.id.clone()) {
                    faults.push(TopologyFault::Twice(device.id.clone()));
                }
            }
        }
        let has_supplies = |level: &Level| level.devices.iter().any(|spec| spec.class == DeviceClass::Supply);
        let mut of_supplies = levels.iter().enumerate().filter(|(_, level)| has_supplies(level));
        if let (Some((first, _)), Some((second, _))) = (of_supplies.next(), of_supplies.next()) {
            faults.push(TopologyFault::SuppliesApart(first + 1, second + 1));
        }
        if faults.is_empty() { Ok(Self { levels, ..Self::none() }) } else { Err(faults) }
    }

    /// For a node of whose devices nothing is known any more. No device proves nothing.
    pub fn none() -> Self {
        Self { levels: Vec::new(), addresses: BTreeMap::new(), simulated: false }
    }

    /// The same, with where each device is (`ipmi 10.0.0.7:623`): a fence knows then whether they are elsewhere now.
    #[must_use]
    pub fn at(self, addresses: BTreeMap<DeviceId, String>) -> Self {
        Self { addresses, ..self }
    }

    /// The same, of a gateway that is simulated or not (S1).
    #[must_use]
    pub fn of_simulated(self, simulated: bool) -> Self {
        Self { simulated, ..self }
    }

    /// Whether the devices switch no real machine (S1).
    pub fn is_simulated(&self) -> bool {
        self.simulated
    }

    /// Where the devices are, as far as it is known.
    pub fn addresses(&self) -> &BTreeMap<DeviceId, String> {
        &self.addresses
    }

    /// What of these devices is not where it was, as `now` has them: gone, or at another address. `None`: each device
    /// whose address is known is still there. Devices that `now` has besides do not count.
    pub fn elsewhere(&self, now: &Self) -> Option<String> {
        // A fence of simulated devices would else go on by the releases of real ones, and the other way round.
        let other_kind = match (self.simulated, now.simulated) {
            (true, false) => Some("its devices were simulated, and the gateway is not any more"),
            (false, true) => Some("its devices were real, and the gateway is simulated now"),
            (true, true) | (false, false) => None,
        };
        if let Some(how) = other_kind {
            return Some(how.to_owned());
        }
        self.addresses.iter().find_map(|(device, was)| match now.addresses.get(device) {
            None => Some(format!("device {device} ({was}) is not in the settings any more")),
            Some(is) if is != was => {
                Some(format!("device {device} was {was} and is {is} in the settings now"))
            }
            Some(_) => None,
        })
    }

    /// The same, with the wiring of these devices verified.
    #[must_use]
    pub fn with_verified(mut self, is: impl Fn(&DeviceId) -> bool) -> Self {
        let devices = self.levels.iter_mut().flat_map(|level| &mut level.devices);
        devices.filter(|spec| is(&spec.id)).for_each(|spec| spec.verified = true);
        self
    }

    /// The same, with the wiring of these devices as nobody has verified it.
    #[must_use]
    pub fn without_verified(mut self, is: impl Fn(&DeviceId) -> bool) -> Self {
        let devices = self.levels.iter_mut().flat_map(|level| &mut level.devices);
        devices.filter(|spec| is(&spec.id)).for_each(|spec| spec.verified = false);
        self
    }

    /// The same, with what `now` says of whose machines its devices control (S13). `None`: that has other devices, other kinds of them, or has one
    /// elsewhere.
    pub fn with_identities_of(&self, now: &Self) -> Option<Self> {
        let kinds = |of: &Self| -> BTreeMap<DeviceId, DeviceClass> {
            of.devices().map(|spec| (spec.id.clone(), spec.class)).collect()
        };
        if kinds(self) != kinds(now) || self.elsewhere(now).is_some() {
            return None;
        }
        let mut same = self.clone();
        for spec in same.levels.iter_mut().flat_map(|level| &mut level.devices) {
            spec.identity = now.device(&spec.id)?.identity.clone();
        }
        Some(same)
    }

    /// The same, with what is known now of which devices tell one of their lives from the next; `None`: as it stands.
    #[must_use]
    pub fn with_epochs(mut self, has: impl Fn(&DeviceId) -> Option<bool>) -> Self {
        for spec in self.levels.iter_mut().flat_map(|level| &mut level.devices) {
            spec.has_epochs = has(&spec.id).unwrap_or(spec.has_epochs);
        }
        self
    }

    /// The same, with other dwells: what `dwell` says of each device of each level.
    #[must_use]
    pub fn with_dwells(mut self, dwell: impl Fn(&Level, &DeviceSpec) -> Duration) -> Self {
        for level in &mut self.levels {
            let dwells: Vec<Duration> = level.devices.iter().map(|spec| dwell(level, spec)).collect();
            level.devices.iter_mut().zip(dwells).for_each(|(spec, dwell)| spec.dwell = dwell);
        }
        self
    }

    /// The same, with the levels of supplies first: the others stand behind them in their order.
    #[must_use]
    pub fn supplies_first(mut self) -> Self {
        self.levels.sort_by_key(|level| level.devices.iter().any(|spec| spec.class != DeviceClass::Supply));
        self
    }

    /// The levels, first to last.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Level `index`, from 0.
    pub fn level(&self, index: usize) -> Option<&Level> {
        self.levels.get(index)
    }

    /// Every device, level by level.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceSpec> {
        self.levels.iter().flat_map(|level| &level.devices)
    }

    /// The host devices of whatever level.
    pub fn hosts(&self) -> impl Iterator<Item = &DeviceSpec> {
        self.devices().filter(|device| device.class == DeviceClass::Host)
    }

    /// The device of that name.
    pub fn device(&self, id: &DeviceId) -> Option<&DeviceSpec> {
        self.devices().find(|device| device.id == *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{device, host, supply};

    fn faults(levels: &[&[DeviceSpec]]) -> Vec<TopologyFault> {
        let levels = levels.iter().map(|level| Level { devices: level.to_vec() }).collect();
        Topology::new(levels).map(|_| Vec::new()).unwrap_or_else(|faults| faults)
    }

    #[test]
    fn no_device_proves_nothing() {
        assert_eq!(faults(&[]), [TopologyFault::NoLevels]);
        assert_eq!(faults(&[&[host("bmc")], &[]]), [TopologyFault::EmptyLevel(2)]);
    }

    /// One level after the other would cut one outlet, and take its Off for the machine's.
    #[test]
    fn outlets_of_one_machine_are_in_one_level() {
        assert_eq!(faults(&[&[host("bmc")], &[supply("a"), supply("b")]]), []);
        let apart = faults(&[&[host("bmc")], &[supply("a")], &[supply("b")]]);
        assert_eq!(apart, [TopologyFault::SuppliesApart(2, 3)]);
        let told = apart[0].to_string();
        assert!(told.contains("put all of them into one level"), "{told}");
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let both = [host("bmc"), supply("bmc")];
        assert_eq!(
            faults(&[&both, &[]]),
            [
                TopologyFault::MixedClasses(1),
                TopologyFault::Twice(device("bmc")),
                TopologyFault::EmptyLevel(2)
            ]
        );
    }

    #[test]
    fn what_is_elsewhere_is_told_and_what_was_never_known_is_not() {
        let at = |addresses: &[(&str, &str)]| {
            let addresses = addresses.iter().map(|(id, address)| (device(id), (*address).to_owned()));
            crate::support::topology(&[&[host("bmc")], &[supply("a")]]).at(addresses.collect())
        };
        let was = at(&[("bmc", "ipmi 10.0.0.1:623")]);
        assert_eq!(was.elsewhere(&at(&[("bmc", "ipmi 10.0.0.1:623"), ("a", "pdu 1")])), None);
        assert_eq!(at(&[]).elsewhere(&was), None, "stored before addresses were");
        let moved = was.elsewhere(&at(&[("bmc", "ipmi 10.0.0.2:623")])).expect("moved");
        assert!(moved.contains("10.0.0.1") && moved.contains("10.0.0.2"), "{moved}");
        assert!(was.elsewhere(&at(&[])).expect("gone").contains("not in the settings any more"));
    }

    #[test]
    fn simulated_devices_are_never_the_place_of_real_ones() {
        let real = crate::support::topology(&[&[host("bmc")]]);
        let simulated = real.clone().of_simulated(true);
        assert!(simulated.is_simulated() && !real.is_simulated());
        assert_eq!(simulated.elsewhere(&simulated), None);
        assert!(simulated.elsewhere(&real).expect("real now").contains("were simulated"));
        assert!(real.elsewhere(&simulated).expect("simulated now").contains("were real"));
    }

    #[test]
    fn a_drill_tries_supplies_first_and_what_it_verified_is_so_wherever_the_devices_are() {
        let unverified = DeviceSpec { verified: false, ..supply("a") };
        let topology = crate::support::topology(&[&[host("bmc")], &[host("agent")], &[unverified]]);
        let topology = topology.at([(device("a"), "pdu/7".to_owned())].into());
        let drilled = topology.clone().with_verified(|id| *id == device("a")).supplies_first();
        let names: Vec<_> = drilled.devices().map(|spec| (spec.id.as_str(), spec.verified)).collect();
        assert_eq!(names, [("a", true), ("bmc", false), ("agent", false)]);
        assert_eq!(topology.elsewhere(&drilled), None);
        let moved = drilled.at([(device("a"), "pdu/8".to_owned())].into());
        assert!(topology.elsewhere(&moved).is_some());
    }

    #[test]
    fn what_is_known_of_epochs_now_replaces_what_stood_there() {
        let topology = crate::support::topology(&[&[host("bmc"), host("agent")], &[supply("a")]]);
        let now = topology.with_epochs(|id| (id.as_str() != "a").then(|| id.as_str() == "agent"));
        let known: Vec<_> = now.devices().map(|spec| (spec.id.as_str(), spec.has_epochs)).collect();
        assert_eq!(known, [("bmc", false), ("agent", true), ("a", supply("a").has_epochs)]);
    }

    #[test]
    fn devices_come_level_by_level_and_hosts_are_told_apart() {
        let topology = crate::support::topology(&[&[host("bmc")], &[supply("a"), supply("b")]]);
        let names: Vec<_> = topology.devices().map(|spec| spec.id.as_str()).collect();
        assert_eq!(names, ["bmc", "a", "b"]);
        assert_eq!(topology.hosts().count(), 1);
        assert!(topology.device(&device("b")).is_some() && topology.device(&device("c")).is_none());
        assert!(topology.level(2).is_none());
    }
}
