//! Callers: joins, keys, generations, fences against unfences.

use picket_core::event::BoundKey;
use picket_core::ids::Generation;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Then;
use picket_core::store::Store;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{Admission, EngineError, FenceCall, Taken, Until};
use std::sync::Arc;

use crate::lab::{NODE, lab, node, person, s};

#[tokio::test(start_paused = true)]
async fn the_same_key_joins_and_other_parameters_are_refused() {
    let mut lab = lab(30).await;
    let call = lab.call();
    let first = lab.engine.fence(&node(), call.clone()).await.expect("let in");
    let again = lab.engine.fence(&node(), call.clone()).await.expect("let in");
    assert!(
        matches!((&first, &again), (Admission::Opened(a), Admission::Joined(b)) if a == b),
        "{first:?} {again:?}"
    );
    let mut other = call;
    other.key.as_mut().expect("a key").digest = "other".to_owned();
    assert!(matches!(lab.engine.fence(&node(), other).await, Err(EngineError::KeyTaken(_))));
}

/// A version before stored a key under a name that all callers shared.
#[tokio::test(start_paused = true)]
async fn a_key_of_a_version_before_is_found_by_the_same_request_alone() {
    let mut lab = lab(42).await;
    let call = lab.call();
    let first = lab.engine.fence(&node(), call.clone()).await.expect("let in").fence();
    let written = call.key.clone().expect("a key").key;
    let asked_by = |owner: &str, digest: &str| FenceCall {
        key: Some(BoundKey::of(owner, &written, digest.to_owned())),
        ..call.clone()
    };
    assert_eq!(lab.outcome(first, Until::Released).await, Outcome::Fenced { released: true });
    lab.unfence().await.expect("dropped");
    lab.reach("normal", s(60)).await;
    let repeated = lab.engine.fence(&node(), asked_by("db", "d")).await.expect("let in");
    assert!(matches!(&repeated, Admission::Superseded(fence) if fence.id == first), "{repeated:?}");
    let other = lab.engine.fence(&node(), asked_by("db", "other")).await.expect("let in");
    assert!(matches!(other, Admission::Opened(_)), "{other:?}");
    let refused = lab.engine.fence(&node(), asked_by("db", "d")).await;
    assert!(matches!(&refused, Err(EngineError::KeyTaken(taken)) if taken.key == written), "{refused:?}");
}

/// S20: a caller asks for what is so as often as it likes, each time with another key, and fills no store with that.
#[tokio::test(start_paused = true)]
async fn what_changes_nothing_is_not_written_and_its_keys_are_few() {
    let mut lab = lab(43).await;
    let unfence = |number: usize| {
        let key = Some(BoundKey::of("db", &format!("k{number}"), "d".to_owned()));
        picket_engine::Ask { key, ..person().into() }
    };
    for number in 0..30 {
        let refused = lab.engine.unfence(&node(), "db".to_owned(), unfence(number)).await;
        assert!(matches!(refused, Err(EngineError::Refused(_))), "nobody keeps it off: {refused:?}");
    }
    assert!(lab.store.dump().await.expect("a store").keys.is_empty());
    assert_eq!(lab.record().idle_keys.len(), 8);
    lab.fence().await;
    // A copy that comes late undoes nothing, whoever leads.
    lab.crash().await;
    let again = lab.engine.unfence(&node(), "db".to_owned(), unfence(29)).await;
    assert!(matches!(again, Ok(Taken::Before(None))), "{again:?}");
    lab.engine.hold(&node(), "ops".to_owned(), person()).await.expect("held");
    let written = lab.store.log.lock().len();
    let checked = lab.store.checks.lock().len();
    for _ in 0..30 {
        lab.engine.hold(&node(), "ops".to_owned(), person()).await.expect("held still");
    }
    assert_eq!(lab.store.log.lock().len(), written);
    assert_eq!(lab.store.checks.lock().len(), checked + 30, "that it leads still is asked");
}

