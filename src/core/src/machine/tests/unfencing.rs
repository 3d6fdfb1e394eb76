//! S7: power on in phase Unfencing alone, under a new generation, with no hold, nothing open, everything released.

use crate::event::Event;
use crate::ids::Generation;
use crate::machine::Refused;
use crate::order::Opened;
use crate::outcome::{Outcome, Reason};
use crate::record::{Bringing, Then};
use crate::support::{Player, device, holder, host, person, release, supply};

#[test]
fn unfence_drops_the_last_hold_under_a_generation_of_its_own() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.confirm();
    player.unfence().unwrap();
    assert_eq!((player.phase(), player.record().generation), ("unfencing", Generation(2)));
    assert_eq!(player.open_fence().generation, Generation(1), "the fence that was ended by it");
}

#[test]
fn unfence_during_a_fence_is_refused() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    assert!(matches!(player.unfence(), Err(Refused::Phase { phase: "fencing", .. })));
    player.confirm();
    assert!(matches!(player.unfence(), Err(Refused::Phase { phase: "fenced", .. })));
    player.give_up(Reason::ReleaseDeadline);
    assert!(matches!(player.unfence(), Err(Refused::Phase { phase: "needs_operator", .. })));
    let mut player = Player::new();
    assert!(matches!(player.unfence(), Err(Refused::Phase { phase: "normal", .. })));
}

#[test]
fn the_on_stands_in_the_ledger_and_is_still_locked() {
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    let opened = player.on_intent(&["bmc"]).unwrap();
    let [Opened::On(pending)] = opened.as_slice() else { panic!("{opened:?}") };
    assert_eq!((pending.generation(), pending.device()), (Generation(2), &device("bmc")));
    assert_eq!(player.open_effects(), ["on of bmc"]);
}

#[test]
fn no_on_in_any_other_phase() {
    let mut player = Player::new();
    assert!(matches!(player.on_intent(&["bmc"]), Err(Refused::Phase { .. })));
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    assert!(matches!(player.on_intent(&["bmc"]), Err(Refused::Phase { .. })));
    player.confirm();
    assert!(matches!(player.on_intent(&["bmc"]), Err(Refused::Phase { .. })));
    player.complete("detach");
    assert!(matches!(player.on_intent(&["bmc"]), Err(Refused::Phase { .. })));
    player.close_all();
    player.unfence().unwrap();
    player.apply(Event::OnFailed { detail: String::new() });
    assert!(matches!(player.on_intent(&["bmc"]), Err(Refused::Phase { phase: "power_on_failed", .. })));
}

#[test]
fn no_on_while_an_off_a_hold_or_a_release_is_open() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.off_intent(&["bmc"]);
    player.hold_intent("bmc", &[("policy", "previous")]);
    player.confirm();
    let attempt = player.attempt("detach");
    player.progress("detach", crate::record::ReleaseStage::Complete, None);
    player.unfence().unwrap();
    let refused = player.on_intent(&["bmc"]).unwrap_err();
    assert_eq!(refused.to_string(), "an open effect bars it: off of bmc, hold of bmc, release detach");
    player.apply(Event::Closed { effects: vec![attempt], why: "answered" });
    assert!(player.on_intent(&["bmc"]).is_err());
    player.close_all();
    player.on_intent(&["bmc"]).unwrap();
}

#[test]
fn no_on_while_a_hold_keeps_it_off_or_a_release_is_not_over() {
    // No path leads here; the gate holds all the same.
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    let kept = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.stored.record.holds = kept.record().holds.clone();
    let on = || Event::OnIntent { devices: vec![device("bmc")] };
    assert!(matches!(player.step(on()), Err(Refused::Held(holders)) if holders == ["ops"]));
    player.stored.record.holds.clear();
    player.stored.record.fence.as_mut().unwrap().releases = kept.open_fence().releases.clone();
    assert!(matches!(player.step(on()), Err(Refused::NotReleased(names)) if names == ["detach"]));
}

#[test]
fn supplies_come_first() {
    let mut player = Player::fencing(&[&[host("bmc")], &[supply("a"), supply("b")]], &[]);
    player.off_intent(&["bmc", "a", "b"]);
    player.confirm();
    player.close_all();
    player.unfence().unwrap();
    assert!(matches!(player.on_intent(&["bmc"]), Err(Refused::Phase { .. })));
    assert!(matches!(player.on_intent(&["a", "bmc"]), Err(Refused::Phase { .. })));
    player.on_intent(&["a", "b"]).unwrap();
    player.apply(Event::SuppliesOn { devices: vec![device("a"), device("bmc")] });
    assert!(player.open_fence().switched_off.contains(&device("bmc")), "bmc is no supply");
    assert!(player.on_intent(&["bmc"]).is_err(), "b is still off");
    assert!(player.back().is_err(), "b is still off");
    player.apply(Event::SuppliesOn { devices: vec![device("b")] });
    player.on_intent(&["bmc"]).unwrap();
    player.close_all();
    player.back().unwrap();
}

#[test]
fn an_on_of_a_device_that_the_fence_does_not_know_is_refused() {
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    assert!(matches!(player.on_intent(&["bmc", "other"]), Err(Refused::NoSuch { what: "device", .. })));
    assert_eq!(player.open_effects(), [] as [&str; 0]);
}

#[test]
fn seen_on_it_is_back_and_nothing_of_the_fence_remains() {
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    player.on_intent(&["bmc"]).unwrap();
    player.clock.advance(crate::support::s(30));
    player.back().unwrap();
    let record = player.record();
    assert_eq!((player.phase(), record.generation, &record.fence), ("normal", Generation(2), &None));
    assert!(record.back_since.is_some());
    assert_eq!(player.open_effects(), ["on of bmc"], "a late copy may still arrive: it bars the next proof");
}

