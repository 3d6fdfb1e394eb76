//! From the intent to the off: opening, levels, offs, losses, aborts.

use std::collections::{BTreeMap, BTreeSet};

use crate::device::{DeviceSpec, MaxInFlight};
use crate::event::Event;
use crate::ids::Generation;
use crate::ledger::EffectKind;
use crate::machine::{Refused, may_be_drilled};
use crate::order::Opened;
use crate::outcome::{Outcome, Reason};
use crate::record::{Bringing, Cause, Phase, Then};
use crate::support::{Player, device, fence_id, holder, host, ms, person, request, s, supply, topology};

fn abort(player: &mut Player) -> Result<(), Refused> {
    player.try_apply(Event::Abort { why: "it recovered".to_owned() }).map(drop)
}

#[test]
fn the_intent_is_stored_with_the_caller_s_hold_and_sends_nothing() {
    let mut player = Player::new();
    let opened = player.apply(Event::Fence(Box::new(request(1, &[&[host("bmc")]], &["detach"]))));
    assert!(opened.is_empty());
    let record = player.record();
    assert_eq!((record.phase.clone(), record.generation), (Phase::Fencing, Generation(1)));
    assert_eq!(record.holds["ops"].reason, "it is dead");
    let fence = player.open_fence();
    assert_eq!((fence.id, fence.generation, fence.cause), (fence_id(1), Generation(1), Cause::Asked));
    assert!(!fence.off_sent && fence.switched_off.is_empty() && fence.evidence.is_none());
}

#[test]
fn a_second_fence_is_refused_while_one_is_open() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    let again = || Event::Fence(Box::new(request(2, &[&[host("bmc")]], &[])));
    assert!(matches!(player.try_apply(again()), Err(Refused::Phase { phase: "fencing", .. })));
    player.confirm();
    assert!(matches!(player.try_apply(again()), Err(Refused::Phase { phase: "fenced", .. })));
    player.give_up(Reason::ReleaseDeadline);
    assert!(matches!(player.try_apply(again()), Err(Refused::Phase { phase: "needs_operator", .. })));
}

#[test]
fn an_off_stands_in_the_ledger_before_it_can_be_sent() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let opened = player.off_intent(&["bmc"]);
    let [Opened::Off(order)] = opened.as_slice() else { panic!("{opened:?}") };
    let entry = player.record().ledger.get(order.effect()).unwrap();
    assert_eq!(entry.kind, EffectKind::Off(device("bmc")));
    assert_eq!((entry.generation, entry.term), (Generation(1), player.leadership.term()));
    assert_eq!(entry.life, Some(s(60)));
    assert_eq!((order.generation(), order.device()), (Generation(1), &device("bmc")));
    assert!(player.open_fence().off_sent);
    assert_eq!(player.open_fence().switched_off, BTreeSet::from([device("bmc")]));
}

#[test]
fn the_same_off_is_sent_again_under_its_old_entry() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.off_intent(&["bmc"]);
    player.off_intent(&["bmc"]);
    assert_eq!(player.open_effects(), ["off of bmc"]);
    player.succeeds();
    player.off_intent(&["bmc"]);
    assert_eq!(player.open_effects(), ["off of bmc", "off of bmc"], "another leadership enters its own");
}

#[test]
fn an_off_knows_what_the_hold_found_and_lives_as_long_as_its_far_side_says() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.hold_intent("bmc", &[("policy", "previous")]);
    let off = Event::OffIntent { devices: vec![device("bmc")], identified: Vec::new() };
    let now = MaxInFlight { off: Some(s(3600)), on: Some(s(1)) };
    let lives = BTreeMap::from([(device("bmc"), now)]);
    let opened = player.apply(Event::InSessions { event: Box::new(off), sessions: BTreeMap::new(), lives });
    let [Opened::Off(order)] = opened.as_slice() else { panic!("{opened:?}") };
    assert_eq!(order.found()["policy"], "previous");
    assert_eq!(order.life(), Some(s(3600)), "as the far side says");
    assert_eq!(player.record().ledger.get(order.effect()).unwrap().life, Some(s(3600)));

    let on = || Event::OnIntent { devices: vec![device("bmc")] };
    for (now, life) in [(Some(s(1)), Some(s(1))), (Some(s(90)), Some(s(90))), (None, None)] {
        let mut player = Player::unfencing(&[&[host("bmc")]]);
        let lives = BTreeMap::from([(device("bmc"), MaxInFlight { off: now, on: now })]);
        player.apply(Event::InSessions { event: Box::new(on()), sessions: BTreeMap::new(), lives });
        assert_eq!(player.record().ledger.open()[0].life, life, "as the far side says: {now:?}");
    }
}

