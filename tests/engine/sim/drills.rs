//! Drills: who is let in, what a pause does to one, and whose wiring it verifies.

use std::sync::Arc;

use picket_core::budget::pause::PauseScope;
use picket_core::budget::{Budget, Limits};
use picket_core::confirm::HAS_POWER;
use picket_core::event::Holder;
use picket_core::machine::Refused;
use picket_core::record::Then;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, RestorePolicy, Verb};
use picket_engine::{Admission, EngineError, FenceCall};

use picket_core::ids::NodeId;

use crate::lab::{Lab, NODE, lab, node, person, s};
use crate::setup::{Setup, named as levels};

fn drill(lab: &mut Lab) -> FenceCall {
    let call = lab.call();
    FenceCall { holder: Holder { then: Then::PowerOn, ..call.holder.clone() }, ..call }
}

/// A BMC, and an outlet whose wiring nobody has verified; no volumes.
fn unverified() -> Setup {
    let mut setup = Setup::new(NODE, &[&["bmc"], &["a"]]);
    setup.without_releases = true;
    setup.adjust = Arc::new(|spec| spec.verified = false);
    setup
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_nobody_sees_on_is_not_drilled() {
    let mut lab = Lab::set_up(2008, unverified(), |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "a");
    })
    .await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    lab.fault("bmc", Fault::Silent);
    let call = drill(&mut lab);
    let refused = lab.engine.drill(&node(), call).await.expect_err("nobody sees it on").to_string();
    assert!(refused.contains("a machine that is seen to run"), "{refused}");
    lab.mend("bmc");
    tokio::time::sleep(s(900)).await;
    assert!(!lab.is_on(), "and it stays as it was");
}

#[tokio::test(start_paused = true)]
async fn a_pause_before_its_first_off_stops_it() {
    let mut lab = lab(2015).await;
    lab.fault("bmc", Fault::Slow(s(2)));
    let call = drill(&mut lab);
    lab.engine.drill(&node(), call).await.expect("let in");
    tokio::time::sleep(s(3)).await;
    assert_eq!((lab.phase(), lab.record().fence.expect("open").off_sent), ("fencing", false));
    lab.engine.pause(PauseScope::Everything, person(), s(600)).await.expect("paused");
    lab.mend("bmc");
    tokio::time::sleep(s(300)).await;
    assert_eq!(lab.falls(), 0, "the off of a drill was sent in a pause");
}

/// Its key is not bound by an outcome without an off (S20): asked again it is decided again, which begins with whether the
/// machine is seen to run. A drill of a dark one ends in an on that nobody asked for.
#[tokio::test(start_paused = true)]
async fn one_that_a_pause_stopped_is_looked_at_anew_when_it_is_asked_for_again() {
    let mut lab = lab(2402).await;
    lab.fault("bmc", Fault::Slow(s(2)));
    let call = drill(&mut lab);
    lab.engine.drill(&node(), call.clone()).await.expect("let in");
    tokio::time::sleep(s(3)).await;
    lab.engine.pause(PauseScope::Everything, person(), s(600)).await.expect("paused");
    lab.mend("bmc");
    lab.reach("normal", s(300)).await;
    lab.engine.resume(PauseScope::Everything, person()).await.expect("resumed");
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    let again = lab.engine.drill(&node(), call).await;
    tokio::time::sleep(s(900)).await;
    assert!(
        !lab.is_on(),
        "what was off was drilled and switched on: {again:?}, {} offs",
        lab.received("bmc").offs
    );
    assert!(again.is_err(), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn it_counts_in_the_window_also_after_a_restart() {
    let fleet = Limits { per_window: Some((1, s(3_600))), ..Limits::default() };
    let mut lab = crate::budget::fleet(2010, 2, Budget { fleet, ..Budget::unlimited() }).await;
    let call = drill(&mut lab);
    lab.engine.drill(&node(), call).await.expect("let in");
    lab.reach("normal", s(600)).await;
    lab.crash().await;
    let call = lab.call();
    assert!(lab.engine.fence(&named("n2"), call).await.is_err(), "the drill is forgotten");
}

#[tokio::test(start_paused = true)]
async fn the_wiring_of_another_machine_under_the_same_name_is_not_verified() {
    let mut lab = Lab::set_up(2012, unverified(), |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "a");
        world.set_restore(NODE, RestorePolicy::AlwaysOff);
        world.add_machine("nx").add_host("nx", "bmc2");
    })
    .await;
    let call = drill(&mut lab);
    lab.engine.drill(&node(), call).await.expect("let in");
    lab.reach("normal", s(900)).await;
    assert_eq!(lab.record().wired.len(), 1);
    lab.setup.nodes[0].levels = levels(&[&["bmc2"], &["a"]]);
    lab.reload().await.expect("at rest");
    tokio::time::sleep(s(20)).await;
    let view = lab.view();
    let verified = view.plan.levels_now(&view.stored.record);
    assert!(verified.devices().all(|spec| spec.id.as_str() != "a" || !spec.verified));
}

