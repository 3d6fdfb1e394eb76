//! What a fence waits for, as it is told in the cluster, in the words of `picket status`, for readers who
//! have kubectl alone.
//!
//! # Invariants
//!
//! - Words are told at intervals of ten seconds at least, and the same words, whatever they count, once a
//!   minute at most. Shown by `what_comes_and_goes_is_told_once_a_minute_at_most`,
//!   `what_counts_is_the_same_thing_still`.
//! - What is over within three seconds is not told, unless it comes again and again. Shown by
//!   `what_comes_and_goes_is_told_once_a_minute_at_most`.

use std::time::Duration;

use picket_proto::v1::{FenceUpdate, Phase, Wait};
use prost_types::Timestamp;
use tokio::time::Instant;

use crate::decider::waiting;

/// So long something else than what was told must be so.
const LASTS: Duration = Duration::from_secs(3);
/// Between two tellings of one fence at least.
const APART: Duration = Duration::from_secs(10);
/// Before the same words are told again.
const AGAIN: Duration = Duration::from_secs(60);

/// What is told of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitReport {
    /// In words.
    pub text: String,
    /// Whether an Event of the Node is due: of what a release waits for the gateway tells itself (`ReleaseWaits`).
    pub is_event: bool,
}

/// What one fence waits for.
#[derive(Debug, Default)]
pub struct Waits {
    /// What happened last, in words.
    said: String,
    is_release: bool,
    /// What it waits for: without its end, which another gateway may count otherwise, and as it is told.
    now: (String, String),
    /// Since when that is so.
    since: Option<Instant>,
    /// The first of these that was told last, when, and since when it is not so all the time.
    told: String,
    at: Option<Instant>,
    other_since: Option<Instant>,
    /// What was told within a minute, without its numbers.
    lately: Vec<(String, Instant)>,
}

impl Waits {
    /// The fence has come to another phase, which is told.
    pub fn phase(&mut self, said: &str) {
        *self = Self { said: said.to_owned(), ..Self::default() };
    }

    /// What an update says.
    pub fn hear(&mut self, update: &FenceUpdate, now: Instant) {
        self.is_release = update.phase() == Phase::Fenced;
        let wait = update.wait.as_ref();
        let stable = wait.map(|wait| format!("{} ({})", wait.what, wait.whose)).unwrap_or_default();
        if self.since.is_none() || stable != self.now.0 {
            self.since = Some(now);
        }
        if stable != self.told {
            self.other_since = self.other_since.or(Some(now));
        }
        self.now = (stable, wait.map(words).unwrap_or_default());
    }

    /// What is to be told now.
    pub fn due(&mut self, now: Instant) -> Option<WaitReport> {
        let plain = plain(&self.now.0);
        self.lately.retain(|(_, at)| now.saturating_duration_since(*at) < AGAIN);
        let lasts =
            |since: Option<Instant>| since.is_some_and(|at| now.saturating_duration_since(at) >= LASTS);
        let is_steady = lasts(self.since);
        if self.now.0 == self.told {
            self.other_since = self.other_since.filter(|_| !is_steady);
            return None;
        }
        // That nothing is waited for is often so for a moment: something is being done.
        let has_lasted = is_steady || !self.now.0.is_empty() && lasts(self.other_since);
        let is_early = self.at.is_some_and(|at| now.saturating_duration_since(at) < APART);
        if !has_lasted || is_early || self.lately.iter().any(|(told, _)| *told == plain) {
            return None;
        }
        let is_event = !self.is_release && !self.now.0.is_empty();
        self.lately.push((plain, now));
        (self.told, self.at, self.other_since) = (self.now.0.clone(), Some(now), None);
        Some(WaitReport { text: waiting(&self.said, &self.now.1), is_event })
    }
}

/// What counts, or measures time, is the same thing still.
fn plain(words: &str) -> String {
    words.chars().filter(|one| !one.is_ascii_digit()).collect()
}

