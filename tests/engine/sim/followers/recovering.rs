//! S14, S15: a node that recovers, again and again, costs no leadership after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use picket_core::budget::Budget;
use picket_core::outcome::Outcome;
use picket_driver_sim::Fault;
use picket_engine::Until;
use picket_liveness::Look;

use super::{Two, two_of};
use crate::lab::{Lab, NODE, node, s};
use crate::liveness::as_seen;
use crate::setup::Setup;

/// Two gateways, of which `a` leads, and a node that is well as long as that says so.
async fn two(seed: u64, own_host: bool) -> (Two, Arc<AtomicBool>) {
    let is_well = Arc::new(AtomicBool::new(true));
    let seen = is_well.clone();
    let source = as_seen(move || match seen.load(Ordering::SeqCst) {
        true => Some(Look::Recovered("ready again".to_owned())),
        false => Some(Look::NotRecovered("not ready".to_owned())),
    });
    let budget = Budget { cool_down: s(600), ..Budget::unlimited() };
    let setup = Setup { liveness: Some(source), budget, ..Setup::new(NODE, &[&["bmc"]]) };
    let lab = Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await;
    (two_of(lab, own_host).await, is_well)
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_own_host_is_well_does_not_leave() {
    let (mut two, _) = two(8_031, true).await;
    for _ in 0..3 {
        let id = two.a.open().await;
        assert_eq!(two.a.outcome(id, Until::Released).await, Outcome::AbortedRecovered);
        two.a.reach("normal", s(60)).await;
        assert_eq!(two.leader().await, "a");
    }
    assert_eq!((two.a.is_on(), two.a.received("bmc").offs), (true, 0));
}

#[tokio::test(start_paused = true)]
async fn a_program_ends_a_leadership_by_a_node_at_most_once_in_the_cool_down() {
    let (mut two, is_well) = two(8_032, false).await;
    two.a.fault("bmc", Fault::Silent);
    is_well.store(false, Ordering::SeqCst);
    two.a.open().await;
    tokio::time::sleep(s(30)).await;
    assert_eq!((two.leader().await.as_str(), two.phase_at_b()), ("b", "fencing"));
    recovers(&two, &is_well).await;
    fences_at_b(&mut two, false).await;
    assert_eq!((two.leader().await.as_str(), two.phase_at_b()), ("b", "fencing"), "it was so a minute ago");
    recovers(&two, &is_well).await;
    fences_at_b(&mut two, true).await;
    assert_eq!(two.leader().await, "a", "a person's is handed over");
    two.stop.cancel();
}

/// After the cool-down the node may be as silent as the first time.
#[tokio::test(start_paused = true)]
async fn and_again_after_it() {
    let (mut two, is_well) = two(8_033, false).await;
    two.a.fault("bmc", Fault::Silent);
    is_well.store(false, Ordering::SeqCst);
    two.a.open().await;
    tokio::time::sleep(s(30)).await;
    recovers(&two, &is_well).await;
    tokio::time::sleep(s(600)).await;
    fences_at_b(&mut two, false).await;
    assert_eq!(two.leader().await, "a");
    two.stop.cancel();
}

/// The fence at `b` ends by that, and the node is dead again.
async fn recovers(two: &Two, is_well: &AtomicBool) {
    is_well.store(true, Ordering::SeqCst);
    tokio::time::sleep(s(60)).await;
    assert_eq!(two.phase_at_b(), "normal");
    is_well.store(false, Ordering::SeqCst);
}

/// `b` leads, and has half a minute for it.
async fn fences_at_b(two: &mut Two, by_person: bool) {
    let mut call = two.a.call();
    call.holder.by_person = by_person;
    two.b.fence(&node(), call).await.expect("let in");
    tokio::time::sleep(s(30)).await;
}
