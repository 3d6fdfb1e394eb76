//! Retired nodes: what they sent comes to its end, other settings make them nodes again, and an orphan's machine is never
//! theirs.

use std::sync::Arc;

use picket_core::ids::{NodeId, ReleaseId};
use picket_core::outcome::Outcome;
use picket_driver_sim::{Act, Verb};

use crate::lab::{Lab, NODE, lab, node, person, s};
use crate::observer::Answer;
use crate::setup::{NodeSetup, Setup, named as levels};

const FENCED: Outcome = Outcome::Fenced { released: true };

#[tokio::test(start_paused = true)]
async fn what_its_own_process_sent_comes_to_its_end_and_it_may_leave() {
    let mut lab = lab(2001).await;
    assert_eq!(lab.fence().await, FENCED);
    lab.engine.retire(&node(), person()).await.expect("retired");
    tokio::time::sleep(s(600)).await;
    assert!(lab.record().ledger.open().is_empty(), "{:?}", lab.record().ledger);
    lab.setup.nodes.clear();
    lab.reload().await.expect("nothing is open");
}

#[tokio::test(start_paused = true)]
async fn a_reload_that_brings_another_machine_makes_it_a_node_again() {
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.addresses.insert(NODE.to_owned(), "here".to_owned());
    let mut lab = Lab::set_up(2003, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await;
    assert_eq!(lab.fence().await, FENCED);
    lab.engine.retire(&node(), person()).await.expect("retired");
    tokio::time::sleep(s(600)).await;
    lab.setup.addresses.insert(NODE.to_owned(), "there".to_owned());
    lab.setup.adjust = Arc::new(|spec| spec.identity = Default::default());
    let changed = lab.reload().await.expect("nothing is open");
    tokio::time::sleep(s(600)).await;
    assert_eq!(lab.phase(), "normal", "{changed:?}, {:?}", lab.record().retired);
}

/// n1 is fenced and `other` retired; while the gateway is down n1 leaves the settings, and `other` gets its address.
async fn at_the_orphans_address(seed: u64, other: &str) -> Lab {
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.nodes.push(NodeSetup { name: other.to_owned(), levels: levels(&[&["obmc"]]), own_host: false });
    setup.addresses.insert(NODE.to_owned(), "here".to_owned());
    setup.addresses.insert(other.to_owned(), "there".to_owned());
    let mut lab = Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
        world.add_machine(other).add_host(other, "obmc");
    })
    .await;
    assert_eq!(lab.fence().await, FENCED);
    let call = lab.call();
    lab.engine.fence(&named(other), call).await.expect("let in");
    tokio::time::sleep(s(120)).await;
    lab.engine.retire(&named(other), person()).await.expect("retired");
    lab.kill().await;
    lab.setup.nodes =
        vec![NodeSetup { name: other.to_owned(), levels: levels(&[&["bmc"]]), own_host: false }];
    lab.setup.addresses.insert(other.to_owned(), "here".to_owned());
    lab.setup.adjust = Arc::new(|spec| spec.identity = Default::default());
    lab.start().await;
    tokio::time::sleep(s(120)).await;
    lab
}

#[tokio::test(start_paused = true)]
async fn a_retired_node_never_gets_an_orphans_machine_whichever_name_comes_first() {
    for (seed, other) in [(2004, "n0"), (2005, "n9")] {
        let mut lab = at_the_orphans_address(seed, other).await;
        let call = lab.call();
        let _refused = lab.engine.fence(&named(other), call).await;
        tokio::time::sleep(s(120)).await;
        let _refused = lab.engine.unfence(&named(other), "db".to_owned(), person()).await;
        tokio::time::sleep(s(300)).await;
        assert!(!lab.is_on(), "{other}: the orphan's machine was switched on");
    }
}

#[tokio::test(start_paused = true)]
async fn an_orphan_takes_no_place_from_others() {
    let mut setup = crate::budget::setup(2, crate::budget::at_once(1));
    for name in ["n1", "n2"] {
        setup.addresses.insert(name.to_owned(), "here".to_owned());
    }
    let mut lab = Lab::set_up(2017, setup, |world| {
        for index in 1..=2 {
            world.add_machine(&format!("n{index}")).add_host(&format!("n{index}"), &format!("bmc{index}"));
        }
    })
    .await;
    lab.fault("bmc1", picket_driver_sim::Fault::OffIgnored);
    lab.open().await;
    tokio::time::sleep(s(5)).await;
    lab.kill().await;
    lab.setup.addresses.insert("n1".to_owned(), "there".to_owned());
    lab.start().await;
    tokio::time::sleep(s(60)).await;
    assert!(lab.view().live.orphaned.is_some());
    let call = lab.call();
    lab.engine.fence(&named("n2"), call).await.expect("the place is free");
}

