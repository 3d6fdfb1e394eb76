//! The addresses of a Node, which ceph-csi blocks as soon as a volume is let go beside the taint. The test plays csi-addons, and there is no Ceph.

use std::time::Duration;

use picket_tests::peers::{Kubernetes, until};
use picket_tests::{Daemon, Gateway, Result};
use serde_json::{Value, json};

use crate::cluster::fenced::{ALLOWED, fence, settings, unfence, until_clean};
use crate::cluster::scene::{cluster, lend};

const BLOCKED: &str = include_str!("../../../../deploy/kubernetes/networkfences.yaml");
const GROUP: &str = "csiaddons.openshift.io";
const FENCES: &str = "networkfences.csiaddons.openshift.io";
const DRIVER: &str = "blocked.rbd.csi.ceph.com";
const LONG: Duration = Duration::from_secs(180);

/// Those that undo what ceph-csi did to that address.
async fn undoing(cluster: &Kubernetes, address: &str) -> Result<Vec<Value>> {
    let all = cluster.json(&["get", FENCES]).await?;
    let range = format!("{address}/32");
    let names_it = |one: &&Value| {
        one["spec"]["fenceState"] == "Unfenced" && one["spec"]["cidrs"] == json!([range.as_str()])
    };
    Ok(all["items"].as_array().into_iter().flatten().filter(names_it).cloned().collect())
}

/// It is told beforehand. After the unfence it is undone, at the right time: not before the Node is back, nor while somebody else's names the address.
#[tokio::test]
async fn the_address_of_a_node_that_is_back_is_let_in_again_and_nobody_else_s() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let name = machine.name();
    cluster.define(("NetworkFence", "networkfences"), GROUP, "v1alpha1", "Cluster").await?;
    cluster.define(("NetworkFenceClass", "networkfenceclasses"), GROUP, "v1alpha1", "Cluster").await?;
    let of_group = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": format!("{GROUP}/v1alpha1"), "kind": kind, "metadata": { "name": name }, "spec": spec,
        })
    };
    cluster.apply(&of_group("NetworkFenceClass", "blocked", json!({ "provisioner": DRIVER }))).await?;
    cluster
        .apply(&json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": { "name": DRIVER },
            "spec": { "attachRequired": true },
        }))
        .await?;
    let node = cluster.node(machine).await?;
    let addresses = node["status"]["addresses"].as_array().cloned().unwrap_or_default();
    let inner = addresses.iter().find(|one| one["type"] == "InternalIP").map(|one| one["address"].clone());
    let address = inner.as_ref().and_then(Value::as_str).unwrap_or_default();
    assert!(!address.is_empty(), "{node}");

    // With the NetworkFences it may do nothing yet.
    let login = cluster.account_by("picket-blocked", &[ALLOWED]).await?;
    let more = |uid: &str, login: &str| {
        format!(
            "[releases.blocked]\nkind = \"kubernetes\"\nsettle = \"0s\"\ncluster_uid = {uid:?}\n{login}network_fences = \"undone\"\n"
        )
    };
    let fleet = settings(cluster, &login, &[(name, machine, "blocked")], &more).await?;
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    gateway.begin(&[]).await?;
    let checked = gateway.picket(&["check", name]).await?;
    let lacks = format!(
        "its login may not list {FENCES}, create {FENCES}, delete {FENCES}, list networkfenceclasses.{GROUP}: \
         deploy/kubernetes/networkfences.yaml"
    );
    assert!(checked.out.contains(&lacks), "{checked:?}");
    cluster.account_by("picket-blocked", &[ALLOWED, BLOCKED]).await?;
    until("nothing is found wrong with what undoes it", LONG, async || {
        Ok(!gateway.picket(&["check", name]).await?.out.contains("networkfences.yaml"))
    })
    .await?;

    fence(&gateway, name, "released").await?;
    cluster.apply(&of_group("NetworkFence", "theirs", json!({
        "fenceState": "Fenced", "networkFenceClassName": "blocked", "cidrs": [format!("{address}/31")],
    })))
    .await?;
    assert!(undoing(cluster, address).await?.is_empty(), "it is off");
    unfence(&gateway, name).await?;
    until_clean(cluster, machine).await?;
    until("somebody else's is told", LONG, async || {
        Ok(gateway.log().contains("the NetworkFence theirs, which is not ours"))
    })
    .await?;
    assert!(undoing(cluster, address).await?.is_empty(), "somebody else wants it");

    cluster.kubectl(&["delete", FENCES, "theirs"]).await?;
    until("it is to be let in again", LONG, async || Ok(undoing(cluster, address).await?.len() == 1)).await?;
    let made = undoing(cluster, address).await?.swap_remove(0);
    assert_eq!(made["spec"]["networkFenceClassName"], "blocked");
    let its = made["metadata"]["name"].as_str().unwrap_or_default();
    let succeeded = r#"{"status":{"result":"Succeeded","message":"unfencing operation successful"}}"#;
    cluster.kubectl(&["patch", FENCES, its, "--type=merge", "-p", succeeded]).await?;
    until("nothing is left of that", LONG, async || Ok(undoing(cluster, address).await?.is_empty())).await?;

    cluster.kubectl(&["delete", "csidriver", DRIVER]).await?;
    cluster.until_ready(machine, true).await?;
    lent.leave().await?;
    Ok(())
}
