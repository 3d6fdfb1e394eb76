//! What runs on a cluster for tests: a database of one pod with a volume, and pods that do nothing.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::super::until;
use super::{CsiCall, Kubernetes, KubernetesMachine, Writers};
use crate::error::{PeerError, Result};

/// The CSI driver's name.
const DRIVER: &str = "disk.test.picket.dev";
const RUNS_WITHIN: Duration = Duration::from_secs(120);

/// A StatefulSet of one replica that writes a line to its ReadWriteOnce volume every 50 ms.
#[derive(Debug)]
pub struct Database<'a> {
    cluster: &'a Kubernetes,
    name: String,
    volume: String,
}

impl Database<'_> {
    /// Its only pod.
    pub fn pod(&self) -> String {
        format!("{}-0", self.name)
    }

    /// Its volume, by the name that the CSI driver knows.
    pub fn volume(&self) -> &str {
        &self.volume
    }

    /// What the API says of that pod; null where there is none.
    pub async fn look(&self) -> Result<Value> {
        self.cluster.json(&["get", "pod", &self.pod(), "--ignore-not-found"]).await
    }

    /// The Node on which it is; `None` where it is on none.
    pub async fn node(&self) -> Result<Option<String>> {
        Ok(self.look().await?["spec"]["nodeName"].as_str().map(str::to_owned))
    }

    /// Waits until that Node's kubelet says that it runs, and is not Terminating, and until it has written there since.
    pub async fn runs_on(&self, node: &str) -> Result<()> {
        let mut runs = false;
        let mut from = SystemTime::now();
        until(&format!("{} runs on {node} and writes", self.pod()), RUNS_WITHIN, async || {
            if !runs {
                let pod = self.look().await?;
                let stays = pod["metadata"]["deletionTimestamp"].is_null();
                runs = stays && pod["spec"]["nodeName"] == node && pod["status"]["phase"] == "Running";
                from = SystemTime::now();
            }
            Ok(runs && !self.writers().of(node).after(from).0.is_empty())
        })
        .await
    }

    /// Waits until it writes, whatever the API says of it.
    pub async fn still_writes(&self, node: &str) -> Result<()> {
        let from = SystemTime::now();
        let wrote = async || Ok(self.writers().of(node).after(from).0.len() > 2);
        until(&format!("{} still writes on {node}", self.pod()), RUNS_WITHIN, wrote).await
    }

    /// Waits until it is Terminating.
    pub async fn is_terminating(&self) -> Result<()> {
        until(&format!("{} is Terminating", self.pod()), RUNS_WITHIN, async || {
            Ok(self.look().await?["metadata"]["deletionTimestamp"].is_string())
        })
        .await
    }

    /// All that stands on its volume.
    pub fn writers(&self) -> Writers {
        Writers::read(&self.log())
    }

    /// What the CSI driver was told of that.
    pub fn csi_calls(&self) -> Vec<CsiCall> {
        self.cluster.csi_calls().into_iter().filter(|call| call.volume == self.volume).collect()
    }

    /// Where it is, as a file: for whoever reads it from another process.
    pub fn log(&self) -> PathBuf {
        self.cluster.directory().join("volumes").join(&self.volume).join("log")
    }
}

