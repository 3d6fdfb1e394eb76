//! What stood is gone, and whoever took it away says so until that is stored (K3).

use picket_driver_sim::{Act, Fault, Verb};

use super::{lab, lawful, until};
use crate::lab::{NODE, node, person, s};

/// The store hangs over a caller's word for so long that all else is turned away: what was told then is told again.
#[tokio::test(start_paused = true)]
async fn what_is_gone_is_told_again_until_it_is_stored() {
    let (mut lab, cluster) = lab(2811, s(10_000)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(3)).await;
    cluster.is_away(true);
    lab.fault("bmc", Fault::OffIgnored);
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(60)).await;
    tokio::time::sleep(s(20)).await;
    let stands = || lab.record().ledger.standing().count();
    assert_eq!((stands(), lab.record().breaches), (1, 1));
    lab.store.linger(s(60));
    let engine = lab.engine.clone();
    let held = tokio::spawn(async move { engine.hold(&node(), "ops".to_owned(), person()).await });
    tokio::time::sleep(s(1)).await;
    lab.store.linger(s(0));
    cluster.is_away(false);
    until(&cluster, |state| !state.stands).await;
    held.await.expect("answered").expect("held");
    tokio::time::sleep(s(15)).await;
    assert_eq!((stands(), lab.phase()), (0, "fencing"));
    lab.mend("bmc");
    lab.reach("fenced", s(300)).await;
    lawful(&cluster);
}
