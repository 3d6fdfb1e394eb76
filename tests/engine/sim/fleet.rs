//! Many nodes: what is wrong with one does not delay the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::ground::ReleasePermit;
use picket_core::ids::NodeId;
use picket_core::order::ReleaseOrder;
use picket_core::outcome::{Outcome, Reason};
use picket_driver_sim::Fault;
use picket_engine::Until;
use picket_release::{Left, Pace, Prepared, Progress, Quarantine, ReleaseError, Releaser, Subject, Whose};
use tokio::time::Instant;

use crate::lab::{Lab, node, s};
use crate::setup::{NodeSetup, Setup, named};

const NODES: usize = 200;

#[tokio::test(start_paused = true)]
async fn dead_bmcs_are_not_noticed_by_the_others() {
    fenced_beside_dead_ones(130, 512).await;
}

/// As many as there are dead ones: if these kept their turns, nobody else would ever have one.
#[tokio::test(start_paused = true)]
async fn dead_bmcs_do_not_keep_the_turns_in_which_the_others_are_logged_in_to() {
    fenced_beside_dead_ones(131, NODES / 50).await;
}

/// All are fenced at once, so many of them logged in to side by side.
async fn fenced_beside_dead_ones(seed: u64, logins: usize) {
    let name = |index: usize| if index == 0 { "n1".to_owned() } else { format!("m{index}") };
    let mut setup = Setup::new("n1", &[&["bmc0"]]);
    setup.nodes.extend((1..NODES).map(|index| NodeSetup {
        name: name(index),
        levels: named(&[&[format!("bmc{index}").as_str()]]),
        own_host: false,
    }));
    setup.logins = logins;
    let mut lab = Lab::set_up(seed, setup, |world| {
        for index in 0..NODES {
            world.add_machine(&name(index)).add_host(&name(index), &format!("bmc{index}"));
        }
        for dead in (0..NODES).step_by(50) {
            world.fault(&format!("bmc{dead}"), Fault::Silent);
        }
    })
    .await;
    let began = Instant::now();
    let mut fences = Vec::new();
    for index in 0..NODES {
        let node = NodeId::new(&name(index)).expect("a good name");
        let call = lab.call();
        let id = lab.engine.fence(&node, call).await.expect("let in").fence();
        fences.push((index, node, id));
    }
    for (index, node, id) in fences.iter().filter(|(index, ..)| index % 50 != 0) {
        let mut view = lab.engine.follow(node).expect("known");
        let outcome = loop {
            view.changed().await.expect("the engine lives");
            let now = view.borrow_and_update().clone();
            if let (_, Some(outcome)) =
                lab.engine.outcome(&now, *id, Until::Released, None).await.expect("a store")
            {
                break outcome;
            }
        };
        assert_eq!(outcome, Outcome::Fenced { released: true }, "{index}");
    }
    assert!(began.elapsed() < s(6), "{:?}", began.elapsed());
    lab.reach("needs_operator", s(700)).await;
}

/// A defect of ours, met by one node.
#[derive(Debug)]
struct Defect;

#[async_trait]
impl Releaser for Defect {
    fn max_in_flight(&self) -> Option<Duration> {
        Some(s(10))
    }

    fn pace(&self) -> Pace {
        Pace::default()
    }

    fn quarantine(self: Arc<Self>) -> Option<Arc<dyn Quarantine>> {
        Some(self)
    }

    async fn attempt(
        &self,
        _order: &ReleaseOrder,
        _permit: &ReleasePermit<'_>,
        _until: Instant,
    ) -> Result<Progress, ReleaseError> {
        Ok(Progress::Complete("gone".to_owned()))
    }

    async fn observe(&self, _subject: &Subject, _until: Instant) -> Result<Progress, ReleaseError> {
        Ok(Progress::Complete("gone".to_owned()))
    }
}

#[async_trait]
impl Quarantine for Defect {
    fn lingers(&self) -> Duration {
        s(1)
    }

    async fn withdraw(&self, _whose: &Whose, _until: Instant) -> Result<(), ReleaseError> {
        Ok(())
    }

    async fn before_attempt(&self, subject: &Subject, _until: Instant) -> Result<Prepared, ReleaseError> {
        assert_ne!(subject.node.as_str(), "n1", "a defect, as this test wants it");
        Ok(Prepared::default())
    }
}

