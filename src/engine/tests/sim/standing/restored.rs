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
    cluster.state.lock().expect("whole").foreign = true;
    lab.start().await;
    lab.reach("fenced", s(300)).await;
    tokio::time::sleep(s(300)).await;
    lab.engine.drop_restored(&node(), person()).await.expect("an admin may");
    tokio::time::sleep(s(120)).await;
    assert_eq!((lab.is_on(), lab.phase()), (false, "unfencing"), "{:?}", lab.view().live.wait);
    {
        // What the old life sent late is its own, and is taken away first (K3).
        let mut state = cluster.state.lock().expect("whole");
        (state.foreign, state.stands) = (false, true);
    }
    lab.reach("normal", s(300)).await;
    assert!(lab.is_on() && !cluster.seen(|state| state.stands));
    assert_eq!(cluster.seen(|state| state.removed.len()), 1);
}
