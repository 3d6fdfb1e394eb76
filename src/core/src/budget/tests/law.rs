//! However nodes come and go, the books decide as whoever counts everything anew.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::outcome::Reason;
use crate::support::s;
use crate::time::WallTime;

/// What happened, as it happened; everything is counted anew from it.
#[derive(Debug, Default)]
struct Oracle {
    now: u64,
    phases: BTreeMap<usize, Phase>,
    begun: Vec<(u64, usize)>,
    back: BTreeMap<usize, u64>,
    asked: Vec<(u64, usize)>,
    /// Nodes whose last fence ended before an off.
    undone: BTreeSet<usize>,
    waiting: Vec<(u64, usize)>,
}

const NODES: usize = 6;
const RACK: [usize; 3] = [1, 2, 3];
const WINDOW: u64 = 120;
const COOL_DOWN: u64 = 50;
const HOUR: u64 = 3600;

fn budget() -> Budget {
    let rack = Limits {
        at_once: Some(2),
        at_once_percent: Some(50),
        per_window: Some((2, s(WINDOW))),
        min_not_fenced: Some(1),
    };
    Budget {
        fleet: Limits { at_once: Some(3), min_not_fenced: Some(2), ..Limits::default() },
        groups: [("rack=r1".to_owned(), rack)].into(),
        cool_down: s(COOL_DOWN),
        brake_percent: 80,
        brake_least: 2,
        ..Budget::default()
    }
}

impl Oracle {
    fn is_open(&self, one: usize, taken: &[usize]) -> bool {
        taken.contains(&one) || matches!(self.phases.get(&one), Some(Phase::Fencing | Phase::Fenced))
    }

    fn is_gone(&self, one: usize, taken: &[usize]) -> bool {
        taken.contains(&one) || self.phases.get(&one).is_some_and(|phase| *phase != Phase::Normal)
    }

    fn dead(&self, one: usize) -> bool {
        let of_late = self.asked.iter().any(|(at, asked)| *asked == one && self.now - at < HOUR);
        of_late || self.is_gone(one, &[]) || self.waiting.iter().any(|(_, waits)| *waits == one)
    }

    /// Whether limits allow it, if these had been begun besides.
    fn fits(&self, one: usize, taken: &[usize]) -> bool {
        let dead = (1..=NODES).filter(|other| *other == one || self.dead(*other)).count();
        let cool = self.back.get(&one).is_none_or(|at| self.now - at >= COOL_DOWN);
        let others = || (1..=NODES).filter(|other| *other != one);
        let open = others().filter(|other| self.is_open(*other, taken)).count();
        let gone = others().filter(|other| self.is_gone(*other, taken)).count();
        let fleet = open < 3 && NODES - gone > 2;
        let in_rack = |other: &usize| RACK.contains(other);
        let open = others().filter(in_rack).filter(|other| self.is_open(*other, taken)).count();
        let gone = others().filter(in_rack).filter(|other| self.is_gone(*other, taken)).count();
        let begun = self.begun.iter().filter(|(at, other)| in_rack(other) && self.now - at < WINDOW).count();
        let begun = begun + taken.iter().filter(|other| in_rack(other)).count();
        // Half of three nodes is one.
        let rack = !in_rack(&one) || open < 1 && begun < 2 && RACK.len() - gone > 1;
        dead < 5 && cool && fleet && rack
    }

