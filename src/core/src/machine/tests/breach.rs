//! S11: found on although nobody unfenced it.

use std::collections::BTreeSet;

use crate::device::Identity;
use crate::event::Event;
use crate::ids::Generation;
use crate::machine::Refused;
use crate::order::Opened;
use crate::outcome::{Outcome, Reason};
use crate::record::{Cause, HoldState, ReleaseStage};
use crate::support::{Bench, Player, device, fence_id, host, person, release, request};

#[test]
fn a_new_fence_is_opened_under_a_new_generation_and_everything_is_released_anew() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["first", "second", "third"]);
    player.hold_intent("bmc", &[("policy", "previous")]);
    player.off_intent(&["bmc"]);
    player.apply(Event::Lost { device: device("bmc") });
    player.confirm();
    player.complete("first");
    player.apply(Event::Abandon { release: release("second"), person: person(), orphan: false });
    player.attempt("third");
    player.breach(2, "bmc").unwrap();

    assert_eq!((player.phase(), player.record().generation), ("fencing", Generation(2)));
    assert_eq!(player.record().breaches, 1);
    let fence = player.open_fence();
    assert_eq!((fence.id, fence.generation, fence.cause), (fence_id(2), Generation(2), Cause::Breach));
    let stages: Vec<_> = fence.releases.iter().map(|release| (release.stage, release.attempts)).collect();
    assert_eq!(
        stages,
        [(ReleaseStage::Pending, 0), (ReleaseStage::Abandoned, 0), (ReleaseStage::Pending, 0)],
        "what a person gave up stays given up"
    );
    let unfinished: Vec<bool> = fence.releases.iter().map(|release| release.unfinished).collect();
    assert_eq!(unfinished, [false, false, true], "what was begun and not seen complete is not forgotten");
    assert_eq!(fence.holds[&device("bmc")].found["policy"], "previous");
    assert!(fence.off_sent && fence.switched_off.contains(&device("bmc")));
    assert!(fence.evidence.is_none() && fence.attestation.is_none() && fence.outcome.is_none());
    assert_eq!(fence.lost, BTreeSet::from([device("bmc")]), "On must be read of that very device");
    assert!(player.record().holds.contains_key("ops"), "and the hold stays");
    assert!(player.open_effects().contains(&"release third".to_owned()), "the open attempt is waited out");
}

/// The device's own list of the stops that are older than the first off: those of the fence before are older than the next one's.
#[test]
fn what_was_only_looked_at_is_looked_at_anew_and_what_is_put_back_is_not() {
    let next_fence: [fn(&mut Player); 2] = [
        |player| player.breach(2, "bmc").unwrap(),
        |player| {
            player.close_all();
            player.unfence().unwrap();
            player.fence(request(2, &[&[host("bmc")]], &[]));
        },
    ];
    for begin in next_fence {
        let mut player = Player::fencing(&[&[host("bmc")]], &[]);
        player.hold_intent("bmc", &[("policy", "previous"), ("seen:stops", "a")]);
        player.off_intent(&["bmc"]);
        player.confirm();
        begin(&mut player);
        player.hold_intent("bmc", &[("policy", "always-off"), ("seen:stops", "a b")]);
        player.hold_intent("bmc", &[("policy", "always-off"), ("seen:stops", "a b c")]);
        let opened = player.off_intent(&["bmc"]);
        let [Opened::Off(order)] = opened.as_slice() else { panic!("{opened:?}") };
        assert_eq!(order.found()["policy"], "previous");
        assert_eq!(order.found()["seen:stops"], "a b", "before the first off of this generation");
    }
}

#[test]
fn the_fence_before_keeps_the_outcome_that_its_callers_were_told() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.confirm();
    player.breach(2, "bmc").unwrap();
    let written = player.store.last_write().fences;
    let ended = &written[0];
    assert_eq!((ended.id, &ended.outcome), (fence_id(1), &Some(Outcome::Fenced { released: true })));
    assert!(ended.ended_at.is_some());
}

