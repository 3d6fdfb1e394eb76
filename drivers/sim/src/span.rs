//! Durations as people write them, for what is stored and read: `250ms`, `5s`, `2m`, `1h`.

use std::time::Duration;

use picket_core::time::duration;
use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Writes whole milliseconds.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{}ms", span.as_millis()))
}

/// Reads what [`duration`] does.
///
/// # Errors
/// It is no duration.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    duration(&text).ok_or_else(|| {
        D::Error::custom(format!("{text:?} is no duration; write \"250ms\", \"5s\", \"2m\" or \"1h\""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Act, Fault, Login};

    #[test]
    fn a_duration_has_its_unit() {
        for (text, millis) in [("250ms", 250), ("5s", 5_000), ("2m", 120_000), ("0s", 0), ("1h", 3_600_000)] {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)));
        }
        for text in
            ["", "5", "s", "-5s", "5 s", "1w", "1.5s", "99999999999999999999s", "18446744073709551615m"]
        {
            assert_eq!(duration(text), None, "{text:?}");
        }
    }

    #[test]
    fn faults_and_acts_come_back_as_they_were_written() {
        let span = Duration::from_millis(1500);
        for fault in [
            Fault::OffTakes { least: span, most: span },
            Fault::Slow(span),
            Fault::Reordered { percent: 5, by: span },
            Fault::LateEnd(span),
            Fault::LateOff(span),
            Fault::LoginSays(Login::Slashless),
            Fault::OffIgnored,
        ] {
            let text = serde_json::to_string(&fault).expect("it is written");
            assert_eq!(serde_json::from_str::<Fault>(&text).expect("it is read"), fault, "{text}");
        }
        let act = Act::ForeignCycle { machine: "n1".to_owned(), off_for: span };
        let text = serde_json::to_string(&act).expect("it is written");
        assert!(text.contains("1500ms"), "{text}");
        assert_eq!(serde_json::from_str::<Act>(&text).expect("it is read"), act);
    }
}
