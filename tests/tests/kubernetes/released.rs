//! The case that Picket is for, by Picket: the pod runs elsewhere with its volume, one writer after the other, and the node comes back clean.

use std::time::{Duration, SystemTime};

use picket_tests::peers::{Kubernetes, KubernetesMachine, parse_yaml, until};
use picket_tests::{Bmc, Daemon, Fleet, Gateway, Result};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::moving::stuck;
use crate::scene::{
    OUT_OF_SERVICE, cluster, for_a_gateway, for_a_mistake, for_deletion, for_everybody, for_foreign_taints,
    sleeping, told,
};

pub const FENCED: &str = "picket.dev/fenced";
/// The exit code of a fence whose node recovered.
const RECOVERED: i32 = 9;
const ALLOWED: &str = include_str!("../../../deploy/kubernetes/release.yaml");

/// Of a cluster's UID and the lines of a login: what further stands in the settings.
type More<'m> = &'m dyn Fn(&str, &str) -> String;

pub fn no_more(_uid: &str, _login: &str) -> String {
    String::new()
}

/// A gateway on the control plane's host, which may do what the shipped role says and no more: nodes, each with whose BMC is its own, and its
/// release; and what is said besides.
pub async fn start(
    cluster: &Kubernetes,
    nodes: &[(&str, &KubernetesMachine, &str)],
    more: More<'_>,
) -> Result<Gateway> {
    let role = parse_yaml(ALLOWED).await?;
    // One makes it, and the others find it.
    static MAKING: Mutex<()> = Mutex::const_new(());
    let making = MAKING.lock().await;
    let login = cluster.account("picket-release", &role["rules"]).await?;
    drop(making);
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
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    gateway.begin(&[]).await?;
    Ok(gateway)
}

pub fn taints(node: &Value) -> Vec<&str> {
    let taints = node["spec"]["taints"].as_array();
    taints.into_iter().flatten().filter_map(|taint| taint["key"].as_str()).collect()
}

#[tokio::test]
async fn a_database_moves_with_its_volume_and_the_node_comes_back_clean() -> Result<()> {
    let cluster = cluster().await?;
    let [one, other] = for_a_gateway(cluster);
    let (here, there, database) = stuck(cluster, "released", [one, other]).await?;
    // Somebody else's taint stays as it is.
    cluster.kubectl(&["taint", "node", here.name(), "example.org/mine=yes:PreferNoSchedule"]).await?;
    let foreign = |node: &Value| -> Option<Value> {
        let taints = node["spec"]["taints"].as_array()?;
        taints.iter().find(|taint| taint["key"] == "example.org/mine").cloned()
    };
    let before = foreign(&cluster.node(here).await?);
    let gateway =
        start(cluster, &[(here.name(), here, "pods"), (there.name(), there, "pods")], &no_more).await?;

    let fenced = gateway.picket(&["fence", here.name(), "--yes", "--reason", "its kubelet is dead"]).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    let released = SystemTime::now();
    assert!(!here.runs());
    let node = cluster.node(here).await?;
    assert!(!taints(&node).contains(&OUT_OF_SERVICE), "it stands only until all is let go: {node:#}");
    assert!(taints(&node).contains(&FENCED), "{node:#}");
    database.runs_on(there.name()).await?;

    let writers = database.writers();
    assert_eq!((writers.nodes(), writers.overlaps()), (vec![here.name(), there.name()], 0));
    assert_eq!(writers.after(released).of(here.name()).0, []);
    let calls = database.csi_calls();
    let order: Vec<&str> = told(&calls).into_iter().map(|(what, _)| what).collect();
    assert_eq!(order, ["attach", "mount", "detach", "attach", "mount"]);
    let power = here.power_events();
    let off = power.iter().rev().find(|event| event.what == "off").expect("it was switched off");
    assert!(calls.iter().filter(|call| call.what == "detach").all(|call| call.at > off.at), "{calls:?}");

    let boot = here.boot_id();
    let unfenced = gateway.picket(&["unfence", here.name(), "--yes", "--reason", "mended"]).await?;
    assert_eq!(unfenced.code, 0, "{unfenced:?}\n{}", gateway.log());
    cluster.until_ready(here, true).await?;
    assert_ne!(here.boot_id(), boot);
    until("the node is as it was", Duration::from_secs(180), async || {
        Ok(is_clean(&cluster.node(here).await?))
    })
    .await?;
    let node = cluster.node(here).await?;
    assert_eq!(foreign(&node), before);
    assert_eq!(database.writers().changes(), 1, "who is back does not write");
    Ok(())
}

