//! What a gateway that died left on a Node, and a Node that is deleted before its machine is proven off.

use std::time::Duration;

use picket_tests::peers::{Knob, Kubernetes, KubernetesMachine, until};
use picket_tests::{PeerError, Result};
use serde_json::{Value, json};

use crate::cluster::fenced::{FENCED, fence, no_more, power, start, taints, unfence, until_clean};
use crate::cluster::odd::spec;
use crate::cluster::scene::{OUT_OF_SERVICE, cluster, lend, no_more_of, told};

async fn patch(cluster: &Kubernetes, machine: &KubernetesMachine, patch: &Value) -> Result<()> {
    let patch = patch.to_string();
    cluster.kubectl(&["patch", "node", machine.name(), "--type=merge", "-p", &patch]).await.map(drop)
}

/// All taints but those of Kubernetes' own controllers, which come and go.
fn of_others(node: &Value) -> Vec<Value> {
    let all = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let is_kubernetes_own =
        |one: &Value| one["key"].as_str().is_some_and(|key| key.starts_with("node.kubernetes.io/"));
    all.into_iter().filter(|one| !is_kubernetes_own(one)).collect()
}

/// Its node is back, and new pods may not come yet; and what lets volumes go was set late, by what was on its way. The next process finds both at
/// its start, by the Node, and takes them away (K7); what is somebody else's stays as it is.
#[tokio::test]
async fn the_next_process_takes_away_what_a_killed_one_left_and_nothing_else() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let switched = power(machine).len();
    let taint = async |what: &str| cluster.kubectl(&["taint", "node", machine.name(), what]).await.map(drop);
    taint("example.org/later=yes:PreferNoSchedule").await?;
    let theirs = of_others(&cluster.node(machine).await?);
    assert_eq!(theirs.len(), 1, "{theirs:?}");
    let mut gateway = start(cluster, &[(machine.name(), machine, "pods")], &no_more).await?;
    fence(&gateway, machine.name(), "released").await?;
    unfence(&gateway, machine.name()).await?;
    gateway.kill();
    let left = cluster.node(machine).await?;
    let ours = json!({ "key": FENCED, "value": "picket.picket.1", "effect": "NoSchedule" });
    let is_kept_away = left["spec"]["taints"].as_array().into_iter().flatten().any(|one| {
        (&one["key"], &one["value"], &one["effect"]) == (&ours["key"], &ours["value"], &ours["effect"])
    });
    assert!(is_kept_away, "{left:#}");
    taint(&format!("{OUT_OF_SERVICE}=picket.picket.1:NoExecute")).await?;

    gateway.begin(&[]).await?;
    until_clean(cluster, machine).await?;
    assert_eq!(of_others(&cluster.node(machine).await?), theirs);

    // Beside it, by now, is what another installation fenced it with.
    gateway.kill();
    let note = r#"{"generation":3,"owner":"green"}"#;
    let ours_and = json!(["picket.dev/fencing-picket", "picket.dev/fencing-green"]);
    let meta = json!({ "annotations": { "picket.dev/fence-green": note }, "finalizers": ours_and });
    patch(cluster, machine, &json!({ "metadata": meta })).await?;
    taint(&format!("{FENCED}=picket.green.3:NoSchedule")).await?;
    taint(&format!("{OUT_OF_SERVICE}=picket.picket.1:NoExecute")).await?;
    let green = async || {
        let node = cluster.node(machine).await?;
        Ok::<_, PeerError>((
            of_others(&node),
            node["metadata"]["annotations"]["picket.dev/fence-green"].clone(),
        ))
    };
    let before = green().await?;
    gateway.begin(&[]).await?;
    let swept = async || {
        let node = cluster.node(machine).await?;
        let is_green_s = node["metadata"]["finalizers"] == json!(["picket.dev/fencing-green"]);
        Ok(is_green_s && !taints(&node).contains(&OUT_OF_SERVICE))
    };
    until("ours alone is swept", Duration::from_secs(180), swept).await?;
    assert_eq!(green().await?, before);
    let checked = gateway.picket(&["check", machine.name()]).await?;
    for named in [
        "another installation of Picket's",
        "the taint picket.dev/fenced (\"picket.green.3\")",
        "the annotation picket.dev/fence-green",
        "the finalizer picket.dev/fencing-green",
    ] {
        assert!(checked.out.contains(named), "{named}: {checked:?}");
    }
    let none = json!({ "annotations": { "picket.dev/fence-green": null }, "finalizers": null });
    patch(cluster, machine, &json!({ "metadata": none })).await?;
    taint(&format!("{FENCED}-")).await?;
    assert_eq!(power(machine)[switched..], ["off", "on"]);
    taint("example.org/later-").await?;
    until_clean(cluster, machine).await?;
    lent.leave().await?;
    Ok(())
}

