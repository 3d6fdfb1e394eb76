//! S11: what was found is stored before it is changed, never overwritten while held, and put back.

use std::collections::BTreeMap;

use crate::device::MaxInFlight;
use crate::event::Event;
use crate::ledger::EffectKind;
use crate::machine::Refused;
use crate::order::Opened;
use crate::record::HoldState;
use crate::support::{Player, device, host, s};

fn ended(player: &mut Player, engaged: &[&str], known: Vec<crate::ids::EffectId>) {
    let engaged = engaged.iter().map(|word| (*word).to_owned()).collect();
    let state = HoldState { engaged, ..HoldState::default() };
    player.apply(Event::HoldEnded { results: vec![(device("bmc"), state)], known });
}

#[test]
fn the_order_carries_what_was_found_and_it_is_stored_first() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let found = BTreeMap::from([("policy".to_owned(), "previous".to_owned())]);
    let opened = player.apply(Event::HoldIntent { found: BTreeMap::from([(device("bmc"), found.clone())]) });
    let [Opened::Hold(order)] = opened.as_slice() else { panic!("{opened:?}") };
    assert_eq!(*order.found(), found);
    assert_eq!(player.open_fence().holds[&device("bmc")].found, found);
    let entry = player.record().ledger.get(order.effect()).unwrap();
    assert_eq!((entry.kind.clone(), entry.life), (EffectKind::Hold(device("bmc")), Some(s(60))));
}

#[test]
fn what_was_found_first_is_never_overwritten_while_held() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.hold_intent("bmc", &[("policy", "previous")]);
    ended(&mut player, &["restore policy always-off"], Vec::new());
    // A successor looks again and finds what we changed.
    player.succeeds();
    player.hold_intent("bmc", &[("policy", "always-off"), ("button", "enabled")]);
    let state = &player.open_fence().holds[&device("bmc")];
    assert_eq!((state.found["policy"].as_str(), state.found["button"].as_str()), ("previous", "enabled"));
    ended(&mut player, &[], Vec::new());
    assert_eq!(player.open_fence().holds[&device("bmc")].found["policy"], "previous");
}

#[test]
fn only_a_hold_whose_end_is_known_is_closed() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let hold = player.hold_intent("bmc", &[("policy", "previous")]);
    ended(&mut player, &["restore policy always-off"], Vec::new());
    assert_eq!(player.open_effects(), ["hold of bmc"]);
    ended(&mut player, &["restore policy always-off"], vec![hold]);
    assert_eq!(player.open_effects(), [] as [&str; 0]);
    assert_eq!(player.open_fence().holds[&device("bmc")].engaged, ["restore policy always-off"]);
}

/// The first of two was not answered, and the second refused: a copy of the first may land still.
#[test]
fn a_hold_that_was_refused_ends_none_but_itself() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.hold_intent("bmc", &[("policy", "previous")]);
    let again = player.hold_intent("bmc", &[("policy", "previous")]);
    assert_eq!(player.open_effects(), ["hold of bmc", "hold of bmc"]);
    ended(&mut player, &[], vec![again]);
    assert_eq!(player.open_effects(), ["hold of bmc"]);
}

#[test]
fn the_end_of_a_hold_ends_nothing_else() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.off_intent(&["bmc"]);
    let off = player.record().ledger.open()[0].id;
    ended(&mut player, &[], vec![off]);
    assert_eq!(player.open_effects(), ["off of bmc"]);
}

#[test]
fn a_hold_belongs_to_a_fence_and_to_a_device_of_it() {
    let hold = |name: &str| Event::HoldIntent { found: BTreeMap::from([(device(name), BTreeMap::new())]) };
    let mut player = Player::new();
    assert!(matches!(player.try_apply(hold("bmc")), Err(Refused::Phase { .. })));
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    assert!(matches!(player.try_apply(hold("pdu")), Err(Refused::NoSuch { what: "device", .. })));
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    assert!(matches!(player.try_apply(hold("bmc")), Err(Refused::Phase { .. })));
}

#[test]
fn undoing_waits_for_the_off_and_the_hold_itself() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.hold_intent("bmc", &[("policy", "previous")]);
    player.off_intent(&["bmc"]);
    player.confirm();
    player.unfence().unwrap();
    let refused = player.try_apply(Event::UnholdIntent).unwrap_err();
    assert_eq!(refused.to_string(), "an open effect bars it: hold of bmc, off of bmc");
    player.close_all();
    let opened = player.apply(Event::UnholdIntent);
    let [Opened::Unhold(order)] = opened.as_slice() else { panic!("{opened:?}") };
    assert_eq!(order.found()["policy"], "previous");
    assert_eq!(player.open_effects(), ["unhold of bmc"]);
    player.apply(Event::Unheld { devices: vec![device("bmc")], detail: String::new() });
    assert!(player.open_fence().holds.is_empty());
    assert_eq!(player.open_effects(), ["unhold of bmc"], "a late copy may still arrive");
}

#[test]
fn the_undoing_of_a_hold_lives_as_long_as_an_on() {
    let lives = MaxInFlight { off: Some(s(63)), on: Some(s(126)) };
    let mut bmc = host("bmc");
    bmc.max_in_flight = lives;
    for lives in [BTreeMap::new(), BTreeMap::from([(device("bmc"), lives)])] {
        let mut player = Player::fencing(&[&[bmc.clone()]], &[]);
        player.hold_intent("bmc", &[("policy", "previous")]);
        assert_eq!(player.record().ledger.open()[0].life, Some(s(63)), "a hold costs a node that runs again");
        player.off_intent(&["bmc"]);
        player.confirm();
        player.unfence().unwrap();
        player.close_all();
        let event = Box::new(Event::UnholdIntent);
        player.apply(Event::InSessions { event, sessions: BTreeMap::new(), lives });
        assert_eq!(
            player.record().ledger.open()[0].life,
            Some(s(126)),
            "a copy that comes late takes a hold away"
        );
    }
}

#[test]
fn a_hold_is_undone_only_while_unfencing() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    let undone = || Event::Unheld { devices: vec![device("bmc")], detail: String::new() };
    for _ in 0..2 {
        assert!(matches!(player.try_apply(Event::UnholdIntent), Err(Refused::Phase { .. })));
        assert!(matches!(player.try_apply(undone()), Err(Refused::Phase { .. })));
        if player.phase() == "fencing" {
            player.confirm();
        }
    }
}

#[test]
fn nobody_is_back_while_a_hold_is_not_undone() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.hold_intent("bmc", &[("policy", "previous")]);
    player.confirm();
    player.close_all();
    player.unfence().unwrap();
    assert!(player.back().is_err(), "the board would stay off at the next loss of power");
    player.apply(Event::Unheld { devices: vec![device("bmc")], detail: "by hand".to_owned() });
    player.back().unwrap();
}
