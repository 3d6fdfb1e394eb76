//! Overrides of the budget by name, and the bars that they leave in place.

use super::*;
use crate::time::WallTime;

/// `n1` is being fenced already, and `n2` carries the second of the store's three members.
fn carried(budget: Budget) -> Books {
    let members = [1, 2, 3].map(|number| (format!("e{number}"), Some(node(number)))).into();
    let fleet = Limits { at_once: Some(9), ..Limits::default() };
    let mut books = books(Budget { fleet, quorum: Quorum { members }, ..budget }, 6, &[]);
    books.take(&node(1), false, boot(0));
    books
}

fn cools_down(mut books: Books, number: usize) -> Books {
    let back = NodeRecord { back_since: Some(WallTime::from_millis(1)), ..at(number, Phase::Normal) };
    books.stored(&back, boot(0));
    books
}

fn is_braked(mut books: Books) -> Books {
    [4, 5, 6].iter().for_each(|number| books.complain(&node(*number), "db", boot(0)));
    books
}

fn aside(books: &Books, number: usize, budget: bool, quorum: bool) -> Result<Vec<LimitKind>, LimitKind> {
    let verdict = books.decide_aside(&node(number), None, Aside { budget, quorum }, &|_| None, boot(1_000));
    let kinds = |bars: Vec<Bar>| bars.iter().map(|bar| bar.kind).collect();
    verdict.map(kinds).map_err(|bar| bar.kind)
}

#[test]
fn whoever_sets_a_cool_down_or_a_brake_aside_sets_no_quorum_aside() {
    let cool = cools_down(carried(calm()), 2);
    let braked = is_braked(carried(Budget::default()));
    for (books, kind) in [(cool, LimitKind::CoolDown), (braked, LimitKind::Brake)] {
        assert_eq!(aside(&books, 2, false, false), Err(kind));
        assert_eq!(aside(&books, 2, true, false), Err(LimitKind::Quorum), "{kind:?} hides it");
        assert_eq!(aside(&books, 2, false, true), Err(kind), "nor the other way round");
        assert_eq!(aside(&books, 2, true, true), Ok(vec![kind, LimitKind::Quorum]));
    }
}

/// A member falls silent between the decision and the first off.
#[test]
fn whose_budget_was_set_aside_is_barred_by_the_quorum_before_its_first_off() {
    for (aside, barred) in [
        (Aside { budget: false, quorum: false }, true),
        (Aside { budget: true, quorum: false }, true),
        (Aside { budget: false, quorum: true }, false),
        (Aside { budget: true, quorum: true }, false),
    ] {
        let mut books = carried(calm());
        books.count.stands.clear();
        books.take_aside(&node(2), aside, boot(0));
        assert_eq!(books.recheck(&node(2), boot(0)), Ok(()));
        books.silent = ["e1".to_owned()].into();
        let found = books.recheck(&node(2), boot(0)).map_err(|bar| bar.kind);
        assert_eq!(found, if barred { Err(LimitKind::Quorum) } else { Ok(()) }, "{aside:?}");
    }
}

#[test]
fn the_budget_is_set_aside_where_the_store_keeps_its_quorum() {
    let cool = cools_down(carried(calm()), 4);
    assert_eq!(aside(&cool, 4, true, false), Ok(vec![LimitKind::CoolDown]), "it carries no member");
    let braked = is_braked(carried(Budget::default()));
    assert_eq!(aside(&braked, 4, true, false), Ok(vec![LimitKind::Brake]));
    assert_eq!(aside(&carried(calm()), 4, true, true), Ok(vec![]), "nothing bars it");
    assert_eq!(aside(&carried(calm()), 2, true, false), Err(LimitKind::Quorum));
    assert_eq!(aside(&carried(calm()), 2, false, true), Ok(vec![LimitKind::Quorum]));
}
