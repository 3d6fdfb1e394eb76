//! A child's hold on its parent: what ends it, and who may (S22, S16).

use std::time::Duration;

use picket_core::ids::DeviceId;
use picket_core::machine::Refused;
use picket_core::power::Power;
use picket_core::time::Clock;
use picket_driver_sim::Fault;
use picket_engine::{EngineError, ReceiptCall, Until};

use crate::families::{HV, RELEASED, deaf, family, holds, id, phase};
use crate::lab::{Answer, Lab, NODE, person, s};
use crate::setup::PARENT;

const HOLDER: &str = "child:n1";

/// Nothing switches the parent off: neither its BMC nor its outlets.
fn parent_is_deaf(lab: &Lab) {
    ["hv1-bmc", "hv1-a", "hv1-b"].into_iter().for_each(|device| lab.fault(device, Fault::OffRefused));
}

fn parent_is_mended(lab: &Lab) {
    ["hv1-bmc", "hv1-a", "hv1-b"].into_iter().for_each(|device| lab.mend(device));
}

/// The level that proves the child.
fn proven_by(lab: &Lab) -> usize {
    lab.record().fence.and_then(|fence| fence.evidence).expect("proven").level
}

async fn end_the_hold(lab: &Lab) {
    lab.engine.end_childs_hold(&id(HV), HOLDER.to_owned(), person()).await.expect("ended");
}

/// Until the child holds its parent no more.
async fn hold_goes(lab: &Lab, within: Duration) {
    let goes = async {
        while !holds(lab).is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(within, goes).await.expect("nothing of the child relies on it");
}

/// The child is proven by its parent, which it holds, and all of it is let go.
async fn released(seed: u64) -> Lab {
    let mut lab = family(seed, 1, |_| {}).await;
    deaf(&lab, 1);
    let fence = lab.open().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, RELEASED);
    lab
}

/// Child and parent run and are well, and both wait for a person: nothing switched either of them off.
async fn both_wait(seed: u64) -> Lab {
    let mut lab = family(seed, 1, |_| {}).await;
    deaf(&lab, 1);
    parent_is_deaf(&lab);
    lab.open().await;
    lab.reach("needs_operator", s(3_600)).await;
    lab.reach_of(&id(HV), "needs_operator", s(3_600)).await;
    assert_eq!(holds(&lab), [HOLDER]);
    lab
}

/// The child that is stood down keeps its parent no more, and is not kept by it.
#[tokio::test(start_paused = true)]
async fn a_child_and_its_parent_that_both_wait_for_a_person_are_stood_down_one_after_the_other() {
    let lab = both_wait(743).await;
    lab.engine.stand_down(&id(HV), person()).await.expect_err("its child is kept off by it");
    lab.engine.stand_down(&id(NODE), person()).await.expect("taken");
    hold_goes(&lab, s(60)).await;
    lab.engine.stand_down(&id(HV), person()).await.expect("no child is kept off by it");
    lab.reach("normal", s(3_600)).await;
    lab.reach_of(&id(HV), "normal", s(3_600)).await;
    assert!(lab.is_on());
}

/// An admin of the parent has no right over the child, and brings his machine back.
#[tokio::test(start_paused = true)]
async fn an_admin_of_the_parent_ends_the_hold_of_a_child_that_waits_for_a_person() {
    let mut lab = both_wait(744).await;
    end_the_hold(&lab).await;
    hold_goes(&lab, s(60)).await;
    lab.engine.stand_down(&id(HV), person()).await.expect("no child is kept off by it");
    lab.reach_of(&id(HV), "normal", s(3_600)).await;
    // The child's fence does not take the machine again, whoever tries it again.
    lab.engine.retry(&id(NODE), person()).await.expect("let in");
    tokio::time::sleep(s(30)).await;
    lab.reach("needs_operator", s(3_600)).await;
    assert_eq!((phase(&lab, HV), holds(&lab).len()), ("normal", 0));
    // What somebody else switched off proves it all the same.
    let call = lab.call();
    lab.engine.fence(&id(HV), call).await.expect("let in");
    parent_is_mended(&lab);
    lab.engine.retry(&id(NODE), person()).await.expect("let in");
    lab.reach("released", s(3_600)).await;
    assert_eq!(proven_by(&lab), 2);
}

/// Its own device proves it, once that is mended, and the machine on which it runs is let be.
#[tokio::test(start_paused = true)]
async fn a_child_whose_hold_was_ended_is_proven_by_its_own_device() {
    let lab = both_wait(749).await;
    end_the_hold(&lab).await;
    hold_goes(&lab, s(60)).await;
    lab.engine.stand_down(&id(HV), person()).await.expect("no child is kept off by it");
    lab.reach_of(&id(HV), "normal", s(3_600)).await;
    lab.mend("server");
    lab.engine.retry(&id(NODE), person()).await.expect("let in");
    lab.reach("released", s(900)).await;
    assert_eq!(phase(&lab, HV), "normal");
}

