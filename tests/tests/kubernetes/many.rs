//! A hundred pods on one machine.

use std::collections::BTreeSet;
use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::{Kubernetes, until};

use crate::released::{no_more, start};
use crate::scene::{cluster, for_many};

/// The pods, each by its UID: one that is made anew under its name has another.
async fn pods(cluster: &Kubernetes) -> Result<BTreeSet<String>> {
    let uids = ["get", "pods", "-l", "app=many", "-o", "jsonpath={.items[*].metadata.uid}"];
    Ok(cluster.kubectl(&uids).await?.split_whitespace().map(str::to_owned).collect())
}

/// All of them die with their machine, are let go by Picket, and are made anew once: nobody deletes one of the new ones by its name, neither
/// taint eviction nor pod GC. Those very ones run on the machine that is back.
#[tokio::test]
async fn a_hundred_pods_die_with_their_machine_and_none_that_is_made_anew_is_deleted_again() -> Result<()> {
    let cluster = cluster().await?;
    let machine = for_many(cluster);
    cluster.idle_pods("many", 100, machine).await?;
    let selected = ["get", "pods", "-l", "app=many", "-o", "jsonpath={.items[*].spec.nodeName}"];
    let nodes = cluster.kubectl(&selected).await?;
    assert_eq!(nodes.split(' ').filter(|node| *node == machine.name()).count(), 100);
    let old = pods(cluster).await?;
    let living = machine.processes();
    assert!(living.len() > 300, "a shim, a sandbox and a container for each pod: {}", living.len());

    machine.kill_kubelet().await?;
    cluster.until_ready(machine, false).await?;
    let gateway = start(cluster, &[(machine.name(), machine, "pods")], &no_more).await?;
    let fenced =
        gateway.picket(&["fence", machine.name(), "--yes", "--reason", "its kubelet is dead"]).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    assert!(!machine.runs());
    let left: Vec<u32> = living.into_iter().filter(|id| is_alive(*id)).collect();
    assert!(left.is_empty(), "with its process 1 dies everything: {left:?}");

    let all_new = async || {
        let now = pods(cluster).await?;
        Ok(now.len() == 100 && now.is_disjoint(&old))
    };
    until("each pod is made anew", Duration::from_secs(60), all_new).await?;
    let new = pods(cluster).await?;
    let unfenced = gateway.picket(&["unfence", machine.name(), "--yes", "--reason", "mended"]).await?;
    assert_eq!(unfenced.code, 0, "{unfenced:?}\n{}", gateway.log());
    let run =
        async || Ok(cluster.json(&["get", "statefulset", "many"]).await?["status"]["readyReplicas"] == 100);
    until("they run again", Duration::from_secs(300), run).await?;
    assert_eq!(pods(cluster).await?, new);
    Ok(())
}

/// A zombie has ended.
fn is_alive(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
