//! Who was not let in: told at once the first time, then counted and told once a minute.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often a count is told.
pub(crate) const EVERY: Duration = Duration::from_secs(60);
/// Different ones that are told apart at once; whatever is more is counted as one.
const APART: usize = 1_024;

/// One kind of denial.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Denial {
    pub(crate) who: String,
    pub(crate) call: String,
    pub(crate) why: String,
}

#[derive(Debug)]
struct Counted {
    told_at: Instant,
    more: u64,
}

/// Those of the last minute.
#[derive(Debug, Default)]
pub(crate) struct Denials(BTreeMap<Denial, Counted>);

impl Denials {
    /// Counts one. `Some`: it is the first of its kind for a minute, to be told at once.
    pub(crate) fn note(&mut self, denial: Denial, now: Instant) -> Option<Denial> {
        let apart = self.0.len() < APART || self.0.contains_key(&denial);
        let others = || Denial {
            who: "others".to_owned(),
            call: String::new(),
            why: "too many to tell apart".to_owned(),
        };
        let denial = if apart { denial } else { others() };
        match self.0.get_mut(&denial) {
            Some(counted) => {
                counted.more += 1;
                None
            }
            None => {
                self.0.insert(denial.clone(), Counted { told_at: now, more: 0 });
                Some(denial)
            }
        }
    }

    /// Those of which a minute's count is due, with it. What came to nothing in that minute is new again.
    pub(crate) fn due(&mut self, now: Instant, all: bool) -> Vec<(Denial, u64)> {
        let mut due = Vec::new();
        self.0.retain(|denial, counted| {
            if !all && now.duration_since(counted.told_at) < EVERY {
                return true;
            }
            if counted.more == 0 {
                return false;
            }
            due.push((denial.clone(), std::mem::take(&mut counted.more)));
            counted.told_at = now;
            true
        });
        due
    }

    /// Whether there is something to count.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial(who: usize) -> Denial {
        Denial { who: format!("uid:{who}"), call: "fence".to_owned(), why: "no role".to_owned() }
    }

    #[test]
    fn the_first_is_told_at_once_and_then_a_count_a_minute() {
        let (mut denials, start) = (Denials::default(), Instant::now());
        assert_eq!(denials.note(denial(1), start), Some(denial(1)));
        for _ in 0..10_000 {
            assert_eq!(denials.note(denial(1), start), None);
        }
        assert_eq!(denials.note(denial(2), start), Some(denial(2)));
        assert_eq!(denials.due(start + EVERY / 2, false), []);
        assert_eq!(denials.due(start + EVERY, false), [(denial(1), 10_000)]);
        assert_eq!(denials.due(start + EVERY * 2, false), []);
        assert!(denials.is_empty());
        assert_eq!(denials.note(denial(1), start + EVERY * 2), Some(denial(1)));
    }

    #[test]
    fn at_the_end_everything_is_told_and_many_are_not_told_apart() {
        let (mut denials, start) = (Denials::default(), Instant::now());
        for who in 0..APART {
            assert!(denials.note(denial(who), start).is_some());
        }
        assert_eq!(denials.note(denial(APART), start).map(|one| one.who), Some("others".to_owned()));
        assert_eq!(denials.note(denial(APART + 1), start), None);
        assert_eq!(denials.due(start, true).len(), 1);
    }
}
