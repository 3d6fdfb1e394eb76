//! How old a stamp of the wall clock is, also where that clock jumped since this process began.
//!
//! A stamp that another process wrote by another clock is read as if ours had written it.
//!
//! # Invariants
//!
//! - Of the ages that a stamp may have, the least counts: a limit bars, and a pause stands, for too long
//!   rather than too short (S14). Shown by
//!   `a_stamp_that_two_readings_may_mean_is_the_younger_and_one_to_come_was_just_now`,
//!   `a_clock_jump_ends_no_cool_down_no_window_and_no_pause_and_lengthens_none`.

use std::time::Duration;

use picket_core::time::{BootTime, WallTime};

/// Less than this is no jump: a clock that is kept right drifts.
const JUMP: i128 = 1_000;
/// So many jumps are remembered.
const MOST: usize = 64;

/// What the wall clock has said of boot times.
#[derive(Clone, Debug, Default)]
pub(super) struct Calendar(Vec<Span>);

/// For a while the wall clock was ahead of the boot-time clock by so much.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// In milliseconds.
    ahead: i128,
    /// `None`: it still is.
    until: Option<BootTime>,
}

fn millis(time: BootTime) -> i128 {
    i128::try_from(time.since_boot().as_millis()).unwrap_or(i128::MAX)
}

fn moment(millis: i128) -> u64 {
    u64::try_from(millis.max(0)).unwrap_or(u64::MAX)
}

impl Calendar {
    /// What both clocks say now.
    pub(super) fn look(&mut self, now: BootTime, wall: WallTime) {
        let ahead = i128::from(wall.millis()) - millis(now);
        if let Some(last) = self.0.last_mut() {
            if (last.ahead - ahead).abs() < JUMP {
                return;
            }
            last.until = Some(now);
        }
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(Span { ahead, until: None });
    }

    /// How old a stamp is, at the least. What is yet to come by every reading was written just now.
    pub(super) fn age(&self, stamp: WallTime, now: BootTime) -> Duration {
        let meant = |span: &Span| {
            let at = i128::from(stamp.millis()) - span.ahead;
            (at <= millis(span.until.unwrap_or(now))).then(|| millis(now) - at)
        };
        let least = self.0.iter().filter_map(meant).min();
        Duration::from_millis(moment(least.unwrap_or_default()))
    }

    /// When that was on our own clock; before the machine's boot it was at the boot.
    pub(super) fn when(&self, stamp: WallTime, now: BootTime) -> BootTime {
        BootTime::from_boot(now.since_boot().saturating_sub(self.age(stamp, now)))
    }

    /// What the wall clock says now of a moment of our own clock.
    pub(super) fn stamp(&self, at: BootTime, now: BootTime) -> WallTime {
        let ahead = self.0.last().map(|span| span.ahead).unwrap_or_default();
        WallTime::from_millis(moment(millis(at.min(now)) + ahead))
    }

    /// What the clock that wrote the stamp would say now.
    pub(super) fn now_as_of(&self, stamp: WallTime, now: BootTime) -> WallTime {
        stamp.after(self.age(stamp, now))
    }

    /// The earliest stamp that something may have which is no older than that.
    pub(super) fn earliest(&self, age: Duration, now: BootTime) -> WallTime {
        let age = i128::try_from(age.as_millis()).unwrap_or(i128::MAX);
        let stamps = self.0.iter().map(|span| moment(millis(now).saturating_sub(age) + span.ahead));
        WallTime::from_millis(stamps.min().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(seconds: u64) -> BootTime {
        BootTime::from_boot(Duration::from_secs(seconds))
    }

    fn wall(seconds: u64) -> WallTime {
        WallTime::from_millis(seconds * 1_000)
    }

    /// At 100 s after the boot the clock goes from 1100 to `to`; asked at 200 s.
    fn jumped(to: u64) -> Calendar {
        let mut calendar = Calendar::default();
        calendar.look(boot(50), wall(1_050));
        calendar.look(boot(99), wall(1_099));
        calendar.look(boot(100), wall(to));
        calendar.look(boot(200), wall(to + 100));
        calendar
    }

    #[test]
    fn a_stamp_from_before_a_jump_is_as_old_as_it_is() {
        for to in [9_000, 300] {
            let calendar = jumped(to);
            assert_eq!(calendar.when(wall(1_060), boot(200)), boot(60), "{to}");
            assert_eq!(calendar.now_as_of(wall(1_060), boot(200)), wall(1_200), "{to}");
            assert_eq!(calendar.when(wall(to + 20), boot(200)), boot(120), "{to}");
            assert_eq!(
                calendar.earliest(Duration::from_secs(140), boot(200)),
                wall(1_060.min(to - 40)),
                "{to}"
            );
        }
    }

    #[test]
    fn a_stamp_that_two_readings_may_mean_is_the_younger_and_one_to_come_was_just_now() {
        let calendar = jumped(1_050);
        assert_eq!(calendar.when(wall(1_080), boot(200)), boot(130));
        assert_eq!(calendar.when(wall(9_999), boot(200)), boot(200));
        assert_eq!(Calendar::default().when(wall(1_000), boot(200)), boot(200));
    }

    #[test]
    fn a_stamp_from_before_the_boot_is_of_the_boot() {
        let calendar = jumped(9_000);
        assert_eq!(calendar.when(wall(10), boot(200)), boot(0));
        assert_eq!(calendar.age(wall(10), boot(200)), Duration::from_secs(1_190));
    }

    #[test]
    fn jumps_without_end_take_no_memory_without_end() {
        let mut calendar = Calendar::default();
        (0..1_000).for_each(|second| calendar.look(boot(second), wall(second * 10)));
        assert_eq!(calendar.0.len(), MOST);
        assert_eq!(calendar.when(wall(9_990), boot(1_000)), boot(999));
    }
}
