//! Drills: who is let in, what a pause does to one, and whose wiring it verifies.

use std::sync::Arc;

use picket_core::budget::pause::PauseScope;
use picket_core::budget::{Budget, Limits};
use picket_core::event::Holder;
use picket_core::record::Then;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::FenceCall;

use picket_core::ids::NodeId;

use crate::lab::{Lab, NODE, lab, node, person, s};
use crate::observer::Answer;
use crate::setup::{Setup, named as levels};

fn drill(lab: &mut Lab) -> FenceCall {
    let call = lab.call();
    FenceCall { holder: Holder { then: Then::PowerOn, ..call.holder.clone() }, ..call }
}

/// A BMC, and an outlet whose wiring nobody has verified.
fn unverified() -> Setup {
    let mut setup = Setup::new(NODE, &[&["bmc"], &["a"]]);
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
    let verified = view.plan.with_wiring(&view.stored.record);
    assert!(verified.devices().all(|spec| spec.id.as_str() != "a" || !spec.verified));
}

#[tokio::test(start_paused = true)]
async fn outlets_that_feed_something_else_are_not_verified_while_the_bmc_answers() {
    let mut lab = Lab::set_up(2016, unverified(), |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
        world.add_machine("else").add_supply("else", "a");
    })
    .await;
    lab.answers(&[Answer::Refuse]);
    lab.fault("a", Fault::OffIgnored);
    let call = drill(&mut lab);
    lab.engine.drill(&node(), call).await.expect("let in");
    lab.reach("needs_operator", s(3_600)).await;
    lab.mend("a");
    lab.answers(&[Answer::Complete]);
    lab.engine.retry(&node(), person()).await.expect("retried");
    tokio::time::sleep(s(3_600)).await;
    assert!(lab.record().wired.is_empty(), "{:?}", lab.record().wired);
}

fn named(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}
