//! The kind `kubernetes`: pods, then the taint `out-of-service`, until nothing of the node is attached (K2).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::ground::ReleasePermit;
use picket_core::ids::NodeId;
use picket_core::order::ReleaseOrder;
use picket_reach::{SettingFault, Settings};
use picket_release::{ForNode, Pace, Progress, ReleaseError, Releaser, Subject};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use tokio::time::Instant;

use crate::cluster::{ASKED, Cluster, Patch, SERVED};
use crate::fault::{Fault, Kind};
use crate::object::{Node, Pod};
use crate::pods::Fate;
use crate::settings::Asked;
use crate::taints::{FENCED, Mark, OUT_OF_SERVICE};
use crate::{attachments, identity, node, pods, taints};

/// For so long after the taint is gone the attach-detach controller, pod GC and taint eviction may act on what they have read (K3).
const LINGERS: Duration = Duration::from_secs(30);
/// Between two looks at what is left.
const PACE: Duration = Duration::from_millis(100);
/// One look at what is left takes so long at most, where the API server answers at once.
const POLLED: Duration = Duration::from_millis(1_500);
/// A node that is back is seen ready for so long before new pods may come (K2).
const SOAK: Duration = Duration::from_secs(30);
/// So many are named; the rest is counted.
const NAMED: usize = 8;

/// As the settings have it; of a node once it is bound to that.
#[derive(Debug)]
pub struct OutOfService {
    asked: Arc<Asked>,
    cluster: Arc<Cluster>,
    of: Option<OfNode>,
}

#[derive(Debug)]
struct OfNode {
    name: String,
    provider_id: Option<String>,
    /// Since when it is seen ready, after it was brought back.
    ready_since: Mutex<Option<Instant>>,
    /// What the next attempt goes by.
    read: Mutex<Option<Read>>,
}

/// A Node and its pods, as a quorum had them before the store said its last word.
#[derive(Debug)]
struct Read {
    node: Node,
    pods: Vec<Pod>,
}

impl OutOfService {
    /// Makes it of its table; all faults at once. Sends nothing.
    ///
    /// # Errors
    /// What is wrong in the table, and what would be right.
    pub fn make(settings: &Map<String, Value>) -> Result<Arc<dyn Releaser>, Vec<SettingFault>> {
        let mut settings = Settings::new(settings);
        let asked = Asked::read(&mut settings);
        let asked = settings.finish(asked)?;
        let (kubeconfig, context) = (asked.kubeconfig.clone(), asked.context.clone());
        let cluster = Arc::new(Cluster::new(kubeconfig, context, asked.cluster_uid.clone()));
        Ok(Arc::new(Self { asked: Arc::new(asked), cluster, of: None }))
    }

    fn of(&self) -> Result<&OfNode, Fault> {
        self.of.as_ref().ok_or_else(|| Fault::refused("it is bound to no node"))
    }

