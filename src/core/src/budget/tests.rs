//! The books by hand, and against an oracle that counts everything anew from what happened.

#![allow(clippy::unwrap_used)] // A fixture that cannot be made ends its test.

use proptest::prelude::*;

use super::pause::{Pause, PauseScope, Pauses};
use super::*;
use crate::event::Event;
use crate::groups::Groups;
use crate::ids::NodeId;
use crate::outcome::Reason;
use crate::record::{NodeRecord, Phase};
use crate::support::{Player, boot, fence_id, host, person, request, s};
use crate::time::{BootTime, WallTime};

fn node(number: usize) -> NodeId {
    NodeId::new(&format!("n{number}")).unwrap()
}

fn ticket(number: u64) -> Ticket {
    number
}

fn books(budget: Budget, nodes: usize, groups: &[(&str, &[usize])]) -> Books {
    let mut members = Groups::default();
    for (name, numbers) in groups {
        numbers.iter().for_each(|number| members.put(name, node(*number)));
    }
    Books::new(budget, (1..=nodes).map(node).collect(), &members)
}

fn at(number: usize, phase: Phase) -> NodeRecord {
    NodeRecord { phase, ..NodeRecord::new(node(number)) }
}

fn calm() -> Budget {
    Budget { brake_least: 1_000, ..Budget::default() }
}

fn kind(books: &Books, number: usize, now: BootTime) -> Option<LimitKind> {
    books.decide(&node(number), None, now).err().map(|bar| bar.kind)
}

#[test]
fn a_small_fleet_fences_one_at_once_and_a_large_one_a_tenth() {
    for (nodes, most) in [(1, 1), (9, 1), (10, 1), (19, 1), (20, 2), (1_000, 100)] {
        let mut books = books(calm(), nodes, &[]);
        for number in 1..=most {
            assert_eq!(kind(&books, number, boot(0)), None, "{number} of {nodes}");
            books.take(&node(number), false, boot(0));
        }
        if most < nodes {
            let bar = books.decide(&node(most + 1), None, boot(0)).unwrap_err();
            assert_eq!((bar.kind, bar.reason(), bar.found), (LimitKind::AtOnce, Reason::Budget, most as u32));
            assert!(bar.text.contains("the fleet may have") && bar.text.contains("n1"), "{}", bar.text);
        }
    }
}

#[test]
fn a_place_is_free_once_it_is_released_or_waits_for_a_person_and_what_is_kept_off_is_not_left() {
    let limits = Limits { at_once: Some(1), min_not_fenced: Some(2), ..Limits::default() };
    let budget = Budget { groups: [("rack=r1".to_owned(), limits)].into(), ..calm() };
    let budget = Budget { fleet: Limits { at_once: Some(9), ..Limits::default() }, ..budget };
    let mut books = books(budget, 9, &[("rack=r1", &[1, 2, 3, 4])]);
    books.take(&node(1), false, boot(0));
    for phase in [Phase::Fencing, Phase::Fenced] {
        books.stored(&at(1, phase), boot(0));
        assert_eq!(kind(&books, 2, boot(0)), Some(LimitKind::AtOnce));
        assert_eq!(kind(&books, 5, boot(0)), None, "of another rack");
    }
    for phase in [Phase::Released, Phase::NeedsOperator(Reason::Deadline), Phase::Unfencing] {
        books.stored(&at(1, phase), boot(0));
        assert_eq!(kind(&books, 2, boot(0)), None);
    }
    books.take(&node(2), false, boot(0));
    books.stored(&at(2, Phase::Released), boot(0));
    let bar = books.decide(&node(3), None, boot(0)).unwrap_err();
    assert_eq!((bar.kind, bar.allowed, bar.found), (LimitKind::MinNotFenced, 2, 1));
    assert_eq!(bar.whose, "group rack=r1");
    books.stored(&at(1, Phase::Normal), boot(0));
    assert_eq!(kind(&books, 3, boot(0)), None);
}

