//! The lives of a manager: whether it restarted, by its `LastResetTime` (DSP2046, Manager).
//!
//! # Invariants
//!
//! - Two looks are of one life only where the time of the last reset is the same, letter for letter (S2).
//!   Shown by `a_life_goes_on_while_nothing_contradicts_it`.
//! - The manager's present time must not contradict that: it has gone on by about as much as ours. A
//!   manager without a battery starts in the same second each time. Shown by
//!   `a_manager_whose_time_stood_still_while_ours_went_on_began_again`.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::answer::tame;

/// No manager that is fenced with was last reset before: its clock was not set. 2016-01-01.
const CLOCK_SET: i64 = 1_451_606_400;

/// By how much less than ours a manager's time may have gone on: some say a `DateTime` that they do not renew each second, and clocks
/// are set right. One that restarted lacks the whole of its life before, which is mostly longer.
const SLACK: Duration = Duration::from_secs(60);

/// By how much both times together may be rounded.
const ROUNDING: Duration = Duration::from_secs(2);

/// What one manager says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerLife {
    reset: String,
    /// Seconds from the reset to its present, by its own clock.
    uptime: Option<i64>,
}

impl ManagerLife {
    /// Reads it from a Manager resource; `None`: it does not say it.
    ///
    /// # Errors
    /// Words: what it says shows no restart.
    pub fn read(manager: &Map<String, Value>) -> Result<Option<Self>, String> {
        let reset = match manager.get("LastResetTime") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(reset)) => reset,
            Some(odd) => {
                return Err(format!("the manager's LastResetTime {} is no time", tame(&odd.to_string())));
            }
        };
        let Some(at) = seconds(reset) else {
            return Err(format!("the manager's LastResetTime {:?} is no time", tame(reset)));
        };
        if at < CLOCK_SET {
            return Err(format!(
                "the manager's LastResetTime is {:?}: its clock is not set, and the next restart may say the same; \
                 set its clock (NTP)",
                tame(reset)
            ));
        }
        let now = manager.get("DateTime").and_then(Value::as_str).and_then(seconds);
        Ok(Some(Self { reset: reset.clone(), uptime: now.map(|now| now - at) }))
    }

    /// When it began, in the manager's words.
    pub fn reset(&self) -> String {
        tame(&self.reset)
    }

    /// For how long it has lasted, in whole days by its own clock; `None`: it does not say its time.
    pub fn days(&self) -> Option<i64> {
        Some(self.uptime? / 86_400)
    }

    /// Whether `later`, so long after, is of the same life.
    pub fn goes_on_in(&self, later: &ManagerLife, elapsed: Duration) -> bool {
        self.reset == later.reset && self.is_up_still_in(later, elapsed, SLACK) != Some(false)
    }

    /// Whether `later`, so long after, says another reset, although there was none between: by the manager's own time it went on.
    pub fn drifts_to(&self, later: &ManagerLife, elapsed: Duration) -> bool {
        self.reset != later.reset && self.is_up_still_in(later, elapsed, ROUNDING) == Some(true)
    }

    /// Whether its uptime grew by as much as our time, less `slack`; `None`: it does not say its time.
    fn is_up_still_in(&self, later: &ManagerLife, elapsed: Duration, slack: Duration) -> Option<bool> {
        let grown = i64::try_from(elapsed.saturating_sub(slack).as_secs()).unwrap_or(i64::MAX);
        let (before, after) = self.uptime.zip(later.uptime)?;
        Some(after >= before.saturating_add(grown))
    }
}