/// What is waited for, in the words of `picket status`.
pub fn words(wait: &Wait) -> String {
    let mut text = wait.what.clone();
    if !wait.whose.is_empty() {
        text += &format!(" ({})", wait.whose);
    }
    if let Some(until) = &wait.until {
        text += &format!(" until {}", Timestamp { seconds: until.seconds, nanos: 0 });
    }
    if !wait.otherwise.is_empty() {
        text += &format!(", else {}", wait.otherwise);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(phase: Phase, what: &str) -> FenceUpdate {
        let wait = (!what.is_empty()).then(|| Wait {
            what: what.to_owned(),
            whose: "bmc".to_owned(),
            ..Wait::default()
        });
        FenceUpdate { phase: phase as i32, wait, ..FenceUpdate::default() }
    }

    /// What is told while each second one of these is waited for, in turn: second, words.
    fn told(phase: Phase, seconds: u64, what: impl Fn(u64) -> String) -> Vec<(u64, String)> {
        let (begun, mut waits) = (Instant::now(), Waits::default());
        waits.phase("fencing");
        let all = (0..seconds).filter_map(|second| {
            let now = begun + Duration::from_secs(second);
            waits.hear(&update(phase, &what(second)), now);
            waits.due(now).map(|told| (second, told.text))
        });
        all.collect()
    }

    fn seconds(told: &[(u64, String)]) -> Vec<u64> {
        told.iter().map(|(second, _)| *second).collect()
    }

    #[test]
    fn what_lasts_is_told_once_in_words_and_so_is_what_comes_after() {
        let told =
            told(Phase::Fencing, 300, |second| if second < 100 { "Off again" } else { "On" }.to_owned());
        assert_eq!(
            told,
            [
                (3, "fencing; it waits for Off again (bmc)".to_owned()),
                (103, "fencing; it waits for On (bmc)".to_owned()),
            ]
        );
        // Its end as well.
        let told =
            self::told(Phase::Fencing, 300, |second| if second < 100 { "Off again" } else { "" }.to_owned());
        assert_eq!(told.last(), Some(&(103, "fencing".to_owned())));
    }

    #[test]
    fn what_comes_and_goes_is_told_once_a_minute_at_most() {
        let told = self::told(Phase::Fencing, 600, |second| match second % 3 {
            0 => String::new(),
            1 => "Off again".to_owned(),
            _ => "On".to_owned(),
        });
        let each = |words: &str| {
            let of: Vec<u64> =
                told.iter().filter(|(_, text)| text.ends_with(words)).map(|(second, _)| *second).collect();
            assert!(of.windows(2).all(|two| two[1] - two[0] >= 60), "{told:?}");
        };
        ["fencing", "Off again (bmc)", "On (bmc)"].iter().for_each(|words| each(words));
        assert!(told.windows(2).all(|two| two[1].0 - two[0].0 >= 10), "{told:?}");
        // Something is done in between each time: it is waited for all the same.
        let told =
            self::told(Phase::Fencing, 600, |second| if second % 2 == 0 { "" } else { "On" }.to_owned());
        assert_eq!(told, [(5, "fencing; it waits for On (bmc)".to_owned())]);
        // Over within three seconds, and much later another thing.
        let told = self::told(Phase::Fencing, 60, |second| match second {
            2 => "Off again".to_owned(),
            50.. => "On".to_owned(),
            _ => String::new(),
        });
        assert_eq!(seconds(&told), [53]);
    }

    #[test]
    fn what_counts_is_the_same_thing_still() {
        let told = told(Phase::Fencing, 120, |second| format!("the store (no answer for {second} s)"));
        assert_eq!(seconds(&told), [3, 63]);
    }

    /// Of a release the gateway has told at its Node.
    #[test]
    fn an_event_is_of_what_the_gateway_does_not_tell() {
        let (now, later) = (Instant::now(), Instant::now() + LASTS);
        for (phase, what, is_event) in
            [(Phase::Fencing, "On", true), (Phase::Fenced, "On", false), (Phase::Unfencing, "On", true)]
        {
            let mut waits = Waits::default();
            waits.hear(&update(phase, what), now);
            assert_eq!(waits.due(later).map(|told| told.is_event), Some(is_event), "{phase:?}");
        }
    }

    /// As `picket status` has it.
    #[test]
    fn words_say_what_whose_until_when_and_what_comes_then() {
        let wait = Wait {
            what: "release pods to complete: a webhook".to_owned(),
            whose: "release pods".to_owned(),
            until: Some(Timestamp { seconds: 1_767_225_600, nanos: 5 }),
            otherwise: "needs operator".to_owned(),
        };
        let told = "release pods to complete: a webhook (release pods) until 2026-01-01T00:00:00Z, else needs operator";
        assert_eq!(words(&wait), told);
        assert_eq!(words(&Wait { what: "a retry".to_owned(), ..Wait::default() }), "a retry");
    }
}
