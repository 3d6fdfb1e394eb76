//! What all releasers have: how long they may take.

use std::time::Duration;

use picket_reach::Settings;

/// One attempt's time, unless the settings say otherwise.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(15);
const DEADLINE: Duration = Duration::from_secs(10 * 60);
const SETTLE: Duration = Duration::from_secs(2);

/// How long a releaser may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// `deadline`: how long the whole release may take. Default 10 min.
    pub deadline: Duration,
    /// `settle`: from the confirmed Off to the first attempt. Default 2 s.
    pub settle: Duration,
    /// `attempt`: how long one attempt may take. Default 15 s.
    pub attempt: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { deadline: DEADLINE, settle: SETTLE, attempt: ATTEMPT }
    }
}

impl Pace {
    /// Reads it; one attempt takes at most `longest`.
    pub fn read(settings: &mut Settings<'_>, longest: Duration) -> Self {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let second = Duration::from_secs(1);
        let deadline = settings.duration("deadline", 10 * second..=minutes(24 * 60));
        let settle = settings.duration("settle", Duration::ZERO..=minutes(10));
        let attempt = settings.duration("attempt", second..=longest);
        let pace = Self {
            deadline: deadline.unwrap_or(DEADLINE),
            settle: settle.unwrap_or(SETTLE),
            attempt: attempt.unwrap_or(ATTEMPT),
        };
        if pace.attempt > pace.deadline {
            let word = |written: Option<Duration>| if written.is_some() { "" } else { " (the default)" };
            let message = format!(
                "is {:?}{}, longer than the deadline of the whole release, {:?}{}",
                pace.attempt,
                word(attempt),
                pace.deadline,
                word(deadline)
            );
            settings.fault("attempt", message);
        }
        pace
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_fault_is_told_with_what_would_be_right() {
        let table = json!({"deadline": "1s", "settle": 2, "attempt": "soon", "colour": "red"});
        let mut settings = Settings::new(table.as_object().expect("a table"));
        let pace = Pace::read(&mut settings, Duration::from_secs(60));
        let faults = settings.finish(Some(pace)).expect_err("all of it is wrong");
        let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
        assert_eq!(keys, ["deadline", "settle", "attempt", "colour"]);
        assert!(faults[0].message.contains("\"10s\" to \"1d\""), "{faults:?}");
        assert!(faults[3].message.contains("known are deadline, settle, attempt"), "{faults:?}");
    }

    #[test]
    fn an_attempt_does_not_outlive_its_release() {
        let table = json!({"deadline": "10s", "attempt": "20s"});
        let mut settings = Settings::new(table.as_object().expect("a table"));
        let pace = Pace::read(&mut settings, Duration::from_secs(60));
        let faults = settings.finish(Some(pace)).expect_err("longer");
        assert_eq!(faults[0].key, "attempt");
        assert_eq!(faults[0].message, "is 20s, longer than the deadline of the whole release, 10s");

        let table = json!({"deadline": "10s"});
        let mut settings = Settings::new(table.as_object().expect("a table"));
        let pace = Pace::read(&mut settings, Duration::from_secs(60));
        let faults = settings.finish(Some(pace)).expect_err("longer");
        assert!(faults[0].message.starts_with("is 15s (the default), longer than"), "{faults:?}");
    }
}
