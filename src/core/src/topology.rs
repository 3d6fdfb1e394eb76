//! The levels of a node: what must hold together, and what comes next when it does not.

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
    /// The same device twice.
    #[error("device {0} stands in the topology twice")]
    Twice(DeviceId),
}

/// The levels of a node, tried in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    levels: Vec<Level>,
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
                Some(_) => {}
            }
            for device in &level.devices {
                if !seen.insert(device.id.clone()) {
                    faults.push(TopologyFault::Twice(device.id.clone()));
                }
            }
        }
        if faults.is_empty() { Ok(Self { levels }) } else { Err(faults) }
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
    fn devices_come_level_by_level_and_hosts_are_told_apart() {
        let topology = crate::support::topology(&[&[host("bmc")], &[supply("a"), supply("b")]]);
        let names: Vec<_> = topology.devices().map(|spec| spec.id.as_str()).collect();
        assert_eq!(names, ["bmc", "a", "b"]);
        assert_eq!(topology.hosts().count(), 1);
        assert!(topology.device(&device("b")).is_some() && topology.device(&device("c")).is_none());
        assert!(topology.level(2).is_none());
    }
}