#[test]
fn a_window_and_a_cool_down_say_when_to_ask_again() {
    let fleet = Limits { at_once: Some(9), per_window: Some((2, s(3_600))), ..Limits::default() };
    let mut books = books(Budget { fleet, ..calm() }, 9, &[]);
    for (number, millis) in [(1, 0), (2, 60_000)] {
        books.take(&node(number), false, boot(millis));
        let back =
            NodeRecord { back_since: Some(WallTime::from_millis(millis)), ..at(number, Phase::Normal) };
        books.stored(&back, boot(millis));
    }
    let bar = books.decide(&node(3), None, boot(120_000)).unwrap_err();
    assert_eq!((bar.kind, bar.retry_after), (LimitKind::PerWindow, Some(s(3_480))));
    assert!(bar.detail().ends_with("ask again in 58m"), "{}", bar.detail());
    let bar = books.decide(&node(2), None, boot(120_000)).unwrap_err();
    assert_eq!((bar.kind, bar.retry_after), (LimitKind::CoolDown, Some(s(540))));
    assert_eq!(kind(&books, 3, boot(3_600_000)), None);
    assert_eq!(kind(&books, 2, boot(3_600_000)), None);
}

/// A caller's fence of `n1` that ended before anything was sent.
fn ended(event: Event<'_>) -> Player {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.apply(event);
    player
}

#[test]
fn what_ended_before_an_off_takes_no_place_in_the_window() {
    let fleet = Limits { at_once: Some(9), per_window: Some((2, s(3_600))), ..Limits::default() };
    let aborted = || ended(Event::Abort { why: "recovered".to_owned() });
    let barred = || ended(Event::Bar { reason: Reason::Paused, why: "a pause".to_owned() });
    for mut player in [aborted(), barred()] {
        let mut books = books(Budget { fleet: fleet.clone(), cool_down: s(0), ..calm() }, 9, &[]);
        // One of the same node that was sent stays counted.
        books.take(&node(1), false, boot(0));
        books.stored(&at(1, Phase::Fencing), boot(0));
        books.stored(&at(1, Phase::Normal), boot(0));
        books.take(&node(1), false, boot(1_000));
        books.stored(&at(1, Phase::Fencing), boot(1_000));
        assert_eq!(kind(&books, 2, boot(1_000)), Some(LimitKind::PerWindow));
        // The hold is undone in more than one write, and may want a person.
        books.stored(player.record(), boot(1_000));
        assert_eq!(kind(&books, 2, boot(1_000)), None, "nothing was switched off");
        books.stored(player.record(), boot(1_000));
        player.give_up(Reason::UnboundedEffect);
        books.stored(player.record(), boot(1_000));
        player.apply(Event::Retry(person()));
        books.stored(player.record(), boot(1_000));
        // Counted is what is begun meanwhile, whether its intent is stored or not.
        books.take(&node(1), false, boot(2_000));
        assert_eq!(kind(&books, 2, boot(2_000)), Some(LimitKind::PerWindow));
        books.give_back(player.record(), boot(2_000));
        assert_eq!(kind(&books, 2, boot(2_000)), None);
        books.take(&node(1), false, boot(2_000));
        player.fence(request(2, &[&[host("bmc")]], &[]));
        assert_eq!(player.open_fence().id, fence_id(2));
        books.stored(player.record(), boot(2_000));
        books.stored(&at(1, Phase::Normal), boot(2_000));
        let bar = books.decide(&node(2), None, boot(2_000)).unwrap_err();
        assert_eq!((bar.kind, bar.found), (LimitKind::PerWindow, 2));
    }
}

#[test]
fn what_is_read_from_the_store_as_ended_before_an_off_takes_nothing_away() {
    let fleet = Limits { at_once: Some(9), per_window: Some((1, s(3_600))), ..Limits::default() };
    let mut books = books(Budget { fleet, cool_down: s(0), ..calm() }, 9, &[]);
    let player = ended(Event::Abort { why: "recovered".to_owned() });
    // The history has an earlier one of it that was sent, too.
    books.remember(&node(1), boot(0), false);
    books.remember(&node(1), boot(500), true);
    books.stored(player.record(), boot(1_000));
    books.stored(player.record(), boot(1_000));
    assert_eq!(kind(&books, 2, boot(1_000)), Some(LimitKind::PerWindow));
}

