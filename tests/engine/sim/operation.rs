//! What operators and settings do: the gateway's own host, devices that left the settings, effects that nothing
//! bounds, a person's word over a restart, grades of those who join.

use std::sync::Arc;

use picket_core::device::{DeviceSpec, Grade, MaxInFlight};
use picket_core::ids::ReleaseId;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::{Bringing, Then};
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{Admission, EngineError, Until};

use crate::lab::{Answer, Lab, NODE, lab, node, person, s};
use crate::setup::{Setup, named};

fn detach() -> ReleaseId {
    ReleaseId::new("detach").expect("a good name")
}

fn switch(lab: &Lab, verb: Verb) {
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb });
}

#[tokio::test(start_paused = true)]
async fn the_gateway_does_not_shoot_the_machine_that_it_stands_on() {
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.nodes[0].own_host = true;
    let mut lab = Lab::set_up(60, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await;
    let call = lab.call();
    for _ in 0..2 {
        match lab.engine.fence(&node(), call.clone()).await {
            Err(EngineError::Blocked { reason: Reason::OwnHost, .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((lab.phase(), lab.is_on(), lab.received("bmc").offs), ("normal", true, 0));
    // Blocked binds no key: from another gateway's host it is decided again.
    lab.kill().await;
    lab.setup.nodes[0].own_host = false;
    lab.start().await;
    assert!(matches!(lab.engine.fence(&node(), call).await, Ok(Admission::Opened(_))));
}

#[tokio::test(start_paused = true)]
async fn a_fence_whose_only_device_left_the_settings_ends_by_a_persons_word() {
    let mut lab = Lab::with(61, &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "new");
    })
    .await;
    lab.fault("bmc", Fault::OffIgnored);
    let id = lab.open().await;
    tokio::time::sleep(s(3)).await;
    lab.kill().await;
    lab.setup.nodes[0].levels = named(&[&["new"]]);
    lab.start().await;
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::NeedsOperator(Reason::LevelsSpent));
    let fault = lab.view().live.devices.values().find_map(|device| device.fault.clone()).expect("said");
    assert!(fault.0.contains("not in the settings any more"), "{fault:?}");
    switch(&lab, Verb::Off);
    lab.engine.attest(&node(), person()).await.expect("a device that is gone says nothing against it");
    lab.reach("released", s(60)).await;
    // It cannot be switched on by a device that is gone, and is not forgotten either.
    lab.unfence().await.expect("unfenced");
    lab.reach("power_on_failed", s(1_000)).await;
    lab.kill().await;
    lab.mend("bmc");
    lab.setup.nodes[0].levels = named(&[&["bmc"]]);
    lab.start().await;
    lab.engine.retry(&node(), person()).await.expect("retried");
    lab.reach("normal", s(600)).await;
    assert!(lab.is_on() && lab.record().ledger.open().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_hold_of_a_device_that_left_the_settings_does_not_keep_the_node() {
    let mut setup = Setup::new(NODE, &[&["bmc"], &["second"]]);
    setup.adjust = Arc::new(|spec: &mut DeviceSpec| spec.max_in_flight = MaxInFlight { off: None, on: None });
    let mut lab = Lab::set_up(62, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "second");
    })
    .await;
    lab.fence().await;
    lab.kill().await;
    lab.setup.nodes[0].levels = named(&[&["second"]]);
    lab.start().await;
    lab.unfence().await.expect("unfenced");
    // The off was open when its gateway died, and nothing bounds it.
    lab.reach("needs_operator", s(60)).await;
    lab.engine.retry(&node(), person()).await.expect("a person says that it has ended");
    tokio::time::sleep(s(1_200)).await;
    assert_eq!(lab.phase(), "power_on_failed", "{:#?}", lab.record());
    lab.kill().await;
    lab.setup.nodes[0].levels = named(&[&["bmc"], &["second"]]);
    lab.start().await;
    lab.engine.retry(&node(), person()).await.expect("retried");
    // The on that was never sent was open when its gateway died, too.
    lab.reach("needs_operator", s(600)).await;
    lab.engine.retry(&node(), person()).await.expect("retried");
    lab.reach("normal", s(600)).await;
    assert!(lab.is_on() && lab.record().ledger.open().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_off_that_nothing_bounds_needs_a_person_before_the_on() {
    let mut lab = Lab::with(64, &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").set_sessionless("bmc");
    })
    .await;
    lab.setup.adjust = Arc::new(|spec| spec.max_in_flight = MaxInFlight { off: None, on: None });
    lab.crash().await;
    lab.fence().await;
    lab.crash().await;
    lab.unfence().await.expect("unfenced");
    lab.reach("needs_operator", s(60)).await;
    assert_eq!(lab.record().phase.label(), "needs_operator");
    tokio::time::sleep(s(600)).await;
    assert!(!lab.is_on() && lab.received("bmc").ons == 0, "nothing is sent before a person says so");
    lab.engine.retry(&node(), person()).await.expect("retried");
    lab.reach("normal", s(120)).await;
    assert!(lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn a_release_that_nothing_bounds_is_given_up_by_name_before_the_on() {
    let mut lab = lab(65).await;
    *lab.observer.life.lock() = None;
    lab.crash().await;
    lab.answers(&[Answer::Unknown, Answer::Complete]);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.unfence().await.expect("unfenced");
    lab.reach("needs_operator", s(60)).await;
    lab.engine.retry(&node(), person()).await.expect("retried");
    lab.reach("needs_operator", s(60)).await;
    assert!(!lab.is_on());
    lab.engine.abandon(&node(), detach(), person()).await.expect("given up");
    lab.engine.retry(&node(), person()).await.expect("retried");
    lab.reach("normal", s(120)).await;
    assert!(lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn a_fence_wins_over_an_unfence_that_waits_for_a_person() {
    let mut lab = lab(66).await;
    lab.fault("bmc", Fault::OffIgnored);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    lab.mend("bmc");
    // Somebody says that it was alive, and it is off.
    switch(&lab, Verb::Off);
    lab.engine.stand_down(&node(), person()).await.expect("stood down");
    lab.reach("needs_operator", s(600)).await;
    assert_eq!(lab.record().bringing, Bringing::StandDown);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(120)).await;
    assert!(lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn a_persons_word_outlives_the_gateway() {
    let mut lab = lab(67).await;
    lab.fault("bmc", Fault::Silent);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    switch(&lab, Verb::Off);
    lab.answers(&[Answer::Refuse]);
    lab.engine.attest(&node(), person()).await.expect("attested");
    tokio::time::sleep(s(10)).await;
    assert_eq!(lab.phase(), "fenced");
    // In the middle of the release, and once more when all is released.
    lab.crash().await;
    tokio::time::sleep(s(5)).await;
    assert_eq!(lab.phase(), "fenced");
    lab.answers(&[Answer::Complete]);
    lab.reach("released", s(60)).await;
    lab.crash().await;
    let call = lab.call();
    let again = lab.engine.fence(&node(), call).await.expect("let in");
    assert!(matches!(again, Admission::Already(_)), "{again:?}");
    assert_eq!(lab.phase(), "released", "the attestation is stored, and no host device says on");
    // Until a host device says on.
    lab.mend("bmc");
    switch(&lab, Verb::On);
    lab.reach("fencing", s(30)).await;
    lab.reach("released", s(120)).await;
    let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("evidence");
    assert!(evidence.grade > Grade::Attested, "{evidence:?}");
}

#[tokio::test(start_paused = true)]
async fn each_caller_has_the_grade_that_it_asked_for() {
    let mut lab = Lab::with(68, &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").set_sessionless("bmc");
    })
    .await;
    let id = lab.open().await;
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
    let call = lab.call();
    assert!(matches!(lab.engine.fence(&node(), call).await, Ok(Admission::Already(_))));
    let view = lab.view();
    for (least, enough) in [
        (None, true),
        (Some(Grade::Claimed), true),
        (Some(Grade::Hypervisor), true),
        (Some(Grade::Observed), false),
    ] {
        let (_, outcome) = lab.engine.outcome(&view, id, Until::Released, least).await.expect("a store");
        let expected = match enough {
            true => Outcome::Fenced { released: true },
            false => Outcome::NeedsOperator(Reason::GradeTooLow),
        };
        assert_eq!(outcome, Some(expected), "{least:?}");
    }
    // Whoever opens it with a grade that the device cannot reach: a person.
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(120)).await;
    let mut call = lab.call();
    call.min_grade = Some(Grade::Observed);
    let id = lab.engine.fence(&node(), call).await.expect("let in").fence();
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::NeedsOperator(Reason::GradeTooLow));
    assert_eq!(lab.attempts(), 1, "nothing was released for it");
}

#[tokio::test(start_paused = true)]
async fn whoever_joins_what_is_released_and_wants_it_on_afterwards_keeps_nothing_off() {
    let mut lab = lab(69).await;
    lab.fence().await;
    let mut call = lab.call();
    call.holder.name = "other".to_owned();
    call.holder.then = Then::PowerOn;
    assert!(matches!(lab.engine.fence(&node(), call).await, Ok(Admission::Already(_))));
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(120)).await;
    assert!(lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_callers_are_told() {
    let mut lab = lab(70).await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.open().await;
    tokio::time::sleep(s(2)).await;
    lab.store.away(s(3_600));
    lab.fault("bmc", Fault::Silent);
    // The level is spent, and that cannot be stored.
    tokio::time::sleep(s(300)).await;
    let call = lab.call();
    let asked = tokio::time::timeout(s(30), lab.engine.fence(&node(), call)).await;
    assert!(matches!(asked, Ok(Err(EngineError::Store(_)))), "{asked:?}");
    let asked = tokio::time::timeout(s(30), lab.engine.retry(&node(), person())).await;
    assert!(matches!(asked, Ok(Err(EngineError::Store(_)))), "{asked:?}");
    lab.store.clear();
    lab.reach("needs_operator", s(600)).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_delays_a_release_until_a_look_is_fresh() {
    let mut lab = lab(71).await;
    // Some looks are older than two seconds when it has answered twice.
    lab.store.rough(0, s(3));
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert_eq!(lab.attempts(), 1);
}
