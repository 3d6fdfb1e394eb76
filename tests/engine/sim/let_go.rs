//! Nodes of which volumes were let go on a person's word, and that are on after all: they are switched off, whatever was
//! tried, paused or limited meanwhile.

use std::sync::Arc;

use picket_core::budget::pause::PauseScope;
use picket_core::outcome::Outcome;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::Until;

use picket_core::ids::NodeId;

use crate::lab::{Lab, NODE, node, person, s};
use crate::observer::{Answer, Observer};
use crate::setup::Setup;

/// The BMC is silent, a person vouched, one release is complete, and the other one was waited for in vain.
async fn in_part(seed: u64) -> Lab {
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.releases.clear();
    let mut lab = Lab::dark(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    });
    for (index, answers) in [[Answer::Complete], [Answer::Refuse]].iter().enumerate() {
        let one = Arc::new(Observer::new(&lab.world, lab.clock.clone()));
        *one.answers.lock() = answers.to_vec();
        lab.setup.releases.push((format!("release-{index}"), one));
    }
    tokio::time::advance(s(100)).await;
    lab.start().await;
    lab.fault("bmc", Fault::Silent);
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    lab.engine.attest(&node(), person()).await.expect("attested");
    lab.reach("needs_operator", s(1_200)).await;
    lab
}

async fn comes_on(lab: &Lab) {
    lab.mend("bmc");
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    tokio::time::sleep(s(3_600)).await;
    assert!(!lab.is_on(), "released, and on for an hour, in phase {}", lab.phase());
}

#[tokio::test(start_paused = true)]
async fn it_is_a_breach() {
    comes_on(&in_part(2014).await).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_one_also_after_a_retry_that_came_to_nothing() {
    let lab = in_part(2013).await;
    lab.engine.retry(&node(), person()).await.expect("retried");
    tokio::time::sleep(s(300)).await;
    comes_on(&lab).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_one_also_after_a_retry_in_a_pause() {
    let lab = in_part(2011).await;
    lab.engine.pause(PauseScope::Everything, person(), s(86_400)).await.expect("paused");
    lab.engine.retry(&node(), person()).await.expect("retried");
    tokio::time::sleep(s(5)).await;
    comes_on(&lab).await;
    let node = node();
    let held = lab.engine.hold(&node, "other".to_owned(), person());
    assert!(tokio::time::timeout(s(1_800), held).await.is_ok(), "its task is deaf");
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_what_was_never_sent_waits_for_its_place_whoever_leads() {
    for dies in [false, true] {
        let mut lab = crate::budget::fleet(2007, 2, crate::budget::at_once(1)).await;
        lab.fault("bmc1", Fault::Silent);
        let first = lab.open().await;
        lab.outcome(first, Until::Released).await;
        lab.fault("bmc2", Fault::OffTakes { least: s(100), most: s(100) });
        let call = lab.call();
        lab.engine.fence(&named("n2"), call).await.expect("the place is free");
        tokio::time::sleep(s(5)).await;
        lab.mend("bmc1");
        lab.engine.retry(&node(), person()).await.expect("retried");
        if dies {
            lab.crash().await;
        }
        tokio::time::sleep(s(60)).await;
        assert_eq!(lab.phase(), "fencing", "{:?}", lab.record().fence.map(|fence| fence.outcome));
        assert_eq!(lab.received("bmc1").offs, 0, "two at once, dies: {dies}");
        let wait = lab.view().live.wait.clone().expect("it is said what for");
        assert!(wait.what.contains("fenced at once"), "{wait:?}");
        lab.reach("released", s(600)).await;
    }
}

fn named(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}