/// What the parent proved of its child is void before the parent comes back: nothing more is let go by it.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_child_s_hold_voids_its_proof_before_the_parent_comes_back() {
    for (seed, released) in [(745, false), (746, true)] {
        let mut lab = family(seed, 1, |_| {}).await;
        deaf(&lab, 1);
        let fence = lab.open().await;
        lab.reach_of(&id(HV), "released", s(900)).await;
        if !released {
            lab.answers(&[Answer::Accept]);
        }
        lab.reach(if released { "released" } else { "fenced" }, s(900)).await;
        if released {
            assert_eq!(lab.outcome(fence, Until::Released).await, RELEASED);
        }
        lab.engine.unfence(&id(HV), HOLDER.to_owned(), person()).await.expect_err("the child's own");
        end_the_hold(&lab).await;
        let attempts = lab.attempts();
        lab.reach_of(&id(HV), "unfencing", s(120)).await;
        assert_ne!(lab.record().phase.label(), "fenced", "its proof is void by then");
        assert_eq!(lab.attempts(), attempts);
        lab.mend("server");
        lab.reach_of(&id(HV), "normal", s(900)).await;
        lab.answers(&[Answer::Complete]);
        // Its own device proves it, and its parent is let be.
        lab.reach("released", s(900)).await;
        assert_eq!((proven_by(&lab), phase(&lab, HV), holds(&lab).len()), (1, "normal", 0));
    }
}

/// A child's receipt says until when no on is sent: the parent waits for that, too.
#[tokio::test(start_paused = true)]
async fn a_parent_whose_child_s_hold_was_ended_stays_off_while_a_receipt_of_the_child_holds() {
    let lab = released(747).await;
    let (by, audience) = ("db".to_owned(), "storage".to_owned());
    let receipt = ReceiptCall { by, audience, fence: None, renews: None };
    let receipt = lab.engine.receipt(&id(NODE), receipt).await.expect("proven off");
    let ends = lab.clock.boot() + receipt.lasts;
    end_the_hold(&lab).await;
    tokio::time::sleep(s(30)).await;
    let view = lab.view();
    let said = &view.live.devices[&DeviceId::new(PARENT).expect("a good name")].said;
    assert!(said.contains("by the word of an admin"), "{said}");
    lab.mend("server");
    lab.reach_of(&id(HV), "normal", s(900)).await;
    let on = lab.world.lock().edges(HV, lab.clock.boot()).last().expect("it is on").at;
    assert!(on > ends, "on {:?} before the receipt's end", ends.since(on));
}

#[tokio::test(start_paused = true)]
async fn only_the_hold_of_a_child_is_ended_so() {
    let mut lab = family(748, 1, |_| {}).await;
    let call = lab.call();
    lab.engine.fence(&id(HV), call).await.expect("let in");
    lab.reach_of(&id(HV), "released", s(300)).await;
    for holder in ["db", HOLDER] {
        let refused = lab.engine.end_childs_hold(&id(HV), holder.to_owned(), person()).await;
        assert!(matches!(refused, Err(EngineError::Refused(Refused::NoSuchHold { .. }))), "{refused:?}");
    }
    assert_eq!(phase(&lab, HV), "released");
}

/// However long it takes to tell where a child runs: no answer of before the hold was ended proves the child after it.
#[tokio::test(start_paused = true)]
async fn no_reading_of_before_the_end_of_a_hold_proves_the_child_after_it() {
    let mut lab = family(750, 1, |setup| setup.placing = s(6)).await;
    deaf(&lab, 1);
    lab.open().await;
    lab.reach_of(&id(HV), "released", s(900)).await;
    let parent = DeviceId::new(PARENT).expect("a good name");
    let reads_off = || {
        let view = lab.view();
        view.live
            .devices
            .get(&parent)
            .is_some_and(|live| live.power.is_some_and(|(power, _)| power == Power::Off))
    };
    while !reads_off() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The next answer of its parent, with which it would be proven, is there, and where it runs is being asked.
    tokio::time::sleep(s(2)).await;
    let confirmed = || lab.points.seen.lock().iter().filter(|point| *point == "saved confirmed").count();
    let before = confirmed();
    assert_eq!(lab.phase(), "fencing");
    end_the_hold(&lab).await;
    hold_goes(&lab, s(60)).await;
    tokio::time::sleep(s(60)).await;
    assert_eq!(confirmed(), before, "by a parent that holds it no more");
}