#[tokio::test(start_paused = true)]
async fn outlets_that_feed_something_else_are_not_verified_while_the_bmc_answers() {
    let mut lab = Lab::set_up(2016, unverified(), |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
        world.add_machine("else").add_supply("else", "a");
    })
    .await;
    lab.fault("a", Fault::OffIgnored);
    lab.fault("bmc", Fault::OffIgnored);
    let call = drill(&mut lab);
    let id = lab.engine.drill(&node(), call).await.expect("let in").fence();
    lab.reach("needs_operator", s(3_600)).await;
    // Somebody presses the button, so that the outlets prove it at the next try.
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    lab.mend("a");
    lab.engine.retry(&node(), person()).await.expect("retried");
    lab.mend("bmc");
    tokio::time::sleep(s(600)).await;
    let fence = lab.engine.get_fence(id).await.expect("a store").expect("kept");
    let evidence = fence.evidence.expect("proven");
    assert!(
        evidence.level == 1 && evidence.lowered_by.iter().any(|why| why.ends_with(HAS_POWER)),
        "{evidence:?}"
    );
    tokio::time::sleep(s(3_600)).await;
    assert!(lab.record().wired.is_empty(), "{:?}", lab.record().wired);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_let_go_on_the_word_of_outlets_of_which_nobody_knows_what_they_feed() {
    let mut lab = Lab::set_up(2020, Setup { without_releases: false, ..unverified() }, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "a");
        world.set_restore(NODE, RestorePolicy::AlwaysOff);
    })
    .await;
    let asked = lab.received("bmc");
    let refused = |error: EngineError| match error {
        EngineError::Refused(Refused::WiringUnknown(supplies)) => assert_eq!(supplies, ["a"]),
        other => panic!("{other:?}"),
    };
    let call = drill(&mut lab);
    refused(lab.engine.plan_drill(&node(), call.clone()).await.expect_err("not planned"));
    refused(lab.engine.drill(&node(), call.clone()).await.expect_err("not drilled"));
    assert_eq!((lab.phase(), lab.received("bmc")), ("normal", asked), "nobody was asked anything");
    // First without them; then with the wiring known.
    lab.setup.without_releases = true;
    lab.reload().await.expect("at rest");
    lab.engine.drill(&node(), call.clone()).await.expect("its key was not bound");
    lab.reach("normal", s(900)).await;
    assert_eq!((lab.record().wired.len(), lab.attempts()), (1, 0));
    lab.setup.without_releases = false;
    lab.reload().await.expect("at rest");
    let again = drill(&mut lab);
    lab.engine.drill(&node(), again).await.expect("let in");
    lab.reach("normal", s(900)).await;
    assert_eq!(lab.attempts(), 1, "its volumes were let go, as in any fence");
    // What was asked before is answered, whatever the settings say now.
    lab.setup.drills = false;
    lab.crash().await;
    assert!(matches!(lab.engine.drill(&node(), call).await, Ok(Admission::Superseded(_))));
    let call = drill(&mut lab);
    let refused = lab.engine.drill(&node(), call.clone()).await.expect_err("not allowed");
    assert!(matches!(&refused, EngineError::NotAllowed(why) if why.contains("drills = true")), "{refused}");
    assert!(matches!(lab.engine.plan_drill(&node(), call).await, Err(EngineError::NotAllowed(_))));
}

fn named(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}

/// The switch before its BMC hangs on that outlet, and the machine itself does not: it ran all the while (S3).
#[tokio::test(start_paused = true)]
async fn outlets_that_feed_the_network_of_the_bmc_are_not_verified_by_its_silence() {
    let mut lab = Lab::set_up(2017, unverified(), |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
        world.add_machine("switch").add_supply("switch", "a");
    })
    .await;
    let call = drill(&mut lab);
    let id = lab.engine.drill(&node(), call).await.expect("let in").fence();
    let is_lit = |lab: &Lab| lab.world.lock().truth("switch", lab.clock.boot());
    while is_lit(&lab) {
        tokio::time::sleep(s(1) / 100).await;
    }
    lab.fault("bmc", Fault::Silent);
    while lab.received("a").ons == 0 {
        tokio::time::sleep(s(1) / 100).await;
    }
    lab.mend("bmc");
    lab.reach("normal", s(900)).await;
    assert!(lab.is_on() && lab.falls() == 0);
    assert!(lab.record().wired.is_empty(), "{:?}", lab.record().wired);
    let fence = lab.engine.get_fence(id).await.expect("a store").expect("kept");
    let findings: Vec<&str> = fence.findings().collect();
    assert!(findings.join(" ").contains("no host device read Off"), "{findings:?}");
}
