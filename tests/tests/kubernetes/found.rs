//! A machine that its gateway names otherwise than its cluster does, and whose pods are left to the cluster.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::until;
use serde_json::{Value, json};

use crate::released::{FENCED, is_clean, start, taints};
use crate::scene::{OUT_OF_SERVICE, cluster, for_another_name};

const NODE: &str = "rack7-11";

/// By the UUID that its BMC and its kubelet say, from the check to the tidying; nobody but pod GC deletes its pods, and nothing is let go before
/// they are gone.
#[tokio::test]
async fn a_node_of_another_name_is_found_by_its_machine_and_its_pods_are_left_to_pod_gc() -> Result<()> {
    let cluster = cluster().await?;
    let machine = for_another_name(cluster);
    cluster.idle_pods("left", 3, machine).await?;
    let found = |uid: &str, login: &str| {
        let asked = format!("kind = \"kubernetes\"\nsettle = \"0s\"\ncluster_uid = {uid:?}\n{login}");
        format!("[releases.found]\n{asked}find_by = \"system_uuid\"\npods = \"left\"\n")
    };
    let gateway = start(cluster, &[(NODE, machine, "found")], &found).await?;
    let rival = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "nodepools.karpenter.sh" },
        "spec": {
            "group": "karpenter.sh",
            "scope": "Cluster",
            "names": { "kind": "NodePool", "plural": "nodepools" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } }],
        },
    });
    cluster.apply(&rival).await?;
    let told = async || Ok(gateway.picket(&["check", NODE]).await?.out.contains("karpenter.sh"));
    until("it is told who else lets go", Duration::from_secs(120), told).await?;
    let checked = gateway.picket(&["check", NODE]).await?;
    assert!(!checked.out.contains("another machine") && !checked.out.contains("no Node"), "{checked:?}");

    machine.kill_kubelet().await?;
    cluster.until_ready(machine, false).await?;
    let old = uids(&cluster.json(&["get", "pods", "-l", "app=left"]).await?);
    assert_eq!(old.len(), 3);
    let fenced = gateway.picket(&["fence", NODE, "--yes", "--reason", "its kubelet is dead"]).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    assert!(!machine.runs());
    let node = cluster.node(machine).await?;
    assert!(taints(&node).contains(&FENCED) && !taints(&node).contains(&OUT_OF_SERVICE), "{node:#}");
    let note = node["metadata"]["annotations"]["picket.dev/fence-picket"].as_str().unwrap_or_default();
    assert!(note.contains(&format!("\"node\":\"{NODE}\"")), "{note}");
    let now = uids(&cluster.json(&["get", "pods", "-l", "app=left"]).await?);
    assert!(
        old.iter().all(|uid| !now.contains(uid)),
        "complete is that none of them is left: {old:?} {now:?}"
    );
    let told = gateway.picket(&["status", NODE]).await?;
    assert!(!told.out.contains("pods deleted"), "by others: {told:?}");

    let unfenced = gateway.picket(&["unfence", NODE, "--yes", "--reason", "mended"]).await?;
    assert_eq!(unfenced.code, 0, "{unfenced:?}\n{}", gateway.log());
    until("the node is as it was", Duration::from_secs(180), async || {
        Ok(is_clean(&cluster.node(machine).await?))
    })
    .await
}

fn uids(pods: &Value) -> Vec<String> {
    let all = pods["items"].as_array().into_iter().flatten();
    all.filter_map(|pod| pod["metadata"]["uid"].as_str().map(str::to_owned)).collect()
}
