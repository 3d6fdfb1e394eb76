//! S4 and S5 at the moment of the confirmation: which proof is taken, and what voids one.

use crate::event::Event;
use crate::ids::Term;
use crate::machine::Refused;
use crate::outcome::Outcome;
use crate::record::{HoldState, Phase, Then};
use crate::support::{Bench, Player, device, fence_id, holder, host, node, person, request, supply};

#[test]
fn a_proof_makes_it_fenced_and_the_evidence_is_stored() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    let proof = player.confirm();
    assert_eq!(player.record().phase, Phase::Fenced);
    assert_eq!(player.open_fence().evidence.as_ref(), Some(proof.evidence()));
    assert_eq!(player.open_fence().outcome, Some(Outcome::Fenced { released: false }));
}

#[test]
fn without_releases_it_is_released_at_once() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    player.confirm();
    assert_eq!(player.record().phase, Phase::Released);
    assert_eq!(player.open_fence().outcome, Some(Outcome::Fenced { released: true }));
}

#[test]
fn and_with_then_power_on_it_is_brought_back_at_once() {
    let mut player = Player::new();
    let holder = holder("ops", Then::PowerOn);
    player.fence(crate::event::FenceRequest { holder, ..request(1, &[&[host("bmc")]], &[]) });
    player.confirm();
    assert_eq!((player.phase(), player.record().generation.0), ("unfencing", 2));
    assert!(player.record().holds.is_empty());
}

#[test]
fn only_a_node_being_fenced_is_confirmed() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    let proof = player.confirm();
    assert!(matches!(player.try_apply(Event::Confirmed(&proof)), Err(Refused::Phase { .. })));
}

#[test]
fn an_open_on_or_unhold_bars_it() {
    let mut player = Player::unfencing(&[&[host("bmc")]]);
    player.on_intent(&["bmc"]).unwrap();
    let on = player.record().ledger.clone();
    player.fence(request(2, &[&[host("bmc")]], &[]));
    // A judge that was shown an empty ledger.
    let mut bench = Bench::judging(player.record(), player.leadership.term(), false);
    bench.ledger = crate::ledger::Ledger::default();
    bench.falls("bmc");
    let proof = bench.confirmed();
    let refused = player.try_apply(Event::Confirmed(&proof)).unwrap_err();
    assert_eq!(refused, Refused::OpenEffects(vec!["on of bmc".to_owned()]));
    player.apply(Event::Closed { effects: vec![on.open()[0].id], why: "session closed" });
    player.apply(Event::Confirmed(&proof));
}

#[test]
fn a_proof_of_another_fence_is_refused() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    let proof = player.confirm();
    player.breach(2, "bmc").unwrap();
    let refused = player.try_apply(Event::Confirmed(&proof)).unwrap_err();
    assert_eq!(refused, Refused::ForeignProof("it was made for another fence"));
}

#[test]
fn a_generation_s_bump_voids_a_proof() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let proof = player.confirm();
    player.close_all();
    player.unfence().unwrap();
    // The same id again: only the generation tells them apart.
    player.fence(request(1, &[&[host("bmc")]], &[]));
    assert_eq!(player.open_fence().id, fence_id(1));
    assert!(matches!(player.try_apply(Event::Confirmed(&proof)), Err(Refused::ForeignProof(_))));
}

#[test]
fn a_proof_of_another_leadership_is_refused() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let proof = player.proof();
    player.succeeds();
    let refused = player.try_apply(Event::Confirmed(&proof)).unwrap_err();
    assert_eq!(refused, Refused::ForeignProof("it was made under another leadership"));
}

#[test]
fn a_proof_of_too_low_a_grade_is_refused() {
    let mut player = Player::fencing(&[&[host("bmc")]], &[]);
    let mut bench = Bench::judging(player.record(), player.leadership.term(), false);
    bench = bench.who_says_nothing();
    bench.falls("bmc");
    let proof = bench.confirmed();
    player.stored.record.fence.as_mut().unwrap().min_grade = crate::device::Grade::Observed;
    assert!(matches!(player.step(Event::Confirmed(&proof)), Err(Refused::ForeignProof(_))));
}

