//! When too much of the fleet looks dead at once.

use super::*;
use crate::outcome::Reason;

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