#[test]
fn nobody_is_back_while_an_off_may_still_arrive() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.off_intent(&["bmc"]);
    player.confirm();
    player.unfence().unwrap();
    assert!(matches!(player.back(), Err(Refused::OpenEffects(_))));
}

#[test]
fn back_comes_only_from_unfencing() {
    let mut player = Player::new();
    assert!(player.back().is_err());
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    assert!(player.back().is_err());
    player.confirm();
    assert!(player.back().is_err());
}

#[test]
fn not_seen_on_in_time_and_tried_again() {
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    player.apply(Event::OnFailed { detail: "not seen".to_owned() });
    assert_eq!(player.phase(), "power_on_failed");
    player.apply(Event::Retry(person()));
    assert_eq!(
        (player.phase(), player.record().generation),
        ("unfencing", Generation(2)),
        "the same generation"
    );
    player.apply(Event::OnFailed { detail: "not seen".to_owned() });
    player.unfence().unwrap();
    assert_eq!((player.phase(), player.record().generation), ("unfencing", Generation(3)));
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    assert!(player.try_apply(Event::OnFailed { detail: String::new() }).is_err());
}

#[test]
fn a_hold_is_dropped_by_name_and_the_others_keep_it_off() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.apply(crate::support::join(holder("b", Then::StayOff), None));
    player.confirm();
    player.unfence().unwrap();
    assert_eq!((player.phase(), player.record().generation), ("released", Generation(1)));
    assert!(matches!(player.unfence(), Err(Refused::NoSuchHold { .. })));
    player.apply(Event::Unfence { holder: "b".to_owned(), person: person() });
    assert_eq!((player.phase(), player.record().bringing), ("unfencing", Bringing::PowerOn));
    assert_eq!(player.open_fence().outcome, Some(Outcome::Fenced { released: true }));
}

#[test]
fn an_effect_that_nothing_bounds_asks_for_a_person_instead_of_an_on() {
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    player.give_up(Reason::UnboundedEffect);
    assert!(matches!(player.on_intent(&["bmc"]), Err(Refused::Phase { .. })));
    assert_eq!(player.open_fence().outcome, Some(Outcome::Fenced { released: true }), "as that fence ended");
    player.apply(Event::Retry(person()));
    assert_eq!(player.phase(), "unfencing");
}

/// A stand-down whose outlet `pdu` did not come on again; nothing of its release began.
fn stood_down_without_its_outlet() -> Player {
    let mut player = Player::fencing(&[&[host("bmc")], &[supply("pdu")]], &["detach"]);
    player.off_intent(&["bmc", "pdu"]);
    player.give_up(Reason::LevelsSpent);
    player.apply(Event::StandDown(person()));
    player.close_all();
    player.on_intent(&["pdu"]).unwrap();
    player.apply(Event::OnFailed { detail: "pdu not seen on".to_owned() });
    player
}

#[test]
fn an_unfence_of_what_was_stood_down_is_a_stand_down_still() {
    let mut player = stood_down_without_its_outlet();
    player.unfence().unwrap();
    let record = player.record();
    assert_eq!(
        (player.phase(), record.generation, record.bringing),
        ("unfencing", Generation(3), Bringing::StandDown)
    );
    player.on_intent(&["pdu"]).unwrap();
    player.apply(Event::SuppliesOn { devices: vec![device("pdu")] });
    assert!(matches!(player.on_intent(&["bmc"]), Err(Refused::Phase { .. })), "no on of the host");
}

#[test]
fn a_supply_that_never_comes_on_is_given_up_by_a_stand_down() {
    let mut player = stood_down_without_its_outlet();
    player.apply(Event::StandDown(person()));
    let record = player.record();
    assert_eq!(
        (player.phase(), record.generation, record.bringing),
        ("unfencing", Generation(3), Bringing::StandDown)
    );
    let fence = player.open_fence();
    assert_eq!(fence.switched_off, [device("bmc")].into(), "the host's own off is no supply's");
    let last = &fence.moments.last().unwrap().what;
    assert!(last.contains("pdu"), "{last}");
    player.close_all();
    player.back().unwrap();
    assert_eq!(player.store.last_write().fences[0].outcome, Some(Outcome::StoodDown));
}

#[test]
fn what_never_began_is_given_up_where_the_way_back_failed() {
    let mut player = stood_down_without_its_outlet();
    let retire = |player: &mut Player| {
        let settings = Some("its devices".to_owned());
        player.try_apply(Event::Retire { person: person(), settings, left: Vec::new() }).map(drop)
    };
    assert_eq!(retire(&mut player), Err(Refused::NotReleased(vec!["detach".to_owned()])));
    player.apply(Event::Abandon { release: release("detach"), person: person(), orphan: false });
    assert_eq!((player.phase(), player.record().bringing), ("power_on_failed", Bringing::StandDown));
    retire(&mut player).unwrap();
    assert_eq!(player.phase(), "retired");
}

/// The volumes of such a node are let go for as long as that stands, and nobody's word that the node runs ends it (K7).
#[test]
fn no_stand_down_of_what_was_not_let_on() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.confirm();
    player.complete("detach");
    player.close_all();
    player.unfence().unwrap();
    player.apply(Event::Barred { release: release("detach"), is: true });
    player.apply(Event::OnFailed { detail: "not let on".to_owned() });
    let refused = player.try_apply(Event::StandDown(person())).unwrap_err();
    assert!(refused.to_string().contains("somebody else"), "{refused}");
    player.apply(Event::Barred { release: release("detach"), is: false });
    player.apply(Event::StandDown(person()));
    assert_eq!((player.phase(), player.record().bringing), ("unfencing", Bringing::StandDown));
}