/// The copy that is sent now may live for as long as its far side says now; what is open already is not shortened by that.
#[test]
fn an_off_that_is_sent_again_lives_as_long_as_the_longest_of_its_copies() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    for (now, life) in
        [(Some(30), Some(30)), (Some(90), Some(90)), (Some(10), Some(90)), (None, None), (Some(10), None)]
    {
        let off = Box::new(Event::OffIntent { devices: vec![device("bmc")], identified: Vec::new() });
        let lives = BTreeMap::from([(device("bmc"), MaxInFlight { off: now.map(s), on: Some(s(1)) })]);
        let opened = player.apply(Event::InSessions { event: off, sessions: BTreeMap::new(), lives });
        let [Opened::Off(order)] = opened.as_slice() else { panic!("{opened:?}") };
        let stored = player.record().ledger.open()[0].life;
        assert_eq!(
            (order.life(), stored, player.open_effects().len()),
            (life.map(s), life.map(s), 1),
            "{now:?}"
        );
    }
}

#[test]
fn an_off_of_a_device_that_the_fence_does_not_know_is_refused() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let off = Event::OffIntent { devices: vec![device("pdu")], identified: Vec::new() };
    let refused = player.try_apply(off).unwrap_err();
    assert_eq!(refused.to_string(), "there is no device \"pdu\" here; there is: bmc");
    assert_eq!(player.open_effects(), [] as [&str; 0]);
}

#[test]
fn an_off_belongs_to_an_open_fence() {
    let off = || Event::OffIntent { devices: vec![device("bmc")], identified: Vec::new() };
    let mut player = Player::new();
    assert!(matches!(player.try_apply(off()), Err(Refused::Phase { phase: "normal", .. })));
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    assert!(matches!(player.try_apply(off()), Err(Refused::Phase { phase: "unfencing", .. })));
    player.give_up(Reason::UnboundedEffect);
    assert!(matches!(player.try_apply(off()), Err(Refused::ForeignProof(_))), "the unfence ended that fence");
}

#[test]
fn levels_are_tried_in_order_and_again_and_then_a_person_is_asked() {
    let mut player = Player::fencing(&[&[host("bmc")], &[supply("a"), supply("b")]], &[]);
    let next = || Event::NextLevel { why: "silent".to_owned(), gives_way: false };
    player.apply(next());
    assert_eq!(player.open_fence().level, 1);
    let told = |player: &Player| player.open_fence().moments.len();
    let before = told(&player);
    for level in [0, 1, 0, 1] {
        player.apply(next());
        assert_eq!(player.open_fence().level, level);
    }
    assert_eq!(told(&player), before + 1, "that none answers is told once");
    player.give_up(Reason::LevelsSpent);
    assert_eq!(player.record().phase, Phase::NeedsOperator(Reason::LevelsSpent));
    assert_eq!(player.open_fence().outcome, Some(Outcome::NeedsOperator(Reason::LevelsSpent)));
    assert!(player.record().holds.contains_key("ops"), "it is kept off");
    assert!(matches!(player.try_apply(next()), Err(Refused::Phase { .. })));
}

