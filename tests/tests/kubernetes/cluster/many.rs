//! A hundred pods on one machine.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::{Kubernetes, until};
use serde_json::{Value, json};

use crate::cluster::fenced::{fence, made_anew, no_more, pods, start, unfence, until_clean, until_they_run};
use crate::cluster::odd::spec;
use crate::cluster::scene::{cluster, lend, no_more_of};

/// All of them die with their machine, are let go by Picket, and are made anew once, on another machine: nobody deletes one of the new ones there by
/// its name, neither taint eviction nor pod GC (K4). Those very ones run there, also after the first machine is back. A Job that may not fail once
/// goes on: its pod was disrupted, and did not fail.
#[tokio::test]
async fn a_hundred_pods_die_with_their_machine_and_none_that_is_made_anew_is_deleted_again() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(2).await?;
    let [machine, other] = lent.two();
    cluster.idle_pods_first_on("many", 100, &[machine, other]).await?;
    assert_eq!(on_each(cluster).await?, BTreeMap::from([(machine.name().to_owned(), 100)]));
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
    let left: Vec<_> = living.into_iter().filter(|process| process.lives()).collect();
    assert!(left.is_empty(), "with its process 1 dies everything: {left:?}");
    let node = cluster.node(machine).await?;
    let spared = &node["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/scale-down-disabled"];
    assert_eq!(spared, "true", "nobody takes the machine away meanwhile: {node:#}");

    let new = made_anew(cluster, "many", &old).await?;
    until_they_run(cluster, "many", 100).await?;
    let there = BTreeMap::from([(other.name().to_owned(), 100)]);
    assert_eq!((pods(cluster, "many").await?, on_each(cluster).await?), (new.clone(), there.clone()));
    unfence(&gateway, machine.name()).await?;
    cluster.until_ready(machine, true).await?;
    until_clean(cluster, machine).await?;
    until("the job runs again", Duration::from_secs(120), is_active).await?;
    let job = of_job().await?;
    let failed =
        job["status"]["conditions"].as_array().into_iter().flatten().any(|one| one["type"] == "Failed");
    assert!(
        !failed && job["status"]["failed"].as_u64().unwrap_or(0) == 0,
        "it counts against nobody: {job:#}"
    );
    cluster.kubectl(&["delete", "job", "many-job", "--timeout=80s"]).await?;
    assert_eq!((pods(cluster, "many").await?, on_each(cluster).await?), (new, there));
    no_more_of(cluster, "many").await?;
    lent.leave().await?;
    Ok(())
}

/// How many of the pods are bound to each machine.
async fn on_each(cluster: &Kubernetes) -> Result<BTreeMap<String, usize>> {
    let bound = ["get", "pods", "-l", "app=many", "-o", "jsonpath={.items[*].spec.nodeName}"];
    let mut count = BTreeMap::new();
    for node in cluster.kubectl(&bound).await?.split_whitespace() {
        *count.entry(node.to_owned()).or_default() += 1;
    }
    Ok(count)
}
