//! S13 where devices of two nodes claim the same: neither is told by it, and who never knew better stops.

use std::sync::Arc;

use picket_core::device::{DeviceSpec, Grade, Identity};
use picket_core::ids::{DeviceId, NodeId};
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::{NodeRecord, Phase};
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault};

use crate::lab::{Lab, NODE, node, person, s};
use crate::setup::{NodeSetup, Setup, named};

fn two() -> Setup {
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.nodes.push(NodeSetup { name: "n2".to_owned(), levels: named(&[&["other"]]), own_host: false });
    setup
}

async fn lab(seed: u64, setup: Setup) -> Lab {
    Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_machine("n2").add_host("n2", "other");
    })
    .await
}

/// The address of the other one's device is the first one's, by another way.
fn is_misled(lab: &Lab) {
    let said = lab.world.lock().identity(NODE).clone();
    lab.fault("other", Fault::SaysIdentity(said));
}

fn n2() -> NodeId {
    NodeId::new("n2").expect("a good name")
}

fn record_of_n2(lab: &Lab) -> NodeRecord {
    lab.engine.node(&n2()).expect("known").stored.record.clone()
}

/// A fence of the other one sends nothing, and a person is told why.
async fn is_stopped(lab: &mut Lab) {
    let call = lab.call();
    lab.engine.fence(&n2(), call).await.expect("let in");
    tokio::time::sleep(s(120)).await;
    let record = record_of_n2(lab);
    assert_eq!(record.phase, Phase::NeedsOperator(Reason::IdentityMismatch), "{record:?}");
    let told = format!("{record:?}");
    assert!(told.contains("and so does n1/bmc"), "{told}");
    assert_eq!(lab.received("other").offs, 0);
}

/// By the settings, n1's; and by none, n2's.
#[tokio::test(start_paused = true)]
async fn a_machine_that_the_settings_give_to_another_node_is_not_switched_off_also_where_that_one_is_silent()
{
    let mut setup = two();
    setup.adjust = Arc::new(|spec: &mut DeviceSpec| {
        if spec.id.to_string() == "other" {
            spec.identity = Identity::default();
        }
    });
    let mut lab = lab(67, setup).await;
    is_misled(&lab);
    lab.fault("bmc", Fault::Silent);
    lab.engine.check(&n2()).await.expect("checked");
    assert!(record_of_n2(&lab).learned.is_empty(), "what is another's is not learned");
    is_stopped(&mut lab).await;
}

/// The settings give a serial number, and the device says a UUID alone: what it says is another node's, and nothing of it is what was expected.
#[tokio::test(start_paused = true)]
async fn nor_where_the_settings_say_of_this_one_what_its_device_never_says() {
    let mut setup = two();
    setup.adjust = Arc::new(|spec: &mut DeviceSpec| {
        let serial = (spec.id.to_string() == "other").then(|| "SN-0041".to_owned());
        spec.identity = Identity { uuid: None, serial };
    });
    let mut lab = lab(72, setup).await;
    lab.engine.check(&node()).await.expect("checked");
    let uuid = lab.world.lock().identity(NODE).uuid.clone();
    lab.fault("other", Fault::SaysIdentity(Identity { uuid, serial: None }));
    for heard in [true, false] {
        if !heard {
            lab.fault("bmc", Fault::Silent);
        }
        let call = lab.call();
        lab.engine.fence(&n2(), call).await.expect("let in");
        tokio::time::sleep(s(120)).await;
        let record = record_of_n2(&lab);
        assert_eq!(record.phase, Phase::NeedsOperator(Reason::IdentityMismatch), "{record:?}");
        assert_eq!(lab.received("other").offs, 0);
        lab.engine.stand_down(&n2(), person()).await.expect("stood down");
        lab.reach_of(&n2(), "normal", s(600)).await;
    }
}

