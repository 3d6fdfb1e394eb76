//! Times and spans.

use std::time::Duration;

use picket_core::time::WallTime;

/// A moment of the wall clock.
pub(crate) fn timestamp(at: WallTime) -> prost_types::Timestamp {
    let millis = at.millis();
    prost_types::Timestamp {
        seconds: i64::try_from(millis / 1_000).unwrap_or(i64::MAX),
        nanos: i32::try_from(millis % 1_000 * 1_000_000).unwrap_or(0),
    }
}

/// A span.
pub(crate) fn duration(span: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(span.subsec_nanos()).unwrap_or(0),
    }
}

/// From one moment of the wall clock to another; zero where the clock went back.
pub(crate) fn between(from: WallTime, to: WallTime) -> Duration {
    Duration::from_millis(to.millis().saturating_sub(from.millis()))
}

/// A moment that a caller names; `None`: no such moment, or one before 1970.
pub(crate) fn wall(at: &prost_types::Timestamp) -> Option<WallTime> {
    let seconds = u64::try_from(at.seconds).ok()?;
    let nanos = u64::try_from(at.nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    Some(WallTime::from_millis(seconds.checked_mul(1_000)?.checked_add(nanos / 1_000_000)?))
}

/// A span that a caller names; `None`: a negative one, or no span at all.
pub(crate) fn span(span: &prost_types::Duration) -> Option<Duration> {
    let seconds = u64::try_from(span.seconds).ok()?;
    let nanos = u32::try_from(span.nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    Some(Duration::new(seconds, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_spans_come_back_as_they_went() {
        for millis in [0, 1, 999, 1_000, 1_795_250_372_042] {
            let at = WallTime::from_millis(millis);
            assert_eq!(wall(&timestamp(at)), Some(at));
            let time = Duration::from_millis(millis);
            assert_eq!(span(&duration(time)), Some(time));
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for (seconds, nanos) in [(-1, 0), (0, -1), (0, 1_000_000_000), (i64::MIN, 0)] {
            assert_eq!(wall(&prost_types::Timestamp { seconds, nanos }), None);
            assert_eq!(span(&prost_types::Duration { seconds, nanos }), None);
        }
        assert_eq!(wall(&prost_types::Timestamp { seconds: i64::MAX, nanos: 0 }), None);
    }
}
