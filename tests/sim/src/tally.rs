//! How much of what happened: whoever reads that no law was broken sees that there was something to break.

use std::time::Duration;

use picket_core::parent::child_of;
use picket_core::record::Phase;
use picket_driver_sim::Verb;

use crate::trace::{Blow, Control, Event, What};

/// Counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Everything.
    pub events: u64,
    /// Leaderships that were won.
    pub terms: u64,
    /// Processes that began.
    pub processes: u64,
    /// Times that a process was stopped for a while.
    pub stops: u64,
    /// Of these with the whole machine, and its clocks.
    pub machines: u64,
    /// Processes that were killed, or died at a point or with their machine.
    pub killed: u64,
    /// Processes that were told to end.
    pub ended: u64,
    /// Times that the store lost its quorum.
    pub no_quorum: u64,
    /// Times that a network to the store went bad.
    pub to_store: u64,
    /// Times that a network to the devices went bad.
    pub to_devices: u64,
    /// Times that no gateway reached any device for longer than a session lives.
    pub dark: u64,
    /// Faults of devices, and what happened to machines.
    pub at_devices: u64,
    /// Devices that restarted under an off that they took, and said Off of a machine that ran.
    pub restarts: u64,
    /// Jumps of wall clocks.
    pub jumps: u64,
    /// Records that were stored.
    pub writes: u64,
    /// Fences that were confirmed, by devices or a person.
    pub confirmed: u64,
    /// Nodes that were brought back.
    pub back: u64,
    /// Nodes that came to wait for a person.
    pub needs_operator: u64,
    /// Offs that devices carried out.
    pub offs: u64,
    /// Ons that devices carried out.
    pub ons: u64,
    /// Power commands that were thrown away by a device, because their session was over.
    pub thrown_away: u64,
    /// Commands that left only after their process had been stopped, when another one may have led.
    pub stale_sends: u64,
    /// Of these, ons.
    pub stale_ons: u64,
    /// Attempts to release.
    pub attempts: u64,
    /// Volumes that were let go.
    pub released: u64,
    /// Those that went long after their permit.
    pub late_releases: u64,
    /// Receipts that were issued.
    pub receipts: u64,
    /// Keys that were bound.
    pub keys: u64,
    /// Machines that were held for one that runs on them.
    pub for_children: u64,
}

impl Tally {
    pub(crate) fn take(&mut self, event: &Event) {
        self.events += 1;
        match &event.what {
            What::Won { .. } => self.terms += 1,
            What::Began { .. } => self.processes += 1,
            What::Stopped { machine, .. } => {
                self.stops += 1;
                self.machines += u64::from(*machine);
            }
            What::Jumped { .. } => self.jumps += 1,
            What::Struck(blow) => {
                *match blow {
                    Blow::Killed => &mut self.killed,
                    Blow::Ended => &mut self.ended,
                    Blow::NoQuorum => &mut self.no_quorum,
                    Blow::ToStore => &mut self.to_store,
                    Blow::ToDevices => &mut self.to_devices,
                    Blow::Dark => &mut self.dark,
                    Blow::Restarted => &mut self.restarts,
                    Blow::AtDevice => &mut self.at_devices,
                } += 1;
            }
            What::Stored { record, was, .. } => {
                self.writes += 1;
                let moved = record.phase.label() != was.phase.label();
                let proven = |record: &picket_core::record::NodeRecord| {
                    record.fence.as_ref().is_some_and(|fence| fence.evidence.is_some())
                };
                self.confirmed += u64::from(proven(record) && !proven(was));
                self.back += u64::from(moved && record.phase == Phase::Normal);
                self.needs_operator += u64::from(moved && matches!(record.phase, Phase::NeedsOperator(_)));
                let known = |id| was.receipts.iter().any(|known| known.id == id);
                self.receipts += record.receipts.iter().filter(|issued| !known(issued.id)).count() as u64;
                let placed = record.holds.keys().filter(|name| !was.holds.contains_key(*name));
                self.for_children += placed.filter(|name| child_of(name).is_some()).count() as u64;
            }
            What::Bound { .. } => self.keys += 1,
            What::Sent { control, after, .. } if !after.is_zero() => {
                self.stale_sends += 1;
                self.stale_ons += u64::from(*control == Control::Power(Verb::On));
            }
            What::Heard(heard) if !heard.executed => self.thrown_away += 1,
            What::Heard(heard) if heard.verb == Verb::On => self.ons += 1,
            What::Heard(_) => self.offs += 1,
            What::Attempt { .. } => self.attempts += 1,
            What::Released { permitted_at, .. } => {
                self.released += 1;
                self.late_releases += u64::from(event.at.since(*permitted_at) > Duration::from_secs(5));
            }
            _ => {}
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (mut sum, other) = (self, other.fields());
        for ((_, into), (_, from)) in sum.fields_mut().into_iter().zip(other) {
            *into += from;
        }
        sum
    }

    /// All of them, with their names.
    pub fn fields(mut self) -> Vec<(&'static str, u64)> {
        self.fields_mut().into_iter().map(|(name, count)| (name, *count)).collect()
    }

    fn fields_mut(&mut self) -> [(&'static str, &mut u64); 29] {
        [
            ("events", &mut self.events),
            ("terms", &mut self.terms),
            ("processes", &mut self.processes),
            ("stops", &mut self.stops),
            ("whole machines", &mut self.machines),
            ("killed", &mut self.killed),
            ("told to end", &mut self.ended),
            ("quorums lost", &mut self.no_quorum),
            ("bad networks to the store", &mut self.to_store),
            ("to devices", &mut self.to_devices),
            ("no device reached", &mut self.dark),
            ("restarts under an off", &mut self.restarts),
            ("troubles at devices", &mut self.at_devices),
            ("clock jumps", &mut self.jumps),
            ("writes", &mut self.writes),
            ("confirmed", &mut self.confirmed),
            ("back", &mut self.back),
            ("needs operator", &mut self.needs_operator),
            ("offs", &mut self.offs),
            ("ons", &mut self.ons),
            ("thrown away", &mut self.thrown_away),
            ("stale sends", &mut self.stale_sends),
            ("stale ons", &mut self.stale_ons),
            ("attempts", &mut self.attempts),
            ("released", &mut self.released),
            ("late releases", &mut self.late_releases),
            ("receipts", &mut self.receipts),
            ("keys", &mut self.keys),
            ("held for a child", &mut self.for_children),
        ]
    }
}
