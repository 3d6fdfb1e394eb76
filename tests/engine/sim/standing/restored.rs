//! S21: a node that a restore keeps off, and what stands for it in the cluster.

use picket_driver_sim::Verb;

use super::{lab, node, person, s};
use crate::restored::by_hand;

/// The fence that stands for the restore has no releases: those of the settings are asked (K7).
#[tokio::test(start_paused = true)]
async fn it_is_not_switched_on_beside_what_somebody_else_set_up() {
    let (mut lab, cluster) = lab(2741, s(1)).await;
    let file = lab.backup().await;
    lab.restore(&file).await;
    lab.happen(by_hand(Verb::Off));
    // The person on call did by hand what the gateway would have done.
    cluster.state.lock().foreign = true;
    lab.start().await;
    lab.reach("fenced", s(300)).await;
    tokio::time::sleep(s(300)).await;
    lab.engine.drop_restored(&node(), person()).await.expect("an admin may");
    tokio::time::sleep(s(120)).await;
    assert_eq!((lab.is_on(), lab.phase()), (false, "unfencing"), "{:?}", lab.view().live.wait);
    {
        // What the old life sent late is its own, and is taken away first (K3).
        let mut state = cluster.state.lock();
        (state.foreign, state.stands) = (false, true);
    }
    lab.reach("normal", s(300)).await;
    assert!(lab.is_on() && !cluster.seen(|state| state.stands));
    assert_eq!(cluster.seen(|state| state.removed.len()), 1);
}

/// Whether another machine has the node's name is asked before the on, which goes to none; until then a person decides anyhow (K1).
#[tokio::test(start_paused = true)]
async fn another_machine_under_its_name_is_a_matter_of_the_on() {
    let (mut lab, cluster) = lab(2742, s(10_000)).await;
    lab.open().await;
    lab.reach("fenced", s(60)).await;
    super::until(&cluster, |state| state.stands).await;
    let file = lab.backup().await;
    lab.restore(&file).await;
    {
        let mut state = cluster.state.lock();
        (state.replaced, state.compared) = (true, 0);
    }
    lab.start().await;
    lab.reach("fenced", s(300)).await;
    let states = lab.record().fence.expect("it stands for the restore").releases;
    assert!(lab.record().is_groundless() && states[0].subject.is_some(), "{states:?}");
    tokio::time::sleep(s(300)).await;
    assert_eq!(
        (lab.phase(), cluster.seen(|state| state.compared)),
        ("fenced", 0),
        "a step of its own is refused"
    );
}
