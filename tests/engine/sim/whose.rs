//! S13 after the proof: another machine stands where a fenced one was.

use std::sync::Arc;

use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;
use picket_core::store::FenceQuery;
use picket_driver_sim::{Fault, RestorePolicy};

use crate::lab::{Lab, NODE, lab, node, person, s};

const FENCED: Outcome = Outcome::Fenced { released: true };

async fn exchanged(seed: u64) -> Lab {
    let mut lab = lab(seed).await;
    assert_eq!(lab.fence().await, FENCED);
    lab.world.lock().exchange(NODE, "another");
    lab
}

fn asks_a_person(lab: &Lab) {
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::IdentityMismatch));
    assert_eq!((lab.received("bmc").ons, lab.is_on()), (0, false));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_put_back_or_switched_on_that_is_another_machine() {
    let lab = exchanged(981).await;
    let held = lab.world.lock().hold(NODE);
    lab.unfence().await.expect("let in");
    lab.reach("needs_operator", s(60)).await;
    asks_a_person(&lab);
    assert_eq!(lab.world.lock().hold(NODE), held);
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_over_asks_whom_it_watches() {
    let mut lab = exchanged(982).await;
    lab.crash().await;
    lab.reach("needs_operator", s(60)).await;
    asks_a_person(&lab);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_only_starts_is_asked_whose_it_is_before_it_is_sent_an_on() {
    let mut lab = Lab::with(983, &[&["bmc"], &["outlet"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "outlet");
        world.set_restore(NODE, RestorePolicy::AlwaysOff);
    })
    .await;
    lab.fault("bmc", Fault::Silent);
    assert_eq!(lab.fence().await, FENCED);
    lab.world.lock().exchange(NODE, "another");
    lab.unfence().await.expect("let in");
    tokio::time::sleep(s(20)).await;
    assert_eq!(lab.phase(), "unfencing");
    // It answers for power before it knows whose it is.
    lab.mend("bmc");
    lab.fault("bmc", Fault::DropsQuestions);
    tokio::time::sleep(s(3)).await;
    lab.mend("bmc");
    lab.reach("needs_operator", s(120)).await;
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::IdentityMismatch));
    assert_eq!(lab.received("bmc").ons, 0);
}

/// Whoever knows that it is another machine has a way out: the node is stood down, and nothing of the other one is touched.
#[tokio::test(start_paused = true)]
async fn a_person_stands_it_down_and_the_other_machine_is_let_be() {
    let lab = exchanged(984).await;
    let held = lab.world.lock().hold(NODE);
    lab.unfence().await.expect("let in");
    lab.reach("needs_operator", s(60)).await;
    lab.engine.stand_down(&node(), person()).await.expect("stood down");
    lab.reach("normal", s(600)).await;
    assert_eq!((lab.received("bmc").ons, lab.world.lock().hold(NODE)), (0, held));
    let told = lab.engine.fences(FenceQuery { node: None, before: None, limit: 4 }).await.expect("a store");
    assert!(format!("{told:?}").contains("not put back: bmc says it controls"), "{told:?}");
}

/// It gave no answer when it was asked, and another machine's controller answers a moment later: what that one holds is let be.
#[tokio::test(start_paused = true)]
async fn a_hold_is_put_back_at_no_device_that_gave_no_answer() {
    let mut lab = lab(986).await;
    lab.fault("bmc", Fault::SaysNoIdentity { times: 1_000 });
    assert_eq!(lab.fence().await, FENCED);
    lab.mend("bmc");
    lab.fault("bmc", Fault::DropsQuestions);
    lab.world.lock().exchange(NODE, "another");
    let held = lab.world.lock().hold(NODE);
    lab.unfence().await.expect("let in");
    // Its first call is over, and the third is not.
    tokio::time::sleep(s(8)).await;
    lab.mend("bmc");
    lab.reach("needs_operator", s(60)).await;
    asks_a_person(&lab);
    assert_eq!(lab.world.lock().hold(NODE), held);
}

/// One that never tells whose it is, and answers all else, is switched on all the same.
#[tokio::test(start_paused = true)]
async fn who_does_not_know_the_question_is_brought_back() {
    let mut lab = lab(985).await;
    lab.fault("bmc", Fault::DropsQuestions);
    assert_eq!(lab.fence().await, FENCED);
    lab.unfence().await.expect("let in");
    lab.reach("normal", s(300)).await;
    assert!(lab.is_on());
}

/// S16: the board was exchanged while the node was off, and it is being let back in. Once the settings say so a retry goes by them.
#[tokio::test(start_paused = true)]
async fn a_node_whose_board_was_exchanged_is_let_back_in_once_the_settings_say_so() {
    for is_reloaded in [false, true] {
        let mut lab = exchanged(987).await;
        lab.unfence().await.expect("let in");
        lab.reach("needs_operator", s(60)).await;
        asks_a_person(&lab);
        // With the old settings it is what it was.
        lab.engine.retry(&node(), person()).await.expect("taken");
        lab.reach("needs_operator", s(60)).await;
        let said = lab.world.lock().identity(NODE).clone();
        lab.setup.adjust = Arc::new(move |spec| spec.identity = said.clone());
        if is_reloaded {
            lab.reload().await.expect("taken");
        } else {
            lab.crash().await;
        }
        lab.engine.retry(&node(), person()).await.expect("taken");
        lab.reach("normal", s(300)).await;
        assert!(lab.is_on(), "reloaded: {is_reloaded}");
    }
}
