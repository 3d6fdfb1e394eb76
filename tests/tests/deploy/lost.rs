//! Gateways and controllers that run on the very machines that they fence: the one with the leader on it fails.

use std::net::IpAddr;
use std::time::Duration;

use picket_tests::peers::{Kubernetes, KubernetesMachine, until};
use picket_tests::{PeerError, Result};
use serde_json::{Value, json};

use crate::certificates::Authority;
use crate::fleet::{Alice, READY_WITHIN, certificate, fleet, secret, store};
use crate::image;
use crate::variants::chart;

/// From the failure to the Node's return: leases run out, a policy waits, a machine boots.
const WITHIN: Duration = Duration::from_secs(300);
const CALLER: &str = "[roles.controllers]\nrole = \"controller\"\ncallers = [\"controller@example.org\"]\n";

fn addresses(machines: &[KubernetesMachine]) -> Vec<IpAddr> {
    machines.iter().map(|machine| machine.bmc().address().ip()).collect()
}

async fn pods(cluster: &Kubernetes, part: &str) -> Result<Vec<Value>> {
    let label = format!("app.kubernetes.io/component={part}");
    let all = cluster.json(&["get", "pods", "--namespace", "fencing", "-l", &label]).await?;
    Ok(all["items"].as_array().cloned().unwrap_or_default())
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let is_so = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
    pod["metadata"]["deletionTimestamp"].is_null() && conditions.is_some_and(|all| all.iter().any(is_so))
}

async fn all_are_ready(cluster: &Kubernetes, within: Duration) -> Result<()> {
    let seen = async || {
        let ready = async |part: &str| {
            Ok::<_, PeerError>(pods(cluster, part).await?.iter().filter(|pod| is_ready(pod)).count())
        };
        Ok(ready("gateway").await? == 3 && ready("controller").await? == 2)
    };
    let waited = until("three gateways and two controllers are ready", within, seen).await;
    if waited.is_err() {
        let events = cluster.kubectl(&["describe", "pods", "--namespace", "fencing"]).await?;
        let said: String = cluster.machines().iter().map(|machine| machine.said_by_pods("fencing")).collect();
        panic!("{waited:?}\n{events}\n{said}");
    }
    Ok(())
}

/// The machine on which the gateway runs that leads.
async fn leader<'c>(cluster: &'c Kubernetes, alice: &Alice<'_>) -> Result<&'c KubernetesMachine> {
    let told = alice.is_answered().await?;
    let name = told
        .lines()
        .find(|line| line.contains("leads"))
        .and_then(|line| line.split_whitespace().find(|word| word.starts_with("picket-")));
    let name = name.unwrap_or_else(|| panic!("no gateway is said to lead: {told}"));
    let gateways = pods(cluster, "gateway").await?;
    let pod = gateways.iter().find(|pod| pod["metadata"]["name"] == name).expect("its pod");
    Ok(cluster.machine(pod["spec"]["nodeName"].as_str().expect("a Node")))
}

