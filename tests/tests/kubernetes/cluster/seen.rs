//! The case that Picket is for, and nobody types a command: the controller sees it, a policy says what becomes of it, and the node comes back.

use std::time::{Duration, SystemTime};

use picket_tests::peers::{Kubernetes, KubernetesMachine, until};
use picket_tests::{Controller, Gateway, HOLDER, Result, proven_at};
use serde_json::{Value, json};

use crate::cluster::fenced::{power, start, until_clean};
use crate::cluster::scene::{cluster, lend};
use crate::cluster::seed::{audited, foreign, leave, moved_once, placed};

/// More than half of the cluster's machines, of which one fails: whatever other tests do to the rest meanwhile, too few kubelets are silent for
/// the controller's brake.
const MOST: usize = 7;
/// A policy waits, a machine is proven off and let go of, and boots.
const WITHIN: Duration = Duration::from_secs(300);
const POLICY: &str = "seen";
/// Who may ask in the controller's name.
const CALLERS: &str = "[roles.socket]\nrole = \"admin\"\ncallers = [\"uid:*\"]\n";

/// Of these machines' Nodes, as it is by default but for the end; it is in force.
async fn policy(cluster: &Kubernetes, on: [&KubernetesMachine; 2]) -> Result<()> {
    let names = on.map(KubernetesMachine::name);
    let these = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": names });
    let spec = json!({ "nodeSelector": { "matchExpressions": [these] }, "then": "PowerOn" });
    cluster.fencing_policy(POLICY, &spec).await?;
    until("the controller knows whom the policy selects", WITHIN, async || {
        let policy = cluster.json(&["get", "fencingpolicy", POLICY]).await?;
        Ok(policy["status"]["selected"] == names.len())
    })
    .await
}

/// The only fence of a node, once all is let go.
async fn released(gateway: &Gateway, node: &str) -> Result<Value> {
    let mut fences = Value::Null;
    until("it is proven off, and all is let go", WITHIN, async || {
        let said = gateway.picket(&["--output", "json", "history", node]).await?;
        let all: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        fences = all["fences"].clone();
        Ok(fences[0]["outcome"]["released"] == true)
    })
    .await?;
    assert_eq!(fences.as_array().map(Vec::len), Some(1), "{fences:#}");
    Ok(fences[0].clone())
}

/// Waits until a Node says by which policy it is being fenced.
async fn is_noted(cluster: &Kubernetes, machine: &KubernetesMachine) -> Result<()> {
    until("its Node says that it is being fenced", WITHIN, async || {
        let node = cluster.node(machine).await?;
        let note = node["metadata"]["annotations"]["picket.dev/status"].as_str().unwrap_or_default();
        let note: Value = serde_json::from_str(note).unwrap_or_default();
        Ok(note["policy"] == POLICY)
    })
    .await
}

/// The reasons of the controller's Events on a Node, in whatever order.
async fn events(cluster: &Kubernetes, node: &str) -> Result<Vec<String>> {
    let all = cluster.json(&["get", "events.events.k8s.io", "-n", "default"]).await?;
    let of = all["items"].as_array().into_iter().flatten();
    let ours = of.filter(|one| {
        one["regarding"]["name"] == node && one["reportingController"] == "picket.dev/controller"
    });
    Ok(ours.filter_map(|one| one["reason"].as_str()).map(str::to_owned).collect())
}

/// A kubelet is killed and its pod writes on. From there on the test only looks.
#[tokio::test]
async fn a_policy_has_a_silent_node_fenced_and_brought_back_and_its_pod_runs_elsewhere() -> Result<()> {
    let (cluster, lent) = (cluster().await?, lend(MOST).await?);
    let database = cluster.database("seen", &lent.two()).await?;
    let (here, there) = placed(cluster, &database, lent.two()).await?;
    let nodes = [(here.name(), here, "pods"), (there.name(), there, "pods")];
    let gateway = start(cluster, &nodes, &|_, _| CALLERS.to_owned()).await?;
    let controller = Controller::start(cluster, &gateway).await?;
    policy(cluster, lent.two()).await?;
    let before = foreign(&cluster.node(here).await?);
    let (boot, switched, others) = (here.boot_id(), power(here).len(), power(there).len());

    here.kill_kubelet().await?;
    cluster.until_ready(here, false).await?;
    let silent = SystemTime::now();
    let fence = async {
        is_noted(cluster, here).await?;
        released(&gateway, here.name()).await
    };
    let fence =
        fence.await.unwrap_or_else(|error| panic!("{error}\n{}\n{}", controller.log(), gateway.log()));
    let proven = proven_at(&fence).unwrap_or_else(|| panic!("it was not proven off: {fence:#}"));
    assert_eq!(fence["askers"][0]["holder"], HOLDER, "{fence:#}");
    database.runs_on(there.name()).await?;
    let writes = database.writers().after(silent);
    assert!(!writes.of(here.name()).0.is_empty(), "its pod wrote on until its machine was off");
    moved_once(&database, here, there, proven);

    cluster.until_ready(here, true).await?;
    assert_ne!(here.boot_id(), boot);
    until_clean(cluster, here).await?;
    assert_eq!(foreign(&cluster.node(here).await?), before);
    let events = events(cluster, here.name()).await?;
    for reason in ["FenceAsked", "Fenced", "NodeBack"] {
        assert!(events.iter().any(|event| event == reason), "no {reason}: {events:?}");
    }
    assert_eq!(controller.asked(), 1, "{}", controller.log());
    assert_eq!(
        (&power(here)[switched..], power(there).len()),
        (&["off", "on"].map(str::to_owned)[..], others)
    );
    moved_once(&database, here, there, proven);
    audited(&gateway, here.name(), &["fencing", "fenced", "unfencing", "normal"]).await?;
    cluster.kubectl(&["delete", "fencingpolicy", POLICY]).await?;
    leave(cluster, &database, here).await?;
    lent.leave().await?;
    Ok(())
}
