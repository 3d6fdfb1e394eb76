//! What a check explores, and its bounds.

use std::time::Duration;

use super::weaken::Weak;
use super::world::{Budget, DEVICES, VOLUMES};
use crate::device::{DeviceSpec, MaxInFlight};
use crate::ids::{FenceId, Generation};
use crate::rules::Rules;
use crate::support;
use crate::topology::Topology;

/// What a check explores: the shape of things, and its bounds.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) name: &'static str,
    /// Host devices.
    pub(super) hosts: usize,
    /// Each of them is a level of its own.
    pub(super) apart: bool,
    /// Fences are reboots: the node is to come back once its volume is let go.
    pub(super) reboots: bool,
    /// It has two volumes, each a part of its release; else one.
    pub(super) parts: bool,
    /// Its release sets something up, which lets the volume go for as long as it stands.
    pub(super) stands: bool,
    /// Which of them know a hold.
    pub(super) holds: [bool; DEVICES],
    /// They know no word for "it is off already": they take an off plainly then, and refuse it when they are told again.
    pub(super) refuses: bool,
    /// The machine to which the first one's address may lead is on; nobody fences it.
    pub(super) other_is_on: bool,
    /// Messages under way at once, at most.
    pub(super) most: usize,
    pub(super) budget: Budget,
    pub(super) weak: Weak,
    /// How long a permit, and a lease, last unless they are renewed, in ticks.
    pub(super) permit: u64,
    pub(super) lease: u64,
    /// How long a message may live on the far side (S8), in ticks.
    pub(super) life: u64,
    /// How long somebody's power cycle takes at most.
    pub(super) cycle: u64,
    pub(super) rules: Rules,
    pub(super) topology: Topology,
}

/// Levels of host devices: a tick is a second, and every time as short as the rules go on to tell it from others.
fn topology(hosts: usize, apart: bool, life: u64, cycle: u64) -> Topology {
    let second = Duration::from_secs(1);
    let bound = Some(Duration::from_secs(life));
    let spec = |name| DeviceSpec {
        longest_cycle: Duration::from_secs(cycle),
        call: second,
        dwell: second,
        max_in_flight: MaxInFlight { off: bound, on: bound },
        ..support::host(name)
    };
    let level: Vec<DeviceSpec> = ["a", "b"].into_iter().take(hosts).map(spec).collect();
    let levels: Vec<&[DeviceSpec]> = level.chunks(if apart { 1 } else { hosts }).collect();
    support::topology(&levels)
}

impl Setup {
    pub(super) fn new(name: &'static str, hosts: usize, budget: Budget) -> Self {
        let second = Duration::from_secs(1);
        let rules = Rules {
            contradiction: second * 3,
            receipt_life: second,
            receipt_margin: second,
            ..Rules::default()
        };
        // A late message outlives a confirmation, also one by the long window.
        let (cycle, life) = (1, 4);
        let topology = topology(hosts, false, life, cycle);
        let (holds, weak) = ([false; DEVICES], Weak::Nothing);
        Self {
            name,
            hosts,
            apart: false,
            reboots: false,
            parts: false,
            stands: false,
            holds,
            refuses: false,
            other_is_on: true,
            most: 2,
            budget,
            weak,
            permit: 1,
            lease: 2,
            life,
            cycle,
            rules,
            topology,
        }
    }

    /// The longest power cycle that anybody may have under way, as the devices' settings say, in ticks.
    pub(super) fn with_cycle(self, cycle: u64) -> Self {
        let topology = topology(self.hosts, self.apart, self.life, cycle);
        Self { cycle, topology, ..self }
    }

    /// Each device is a level of its own.
    pub(super) fn apart(self) -> Self {
        let topology = topology(self.hosts, true, self.life, self.cycle);
        Self { apart: true, topology, ..self }
    }

    /// The volumes that the node has while it runs.
    pub(super) fn volumes(&self) -> [bool; VOLUMES] {
        [true, self.parts]
    }

    pub(super) fn without(self, weak: Weak) -> Self {
        Self { weak, ..self }
    }

    pub(super) fn bounds(&self) -> String {
        let levels = if self.apart { "levels" } else { "host devices" };
        let (hosts, most, left) = (self.hosts, self.most, self.budget.words());
        let times =
            format!("permit {}, lease {}, life {}, cycle {}", self.permit, self.lease, self.life, self.cycle);
        let volumes = match (self.parts, self.stands) {
            (true, _) => "2 volumes, ",
            (false, true) => "a volume that is let go while something stands, ",
            (false, false) => "",
        };
        format!("{hosts} {levels}, {volumes}{most} messages under way, {times}; {left}")
    }

    pub(super) fn fence_id(&self, generation: Generation) -> FenceId {
        support::fence_id(u8::try_from(generation.0 % 200).unwrap_or(0) + 1)
    }
}