/// A volume whose release was begun and not seen complete; then its node is found on, and while it is fenced again it
/// leaves the settings.
async fn begun_before_a_breach(seed: u64) -> Lab {
    let mut lab = lab(seed).await;
    lab.answers(&[Answer::Accept]);
    lab.open().await;
    lab.reach("fenced", s(60)).await;
    tokio::time::sleep(s(10)).await;
    assert_eq!(lab.record().fence.expect("open").releases[0].attempts, 1);
    lab.fault("bmc", picket_driver_sim::Fault::OffIgnored);
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(60)).await;
    assert!(lab.record().fence.expect("open").releases[0].unfinished);
    lab.kill().await;
    lab
}

#[tokio::test(start_paused = true)]
async fn an_orphan_whose_release_was_begun_before_a_breach_is_retired_once_that_is_given_up_by_name() {
    let mut lab = begun_before_a_breach(2018).await;
    lab.setup.nodes.clear();
    lab.start().await;
    assert_eq!((lab.phase(), lab.view().live.orphaned.is_some()), ("fencing", true));
    let refused = lab.engine.retire(&node(), person()).await.expect_err("nobody answers for it").to_string();
    assert!(refused.contains("detach") && refused.contains("abandon it by name"), "{refused}");
    let detach = || ReleaseId::new("detach").expect("a good name");
    lab.engine.abandon(&node(), detach(), person()).await.expect("given up");
    assert_eq!(lab.phase(), "fencing", "nothing was sent, and nothing is over");
    lab.engine.retire(&node(), person()).await.expect("retired");
    tokio::time::sleep(s(600)).await;
    assert!(lab.engine.node(&node()).is_err(), "nothing of it is shown any more");
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_has_its_settings_back_goes_on_without_what_was_given_up() {
    let mut lab = begun_before_a_breach(2019).await;
    let whole = lab.setup.clone();
    lab.setup.nodes.clear();
    lab.start().await;
    let attempts = lab.attempts();
    let detach = ReleaseId::new("detach").expect("a good name");
    lab.engine.abandon(&node(), detach.clone(), person()).await.expect("given up");
    lab.setup = whole;
    lab.mend("bmc");
    lab.reload().await.expect("it is back in the settings");
    let refused = lab.engine.abandon(&node(), detach, person()).await;
    assert!(refused.is_err(), "it is an orphan no more, and comes to its end by itself");
    lab.reach("released", s(600)).await;
    assert_eq!(
        (lab.attempts(), lab.is_on()),
        (attempts, false),
        "it was proven off, and the volume is a person's"
    );
}

/// What a person still may do with an orphan does not take the place again.
#[tokio::test(start_paused = true)]
async fn an_orphan_of_which_a_release_is_abandoned_takes_no_place_from_others() {
    let mut setup = crate::budget::setup(2, crate::budget::at_once(1));
    for name in ["n1", "n2"] {
        setup.addresses.insert(name.to_owned(), "here".to_owned());
    }
    let mut lab = Lab::set_up(2401, setup, |world| {
        for index in 1..=2 {
            world.add_machine(&format!("n{index}")).add_host(&format!("n{index}"), &format!("bmc{index}"));
        }
    })
    .await;
    let second = lab.observer.clone();
    lab.setup.releases.push(("second".to_owned(), second));
    lab.crash().await;
    lab.answers(&[crate::observer::Answer::Refuse]);
    lab.open().await;
    lab.reach("fenced", s(60)).await;
    lab.kill().await;
    lab.setup.addresses.insert("n1".to_owned(), "there".to_owned());
    lab.start().await;
    tokio::time::sleep(s(60)).await;
    assert!(lab.view().live.orphaned.is_some());
    let open = lab.engine.office_numbers().open;
    let release = picket_core::ids::ReleaseId::new("detach").expect("a good name");
    lab.engine.abandon(&node(), release, person()).await.expect("abandoned");
    assert_eq!((lab.phase(), open, lab.engine.office_numbers().open), ("fenced", 0, 0));
    let call = lab.call();
    lab.engine.fence(&named("n2"), call).await.expect("the place is free");
}

fn named(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}