/// S14: others have the place of a fence that reached nobody in a whole round, and of no other.
#[test]
fn a_place_is_given_away_at_the_end_of_a_round_that_reached_nobody() {
    let gave_way = |rounds: &[bool], sent: bool| {
        let mut player = Player::fencing(&[&[host("bmc")], &[host("agent")]], &[]);
        if sent {
            player.off_intent(&["bmc"]);
        }
        for gives_way in rounds {
            player.apply(Event::NextLevel { why: "silent".to_owned(), gives_way: *gives_way });
        }
        player.open_fence().gave_way
    };
    assert!(gave_way(&[false, true], false));
    assert!(!gave_way(&[false, false], false), "a device was reached");
    assert!(!gave_way(&[true], false), "the next level has its turn");
    assert!(!gave_way(&[false, true], true), "an off was sent");
}

#[test]
fn a_loss_is_stored_once_and_only_of_a_device_that_there_is() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    for _ in 0..2 {
        player.apply(Event::Lost { device: device("bmc") });
    }
    assert_eq!(player.open_fence().lost, BTreeSet::from([device("bmc")]));
    assert_eq!(player.open_fence().moments.len(), 2, "opened, and lost once");
    assert!(player.try_apply(Event::Lost { device: device("pdu") }).is_err());
}

#[test]
fn before_the_first_off_it_can_be_aborted_and_nothing_is_switched_on() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.hold_intent("bmc", &[("policy", "previous")]);
    abort(&mut player).unwrap();
    assert_eq!((player.phase(), player.record().bringing), ("unfencing", Bringing::Abort));
    assert_eq!(player.record().generation, Generation(2));
    assert_eq!(player.open_fence().outcome, Some(Outcome::AbortedRecovered));
    assert!(player.record().holds.is_empty());
    player.close_all();
    assert!(player.on_intent(&["bmc"]).is_err(), "no on after an abort");
    player.apply(Event::UnholdIntent);
    player.apply(Event::Unheld { devices: vec![device("bmc")], detail: String::new() });
    player.close_all();
    player.back().unwrap();
    assert_eq!(player.phase(), "normal");
    assert_eq!(player.record().back_since, None, "it was never gone, and has nothing to cool down from");
}

#[test]
fn one_whose_levels_or_time_are_spent_is_aborted_too_and_no_other_that_waits_for_a_person() {
    for (reason, ends) in [
        (Reason::LevelsSpent, true),
        (Reason::Deadline, true),
        (Reason::IdentityMismatch, false),
        (Reason::Replaced, false),
    ] {
        let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
        player.give_up(reason);
        assert_eq!(abort(&mut player).is_ok(), ends, "{reason:?}");
        assert_eq!(player.phase(), if ends { "unfencing" } else { "needs_operator" });
        let mut barred = Player::fencing(&[&[host("bmc")]], &[]);
        barred.give_up(reason);
        let bar = Event::Bar { reason: Reason::Paused, why: "a pause".to_owned() };
        assert!(barred.try_apply(bar).is_err(), "{reason:?}: what a person decides is not barred");
    }
    let mut sent = Player::fencing(&[&[host("bmc")]], &[]);
    sent.off_intent(&["bmc"]);
    sent.give_up(Reason::LevelsSpent);
    assert_eq!(abort(&mut sent), Err(Refused::OffSent));
}

#[test]
fn a_pause_or_a_limit_that_comes_before_the_first_off_undoes_the_hold_and_one_after_it_changes_nothing() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.hold_intent("bmc", &[("policy", "previous")]);
    let bar = || Event::Bar { reason: Reason::Paused, why: "the switch is being replaced".to_owned() };
    player.apply(bar());
    assert_eq!((player.phase(), player.record().bringing), ("unfencing", Bringing::Abort));
    assert_eq!(player.open_fence().outcome, Some(Outcome::Blocked(Reason::Paused)));
    let mut sent = Player::fencing(&[&[host("bmc")]], &["detach"]);
    sent.apply(Event::OffIntent { devices: vec![device("bmc")], identified: Vec::new() });
    assert_eq!(sent.try_apply(bar()).map(drop), Err(Refused::OffSent));
}

