//! What time it is for the cluster, as its API server says: by that clock taint eviction's times are reckoned (K4).

use std::sync::atomic::{AtomicI64, Ordering};

use http::{HeaderMap, header};
use time::format_description::well_known::Rfc2822;
use time::{Duration, OffsetDateTime};

/// An answer tells the time in whole seconds, and is on its way for a while: clocks that differ by less are taken to agree.
const AGREE: Duration = Duration::seconds(2);

/// How far the API server's clock is ahead of ours, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct ServerClock(AtomicI64);

impl ServerClock {
    /// The head of an answer. One that does not tell the time says nothing.
    pub(crate) fn hear(&self, head: &HeaderMap) {
        let date = head.get(header::DATE).and_then(|date| date.to_str().ok());
        let Some(at) = date.and_then(|date| OffsetDateTime::parse(date, &Rfc2822).ok()) else { return };
        let ahead = (at - OffsetDateTime::now_utc()).whole_milliseconds();
        self.0.store(i64::try_from(ahead).unwrap_or_default(), Ordering::Relaxed);
    }

    /// What time it is there.
    pub(crate) fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc() + self.ahead().unwrap_or_default()
    }

    /// That the clocks differ, in words.
    pub(crate) fn remark(&self) -> Option<String> {
        let ahead = self.ahead()?.whole_seconds();
        let which = if ahead > 0 { "behind" } else { "ahead of" };
        Some(format!(
            "this gateway's clock is {} s {which} the API server's: the times of taints are reckoned by the API server's; synchronise both",
            ahead.abs()
        ))
    }

    fn ahead(&self) -> Option<Duration> {
        let ahead = Duration::milliseconds(self.0.load(Ordering::Relaxed));
        (ahead.abs() > AGREE).then_some(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(ahead: i64) -> ServerClock {
        let at = OffsetDateTime::now_utc() + Duration::seconds(ahead);
        let (clock, mut head) = (ServerClock::default(), HeaderMap::new());
        let date = at.format(&Rfc2822).expect("a date").replace("+0000", "GMT");
        head.insert(header::DATE, date.parse().expect("a value"));
        clock.hear(&head);
        clock
    }

    #[test]
    fn a_clock_that_is_off_is_told_and_reckoned_by() {
        for (ahead, words) in [(0, None), (1, None), (60, Some("s behind")), (-60, Some("s ahead of"))] {
            let clock = heard(ahead);
            let remark = clock.remark();
            assert_eq!(remark.is_some(), words.is_some(), "{ahead}: {remark:?}");
            assert!(words.is_none_or(|words| remark.is_some_and(|remark| remark.contains(words))));
            let off = (clock.now() - OffsetDateTime::now_utc()).whole_seconds();
            assert!((off - if words.is_some() { ahead } else { 0 }).abs() <= 2, "{ahead}: {off}");
        }
    }

    #[test]
    fn an_answer_that_tells_no_time_says_nothing() {
        let clock = heard(60);
        let mut head = HeaderMap::new();
        clock.hear(&head);
        head.insert(header::DATE, "yesterday".parse().expect("a value"));
        clock.hear(&head);
        assert!(clock.remark().is_some());
    }
}
