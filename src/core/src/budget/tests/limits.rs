//! At once, in a window of time, how much is left, and who goes first.

use super::*;
use crate::outcome::Reason;
use crate::support::{device, fence_id, person, request, s};
use crate::time::WallTime;

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
            assert!(bar.text.contains("the fleet may have") && !bar.detail().contains("n1"), "{}", bar.text);
            let few = if most > 4 { " and 96 more)" } else { ")" };
            assert!(bar.named().contains(" (it counts n1") && bar.named().ends_with(few), "{}", bar.named());
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
    let standing = |number, millis| books.standing_bar(&node(number), boot(millis)).map(|bar| bar.kind);
    assert_eq!(standing(2, 120_000), Some(LimitKind::CoolDown), "whoever looks on is told the same");
    assert_eq!(standing(3, 120_000), Some(LimitKind::PerWindow));
    assert_eq!(standing(2, 3_600_000), None);
    assert_eq!(kind(&books, 3, boot(3_600_000)), None);
    assert_eq!(kind(&books, 2, boot(3_600_000)), None);
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

/// S14: a place is kept for what can take it, and once for each node.
#[test]
fn what_a_pause_bars_and_what_is_asked_twice_keep_nobody_waiting() {
    let of_fleet = |fleet: Limits| books(Budget { fleet, ..calm() }, 4, &[]);
    let mut one = of_fleet(Limits { at_once: Some(1), ..Limits::default() });
    let bar = Bar {
        kind: LimitKind::Pause,
        whose: "node n1".to_owned(),
        allowed: 0,
        found: 1,
        text: "node n1 is paused".to_owned(),
        names: String::new(),
        retry_after: None,
    };
    let paused = |of: &NodeId| (*of == node(1)).then(|| bar.clone());
    one.wait(ticket(1), node(1));
    let verdict = one.decide_aside(&node(2), None, Aside::default(), &paused, boot(0));
    assert_eq!(verdict, Ok(Vec::new()), "nothing is being fenced");
    one.wait(ticket(2), node(2));
    assert_eq!(one.turns(&paused, boot(0)), [(ticket(1), Err(bar.clone())), (ticket(2), Ok(()))]);
    assert_eq!(kind(&one, 3, boot(0)), Some(LimitKind::AtOnce), "without the pause n1 has the place");

    let window = Limits { at_once: Some(9), per_window: Some((2, s(3_600))), ..Limits::default() };
    let mut twice = of_fleet(window);
    twice.wait(ticket(1), node(1));
    twice.wait(ticket(2), node(1));
    assert_eq!(kind(&twice, 3, boot(0)), None, "the second joins the fence that the first begins");
    twice.wait(ticket(3), node(2));
    assert_eq!(kind(&twice, 3, boot(0)), Some(LimitKind::PerWindow));
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

/// What runs on a node falls with it (S22): it counts where nodes are to be left, and where the store's members are.
#[test]
fn a_parent_is_barred_by_what_runs_on_it_and_not_by_the_child_that_waits_for_it() {
    let fleet = Limits { min_not_fenced: Some(2), at_once: Some(9), ..Limits::default() };
    let mut few = books(Budget { fleet, ..calm() }, 4, &[]);
    assert_eq!(kind(&few, 1, boot(0)), None, "three are left");
    few.runs_on(&node(2), &node(1));
    assert_eq!(kind(&few, 1, boot(0)), None, "two are left");
    few.runs_on(&node(3), &node(1));
    assert_eq!(kind(&few, 1, boot(0)), Some(LimitKind::MinNotFenced), "only n4 would be");
    assert_eq!(kind(&few, 2, boot(0)), None, "a child takes none but itself");

    let members = [("e1", node(2)), ("e2", node(3)), ("e3", node(4))];
    let members = members.map(|(name, on)| (name.to_owned(), Some(on))).into();
    let mut carried = books(Budget { quorum: Quorum { members }, ..calm() }, 20, &[]);
    carried.runs_on(&node(2), &node(1));
    assert_eq!(kind(&carried, 1, boot(0)), None, "two members are left");
    carried.runs_on(&node(3), &node(1));
    assert_eq!(kind(&carried, 1, boot(0)), Some(LimitKind::Quorum), "both run on it");

    let one = Limits { at_once: Some(1), ..Limits::default() };
    let mut waiting = books(Budget { fleet: one, ..calm() }, 4, &[]);
    waiting.take(&node(2), false, boot(0));
    assert_eq!(kind(&waiting, 1, boot(0)), Some(LimitKind::AtOnce));
    waiting.runs_on(&node(2), &node(1));
    assert_eq!(kind(&waiting, 1, boot(0)), None, "n2 waits for it, and has its place");
    assert_eq!(kind(&waiting, 3, boot(0)), Some(LimitKind::AtOnce), "for another one it is taken");
}

/// Two at once would leave a majority of five, and the next disk that fills would end it (K11).
#[test]
fn the_hosts_of_the_store_are_fenced_one_at_a_time() {
    let members = [1, 2, 3, 4, 5].map(|number| (format!("e{number}"), Some(node(number))));
    let fleet = Limits { at_once: Some(9), ..Limits::default() };
    let budget = Budget { quorum: Quorum { members: members.into() }, fleet, ..calm() };
    let mut books = books(budget, 20, &[]);
    books.take(&node(1), false, boot(0));
    for phase in [Phase::Fencing, Phase::Fenced] {
        books.stored(&at(1, phase), boot(0));
        let bar = books.decide(&node(2), None, boot(0)).unwrap_err();
        assert_eq!((bar.kind, bar.allowed, bar.found), (LimitKind::Quorum, 1, 1));
        assert!(bar.text.contains("the store's hosts") && bar.names == "n1", "{bar:?}");
        assert_eq!(kind(&books, 9, boot(0)), None, "it carries none");
    }
    let both = Aside { budget: true, quorum: true };
    assert!(
        books
            .decide_aside(&node(2), None, Aside { budget: true, quorum: false }, &|_| None, boot(0))
            .is_err()
    );
    assert_eq!(books.decide_aside(&node(2), None, both, &|_| None, boot(0)).unwrap().len(), 1);
    // Also before its first off: of two that began in one moment the later one waits.
    books.take(&node(2), false, boot(0));
    assert_eq!(books.recheck(&node(2), boot(0)).map_err(|bar| bar.kind), Err(LimitKind::Quorum));
    assert_eq!(books.recheck(&node(1), boot(0)), Ok(()));
    books.stored(&at(1, Phase::Released), boot(0));
    assert_eq!(
        (kind(&books, 3, boot(0)), books.recheck(&node(2), boot(0))),
        (Some(LimitKind::Quorum), Ok(()))
    );
    books.stored(&at(1, Phase::Normal), boot(0));
    books.stored(&at(2, Phase::Released), boot(0));
    assert_eq!(kind(&books, 3, boot(0)), None);
}

/// A virtual machine that hosts a member fell with its hypervisor: its own fence costs no member more.
#[test]
fn a_hypervisor_that_is_fenced_bars_the_host_that_fell_with_it_from_nothing() {
    let members = [1, 2, 3].map(|number| (format!("e{number}"), Some(node(number))));
    let fleet = Limits { at_once: Some(9), ..Limits::default() };
    let mut books = books(Budget { quorum: Quorum { members: members.into() }, fleet, ..calm() }, 20, &[]);
    books.runs_on(&node(1), &node(9));
    books.take(&node(9), false, boot(0));
    assert_eq!(kind(&books, 1, boot(0)), None, "it is dark already");
    assert_eq!(kind(&books, 2, boot(0)), Some(LimitKind::Quorum), "it would be the second");
}

/// S14: what has sent nothing is begun when it is tried again, and a window bars that like a beginning.
#[test]
fn a_retry_of_what_sent_nothing_is_begun_then() {
    let fleet = Limits { at_once: Some(9), per_window: Some((1, s(3_600))), ..Limits::default() };
    let mut books = books(Budget { fleet: fleet.clone(), ..calm() }, 9, &[]);
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let mut stored = |books: &mut Books, number: usize, event: Event<'_>, now: u64| {
        player.apply(event);
        books.stored(&NodeRecord { node: node(number), ..player.record().clone() }, boot(now));
    };
    let spent = || Event::GiveUp { reason: Reason::LevelsSpent, detail: String::new() };
    books.take(&node(1), false, boot(0));
    stored(&mut books, 1, spent(), 20_000);
    // Its window is over, and another one begins.
    books.take(&node(2), false, boot(4_000_000));
    stored(&mut books, 1, Event::Retry(person()), 4_001_000);
    assert_eq!(books.recheck(&node(1), boot(4_001_000)).unwrap_err().kind, LimitKind::PerWindow);
    assert_eq!(books.recheck(&node(2), boot(4_001_000)), Ok(()), "what comes after it bars it not");
    stored(&mut books, 1, spent(), 4_002_000);
    stored(&mut books, 1, Event::Retry(person()), 9_000_000);
    assert_eq!(books.recheck(&node(1), boot(9_000_000)), Ok(()));
    assert_eq!(kind(&books, 3, boot(9_000_000)), Some(LimitKind::PerWindow), "it counts for others");
    // Its off is sent: what is proven anew is begun no more.
    stored(
        &mut books,
        1,
        Event::OffIntent { devices: vec![device("bmc")], identified: Vec::new() },
        9_001_000,
    );
    stored(&mut books, 1, spent(), 9_002_000);
    stored(&mut books, 1, Event::Retry(person()), 12_599_000);
    assert_eq!(kind(&books, 3, boot(12_601_000)), None);

    let mut tighter =
        super::books(Budget { fleet: Limits { per_window: None, ..fleet.clone() }, ..calm() }, 9, &[]);
    [1, 2].iter().for_each(|number| tighter.take(&node(*number), false, boot(0)));
    let tighter = super::books(Budget { fleet, ..calm() }, 9, &[]).going_on_from(&tighter);
    assert_eq!(tighter.recheck(&node(1), boot(1_000)), Ok(()));
    assert_eq!(tighter.recheck(&node(2), boot(1_000)).unwrap_err().kind, LimitKind::PerWindow);
}