#[test]
fn once_an_off_was_sent_the_fence_runs_to_its_end() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.off_intent(&["bmc"]);
    assert_eq!(abort(&mut player), Err(Refused::OffSent));
    player.close_all();
    assert_eq!(abort(&mut player), Err(Refused::OffSent), "also after its end");
}

#[test]
fn a_fence_that_began_to_release_on_a_person_s_word_is_not_aborted() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.attest(&[player.look("bmc", None)]).unwrap();
    player.attempt("detach");
    player.apply(Event::Unproven { why: "for the test".to_owned(), seen: true });
    assert!(!player.open_fence().off_sent);
    assert!(abort(&mut player).is_err(), "volumes may be gone already");
}

#[test]
fn a_breach_is_not_aborted() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.attest(&[player.look("bmc", None)]).unwrap();
    player.breach(2, "bmc").unwrap();
    assert!(abort(&mut player).is_err(), "nobody unfenced it");
}

#[test]
fn a_fence_that_arrives_during_an_unfence_wins_and_inherits_what_is_not_undone() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.hold_intent("bmc", &[("policy", "previous"), ("button", "enabled")]);
    player.apply(Event::Lost { device: device("bmc") });
    player.off_intent(&["bmc"]);
    player.apply(Event::Attest { person: crate::support::person(), looks: &[player.look("bmc", None)] });
    player.close_all();
    player.unfence().unwrap();
    player.on_intent(&["bmc"]).unwrap();

    player.fence(request(2, &[&[host("bmc")]], &["detach"]));
    assert_eq!((player.phase(), player.record().generation), ("fencing", Generation(3)));
    let fence = player.open_fence();
    assert_eq!(fence.id, fence_id(2));
    assert_eq!(fence.holds[&device("bmc")].found["policy"], "previous");
    assert_eq!(fence.switched_off, BTreeSet::from([device("bmc")]));
    assert!(fence.off_sent, "an abort would leave the node off without a fence");
    assert_eq!(fence.lost, BTreeSet::from([device("bmc")]), "it was not seen on since it was lost");
    assert!(fence.evidence.is_none() && fence.attestation.is_none());
    assert_eq!(player.open_effects(), ["on of bmc"], "the on is waited out");
    player.hold_intent("bmc", &[("policy", "always-off"), ("watchdog", "timer 60")]);
    let found = &player.open_fence().holds[&device("bmc")].found;
    assert_eq!((found["policy"].as_str(), found["watchdog"].as_str()), ("previous", "timer 60"));
}

/// The settings changed in the middle of an unfence: what is still to be brought back must not be forgotten.
#[test]
fn a_fence_that_wins_keeps_the_topology_while_a_device_of_it_is_not_undone() {
    let both: [&[_]; 2] = [&[host("bmc")], &[supply("a"), supply("b")]];
    let mut player = Player::fencing(&both, &[]);
    player.off_intent(&["bmc", "a", "b"]);
    player.confirm();
    player.close_all();
    player.unfence().unwrap();
    player.fence(request(2, &[&[host("bmc")]], &[]));
    assert!(player.open_fence().topology.device(&device("b")).is_some());
    player.confirm();
    player.unfence().unwrap();
    assert!(player.on_intent(&["bmc"]).is_err() && player.back().is_err(), "its supplies are off");
    player.on_intent(&["a", "b"]).unwrap();
}

#[test]
fn a_fence_from_power_on_failed_is_a_new_one() {
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    player.apply(Event::OnFailed { detail: "not seen".to_owned() });
    player.fence(request(2, &[&[host("bmc")]], &[]));
    assert_eq!((player.phase(), player.record().generation), ("fencing", Generation(3)));
}

#[test]
fn the_ended_fence_goes_into_the_history_with_its_successor() {
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    player.clock.advance(ms(5));
    player.fence(request(2, &[&[host("bmc")]], &[]));
    let written = player.store.last_write().fences;
    let fences: Vec<_> = written.iter().map(|fence| (fence.id, fence.ended_at.is_some())).collect();
    assert_eq!(fences, [(fence_id(1), true), (fence_id(2), false)]);
}

