//! A gateway that lets go what a Node holds, and what is seen of a fence at its Node.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use picket_tests::peers::{Kubernetes, KubernetesMachine, until};
use picket_tests::{Bmc, Daemon, Fleet, Gateway, Result};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::cluster::scene::OUT_OF_SERVICE;

/// What keeps new pods away.
pub const FENCED: &str = "picket.dev/fenced";
/// The exit code of a fence whose node recovered.
pub const RECOVERED: i32 = 9;
pub const ALLOWED: &str = include_str!("../../../../deploy/kubernetes/release.yaml");

/// Nodes, each with whose BMC is its own, and its release.
pub type Nodes<'n> = [(&'n str, &'n KubernetesMachine, &'n str)];
/// Of a cluster's UID and the lines of a login: what further stands in the settings.
pub type More<'m> = &'m dyn Fn(&str, &str) -> String;

pub fn no_more(_uid: &str, _login: &str) -> String {
    String::new()
}

/// The kubeconfig of who may do what the shipped role says and no more.
pub async fn login(cluster: &Kubernetes) -> Result<PathBuf> {
    // One makes it, and the others find it.
    static LOGIN: OnceCell<PathBuf> = OnceCell::const_new();
    let made = async || cluster.account_by("picket-release", &[ALLOWED]).await;
    LOGIN.get_or_try_init(made).await.cloned()
}

/// Nodes that are let go of by this login; and what is said besides.
pub async fn settings(
    cluster: &Kubernetes,
    login: &Path,
    nodes: &Nodes<'_>,
    more: More<'_>,
) -> Result<Fleet> {
    let system = cluster.json(&["get", "namespace", "kube-system"]).await?;
    let uid = system["metadata"]["uid"].as_str().unwrap_or_default();
    let login = format!("kubeconfig = {login:?}\n");
    let pods = "[releases.pods]\nkind = \"kubernetes\"\nsettle = \"0s\"\n";
    let mut fleet = Fleet::new().with(&format!("{pods}cluster_uid = {uid:?}\n{login}"));
    let more = more(uid, &login);
    if !more.is_empty() {
        fleet = fleet.with(&more);
    }
    for (name, machine, release) in nodes {
        let identity = format!("identity = {{ uuid = \"{}\" }}", machine.uuid());
        fleet = fleet.node(name, &Bmc::at(machine.bmc().address()).with(&identity), &[release]);
    }
    Ok(fleet)
}

/// A gateway on the control plane's host, which may do what the shipped role says and no more.
pub async fn start(cluster: &Kubernetes, nodes: &Nodes<'_>, more: More<'_>) -> Result<Gateway> {
    let fleet = settings(cluster, &login(cluster).await?, nodes, more).await?;
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    gateway.begin(&[]).await?;
    Ok(gateway)
}

/// `picket`, which succeeds.
pub async fn done(gateway: &Gateway, arguments: &[&str]) -> Result<()> {
    let said = gateway.picket(arguments).await?;
    assert_eq!(said.code, 0, "{arguments:?}: {said:?}\n{}", gateway.log());
    Ok(())
}

/// A fence of that node, until it is what is said: confirmed, released.
pub async fn fence(gateway: &Gateway, node: &str, until: &str) -> Result<()> {
    done(gateway, &["fence", node, "--until", until, "--yes", "--reason", "a test"]).await
}

/// It is back.
pub async fn unfence(gateway: &Gateway, node: &str) -> Result<()> {
    done(gateway, &["unfence", node, "--yes", "--reason", "mended"]).await
}

/// The keys of all its taints.
pub fn taints(node: &Value) -> Vec<&str> {
    let taints = node["spec"]["taints"].as_array();
    taints.into_iter().flatten().filter_map(|taint| taint["key"].as_str()).collect()
}

/// Nothing of ours is left on it.
pub fn is_clean(node: &Value) -> bool {
    let meta = &node["metadata"];
    let annotations = meta["annotations"].as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    let mut ours = annotations.filter(|key| key.starts_with("picket.dev/") || key.contains("scale-down"));
    let taints = taints(node);
    !taints.contains(&FENCED)
        && !taints.contains(&OUT_OF_SERVICE)
        && ours.next().is_none()
        && meta["finalizers"] == Value::Null
}

/// Waits until nothing of ours is left on it.
pub async fn until_clean(cluster: &Kubernetes, machine: &KubernetesMachine) -> Result<()> {
    let clean = async || Ok(is_clean(&cluster.node(machine).await?));
    let is_clean = until("the node is as it was", Duration::from_secs(180), clean).await;
    let node = cluster.node(machine).await?;
    assert!(is_clean.is_ok(), "{is_clean:?}: {}, {}", node["spec"], node["metadata"]);
    is_clean
}

/// Waits until its volumes are let go by our taint, or are no more.
pub async fn until_out_of_service(cluster: &Kubernetes, machine: &KubernetesMachine, is: bool) -> Result<()> {
    let seen = async || Ok(taints(&cluster.node(machine).await?).contains(&OUT_OF_SERVICE) == is);
    let what = if is { "the taint stands" } else { "the taint is gone" };
    until(what, Duration::from_secs(120), seen).await
}

/// Waits until the release is told to have come to that.
pub async fn is_told(gateway: &Gateway, node: &str, why: &str) -> Result<()> {
    until(&format!("it is told that {why}"), Duration::from_secs(120), async || {
        Ok(gateway.picket(&["status", node]).await?.out.contains(why))
    })
    .await
}

/// All that stands in the record of a node's fences.
pub async fn recorded(gateway: &Gateway, node: &str) -> Result<String> {
    let all = gateway.picket(&["--output", "json", "history", node]).await?;
    let all: Value = serde_json::from_str(&all.out).unwrap_or_else(|error| panic!("{error}: {all:?}"));
    let mut recorded = String::new();
    for fence in all["fences"].as_array().into_iter().flatten() {
        let id = fence["id"].as_str().unwrap_or_default();
        recorded += &gateway.picket(&["history", "--fence", id]).await?.out;
    }
    Ok(recorded)
}

/// The pods of an app, each by its UID: one that is made anew under its name has another.
pub async fn pods(cluster: &Kubernetes, app: &str) -> Result<BTreeSet<String>> {
    let app = format!("app={app}");
    let uids = ["get", "pods", "-l", app.as_str(), "-o", "jsonpath={.items[*].metadata.uid}"];
    Ok(cluster.kubectl(&uids).await?.split_whitespace().map(str::to_owned).collect())
}

/// Waits until each of so many pods of an app was made anew: the new ones.
pub async fn made_anew(cluster: &Kubernetes, app: &str, old: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let all_new = async || {
        let now = pods(cluster, app).await?;
        Ok(now.len() == old.len() && now.is_disjoint(old))
    };
    until("each pod is made anew", Duration::from_secs(60), all_new).await?;
    pods(cluster, app).await
}

/// Waits until so many pods of a StatefulSet run.
pub async fn until_they_run(cluster: &Kubernetes, set: &str, count: usize) -> Result<()> {
    let run =
        async || Ok(cluster.json(&["get", "statefulset", set]).await?["status"]["readyReplicas"] == count);
    until("they run again", Duration::from_secs(300), run).await
}

/// What was done to its power.
pub fn power(machine: &KubernetesMachine) -> Vec<String> {
    machine.power_events().into_iter().map(|event| event.what).collect()
}
