//! When the settings change nothing that was counted is forgotten, and the new limits hold for it.

use super::*;
use crate::support::s;
use crate::time::WallTime;

/// The settings are read again, with this budget.
fn reloaded(before: &Books, budget: Budget, groups: &[(&str, &[usize])]) -> Books {
    books(budget, 8, groups).going_on_from(before)
}

fn of_fleet(fleet: Limits) -> Budget {
    Budget { fleet, ..calm() }
}

fn at_once(most: u32) -> Limits {
    Limits { at_once: Some(most), ..Limits::default() }
}

#[test]
fn what_is_fenced_keeps_its_place_whatever_the_limits_are_now() {
    let mut books = books(of_fleet(at_once(3)), 8, &[]);
    for number in 1..=3 {
        books.take(&node(number), false, boot(0));
    }
    books.stored(&at(1, Phase::Fenced), boot(0));
    let same = reloaded(&books, of_fleet(at_once(3)), &[]);
    assert_eq!(same.open(), 3);
    assert_eq!(kind(&same, 4, boot(0)), Some(LimitKind::AtOnce));
    let wider = reloaded(&books, of_fleet(at_once(4)), &[]);
    assert_eq!(kind(&wider, 4, boot(0)), None);

    let tighter = reloaded(&books, of_fleet(at_once(2)), &[]);
    assert_eq!(tighter.recheck(&node(2), boot(0)), Ok(()), "one came before it");
    assert_eq!(tighter.recheck(&node(3), boot(0)).unwrap_err().kind, LimitKind::AtOnce);

    let rack = Budget { groups: [("rack=r1".to_owned(), at_once(1))].into(), ..of_fleet(at_once(9)) };
    let grouped = reloaded(&books, rack, &[("rack=r1", &[1, 5])]);
    assert_eq!(kind(&grouped, 5, boot(0)), Some(LimitKind::AtOnce), "the group is new, its fence is not");
    assert_eq!(kind(&grouped, 6, boot(0)), None, "of another rack");
}

#[test]
fn a_window_and_a_cool_down_go_on() {
    let fleet = Limits { per_window: Some((1, s(3_600))), ..at_once(9) };
    let mut books = books(of_fleet(fleet.clone()), 8, &[]);
    books.take(&node(1), false, boot(0));
    let back = NodeRecord { back_since: Some(WallTime::from_millis(60_000)), ..at(1, Phase::Normal) };
    books.stored(&back, boot(60_000));
    let books = reloaded(&books, of_fleet(fleet), &[]);
    let bar = books.decide(&node(2), None, boot(120_000)).unwrap_err();
    assert_eq!((bar.kind, bar.retry_after), (LimitKind::PerWindow, Some(s(3_480))));
    let bar = books.decide(&node(1), None, boot(120_000)).unwrap_err();
    assert_eq!((bar.kind, bar.retry_after), (LimitKind::CoolDown, Some(s(540))));
}

#[test]
fn a_brake_that_held_holds_and_one_that_was_let_go_stays_so() {
    let budget = Budget { fleet: at_once(9), ..Budget::default() };
    let mut books = books(budget.clone(), 8, &[]);
    for number in 1..=4 {
        books.complain(&node(number), "db", boot(0));
    }
    let mut held = reloaded(&books, budget.clone(), &[]);
    assert_eq!(held.braked(boot(1_000)).unwrap().found, 4);
    assert_eq!(kind(&held, 1, boot(1_000)), Some(LimitKind::Brake));
    assert!(books.let_go(boot(1_000)));
    let mut let_go = reloaded(&books, budget, &[]);
    assert_eq!(kind(&let_go, 1, boot(2_000)), None);
    assert!(!let_go.let_go(boot(2_000)), "it does not hold");
}

#[test]
fn who_waits_keeps_the_turn() {
    let mut books = books(of_fleet(at_once(2)), 8, &[]);
    books.take(&node(1), false, boot(0));
    books.wait(ticket(1), node(2));
    let mut books = reloaded(&books, of_fleet(at_once(2)), &[]);
    assert_eq!(books.waiting(), 1);
    let bar = books.decide(&node(3), None, boot(0)).unwrap_err();
    assert!(bar.text.contains("came before"), "{}", bar.text);
    assert_eq!(books.turns(&|_| None, boot(0)), [(ticket(1), Ok(()))]);
    books.leave(&ticket(1));
    assert_eq!(kind(&books, 3, boot(0)), None);
}

#[test]
fn where_children_were_seen_to_run_is_known_still_unless_the_settings_say_where() {
    let mut before = books(calm(), 8, &[]);
    before.runs_on(&node(2), &node(1));
    before.runs_on(&node(3), &node(1));
    let mut said = books(calm(), 8, &[]);
    said.runs_on(&node(3), &node(4));
    let books = said.going_on_from(&before);
    assert_eq!(books.parent(&node(2)), Some(&node(1)));
    assert_eq!(books.parent(&node(3)), Some(&node(4)));
}
