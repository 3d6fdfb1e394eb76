//! Spans and moments, as people write and read them.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use prost_types::Timestamp;

/// Reads `250ms`, `10s`, `5m`, `2h`, `7d`. The error says what would be right.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration: write a number and ms, s, m, h or d, like 90s or 2h");
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(millis).map(Duration::from_millis).ok_or_else(wrong)
}

/// `0.8 s`, `12.3 s`, `4 min 5 s`, `2 h`, `2 h 30 min`, `3 d 4 h`.
pub fn words(span: Duration) -> String {
    let seconds = span.as_secs();
    let (large, unit, small, part) = match seconds {
        0..60 => return format!("{:.1} s", span.as_secs_f64()),
        60..3_600 => (seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => (seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => (seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    };
    if small == 0 { format!("{large} {unit}") } else { format!("{large} {unit} {small} {part}") }
}

/// The span on the wire; a negative one is zero.
pub fn of_wire(span: &prost_types::Duration) -> Duration {
    Duration::try_from(*span).unwrap_or_default()
}

/// A span for the wire.
pub fn to_wire(span: Duration) -> prost_types::Duration {
    // Arguments are far below the 292 billion years at which this ends.
    prost_types::Duration::try_from(span).unwrap_or_default()
}

/// Seconds, for documents.
pub fn seconds(span: &prost_types::Duration) -> f64 {
    of_wire(span).as_secs_f64()
}

/// RFC 3339 in UTC with milliseconds.
pub fn stamp(at: &Timestamp) -> String {
    let millis = at.nanos.clamp(0, 999_999_999) / 1_000_000;
    let whole = Timestamp { seconds: at.seconds, nanos: 0 }.to_string();
    format!("{}.{millis:03}Z", whole.trim_end_matches('Z'))
}

/// RFC 3339 in UTC, to the second, for tables.
pub fn stamp_seconds(at: &Timestamp) -> String {
    Timestamp { seconds: at.seconds, nanos: 0 }.to_string()
}

/// The time of day in UTC, for moments of today.
pub fn clock(at: &Timestamp) -> String {
    let stamp = stamp_seconds(at);
    stamp.split_once('T').map_or_else(|| stamp.clone(), |(_, time)| time.to_owned())
}

/// A span without tenths, for what counts down or is an age: `8 s`, `4 min 5 s`.
pub fn whole(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        _ => words(span),
    }
}

/// A span that somebody set, and nobody measured: tenths of a second stand there alone if it has some.
pub fn set(span: Duration) -> String {
    if span.subsec_millis() == 0 { whole(span) } else { words(span) }
}

/// A gateway's text with its durations as they are written here: `20 s` for `20s`, `1 h 59 min` for `7199s`. What is to be typed
/// stays: behind an option, behind an equals sign, and in quotes.
pub fn spoken(text: &str) -> Cow<'_, str> {
    let is_span = |word: &str| word.starts_with(|c: char| c.is_ascii_digit() || c == '(');
    if !text.split(' ').any(is_span) {
        return Cow::Borrowed(text);
    }
    let mut before = "";
    let each = text.split(' ').map(|word| {
        let bare = word.trim_start_matches('(').trim_end_matches(['.', ',', ';', ':', ')']);
        let is_typed = before.starts_with("--") || before.ends_with('=');
        before = word;
        match parse(bare) {
            Ok(span) if !is_typed && bare.ends_with("ms") && span < Duration::from_secs(1) => {
                word.replacen(bare, &format!("{} ms", span.as_millis()), 1)
            }
            Ok(span) if !is_typed => word.replacen(bare, &set(span), 1),
            _ => word.to_owned(),
        }
    });
    Cow::Owned(each.collect::<Vec<_>>().join(" "))
}

/// From one moment to another, zero if it is not later.
pub fn between(from: &Timestamp, to: &Timestamp) -> Duration {
    let nanos = |at: &Timestamp| i128::from(at.seconds) * 1_000_000_000 + i128::from(at.nanos);
    let span = u64::try_from((nanos(to) - nanos(from)).max(0)).unwrap_or(u64::MAX);
    Duration::from_nanos(span)
}

/// The moment `span` after another.
pub fn after(at: &Timestamp, span: Duration) -> Timestamp {
    let span = to_wire(span);
    let mut sum = Timestamp {
        seconds: at.seconds.saturating_add(span.seconds),
        nanos: at.nanos.saturating_add(span.nanos),
    };
    sum.normalize();
    sum
}

/// The moment `span` before (`-`) now, on the wire.
pub fn ago(span: Duration) -> Timestamp {
    Timestamp::from(SystemTime::now().checked_sub(span).unwrap_or(SystemTime::UNIX_EPOCH))
}

/// The moment `span` after now, on the wire.
pub fn hence(span: Duration) -> Timestamp {
    Timestamp::from(SystemTime::now().checked_add(span).unwrap_or(SystemTime::UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_the_error_says_what_would_be_right() {
        for (text, millis) in
            [("250ms", 250), ("10s", 10_000), ("5m", 300_000), ("2h", 7_200_000), ("1d", 86_400_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in
            ["", "5", "s", "-1s", "1.5s", "5 s", "5min", "99999999999999999999s", "999999999999999999d"]
        {
            assert!(parse(text).expect_err(text).contains("like 90s"), "{text}");
        }
    }

    #[test]
    fn spans_are_told_in_the_largest_fitting_units() {
        for (millis, text) in [
            (840, "0.8 s"),
            (12_340, "12.3 s"),
            (245_000, "4 min 5 s"),
            (60_400, "1 min"),
            (9_000_000, "2 h 30 min"),
            (273_600_000, "3 d 4 h"),
        ] {
            assert_eq!(words(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn a_gateway_s_durations_are_told_as_ours_and_what_is_typed_stays() {
        for (text, wanted) in [
            ("not off within 20s: bmc reads On", "not off within 20 s: bmc reads On"),
            ("ask again in 7199s", "ask again in 1 h 59 min"),
            ("it waits (at most 10m), or 100ms.", "it waits (at most 10 min), or 100 ms."),
            ("1500ms and 0s", "1.5 s and 0 s"),
            ("picket pause --for 2h, or drill_age = 30d", "picket pause --for 2h, or drill_age = 30d"),
            ("set call = \"30s\" at 12s", "set call = \"30s\" at 12 s"),
            ("5 of 10 nodes, r1n07 and 4th", "5 of 10 nodes, r1n07 and 4th"),
            ("", ""),
        ] {
            assert_eq!(spoken(text), wanted);
        }
    }

    #[test]
    fn moments_have_milliseconds_even_if_they_are_zero() {
        let at = |nanos| Timestamp { seconds: 1_795_250_372, nanos };
        assert_eq!(stamp(&at(0)), "2026-11-21T08:39:32.000Z");
        assert_eq!(stamp(&at(42_999_999)), "2026-11-21T08:39:32.042Z");
        assert_eq!(stamp_seconds(&at(42_999_999)), "2026-11-21T08:39:32Z");
    }
}
