//! When too much of the fleet looks dead at once.

use super::*;
use crate::outcome::Reason;
use crate::time::WallTime;

const HOUR: u64 = 3_600_000;

fn eight() -> Books {
    let fleet = Limits { at_once: Some(9), min_not_fenced: Some(0), ..Limits::default() };
    books(Budget { fleet, ..Budget::default() }, 8, &[])
}

#[test]
fn when_half_of_the_fleet_looks_dead_nothing_begins_until_a_person_says_so() {
    let mut books = eight();
    for number in 1..=3 {
        books.complain(&node(number), "db", boot(1_000 * number as u64));
        assert_eq!(kind(&books, number, boot(3_000)), None);
    }
    let bar = books.decide(&node(4), None, boot(4_000)).unwrap_err();
    assert_eq!((bar.kind, bar.found, bar.reason()), (LimitKind::Brake, 4, Reason::Brake));
    assert_eq!(bar.retry_after, None, "whoever is told when it forgets would wait for that");
    books.complain(&node(4), "db", boot(4_000));
    assert_eq!(
        kind(&books, 1, boot(4_000)),
        Some(LimitKind::Brake),
        "also of those that were asked for before"
    );
    for later in [boot(61_000), boot(600_000), boot(HOUR)] {
        assert!(books.clone().braked(later).is_some(), "no complaint is gone");
    }
    assert_eq!(books.clone().braked(boot(HOUR + 1_000)), None, "nothing was heard of the first for an hour");
    assert!(books.let_go(boot(5_000)) && !books.let_go(boot(5_000)));
    for number in 5..=7 {
        books.complain(&node(number), "db", boot(5_000));
        assert_eq!(kind(&books, number, boot(6_000)), None, "{number}: those that are dead count no more");
    }
    assert_eq!(kind(&books, 8, boot(7_000)), Some(LimitKind::Brake), "half of the fleet besides is too much");
}

#[test]
fn whoever_repeats_what_he_says_finds_no_window() {
    let mut books = eight();
    for minute in 0..300 {
        let now = boot(minute * 60_000);
        let number = 1 + usize::try_from(minute).unwrap() % 8;
        books.complain(&node(number), "db", now);
        assert_eq!(
            kind(&books, number, now),
            (minute >= 3).then_some(LimitKind::Brake),
            "after {minute} min"
        );
    }
}

#[test]
fn what_is_kept_off_counts_and_what_is_back_does_not() {
    let mut books = eight();
    for number in 1..=3 {
        books.complain(&node(number), "db", boot(0));
        books.take(&node(number), false, boot(0));
        books.stored(&at(number, Phase::Released), boot(1_000));
    }
    let later = boot(10 * HOUR);
    assert_eq!(kind(&books, 4, later), Some(LimitKind::Brake), "however long ago they were asked for");
    books.stored(&at(1, Phase::Normal), later);
    assert_eq!(kind(&books, 4, later), None);
    books.complain(&node(4), "db", later);
    assert_eq!(kind(&books, 5, later), Some(LimitKind::Brake));
    books.takes_back(&node(4), "db");
    assert_eq!(kind(&books, 5, later), None, "who said it of n4 took it back");
}

#[test]
fn a_holder_takes_back_its_own_complaints_alone() {
    let mut books = eight();
    (1..=4).for_each(|number| books.complain(&node(number), "db", boot(0)));
    books.complain(&node(4), "monitor", boot(0));
    for holder in ["somebody", "db"] {
        books.takes_back(&node(4), holder);
        assert!(books.braked(boot(0)).is_some(), "{holder} is not all");
    }
    books.takes_back(&node(4), "monitor");
    assert_eq!(books.braked(boot(0)), None);
    // Of too many it is not known who they are.
    (0..17).for_each(|number| books.complain(&node(4), &format!("h{number}"), boot(0)));
    (0..17).for_each(|number| books.takes_back(&node(4), &format!("h{number}")));
    let bar = books.braked(boot(0)).expect("it stands for its time");
    assert_eq!(bar.names, "n1, n2, n3, n4", "who may know of them is told which");
}

