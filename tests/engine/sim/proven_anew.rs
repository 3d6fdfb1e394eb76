//! S11: a node that was proven off is proven anew, and somebody switched it on while no device answered. It is in breach: what was let go is
//! let go anew, and its children's proofs are void.

use std::sync::Arc;

use picket_core::outcome::Outcome;
use picket_core::record::Cause;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::Until;

use crate::families::{deaf, family, holds, id};
use crate::lab::{Lab, NODE, node, s};
use crate::observer::{Answer, Observer};
use crate::setup::Setup;

const HV: &str = "hv1";

/// Somebody switches it on, and its devices answer again later.
async fn comes_on(lab: &Lab, machine: &str, devices: &[&str]) {
    lab.happen(Act::Foreign { machine: machine.to_owned(), verb: Verb::On });
    tokio::time::sleep(s(5)).await;
    devices.iter().for_each(|device| lab.mend(device));
}

fn in_breach(lab: &Lab) {
    let record = lab.record();
    let cause = record.fence.as_ref().map(|fence| fence.cause);
    assert_eq!((record.breaches, cause), (1, Some(Cause::Breach)), "{record:#?}");
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_let_go_it_is_a_breach() {
    for waits_for_a_person in [true, false] {
        let mut setup = Setup::new(NODE, &[&["bmc"]]);
        setup.without_releases = true;
        let mut lab = Lab::set_up(2731, setup, |world| {
            world.add_machine(NODE).add_host(NODE, "bmc");
        })
        .await;
        let call = lab.call();
        let fence = lab.engine.fence(&node(), call.clone()).await.expect("let in").fence();
        assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
        lab.kill().await;
        lab.fault("bmc", Fault::Silent);
        lab.start().await;
        // The caller's connection broke: it asks again.
        lab.engine.fence(&node(), call).await.expect("let in");
        let phase = if waits_for_a_person { "needs_operator" } else { "fencing" };
        lab.reach(phase, s(1_200)).await;
        comes_on(&lab, NODE, &["bmc"]).await;
        lab.reach("released", s(300)).await;
        in_breach(&lab);
        assert!(!lab.is_on());
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_let_go_before_is_let_go_anew() {
    for last in [Answer::Refuse, Answer::Complete] {
        let mut lab = Lab::dark(2732, Setup::new(NODE, &[&["bmc"]]), |world| {
            world.add_machine(NODE).add_host(NODE, "bmc");
        });
        tokio::time::advance(s(100)).await;
        lab.setup.releases.clear();
        let first = Arc::new(Observer::new(&lab.world, lab.clock.clone()));
        let second = Arc::new(Observer::new(&lab.world, lab.clock.clone()));
        *second.answers.lock() = vec![last];
        lab.setup.releases.push(("first".to_owned(), first.clone()));
        lab.setup.releases.push(("second".to_owned(), second));
        let attempts = || first.attempts.lock().len();
        lab.start().await;
        lab.open().await;
        lab.reach("fenced", s(60)).await;
        tokio::time::sleep(s(20)).await;
        assert_eq!(attempts(), 1);
        lab.kill().await;
        lab.fault("bmc", Fault::Silent);
        lab.start().await;
        lab.open_again().await;
        assert_eq!(lab.phase(), "fencing");
        comes_on(&lab, NODE, &["bmc"]).await;
        tokio::time::sleep(s(100)).await;
        in_breach(&lab);
        assert_eq!(attempts(), 2, "{:#?}", lab.record());
        assert!(!lab.is_on());
    }
}

/// S22: the child that nobody fenced anew relies on the same machine.
#[tokio::test(start_paused = true)]
async fn the_children_of_a_parent_in_breach_are_proven_anew() {
    let mut lab = family(2733, 2, |_| {}).await;
    deaf(&lab, 2);
    let fence = lab.open().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!(holds(&lab), ["child:n1"]);
    lab.kill().await;
    let devices = ["hv1-bmc", "hv1-a", "hv1-b"];
    // The first child's own device does not tell that it ran.
    devices.iter().chain(&["server"]).for_each(|device| lab.fault(device, Fault::Silent));
    lab.start().await;
    let call = lab.call();
    lab.engine.fence(&id("n2"), call).await.expect("let in");
    lab.reach_of(&id(HV), "fencing", s(600)).await;
    assert_eq!(lab.phase(), "released");
    comes_on(&lab, HV, &devices).await;
    lab.reach_of(&id(HV), "released", s(900)).await;
    lab.mend("server");
    tokio::time::sleep(s(300)).await;
    let round = lab.record().fence.map(|fence| fence.round);
    assert!(round > Some(0), "nobody told it: {:?}", lab.record());
    assert_eq!(lab.engine.node(&id(HV)).expect("known").stored.record.breaches, 1);
}
