//! Checks, which ask devices who they are and whether they are on, and fences, which do not wait for them.

use std::time::Duration;

use picket_core::ids::{DeviceId, NodeId, ReceiptId};
use picket_core::time::WallTime;
use picket_driver_sim::Fault;
use picket_engine::Until;
use tokio::time::Instant;

use crate::lab::{Lab, NODE, lab, node, person, s};
use crate::setup::{NodeSetup, Setup, named};

/// What a first off may take from the request on: identity, hold and look of a BMC that answers in milliseconds. A call
/// of a check that hangs would go on for seconds.
const SOON: Duration = Duration::from_millis(100);
/// So long a check has hung when the fence comes: the next copy of its question is due more than a second later.
const HUNG: Duration = Duration::from_secs(2);

fn world(world: &mut picket_driver_sim::World) {
    world.add_machine(NODE).add_host(NODE, "bmc");
}

/// Fences the node, whose BMC answers again from now on; how long it took until the first off arrived.
async fn first_off(lab: &mut Lab) -> Duration {
    assert_eq!(lab.received("bmc").offs, 0);
    lab.mend("bmc");
    let asked = Instant::now();
    let id = lab.open().await;
    while lab.received("bmc").offs == 0 {
        assert!(asked.elapsed() < s(60), "no off");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = asked.elapsed();
    assert_eq!(lab.outcome(id, Until::Released).await.label(), "fenced");
    took
}

#[tokio::test(start_paused = true)]
async fn without_any_check_the_first_off_goes_out_soon() {
    let mut lab = lab(400).await;
    let took = first_off(&mut lab).await;
    assert!(took < SOON, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_fence_ends_the_check_of_the_start_that_hangs() {
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.check_at_start = true;
    let mut lab = Lab::dark(401, setup, world);
    lab.fault("bmc", Fault::Silent);
    lab.start().await;
    tokio::time::sleep(HUNG).await;
    assert!(lab.view().live.devices.is_empty(), "the check still waits for an answer");
    let took = first_off(&mut lab).await;
    assert!(took < SOON, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_fence_ends_a_readiness_call_that_hangs() {
    let mut lab = lab(402).await;
    lab.fault("bmc", Fault::Silent);
    let engine = lab.engine.clone();
    let caller = tokio::spawn(async move { engine.check(&node()).await });
    tokio::time::sleep(HUNG).await;
    assert!(!caller.is_finished());
    let began = Instant::now();
    let took = first_off(&mut lab).await;
    assert!(took < SOON, "{took:?}");
    let view = caller.await.expect("it ends").expect("what is known is told");
    assert_eq!(view.plan.id, node());
    assert!(began.elapsed() < s(30));
}

/// What another request ended is asked again soon, and not after the interval.
#[tokio::test(start_paused = true)]
async fn a_check_that_another_request_ended_is_made_up_for() {
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.check_at_start = true;
    setup.rules.check_every = s(300);
    let mut lab = Lab::dark(403, setup, world);
    lab.fault("bmc", Fault::Silent);
    lab.start().await;
    tokio::time::sleep(HUNG).await;
    assert!(lab.view().live.devices.is_empty(), "the check still waits for an answer");
    // The settings say whose machine it is: nothing is asked, and the node stays where it is.
    let bmc = DeviceId::new("bmc").expect("a good name");
    let accepted = lab.engine.accept_identity(&node(), bmc, Default::default(), person()).await;
    accepted.expect_err("nothing is accepted");
    assert!(lab.view().live.devices.is_empty(), "the request ended the check");
    lab.mend("bmc");
    tokio::time::sleep(s(10)).await;
    assert!(!lab.view().live.devices.is_empty(), "it is checked by now");
}

/// S13, S14: the identity is learned at a check and never in a fence, whoever asks for what changes nothing meanwhile, one at a time or many.
#[tokio::test(start_paused = true)]
async fn callers_who_never_pause_keep_no_node_from_being_checked() {
    for callers in [1, 64] {
        let mut setup = Setup::new(NODE, &[&["bmc"]]);
        setup.check_at_start = true;
        setup.adjust = std::sync::Arc::new(|spec| spec.identity = Default::default());
        let mut lab = Lab::dark(405, setup, world);
        // Its power, its identity and its hold are three calls.
        lab.fault("bmc", Fault::Slow(s(1)));
        lab.start().await;
        let mut asked = tokio::task::JoinSet::new();
        for _ in 0..callers {
            let (engine, call) = (lab.engine.clone(), lab.call());
            let old = ReceiptId::mint(WallTime::default(), [7; 10]);
            asked.spawn(async move {
                loop {
                    engine.plan(&node(), call.clone()).await.expect("planned");
                    engine.verify_receipt(&node(), old, true).await.expect("nothing is kept of it");
                    let unfence = engine.unfence(&node(), "db".to_owned(), person()).await;
                    unfence.expect_err("nobody keeps it off");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            });
        }
        let checked = tokio::time::timeout(s(60), lab.engine.check(&node())).await.expect("it ends");
        let live = checked.expect("shown").live;
        assert!(live.devices.values().any(|device| device.checked.is_some()), "{callers} callers: {live:?}");
        tokio::time::sleep(s(10)).await;
        assert_eq!(lab.record().learned.len(), 1, "{callers} callers");
        drop(asked);
    }
}

/// Devices that are dead, and whoever wants to know of them, have one of the two turns between them: the other is there for a fence.
#[tokio::test(start_paused = true)]
async fn a_fence_does_not_wait_for_logins_of_checks() {
    let other = |index: usize| format!("a{index:03}");
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.logins = 2;
    setup.nodes.extend((0..OTHERS).map(|index| NodeSetup {
        name: other(index),
        levels: named(&[&[format!("dead{index}").as_str()]]),
        own_host: false,
    }));
    let mut lab = Lab::dark(404, setup, |made| {
        world(made);
        for index in 0..OTHERS {
            let (name, device) = (other(index), format!("dead{index}"));
            made.add_machine(&name).add_host(&name, &device).fault(&device, Fault::Silent);
        }
    });
    lab.start().await;
    let mut asked = tokio::task::JoinSet::new();
    for index in 0..OTHERS {
        let (engine, id) = (lab.engine.clone(), NodeId::new(&other(index)).expect("a good name"));
        asked.spawn(async move { engine.check(&id).await.map(drop) });
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    let took = first_off(&mut lab).await;
    assert!(took < SOON, "{took:?}");
    // They were not forgotten meanwhile.
    while let Some(one) = asked.join_next().await {
        one.expect("no panic").expect("it is shown");
    }
    for index in 0..OTHERS {
        let id = NodeId::new(&other(index)).expect("a good name");
        let live = lab.engine.node(&id).expect("known").live.clone();
        assert!(live.devices.values().any(|device| device.fault.is_some()), "{id}: {live:?}");
    }
}

/// More nodes than are checked side by side, all but ours behind dead BMCs.
const OTHERS: usize = 200;

#[tokio::test(start_paused = true)]
async fn a_fence_does_not_wait_for_the_turn_of_its_check() {
    // Ours is the last to ask for a turn.
    let other = |index: usize| format!("a{index:03}");
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.check_at_start = true;
    setup.nodes.extend((0..OTHERS).map(|index| NodeSetup {
        name: other(index),
        levels: named(&[&[format!("dead{index}").as_str()]]),
        own_host: false,
    }));
    let mut lab = Lab::dark(403, setup, |made| {
        world(made);
        for index in 0..OTHERS {
            let (name, device) = (other(index), format!("dead{index}"));
            made.add_machine(&name).add_host(&name, &device).fault(&device, Fault::Silent);
        }
    });
    lab.start().await;
    tokio::time::sleep(HUNG).await;
    assert_eq!(lab.received("bmc").opens, 0, "it waits for its turn");
    let took = first_off(&mut lab).await;
    assert!(took < SOON, "{took:?}");
    // The others were not forgotten meanwhile: each is found unreachable in its turn.
    tokio::time::sleep(s(60)).await;
    for index in 0..OTHERS {
        let id = NodeId::new(&other(index)).expect("a good name");
        let live = lab.engine.node(&id).expect("known").live;
        assert!(live.devices.values().any(|device| device.fault.is_some()), "{id}: {live:?}");
    }
}
