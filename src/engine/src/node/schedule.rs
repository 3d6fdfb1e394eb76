//! When a node's devices are checked: spread over the interval by the node's name, and rarely where a device refuses us.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::ids::DeviceId;
use picket_core::time::BootTime;
use picket_driver::ErrorKind;

/// The schedule of one node.
#[derive(Debug)]
pub(super) struct Schedule {
    /// Zero: nothing is checked by itself.
    every: Duration,
    /// The longest pause between two logins that a device refuses, where checks are not rarer.
    longest: Duration,
    /// The node's own place within the interval.
    place: Duration,
    /// Devices that refused our credentials: how often in a row, and when they are asked again.
    refused: BTreeMap<DeviceId, (u32, BootTime)>,
}

impl Schedule {
    pub(super) fn new(every: Duration, longest: Duration, node: &str) -> Self {
        Self { every, longest, place: place(every, node), refused: BTreeMap::new() }
    }

    /// The next check after one at `last`: at the node's place, and not sooner than after half of an interval.
    pub(super) fn next(&self, last: BootTime) -> Option<BootTime> {
        if self.every.is_zero() {
            return None;
        }
        let (every, place) = (self.every.as_nanos(), self.place.as_nanos());
        let soonest = (last + self.every / 2).since_boot().as_nanos();
        let rounds = (soonest.saturating_sub(place)).div_ceil(every);
        let at = u64::try_from(rounds * every + place).unwrap_or(u64::MAX);
        Some(BootTime::from_boot(Duration::from_nanos(at)))
    }

    /// Notes what a check of a device came to.
    pub(super) fn note(&mut self, device: &DeviceId, fault: Option<ErrorKind>, now: BootTime) {
        if !matches!(fault, Some(ErrorKind::Authentication | ErrorKind::Forbidden)) {
            self.refused.remove(device);
            return;
        }
        let times = self.refused.get(device).map_or(1, |(times, _)| times.saturating_add(1));
        let pause = (self.every * 2_u32.pow(times.min(12))).min(self.longest.max(self.every));
        self.refused.insert(device.clone(), (times, now + pause));
    }

    /// Whether the device is to be asked by itself: one that refused us is let alone for a while.
    pub(super) fn asks(&self, device: &DeviceId, now: BootTime) -> bool {
        self.refused.get(device).is_none_or(|(_, again)| now >= *again)
    }
}

/// A place within the interval that follows from the name alone, so that a restart moves nobody. FNV-1a, and the last step
/// of SplitMix64, without which names that differ in their last digit stand side by side.
fn place(every: Duration, node: &str) -> Duration {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in node.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    let within = (u128::from(hash) * every.as_nanos()) >> 64;
    Duration::from_nanos(u64::try_from(within).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(300);
    const LONGEST: Duration = Duration::from_secs(3_600);

    #[test]
    fn ten_thousand_nodes_do_not_burst() {
        let mut seconds = vec![0; 300];
        for node in 0..10_000 {
            let at = place(EVERY, &format!("r1n{node:05}"));
            assert!(at < EVERY);
            seconds[usize::try_from(at.as_secs()).expect("small")] += 1;
        }
        let (least, most) = (seconds.iter().min(), seconds.iter().max());
        assert!(least > Some(&10) && most < Some(&70), "{least:?} to {most:?} in a second, 33 on average");
    }

    #[test]
    fn a_check_comes_at_the_nodes_place_and_never_twice_within_half_an_interval() {
        for node in ["n1", "n2", "rack-7-node-31"] {
            let schedule = Schedule::new(EVERY, LONGEST, node);
            let mut last = BootTime::from_boot(Duration::from_millis(123_456_789));
            for round in 0..5 {
                let next = schedule.next(last).expect("scheduled");
                let pause = next.since(last);
                assert!(pause >= EVERY / 2 && pause < EVERY * 3 / 2, "{pause:?}");
                assert!(round == 0 || pause == EVERY, "{pause:?}");
                assert_eq!(next.since_boot().as_nanos() % EVERY.as_nanos(), schedule.place.as_nanos());
                last = next;
            }
        }
        assert_eq!(Schedule::new(Duration::ZERO, LONGEST, "n1").next(BootTime::default()), None);
    }

    #[test]
    fn a_device_that_refuses_us_is_asked_more_and_more_rarely() {
        let mut schedule = Schedule::new(EVERY, LONGEST, "n1");
        let bmc = DeviceId::new("bmc").expect("a good name");
        let mut now = BootTime::default();
        let mut pauses = Vec::new();
        for _ in 0..6 {
            schedule.note(&bmc, Some(ErrorKind::Authentication), now);
            let from = now;
            while !schedule.asks(&bmc, now) {
                now = now + EVERY;
            }
            pauses.push(now.since(from).as_secs() / 60);
        }
        assert_eq!(pauses, [10, 20, 40, 60, 60, 60]);
        schedule.note(&bmc, Some(ErrorKind::TimedOut), now);
        assert!(schedule.asks(&bmc, now), "silence is no refusal");
    }
}