    /// Whether it is the machine that was switched off, and nobody else has it out of service: a taint of somebody else's is neither
    /// adopted nor removed (K1, K7).
    fn is_this(&self, of: &OfNode, node: &Node, permit: &ReleasePermit<'_>) -> Result<&'static str, Fault> {
        let (devices, provider_id) = (permit.identities(), of.provider_id.as_deref());
        let by = identity::is_this(node, devices, provider_id, self.asked.matched).map_err(Fault::refused)?;
        if let Some(note) = taints::Note::of(node).filter(|note| note.owner == self.asked.owner) {
            if note.term > permit.term().0 || note.generation > permit.generation().0 {
                return Err(Fault::refused(format!("a later leadership has been at Node {}", of.name)));
            }
            // Nothing boots that is off: a machine has taken that Node for its own.
            if note.generation == permit.generation().0 && note.boot_id != node.status.node_info.boot_id {
                return Err(Fault::refused(format!(
                    "replaced: a machine booted as Node {} since it was fenced",
                    of.name
                )));
            }
        }
        match taints::value(node, OUT_OF_SERVICE).filter(|value| !self.is_ours(value)) {
            None => Ok(by),
            Some(value) => Err(Fault::refused(format!(
                "somebody else's taint {OUT_OF_SERVICE} ({value:?}) stands on Node {}: it is neither ours to use nor to remove",
                of.name
            ))),
        }
    }

    fn is_ours(&self, value: &str) -> bool {
        taints::is_of(&self.asked.owner, value)
    }

    /// Changes the Node as it was read, or not at all.
    async fn change(&self, of: &OfNode, patch: &Value, until: Instant) -> Result<(), ReleaseError> {
        match self.cluster.patch::<Node>(&node::path(&of.name), Patch::Json, patch, until).await {
            Ok(_) => Ok(()),
            Err(fault) if fault.is_changed() => Err(ReleaseError::DidNotHappen(format!(
                "Node {} was changed since it was read: {fault}",
                of.name
            ))),
            Err(fault) => Err(fault.into()),
        }
    }

    /// What is left of the node, and what of it is no reason to wait.
    async fn left(&self, node: &Node, until: Instant) -> Result<Left, Fault> {
        let name = &node.metadata.name;
        let (pods, volumes) =
            tokio::join!(pods::of(&self.cluster, name, until), attachments::of(&self.cluster, name, until));
        let mut left = Left { pods: Vec::new(), volumes: volumes?, ignored: Vec::new() };
        let now = OffsetDateTime::now_utc();
        for pod in pods? {
            match pods::fate(&pod, node, now) {
                Fate::Stays(why) => left.ignored.push(format!("{} ({why})", pods::words(&pod))),
                Fate::Goes | Fate::Evicted => left.pods.push(pods::words(&pod)),
            }
        }
        Ok(left)
    }
}

/// What of a node is in the API still.
struct Left {
    pods: Vec<String>,
    volumes: Vec<String>,
    ignored: Vec<String>,
}

/// The first of them, and how many more.
fn named(all: &[String]) -> String {
    match all.len().checked_sub(NAMED).filter(|more| *more > 0) {
        None => all.join(", "),
        Some(more) => format!("{} and {more} more", all[..NAMED].join(", ")),
    }
}

#[async_trait]
impl Releaser for OutOfService {
    fn max_in_flight(&self) -> Option<Duration> {
        // It is given up after its own time, and the API server works on it no longer than its parameter says (K6).
        Some(ASKED + SERVED)
    }

    fn lingers(&self) -> Option<Duration> {
        Some(LINGERS)
    }

    fn pace(&self) -> Pace {
        self.asked.pace
    }

    fn of_node(&self, node: &ForNode<'_>) -> Result<Option<Arc<dyn Releaser>>, String> {
        let of = OfNode {
            name: node.id.to_string(),
            provider_id: node.provider_id.map(str::to_owned),
            ready_since: Mutex::default(),
            read: Mutex::default(),
        };
        Ok(Some(Arc::new(Self { asked: self.asked.clone(), cluster: self.cluster.clone(), of: Some(of) })))
    }

    async fn attempt(
        &self,
        _order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        until: Instant,
    ) -> Result<Progress, ReleaseError> {
        let of = self.of()?;
        *of.ready_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let read = of.read.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Read { node, pods } = read.ok_or_else(|| Fault::refused("nothing was read for it"))?;
        let by = self.is_this(of, &node, permit)?;
        let mark = Mark::of(&self.asked.owner, permit);
        permit.may_send().map_err(Fault::refused)?;
        let now = OffsetDateTime::now_utc();
        let is = |pod: &Pod, wanted: Fate| pods::fate(pod, &node, now) == wanted;
        let goes: Vec<&Pod> = pods.iter().filter(|pod| is(pod, Fate::Goes)).collect();
        let evicted = pods.iter().filter(|pod| is(pod, Fate::Evicted));
        let evicted: Vec<String> = evicted.map(pods::words).collect();
        if goes.is_empty() && evicted.is_empty() {
            // Nobody is left whom others would delete by a name.
            let both = [(FENCED, "NoSchedule"), (OUT_OF_SERVICE, "NoExecute")];
            self.change(of, &taints::setting(&node, &both, &mark), until).await?;
            return Ok(Progress::Accepted(format!("Node {} (known {by}) is out of service", of.name)));
        }
        // The first change names the version that was read before the store's last word: who stood still since then ends here.
        self.change(of, &taints::setting(&node, &[(FENCED, "NoSchedule")], &mark), until).await?;
        if goes.is_empty() {
            return Err(ReleaseError::DidNotHappen(format!("left to taint eviction: {}", named(&evicted))));
        }
        let held = goes.iter().all(|pod| pods::is_held(pod));
        let deleted = pods::delete(&self.cluster, &goes, permit, until).await?;
        let words: Vec<String> = goes.iter().map(|pod| pods::words(pod)).collect();
        if held || deleted == 0 {
            return Err(ReleaseError::DidNotHappen(format!("not gone yet: {}", named(&words))));
        }
        Ok(Progress::NotThere(format!("{deleted} pods deleted: {}", named(&words))))
    }