/// Nothing of ours is left on it.
pub fn is_clean(node: &Value) -> bool {
    let meta = &node["metadata"];
    let annotations = meta["annotations"].as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    let mut ours = annotations.filter(|key| key.starts_with("picket.dev/") || key.contains("scale-down"));
    !taints(node).contains(&FENCED) && ours.next().is_none() && meta["finalizers"] == Value::Null
}

/// The whole machine hangs, and somebody deletes its Node while what detaches sleeps: the Node stays until its volume is free, so that
/// nobody lets it go but us; then it goes.
#[tokio::test]
async fn a_node_that_is_deleted_in_the_middle_stays_until_its_volume_is_free() -> Result<()> {
    let cluster = cluster().await?;
    let [one, other] = for_deletion(cluster);
    let database = cluster.database("deleted", &[one, other]).await?;
    let on = database.node().await?.expect("it runs");
    let (here, there) = if one.name() == on { (one, other) } else { (other, one) };
    database.runs_on(here.name()).await?;
    let frozen = here.freeze();
    cluster.until_ready(here, false).await?;
    database.is_terminating().await?;
    let gateway = start(cluster, &[(here.name(), here, "pods")], &no_more).await?;

    let asleep = sleeping(cluster).await;
    let fenced = gateway
        .picket(&["fence", here.name(), "--until", "confirmed", "--yes", "--reason", "it hangs"])
        .await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    let stands = async || Ok(taints(&cluster.node(here).await?).contains(&OUT_OF_SERVICE));
    until("the taint stands", Duration::from_secs(60), stands).await?;
    is_told(&gateway, here.name(), "left: ").await?;
    cluster.kubectl(&["delete", "node", here.name(), "--wait=false"]).await?;
    let node = cluster.node(here).await.expect("it is kept");
    assert!(node["metadata"]["deletionTimestamp"].is_string(), "{node:#}");
    assert_eq!(node["metadata"]["finalizers"], serde_json::json!(["picket.dev/fencing-picket"]));
    drop(asleep);
    database.runs_on(there.name()).await?;
    let is_there = async || {
        let nodes = cluster.json(&["get", "nodes"]).await?;
        let mut all = nodes["items"].as_array().into_iter().flatten();
        Ok(all.any(|node| node["metadata"]["name"] == here.name()))
    };
    until("the Node is gone", Duration::from_secs(60), async || is_there().await.map(|there: bool| !there))
        .await?;
    is_told(&gateway, here.name(), "released").await?;
    let writers = database.writers();
    assert_eq!((writers.nodes(), writers.overlaps()), (vec![here.name(), there.name()], 0));

    drop(frozen);
    let unfenced = gateway.picket(&["unfence", here.name(), "--yes", "--reason", "mended"]).await?;
    assert_eq!(unfenced.code, 0, "{unfenced:?}\n{}", gateway.log());
    until("it is a Node again", Duration::from_secs(120), is_there).await?;
    cluster.until_ready(here, true).await?;
    assert!(is_clean(&cluster.node(here).await?), "it is a new one");
    assert_eq!(database.writers().changes(), 1, "who is back does not write");
    Ok(())
}

