//! Kubelets, as the API server sees them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::try_join_all;
use parking_lot::Mutex;
use picket_tests::Result;
use picket_tests::peers::Kubernetes;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use uuid::Uuid;

const EVERY: Duration = Duration::from_secs(2);

/// What one says.
#[derive(Clone, Debug)]
struct Kubelet {
    ready: bool,
    turned: String,
    boot: String,
    /// What it says of its machine.
    uuid: String,
    silent: bool,
}

/// Kubelets that renew their leases and tell their status until this is dropped.
pub struct Kubelets {
    cluster: &'static Kubernetes,
    all: Arc<Mutex<BTreeMap<String, Kubelet>>>,
    task: JoinHandle<()>,
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn time() -> String {
    time::OffsetDateTime::from(SystemTime::now())
        .replace_nanosecond(0)
        .ok()
        .and_then(|now| now.format(&time::format_description::well_known::Rfc3339).ok())
        .unwrap_or_default()
}

fn new(ready: bool) -> Kubelet {
    let (boot, uuid) = (Uuid::now_v7().to_string(), "test".to_owned());
    Kubelet { ready, turned: time(), boot, uuid, silent: false }
}

fn node(name: &str, labels: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels } })
}

fn lease(name: &str) -> Value {
    let now = time().replace('Z', ".000000Z");
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": name, "namespace": "kube-node-lease" },
        "spec": { "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now },
    })
}

fn status(name: &str, kubelet: &Kubelet) -> Value {
    let ready = json!({
        "type": "Ready",
        "status": if kubelet.ready { "True" } else { "False" },
        "reason": if kubelet.ready { "KubeletReady" } else { "KubeletNotReady" },
        "message": "a kubelet of the tests",
        "lastTransitionTime": kubelet.turned,
        "lastHeartbeatTime": time(),
    });
    let info = [
        "architecture",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ];
    let mut info: BTreeMap<&str, &str> = info.into_iter().map(|key| (key, "test")).collect();
    info.insert("bootID", &kubelet.boot);
    info.insert("systemUUID", &kubelet.uuid);
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name },
        "status": { "conditions": [ready], "nodeInfo": info },
    })
}

impl Kubelets {
    /// Nodes of these names, with these labels, that are Ready.
    pub async fn start(cluster: &'static Kubernetes, nodes: &[(String, Value)]) -> Result<Self> {
        let items: Vec<Value> = nodes.iter().map(|(name, labels)| node(name, labels)).collect();
        cluster.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": items })).await?;
        let all: BTreeMap<String, Kubelet> =
            nodes.iter().map(|(name, _)| (name.clone(), new(true))).collect();
        tell(cluster, &all).await?;
        let all = Arc::new(Mutex::new(all));
        let told = all.clone();
        let task = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(EVERY);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                let all = told.lock().clone();
                // An API server that is stopped is one that a kubelet waits for.
                let _ = tell(cluster, &all).await;
            }
        });
        Ok(Self { cluster, all, task })
    }

    /// One more Node, that is Ready.
    pub async fn joins(&self, name: &str, labels: &Value) -> Result<()> {
        self.cluster.apply(&node(name, labels)).await?;
        self.all.lock().insert(name.to_owned(), new(true));
        self.now().await
    }

    fn change(&self, node: &str, change: impl FnOnce(&mut Kubelet)) {
        let mut all = self.all.lock();
        change(all.get_mut(node).unwrap_or_else(|| panic!("no Node is called {node}")));
    }

    /// It says that it is Ready, or is not; it renews its lease all the same.
    pub async fn says(&self, node: &str, ready: bool) -> Result<()> {
        self.change(node, |kubelet| {
            (kubelet.ready, kubelet.turned, kubelet.silent) = (ready, time(), false);
        });
        self.now().await
    }

    /// All of these say so at once.
    pub async fn all_say(&self, nodes: &[String], ready: bool) -> Result<()> {
        for node in nodes {
            self.change(node, |kubelet| (kubelet.ready, kubelet.turned) = (ready, time()));
        }
        self.now().await
    }

    /// It says that this is its machine's UUID.
    pub async fn claims(&self, node: &str, uuid: &str) -> Result<()> {
        self.change(node, |kubelet| uuid.clone_into(&mut kubelet.uuid));
        self.now().await
    }

    /// It says nothing any more.
    pub fn falls_silent(&self, node: &str) {
        self.change(node, |kubelet| kubelet.silent = true);
    }

    /// Its machine boots, and it is Ready.
    pub async fn boots(&self, node: &str) -> Result<()> {
        self.boots_and_says(node, true).await
    }

    /// Its machine boots, and it says that it is Ready, or is not yet.
    pub async fn boots_and_says(&self, node: &str, ready: bool) -> Result<()> {
        self.change(node, |kubelet| *kubelet = new(ready));
        self.now().await
    }

    async fn now(&self) -> Result<()> {
        let all = self.all.lock().clone();
        tell(self.cluster, &all).await
    }
}

/// All at once, as kubelets do.
async fn tell(cluster: &Kubernetes, all: &BTreeMap<String, Kubelet>) -> Result<()> {
    let heard = all.iter().filter(|(_, kubelet)| !kubelet.silent);
    let telling = heard.map(|(name, kubelet)| async move {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        cluster.says(&format!("{leases}/{name}"), "kubelet", &lease(name)).await?;
        let path = format!("/api/v1/nodes/{name}/status");
        cluster.says(&path, "kubelet", &status(name, kubelet)).await
    });
    try_join_all(telling).await.map(drop)
}
