//! What is told at once the first time, and then counted and told once a minute: who was not let in, what was refused.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::entry::Told;

/// How often a count is told.
pub(crate) const EVERY: Duration = Duration::from_secs(60);
/// Different ones of one caller that are told apart at once; whatever is more is counted as one of that caller.
const APART: usize = 32;
/// Different callers that are told apart at once; whatever is more is counted as one.
const CALLERS: usize = 1_024;

#[derive(Debug)]
struct Counted {
    told: Told,
    told_at: Instant,
    more: u64,
}

/// Those of the last minute, by caller and by what makes them the same.
#[derive(Debug, Default)]
pub(crate) struct Denials(BTreeMap<String, BTreeMap<String, Counted>>);

/// What stands for all that are too many to tell apart.
fn several(told: &Told, who: &str) -> Told {
    let details = json!({ "why": "too many to tell apart" });
    Told { at: told.at, who: who.to_owned(), what: told.what.clone(), details, ..Told::default() }
}

impl Denials {
    /// Counts one. `Some`: it is the first of its kind for a minute, to be told at once.
    pub(crate) fn note(&mut self, told: Told, now: Instant) -> Option<Told> {
        let (mut told, mut key) = (told, String::new());
        if self.0.len() >= CALLERS && !self.0.contains_key(&told.who) {
            told = several(&told, "others");
        }
        let own = self.0.entry(told.who.clone()).or_default();
        if told.who != "others" {
            key = key_of(&told);
        }
        if own.len() >= APART && !own.contains_key(&key) {
            (told, key) = (several(&told, &told.who), String::new());
        }
        match own.get_mut(&key) {
            Some(counted) => {
                counted.more += 1;
                None
            }
            None => {
                own.insert(key, Counted { told: told.clone(), told_at: now, more: 0 });
                Some(told)
            }
        }
    }

    /// Those of which a minute's count is due, with it. What came to nothing in that minute is new again.
    pub(crate) fn due(&mut self, now: Instant, at: u64, all: bool) -> Vec<Told> {
        let mut due = Vec::new();
        let mut settle = |_: &String, counted: &mut Counted| {
            if !all && now.duration_since(counted.told_at) < EVERY {
                return true;
            }
            if counted.more == 0 {
                return false;
            }
            let mut told = Told { at, ..counted.told.clone() };
            if let Value::Object(details) = &mut told.details {
                details.insert("more".to_owned(), counted.more.into());
            }
            due.push(told);
            (counted.told_at, counted.more) = (now, 0);
            true
        };
        self.0.retain(|_, own| {
            own.retain(&mut settle);
            !own.is_empty()
        });
        due
    }

    /// Whether there is something to count.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Everything but when, and the key by which a caller repeats a request.
fn key_of(told: &Told) -> String {
    let mut details = told.details.clone();
    if let Value::Object(details) = &mut details {
        details.remove("key");
    }
    json!([told.what, told.node, details]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial(who: usize) -> Told {
        let details = json!({ "call": "fence", "why": "no role" });
        Told { who: format!("uid:{who}"), what: "denied".to_owned(), details, ..Told::default() }
    }

    fn counts(due: &[Told]) -> Vec<(&str, u64)> {
        due.iter().map(|told| (told.who.as_str(), told.details["more"].as_u64().expect("a count"))).collect()
    }

    #[test]
    fn the_first_is_told_at_once_and_then_a_count_a_minute() {
        let (mut denials, start) = (Denials::default(), Instant::now());
        assert_eq!(denials.note(denial(1), start), Some(denial(1)));
        for n in 0..10_000 {
            let mut again = Told { at: n, ..denial(1) };
            again.details["key"] = n.into();
            assert_eq!(denials.note(again, start), None);
        }
        assert_eq!(denials.note(denial(2), start), Some(denial(2)));
        assert_eq!(denials.due(start + EVERY / 2, 5, false), []);
        assert_eq!(counts(&denials.due(start + EVERY, 5, false)), [("uid:1", 10_000)]);
        assert_eq!(denials.due(start + EVERY * 2, 5, false), []);
        assert!(denials.is_empty());
        assert_eq!(denials.note(denial(1), start + EVERY * 2), Some(denial(1)));
    }

    #[test]
    fn a_caller_with_too_many_kinds_hides_nobody_else() {
        let (mut denials, start) = (Denials::default(), Instant::now());
        let invented = |n: usize| Told { node: Some(format!("n{n}")), ..denial(1) };
        for n in 0..APART {
            assert!(denials.note(invented(n), start).is_some());
        }
        let folded = denials.note(invented(APART), start).expect("the first that is too many");
        assert_eq!((folded.who.as_str(), folded.node), ("uid:1", None));
        for n in APART + 1..5_000 {
            assert_eq!(denials.note(invented(n), start), None);
        }
        assert_eq!(denials.note(denial(2), start), Some(denial(2)), "another caller is told apart as before");
        assert_eq!(counts(&denials.due(start, 5, true)), [("uid:1", 4_999 - APART as u64)]);
    }

    #[test]
    fn at_the_end_everything_is_told_and_many_callers_are_not_told_apart() {
        let (mut denials, start) = (Denials::default(), Instant::now());
        for who in 0..CALLERS {
            assert!(denials.note(denial(who), start).is_some());
        }
        assert_eq!(denials.note(denial(CALLERS), start).map(|one| one.who), Some("others".to_owned()));
        assert_eq!(denials.note(denial(CALLERS + 1), start), None);
        assert_eq!(counts(&denials.due(start, 5, true)), [("others", 1)]);
    }
}
