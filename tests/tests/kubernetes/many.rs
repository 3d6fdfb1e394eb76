//! A hundred pods on one machine.

use picket_tests::Result;

use crate::scene::{cluster, for_many};

#[tokio::test]
async fn a_hundred_pods_run_on_one_machine_and_die_with_it() -> Result<()> {
    let cluster = cluster().await?;
    let machine = for_many(cluster);
    cluster.idle_pods("many", 100, machine).await?;
    let selected = ["get", "pods", "-l", "app=many", "-o", "jsonpath={.items[*].spec.nodeName}"];
    let nodes = cluster.kubectl(&selected).await?;
    assert_eq!(nodes.split(' ').filter(|node| *node == machine.name()).count(), 100);

    let living = machine.processes();
    assert!(living.len() > 300, "a shim, a sandbox and a container for each pod: {}", living.len());
    cluster.kubectl(&["delete", "statefulset", "many", "--cascade=orphan"]).await?;
    machine.ipmitool().run("chassis power off").await?;
    assert!(!machine.runs());
    let left: Vec<u32> = living.into_iter().filter(|id| is_alive(*id)).collect();
    assert!(left.is_empty(), "with its process 1 dies everything: {left:?}");
    Ok(())
}

/// A zombie has ended.
fn is_alive(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