/// By the policy alone, without a person: who stands by takes over, its controller asks, it fences the machine of the one that led, and brings it
/// back; nobody else's machine is touched.
#[tokio::test]
async fn the_machine_with_the_leader_on_it_fails_and_is_fenced_by_who_takes_over() -> Result<()> {
    let cluster = Kubernetes::start(3).await?;
    cluster.kubectl(&["create", "namespace", "fencing"]).await?;
    let authority = Authority::new(&cluster.directory().join("fencing"));
    let store = store(&cluster, &authority).await?;
    let image = image::made().await?;
    let hosts: Vec<IpAddr> = (11..=13).map(|last| IpAddr::from([10, 250, 0, last])).collect();
    assert!(addresses(cluster.machines()).iter().all(|bmc| !hosts.contains(bmc)));
    for machine in cluster.machines() {
        machine.import(&image.archive).await?;
    }
    let system = cluster.json(&["get", "namespace", "kube-system"]).await?;
    let uid = system["metadata"]["uid"].as_str().unwrap_or_default();
    let secrets = [
        certificate("picket-tls", &authority.at(&hosts), &authority),
        certificate("picket-etcd", &authority.caller("gateways@example.org"), &authority),
        certificate("controller-tls", &authority.caller("controller@example.org"), &authority),
        secret("bmc", &[("password", picket_tests::peers::PASSWORD)]),
    ];
    cluster.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": secrets })).await?;
    let endpoints: Vec<String> = hosts.iter().map(|host| format!("https://{host}:7070")).collect();
    // Nobody leads from the API server's service to the API server in this cluster.
    let env = json!({ "KUBERNETES_SERVICE_HOST": "10.250.0.1", "KUBERNETES_SERVICE_PORT": "6443" });
    let values = json!({
        "settings": { "toml": fleet(uid, cluster.machines(), CALLER), "secrets": ["bmc"] },
        "gateways": {
            "runOn": "anywhere", "hostNetwork": true, "tls": { "secretName": "picket-tls" },
            "storage": { "kind": "emptyDir" }, "advertise": "https://$(HOST_IP):7070", "env": env,
        },
        "controller": {
            "enabled": true, "runOn": "anywhere", "hostNetwork": true, "env": env, "endpoints": endpoints,
            "tls": { "secretName": "controller-tls" },
        },
        "etcd": { "endpoints": store.endpoints(), "tls": { "secretName": "picket-etcd" } },
    });
    let file = cluster.directory().join("values.json");
    std::fs::write(&file, values.to_string()).map_err(PeerError::io("write values"))?;
    let (chart, file) = (chart().display().to_string(), file.display().to_string());
    let installed =
        cluster.helm(&["install", "picket", &chart, "--namespace", "fencing", "--values", &file]).await?;
    assert_eq!(installed.code, 0, "{installed:?}");
    all_are_ready(&cluster, READY_WITHIN * 2).await?;

    let alice = Alice {
        cluster: &cluster,
        endpoint: endpoints.join(","),
        authority: &authority.file(),
        own: authority.caller("alice@example.org"),
    };
    let here = leader(&cluster, &alice).await?;
    let policy = json!({
        "apiVersion": "picket.dev/v1alpha1",
        "kind": "FencingPolicy",
        "metadata": { "name": "all" },
        "spec": {
            "nodeSelector": { "matchExpressions": [{ "key": "kubernetes.io/hostname", "operator": "Exists" }] },
            "everyNode": true, "then": "PowerOn",
        },
    });
    cluster.apply(&policy).await?;
    let boot = here.boot_id();
    let frozen = here.freeze();
    let waited = until("it was switched off, and on again", WITHIN, async || {
        let did: Vec<String> = here.power_events().into_iter().map(|event| event.what).collect();
        Ok(did == ["on", "off", "on"])
    });
    if let Err(error) = waited.await {
        let events =
            cluster.kubectl(&["get", "events.events.k8s.io,nodes,fencingpolicies,pods", "-A"]).await?;
        let status = alice.picket(&["status", here.name()]).await?;
        let said: String = cluster.machines().iter().map(|machine| machine.said_by_pods("fencing")).collect();
        panic!("{error}\n{events}\n{status:?}\n{said}");
    }
    drop(frozen);
    cluster.until_ready(here, true).await?;
    assert_ne!(here.boot_id(), boot);
    assert_ne!(leader(&cluster, &alice).await?.name(), here.name(), "another one leads");
    for other in cluster.machines().iter().filter(|machine| machine.name() != here.name()) {
        let did: Vec<String> = other.power_events().into_iter().map(|event| event.what).collect();
        assert_eq!(did, ["on"], "{}", other.name());
    }
    let fences = alice.picket(&["history", "--output", "json"]).await?;
    assert!(fences.code == 0 && fences.out.contains("controller@example.org"), "{fences:?}");
    until("the Node is as it was", WITHIN, async || {
        let node = cluster.node(here).await?;
        let spec = node["spec"]["taints"].to_string();
        Ok(!spec.contains("picket.dev")
            && !spec.contains("out-of-service")
            && !node["metadata"].to_string().contains("picket.dev/fenc"))
    })
    .await?;
    all_are_ready(&cluster, WITHIN).await
}
