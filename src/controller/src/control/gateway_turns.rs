//! Whose turn it is, of those that stand, to have a gateway asked about it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// By the UIDs of remediations.
#[derive(Debug, Default)]
pub(super) struct GatewayTurns(BTreeMap<String, Turn>);

/// Since when it waits, or when it was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    at: Instant,
    was_asked: bool,
}

impl GatewayTurns {
    /// Another replica leads.
    pub(super) fn rest(&mut self) {
        self.0.clear();
    }

    /// Those alone are there still.
    pub(super) fn retain(&mut self, is_there: impl Fn(&String) -> bool) {
        self.0.retain(|uid, _| is_there(uid));
    }

    /// Which of these are asked about now, so many at most: who was not asked about for the longest comes first, and who was never asked about counts
    /// from when it came. `waiting`: how long after a question the next one is due.
    pub(super) fn next(
        &mut self,
        waiting: &BTreeMap<String, Duration>,
        room: usize,
        now: Instant,
    ) -> BTreeSet<String> {
        let mut due = Vec::new();
        for (uid, every) in waiting {
            let turn = *self.0.entry(uid.clone()).or_insert(Turn { at: now, was_asked: false });
            if !turn.was_asked || now - turn.at >= *every {
                due.push((turn, uid.clone()));
            }
        }
        due.sort();
        due.truncate(room);
        let next: BTreeSet<String> = due.into_iter().map(|(_, uid)| uid).collect();
        for uid in &next {
            self.0.insert(uid.clone(), Turn { at: now, was_asked: true });
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(30);

    /// S16: gateways that are silent for 20 seconds at each question, of which 16 are under way at once.
    #[test]
    fn each_has_its_turn_however_many_wait_and_whoever_comes_later() {
        let (mut turns, begun) = (GatewayTurns::default(), Instant::now());
        let named = |number: u64| format!("w{number:03}");
        let mut waiting: BTreeMap<String, Duration> = (200..240).map(|n| (named(n), EVERY)).collect();
        let mut asked: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for round in 0..12 {
            let now = begun + Duration::from_secs(20) * round;
            for uid in turns.next(&waiting, 16, now) {
                asked.entry(uid).or_default().push(20 * u64::from(round));
            }
            // Some of those that come now are the first by their UIDs.
            waiting.extend((0..16).map(|n| (named(u64::from(round) * 16 + n), EVERY)));
        }
        for number in 200..240 {
            let times = asked.get(&named(number)).map(Vec::as_slice).unwrap_or_default();
            assert!(times.first().is_some_and(|first| *first <= 40), "{number}: {times:?}");
            assert!(times.len() >= 2, "{number}: {times:?}");
        }
    }

    #[test]
    fn one_is_asked_about_again_once_it_is_due_and_anew_once_it_was_gone() {
        let (mut turns, begun) = (GatewayTurns::default(), Instant::now());
        let waiting = BTreeMap::from([("w".to_owned(), EVERY)]);
        let mut is_next = |second| {
            if second == 70 {
                turns.retain(|_| false);
            }
            !turns.next(&waiting, 1, begun + Duration::from_secs(second)).is_empty()
        };
        assert_eq!([0, 29, 30, 59, 60, 70].map(&mut is_next), [true, false, true, false, true, true]);
    }
}