#[test]
fn from_fenced_released_and_needs_operator_only() {
    let mut player = Player::new();
    assert!(matches!(player.breach(2, "bmc"), Err(Refused::Phase { .. })));
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    assert!(matches!(player.breach(2, "bmc"), Err(Refused::Phase { phase: "fencing", .. })));
    player.confirm();
    player.give_up(Reason::ReleaseDeadline);
    player.breach(2, "bmc").unwrap();
    player.confirm();
    player.complete("detach");
    player.breach(3, "bmc").unwrap();
    assert_eq!(player.record().breaches, 2);
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    assert!(matches!(player.breach(2, "bmc"), Err(Refused::Phase { phase: "unfencing", .. })));
    player.give_up(Reason::UnboundedEffect);
    assert!(matches!(player.breach(2, "bmc"), Err(Refused::ForeignProof(_))), "somebody did unfence it");
}

/// Its callers were told that it is off, whoever proves it anew.
#[test]
fn while_it_is_proven_anew_it_is_in_breach_too() {
    for waits_for_a_person in [false, true] {
        let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
        player.off_intent(&["bmc"]);
        player.confirm();
        player
            .apply(Event::Unproven { why: "this leadership has not proven it yet".to_owned(), seen: false });
        assert_eq!((player.phase(), player.open_fence().evidence.is_none()), ("fencing", true));
        if waits_for_a_person {
            player.give_up(Reason::LevelsSpent);
        }
        player.breach(2, "bmc").unwrap();
        assert_eq!((player.phase(), player.open_fence().cause), ("fencing", Cause::Breach));
        let told = if waits_for_a_person {
            Outcome::NeedsOperator(Reason::LevelsSpent)
        } else {
            Outcome::Fenced { released: false }
        };
        assert_eq!(player.store.last_write().fences[0].outcome, Some(told));
        // What was proven was so in another generation: the next On is that of the breach itself.
        assert!(matches!(player.breach(3, "bmc"), Err(Refused::Phase { phase: "fencing", .. })));
    }
}

#[test]
fn a_node_that_was_never_confirmed_is_not_in_breach() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.off_intent(&["bmc"]);
    player.give_up(Reason::LevelsSpent);
    assert!(player.breach(2, "bmc").is_err(), "it never went off");
}

#[test]
fn a_node_that_came_back_in_order_begins_to_count_anew() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.confirm();
    player.breach(2, "bmc").unwrap();
    player.confirm();
    player.unfence().unwrap();
    player.back().unwrap();
    assert_eq!(player.record().breaches, 0);
}

/// Proven by a device with a hold that outlives its restart.
fn proven_with_a_hold() -> Player {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    player.off_intent(&["bmc"]);
    let mut bench = Bench::judging(player.record(), player.proof().term(), false);
    let engaged = ["restore policy always-off".to_owned(), "watchdog timer stopped".to_owned()];
    bench.judge.held(&device("bmc"), &engaged);
    let state =
        HoldState { outlives: engaged[..1].to_vec(), engaged: engaged.to_vec(), ..HoldState::default() };
    player.apply(Event::HoldEnded { results: vec![(device("bmc"), state)], known: Vec::new() });
    let proof = bench.proves();
    player.apply(Event::Confirmed(&proof));
    player
}

/// A proof with a hold lets a device that restarted be believed again in its own generation alone.
#[test]
fn a_proof_with_a_hold_is_of_its_generation() {
    let mut player = proven_with_a_hold();
    player.apply(Event::Unproven { why: "three Unknown in a row".to_owned(), seen: true });
    let proved = player.open_fence().proved_held.values().flatten();
    assert_eq!(proved.collect::<Vec<_>>(), ["restore policy always-off"]);
    player.confirm();
    player.breach(2, "bmc").unwrap();
    assert!(player.open_fence().proved_held.is_empty(), "it was found on since");
}

/// Nor does another board have it, that has the place of the one which proved it.
#[test]
fn a_proof_with_a_hold_is_of_its_board() {
    for accepted in [false, true] {
        let mut player = proven_with_a_hold();
        player.apply(Event::GiveUp { reason: Reason::ReleaseDeadline, detail: String::new() });
        if accepted {
            let identity = Identity { uuid: None, serial: Some("CN9".to_owned()) };
            player.apply(Event::Accepted { device: device("bmc"), identity, person: person() });
        }
        player.apply(Event::Retry(person()));
        assert_eq!(player.open_fence().proved_held.is_empty(), accepted, "{:?}", player.open_fence());
    }
}
