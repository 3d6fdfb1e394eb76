//! Durations as people write them.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads `250ms`, `5s`, `10m`, `2h`, `90d`: a whole number with its unit.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*millis).map(Duration::from_millis)
}

/// What is expected where no duration was found.
pub(crate) const EXPECTED: &str =
    "expected a whole number with its unit (\"250ms\", \"5s\", \"10m\", \"2h\", \"90d\")";

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
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
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
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
