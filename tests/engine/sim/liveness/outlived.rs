//! A fence whose offs reached nothing ends as recovered once the node is well in the same boot (S15): as a rack switch restarts.

use picket_core::ids::NodeId;

use super::*;
use crate::setup::{NodeSetup, Setup, named};

/// A source that says that the node is not well, until it is told; the node is in boot `b`.
fn later() -> (Arc<AtomicBool>, Arc<Source>) {
    let is_well = Arc::new(AtomicBool::new(false));
    let seen = is_well.clone();
    let source = Source::new(move |_, _| if seen.load(Ordering::SeqCst) { yes() } else { no() });
    is_in(&source, Some(("b", true)));
    (is_well, source)
}

fn is_in(source: &Source, boot: Option<(&str, bool)>) {
    *source.boot.lock() = boot.map(|(boot, lives)| (boot.to_owned(), lives));
}

/// The switch of its rack is back after the fence's deadline: nobody is called for a node that is well in the same boot.
#[tokio::test(start_paused = true)]
async fn one_that_sent_nothing_and_waits_for_a_person_ends_as_recovered() {
    for dark in [true, false] {
        let (is_well, source) = later();
        let mut lab = lab_with(62, &source).await;
        lab.fault("bmc", Fault::Silent);
        assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
        tokio::time::sleep(s(7_200)).await;
        assert_eq!(lab.phase(), "needs_operator");
        is_well.store(true, Ordering::SeqCst);
        if !dark {
            lab.mend("bmc");
        }
        tokio::time::sleep(s(60)).await;
        let fence = lab.record().fence;
        let outcome = fence.and_then(|fence| fence.outcome);
        assert!(lab.phase() == "normal" || outcome == Some(Outcome::AbortedRecovered), "{:?}", lab.record());
        lab.mend("bmc");
        lab.reach("normal", s(300)).await;
        assert_eq!((lab.is_on(), lab.received("bmc").offs), (true, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn one_whose_offs_were_all_refused_ends_as_recovered() {
    let (is_well, source) = later();
    is_in(&source, None);
    let mut lab = lab_with(60, &source).await;
    lab.fault("bmc", Fault::OffRefused);
    let id = lab.open().await;
    tokio::time::sleep(s(100)).await;
    assert!(lab.record().fence.is_some_and(|fence| fence.off_sent));
    is_well.store(true, Ordering::SeqCst);
    let outcome = lab.outcome_within(id, Until::Released, s(100)).await;
    assert_eq!(outcome, Some(Outcome::AbortedRecovered), "no boot is asked for: nothing happened");
    lab.reach("normal", s(120)).await;
    assert_eq!((lab.is_on(), lab.falls()), (true, 0));
    assert!(lab.record().holds.is_empty() && lab.record().ledger.open().is_empty());
}

/// Its BMC takes the off, which comes to nothing, and is silent from then on. `meanwhile` comes about, and then the node is well.
async fn unheard(crashes: bool, meanwhile: impl FnOnce(&Source)) -> (Lab, Option<Outcome>) {
    let (is_well, source) = later();
    let mut lab = lab_with(61, &source).await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.schedule(s(4), Act::Fault { device: "bmc".to_owned(), fault: Fault::Silent });
    let id = lab.open().await;
    tokio::time::sleep(s(30)).await;
    assert!(lab.received("bmc").offs > 0);
    if crashes {
        lab.crash().await;
    }
    meanwhile(&source);
    is_well.store(true, Ordering::SeqCst);
    let outcome = lab.outcome_within(id, Until::Released, s(500)).await;
    (lab, outcome)
}

/// Whoever leads: what the boot was before the first off is stored.
#[tokio::test(start_paused = true)]
async fn one_whose_offs_are_waited_out_ends_as_recovered_in_the_same_boot_alone() {
    for crashes in [false, true] {
        let (lab, outcome) = unheard(crashes, |_| ()).await;
        assert_eq!(outcome, Some(Outcome::AbortedRecovered));
        let fence = lab.record().fence.expect("kept, while its BMC is silent");
        let told = |moment: &picket_core::record::Moment| {
            moment.what.starts_with("aborted, as no off reached the node")
        };
        assert!(fence.moments.iter().any(told), "{:#?}", fence.moments);
        lab.mend("bmc");
        lab.reach("normal", s(300)).await;
        assert_eq!((lab.is_on(), lab.falls()), (true, 0));
        for boot in [Some(("c", true)), Some(("b", false)), None] {
            let (lab, outcome) = unheard(crashes, |source| is_in(source, boot)).await;
            assert_eq!(outcome, None, "{boot:?}: it is fenced on: {:#?}", lab.record().fence);
        }
    }
}

/// Redundant outlets may be off of a node that is well: it is fenced on, until its deadline and no longer.
#[tokio::test(start_paused = true)]
async fn one_whose_outlets_may_be_off_is_for_a_person_at_its_deadline() {
    let (is_well, source) = later();
    let mut lab = Lab::with(63, &[&["a"]], |world| {
        world.add_machine(NODE).add_supply(NODE, "a").add_supply(NODE, "b");
    })
    .await;
    lab.kill().await;
    lab.setup.liveness = Some(source.clone());
    lab.start().await;
    let began = Instant::now();
    lab.open().await;
    tokio::time::sleep(s(3)).await;
    assert_eq!(lab.received("a").offs, 1);
    lab.fault("a", Fault::Silent);
    is_well.store(true, Ordering::SeqCst);
    let reached = tokio::time::timeout(s(700), lab.reach("needs_operator", s(900))).await;
    assert!(reached.is_ok(), "{:?}: {:#?}", began.elapsed(), lab.record());
}

/// What the leader before sent, the next one does not know: that its own offs are refused says nothing of that.
#[tokio::test(start_paused = true)]
async fn an_off_of_the_leader_before_is_not_forgotten_as_ours_are_refused() {
    let (is_well, source) = later();
    is_in(&source, None);
    let mut lab = lab_with(64, &source).await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.open().await;
    tokio::time::sleep(s(3)).await;
    assert!(lab.received("bmc").offs > 0);
    lab.crash().await;
    lab.fault("bmc", Fault::OffRefused);
    is_well.store(true, Ordering::SeqCst);
    lab.reach("needs_operator", s(900)).await;
    let fence = lab.record().fence.expect("kept");
    assert!(fence.off_sent && !fence.switched_off.is_empty());
}

/// K9: as long as a recovery may end the fence, also after an off, no program's hold takes that from it.
#[tokio::test(start_paused = true)]
async fn a_program_s_hold_takes_no_recovery_from_a_fence_whose_offs_were_refused() {
    let (is_well, source) = later();
    let mut lab = lab_with(65, &source).await;
    lab.fault("bmc", Fault::OffRefused);
    let id = lab.open().await;
    tokio::time::sleep(s(100)).await;
    assert!(lab.record().fence.is_some_and(|fence| fence.off_sent));
    let program = picket_engine::Ask { by_person: false, ..person().into() };
    lab.engine.hold(&node(), "other".to_owned(), program).await.expect_err("it takes no recovery");
    is_well.store(true, Ordering::SeqCst);
    let outcome = lab.outcome_within(id, Until::Released, s(100)).await;
    assert_eq!(outcome, Some(Outcome::AbortedRecovered));
    assert!(lab.is_on());
}

/// A rack switch restarts: forty BMCs fall silent, and forty nodes are not ready. Both end after a minute, and nobody is needed.
#[tokio::test(start_paused = true)]
async fn forty_nodes_behind_one_switch_that_restarts_recover_by_themselves() {
    const NODES: usize = 40;
    let name = |index: usize| if index == 0 { NODE.to_owned() } else { format!("m{index}") };
    let (is_well, source) = later();
    let mut setup = Setup::new(NODE, &[&["bmc0"]]);
    setup.nodes.extend((1..NODES).map(|index| NodeSetup {
        name: name(index),
        levels: named(&[&[format!("bmc{index}").as_str()]]),
        own_host: false,
    }));
    setup.liveness = Some(source);
    let mut lab = Lab::set_up(63, setup, |world| {
        for index in 0..NODES {
            world.add_machine(&name(index)).add_host(&name(index), &format!("bmc{index}"));
            world.fault(&format!("bmc{index}"), Fault::Silent);
        }
    })
    .await;
    let mut fences = Vec::new();
    for index in 0..NODES {
        let (node, call) = (NodeId::new(&name(index)).expect("a good name"), lab.call());
        fences.push((lab.engine.fence(&node, call).await.expect("let in").fence(), node));
    }
    tokio::time::sleep(s(60)).await;
    is_well.store(true, Ordering::SeqCst);
    for index in 0..NODES {
        lab.mend(&format!("bmc{index}"));
    }
    for (id, node) in &fences {
        let mut view = lab.engine.follow(node).expect("known");
        let until_normal = async {
            loop {
                let now = view.borrow_and_update().clone();
                let told = lab.engine.outcome(&now, *id, Until::Released, None).await.expect("a store");
                if let (_, Some(outcome)) = told {
                    break outcome;
                }
                view.changed().await.expect("the engine lives");
            }
        };
        let outcome = tokio::time::timeout(s(120), until_normal).await;
        assert_eq!(outcome, Ok(Outcome::AbortedRecovered), "{node}");
    }
    for index in 0..NODES {
        assert_eq!(lab.received(&format!("bmc{index}")).offs, 0, "{index}");
    }
}