/// A proof that is being stored when the hold is ended keeps the parent off until it is stored that it is none.
#[tokio::test(start_paused = true)]
async fn a_parent_stays_off_while_a_proof_of_its_child_by_it_is_being_stored() {
    let mut lab = family(751, 1, |_| {}).await;
    deaf(&lab, 1);
    lab.answers(&vec![Answer::Accept; 400]);
    let call = lab.call();
    lab.engine.fence(&id(HV), call).await.expect("let in");
    lab.reach_of(&id(HV), "fenced", s(900)).await;
    lab.answers(&[Answer::Complete]);
    lab.reach_of(&id(HV), "released", s(900)).await;
    *lab.points.waits_at.lock() = Some(("saving confirmed", s(40)));
    lab.open().await;
    while lab.points.waits_at.lock().is_some() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    end_the_hold(&lab).await;
    lab.engine.unfence(&id(HV), "db".to_owned(), person()).await.expect("taken");
    tokio::time::sleep(s(35)).await;
    assert_eq!((phase(&lab, HV), lab.phase()), ("released", "fencing"));
    assert_eq!(holds(&lab), [HOLDER]);
    hold_goes(&lab, s(60)).await;
    assert_eq!(lab.phase(), "fencing", "its proof is void by then");
}

/// What waits for its parent, which is being fenced, waits no more once an admin of that one ended its hold.
#[tokio::test(start_paused = true)]
async fn a_child_whose_hold_was_ended_does_not_wait_for_its_parent() {
    let mut lab = family(752, 1, |_| {}).await;
    deaf(&lab, 1);
    ["hv1-bmc", "hv1-a", "hv1-b"].into_iter().for_each(|device| lab.fault(device, Fault::OffIgnored));
    let mut call = lab.call();
    call.deadline = Some(s(3_600));
    lab.engine.fence(&id(NODE), call).await.expect("let in");
    lab.reach_of(&id(HV), "fencing", s(900)).await;
    end_the_hold(&lab).await;
    let is_told = || {
        lab.record().fence.is_some_and(|fence| {
            fence.moments.iter().any(|moment| moment.what.starts_with("level 2 did not hold"))
        })
    };
    let told = tokio::time::timeout(s(320), async {
        while !is_told() {
            tokio::time::sleep(s(1)).await;
        }
    });
    told.await.expect("its levels have their turns");
    assert_eq!((lab.phase(), phase(&lab, HV)), ("fencing", "fencing"));
}

/// Nobody watches a node that has left the settings; who may bring back the machine on which it ran has no right over it.
#[tokio::test(start_paused = true)]
async fn the_hold_of_a_child_that_left_the_settings_is_ended_too() {
    let mut lab = released(753).await;
    lab.kill().await;
    lab.setup.nodes.retain(|node| node.name != NODE);
    lab.start().await;
    assert!(lab.view().live.orphaned.is_some());
    lab.reach_of(&id(HV), "released", s(900)).await;
    end_the_hold(&lab).await;
    lab.reach_of(&id(HV), "normal", s(900)).await;
    assert_eq!(lab.phase(), "fencing", "its proof is void");
}

#[tokio::test(start_paused = true)]
async fn the_hold_on_a_parent_that_left_the_settings_is_ended_and_the_parent_retired() {
    let mut lab = released(754).await;
    lab.kill().await;
    lab.setup.nodes.retain(|node| node.name != HV);
    lab.start().await;
    lab.engine.retire(&id(HV), person()).await.expect_err("its child is kept off by it");
    end_the_hold(&lab).await;
    hold_goes(&lab, s(120)).await;
    assert_eq!(lab.phase(), "fencing", "its proof is void");
    lab.engine.retire(&id(HV), person()).await.expect("no child is kept off by it");
}

/// A parent that a restore keeps off waits for its admin alone.
#[tokio::test(start_paused = true)]
async fn after_a_restore_the_hold_of_a_child_goes_as_well() {
    for (seed, is_retired) in [(755, true), (756, false)] {
        let mut lab = released(seed).await;
        let file = lab.backup().await;
        lab.restore(&file).await;
        lab.start().await;
        lab.reach_of(&id(HV), "fenced", s(300)).await;
        // Nothing says whether the child is on while its parent is off, and not proven.
        lab.reach("needs_operator", s(300)).await;
        if is_retired {
            lab.engine.retire(&id(NODE), person()).await.expect("retired");
        } else {
            end_the_hold(&lab).await;
        }
        let is_held = || holds(&lab).contains(&HOLDER.to_owned());
        let goes = async {
            while is_held() {
                tokio::time::sleep(s(1)).await;
            }
        };
        tokio::time::timeout(s(300), goes).await.expect("nothing of the child relies on it");
        lab.engine.drop_restored(&id(HV), person()).await.expect("dropped");
        lab.reach_of(&id(HV), "normal", s(900)).await;
    }
}