/// Its address leads to the other one's board, which starts and says nothing of its machine at first: it is asked again.
#[tokio::test(start_paused = true)]
async fn nor_is_one_that_says_nothing_of_its_machine_at_first() {
    for times in 1..=2 {
        let mut lab = lab(73, two()).await;
        let firsts = lab.world.lock().identity(NODE).clone();
        lab.fault("other", Fault::SaysNoIdentity { times });
        lab.fault("other", Fault::SaysIdentity(firsts));
        let call = lab.call();
        lab.engine.fence(&n2(), call).await.expect("let in");
        tokio::time::sleep(s(120)).await;
        let is_stopped = record_of_n2(&lab).phase == Phase::NeedsOperator(Reason::IdentityMismatch);
        assert_eq!((is_stopped, lab.received("other").offs), (true, 0), "{:?}", record_of_n2(&lab).phase);
    }
}

/// The addresses of the two are swapped, and only the first one's machine is known.
#[tokio::test(start_paused = true)]
async fn nor_is_one_whose_own_device_says_that_it_controls_another() {
    for is_in_settings in [true, false] {
        let mut setup = two();
        setup.adjust = Arc::new(move |spec: &mut DeviceSpec| {
            if !is_in_settings || spec.id.to_string() == "other" {
                spec.identity = Identity::default();
            }
        });
        let mut lab = lab(70, setup).await;
        lab.engine.check(&node()).await.expect("checked");
        let seconds = lab.world.lock().identity("n2").clone();
        lab.fault("bmc", Fault::SaysIdentity(seconds));
        is_misled(&lab);
        lab.engine.check(&node()).await.expect("checked");
        lab.engine.check(&n2()).await.expect("checked");
        assert!(record_of_n2(&lab).learned.is_empty(), "what is another's is not learned");
        let call = lab.call();
        lab.engine.fence(&n2(), call).await.expect("let in");
        tokio::time::sleep(s(120)).await;
        let record = record_of_n2(&lab);
        assert_eq!(record.phase, Phase::NeedsOperator(Reason::IdentityMismatch), "{record:?}");
        let told = format!("{record:?}");
        assert!(told.contains("which is what n1/bmc is to control"), "{told}");
        assert_eq!(lab.received("other").offs, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn nor_is_one_that_was_learned_of_another_node_before_this_process_began() {
    let mut setup = two();
    setup.adjust = Arc::new(|spec: &mut DeviceSpec| spec.identity = Identity::default());
    let mut lab = lab(68, setup).await;
    lab.engine.check(&node()).await.expect("checked");
    assert!(!lab.record().learned.is_empty());
    is_misled(&lab);
    lab.fault("bmc", Fault::Silent);
    lab.kill().await;
    lab.start().await;
    is_stopped(&mut lab).await;
}

/// What two boards share tells nobody whose machine answers: by the rest of what it said first it stays the same one.
#[tokio::test(start_paused = true)]
async fn an_address_that_leads_to_a_twin_within_a_fence_switches_no_twin_off() {
    // Once it was identified.
    for after in 2..24 {
        let mut setup = two();
        setup.adjust = Arc::new(|spec: &mut DeviceSpec| match spec.id.to_string().as_str() {
            "bmc" => spec.identity.serial = None,
            _ => spec.identity = Identity::default(),
        });
        let mut lab = lab(69, setup).await;
        let uuid = lab.world.lock().identity(NODE).uuid.clone();
        lab.fault("other", Fault::SaysIdentity(Identity { uuid, serial: Some("another".to_owned()) }));
        lab.engine.check(&n2()).await.expect("checked");
        lab.happen(Act::Lead { device: "bmc".to_owned(), to: "other".to_owned(), after });
        let outcome = lab.fence().await;
        let now = lab.clock.boot();
        let mut world = lab.world.lock();
        assert!(world.truth("n2", now), "after {after}: the twin was switched off");
        drop(world);
        assert!(!matches!(outcome, Outcome::Fenced { .. }) || !lab.is_on(), "after {after}: {outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_twins_say_of_themselves_identifies_neither() {
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.nodes.push(NodeSetup { name: "n2".to_owned(), levels: named(&[&["other"]]), own_host: false });
    setup.check_at_start = true;
    setup.adjust = Arc::new(|spec: &mut DeviceSpec| spec.identity = Identity::default());
    let mut lab = Lab::set_up(63, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_machine("n2").add_host("n2", "other");
        let same = world.identity(NODE).clone();
        world.fault("other", Fault::SaysIdentity(same));
    })
    .await;
    tokio::time::sleep(s(5)).await;
    let other = lab.engine.node(&NodeId::new("n2").expect("a good name")).expect("known");
    let told = &other.live.devices[&DeviceId::new("other").expect("a good name")];
    let remarks = &told.checked.as_ref().expect("checked").remarks;
    assert!(remarks[0].contains("n1/bmc claims the same of itself"), "a check tells it: {remarks:?}");
    // What each learned of itself is worth as much as what the other one says: nobody knows whose machine it is.
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::IdentityMismatch));
    assert_eq!((lab.is_on(), lab.received("bmc").offs), (true, 0));
    // A person does.
    let known = lab.world.lock().identity(NODE).clone();
    lab.setup.adjust = Arc::new(move |spec: &mut DeviceSpec| {
        spec.identity = if spec.id.to_string() == "bmc" { known.clone() } else { Identity::default() };
    });
    lab.reload().await.expect("a person is waited for");
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("released", s(120)).await;
    let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("evidence");
    assert_eq!(evidence.grade, Grade::Claimed, "{evidence:?}");
    assert!(evidence.lowered_by.iter().any(|why| why.contains("identity")), "{evidence:?}");
}

#[tokio::test(start_paused = true)]
async fn a_board_that_moved_is_no_twin_of_itself_once_the_node_where_it_was_says_or_has_something_else() {
    for reloads in [false, true] {
        let mut setup = Setup::new(NODE, &[&["bmc"]]);
        setup.nodes.push(NodeSetup { name: "n2".to_owned(), levels: named(&[&["other"]]), own_host: false });
        setup.addresses = [NODE, "n2"].map(|name| (name.to_owned(), "here".to_owned())).into();
        setup.check_at_start = true;
        setup.adjust = Arc::new(|spec: &mut DeviceSpec| spec.identity = Identity::default());
        let mut lab = Lab::set_up(66, setup, |world| {
            world.add_machine(NODE).add_host(NODE, "bmc").add_machine("n2").add_host("n2", "other");
        })
        .await;
        tokio::time::sleep(s(5)).await;
        let (n2, other) = (NodeId::new("n2").expect("a name"), DeviceId::new("other").expect("a name"));
        let moved = lab.world.lock().identity(NODE).clone();
        lab.fault("other", Fault::SaysIdentity(moved.clone()));
        lab.fault("bmc", Fault::Silent);
        let accept =
            async |lab: &Lab| lab.engine.accept_identity(&n2, other.clone(), moved.clone(), person()).await;
        let refused = accept(&lab).await.expect_err("n1 says the same, as far as anybody knows").to_string();
        assert!(refused.contains("a device of another node claims the same"), "{refused}");
        lab.engine.check(&node()).await.expect("checked");
        assert!(accept(&lab).await.is_err(), "that it is silent takes nothing back");
        if reloads {
            lab.setup.adjust = Arc::new(|spec: &mut DeviceSpec| {
                let uuid = Identity::usable_uuid("abababababababababababababababab");
                let is_n1_s = spec.id.to_string() == "bmc";
                spec.identity = Identity { uuid: uuid.filter(|_| is_n1_s), serial: None };
            });
            lab.reload().await.expect("at rest");
        } else {
            lab.mend("bmc");
            let uuid = Identity::usable_uuid("abababababababababababababababab");
            lab.fault("bmc", Fault::SaysIdentity(Identity { uuid, serial: None }));
            lab.engine.check(&node()).await.expect("checked");
        }
        accept(&lab).await.expect("it is the only one that says so");
        let call = lab.call();
        lab.engine.fence(&n2, call).await.expect("let in");
        tokio::time::sleep(s(120)).await;
        let fence = lab.engine.node(&n2).expect("known").stored.record.fence.clone().expect("open");
        let evidence = fence.evidence.expect("proven");
        assert_eq!(
            (evidence.grade, evidence.lowered_by.as_slice()),
            (Grade::Learned, &["other: its identity was learned from the device itself".to_owned()][..]),
            "{evidence:?}"
        );
    }
}
