//! The two clocks. Waiting and proving use the boot-time clock; people read the wall clock.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The units of a duration, the largest first, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A duration as the settings have it: a whole number with its unit (`250ms`, `5s`, `10m`, `2h`, `90d`). `None`: it is none, or
/// too long.
pub fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*millis).map(Duration::from_millis)
}

/// A duration as the settings would have it: a whole number of the largest unit that fits (`0s`, `500ms`, `90s`, `1h`,
/// `90d`).
pub fn written(duration: Duration) -> String {
    let millis = duration.as_millis();
    let unit = UNITS.iter().find(|(_, unit)| millis > 0 && millis.is_multiple_of(u128::from(*unit)));
    unit.map_or_else(|| "0s".to_owned(), |(name, unit)| format!("{}{name}", millis / u128::from(*unit)))
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

impl WallTime {
    /// Reads what [`Display`](fmt::Display) writes: RFC 3339, UTC, with up to nine digits of a second's fraction, of which
    /// three count. `None`: no such moment, or one before 1970.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |from: usize, to: usize| {
            let digits = text.get(from..to).filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?;
            digits.parse::<u64>().ok()
        };
        let stands = |at: usize, mark: u8| text.as_bytes().get(at) == Some(&mark);
        let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        if !marks.iter().all(|(at, mark)| stands(*at, *mark)) {
            return None;
        }
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let millis = match text.get(19..)? {
            "Z" => 0,
            fraction => {
                let digits = fraction.strip_prefix('.')?.strip_suffix('Z')?;
                if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|byte| byte.is_ascii_digit())
                {
                    return None;
                }
                format!("{digits:0<3}").get(..3)?.parse().ok()?
            }
        };
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let longest = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let longest = *longest.get(usize::try_from(month.checked_sub(1)?).ok()?)?;
        if year < 1970 || day == 0 || day > longest || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        // Civil date to days, the other way round than below.
        let y = if month <= 2 { year - 1 } else { year };
        let (era, yoe) = (y / 400, y % 400);
        let doy = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
        let days = era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468;
        Some(Self((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000 + millis))
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
    fn a_duration_is_a_whole_number_with_its_unit() {
        for (text, millis) in [
            ("250ms", 250),
            ("0s", 0),
            ("5s", 5_000),
            ("10m", 600_000),
            ("2h", 7_200_000),
            ("90d", 7_776_000_000),
        ] {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
            assert_eq!(written(Duration::from_millis(millis)), text);
        }
        for bad in [
            "",
            "5",
            "s",
            "-5s",
            "1.5s",
            "5 s",
            "5S",
            "5sec",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }

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

    #[test]
    fn what_is_written_is_read_again() {
        for days in 0..60_000 {
            let at = WallTime::from_millis(days * 86_400_000 + days * 997 % 86_400_000);
            assert_eq!(WallTime::parse(&at.to_string()), Some(at));
        }
        for (text, millis) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.5Z", 500),
            ("1970-01-01T00:00:01.000999999Z", 1_000),
        ] {
            assert_eq!(WallTime::parse(text).map(WallTime::millis), Some(millis), "{text}");
        }
        for text in [
            "",
            "1970-01-01",
            "1969-12-31T23:59:59Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:60Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.1234567890Z",
            "2026-01-01T00:00:00+00:00",
            "2026-01-01 00:00:00Z",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:0\u{e9}Z",
        ] {
            assert_eq!(WallTime::parse(text), None, "{text}");
        }
    }
}
