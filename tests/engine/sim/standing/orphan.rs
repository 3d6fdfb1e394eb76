//! A node whose device is elsewhere since: nobody reads its power, and what lets its volumes go stands no longer (K3).

use super::{lab, lawful, taint, until};
use crate::lab::{NODE, node, person, s};

#[tokio::test(start_paused = true)]
async fn what_stands_of_an_orphan_is_taken_away_and_nothing_else_is_sent() {
    let (mut lab, cluster) = lab(990, s(10_000)).await;
    lab.kill().await;
    lab.setup.addresses.insert(NODE.to_owned(), "here".to_owned());
    lab.start().await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    cluster.is_away(true);
    lab.kill().await;
    let offs = lab.received("bmc").offs;
    lab.setup.addresses.insert(NODE.to_owned(), "there".to_owned());
    lab.start().await;
    tokio::time::sleep(s(60)).await;
    assert!(lab.view().live.orphaned.is_some() && cluster.seen(|state| state.stands));
    cluster.is_away(false);
    until(&cluster, |state| !state.stands).await;
    tokio::time::sleep(s(60)).await;
    assert_eq!(lab.record().ledger.standing().next(), None, "it is stored that it is gone");
    assert_eq!((lab.received("bmc").offs, lab.is_on()), (offs, false));
    // Whoever retires it answers for its volumes, and for nothing that stands.
    lab.engine.abandon(&node(), taint(), person()).await.expect("given up");
    lab.engine.retire(&node(), person()).await.expect("retired");
    lawful(&cluster);
}