#[tokio::test(start_paused = true)]
async fn a_defect_that_ends_one_node_s_task_again_and_again_keeps_no_other_from_its_fence() {
    let mut setup = Setup::new("n1", &[&["bmc"]]);
    setup.nodes.push(NodeSetup { name: "n2".to_owned(), levels: named(&[&["other"]]), own_host: false });
    setup.releases = vec![("defect".to_owned(), Arc::new(Defect))];
    let mut lab = Lab::set_up(132, setup, |world| {
        world.add_machine("n1").add_host("n1", "bmc").add_machine("n2").add_host("n2", "other");
    })
    .await;
    let id = lab.open().await;
    // A minute is longer than any fence takes here.
    tokio::time::sleep(s(60)).await;
    let second = NodeId::new("n2").expect("a good name");
    let call = lab.call();
    lab.engine.fence(&second, call).await.expect("let in");
    lab.reach_of(&second, "released", s(60)).await;
    let view = lab.view();
    let why = view.live.orphaned.clone().expect("it is left alone");
    assert!(why.starts_with("a defect of this gateway ended its task 3 times"), "{why}");
    let (_, outcome) = lab.engine.outcome(&view, id, Until::Released, None).await.expect("a store");
    assert_eq!(outcome, Some(Outcome::NeedsOperator(Reason::Orphaned)));
    assert!(!lab.is_on() && lab.phase() == "fenced");
    assert_eq!(lab.view().stored.record.node, node());
}

/// Two clusters: the far side of one answers, and that of the other, which has all nodes but `n1`, takes a question and says nothing.
#[derive(Debug, Default)]
struct Hanging {
    asked: AtomicU32,
}

#[async_trait]
impl Releaser for Hanging {
    fn max_in_flight(&self) -> Option<Duration> {
        Some(s(10))
    }

    fn pace(&self) -> Pace {
        Pace::default()
    }

    fn quarantine(self: Arc<Self>) -> Option<Arc<dyn Quarantine>> {
        Some(self)
    }

    async fn attempt(
        &self,
        _order: &ReleaseOrder,
        _permit: &ReleasePermit<'_>,
        _until: Instant,
    ) -> Result<Progress, ReleaseError> {
        Ok(Progress::Complete("gone".to_owned()))
    }

    async fn observe(&self, _subject: &Subject, _until: Instant) -> Result<Progress, ReleaseError> {
        Ok(Progress::Complete("gone".to_owned()))
    }
}

#[async_trait]
impl Quarantine for Hanging {
    fn lingers(&self) -> Duration {
        s(1)
    }

    async fn withdraw(&self, _whose: &Whose, _until: Instant) -> Result<(), ReleaseError> {
        Ok(())
    }

    async fn clean_up(&self, left: &Left, until: Instant) -> Result<Option<String>, ReleaseError> {
        if left.whose.node == node() {
            self.asked.fetch_add(1, Ordering::Relaxed);
            return Ok(Some("it is not Ready".to_owned()));
        }
        tokio::time::sleep_until(until).await;
        Err(ReleaseError::DidNotHappen("no answer".to_owned()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_hangs_keeps_neither_checks_nor_another_cluster_s_node_waiting() {
    // It is the last one by its name.
    let name = |index: usize| if index == 0 { "n1".to_owned() } else { format!("m{index}") };
    let mut setup = Setup::new("n1", &[&["bmc0"]]);
    setup.check_at_start = true;
    setup.nodes.extend((1..NODES * 2).map(|index| NodeSetup {
        name: name(index),
        levels: named(&[&[format!("bmc{index}").as_str()]]),
        own_host: false,
    }));
    let hanging = Arc::new(Hanging::default());
    setup.releases = vec![("taint".to_owned(), hanging.clone())];
    let lab = Lab::set_up(133, setup, |world| {
        for index in 0..NODES * 2 {
            world.add_machine(&name(index)).add_host(&name(index), &format!("bmc{index}"));
        }
    })
    .await;
    tokio::time::sleep(s(10)).await;
    let is_checked =
        |view: picket_engine::NodeView| view.live.devices.values().all(|one| one.checked.is_some());
    let waiting = lab.engine.nodes().filter(|view| !is_checked(view.clone())).count();
    assert_eq!(waiting, 0, "of {} nodes", NODES * 2);
    tokio::time::sleep(s(600)).await;
    let asked = hanging.asked.load(Ordering::Relaxed);
    assert!(asked > 150, "each two seconds, once all were asked: {asked}");
}