#[tokio::test(start_paused = true)]
async fn two_callers_share_one_fence_and_both_holds_keep_it_off() {
    let mut lab = lab(31).await;
    let first = lab.open().await;
    let mut call = lab.call();
    call.holder.name = "other".to_owned();
    let joined = lab.engine.fence(&node(), call).await.expect("let in");
    assert_eq!(joined.fence(), first);
    assert_eq!(lab.outcome(first, Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!(lab.falls(), 1);
    lab.unfence().await.expect("dropped");
    tokio::time::sleep(s(60)).await;
    assert_eq!((lab.phase(), lab.is_on()), ("released", false));
    lab.engine.unfence(&node(), "other".to_owned(), person()).await.expect("dropped");
    lab.reach("normal", s(60)).await;
}

/// Nor by what was read long before the store had answered: it is read once more, and may be on by then.
#[tokio::test(start_paused = true)]
async fn already_fenced_is_not_said_by_an_off_of_before_a_store_that_hung() {
    let mut lab = lab(36).await;
    let first = lab.open().await;
    assert_eq!(lab.outcome(first, Until::Released).await, Outcome::Fenced { released: true });
    lab.store.linger(s(3));
    let call = lab.call();
    assert!(matches!(lab.engine.fence(&node(), call.clone()).await, Ok(Admission::Already(_))));
    lab.store.linger(s(0));
    // Who repeats a key is told by the same, and so is who joins.
    lab.store.reads_take(s(3));
    assert!(matches!(lab.engine.fence(&node(), call.clone()).await, Ok(Admission::Joined(_))));
    for repeats in [true, false] {
        lab.reach("released", s(300)).await;
        let breaches = lab.record().breaches;
        let (reads, writes) = if repeats { (s(5), s(0)) } else { (s(0), s(5)) };
        lab.store.reads_take(reads);
        lab.store.linger(writes);
        let call = if repeats { call.clone() } else { lab.call() };
        let engine = lab.engine.clone();
        let asked = tokio::spawn(async move { engine.fence(&node(), call).await });
        // The key is read first where it is known.
        tokio::time::sleep(reads + s(2)).await;
        lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
        tokio::time::sleep(s(1)).await;
        lab.store.reads_take(s(0));
        lab.store.linger(s(0));
        let told = asked.await.expect("answered").expect("let in");
        assert!(!matches!(told, Admission::Already(_)), "{told:?}");
        assert_eq!((lab.phase(), lab.record().breaches), ("fencing", breaches + 1), "repeats: {repeats}");
    }
}

#[tokio::test(start_paused = true)]
async fn already_fenced_is_said_only_with_a_proof_in_hand() {
    let mut lab = lab(32).await;
    lab.fence().await;
    let call = lab.call();
    assert!(matches!(lab.engine.fence(&node(), call).await, Ok(Admission::Already(_))));
    // Another process has no proof: it makes one.
    lab.crash().await;
    let call = lab.call();
    let joined = lab.engine.fence(&node(), call).await.expect("let in");
    assert!(matches!(joined, Admission::Joined(_)), "{joined:?}");
    assert_eq!(lab.phase(), "fencing");
    assert_eq!(lab.outcome(joined.fence(), Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!(lab.attempts(), 1, "what was complete is not released again");
}

#[tokio::test(start_paused = true)]
async fn a_key_replayed_after_the_unfence_is_superseded() {
    let mut lab = lab(33).await;
    let call = lab.call();
    let id = lab.engine.fence(&node(), call.clone()).await.expect("let in").fence();
    lab.outcome(id, Until::Released).await;
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(60)).await;
    match lab.engine.fence(&node(), call).await.expect("answered") {
        Admission::Superseded(fence) => assert_eq!(fence.outcome, Some(Outcome::Fenced { released: true })),
        other => panic!("{other:?}"),
    }
    assert!(lab.is_on(), "a replay sends nothing");
}

#[tokio::test(start_paused = true)]
async fn a_late_request_or_another_generation_changes_nothing() {
    let mut lab = lab(34).await;
    let mut late = lab.call();
    late.not_after = Some(lab.clock.wall());
    tokio::time::sleep(s(1)).await;
    assert!(matches!(lab.engine.fence(&node(), late).await, Err(EngineError::Stale(_))));
    let mut other = lab.call();
    other.expected_generation = Some(Generation(7));
    assert!(matches!(lab.engine.fence(&node(), other).await, Err(EngineError::Stale(_))));
    assert_eq!((lab.phase(), lab.is_on()), ("normal", true));
}

#[tokio::test(start_paused = true)]
async fn unfence_during_a_fence_is_refused_and_a_fence_during_an_unfence_wins() {
    let mut lab = lab(35).await;
    lab.fault("bmc", Fault::OffTakes { least: s(20), most: s(20) });
    let id = lab.open().await;
    assert!(matches!(lab.unfence().await, Err(EngineError::Refused(_))));
    lab.outcome(id, Until::Released).await;
    lab.fault("bmc", Fault::OnTakes { least: s(30), most: s(30) });
    lab.unfence().await.expect("unfenced");
    tokio::time::sleep(s(2)).await;
    assert_eq!(lab.phase(), "unfencing");
    let second = lab.open().await;
    assert_ne!(second, id);
    assert_eq!(lab.outcome(second, Until::Released).await, Outcome::Fenced { released: true });
    tokio::time::sleep(s(120)).await;
    assert!(!lab.is_on(), "the on of the unfence does not land after the confirmation");
}

#[tokio::test(start_paused = true)]
async fn power_on_afterwards_drops_the_callers_own_hold_alone() {
    let mut lab = lab(36).await;
    let mut call = lab.call();
    call.holder.then = Then::PowerOn;
    let id = lab.engine.fence(&node(), call).await.expect("let in").fence();
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
    lab.reach("normal", s(60)).await;
    assert!(lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn an_attested_node_is_released_and_a_host_that_says_on_forbids_it() {
    let mut lab = lab(38).await;
    lab.fault("bmc", Fault::OffIgnored);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    assert!(matches!(lab.engine.attest(&node(), person()).await, Err(EngineError::Refused(_))));
    lab.fault("bmc", Fault::Silent);
    lab.happen(picket_driver_sim::Act::Foreign {
        machine: crate::lab::NODE.to_owned(),
        verb: picket_driver_sim::Verb::Off,
    });
    lab.engine.attest(&node(), person()).await.expect("attested");
    lab.reach("released", s(60)).await;
    assert_eq!(lab.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stand_down_undoes_without_an_on() {
    let mut lab = lab(39).await;
    lab.fault("bmc", Fault::OffIgnored);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    lab.mend("bmc");
    let before = lab.world.lock().received("bmc", lab.clock.boot()).ons;
    lab.engine.stand_down(&node(), person()).await.expect("stood down");
    lab.reach("normal", s(200)).await;
    let after = lab.world.lock().received("bmc", lab.clock.boot()).ons;
    assert_eq!((before, after, lab.is_on()), (0, 0, true));
}

#[tokio::test(start_paused = true)]
async fn nobody_vouches_against_a_slow_host_device_that_is_being_read() {
    let mut lab = lab(390).await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.fault("bmc", Fault::Slow(s(2)));
    lab.open().await;
    tokio::time::sleep(s(13)).await;
    // Whenever the word comes, the device is asked for it, and says On.
    for _ in 0..8 {
        assert_eq!(lab.phase(), "fencing");
        let refused = lab.engine.attest(&node(), person()).await;
        assert!(matches!(refused, Err(EngineError::Refused(_))), "{refused:?}");
        tokio::time::sleep(s(1) / 3).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_leaves_does_not_stop_a_fence() {
    let mut lab = lab(391).await;
    let (call, engine) = (lab.call(), lab.engine.clone());
    let caller = tokio::spawn(async move {
        let admission = engine.fence(&node(), call).await.expect("let in");
        let mut view = engine.follow(&node()).expect("known");
        let _ = view.wait_for(|_| false).await;
        admission
    });
    tokio::time::sleep(s(1) / 2).await;
    caller.abort();
    lab.reach("released", s(60)).await;
}

#[tokio::test(start_paused = true)]
async fn a_key_replayed_after_a_breach_is_superseded() {
    let mut lab = lab(392).await;
    let call = lab.call();
    let id = lab.engine.fence(&node(), call.clone()).await.expect("let in").fence();
    lab.outcome(id, Until::Released).await;
    let machine = crate::lab::NODE.to_owned();
    lab.happen(picket_driver_sim::Act::Foreign { machine, verb: picket_driver_sim::Verb::On });
    lab.reach("fencing", s(60)).await;
    lab.reach("released", s(120)).await;
    match lab.engine.fence(&node(), call).await.expect("answered") {
        Admission::Superseded(fence) => assert_eq!(fence.id, id),
        other => panic!("{other:?}"),
    }
    assert_eq!(lab.phase(), "released");
}

/// S20: who repeats a retry is told by a look, like who repeats a fence.
#[tokio::test(start_paused = true)]
async fn a_retry_that_is_asked_again_is_answered_once_the_node_was_read() {
    let mut lab = lab(395).await;
    lab.fault("bmc", Fault::Silent);
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    lab.mend("bmc");
    let mut ask = picket_engine::Ask::from(person());
    ask.key.clone_from(&lab.call().key);
    lab.engine.retry(&node(), ask.clone()).await.expect("taken");
    lab.reach("released", s(120)).await;
    lab.kill().await;
    let machine = crate::lab::NODE.to_owned();
    lab.happen(picket_driver_sim::Act::Foreign { machine, verb: picket_driver_sim::Verb::On });
    lab.start().await;
    let taken = lab.engine.retry(&node(), ask).await.expect("answered");
    assert!(matches!(taken, picket_engine::Taken::Before(_)), "{taken:?}");
    assert_ne!(lab.phase(), "released", "it runs");
}

#[tokio::test(start_paused = true)]
async fn an_identity_that_was_learned_is_held_against_an_exchanged_board() {
    let mut setup = crate::setup::Setup::new(crate::lab::NODE, &[&["bmc"]]);
    setup.check_at_start = true;
    setup.adjust = Arc::new(|spec| spec.identity = Default::default());
    let mut lab = crate::lab::Lab::set_up(394, setup, |world| {
        world.add_machine(crate::lab::NODE).add_host(crate::lab::NODE, "bmc");
    })
    .await;
    tokio::time::sleep(s(5)).await;
    assert_eq!(lab.record().learned.len(), 1);
    lab.crash().await;
    let stranger = picket_core::device::Identity { uuid: None, serial: Some("another".to_owned()) };
    lab.fault("bmc", Fault::SaysIdentity(stranger));
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::IdentityMismatch));
    assert_eq!((lab.is_on(), lab.received("bmc").offs), (true, 0));
}

/// One look that is not answered takes no released node back into fencing (S4).
#[tokio::test(start_paused = true)]
async fn who_asks_again_while_the_bmc_is_silent_for_a_moment_finds_it_fenced() {
    let mut lab = lab(399).await;
    lab.fence().await;
    lab.reach("released", s(60)).await;
    let before = lab.received("bmc").offs;
    lab.fault("bmc", Fault::Silent);
    lab.schedule(s(3), Act::Mend { device: "bmc".to_owned() });
    let call = lab.call();
    let answer = lab.engine.fence(&node(), call).await.expect("let in");
    assert!(matches!(answer, Admission::Already(_)), "{answer:?}");
    assert_eq!((lab.phase(), lab.received("bmc").offs), ("released", before));
}

/// A person's word ends where a host device says On, and by nothing that a dead one does not say (S12).
#[tokio::test(start_paused = true)]
async fn who_asks_again_for_an_attested_node_takes_no_word_back() {
    let mut lab = lab(400).await;
    lab.fault("bmc", Fault::Silent);
    lab.open().await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    lab.engine.attest(&node(), person()).await.expect("attested");
    lab.reach("released", s(60)).await;
    for slow in [0, 700] {
        lab.store.rough(0, std::time::Duration::from_millis(slow));
        lab.open_again().await;
        let record = lab.record();
        assert_eq!(record.phase.label(), "released", "a store that takes {slow} ms");
        assert!(record.fence.expect("kept").attestation.is_some());
    }
}
