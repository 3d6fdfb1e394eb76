//! The cluster, the gateway and the controller.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use picket_proto::v1::ListFencesRequest;
use picket_tests::peers::{Kubernetes, Kwok, until};
use picket_tests::{Controller, Daemon, Fleet, Gateway, PeerError, Result};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::thousand::cost;
use crate::thousand::nodes::{self, ALL, GROUPS, KUBELETS, ZONE, ready};

/// So much happens at once, on a machine that does other things too.
const WITHIN: Duration = Duration::from_secs(480);

/// So many are fenced within an hour.
pub const BUDGET: usize = 10;

/// Simulated machines of these names, of which few are fenced within an hour.
fn fleet() -> Fleet {
    let lines = |zone: &char| {
        format!("[nodes.\"{zone}[001-{:03}].devices.bmc]\ndriver = \"sim\"\nmachine = \"{{node}}\"\n", *ZONE)
            .replace("].devices", "]\".devices")
    };
    let nodes: String = nodes::ZONES.iter().map(lines).collect();
    Fleet::new().with(&format!(
        "{nodes}[roles.socket]\nrole = \"admin\"\ncallers = [\"uid:*\"]\n[budget]\nper_window = {BUDGET}\nwindow = \"1h\"\n"
    ))
}

pub struct Scene {
    // What is dropped first stops asking first.
    pub controller: Controller,
    pub gateway: Gateway,
    kubelets: BTreeMap<&'static str, Kwok>,
    pub cluster: Kubernetes,
}

impl Scene {
    /// All of it, Ready, with a controller that leads and a policy for all workers.
    pub async fn open() -> Result<Self> {
        // Leases and grace as they are by default; but the controllers, as they are, would take minutes to write as much as this asks of them.
        let controllers = ["--node-monitor-grace-period=50s", "--kube-api-qps=200", "--kube-api-burst=400"];
        let cluster = Kubernetes::start_with(0, &controllers).await?;
        let kubelets = |group: &&'static str| Ok((*group, cluster.kwok(KUBELETS, group)?));
        let kubelets = GROUPS.iter().map(kubelets).collect::<Result<BTreeMap<_, _>>>()?;
        nodes::make(&cluster).await?;
        let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet())?;
        gateway.begin(&[]).await?;
        gateway.checked().await?;
        until("all Nodes are Ready", WITHIN, async || Ok(ready(&cluster).await? == *ALL + 1)).await?;
        cluster.apply(&cost::counting()).await?;
        let controller = Controller::start(&cluster, &gateway).await?;
        let scene = Self { controller, gateway, kubelets, cluster };
        let workers = json!({ "nodeSelector": { "matchLabels": { "role": "worker" } } });
        scene.cluster.fencing_policy("workers", &workers).await?;
        scene.told("Acting", "Acting").await?;
        // At the beginning no lease was seen to advance.
        scene
            .until("no brake holds", async || {
                let said = scene.controller.http("/metrics").await?;
                let braked = cost::sum(&said, "picket_controller_braked{", &[]);
                Ok(said.contains("picket_controller_braked{") && braked == 0)
            })
            .await?;
        Ok(scene)
    }

    pub fn kubelets(&self, group: &str) -> &Kwok {
        &self.kubelets[group]
    }

    /// Everything that was started still runs.
    pub fn still_runs(&mut self) -> Result<()> {
        self.controller.process().still_runs()?;
        self.kubelets.values_mut().try_for_each(Kwok::still_runs)
    }

    /// Waits for that, with what the controller said where it does not come.
    pub async fn until(&self, what: &str, seen: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
        until(what, WITHIN, seen).await.map_err(|error| match error {
            PeerError::TimedOut { what, within, .. } => {
                PeerError::TimedOut { what, within, seen: last(&self.controller.log()) }
            }
            other => other,
        })
    }

    /// Waits until so much time has passed.
    pub async fn pass(&self, time: Duration) -> Result<()> {
        let from = Instant::now();
        self.until("time passes", async || Ok(from.elapsed() >= time)).await
    }

    /// What the policy says.
    pub async fn status(&self) -> Result<Value> {
        Ok(self.cluster.json(&["get", "fencingpolicy", "workers"]).await?["status"].clone())
    }

    /// Waits until the policy's condition has that reason; its words.
    pub async fn told(&self, kind: &str, reason: &str) -> Result<String> {
        let mut words = String::new();
        self.until(&format!("the policy says {kind} by {reason}"), async || {
            let status = self.status().await?;
            let all = status["conditions"].as_array().cloned().unwrap_or_default();
            let found = all.iter().find(|one| one["type"] == kind && one["reason"] == reason);
            words = found.and_then(|one| one["message"].as_str()).unwrap_or_default().to_owned();
            Ok(found.is_some())
        })
        .await?;
        Ok(words)
    }

    /// Nodes of which there are Events of that reason, with the last one's words.
    pub async fn events(&self, reason: &str) -> Result<BTreeMap<String, String>> {
        let selected = format!("--field-selector=reason={reason}");
        let all = self.cluster.json(&["get", "events.events.k8s.io", "-n", "default", &selected]).await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let all = all["items"].as_array().cloned().unwrap_or_default();
        Ok(all.iter().map(|one| (text(&one["regarding"]["name"]), text(&one["note"]))).collect())
    }

    /// The Nodes that were fenced, or are being fenced, as the gateway has it; each once, as often as it was begun.
    pub async fn fences(&self) -> Result<Vec<String>> {
        let mut client = self.gateway.client().await?;
        let answer = client.list_fences(ListFencesRequest::default()).await;
        let answer = answer.map_err(PeerError::call("ListFences"))?;
        Ok(answer.into_inner().fences.into_iter().rev().map(|fence| fence.node).collect())
    }

    /// What is noted on a Node.
    pub async fn note(&self, node: &str) -> Result<Value> {
        let path = "jsonpath={.metadata.annotations.picket\\.dev/status}";
        let note = self.cluster.kubectl(&["get", "node", node, "-o", path]).await?;
        Ok(serde_json::from_str(&note).unwrap_or_default())
    }

    /// What a program prints on the host of the control plane.
    pub async fn beside(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = tokio::process::Command::from(self.cluster.place().command(program));
        let failed = |source| PeerError::Io { what: format!("run {program}"), source };
        let output = command.args(arguments).kill_on_drop(true).output().await.map_err(failed)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Nodes of the policy that are fenced or wait, by what its status counts.
    pub async fn counts(&self) -> Result<[u64; 3]> {
        let status = self.status().await?;
        Ok(["selected", "unhealthy", "fencing"].map(|key| status[key].as_u64().unwrap_or_default()))
    }
}

fn last(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// Names in order, without repetition.
pub fn set(names: &[String]) -> BTreeSet<&str> {
    names.iter().map(String::as_str).collect()
}