/// Somebody else's `out-of-service` is neither used nor removed, and nothing is switched on while it stands; and a Node that is ready again is let
/// be, by the word of the cluster itself.
#[tokio::test]
async fn somebody_else_s_taint_stays_and_bars_the_on_and_who_is_ready_is_let_be() -> Result<()> {
    let cluster = cluster().await?;
    let machine = for_foreign_taints(cluster);
    let asks = |uid: &str, login: &str| {
        let asked = format!("kind = \"kubernetes\"\ncluster_uid = {uid:?}\n{login}");
        format!("[groups.all]\nhosts = {:?}\n[groups.all.liveness]\n{asked}", machine.name())
    };
    let mut gateway = start(cluster, &[(machine.name(), machine, "pods")], &asks).await?;
    let fence = ["fence", machine.name(), "--yes", "--reason", "a test"];
    let aborted = gateway.picket(&fence).await?;
    assert_eq!(aborted.code, RECOVERED, "{aborted:?}\n{}", gateway.log());
    assert!(aborted.out.contains("Ready is True"), "{aborted:?}");
    let clean = async || Ok(is_clean(&cluster.node(machine).await?));
    until("what it was told is taken back", Duration::from_secs(60), clean).await?;
    let did: Vec<String> = machine.power_events().into_iter().map(|event| event.what).collect();
    assert_eq!(did, ["on"]);
    gateway.stop().await?;

    let gateway = start(cluster, &[(machine.name(), machine, "pods")], &no_more).await?;
    let taint = |what: &str| format!("{OUT_OF_SERVICE}{what}");
    let set = [&taint("=by-hand:NoExecute"), "--overwrite"];
    let by_hand =
        async || cluster.kubectl(&["taint", "node", machine.name(), set[0], set[1]]).await.map(drop);
    let taken_back =
        async || cluster.kubectl(&["taint", "node", machine.name(), &taint("-")]).await.map(drop);
    by_hand().await?;
    let fenced = gateway.picket(&[&fence[..], &["--until", "confirmed"]].concat()).await?;
    assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
    is_told(&gateway, machine.name(), "somebody else's taint").await?;
    assert!(taints(&cluster.node(machine).await?).contains(&FENCED), "it was told before the off");
    taken_back().await?;
    is_told(&gateway, machine.name(), "released").await?;

    by_hand().await?;
    let unfence = ["unfence", machine.name(), "--yes", "--reason", "mended"];
    let meanwhile = async {
        is_told(&gateway, machine.name(), "somebody else's taint").await?;
        assert!(!machine.runs());
        let node = cluster.node(machine).await?;
        assert!(taints(&node).contains(&OUT_OF_SERVICE), "it is not ours to remove: {node:#}");
        taken_back().await
    };
    let (unfenced, told) = tokio::join!(gateway.picket(&unfence), meanwhile);
    told?;
    assert_eq!(unfenced?.code, 0, "{}", gateway.log());
    cluster.until_ready(machine, true).await?;
    until("the node is as it was", Duration::from_secs(180), async || {
        Ok(is_clean(&cluster.node(machine).await?))
    })
    .await
}

/// Waits until the release is told to have come to that.
async fn is_told(gateway: &Gateway, node: &str, why: &str) -> Result<()> {
    until(&format!("it is told that {why}"), Duration::from_secs(120), async || {
        Ok(gateway.picket(&["status", node]).await?.out.contains(why))
    })
    .await
}

/// A Node that is another machine's, or one of another cluster: its pods and volumes are nobody's to let go, and a person is told which it is.
#[tokio::test]
async fn what_is_another_machine_s_or_another_cluster_s_is_not_touched() -> Result<()> {
    let cluster = cluster().await?;
    let (machine, other) = (for_a_mistake(cluster), for_everybody(cluster));
    let elsewhere = |_: &str, login: &str| {
        let another = "00000000-0000-4000-8000-000000000000";
        format!("[releases.elsewhere]\nkind = \"kubernetes\"\ncluster_uid = {another:?}\n{login}")
    };
    for (node, release, why) in
        [(other.name(), "pods", "another machine"), (machine.name(), "elsewhere", "another cluster")]
    {
        let gateway = start(cluster, &[(node, machine, release)], &elsewhere).await?;
        let checked = gateway.picket(&["check", node]).await?;
        assert!(checked.out.contains(why), "{checked:?}");
        let fenced =
            gateway.picket(&["fence", node, "--until", "confirmed", "--yes", "--reason", "a test"]).await?;
        assert_eq!(fenced.code, 0, "{fenced:?}\n{}", gateway.log());
        is_told(&gateway, node, why).await?;
    }
    assert!(!machine.runs() && other.runs());
    for machine in [machine, other] {
        let node = cluster.node(machine).await?;
        assert!(!taints(&node).iter().any(|key| [OUT_OF_SERVICE, FENCED].contains(key)), "{node:#}");
    }
    Ok(())
}