#[test]
fn when_half_of_the_fleet_looks_dead_nothing_begins_until_it_is_calm_or_a_person_says_so() {
    let budget = Budget { fleet: Limits { at_once: Some(9), ..Limits::default() }, ..Budget::default() };
    let mut books = books(budget, 8, &[]);
    for number in 1..=3 {
        books.ask(&node(number), boot(1_000 * number as u64));
        assert_eq!(kind(&books, number, boot(3_000)), None);
    }
    let bar = books.decide(&node(4), None, boot(4_000)).unwrap_err();
    assert_eq!((bar.kind, bar.found, bar.reason()), (LimitKind::Brake, 4, Reason::Brake));
    books.ask(&node(4), boot(4_000));
    assert_eq!(
        kind(&books, 1, boot(4_000)),
        Some(LimitKind::Brake),
        "also of those that were asked for before"
    );
    assert!(books.braked(boot(4_000)).is_some());
    assert_eq!(books.clone().braked(boot(61_000)), None, "the first was asked for a minute ago");
    assert!(books.let_go(boot(5_000)));
    assert_eq!(kind(&books, 5, boot(5_000)), None);
    books.ask(&node(5), boot(5_000));
    assert_eq!(kind(&books, 6, boot(6_000)), None, "let go until it was calm");
    for number in 1..=4 {
        books.ask(&node(number), boot(200_000));
    }
    let bar = books.decide(&node(5), None, boot(200_000)).unwrap_err();
    assert_eq!(bar.kind, LimitKind::Brake, "it was calm, and is not any more");
    assert!(books.let_go(boot(200_000)) && !books.let_go(boot(200_001)));
}

#[test]
fn who_waits_keeps_the_brake_on() {
    let budget = Budget { fleet: Limits { at_once: Some(9), ..Limits::default() }, ..Budget::default() };
    let mut books = books(budget, 8, &[]);
    for number in 1..=4 {
        books.ask(&node(number), boot(0));
        books.wait(ticket(number as u64), node(number));
    }
    assert_eq!(kind(&books, 1, boot(599_000)), Some(LimitKind::Brake));
    books.leave(&ticket(4));
    books.braked(boot(600_000));
    assert_eq!(books.decide(&node(1), Some(&ticket(1)), boot(600_000)), Ok(()));
}

#[test]
fn whoever_came_first_goes_first_unless_another_limit_bars_it() {
    let one = Limits { at_once: Some(1), ..Limits::default() };
    let budget = Budget { groups: [("rack=r1".to_owned(), one)].into(), ..calm() };
    let budget = Budget { fleet: Limits { at_once: Some(2), ..Limits::default() }, ..budget };
    let mut books = books(budget, 9, &[("rack=r1", &[1, 2])]);
    books.take(&node(1), false, boot(0));
    books.wait(ticket(1), node(2));
    books.wait(ticket(2), node(3));
    let now = boot(0);
    assert!(books.decide(&node(2), Some(&ticket(1)), now).is_err(), "its rack has its one");
    assert_eq!(books.decide(&node(3), Some(&ticket(2)), now), Ok(()), "what bars the first does not bar it");
    let bar = books.decide(&node(4), None, now).unwrap_err();
    assert!(bar.text.contains("came before"), "{}", bar.text);
    books.stored(&at(1, Phase::Released), now);
    assert_eq!(books.decide(&node(2), Some(&ticket(1)), now), Ok(()));
    assert_eq!(books.decide(&node(3), Some(&ticket(2)), now), Ok(()));
    assert!(books.decide(&node(4), None, now).is_err());
    assert_eq!(books.decide(&node(3), None, now), Ok(()), "its own request waits, and this one joins it");
}

#[test]
fn the_last_look_bars_what_was_begun_before_and_not_what_came_after() {
    let mut books = books(calm(), 9, &[]);
    books.take(&node(1), false, boot(0));
    books.take(&node(2), true, boot(0));
    assert_eq!(books.recheck(&node(1), boot(0)), Ok(()), "an override came after it");
    assert_eq!(books.recheck(&node(2), boot(0)), Ok(()), "it is the override");
    books.take(&node(3), false, boot(0));
    assert_eq!(books.recheck(&node(3), boot(0)).unwrap_err().kind, LimitKind::AtOnce);
    books.give_back(&at(3, Phase::Normal), boot(0));
    assert_eq!((books.open(), books.recheck(&node(3), boot(0))), (2, Ok(())));
}

