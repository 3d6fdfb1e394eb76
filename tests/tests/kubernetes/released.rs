//! The case that Picket is for, by Picket: the pod runs elsewhere with its volume, one writer after the other, and the node comes back clean.

use std::time::{Duration, SystemTime};

use picket_tests::peers::{Kubernetes, KubernetesMachine, parse_yaml, until};
use picket_tests::{Bmc, Daemon, Fleet, Gateway, Result};
use serde_json::Value;

use crate::moving::stuck;
use crate::scene::{OUT_OF_SERVICE, cluster, for_a_gateway, for_a_mistake, for_everybody, told};

const FENCED: &str = "picket.dev/fenced";
const ALLOWED: &str = include_str!("../../../deploy/kubernetes/release.yaml");

/// A gateway on the control plane's host, which may do what the shipped role says and no more: nodes, each with whose BMC is its own, and its
/// release. `more`: further releases, which use the same kubeconfig.
async fn start(
    cluster: &Kubernetes,
    nodes: &[(&str, &KubernetesMachine, &str)],
    more: &str,
) -> Result<Gateway> {
    let role = parse_yaml(ALLOWED).await?;
    let login = cluster.account("picket-release", &role["rules"]).await?;
    let system = cluster.json(&["get", "namespace", "kube-system"]).await?;
    let uid = system["metadata"]["uid"].as_str().unwrap_or_default();
    let kubeconfig = format!("kubeconfig = {login:?}\nsettle = \"0s\"\n");
    let pods = format!("[releases.pods]\nkind = \"kubernetes\"\ncluster_uid = {uid:?}\n{kubeconfig}");
    let mut fleet = Fleet::new().with(&pods);
    if !more.is_empty() {
        fleet = fleet.with(&format!("{more}{kubeconfig}"));
    }
    for (name, machine, release) in nodes {
        let identity = format!("identity = {{ uuid = \"{}\" }}", machine.uuid());
        fleet = fleet.node(name, &Bmc::at(machine.bmc().address()).with(&identity), &[release]);
    }
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    gateway.begin(&[]).await?;
    Ok(gateway)
}

fn taints(node: &Value) -> Vec<&str> {
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
    let gateway = start(cluster, &[(here.name(), here, "pods"), (there.name(), there, "pods")], "").await?;

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
        let node = cluster.node(here).await?;
        let note = node["metadata"]["annotations"]
            .as_object()
            .is_some_and(|all| all.contains_key("picket.dev/fence"));
        Ok(!taints(&node).contains(&FENCED) && !note)
    })
    .await?;
    let node = cluster.node(here).await?;
    assert_eq!(foreign(&node), before);
    assert_eq!(node["metadata"]["finalizers"], Value::Null);
    assert_eq!(database.writers().changes(), 1, "who is back does not write");
    Ok(())
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
    let elsewhere = "[releases.elsewhere]\nkind = \"kubernetes\"\ncluster_uid = \"00000000-0000-4000-8000-000000000000\"\n";
    for (node, release, why) in
        [(other.name(), "pods", "another machine"), (machine.name(), "elsewhere", "another cluster")]
    {
        let gateway = start(cluster, &[(node, machine, release)], elsewhere).await?;
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
