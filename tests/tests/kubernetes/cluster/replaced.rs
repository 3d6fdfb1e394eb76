//! A Node that is another one in the middle of a fence.

use std::process::Stdio;

use picket_tests::peers::{Kubernetes, KubernetesMachine};
use picket_tests::{Gateway, PeerError, Result};
use serde_json::{Value, json};

use crate::cluster::fenced::{fence, is_told, no_more, power, start, until_clean, until_out_of_service};
use crate::cluster::scene::{cluster, lend};

/// A driver that never attaches anything.
const DRIVER: &str = "nobody.test.picket.dev";

/// The exit code where a person is asked.
const NEEDS_OPERATOR: i32 = 4;

/// Another machine says that it is this Node: our taints are gone, nothing is switched on, a person is told. Then it is the old one again,
/// and is fenced on; and the Node is deleted by force and made anew for the same machine: nothing of ours comes to it, and a person is told.
#[tokio::test]
async fn a_node_that_is_another_one_meanwhile_is_let_be() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let switched = power(machine).len();
    kept(cluster, machine).await?;
    let mut gateway = start(cluster, &[(machine.name(), machine, "pods")], &no_more).await?;
    fence(&gateway, machine.name(), "confirmed").await?;
    until_out_of_service(cluster, machine, true).await?;
    is_told(&gateway, machine.name(), "left: ").await?;
    let before = cluster.node(machine).await?["status"]["nodeInfo"].clone();

    says(cluster, machine, &json!({ "machineID": "0123456789abcdef0123456789abcdef" })).await?;
    is_told(&gateway, machine.name(), "replaced: the machine ID").await?;
    until_clean(cluster, machine).await?;
    assert_eq!(power(machine)[switched..], ["off"]);
    needs_a_person(&gateway, machine).await?;

    says(cluster, machine, &before).await?;
    let retry = ["retry", machine.name(), "--yes", "--reason", "it is the old one"];
    let mut retrying = tokio::process::Command::from(gateway.command(&retry)?);
    let retrying = retrying.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn();
    let mut retrying = retrying.map_err(PeerError::io("run picket retry"))?;
    until_out_of_service(cluster, machine, true).await?;
    // In one step, as the gateway sees it.
    gateway.process()?.freeze();
    is_made_anew(cluster, machine, &before).await?;
    gateway.process()?.thaw();
    is_told(&gateway, machine.name(), "replaced: the UID").await?;
    let retried = retrying.wait().await.map_err(PeerError::io("wait for picket retry"))?;
    assert_eq!(retried.code(), Some(NEEDS_OPERATOR));
    needs_a_person(&gateway, machine).await?;
    // What may be on its way is made to be refused, and that leaves nothing.
    until_clean(cluster, machine).await?;
    assert_eq!(power(machine)[switched..], ["off"]);

    gateway.stop().await?;
    cluster.kubectl(&["delete", "volumeattachment", &kept_name(machine)]).await?;
    cluster.kubectl(&["delete", "csidriver", DRIVER]).await?;
    machine.force(true).await?;
    cluster.until_ready(machine, true).await?;
    lent.leave().await?;
    Ok(())
}

/// Something is attached there that nobody detaches: the taint stands for as long as it is waited for.
async fn kept(cluster: &Kubernetes, machine: &KubernetesMachine) -> Result<()> {
    // An attachment whose driver is gone would not be waited for.
    cluster
        .apply(&json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": { "name": DRIVER },
            "spec": { "attachRequired": true },
        }))
        .await?;
    let source = json!({ "persistentVolumeName": "nobody-s" });
    let spec = json!({ "attacher": DRIVER, "nodeName": machine.name(), "source": source });
    let name = json!({ "name": kept_name(machine) });
    let kind = "VolumeAttachment";
    let all = json!({ "apiVersion": "storage.k8s.io/v1", "kind": kind, "metadata": name, "spec": spec });
    cluster.apply(&all).await
}

fn kept_name(machine: &KubernetesMachine) -> String {
    format!("kept-{}", machine.name())
}

/// Its Node is deleted by force, and made anew for the same machine.
pub async fn is_made_anew(cluster: &Kubernetes, machine: &KubernetesMachine, info: &Value) -> Result<()> {
    let none = ["patch", "node", machine.name(), "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#];
    cluster.kubectl(&none).await?;
    cluster.kubectl(&["delete", "node", machine.name()]).await?;
    let labels = json!({ "kubernetes.io/hostname": machine.name() });
    let meta = json!({ "name": machine.name(), "labels": labels });
    cluster.apply(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": meta })).await?;
    says(cluster, machine, info).await
}

/// What a kubelet says of its machine.
pub async fn says(cluster: &Kubernetes, machine: &KubernetesMachine, info: &Value) -> Result<()> {
    let patch = json!({ "status": { "nodeInfo": info } }).to_string();
    let arguments =
        ["patch", "node", machine.name(), "--subresource=status", "--type=merge", "-p", patch.as_str()];
    cluster.kubectl(&arguments).await.map(drop)
}

/// It stays off, and nobody else than a person brings it back.
pub async fn needs_a_person(gateway: &Gateway, machine: &KubernetesMachine) -> Result<()> {
    is_told(gateway, machine.name(), "needs operator (replaced)").await?;
    assert!(!machine.runs());
    Ok(())
}
