//! A hundred pods on one machine.

use picket_tests::Result;

use crate::fenced::{fence, made_anew, no_more, pods, start, unfence, until_clean, until_they_run};
use crate::scene::{cluster, lend, no_more_of};

/// All of them die with their machine, are let go by Picket, and are made anew once: nobody deletes one of the new ones by its name, neither
/// taint eviction nor pod GC. Those very ones run on the machine that is back.
#[tokio::test]
async fn a_hundred_pods_die_with_their_machine_and_none_that_is_made_anew_is_deleted_again() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    cluster.idle_pods("many", 100, machine).await?;
    let selected = ["get", "pods", "-l", "app=many", "-o", "jsonpath={.items[*].spec.nodeName}"];
    let nodes = cluster.kubectl(&selected).await?;
    assert_eq!(nodes.split(' ').filter(|node| *node == machine.name()).count(), 100);
    let old = pods(cluster, "many").await?;
    let living = machine.processes();
    assert!(living.len() > 300, "a shim, a sandbox and a container for each pod: {}", living.len());

    machine.kill_kubelet().await?;
    cluster.until_ready(machine, false).await?;
    let gateway = start(cluster, &[(machine.name(), machine, "pods")], &no_more).await?;
    fence(&gateway, machine.name(), "released").await?;
    assert!(!machine.runs());
    let left: Vec<u32> = living.into_iter().filter(|id| is_alive(*id)).collect();
    assert!(left.is_empty(), "with its process 1 dies everything: {left:?}");

    let new = made_anew(cluster, "many", &old).await?;
    unfence(&gateway, machine.name()).await?;
    until_they_run(cluster, "many", 100).await?;
    assert_eq!(pods(cluster, "many").await?, new);
    no_more_of(cluster, "many").await?;
    until_clean(cluster, machine).await?;
    lent.leave();
    Ok(())
}

/// A zombie has ended.
fn is_alive(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
