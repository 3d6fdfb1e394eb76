//! Another machine under the node's name, once all is let go: its board was dead, and new hardware has come (K1).

use std::sync::Arc;

use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::Until;

use super::cluster::Cluster;
use super::{lab, lawful, until};
use crate::lab::{Lab, NODE, node, person, s};

/// A node that is fenced, with all let go.
async fn released(seed: u64) -> (Lab, Arc<Cluster>) {
    let (mut lab, cluster) = lab(seed, s(1)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert!(cluster.seen(|state| state.keeps_pods_away));
    (lab, cluster)
}

fn replaced(cluster: &Cluster) {
    cluster.state.lock().replaced = true;
}

fn needs_a_person(lab: &Lab) {
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::Replaced));
    assert!(!lab.is_on() && lab.received("bmc").ons == 0);
}

#[tokio::test(start_paused = true)]
async fn it_is_found_while_the_node_is_kept_off_and_let_be() {
    let (lab, cluster) = released(940).await;
    tokio::time::sleep(s(600)).await;
    let compared = cluster.seen(|state| state.compared);
    assert!((15..=60).contains(&compared), "at a modest pace: {compared}");
    replaced(&cluster);
    let at = lab.clock.boot();
    lab.reach("needs_operator", s(60)).await;
    assert!(lab.clock.boot().since(at) <= s(40), "{:?}", lab.clock.boot().since(at));
    needs_a_person(&lab);
    assert!(cluster.seen(|state| !state.keeps_pods_away));
    lab.unfence().await.expect_err("a person decides");
    tokio::time::sleep(s(600)).await;
    needs_a_person(&lab);
    lab.engine.retire(&node(), person()).await.expect("retired");
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn it_is_found_before_the_on_which_is_not_sent() {
    let (lab, cluster) = released(941).await;
    replaced(&cluster);
    lab.unfence().await.expect("it is let in");
    lab.reach("needs_operator", s(60)).await;
    needs_a_person(&lab);
    assert!(cluster.seen(|state| !state.keeps_pods_away));
    tokio::time::sleep(s(600)).await;
    needs_a_person(&lab);
    // A person says that this one is meant.
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("normal", s(120)).await;
    lawful(&cluster);
}

/// A cluster that does not answer changes nothing, and the watch of power waits for none of it.
#[tokio::test(start_paused = true)]
async fn nothing_waits_for_the_question_who_it_is() {
    let (lab, cluster) = released(942).await;
    cluster.state.lock().mute = true;
    tokio::time::sleep(s(120)).await;
    assert_eq!(lab.phase(), "released");
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(12)).await;
    lab.reach("released", s(120)).await;
    replaced(&cluster);
    tokio::time::sleep(s(120)).await;
    assert_eq!(lab.phase(), "released");
    cluster.state.lock().mute = false;
    lab.reach("needs_operator", s(60)).await;
    needs_a_person(&lab);
    lawful(&cluster);
}

/// What is found while the store is away, and is not found again, is a person's matter once it is back.
#[tokio::test(start_paused = true)]
async fn what_is_found_while_nothing_can_be_stored_is_not_forgotten() {
    let (mut lab, cluster) = lab(950, s(10_000)).await;
    let fence = lab.open().await;
    until(&cluster, |state| state.stands).await;
    lab.store.away(s(60));
    {
        let mut state = cluster.state.lock();
        (state.comes_beside, state.boot_is_told) = (1, true);
    }
    until(&cluster, |state| !state.boot_is_told).await;
    assert_eq!(lab.phase(), "fenced");
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::NeedsOperator(Reason::Replaced));
    needs_a_person(&lab);
    lawful(&cluster);
}

/// Whom the last fence met outlives it.
#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_retired_node_is_taken_from_whoever_has_its_name_since() {
    let (mut lab, cluster) = released(943).await;
    lab.fault("bmc", Fault::Silent);
    lab.engine.retire(&node(), person()).await.expect("retired");
    tokio::time::sleep(s(60)).await;
    let met = Some("the machine of then".to_owned());
    assert_eq!(cluster.seen(|state| state.gone.clone()), Some(met));
    assert!(cluster.seen(|state| state.keeps_pods_away), "it does not come back");
    lab.crash().await;
    replaced(&cluster);
    until(&cluster, |state| !state.keeps_pods_away).await;
    assert_eq!(lab.phase(), "retired");
    lawful(&cluster);
}

/// Who has it is asked on where a person is waited for: what is another machine's is let be also where nobody answered at first.
#[tokio::test(start_paused = true)]
async fn it_is_let_be_while_a_person_is_waited_for() {
    let (mut lab, cluster) = lab(944, s(10_000)).await;
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    replaced(&cluster);
    until(&cluster, |state| !state.keeps_pods_away).await;
    tokio::time::sleep(s(1)).await;
    needs_a_person(&lab);
    lawful(&cluster);
}

/// What is not proven off may be alive: a boot of its own is no other machine's.
#[tokio::test(start_paused = true)]
async fn whoever_is_not_proven_off_is_not_judged_by_its_boots() {
    let (mut lab, cluster) = lab(959, s(1)).await;
    lab.fault("bmc", Fault::Silent);
    let call = picket_engine::FenceCall { deadline: Some(s(120)), ..lab.call() };
    lab.engine.fence(&node(), call).await.expect("let in");
    until(&cluster, |state| !state.announced.is_empty()).await;
    lab.reach("needs_operator", s(600)).await;
    let asked_for = lab.record().phase;
    assert_ne!(asked_for, Phase::NeedsOperator(Reason::Replaced));
    let compared = cluster.seen(|state| state.compared);
    cluster.state.lock().boot_is_told = true;
    tokio::time::sleep(s(600)).await;
    assert_eq!(cluster.seen(|state| state.compared), compared, "nobody is compared");
    assert_eq!(lab.record().phase, asked_for);
    lawful(&cluster);
}
