//! Devices that are slow, silent, or wait for their turn while something stands: power is read all the same (K3).

use std::sync::Arc;
use std::time::Duration;

use picket_core::ids::NodeId;
use picket_core::outcome::Outcome;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{Unit, UnitLimits};

use super::cluster::Cluster;
use super::{lab, lab_of, lawful, until};
use crate::lab::{Lab, NODE, node, person, s};
use crate::setup::{NodeSetup, Setup, named};
use crate::shared::Door;

/// Beside its BMC there is an agent, which has longer for each answer.
async fn beside_an_agent(seed: u64) -> (Lab, Arc<Cluster>) {
    let mut setup = Setup::new(NODE, &[&["bmc", "agent"]]);
    setup.adjust = Arc::new(|spec| {
        if spec.id.as_str() == "agent" {
            spec.call = s(20);
        }
    });
    lab_of(seed, s(10_000), setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "agent");
    })
    .await
}

/// Somebody switches the node on; how long its taint stands after that.
async fn stands_after_on(lab: &Lab, cluster: &Cluster) -> Duration {
    let at = lab.clock.boot();
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    until(cluster, |state| !state.stands).await;
    lab.clock.boot().since(at)
}

#[tokio::test(start_paused = true)]
async fn an_on_waits_for_no_device_that_is_silent() {
    let (mut lab, cluster) = beside_an_agent(3101).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    lab.fault("agent", Fault::Silent);
    tokio::time::sleep(s(1)).await;
    let took = stands_after_on(&lab, &cluster).await;
    assert!(took < s(4), "{took:?}");
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn nor_does_one_that_speaks_against_a_person_s_word() {
    let (mut lab, cluster) = beside_an_agent(3102).await;
    ["bmc", "agent"].into_iter().for_each(|device| lab.fault(device, Fault::Silent));
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    lab.engine.attest(&node(), person()).await.expect("attested");
    until(&cluster, |state| state.stands).await;
    // A dead device says nothing against it, however often it is asked.
    tokio::time::sleep(s(50)).await;
    assert_eq!(cluster.seen(|state| (state.stands, state.placed.len())), (true, 1));
    lab.mend("bmc");
    tokio::time::sleep(s(7)).await;
    let took = stands_after_on(&lab, &cluster).await;
    assert!(took < s(4), "{took:?}");
    lawful(&cluster);
}

/// Looks of a call to the cluster, and those between two calls, are in a row.
#[tokio::test(start_paused = true)]
async fn three_looks_in_a_row_are_counted_across_calls() {
    let mut all = Vec::new();
    for after in 0..7 {
        let (mut lab, cluster) = lab(3103, s(10_000)).await;
        lab.open().await;
        until(&cluster, |state| state.stands).await;
        cluster.state.lock().answers_after = s(5);
        tokio::time::sleep(s(20) + s(1) * after).await;
        lab.fault("bmc", Fault::Silent);
        let at = lab.clock.boot();
        until(&cluster, |state| !state.stands).await;
        all.push(lab.clock.boot().since(at));
        lawful(&cluster);
    }
    assert!(all.iter().all(|took| *took <= s(12)), "{all:?}");
}

/// An Off that comes late is one: what stands comes to its end, and the device is not asked anew before it has answered.
#[tokio::test(start_paused = true)]
async fn a_device_that_says_off_slowly_keeps_what_stands() {
    for slow in [s(3), s(4)] {
        let (mut lab, cluster) = lab(3104, s(60)).await;
        lab.open().await;
        until(&cluster, |state| state.stands).await;
        lab.fault("bmc", Fault::Slow(slow));
        let before = lab.received("bmc").reads;
        tokio::time::sleep(s(40)).await;
        let reads = lab.received("bmc").reads - before;
        assert!((5..=15).contains(&reads), "{reads} readings that took {slow:?}");
        lab.reach("released", s(60)).await;
        assert_eq!(cluster.seen(|state| state.placed.len()), 1, "{slow:?}");
        lawful(&cluster);
    }
}

/// What its outlets share is busy with another node's for minutes.
async fn waits_for_its_turn(seed: u64) -> (Lab, Arc<Cluster>) {
    let mut setup = Setup::new(NODE, &[&["n1-a", "n1-b"], &["n1-bmc"]]);
    let other = NodeSetup { name: "n2".to_owned(), levels: named(&[&["n2-a"]]), own_host: false };
    setup.nodes.push(other);
    setup.adjust = Arc::new(|spec| {
        if spec.id.as_str() == "n2-a" {
            spec.call = s(400);
        }
    });
    let unit = Unit::new("pdu1", UnitLimits { at_once: 1, pause: Duration::ZERO });
    setup.pdu = Some((Arc::<Door>::default(), Arc::new(unit), Duration::from_millis(20)));
    let (mut lab, cluster) = lab_of(seed, s(10_000), setup, |world| {
        world.add_machine(NODE).add_host(NODE, "n1-bmc");
        world.add_supply(NODE, "n1-a").add_supply(NODE, "n1-b");
        world.add_machine("n2").add_supply("n2", "n2-a");
    })
    .await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    lab.fault("n2-a", Fault::Slow(s(390)));
    let (engine, n2) = (lab.engine.clone(), NodeId::new("n2").expect("a good name"));
    tokio::spawn(async move { engine.check(&n2).await.map(drop) });
    (lab, cluster)
}

#[tokio::test(start_paused = true)]
async fn outlets_that_wait_for_their_turn_are_unknown() {
    let (lab, cluster) = waits_for_its_turn(3105).await;
    let at = lab.clock.boot();
    until(&cluster, |state| !state.stands).await;
    let took = lab.clock.boot().since(at);
    assert!(took < s(13), "{took:?}");
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn an_on_waits_for_no_turn() {
    let (lab, cluster) = waits_for_its_turn(3106).await;
    tokio::time::sleep(s(1)).await;
    for outlet in ["n1-a", "n1-b"] {
        lab.happen(Act::ForeignOutlet { outlet: outlet.to_owned(), verb: Verb::On });
    }
    let took = stands_after_on(&lab, &cluster).await;
    assert!(took < s(4), "{took:?}");
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn three_looks_without_an_answer_take_it_away() {
    let (mut lab, cluster) = lab(903, s(40)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    lab.fault("bmc", Fault::Silent);
    let at = lab.clock.boot();
    until(&cluster, |state| !state.stands).await;
    assert!(lab.clock.boot().since(at) < s(12), "{:?}", lab.clock.boot().since(at));
    // Its session was lost within the fence: nothing is set up anew before it has proven the node again, with the hold of before.
    lab.mend("bmc");
    tokio::time::sleep(s(60)).await;
    assert_eq!(cluster.seen(|state| (state.stands, state.placed.len())), (false, 1));
    lab.reach("released", s(300)).await;
    lawful(&cluster);
}

/// Also while the cluster takes its time for an answer.
#[tokio::test(start_paused = true)]
async fn three_looks_without_an_answer_take_it_away_in_the_middle_of_a_call() {
    let (mut lab, cluster) = lab(910, s(60)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    cluster.state.lock().answers_after = s(300);
    // The next question is under way.
    tokio::time::sleep(s(3)).await;
    lab.fault("bmc", Fault::Silent);
    let at = lab.clock.boot();
    until(&cluster, |state| !state.stands).await;
    // A look waits for two seconds, and the next one begins two seconds later.
    assert!(lab.clock.boot().since(at) < s(13), "{:?}", lab.clock.boot().since(at));
    lawful(&cluster);
}

/// S4: what a device says in another life than it proved the node in is no Off, also in the middle of a call.
#[tokio::test(start_paused = true)]
async fn a_device_that_restarted_ends_the_proof_in_the_middle_of_a_call() {
    for (has_sessions, down) in [(true, s(1)), (false, s(11))] {
        let (mut lab, cluster) = lab(911, s(10_000)).await;
        if !has_sessions {
            lab.world.lock().set_sessionless("bmc");
            lab.crash().await;
        }
        lab.open().await;
        until(&cluster, |state| state.stands).await;
        cluster.state.lock().answers_after = s(300);
        tokio::time::sleep(s(6)).await;
        lab.happen(Act::RestartBmc { device: "bmc".to_owned(), down, estranged: false });
        lab.reach("fencing", down + s(9)).await;
        assert!(cluster.seen(|state| !state.stands), "{has_sessions}");
        lawful(&cluster);
    }
}
