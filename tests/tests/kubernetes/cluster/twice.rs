//! A node that is fenced again while what the last fence left is not taken away yet.

use picket_tests::Result;

use crate::cluster::fenced::{
    FENCED, fence, made_anew, no_more, pods, power, start, taints, unfence, until_clean,
};
use crate::cluster::scene::{cluster, lend, no_more_of};

/// It is back, and is seen to be for a while before new pods may come; in that while it is fenced again. The second fence takes over what the
/// first one left, and nothing is left at its end.
#[tokio::test]
async fn one_that_is_fenced_again_before_new_pods_may_come_ends_clean() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let switched = power(machine).len();
    cluster.idle_pods("twice", 2, machine).await?;
    let first = pods(cluster, "twice").await?;
    let gateway = start(cluster, &[(machine.name(), machine, "pods")], &no_more).await?;
    fence(&gateway, machine.name(), "released").await?;
    let second = made_anew(cluster, "twice", &first).await?;
    unfence(&gateway, machine.name()).await?;
    cluster.until_ready(machine, true).await?;
    let node = cluster.node(machine).await?;
    assert!(taints(&node).contains(&FENCED), "it is seen to be back for a while first: {node:#}");

    fence(&gateway, machine.name(), "released").await?;
    assert!(!machine.runs());
    assert!(taints(&cluster.node(machine).await?).contains(&FENCED));
    unfence(&gateway, machine.name()).await?;
    until_clean(cluster, machine).await?;
    assert_eq!(power(machine)[switched..], ["off", "on", "off", "on"]);
    assert_eq!(pods(cluster, "twice").await?, second, "they had been bound to no node");
    no_more_of(cluster, "twice").await?;
    lent.leave().await?;
    Ok(())
}
