//! A parent whose children ask again and again, and what else goes wrong with it meanwhile (S22).

use std::sync::atomic::Ordering;
use std::time::Duration;

use picket_driver_sim::{Act, Fault, Moving};
use picket_engine::{EngineError, Until};

use crate::families::{HV, RELEASED, child, deaf, family, fence_all, holds, id, phase};
use crate::lab::{NODE, person, s};
use crate::setup::{PARENT, named};

/// One node's proof, however many ask of it and however slow what proves it is.
#[tokio::test(start_paused = true)]
async fn a_slow_proof_is_not_voided_by_those_who_ask_of_it() {
    let mut lab = family(743, 4, |_| {}).await;
    deaf(&lab, 4);
    lab.fault("hv1-bmc", Fault::Slow(Duration::from_millis(1_300)));
    for number in 1..=4 {
        let call = lab.call();
        lab.engine.fence(&id(&child(number)), call).await.expect("let in");
        tokio::time::sleep(Duration::from_millis(2_200)).await;
    }
    for number in 1..=4 {
        lab.reach_of(&id(&child(number)), "released", s(900)).await;
    }
    let round = lab.engine.node(&id(HV)).expect("a node").stored.record.fence.as_ref().expect("open").round;
    assert_eq!((phase(&lab, HV), round), ("released", 0));
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_is_found_on_is_heard_through_all_who_look() {
    let mut lab = family(744, 12, |setup| {
        let levels = named(&[&["hv1-agent"], &["hv1-bmc"]]);
        setup.nodes.iter_mut().filter(|node| node.name == HV).for_each(|node| node.levels = levels.clone());
    })
    .await;
    deaf(&lab, 12);
    lab.fault("hv1-agent", Fault::Silent);
    fence_all(&mut lab, 12).await;
    for number in 1..=12 {
        lab.reach_of(&id(&child(number)), "released", s(900)).await;
    }
    // What did not prove it is back: it says On, and takes its time to.
    lab.mend("hv1-agent");
    lab.fault("hv1-agent", Fault::Slow(Duration::from_millis(400)));
    lab.fault("hv1-agent", Fault::SaysOn);
    let before = lab.engine.node(&id(HV)).expect("a node").stored.record.breaches;
    tokio::time::sleep(s(25)).await;
    assert!(lab.engine.node(&id(HV)).expect("a node").stored.record.breaches > before);
}

#[tokio::test(start_paused = true)]
async fn the_levels_after_a_parent_that_takes_long_have_their_time() {
    let mut lab = family(745, 1, |setup| {
        setup.nodes[0].levels = named(&[&["server"], &[PARENT], &["own-bmc"]]);
    })
    .await;
    deaf(&lab, 1);
    ["hv1-bmc", "hv1-a", "hv1-b"].into_iter().for_each(|device| lab.fault(device, Fault::OffRefused));
    let fence = lab.open().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, RELEASED);
    assert_eq!(lab.record().fence.and_then(|fence| fence.evidence).map(|evidence| evidence.level), Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_parent_is_let_go_also_where_nobody_tells_where_its_child_runs() {
    let mut lab = family(746, 1, |_| {}).await;
    deaf(&lab, 1);
    let fence = lab.open().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, RELEASED);
    lab.setup.unplaced.store(true, Ordering::SeqCst);
    lab.unfence().await.expect("unfenced");
    lab.reach_of(&id(HV), "normal", s(900)).await;
    assert!(holds(&lab).is_empty());
}

/// In the first moments of a leadership, too: what a child's hold is worth is what the store says.
#[tokio::test(start_paused = true)]
async fn a_parent_s_task_that_begins_before_its_child_s_keeps_the_hold() {
    for seed in 747..755 {
        // Nothing is asked of it before it looks what holds it: it has outlets alone.
        let mut lab = family(seed, 1, |setup| {
            let outlets = named(&[&["hv1-a", "hv1-b"]]);
            setup
                .nodes
                .iter_mut()
                .filter(|node| node.name == HV)
                .for_each(|node| node.levels = outlets.clone());
        })
        .await;
        deaf(&lab, 1);
        let fence = lab.open().await;
        assert_eq!(lab.outcome(fence, Until::Released).await, RELEASED);
        lab.crash().await;
        tokio::time::sleep(s(60)).await;
        assert_eq!((phase(&lab, HV), holds(&lab)), ("released", vec!["child:n1".to_owned()]));
    }
}

#[tokio::test(start_paused = true)]
async fn an_orphaned_parent_lets_its_child_come_back_and_the_other_way_round() {
    let mut lab =
        family(755, 1, |setup| drop(setup.addresses.insert(HV.to_owned(), "here".to_owned()))).await;
    deaf(&lab, 1);
    let fence = lab.open().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, RELEASED);
    lab.kill().await;
    lab.setup.addresses.insert(HV.to_owned(), "elsewhere".to_owned());
    lab.start().await;
    tokio::time::sleep(s(60)).await;
    let asked = lab.engine.retire(&id(HV), person()).await;
    let Err(EngineError::Refused(refused)) = asked else { panic!("{asked:?}") };
    assert!(refused.to_string().contains("unfence the child"), "{refused}");
    // Its child comes back without it: where it runs now is its owner's matter.
    lab.happen(Act::Move { machine: NODE.to_owned(), moving: Moving::Arrives("hv2".to_owned()) });
    lab.mend("server");
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(900)).await;
    assert!(lab.is_on());
    lab.engine.retire(&id(HV), person()).await.expect("nobody is kept off by it any more");
}

/// However slow the proof, and however many ask: its watch comes to its end, and what is due then is done.
#[tokio::test(start_paused = true)]
async fn a_parent_s_watch_comes_to_its_end_through_all_who_look() {
    let mut lab = family(756, 12, |_| {}).await;
    deaf(&lab, 12);
    fence_all(&mut lab, 12).await;
    for number in 1..=12 {
        lab.reach_of(&id(&child(number)), "released", s(900)).await;
    }
    lab.fault("hv1-bmc", Fault::Slow(Duration::from_millis(1_300)));
    tokio::time::sleep(s(60)).await;
    // A retired child's hold is dropped at the end of a watch.
    lab.engine.retire(&id(&child(12)), person()).await.expect("retired");
    tokio::time::sleep(s(60)).await;
    assert!(!holds(&lab).contains(&"child:n12".to_owned()), "{:?}", holds(&lab));
}
