//! Pods of which a fence makes no difference, or which tolerate everything.

use std::path::Path;
use std::time::Duration;

use picket_tests::peers::{KubernetesMachine, until};
use picket_tests::{PeerError, Result};
use serde_json::{Value, json};

use crate::fenced::{fence, made_anew, no_more, pods, recorded, start, unfence, until_clean, until_they_run};
use crate::scene::{cluster, for_everybody, lend, no_more_of};

/// A static pod, one of a DaemonSet, and one that a finalizer holds, are no reason to wait, and are named in the record, as are volumes that are never attached. One that
/// tolerates everything is let go all the same, and runs elsewhere.
#[tokio::test]
async fn what_is_no_reason_to_wait_is_named_and_who_tolerates_everything_is_let_go() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let (machine, other) = (lent.one(), for_everybody(cluster));
    write_static_pod(&cluster.directory().join(machine.name()))?;
    machine.kill_kubelet().await?;
    machine.start_kubelet()?;
    let labels = json!({ "app": "odd-daemon" });
    let on_it = json!({ "kubernetes.io/hostname": machine.name() });
    let daemons = json!({
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": spec(&json!({ "nodeSelector": on_it })) },
    });
    let held = spec(&json!({ "nodeName": machine.name() }));
    // None of them is ever attached: the one of its own, and the one by a claim.
    let volumes = json!([
        { "name": "own", "hostPath": { "path": "/tmp" } },
        { "name": "shared", "persistentVolumeClaim": { "claimName": "odd-shared" } },
    ]);
    let disk = json!({
        "accessModes": ["ReadWriteMany"],
        "capacity": { "storage": "16Mi" },
        "claimRef": { "namespace": "default", "name": "odd-shared" },
        "hostPath": { "path": "/tmp" },
        "storageClassName": "",
    });
    let claim = json!({
        "accessModes": ["ReadWriteMany"],
        "resources": { "requests": { "storage": "16Mi" } },
        "storageClassName": "",
        "volumeName": "odd-shared",
    });
    let tolerating = json!({
        "replicas": 1,
        "serviceName": "odd-set",
        "selector": { "matchLabels": { "app": "odd-set" } },
        "template": {
            "metadata": { "labels": { "app": "odd-set" } },
            "spec": spec(&json!({ "affinity": near(machine, other), "volumes": volumes })),
        },
    });
    let items = json!([
        { "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "odd-shared" }, "spec": disk },
        { "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "odd-shared" }, "spec": claim },
        { "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "odd-daemon" }, "spec": daemons },
        { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "odd-held", "finalizers": ["example.org/held"] }, "spec": held },
        { "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "odd-set" }, "spec": tolerating },
    ]);
    cluster.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": items })).await?;
    let of_it = format!("spec.nodeName={},status.phase=Running", machine.name());
    let run = ["get", "pods", "--field-selector", of_it.as_str(), "-o", "name"];
    let all = async || Ok(cluster.kubectl(&run).await?.lines().count() == 4);
    until("all of them run there", Duration::from_secs(120), all).await?;
    let names = cluster.kubectl(&run).await?;
    let daemon = names.lines().find_map(|name| name.strip_prefix("pod/odd-daemon-")).expect("it is there");
    let daemon = format!("default/odd-daemon-{daemon}");
    let old = pods(cluster, "odd-set").await?;

    machine.kill_kubelet().await?;
    cluster.until_ready(machine, false).await?;
    // The scheduler heeds no taint for it.
    cluster.kubectl(&["label", "node", machine.name(), "odd=out"]).await?;
    let gateway = start(cluster, &[(machine.name(), machine, "pods")], &no_more).await?;
    fence(&gateway, machine.name(), "released").await?;
    assert!(!machine.runs());
    let said = recorded(&gateway, machine.name()).await?;
    for named in [
        format!("default/odd-static-{} (static)", machine.name()),
        format!("{daemon} (of a DaemonSet)"),
        "default/odd-held (kept by a finalizer)".to_owned(),
        "default/odd-set-0: own (a folder of the machine)".to_owned(),
        "default/odd-set-0: shared (a folder of the machine)".to_owned(),
    ] {
        assert!(said.contains(&named), "{named}: {said}\n{}", gateway.log());
    }
    made_anew(cluster, "odd-set", &old).await?;
    until_they_run(cluster, "odd-set", 1).await?;

    let none = r#"{"metadata":{"finalizers":null}}"#;
    cluster.kubectl(&["patch", "pod", "odd-held", "--type=merge", "-p", none]).await?;
    unfence(&gateway, machine.name()).await?;
    cluster.until_ready(machine, true).await?;
    until_clean(cluster, machine).await?;
    cluster.kubectl(&["label", "node", machine.name(), "odd-"]).await?;
    cluster.kubectl(&["delete", "daemonset", "odd-daemon"]).await?;
    no_more_of(cluster, "odd-set").await?;
    cluster.kubectl(&["delete", "pvc/odd-shared", "pv/odd-shared"]).await?;
    lent.leave();
    Ok(())
}

/// A pod that does nothing, and that no taint keeps away or evicts.
pub fn spec(more: &Value) -> Value {
    let mut spec = json!({
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "dnsPolicy": "Default",
        "terminationGracePeriodSeconds": 5,
        "tolerations": [{ "operator": "Exists" }],
        "containers": [{ "name": "idle", "image": "test.local/pause:1", "imagePullPolicy": "Never" }],
    });
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    spec
}

/// On one of two machines, and rather on the first; on none that a label takes out.
fn near(machine: &KubernetesMachine, other: &KubernetesMachine) -> Value {
    let on = |names: &[&str]| json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": names });
    let of_both = on(&[machine.name(), other.name()]);
    let not_out = json!({ "key": "odd", "operator": "NotIn", "values": ["out"] });
    let first = json!({ "weight": 100, "preference": { "matchExpressions": [on(&[machine.name()])] } });
    json!({ "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{ "matchExpressions": [of_both, not_out] }] },
        "preferredDuringSchedulingIgnoredDuringExecution": [first],
    } })
}

/// A kubelet that starts now, and none after another boot, finds it on its own disk.
fn write_static_pod(machine: &Path) -> Result<()> {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "odd-static", "namespace": "default" },
        "spec": spec(&json!({})),
    });
    let (folder, settings) = (machine.join("static"), machine.join("kubelet.yaml"));
    let write = || {
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("odd-static.json"), pod.to_string())?;
        let told = std::fs::read_to_string(&settings)?;
        std::fs::write(&settings, format!("{told}staticPodPath: {folder:?}\n"))
    };
    write().map_err(PeerError::io("write a static pod"))
}