/// A time as RFC 3339 writes it (DSP0266, "Date-Time values"), as seconds since 1970.
fn seconds(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let in_range =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    let rest = text.get(19..)?;
    let zone = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let offset = match zone.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), hours @ ..] => {
            let [a, b, b':', c, d] = hours else { return None };
            let [a, b, c, d] = [a, b, c, d].map(|digit| char::from(*digit).to_digit(10).map(i64::from));
            let east = (a? * 10 + b?) * 3_600 + (c? * 10 + d?) * 60;
            if *sign == b'+' { east } else { -east }
        }
        _ => return None,
    };
    // Days since 1970 of the proleptic Gregorian calendar, with years that begin in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468;
    in_range.then_some(days * 86_400 + hour * 3_600 + minute * 60 + second - offset)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn life(reset: Value, now: Value) -> Result<ManagerLife, String> {
        let manager = json!({ "LastResetTime": reset, "DateTime": now });
        ManagerLife::read(manager.as_object().expect("an object")).map(|said| said.expect("it says it"))
    }

    #[test]
    fn times_are_seconds() {
        for (text, at) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2026-11-22T01:35:00Z", Some(1_795_311_300)),
            ("2026-11-22T02:35:00.123+01:00", Some(1_795_311_300)),
            ("2000-02-29T00:00:00-00:30", Some(951_782_400 + 1_800)),
            ("2026-11-22T01:35:00", None),
            ("2026-13-22T01:35:00Z", None),
            ("2026-11-22T01:35:00+9223372036854775807:00", None),
            ("2026-11-22T01:35:00+-1:00", None),
            ("yesterday", None),
            ("", None),
            ("２０２６-11-22T01:35:00Z", None),
        ] {
            assert_eq!(seconds(text), at, "{text}");
        }
    }

    #[test]
    fn a_life_goes_on_while_nothing_contradicts_it() {
        let begun = "2026-11-22T01:00:00Z";
        let first = life(json!(begun), json!("2026-11-22T01:10:00Z")).expect("a life");
        let same = |reset: &str, now: Value| {
            first.goes_on_in(&life(json!(reset), now).expect("a life"), Duration::ZERO)
        };
        assert!(same(begun, json!("2026-11-22T01:10:00Z")));
        assert!(same(begun, json!("2026-11-22T02:11:00+01:00")));
        assert!(same(begun, Value::Null), "it need not say its time");
        assert!(!same(begun, json!("2026-11-22T01:09:59Z")), "it started again in the same second");
        assert!(!same("2026-11-22T01:00:01Z", json!("2026-11-22T01:20:00Z")));
        assert!(!same("2026-11-22T02:00:00+01:00", json!("2026-11-22T01:20:00Z")), "letter for letter");
    }

    #[test]
    fn a_manager_whose_time_stood_still_while_ours_went_on_began_again() {
        let begun = json!("2026-11-22T01:00:00Z");
        let after = |now: &str| life(begun.clone(), json!(now)).expect("a life");
        let (first, elapsed) = (after("2026-11-22T01:00:40Z"), Duration::from_secs(300));
        for (now, goes_on) in [
            ("2026-11-22T01:05:40Z", true),
            ("2026-11-22T01:04:40Z", true),
            ("2026-11-22T01:04:39Z", false),
            // It restarted in the same second, by its own clock, and was not asked before it was up for longer than the last time.
            ("2026-11-22T01:01:10Z", false),
            // Ours stood still.
            ("2026-11-22T09:00:00Z", true),
        ] {
            assert_eq!(first.goes_on_in(&after(now), elapsed), goes_on, "{now}");
        }
        assert!(!first.goes_on_in(&after("2026-11-22T01:05:40Z"), Duration::MAX));
    }

    #[test]
    fn what_shows_no_restart_is_refused() {
        for (reset, says) in [
            (json!("never"), "no time"),
            (json!("1970-01-01T00:00:07Z"), "clock is not set"),
            (json!(17), "no time"),
        ] {
            let why = life(reset.clone(), json!(null)).expect_err("no life");
            assert!(why.contains(says), "{reset}: {why}");
        }
        for silent in [json!({}), json!({ "LastResetTime": null })] {
            assert_eq!(ManagerLife::read(silent.as_object().expect("an object")), Ok(None));
        }
    }

    #[test]
    fn another_reset_that_was_none_is_a_drift() {
        let drifts = |(from, its_time): (&str, Value), (to, later): (&str, Value), elapsed| {
            let (first, second) = (life(json!(from), its_time), life(json!(to), later));
            first.expect("a life").drifts_to(&second.expect("a life"), Duration::from_secs(elapsed))
        };
        let first = || ("2026-11-22T01:00:00Z", json!("2026-11-22T01:30:00Z"));
        assert!(drifts(first(), ("2026-11-22T01:00:01Z", json!("2026-11-22T01:31:00Z")), 60));
        let young = ("2026-11-22T01:00:00Z", json!("2026-11-22T01:00:05Z"));
        assert!(
            !drifts(young, ("2026-11-22T01:00:08Z", json!("2026-11-22T01:01:05Z")), 60),
            "it restarted soon"
        );
        assert!(!drifts(first(), ("2026-11-22T01:00:00Z", json!("2026-11-22T01:31:00Z")), 60), "the same");
        // Its clock was set right, and it counts back from there.
        assert!(drifts(first(), ("2026-11-22T02:00:00Z", json!("2026-11-22T02:31:00Z")), 60));
        assert!(!drifts(first(), ("2026-11-22T01:30:20Z", json!("2026-11-22T01:31:00Z")), 60), "a restart");
        assert!(!drifts(first(), ("2026-11-22T01:30:20Z", Value::Null), 60), "nobody knows");
    }
}