/// Its BMC acknowledges an off that never comes, and meanwhile somebody deletes the Node: it stays, nobody lets go what still runs there and writes,
/// pod GC included, before the machine is proven off; then all goes on (K8).
#[tokio::test]
async fn a_node_that_is_deleted_before_the_confirmation_lets_nothing_go_until_then() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(2).await?;
    let [one, other] = lent.two();
    let database = cluster.database("early", &[one, other]).await?;
    let on = database.node().await?.expect("it runs");
    let (here, there) = if one.name() == on { (one, other) } else { (other, one) };
    database.runs_on(here.name()).await?;
    let old = database.look().await?["metadata"]["uid"].clone();
    here.kill_kubelet().await?;
    cluster.until_ready(here, false).await?;
    database.is_terminating().await?;
    here.bmc().set(Knob::IgnoreOff)?;
    // However long pod GC takes.
    let patient = |_: &str, _: &str| "[rules]\nlevel_share = \"8m\"\n".to_owned();
    let gateway = start(cluster, &[(here.name(), here, "pods")], &patient).await?;

    let uid = cluster.node(here).await?["metadata"]["uid"].clone();
    let meanwhile = async {
        let kept = json!(["picket.dev/fencing-picket"]);
        let is_kept = async || Ok(cluster.node(here).await?["metadata"]["finalizers"] == kept);
        until("whoever deletes it waits for us", Duration::from_secs(60), is_kept).await?;
        cluster.kubectl(&["delete", "node", here.name(), "--wait=false"]).await?;
        pod_gc_has_been(cluster).await?;
        let node = cluster.node(here).await?;
        assert!(node["metadata"]["deletionTimestamp"].is_string(), "{node:#}");
        assert!(!taints(&node).contains(&OUT_OF_SERVICE), "{node:#}");
        assert_eq!(database.look().await?["metadata"]["uid"], old, "nothing is let go\n{}", gateway.log());
        database.still_writes(here.name()).await?;
        assert_eq!(told(&database.csi_calls()), [("attach", here.name()), ("mount", here.name())]);
        here.bmc().clear(Knob::IgnoreOff)
    };
    tokio::try_join!(fence(&gateway, here.name(), "released"), meanwhile)?;
    assert!(!here.runs());
    database.runs_on(there.name()).await?;
    let uid_now = async || {
        let nodes = cluster.json(&["get", "nodes"]).await?;
        let all = nodes["items"].as_array().into_iter().flatten();
        let mut ours = all.filter(|node| node["metadata"]["name"] == here.name());
        Ok(ours.next().map(|node| node["metadata"]["uid"].clone()))
    };
    until("that Node is gone", Duration::from_secs(60), async || Ok(uid_now().await?.is_none())).await?;
    unfence(&gateway, here.name()).await?;
    let is_new = async || Ok(uid_now().await?.is_some_and(|now| now != uid));
    until("it is a Node again", Duration::from_secs(120), is_new).await?;
    cluster.until_ready(here, true).await?;
    until_clean(cluster, here).await?;
    let writers = database.writers();
    assert_eq!((writers.nodes(), writers.overlaps()), (vec![here.name(), there.name()], 0));
    no_more_of(cluster, "early").await?;
    lent.leave().await?;
    Ok(())
}

/// Waits until pod GC has taken away what is bound to no Node, and would have so with any other: it looks every 20 s, and believes after 40 s.
async fn pod_gc_has_been(cluster: &Kubernetes) -> Result<()> {
    let orphan = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "early-orphan" },
        "spec": spec(&json!({ "nodeName": "nowhere" })),
    });
    cluster.apply(&orphan).await?;
    let it = ["get", "pod", "early-orphan", "--ignore-not-found"];
    let gone = async || Ok(cluster.json(&it).await?.is_null());
    until("pod GC takes an orphan away", Duration::from_secs(180), gone).await
}
