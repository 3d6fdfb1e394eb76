//! A database on one of two machines, whose kubelet is killed; what is seen of it; and everything as before afterwards.

use std::time::{Duration, SystemTime};

use picket_tests::peers::{Database, Kubernetes, KubernetesMachine, Write, until};

use crate::edge::Wrong;
use crate::ours::Ours;
use crate::turn::Turn;
use crate::watch::{Watch, is_ready};

/// By which Kubernetes is told that a machine is off.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
const WITHIN: Duration = Duration::from_secs(300);

/// Where the kubelet has been killed.
pub struct Stage<'a> {
    pub cluster: &'a Kubernetes,
    pub here: &'a KubernetesMachine,
    pub database: Database<'a>,
    pub node: Watch,
    pub pod: Watch,
    /// The pod's.
    pub uid: String,
    /// Its writer's.
    life: String,
    pub killed: SystemTime,
    name: String,
}

/// What the way itself knows of when it did what.
pub struct Did {
    pub asked: SystemTime,
    pub proven: SystemTime,
    pub settled: SystemTime,
}

impl<'a> Stage<'a> {
    /// Sets it, and kills the kubelet.
    pub async fn set(cluster: &'a Kubernetes, name: &str) -> Result<Self, Wrong> {
        let [n1, n2] = [cluster.machine("n1"), cluster.machine("n2")];
        let database = cluster.database(name, &[n1, n2]).await?;
        let on = database.node().await?.unwrap_or_default();
        let here = if n1.name() == on { n1 } else { n2 };
        database.runs_on(here.name()).await?;
        let uid = database.look().await?["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let life = database.writers().last().map(|write| write.life.clone()).unwrap_or_default();
        let node = Watch::begin(cluster, "node", here.name()).await?;
        let pod = Watch::begin(cluster, "pod", &database.pod()).await?;
        let killed = SystemTime::now();
        here.kill_kubelet().await?;
        let name = name.to_owned();
        Ok(Self { cluster, here, database, node, pod, uid, life, killed, name })
    }

    /// When its Node was told not to be Ready.
    pub async fn not_ready(&self) -> Result<SystemTime, Wrong> {
        let seen = self.node.first("is not Ready", |told| told.at > self.killed && !is_ready(&told.object));
        Ok(seen.await?.at)
    }

    /// Waits until the pod writes again; what was seen until then.
    pub async fn seen(&self, did: Did) -> Result<Turn, Wrong> {
        let gone = |told: &crate::watch::Told| {
            told.what == "DELETED" && told.object["metadata"]["uid"] == self.uid.as_str()
        };
        let deleted = self.pod.first("is gone", gone).await?.at;
        let mut first = None;
        let again = |write: &&Write| write.life != self.life;
        until(&format!("{} writes again", self.database.pod()), WITHIN, async || {
            first = self.database.writers().0.iter().find(again).cloned();
            Ok(first.is_some())
        })
        .await?;
        let first = first.ok_or("it writes")?;
        let called = |what: &str, node: &str| {
            let calls = self.database.csi_calls().into_iter();
            let mut calls =
                calls.filter(|call| call.at > self.killed && call.what == what && call.node == node);
            calls.next().map(|call| call.at)
        };
        // On a machine that was rebooted it may be attached still.
        let detached = called("detach", self.here.name()).unwrap_or(deleted);
        let attached = called("attach", &first.node).unwrap_or(detached);
        let mut events = self.here.power_events().into_iter();
        let off = events.find(|event| event.what == "off" && event.at > self.killed);
        let off = off.ok_or("it was never off")?.at;
        let not_ready = self.not_ready().await?;
        let done =
            [not_ready, did.asked, off, did.proven, did.settled, deleted, detached, attached, first.at];
        Ok(Turn { killed: self.killed, elsewhere: first.node != self.here.name(), done })
    }

    /// How often a writer wrote that was no longer to.
    pub fn torn(&self) -> usize {
        self.database.writers().overlaps()
    }

    /// Everything as before.
    pub async fn clear(self, ours: &Ours<'_>) -> Result<(), Wrong> {
        ours.give_back(self.here).await?;
        let (cluster, here) = (self.cluster, self.here);
        here.force(true).await?;
        cluster.until_ready(here, true).await?;
        let taint = format!("{OUT_OF_SERVICE}-");
        // Where it is not there kubectl complains.
        let _ = cluster.kubectl(&["taint", "node", here.name(), &taint]).await;
        for (kind, name) in [
            ("statefulset", self.name.clone()),
            ("pod", self.database.pod()),
            ("pvc", format!("data-{}", self.database.pod())),
            ("pv", self.name.clone()),
        ] {
            cluster.kubectl(&["delete", kind, &name, "--ignore-not-found", "--timeout=80s"]).await?;
        }
        until("both machines are as before", WITHIN, async || {
            let taints = "jsonpath={.items[*].spec.taints[*].key}";
            let taints = cluster.kubectl(&["get", "nodes", "-o", taints]).await?;
            let attached = cluster.kubectl(&["get", "volumeattachments", "-o", "name"]).await?;
            Ok(taints.trim().is_empty() && attached.trim().is_empty())
        })
        .await?;
        cluster.takes_pods(here).await?;
        Ok(())
    }
}