impl Kubernetes {
    /// A new database of that name, which may run on these machines and no others; it runs and writes.
    pub async fn database(&self, name: &str, on: &[&KubernetesMachine]) -> Result<Database<'_>> {
        self.database_upon(name, name, on).await
    }

    /// The same with a volume that is there already, as the CSI driver knows it.
    pub async fn database_upon(
        &self,
        name: &str,
        volume: &str,
        on: &[&KubernetesMachine],
    ) -> Result<Database<'_>> {
        let folder = self.directory().join("volumes").join(volume);
        std::fs::create_dir_all(&folder).map_err(PeerError::io("create a volume"))?;
        self.apply(&manifest(name, volume, &affinity(on))).await?;
        let database = Database { cluster: self, name: name.to_owned(), volume: volume.to_owned() };
        let within = format!("{} writes", database.pod());
        until(&within, RUNS_WITHIN, async || Ok(database.writers().last().is_some())).await?;
        Ok(database)
    }

    /// So many pods that do nothing, on that machine alone, by a StatefulSet of that name that makes them all at once. They run.
    pub async fn idle_pods(&self, name: &str, count: u32, on: &KubernetesMachine) -> Result<()> {
        self.idle_pods_within(name, count, &[on]).await
    }

    /// The same, all of them on the first of these machines; those that are made anew later may run on any of them.
    pub async fn idle_pods_first_on(&self, name: &str, count: u32, on: &[&KubernetesMachine]) -> Result<()> {
        let others = || on.iter().skip(1);
        for other in others() {
            self.kubectl(&["cordon", other.name()]).await?;
        }
        self.idle_pods_within(name, count, on).await?;
        for other in others() {
            self.kubectl(&["uncordon", other.name()]).await?;
        }
        Ok(())
    }

    async fn idle_pods_within(&self, name: &str, count: u32, on: &[&KubernetesMachine]) -> Result<()> {
        let template = json!({
            "metadata": { "labels": { "app": name } },
            "spec": {
                "affinity": affinity(on),
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "dnsPolicy": "Default",
                "terminationGracePeriodSeconds": 5,
                "tolerations": tolerations(),
                "containers": [{ "name": "idle", "image": "test.local/pause:1", "imagePullPolicy": "Never" }],
            },
        });
        self.apply(&stateful_set(name, count, &template, &json!([]))).await?;
        let within = RUNS_WITHIN + Duration::from_secs(u64::from(count));
        until(&format!("{count} pods run"), within, async || {
            let set = self.json(&["get", "statefulset", name]).await?;
            Ok(set["status"]["readyReplicas"] == count)
        })
        .await
    }
}

fn affinity(on: &[&KubernetesMachine]) -> Value {
    let names: Vec<&str> = on.iter().map(|machine| machine.name()).collect();
    let names = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": names });
    let terms = json!({ "nodeSelectorTerms": [{ "matchExpressions": [names] }] });
    json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } })
}

/// Evicted three seconds after a Node is seen to be away, and not after five minutes.
fn tolerations() -> Value {
    let one = |key: &str| json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3 });
    json!([one("node.kubernetes.io/unreachable"), one("node.kubernetes.io/not-ready")])
}

fn stateful_set(name: &str, replicas: u32, template: &Value, claims: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": name },
        "spec": {
            "serviceName": name,
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": { "app": name } },
            "template": template,
            "volumeClaimTemplates": claims,
        },
    })
}

fn manifest(name: &str, volume: &str, affinity: &Value) -> Value {
    let claim = json!({
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "volumeName": name,
        "resources": { "requests": { "storage": "16Mi" } },
    });
    let disk = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": "16Mi" },
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": { "driver": DRIVER, "volumeHandle": volume },
            "claimRef": { "namespace": "default", "name": format!("data-{name}-0") },
        },
    });
    let node = json!({ "name": "NODE", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } });
    let template = json!({
        "metadata": { "labels": { "app": name } },
        "spec": {
            "affinity": affinity,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "dnsPolicy": "Default",
            "terminationGracePeriodSeconds": 5,
            "tolerations": tolerations(),
            "containers": [{
                "name": "writer",
                "image": "test.local/writer:1",
                "imagePullPolicy": "Never",
                "env": [node],
                "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
            }],
        },
    });
    let claims = json!([{ "metadata": { "name": "data" }, "spec": claim }]);
    json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": [disk, stateful_set(name, 1, &template, &claims)],
    })
}

/// What is in a cluster from the beginning: its machines' Nodes, and the driver of its volumes.
pub(super) fn foundations(machines: &[KubernetesMachine]) -> Value {
    let driver = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": { "name": DRIVER },
        "spec": { "attachRequired": true },
    });
    // A kubelet that finds no Node of its name makes one, and may then take minutes for what belongs to it.
    let node = |machine: &KubernetesMachine| {
        let labels = json!({ "kubernetes.io/hostname": machine.name() });
        let meta = json!({ "name": machine.name(), "labels": labels });
        // Which machine of a cloud it is, its cloud controller would say.
        let spec = machine.provider_id().map_or_else(|| json!({}), |id| json!({ "providerID": id }));
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec })
    };
    let items: Vec<Value> = machines.iter().map(node).chain([driver]).collect();
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

/// Whether a Node takes pods with volumes: it is Ready, and its kubelet knows the driver.
pub(super) fn is_usable(node: &Value, csi_node: &Value) -> bool {
    let drivers = csi_node["spec"]["drivers"].as_array();
    is_ready(node) && drivers.is_some_and(|drivers| drivers.iter().any(|driver| driver["name"] == DRIVER))
}

pub(super) fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == "Ready"));
    ready.is_some_and(|condition| condition["status"] == "True")
}