#[test]
fn a_confirmation_that_does_not_hold_goes_back_and_begins_from_zero() {
    let mut player = Player::fencing(&[&[host("bmc")], &[host("agent")]], &["detach"]);
    player.apply(Event::NextLevel { why: "silent".to_owned(), gives_way: false });
    let proof = player.confirm();
    player.apply(Event::Unproven { why: "three Unknown in a row".to_owned(), seen: true });
    let fence = player.open_fence();
    assert_eq!((player.phase(), fence.level, &fence.evidence, &fence.outcome), ("fencing", 0, &None, &None));
    assert_eq!((fence.id, player.record().generation.0), (fence_id(1), 1), "the same fence");
    let refused = player.try_apply(Event::Confirmed(&proof)).unwrap_err();
    assert_eq!(refused, Refused::ForeignProof("it was made before the evidence began from zero"));
    player.confirm();
    assert_eq!(player.phase(), "fenced");
}

#[test]
fn a_retry_voids_the_proof_too() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    let proof = player.confirm();
    player.give_up(crate::outcome::Reason::ReleaseDeadline);
    player.apply(Event::Retry(person()));
    assert_eq!(player.phase(), "fencing");
    assert!(matches!(player.try_apply(Event::Confirmed(&proof)), Err(Refused::ForeignProof(_))));
}

#[test]
fn only_what_was_confirmed_can_lose_its_proof() {
    let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
    let unproven = || Event::Unproven { why: String::new(), seen: true };
    assert!(matches!(player.try_apply(unproven()), Err(Refused::Phase { .. })));
    player.give_up(crate::outcome::Reason::Deadline);
    assert!(matches!(player.try_apply(unproven()), Err(Refused::ForeignProof(_))));
}

#[test]
fn a_proof_names_its_leadership() {
    assert_eq!(Player::fencing(&[&[host("bmc")]], &[]).proof().term(), Term(1));
}

/// Its host device may not answer: whoever tried it first again would leave the node with power meanwhile.
#[test]
fn what_supplies_proved_is_proven_anew_by_them_first_and_then_by_the_others_round_after_round() {
    let mut player = Player::fencing(&[&[host("bmc")], &[supply("outlet")], &[host("agent")]], &["detach"]);
    player.apply(Event::NextLevel { why: "silent".to_owned(), gives_way: false });
    let engaged = vec!["restore policy always-off".to_owned()];
    let state = HoldState { outlives: engaged.clone(), engaged, ..HoldState::default() };
    player.apply(Event::HoldEnded { results: vec![(device("outlet"), state)], known: Vec::new() });
    player.confirm();
    player.apply(Event::Unproven { why: "outlet reads On".to_owned(), seen: true });
    assert_eq!((player.phase(), player.open_fence().level), ("fencing", 1));
    for level in [2, 0, 1, 2] {
        player.apply(Event::NextLevel { why: "silent".to_owned(), gives_way: false });
        assert_eq!(player.open_fence().level, level);
    }
}

/// Also where its leader dies before its children have asked again: the word stands in its own record.
#[test]
fn what_is_not_proven_any_more_is_void_for_its_children_unless_its_prover_is_merely_gone() {
    for seen in [true, false] {
        let mut player = Player::fencing(&[&[host("bmc")]], &["detach"]);
        let holder = holder(&crate::parent::hold_of(&node()), Then::StayOff);
        player.apply(crate::support::join(holder, None));
        player.confirm();
        player.apply(Event::Unproven { why: "outlet reads On".to_owned(), seen });
        let held = player.record().holds.get(&crate::parent::hold_of(&node())).expect("held").breached;
        assert_eq!(held, seen);
    }
}
