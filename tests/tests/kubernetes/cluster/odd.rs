//! Pods of which a fence makes no difference, or which tolerate everything.

use std::path::Path;
use std::time::{Duration, SystemTime};

use picket_tests::peers::{Kubernetes, KubernetesMachine, until};
use picket_tests::{Daemon, Gateway, PeerError, Result};
use serde_json::{Value, json};

use crate::cluster::door::{Asked, Door};
use crate::cluster::fenced::{
    fence, is_told, login, made_anew, no_more, pods, recorded, settings, start, unfence, until_clean,
    until_they_run,
};
use crate::cluster::scene::{OUT_OF_SERVICE, cluster, for_everybody, lend, no_more_of, told};

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
    lent.leave().await?;
    Ok(())
}

/// A StatefulSet that tolerates everything and may run nowhere else is bound to the dead machine again and again, whoever deletes its pod. While
/// it is there nothing is set that would have others delete pods by their names (K4): nothing is let go, the record names the pod, which is deleted more
/// and more rarely, and once a person keeps it from coming back the release goes on by itself.
#[tokio::test]
async fn one_that_is_bound_to_the_dead_machine_again_and_again_is_not_chased_and_is_named() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(2).await?;
    let [one, two] = lent.two();
    let moves = cluster.database("odd-moves", &[one, two]).await?;
    let on = moves.node().await?.expect("it runs");
    let (machine, other) = if one.name() == on { (one, two) } else { (two, one) };
    moves.runs_on(machine.name()).await?;
    let stays = cluster.database("odd-stays", &[machine]).await?;
    let before = pod_of(cluster, "odd-stays-0").await?;
    let everything = json!({ "tolerations": [{ "operator": "Exists" }] });
    let patch = json!({ "spec": { "template": { "spec": everything } } }).to_string();
    cluster.kubectl(&["patch", "statefulset", "odd-stays", "--type=merge", "-p", &patch]).await?;
    let is_another =
        async || Ok(pod_of(cluster, "odd-stays-0").await?.is_some_and(|uid| Some(uid) != before));
    until("it is made anew by its new template", Duration::from_secs(60), is_another).await?;
    stays.runs_on(machine.name()).await?;

    machine.kill_kubelet().await?;
    cluster.until_ready(machine, false).await?;
    let door = Door::before(cluster, &login(cluster).await?).await?;
    let nodes = [(machine.name(), machine, "pods")];
    let fleet = settings(cluster, door.login(), &nodes, &no_more).await?;
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    gateway.begin(&[]).await?;
    fence(&gateway, machine.name(), "confirmed").await?;
    let of_it = |one: &Asked| one.method == "DELETE" && one.path.contains("/pods/odd-stays-0?");
    let deleted =
        || -> Vec<SystemTime> { door.changes().into_iter().filter(of_it).map(|one| one.at).collect() };
    let longest = || -> Duration {
        let pauses = deleted().windows(2).map(|two| two[1].duration_since(two[0]).unwrap_or_default()).max();
        pauses.unwrap_or_default()
    };
    let is_rare = async || Ok(longest() > Duration::from_secs(7));
    until("it is deleted more and more rarely", Duration::from_secs(120), is_rare).await?;
    // One, two, four and eight seconds apart; the first ones at once, and where one was about to go already.
    assert!((5..=12).contains(&deleted().len()), "{:?}\n{}", deleted(), gateway.log());
    assert!(!machine.runs());
    let status = gateway.picket(&["status", machine.name()]).await?;
    assert!(!status.out.contains("released"), "its volume is attached there: {status:?}");
    assert_eq!(told(&stays.csi_calls()).iter().filter(|(_, node)| *node != machine.name()).count(), 0);
    let recorded = recorded(&gateway, machine.name()).await?;
    // The same attempt may have deleted the other one too, and named it first.
    let names_it = |deleted: &str| deleted.contains("default/odd-stays-0");
    assert!(
        recorded.split_once("pods deleted: ").is_some_and(|(_, deleted)| names_it(deleted)),
        "{recorded}"
    );
    // A look between its deletion and its coming back may have found nobody: then, and only then, the others' volumes go.
    if !door.changes().iter().any(|one| one.body.contains(OUT_OF_SERVICE)) {
        assert!(told(&moves.csi_calls()).iter().all(|(what, _)| *what != "detach"), "{}", gateway.log());
    }

    // Whoever keeps it from coming back lets the release end.
    cluster.kubectl(&["scale", "statefulset", "odd-stays", "--replicas=0"]).await?;
    is_told(&gateway, machine.name(), "released").await?;
    assert_eq!(told(&stays.csi_calls()).last(), Some(&("detach", machine.name())));
    moves.runs_on(other.name()).await?;
    let moved = pod_of(cluster, "odd-moves-0").await?;
    unfence(&gateway, machine.name()).await?;
    cluster.until_ready(machine, true).await?;
    until_clean(cluster, machine).await?;
    cluster.kubectl(&["scale", "statefulset", "odd-stays", "--replicas=1"]).await?;
    stays.runs_on(machine.name()).await?;
    assert_eq!(pod_of(cluster, "odd-moves-0").await?, moved, "nobody deletes it again");
    assert_eq!((stays.writers().overlaps(), moves.writers().overlaps()), (0, 0));
    no_more_of(cluster, "odd-stays").await?;
    no_more_of(cluster, "odd-moves").await?;
    lent.leave().await?;
    Ok(())
}

/// The UID of a pod, where there is one.
async fn pod_of(cluster: &Kubernetes, name: &str) -> Result<Option<String>> {
    let pod = cluster.json(&["get", "pod", name, "--ignore-not-found"]).await?;
    Ok(pod["metadata"]["uid"].as_str().map(str::to_owned))
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
