//! What a cluster does not let go by its deadline, the cloud behind it does (S23); then the cluster has its turn once more.

use picket_core::outcome::{Outcome, Reason};
use picket_core::record::{Phase, ReleaseStage};
use picket_core::time::Clock;
use picket_driver_sim::{Disk, Moved, VolumeMove, World};
use serde_json::Map;

use super::{Arc, Cluster, Lab, NODE, Setup, lawful, node, person, s, until};

/// A node with a taint, and behind that the volumes of its cloud.
async fn lab(seed: u64) -> (Lab, Arc<Cluster>) {
    eprintln!("seed {seed}");
    tokio::time::advance(s(100)).await;
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.volumes = Some(s(60));
    let mut lab = Lab::dark(seed, setup, |world: &mut World| {
        world.add_machine(NODE).add_host(NODE, "bmc");
        world.add_volume(NODE, "v0", "/dev/vda", Disk { root: true, ..Disk::default() });
        world.add_volume(NODE, "v1", "/dev/vdb", Disk::default());
    });
    let cluster = Cluster::new(&lab.world, lab.clock.clone());
    let volumes = picket_release::make("volumes", "volumes", &Map::new()).expect("good settings");
    lab.setup.releases = vec![("taint".to_owned(), cluster.clone()), ("volumes".to_owned(), volumes)];
    lab.start().await;
    (lab, cluster)
}

fn detaches(lab: &Lab) -> Vec<VolumeMove> {
    let moves = lab.world.lock().volume_moves(lab.clock.boot()).to_vec();
    moves.into_iter().filter(|one| matches!(one.what, Moved::Begun { .. })).collect()
}

fn told(lab: &Lab, wanted: &str) -> usize {
    let fence = lab.record().fence.expect("it is open");
    fence.moments.iter().filter(|moment| moment.what.contains(wanted)).count()
}

fn stage(lab: &Lab, name: &str) -> ReleaseStage {
    let id = picket_core::ids::ReleaseId::named(name).expect("a name");
    lab.record().fence.expect("it is open").release(&id).expect("planned").stage
}

/// The taint is gone before the cloud detaches, what was not complete is not called so, and who is back later completes it.
#[tokio::test(start_paused = true)]
async fn what_a_cluster_does_not_let_go_its_cloud_does_and_the_cluster_is_followed_to_its_end() {
    let (mut lab, cluster) = lab(930).await;
    cluster.state.lock().takes = s(10_000);
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    assert_eq!(detaches(&lab), []);
    until(&cluster, |state| state.removed.len() == 1).await;
    let gone = cluster.seen(|state| state.removed[0]);
    assert!(
        lab.clock.boot().since(cluster.seen(|state| state.placed[0])) > s(110),
        "its deadline is two minutes"
    );
    // Who detaches there is back.
    cluster.state.lock().takes = s(3);
    lab.reach("released", s(300)).await;
    assert_eq!(
        told(&lab, "release taint passed on to volumes: did not complete in 2m: something is left"),
        1
    );
    let detaches = detaches(&lab);
    assert_eq!(detaches.iter().map(|one| one.volume.as_str()).collect::<Vec<_>>(), ["v1"]);
    assert!(detaches[0].at >= gone && !detaches[0].while_on, "{detaches:?}, gone at {gone:?}");
    assert_eq!(cluster.seen(|state| (state.stands, state.placed.len(), state.removed.len())), (false, 2, 2));
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(120)).await;
    lawful(&cluster);
}

/// Nobody switches it on for that the cloud has let go (S7): once its own time is over a second time, a person is asked.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_never_lets_go_is_a_persons_matter_in_the_end_and_the_node_stays_off() {
    let (mut lab, cluster) = lab(931).await;
    cluster.state.lock().takes = s(100_000);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    assert_eq!(
        (stage(&lab, "volumes"), stage(&lab, "volumes/v1")),
        (ReleaseStage::Complete, ReleaseStage::Complete)
    );
    assert_ne!(stage(&lab, "taint"), ReleaseStage::Complete);
    assert_eq!((detaches(&lab).len(), told(&lab, "passed on")), (1, 1));
    assert!(!lab.is_on() && !cluster.seen(|state| state.stands));
    let asked = lab.unfence().await.expect_err("it was not let go");
    assert!(asked.to_string().contains("retry, attest, abandon"), "{asked}");
    // Who asks for it again gives the cluster its turn first.
    lab.engine.retry(&node(), person()).await.expect("it waits for a person");
    until(&cluster, |state| state.placed.len() == 3).await;
    assert_eq!(told(&lab, "passed on"), 1);
    lawful(&cluster);
}

/// A cluster in which nobody answers, at all: nothing was set up there, and the cloud acts.
#[tokio::test(start_paused = true)]
async fn where_nobody_answers_from_the_beginning_the_cloud_acts() {
    let (mut lab, cluster) = lab(932).await;
    cluster.state.lock().refuses = Some("nobody answers");
    lab.open().await;
    lab.reach("fenced", s(60)).await;
    while detaches(&lab).is_empty() {
        tokio::time::sleep(s(1)).await;
    }
    assert_eq!(told(&lab, "passed on to volumes: did not complete in 2m: nobody answers"), 1);
    cluster.state.lock().refuses = None;
    lab.reach("released", s(120)).await;
    lawful(&cluster);
}

/// What it set up and cannot take away may let go at any moment: the two would meet at one volume.
#[tokio::test(start_paused = true)]
async fn while_its_taint_stands_nothing_is_passed_on() {
    let (mut lab, cluster) = lab(933).await;
    cluster.state.lock().takes = s(100_000);
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    cluster.is_away(true);
    lab.reach("needs_operator", s(300)).await;
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::ReleaseDeadline));
    assert_eq!((detaches(&lab).len(), told(&lab, "is not passed on to volumes")), (0, 1));
    assert!(cluster.seen(|state| state.stands));
    lawful(&cluster);
    assert_eq!(stage(&lab, "volumes"), ReleaseStage::Pending);
}
