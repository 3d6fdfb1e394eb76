//! The two clocks. Waiting and proving use the boot-time clock; people read the wall clock.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration as the settings would have it: a whole number of the largest unit that fits (`0s`, `500ms`, `90s`, `1h`,
/// `90d`).
pub fn written(duration: Duration) -> String {
    const UNITS: [(&str, u128); 5] =
        [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let millis = duration.as_millis();
    let unit = UNITS.iter().find(|(_, unit)| millis > 0 && millis.is_multiple_of(*unit));
    unit.map_or_else(|| "0s".to_owned(), |(name, unit)| format!("{}{name}", millis / unit))
}

/// A moment on the boot-time clock (`CLOCK_BOOTTIME`): never set back, goes on while the machine sleeps,
/// means nothing on another machine or after a reboot. Therefore it is never stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootTime(Duration);

impl BootTime {
    /// The moment `since_boot` after the machine's boot.
    pub fn from_boot(since_boot: Duration) -> Self {
        Self(since_boot)
    }

    /// Time since the machine's boot.
    pub fn since_boot(self) -> Duration {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl std::ops::Add<Duration> for BootTime {
    type Output = Self;
    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }
}

/// A moment on the wall clock, in milliseconds since 1970-01-01 UTC. For people and for other machines;
/// no rule compares two of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WallTime(u64);

impl WallTime {
    /// From milliseconds since the Unix epoch.
    pub fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub fn millis(self) -> u64 {
        self.0
    }

    /// This moment plus `by`.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for WallTime {
    /// RFC 3339, UTC, milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, in_day) = (self.0 / 86_400_000, self.0 % 86_400_000);
        // Days to civil date, proleptic Gregorian calendar, eras of 400 years.
        let z = days + 719_468;
        let (era, doe) = (z / 146_097, z % 146_097);
        let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
        let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        let mp = (5 * doy + 2) / 153;
        let (day, month) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
        let year = yoe + era * 400 + u64::from(month <= 2);
        let (h, m, s) = (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1_000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{:03}Z", in_day % 1_000)
    }
}

/// The clocks, passed in from the first day so that a test can own time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Now, on the boot-time clock.
    fn boot(&self) -> BootTime;
    /// Now, on the wall clock.
    fn wall(&self) -> WallTime;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_reads_as_rfc_3339() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_250_372_042, "2026-11-21T08:39:32.042Z"),
        ] {
            assert_eq!(WallTime::from_millis(millis).to_string(), text);
        }
    }
}
