//! What of a judge decides how it goes on, for a model checker that compares states.

use std::time::Duration;

use super::Judge;
#[cfg(test)]
use crate::ids::DeviceId;
use crate::time::BootTime;

/// The bytes of a shape, as they are put together.
#[derive(Debug)]
pub(super) struct Shape {
    bytes: Vec<u8>,
    now: BootTime,
    oldest: Duration,
}

impl Shape {
    pub(super) fn put(&mut self, value: u64) {
        // A larger number is as good as that: none of the numbers that are told apart comes near.
        self.bytes.push(u8::try_from(value).unwrap_or(u8::MAX));
    }

    pub(super) fn flag(&mut self, value: bool) {
        self.put(u64::from(value));
    }

    pub(super) fn number(&mut self, value: Option<u64>) {
        self.put(value.map_or(0, |value| value + 1));
    }

    /// How long ago a moment was.
    pub(super) fn age(&mut self, at: BootTime) {
        self.age_up_to(at, Duration::ZERO);
    }

    /// The same, told apart up to `least` at least.
    pub(super) fn age_up_to(&mut self, at: BootTime, least: Duration) {
        self.put(self.now.since(at).min(least.max(self.oldest)).as_secs());
    }

    /// Whether there is a moment, and how long ago it was.
    pub(super) fn ages(&mut self, at: Option<BootTime>) {
        self.flag(at.is_some());
        at.into_iter().for_each(|at| self.age(at));
    }
}

impl Judge {
    /// What of the judge decides how it goes on from `now`, as bytes. Two judges of one fence with equal bytes answer
    /// whatever comes in the same way.
    ///
    /// A moment counts as its age, in whole seconds, and all ages from `oldest` on are one. The caller gives an `oldest`
    /// that is longer than every deadline of the fence: an off's life, the long window, three dwells and a call. Where
    /// moments lie between two seconds, judges are called equal that are not.
    ///
    /// Left out is what one fence never changes (node, topology, rules), what only people read, and what no model plays:
    /// other identities, grades that a reading lowered, holds that are found again after a loss.
    pub fn shape(&self, now: BootTime, oldest: Duration) -> Vec<u8> {
        let mut to = Shape { bytes: Vec::with_capacity(64), now, oldest };
        let Self {
            node: _,
            fence: _,
            generation,
            term,
            round,
            min_grade: _,
            topology: _,
            level,
            hold_up: _,
            contradiction: _,
            traces,
            first_host_off,
            by_name: _,
        } = self;
        to.put(generation.0);
        to.put(term.0);
        to.put(u64::from(*round));
        to.put(*level as u64);
        to.ages(*first_host_off);
        for trace in traces.values() {
            trace.shape(&mut to, *first_host_off);
        }
        to.bytes
    }

    /// Whether the device took our off in its present life with a plain yes, and that off stands.
    #[cfg(test)]
    pub(crate) fn was_taken_plainly(&self, device: &DeviceId) -> bool {
        self.traces.get(device).is_some_and(|trace| trace.off.is_some_and(|off| off.is_acknowledged))
    }
}