    async fn prepare(&self, until: Instant) -> Result<(), String> {
        let of = self.of().map_err(|fault| fault.to_string())?;
        let (meant, node, pods) = tokio::join!(
            self.cluster.is_meant(until),
            node::read(&self.cluster, &of.name, until),
            pods::of(&self.cluster, &of.name, until)
        );
        let read = meant.and_then(|()| Ok(Read { node: node?, pods: pods? }));
        let read = read.map_err(|fault| fault.to_string())?;
        *of.read.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
        Ok(())
    }

    async fn observe(&self, subject: &Subject, until: Instant) -> Result<Progress, ReleaseError> {
        let of = self.of()?;
        // Between two looks at power: what stands may have to go.
        let polled_until = until.min(Instant::now() + POLLED);
        self.cluster.is_meant(until).await.map_err(Fault::of_a_look)?;
        loop {
            let node = node::read(&self.cluster, &of.name, until).await.map_err(Fault::of_a_look)?;
            if !taints::value(&node, OUT_OF_SERVICE).is_some_and(|value| self.is_ours(value)) {
                return Ok(Progress::NotThere(format!("our taint is not on Node {}", of.name)));
            }
            // Nothing boots that is off: a machine has taken that Node for its own (K1).
            let note = taints::Note::of(&node).filter(|note| note.generation == subject.generation.0);
            if note.is_some_and(|note| note.boot_id != node.status.node_info.boot_id) {
                let gone =
                    taints::remove(&self.cluster, &of.name, OUT_OF_SERVICE, &self.asked.owner, true, until);
                gone.await.map_err(Fault::of_a_look)?;
                return Ok(Progress::NotThere(format!("a machine booted as Node {} meanwhile", of.name)));
            }
            let left = self.left(&node, until).await.map_err(Fault::of_a_look)?;
            if left.pods.is_empty() && left.volumes.is_empty() {
                let ignored = match left.ignored.is_empty() {
                    true => String::new(),
                    false => format!("; no reason to wait: {}", named(&left.ignored)),
                };
                return Ok(Progress::Complete(format!(
                    "no pod and no attachment of Node {} is left{ignored}",
                    of.name
                )));
            }
            if Instant::now() + PACE >= polled_until {
                let words: Vec<String> = left.volumes.into_iter().chain(left.pods).collect();
                return Ok(Progress::Accepted(format!("left: {}", named(&words))));
            }
            tokio::time::sleep(PACE).await;
        }
    }

    async fn withdraw(&self, _node: &NodeId, until: Instant) -> Result<(), ReleaseError> {
        let of = self.of()?;
        let owner = &self.asked.owner;
        self.cluster.is_meant(until).await?;
        Ok(taints::remove(&self.cluster, &of.name, OUT_OF_SERVICE, owner, true, until).await?)
    }

    async fn tidy(&self, _node: &NodeId, until: Instant) -> Result<Option<String>, ReleaseError> {
        let of = self.of()?;
        self.cluster.is_meant(until).await?;
        let node = match node::read(&self.cluster, &of.name, until).await {
            Err(fault) if fault.is(Kind::NotFound) => return Ok(None),
            read => read?,
        };
        let owner = &self.asked.owner;
        let is_ours = |key| taints::value(&node, key).is_some_and(|value| self.is_ours(value));
        if is_ours(OUT_OF_SERVICE) {
            taints::remove(&self.cluster, &of.name, OUT_OF_SERVICE, owner, true, until).await?;
            return Ok(Some("a taint that was removed just now".to_owned()));
        }
        if !is_ours(FENCED) {
            if let Some(patch) = taints::forgetting(&node, owner) {
                let _: Node = self.cluster.patch(&node::path(&of.name), Patch::Json, &patch, until).await?;
            }
            return Ok(None);
        }
        let is_back = node::is_ready(&node)
            && taints::Note::of(&node).is_none_or(|note| note.boot_id != node.status.node_info.boot_id);
        let since = {
            let mut since = of.ready_since.lock().unwrap_or_else(PoisonError::into_inner);
            if !is_back {
                *since = None;
                return Ok(Some(format!("Node {} to be ready, after another boot", of.name)));
            }
            *since.get_or_insert_with(Instant::now)
        };
        if since.elapsed() < SOAK {
            return Ok(Some(format!("Node {} to be ready for {SOAK:?}", of.name)));
        }
        taints::remove(&self.cluster, &of.name, FENCED, owner, false, until).await?;
        Ok(None)
    }
}