/// S22: the machines of a dead hypervisor fell with it, and do not bar what would prove them off.
#[test]
fn what_runs_on_a_dead_machine_is_one_failure_with_it() {
    let mut books = eight();
    (1..=4).for_each(|number| books.runs_on(&node(number), &node(5)));
    (1..=4).for_each(|number| books.complain(&node(number), "db", boot(0)));
    assert_eq!(kind(&books, 1, boot(0)), Some(LimitKind::Brake));
    assert_eq!(kind(&books, 5, boot(0)), None, "it is the only one");
    books.take(&node(5), false, boot(0));
    assert_eq!((kind(&books, 1, boot(0)), books.braked(boot(0))), (None, None));
    (6..=7).for_each(|number| books.complain(&node(number), "db", boot(0)));
    assert_eq!(kind(&books, 8, boot(0)), Some(LimitKind::Brake), "with it there are four");
}

#[test]
fn what_is_retired_is_no_failure_and_what_left_the_settings_is_none_of_the_fleet() {
    let mut books = eight();
    (1..=3).for_each(|number| books.stored(&at(number, Phase::Retired), boot(0)));
    books.complain(&node(9), "db", boot(0));
    assert_eq!(kind(&books, 4, boot(0)), None);
}

/// A person's word is about this failure: what was well fails anew.
#[test]
fn what_a_person_believed_counts_again_once_it_was_well() {
    let mut books = eight();
    (1..=4).for_each(|number| books.complain(&node(number), "db", boot(0)));
    books.take(&node(1), false, boot(0));
    books.stored(&at(1, Phase::Fencing), boot(0));
    assert!(books.let_go(boot(0)));
    books.stored(&at(1, Phase::Normal), boot(1_000));
    for number in [1, 5, 6] {
        books.complain(&node(number), "db", boot(2_000));
    }
    assert_eq!(kind(&books, 7, boot(2_000)), Some(LimitKind::Brake));
    // Nothing was heard of n2 for an hour, and nobody looked meanwhile; the others were heard again.
    let later = boot(HOUR + 1_000);
    let mut silent = books.clone();
    [5, 6].iter().for_each(|number| silent.complain(&node(*number), "db", later));
    assert_eq!(kind(&silent, 7, later), Some(LimitKind::Brake), "n1 stands as well");
    silent.takes_back(&node(1), "db");
    silent.complain(&node(2), "monitor", later);
    assert_eq!(kind(&silent, 7, later), Some(LimitKind::Brake), "n2 fails anew");
    silent.takes_back(&node(2), "monitor");
    assert_eq!(kind(&silent, 7, later), None, "nobody else complains of it any more");
}

#[test]
fn whoever_was_refuted_complains_still() {
    let mut books = eight();
    let undone = ended(Event::Abort { why: "it lives".to_owned() });
    for number in 1..=4 {
        books.complain(&node(number), "db", boot(0));
        books.take(&node(number), false, boot(0));
        let record = NodeRecord { node: node(number), ..undone.record().clone() };
        books.stored(&record, boot(1_000));
        books.stored(&NodeRecord { phase: Phase::Normal, ..record }, boot(2_000));
    }
    assert_eq!(books.open(), 0);
    assert_eq!(kind(&books, 5, boot(3_000)), Some(LimitKind::Brake));
    let mut anew = eight();
    (1..=4).for_each(|number| anew.remember(&node(number), boot(0), true));
    assert_eq!(kind(&anew, 5, boot(3_000)), Some(LimitKind::Brake), "also after a takeover");
}

#[test]
fn who_waits_keeps_the_brake_on() {
    let mut books = eight();
    for number in 1..=4 {
        books.complain(&node(number), "db", boot(0));
        books.wait(ticket(number as u64), node(number));
    }
    assert_eq!(kind(&books, 1, boot(2 * HOUR)), Some(LimitKind::Brake));
    books.leave(&ticket(4));
    books.braked(boot(2 * HOUR));
    assert_eq!(books.decide(&node(1), Some(&ticket(1)), boot(2 * HOUR)), Ok(()));
}

