//! Watches that break: each is told once, and again where its reason changes or it lasts.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// A watch that cannot begin tries once in a second and more: the same words are told again after so long.
const AGAIN: Duration = Duration::from_secs(60);

/// By what is watched: why it broke, and when that was told.
#[derive(Debug, Default)]
pub(super) struct WatchFailures(BTreeMap<&'static str, (String, Instant)>);

impl WatchFailures {
    /// Whether that is to be told now.
    pub(super) fn is_news(&mut self, what: &'static str, why: &str, now: Instant) -> bool {
        let told = self.0.get(what);
        if told.is_some_and(|(same, at)| same == why && now.saturating_duration_since(*at) < AGAIN) {
            return false;
        }
        self.0.insert(what, (why.to_owned(), now));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_break_is_told_once_a_minute_and_another_one_at_once() {
        let (mut breaks, begin) = (WatchFailures::default(), Instant::now());
        let mut told = |what, why, second| breaks.is_news(what, why, begin + Duration::from_secs(second));
        let all = [
            told("nodes", "away", 0),
            told("nodes", "away", 1),
            told("leases", "away", 1),
            told("nodes", "forbidden", 2),
            told("nodes", "forbidden", 61),
            told("nodes", "forbidden", 62),
        ];
        assert_eq!(all, [true, false, true, true, false, true]);
    }
}