#[test]
fn pauses_cover_what_they_say_and_end_by_themselves() {
    let pause = |scope| Pause {
        scope,
        reason: "a new switch".to_owned(),
        by: "ada".to_owned(),
        since: WallTime::from_millis(1_000),
        expires_at: WallTime::from_millis(61_000),
    };
    let mut pauses = Pauses::default();
    pauses.put(pause(PauseScope::Group("rack=r1".to_owned())), boot(60_000));
    pauses.put(pause(PauseScope::Node(node(3))), boot(90_000));
    let groups = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let bar = pauses.bar(&node(1), &groups(&["rack=r1"]), boot(0)).unwrap();
    assert_eq!((bar.reason(), bar.retry_after), (Reason::Paused, Some(s(60))));
    assert!(bar.text.contains("group rack=r1 is paused by ada"), "{}", bar.text);
    assert_eq!(pauses.bar(&node(1), &groups(&["rack=r2"]), boot(0)), None);
    assert_eq!(pauses.bar(&node(3), &groups(&["rack=r1"]), boot(0)).unwrap().retry_after, Some(s(90)));
    assert_eq!(pauses.bar(&node(1), &groups(&["rack=r1"]), boot(60_000)), None);
    assert_eq!(pauses.take_ended(boot(60_000)), [PauseScope::Group("rack=r1".to_owned())]);
    assert!(pauses.end(&PauseScope::Node(node(3)), boot(0)) && !pauses.end(&PauseScope::Everything, boot(0)));
}

#[test]
fn a_clock_that_was_set_back_makes_no_pause_longer() {
    let pause = Pause {
        scope: PauseScope::Everything,
        reason: String::new(),
        by: String::new(),
        since: WallTime::from_millis(100_000),
        expires_at: WallTime::from_millis(160_000),
    };
    for (now, left) in [(0, 60), (100_000, 60), (130_000, 30), (170_000, 0)] {
        assert_eq!(pause.left(WallTime::from_millis(now)), s(left));
    }
}

/// What happened, as it happened; everything is counted anew from it.
#[derive(Debug, Default)]
struct Oracle {
    now: u64,
    phases: BTreeMap<usize, Phase>,
    begun: Vec<(u64, usize)>,
    back: BTreeMap<usize, u64>,
    asked: Vec<(u64, usize)>,
    waiting: Vec<(u64, usize)>,
}

const NODES: usize = 6;
const RACK: [usize; 3] = [1, 2, 3];
const WINDOW: u64 = 120;
const COOL_DOWN: u64 = 50;

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
        let of_late = self.asked.iter().any(|(at, asked)| *asked == one && self.now - at < 60);
        of_late || self.waiting.iter().any(|(_, waits)| *waits == one)
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
            if ticket.is_none_or(|own| *number < own) && *earlier != one && self.fits(*earlier, &taken) {
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
                    books.ask(&node(one), now);
                    oracle.asked.push((oracle.now, one));
                    let verdict = books.decide(&node(one), None, now);
                    prop_assert_eq!(verdict.is_ok(), oracle.allows(one, None), "n{} at {}: {:?}", one, oracle.now, verdict);
                    if verdict.is_ok() {
                        books.take(&node(one), false, now);
                        oracle.phases.insert(one, Phase::Fencing);
                        oracle.begun.push((oracle.now, one));
                        prop_assert_eq!(books.recheck(&node(one), now), Ok(()));
                    }
                }
                3 => {
                    tickets += 1;
                    books.ask(&node(one), now);
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
                5 => oracle.now += more,
                6 if phase == Phase::Fencing => {
                    let record = NodeRecord { node: node(one), ..undone.record().clone() };
                    // Told again, nothing more is given back.
                    books.stored(&record, now);
                    books.stored(&record, now);
                    oracle.phases.insert(one, Phase::Unfencing);
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