#[test]
fn then_power_on_marks_the_hold() {
    let mut player = Player::new();
    let power_on = holder("ops", Then::PowerOn);
    player
        .fence(crate::event::FenceRequest { holder: power_on, ..request(1, &[&[host("bmc")]], &["detach"]) });
    assert!(player.record().holds["ops"].drop_when_released);
}

#[test]
fn a_drill_lets_nothing_go_by_supplies_of_which_nobody_knows_what_they_feed() {
    let unknown = DeviceSpec { verified: false, ..supply("b") };
    let levels: &[&[DeviceSpec]] = &[&[host("bmc")], &[supply("a"), unknown]];
    let mut player = Player::new();
    let mut drill = |levels, releases| player.try_apply(Event::Drill(Box::new(request(1, levels, releases))));
    assert_eq!(drill(levels, &["detach"]).unwrap_err(), Refused::WiringUnknown(vec!["b".to_owned()]));
    drill(levels, &[]).unwrap();
    assert_eq!(player.open_fence().cause, Cause::Drill);
    assert!(matches!(
        may_be_drilled(&player.record().phase, &topology(levels), false),
        Err(Refused::Phase { phase: "fencing", .. })
    ));
    let mut player = Player::new();
    let known: &[&[DeviceSpec]] = &[&[host("bmc")], &[supply("a")]];
    player.apply(Event::Drill(Box::new(request(1, known, &["detach"]))));
    assert_eq!(player.phase(), "fencing");
}

/// Of a node that a person vouched for no off was sent: the fence that comes while it is brought back can be ended still.
#[test]
fn what_ends_before_its_off_in_the_middle_of_an_unfence_goes_on_with_it() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.attest(&[player.look("bmc", None)]).unwrap();
    player.complete("detach");
    player.close_all();
    for number in 2..5 {
        if player.phase() == "released" {
            player.unfence().unwrap();
        }
        assert_eq!((player.phase(), player.record().bringing), ("unfencing", Bringing::PowerOn));
        player.fence(request(number, &[&[host("bmc")]], &["detach", "inform"]));
        let fence = player.open_fence();
        assert!(!fence.off_sent && !fence.all_released(), "a fence like any other");
        match number {
            2 => abort(&mut player).unwrap(),
            _ => drop(player.apply(Event::Bar { reason: Reason::Paused, why: "paused".to_owned() })),
        }
    }
    assert!(player.open_fence().sent_nothing() && player.record().holds.is_empty());
    player.on_intent(&["bmc"]).unwrap();
    player.close_all();
    player.back().unwrap();

    // Of a node that was not fenced before it nothing is switched on.
    player.fence(request(5, &[&[host("bmc")]], &["detach"]));
    abort(&mut player).unwrap();
    assert_eq!(player.record().bringing, Bringing::Abort);
}

/// Whoever placed a hold by a call of its own was told that it stands until it is dropped by name.
#[test]
fn a_fence_that_somebody_holds_by_a_call_of_their_own_does_not_end_before_its_off() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.attest(&[player.look("bmc", None)]).unwrap();
    player.complete("detach");
    player.close_all();
    player.unfence().unwrap();
    player.fence(request(2, &[&[host("bmc")]], &["detach"]));
    player.apply(Event::Hold { holder: "hands".to_owned(), person: person() });
    let bar = || Event::Bar { reason: Reason::Paused, why: "paused".to_owned() };
    assert_eq!(abort(&mut player), Err(Refused::Held(vec!["hands".to_owned()])));
    assert_eq!(player.try_apply(bar()).map(drop), Err(Refused::Held(vec!["hands".to_owned()])));
    // A fence of the same name is no word against that.
    player.apply(crate::support::join(holder("hands", Then::PowerOn), None));
    assert_eq!(abort(&mut player), Err(Refused::Held(vec!["hands".to_owned()])));
    assert_eq!(player.phase(), "fencing");
    assert!(player.record().holds.contains_key("hands"));
}