    fn allows(&self, one: usize, ticket: Option<u64>) -> bool {
        let mut taken = Vec::new();
        for (number, earlier) in &self.waiting {
            let is_before = ticket.is_none_or(|own| *number < own) && *earlier != one;
            // One that is fenced already is joined.
            if is_before && !self.is_open(*earlier, &taken) && self.fits(*earlier, &taken) {
                taken.push(*earlier);
            }
        }
        self.fits(one, &[]) && self.fits(one, &taken)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    /// However nodes come and go, the books decide as whoever counts everything anew, and no limit is ever exceeded.
    #[test]
    fn the_books_decide_as_the_law_says(moves in prop::collection::vec((0..13_u8, 1..=NODES, 0..40_u64), 1..120)) {
        let mut books = books(budget(), NODES, &[("rack=r1", &RACK)]);
        let mut oracle = Oracle::default();
        let mut tickets = 0;
        let undone = ended(Event::Abort { why: String::new() });
        for (what, one, more) in moves {
            let now = boot(oracle.now * 1_000);
            let phase = oracle.phases.get(&one).cloned().unwrap_or_default();
            let at_rest = matches!(phase, Phase::Normal | Phase::Unfencing);
            match what {
                0..=2 if at_rest => {
                    books.complain(&node(one), "db", now);
                    oracle.asked.push((oracle.now, one));
                    let verdict = books.decide(&node(one), None, now);
                    prop_assert_eq!(verdict.is_ok(), oracle.allows(one, None), "n{} at {}: {:?}", one, oracle.now, verdict);
                    if verdict.is_ok() {
                        books.take(&node(one), false, now);
                        oracle.phases.insert(one, Phase::Fencing);
                        oracle.undone.remove(&one);
                        oracle.begun.push((oracle.now, one));
                        prop_assert_eq!(books.recheck(&node(one), now), Ok(()));
                    }
                }
                3 => {
                    tickets += 1;
                    books.complain(&node(one), "db", now);
                    oracle.asked.push((oracle.now, one));
                    books.wait(ticket(tickets), node(one));
                    oracle.waiting.push((tickets, one));
                }
                4 if !oracle.waiting.is_empty() => {
                    let (number, waits) = oracle.waiting[usize::try_from(more).unwrap() % oracle.waiting.len()];
                    let verdict = books.decide(&node(waits), Some(&ticket(number)), now);
                    prop_assert_eq!(verdict.is_ok(), oracle.allows(waits, Some(number)), "n{}: {:?}", waits, verdict);
                    books.leave(&ticket(number));
                    oracle.waiting.retain(|(other, _)| *other != number);
                }
                // Now and then so long that complaints are forgotten.
                5 => oracle.now += if more == 39 { HOUR } else { more },
                12 if at_rest => {
                    books.takes_back(&node(one), "db");
                    oracle.asked.retain(|(_, asked)| *asked != one);
                }
                6 if phase == Phase::Fencing => {
                    let record = NodeRecord { node: node(one), ..undone.record().clone() };
                    // Told again, nothing more is given back.
                    books.stored(&record, now);
                    books.stored(&record, now);
                    oracle.phases.insert(one, Phase::Unfencing);
                    oracle.undone.insert(one);
                    let last = oracle.begun.iter().rposition(|(_, begun)| *begun == one).unwrap();
                    oracle.begun.remove(last);
                }
                _ => {
                    let phases = [Phase::Fenced, Phase::Released, Phase::NeedsOperator(Reason::Deadline), Phase::Unfencing, Phase::Normal];
                    let next = phases[usize::from(what) % phases.len()].clone();
                    if phase == Phase::Normal || at_rest && next != Phase::Normal {
                        continue;
                    }
                    if next == Phase::Normal {
                        oracle.back.insert(one, oracle.now);
                        // Who was refuted complains as before.
                        if !oracle.undone.contains(&one) {
                            oracle.asked.retain(|(_, asked)| *asked != one);
                        }
                    }
                    let since = oracle.back.get(&one).map(|at| WallTime::from_millis(*at));
                    books.stored(&NodeRecord { back_since: since, ..at(one, next.clone()) }, now);
                    oracle.phases.insert(one, next);
                }
            }
            let now = boot(oracle.now * 1_000);
            books.braked(now);
            let open = (1..=NODES).filter(|one| oracle.is_open(*one, &[])).count();
            prop_assert_eq!(books.open(), open);
        }
    }
}
