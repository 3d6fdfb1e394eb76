//! A thousand Nodes: five zones of five racks of forty, and one of the control plane. Each is as big as a real one. Beside the other tests
//! four hundred, and racks of sixteen: the same shares, of what takes a machine for itself.

use std::sync::LazyLock;

use picket_tests::peers::Kubernetes;
use picket_tests::{PeerError, Result, soak};
use serde_json::{Value, json};

/// The zones. Their Nodes are called by them: `a001` and on.
pub const ZONES: [char; 5] = ['a', 'b', 'c', 'd', 'e'];
/// Racks of a zone.
const RACKS: usize = 5;
/// Nodes of a rack.
pub static RACK: LazyLock<usize> = LazyLock::new(|| if soak() { 40 } else { 16 });
/// Nodes of a zone.
pub static ZONE: LazyLock<usize> = LazyLock::new(|| RACKS * *RACK);
/// All workers.
pub static ALL: LazyLock<usize> = LazyLock::new(|| *ZONE * ZONES.len());
/// Which kwok has a Node's kubelet.
pub const KUBELETS: &str = "test.picket.dev/kubelets";
/// The Node that fails alone.
pub const ONE: &str = "b007";
/// The zone that falls silent whole.
pub const SILENT: char = 'e';
/// Images that a kubelet names at most: most of what a Node weighs.
const IMAGES: usize = 50;

/// Whose kubelets fail together.
pub const GROUPS: [&str; 4] = ["rack", "one", "zone", "rest"];

fn group(zone: char, number: usize, name: &str) -> &'static str {
    match (zone, number) {
        ('a', _) if number <= *RACK => "rack",
        (SILENT, _) => "zone",
        _ if name == ONE => "one",
        _ => "rest",
    }
}

fn name(zone: char, number: usize) -> String {
    format!("{zone}{number:03}")
}

/// The Nodes of the rack that fails, in order.
pub fn rack() -> Vec<String> {
    (1..=*RACK).map(|number| name('a', number)).collect()
}

fn node(name: &str, labels: &Value) -> Value {
    let image = |n: usize| json!({ "names": [format!("registry.example.org/project/{name}/image-{n}@sha256:{n:064x}")], "sizeBytes": n });
    let id = || uuid::Uuid::now_v7().to_string();
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": labels },
        "status": {
            "allocatable": { "cpu": "32", "memory": "256Gi", "pods": "110" },
            "capacity": { "cpu": "32", "memory": "256Gi", "pods": "110" },
            "images": (1..=IMAGES).map(image).collect::<Vec<_>>(),
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": id(),
                "containerRuntimeVersion": "kwok",
                "kernelVersion": "kwok",
                "kubeProxyVersion": "",
                "kubeletVersion": "kwok",
                "machineID": id(),
                "operatingSystem": "linux",
                "osImage": "kwok",
                "systemUUID": id(),
            },
        },
    })
}

fn worker(zone: char, number: usize) -> Value {
    let name = name(zone, number);
    let labels = json!({
        "role": "worker",
        "topology.kubernetes.io/zone": zone.to_string(),
        "rack": format!("{zone}{}", (number - 1) / *RACK + 1),
        KUBELETS: group(zone, number, &name),
    });
    node(&name, &labels)
}

/// Makes them all.
pub async fn make(cluster: &Kubernetes) -> Result<()> {
    let member = node("m1", &json!({ "node-role.kubernetes.io/control-plane": "", KUBELETS: "rest" }));
    create(cluster, "m", &[member]).await?;
    // Of a zone at a time: a request of kubectl's is not to take long.
    for zone in ZONES {
        let nodes: Vec<Value> = (1..=*ZONE).map(|number| worker(zone, number)).collect();
        create(cluster, &zone.to_string(), &nodes).await?;
    }
    Ok(())
}

async fn create(cluster: &Kubernetes, name: &str, nodes: &[Value]) -> Result<()> {
    let file = cluster.directory().join(format!("nodes-{name}.json"));
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": nodes });
    let wrote = std::fs::write(&file, list.to_string());
    wrote.map_err(|source| PeerError::Io { what: format!("write {}", file.display()), source })?;
    cluster.kubectl(&["create", "-f", &file.display().to_string()]).await.map(drop)
}

/// How many of all Nodes are Ready. The API server prints them: whole they would be ten megabytes.
pub async fn ready(cluster: &Kubernetes) -> Result<usize> {
    let all = cluster.kubectl(&["get", "nodes", "--no-headers"]).await?;
    Ok(all.lines().filter(|line| line.split_whitespace().nth(1) == Some("Ready")).count())
}