#[test]
fn half_of_a_fleet_is_left_unless_the_settings_say_otherwise() {
    let least = |nodes| Budget::default().of_fleet(nodes).min_not_fenced;
    for (nodes, left) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (6, 3), (7, 4), (10_000, 5_000)] {
        assert_eq!(least(nodes), Some(left), "of {nodes}");
    }
    let set = Budget { fleet: Limits { min_not_fenced: Some(1), ..Limits::default() }, ..Budget::default() };
    assert_eq!(set.of_fleet(6).min_not_fenced, Some(1));
    let mut three =
        books(Budget { fleet: Limits { at_once: Some(9), ..Limits::default() }, ..calm() }, 3, &[]);
    assert_eq!(kind(&three, 1, boot(0)), None);
    three.stored(&at(1, Phase::Released), boot(0));
    assert_eq!(kind(&three, 2, boot(0)), Some(LimitKind::MinNotFenced));
}

/// What an earlier leadership kept is counted on: complaints, who may take them back, and what a person said.
#[test]
fn what_is_kept_of_it_goes_on_in_another_leadership() {
    let stamp = |at: BootTime| WallTime::from_millis(u64::try_from(at.since_boot().as_millis()).unwrap());
    let when = |stamp: WallTime| boot(stamp.millis());
    let next = |books: &Books| {
        let kept = books.complaints(stamp);
        let written = serde_json::to_string(&kept).unwrap();
        let mut next = eight();
        next.take_up(serde_json::from_str(&written).unwrap(), when);
        next
    };
    let mut books = eight();
    (1..=4).for_each(|number| books.complain(&node(number), "db", boot(1_000)));
    assert_eq!(kind(&next(&books), 5, boot(2_000)), Some(LimitKind::Brake));
    let mut taken_back = next(&books);
    (1..=4).for_each(|number| taken_back.takes_back(&node(number), "db"));
    assert_eq!(kind(&taken_back, 5, boot(2_000)), None);
    assert_eq!(next(&books).braked(boot(HOUR + 2_000)), None, "it is as old as it was");
    assert!(books.let_go(boot(3_000)));
    assert_eq!(kind(&next(&books), 5, boot(4_000)), None, "a person said that they are dead");
}

/// A store takes no note that is as long as it likes: of many complaints the rest is kept as a number.
#[test]
fn those_that_a_short_note_does_not_name_count_for_the_next_leader_too() {
    let stamp = |at: BootTime| WallTime::from_millis(u64::try_from(at.since_boot().as_millis()).unwrap());
    let when = |stamp: WallTime| boot(stamp.millis());
    let next = |books: &Books, most| {
        let written = serde_json::to_string(&books.short_of_complaints(most, stamp)).unwrap();
        let mut next = eight();
        next.take_up(serde_json::from_str(&written).unwrap(), when);
        next
    };
    let mut books = eight();
    (1..=4).for_each(|number| books.complain(&node(number), "db", boot(1_000)));
    for most in [0, 1, 3, 4, 9] {
        assert_eq!(kind(&next(&books, most), 5, boot(2_000)), Some(LimitKind::Brake), "{most}");
    }
    let mut cut = next(&next(&books, 2), 1);
    assert_eq!(kind(&cut, 5, boot(2_000)), Some(LimitKind::Brake), "and for the one after that");
    assert_eq!(cut.braked(boot(2_000)).map(|bar| bar.found), Some(4));
    (1..=8).for_each(|number| cut.complain(&node(number), "db", boot(2_000)));
    assert_eq!(cut.braked(boot(2_000)).map(|bar| bar.found), Some(8), "no more than there are");
    assert_eq!(next(&books, 2).braked(boot(HOUR + 2_000)), None, "it is as old as it was");
    let mut dead = next(&books, 2);
    assert!(dead.let_go(boot(3_000)));
    assert_eq!(kind(&dead, 5, boot(4_000)), None, "a person said that they are dead");
    assert!(books.let_go(boot(3_000)));
    assert_eq!(kind(&next(&books, 2), 5, boot(4_000)), None, "and that was known before it was cut");
}
