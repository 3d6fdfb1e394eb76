//! A call that overruns its time, and the gateway's net under it: what it came to is not known (S10).

use std::sync::atomic::Ordering;

use picket_driver_sim::Stuck;

use super::*;

/// A device whose first detach does not end by itself.
async fn that_overruns(seed: u64) -> Lab {
    let setup = Setup { clouds: true, ..setup(json!({})) };
    setup.far.overruns.store(true, Ordering::SeqCst);
    Lab::set_up(seed, setup, world).await
}

fn open_releases(lab: &Lab) -> usize {
    let ledger = &lab.record().ledger;
    ledger.open().iter().filter(|open| open.kind.label() == "release").count()
}

#[tokio::test(start_paused = true)]
async fn a_detach_that_overruns_its_net_may_still_land_and_bars_the_on_for_all_of_its_life() {
    let mut lab = that_overruns(723).await;
    // It lands after the net has ended its call; meanwhile somebody detaches the volume by hand.
    stuck(&lab, "v1", Some(Stuck::Late(s(25))));
    lab.open().await;
    until(&lab, "volumes/v1", ReleaseStage::Requested).await;
    by_hand(&lab, "v1");
    lab.reach("released", s(120)).await;
    assert_eq!(open_releases(&lab), 1, "it is not known to have ended: {:?}", lab.record().ledger);
    lab.unfence().await.expect("let in");
    // The volume is attached again before the machine is on: the late detach must find it off.
    attach(&lab, "v1", "/dev/vdb");
    tokio::time::sleep(s(15)).await;
    assert!(!lab.is_on(), "the on waits for what may still land");
    lab.reach("normal", s(120)).await;
    assert!(lab.is_on());
    lawful(&lab);
}

#[tokio::test(start_paused = true)]
async fn a_detach_that_overruns_its_net_is_not_sent_again_before_its_volume_was_looked_at() {
    let mut lab = that_overruns(724).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert_eq!((begun(&lab, "v1"), begun(&lab, "v2")), (1, 1), "each once");
    let part = fence(&lab).release(&id("volumes/v1")).expect("there").clone();
    assert_eq!((part.attempts, part.detail.as_str()), (1, "available"));
    lawful(&lab);
}
