//! A hundred pods on one machine.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::until;
use serde_json::{Value, json};

use crate::fenced::{fence, made_anew, no_more, pods, start, unfence, until_clean, until_they_run};
use crate::odd::spec;
use crate::scene::{cluster, lend, no_more_of};

/// All of them die with their machine, are let go by Picket, and are made anew once: nobody deletes one of the new ones by its name, neither
/// taint eviction nor pod GC. Those very ones run on the machine that is back. A Job that may not fail once goes on: its pod was disrupted, and did not fail.
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
    // It may fail once, and by no fault of its machine's.
    let ignores =
        json!({ "rules": [{ "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget" }] }] });
    let on_it = json!({ "kubernetes.io/hostname": machine.name() });
    let once = json!({ "nodeSelector": on_it, "restartPolicy": "Never", "tolerations": [] });
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": "many-job" },
        "spec": {
            "backoffLimit": 0,
            "podFailurePolicy": ignores,
            "template": { "spec": spec(&once) },
        },
    });
    cluster.apply(&job).await?;
    let of_job = async || -> Result<Value> { cluster.json(&["get", "job", "many-job"]).await };
    let is_active = async || Ok(of_job().await?["status"]["ready"] == 1);
    until("the job runs", Duration::from_secs(120), is_active).await?;
    let living = machine.processes();
    assert!(living.len() > 300, "a shim, a sandbox and a container for each pod: {}", living.len());

    machine.kill_kubelet().await?;
    cluster.until_ready(machine, false).await?;
    let gateway = start(cluster, &[(machine.name(), machine, "pods")], &no_more).await?;
    fence(&gateway, machine.name(), "released").await?;
    assert!(!machine.runs());
    let left: Vec<u32> = living.into_iter().filter(|id| is_alive(*id)).collect();
    assert!(left.is_empty(), "with its process 1 dies everything: {left:?}");
    let node = cluster.node(machine).await?;
    let spared = &node["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/scale-down-disabled"];
    assert_eq!(spared, "true", "nobody takes the machine away meanwhile: {node:#}");

    let new = made_anew(cluster, "many", &old).await?;
    unfence(&gateway, machine.name()).await?;
    until_they_run(cluster, "many", 100).await?;
    assert_eq!(pods(cluster, "many").await?, new);
    until("the job runs again", Duration::from_secs(120), is_active).await?;
    let job = of_job().await?;
    let failed =
        job["status"]["conditions"].as_array().into_iter().flatten().any(|one| one["type"] == "Failed");
    assert!(
        !failed && job["status"]["failed"].as_u64().unwrap_or(0) == 0,
        "it counts against nobody: {job:#}"
    );
    cluster.kubectl(&["delete", "job", "many-job", "--timeout=80s"]).await?;
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
