//! What ceph-csi does to the address of a Node whose volumes were let go under the taint `out-of-service`:
//! it blocks that address in Ceph for years.
//!
//! A check tells it. Where a setting says so, the fence of the Node's own addresses is undone once the Node
//! is back, by NetworkFences of csi-addons.
//!
//! # Invariants
//!
//! - The addresses are those that the record noted when the fence began, and which the Node still has (K1).
//!   Shown by `an_address_that_was_not_noted_when_the_fence_began_is_never_named`.
//! - No address is touched that another Node claims, or that a NetworkFence of others names. Shown by
//!   `an_address_that_another_node_has_is_neither_s`, `what_a_network_fence_of_others_names_stays_fenced`.
//! - Nothing waits for any of this. Shown by `what_fails_is_told_and_bars_nothing`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use picket_core::ids::Generation;
use picket_release::{Left, Subject};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cidr;
use crate::cluster::Cluster;
use crate::fault::{Fault, Kind};
use crate::identity::Met;
use crate::machines::Mark;
use crate::node;
use crate::note::Ours;
use crate::object::{CsiDriver, List, Metadata, Node};
use crate::release::{OfNode, OutOfService};
use crate::rights;
use crate::rivals::{self, Groups};
use crate::taints;

const GROUP: &str = "csiaddons.openshift.io";
const ALL: &str = "/apis/csiaddons.openshift.io/v1alpha1/networkfences";
const CLASSES: &str = "/apis/csiaddons.openshift.io/v1alpha1/networkfenceclasses";
/// Our annotation of a NetworkFence: whose it is, and of which fence.
const WHOSE: &str = "picket.dev/network-fence";
/// The ends of the names that ceph-csi's drivers have; Rook and others put their namespace before it.
const DRIVERS: [&str; 2] = ["rbd.csi.ceph.com", "cephfs.csi.ceph.com"];
/// A list is good for so long, where nothing is to be undone.
const FRESH: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NetworkFence {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    network_fence_class_name: String,
    cidrs: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    result: String,
    message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Class {
    metadata: Metadata,
    spec: ClassSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ClassSpec {
    provisioner: String,
}

impl NetworkFence {
    /// Of which of our fences of that node it is; `None`: it is not ours, or another node's.
    fn of(&self, ours: &Ours) -> Option<u64> {
        Mark::of(&self.metadata, WHOSE, ours).map(|mark| mark.generation)
    }

    fn names(&self, address: IpAddr) -> bool {
        self.spec.cidrs.iter().any(|range| cidr::may_hold(range, address))
    }

    /// Its addresses, where it is one of ours: it names one at a time.
    fn addresses(&self) -> Vec<IpAddr> {
        let one = |range: &String| range.split('/').next()?.parse().ok();
        self.spec.cidrs.iter().filter_map(one).collect()
    }
}

fn is_of_ceph(driver: &str) -> bool {
    DRIVERS.iter().any(|end| driver.ends_with(end))
}

/// What the record noted of a node, and what of it is done.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    of: Generation,
    met: Option<Met>,
    /// The NetworkFenceClasses by which it is undone.
    done: BTreeSet<String>,
    told: Option<String>,
}

impl OfNode {
    /// What was noted first in a generation stands; of an earlier one nothing does.
    pub(crate) fn notes(&self, generation: Generation, met: Option<&str>) {
        let met = met.and_then(Met::read).filter(|met| met.addresses().next().is_some());
        let mut noted = self.noted.lock();
        if noted.of < generation {
            *noted = Noted { of: generation, met, ..Noted::default() };
        } else if noted.of == generation && noted.met.is_none() {
            noted.met = met;
        }
    }

    /// Of whom what is to be undone, and which fence it was. Who saw nothing of that goes by the last fence of the history.
    fn to_undo(&self, left: &Left) -> Option<(Generation, Met)> {
        if left.met_last.is_some() && self.noted.lock().of < left.generation {
            self.notes(left.generation, left.met_last.as_deref());
        }
        let noted = self.noted.lock();
        let is_due = left.off && !left.gone && noted.of <= left.generation;
        noted.met.clone().filter(|_| is_due).map(|met| (noted.of, met))
    }
}

impl OutOfService {
    /// Whom the record met stands, else who was met just now.
    pub(crate) fn notes(&self, subject: &Subject, met: Option<&str>) {
        if let Some(of) = &self.of {
            of.notes(subject.generation, subject.met.as_deref().or(met));
        }
    }

    /// Whom the record shall have met.
    pub(crate) fn met(&self, node: &Node) -> Met {
        let met = Met::of(node).in_cluster(self.cluster.uid());
        if self.asked.undoes_network_fences { met.with_addresses_of(node) } else { met }
    }

    /// A fence of that node begins: what would undo one takes effect no more.
    pub(crate) async fn stop_undoing(&self, subject: &Subject, until: Instant) -> Result<(), Fault> {
        if !self.asked.undoes_network_fences {
            return Ok(());
        }
        let ours = &self.of()?.sought.ours;
        self.cluster.is_where(subject.met.as_deref())?;
        self.cluster.is_meant(until).await?;
        for one in all(&self.cluster, until).await?.iter().flatten() {
            if one.of(ours).is_some_and(|generation| generation < subject.generation.0) {
                take_away(&self.cluster, one, until).await?;
            }
        }
        Ok(())
    }

    /// The fence of the own addresses of a Node that is back is undone. `Some`: what that waits for.
    pub(crate) async fn undone(&self, left: &Left, until: Instant) -> Result<Option<String>, Fault> {
        if !self.asked.undoes_network_fences {
            return Ok(None);
        }
        let of = self.of()?;
        let came = self.undone_as_noted(of, left, until).await;
        if let Err(fault) = &came {
            let (words, mut noted) = (fault.to_string(), of.noted.lock());
            if noted.told.as_ref() != Some(&words) {
                tracing::warn!(node = of.sought.ours.node, words, "the fence of its addresses is not undone");
                noted.told = Some(words);
            }
        }
        came
    }

    async fn undone_as_noted(
        &self,
        of: &OfNode,
        left: &Left,
        until: Instant,
    ) -> Result<Option<String>, Fault> {
        let ours = &of.sought.ours;
        let to_undo = of.to_undo(left);
        self.cluster.is_meant(until).await?;
        let all = match &to_undo {
            Some(_) => Arc::new(all(&self.cluster, until).await?),
            // Every node of a cluster asks the same, again and again.
            None => self.cluster.network_fences(FRESH, until).await?,
        };
        let Some(all) = &*all else {
            // Whoever makes them may be on its way there.
            return Ok(to_undo.map(|_| "csi-addons, which serves no NetworkFence".to_owned()));
        };
        let (made, others): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.of(ours).is_some());
        let (mut waits, mut wrong) = (None, None);
        for one in made {
            // What a later fence made is that one's.
            let Some(generation) = one.of(ours).filter(|made| *made <= left.generation.0) else { continue };
            let is_old = to_undo.as_ref().is_some_and(|(of, _)| of.0 != generation);
            let barred = one.addresses().into_iter().find_map(|address| named_by(&others, address));
            let name = &one.metadata.name;
            match one.status.result.as_str() {
                _ if one.metadata.deletion_timestamp.is_some() => {
                    waits = Some(format!("the NetworkFence {name} to be gone"));
                }
                _ if is_old || barred.is_some() => {
                    take_away(&self.cluster, one, until).await?;
                    wrong = wrong.or(barred);
                }
                "Succeeded" => {
                    of.noted.lock().done.insert(one.spec.network_fence_class_name.clone());
                    take_away(&self.cluster, one, until).await?;
                }
                "" => waits = Some(format!("csi-addons to answer to the NetworkFence {name}")),
                // csi-addons tries it again by itself.
                result => {
                    wrong = Some(format!("the NetworkFence {name}: {result}: {}", one.status.message));
                }
            }
        }
        if let Some(why) = wrong {
            return Err(Fault::refused(why));
        }
        match to_undo {
            Some(_) if waits.is_some() => Ok(waits),
            Some((fence, met)) => self.undone_of(of, (fence, &met), left, &others, until).await,
            None => Ok(waits),
        }
    }

    /// Nothing of ours is under way.
    async fn undone_of(
        &self,
        of: &OfNode,
        (fence, met): (Generation, &Met),
        left: &Left,
        others: &[&NetworkFence],
        until: Instant,
    ) -> Result<Option<String>, Fault> {
        let classes: List<Class> = self.cluster.get(CLASSES, until).await?;
        let classes: Vec<Class> =
            classes.items.into_iter().filter(|class| is_of_ceph(&class.spec.provisioner)).collect();
        if classes.is_empty() {
            return Err(Fault::refused(no_class()));
        }
        let done = of.noted.lock().done.clone();
        let due: Vec<&Class> = classes.iter().filter(|class| !done.contains(&class.metadata.name)).collect();
        if due.is_empty() {
            of.noted.lock().met = None;
            return Ok(None);
        }
        let node = match node::read(&self.cluster, met.node(), until).await {
            Err(fault) if fault.is(Kind::NotFound) => {
                of.noted.lock().met = None;
                return Ok(None);
            }
            read => read?,
        };
        if let Some(why) = met.differs(&node, false) {
            of.noted.lock().met = None;
            return Err(Fault::refused(why));
        }
        let name = &node.metadata.name;
        if taints::of_a_fence(&node) {
            return Ok(Some(format!("the taints of a fence to be gone from Node {name}")));
        }
        if let Some(why) = self.is_not_back(of, &node, None, left.generation, until).await {
            return Ok(Some(why));
        }
        // What it says now chooses none that was not noted.
        let has: Vec<IpAddr> = node.addresses().collect();
        let own: Vec<IpAddr> = met.addresses().filter(|address| has.contains(address)).collect();
        if own.is_empty() {
            of.noted.lock().met = None;
            tracing::warn!(node = %name, "it has another address than when its fence began: nothing is undone");
            return Ok(None);
        }
        let nodes = self.cluster.nodes(Duration::ZERO, until).await?;
        for address in &own {
            let has_it = |other: &&Node| {
                other.metadata.name != *name && other.addresses().any(|others| others == *address)
            };
            if let Some(other) = nodes.iter().find(has_it) {
                return Err(Fault::refused(format!(
                    "the Nodes {name} and {} both say {address}: whose it is is not known",
                    other.metadata.name
                )));
            }
            if let Some(why) = named_by(others, *address) {
                return Err(Fault::refused(why));
            }
        }
        for class in due {
            let made = undoing(&of.sought.ours, &node, fence, &class.metadata.name, &own);
            match self.cluster.create::<Value>(ALL, &made, until).await {
                Err(fault) if fault.is(Kind::Conflict) => {}
                made => drop(made?),
            }
        }
        Ok(Some(format!("NetworkFences that undo the fence of Node {name}")))
    }
}

/// Who names that address, and is not ours.
fn named_by(others: &[&NetworkFence], address: IpAddr) -> Option<String> {
    let other = others.iter().find(|one| one.names(address))?;
    Some(format!("the NetworkFence {}, which is not ours, names {address}", other.metadata.name))
}

fn no_class() -> String {
    format!("no NetworkFenceClass has a provisioner of ceph-csi ({}): make one", DRIVERS.join(" or "))
}

/// What undoes the fence of these addresses, by that class. Of a Node that was made anew it has another name.
fn undoing(ours: &Ours, node: &Node, fence: Generation, class: &str, addresses: &[IpAddr]) -> Value {
    let cidrs: Vec<String> = addresses.iter().map(|address| cidr::of_one(*address)).collect();
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "kind": "NetworkFence",
        "metadata": {
            "name": format!("picket-{}-{}-{class}", node.metadata.uid, fence.0),
            "annotations": { WHOSE: Mark::new(ours, fence).words() },
        },
        "spec": { "networkFenceClassName": class, "fenceState": "Unfenced", "cidrs": cidrs },
    })
}

async fn take_away(cluster: &Cluster, one: &NetworkFence, until: Instant) -> Result<(), Fault> {
    if one.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let path = format!("{ALL}/{}", one.metadata.name);
    match cluster.take_away(&path, &one.metadata.uid, until).await {
        Err(fault) if fault.is(Kind::NotFound) => Ok(()),
        taken => taken,
    }
}

/// All of the cluster; `None`: it has no such API.
pub(crate) async fn all(cluster: &Cluster, until: Instant) -> Result<Option<Vec<NetworkFence>>, Fault> {
    if !is_there(cluster, until).await? {
        return Ok(None);
    }
    let all: List<NetworkFence> = cluster.get(ALL, until).await?;
    Ok(Some(all.items))
}

async fn is_there(cluster: &Cluster, until: Instant) -> Result<bool, Fault> {
    Ok(cluster.get::<Groups>(rivals::APIS, until).await?.has(GROUP))
}

/// What is to be said of ceph-csi in that cluster, for a check.
pub(crate) async fn told(cluster: &Cluster, undoes: bool, until: Instant) -> Result<Vec<String>, Fault> {
    let drivers: List<CsiDriver> = cluster.get("/apis/storage.k8s.io/v1/csidrivers", until).await?;
    let drivers = drivers.items.into_iter().map(|driver| driver.metadata.name);
    let drivers: Vec<String> = drivers.filter(|driver| is_of_ceph(driver)).collect();
    if drivers.is_empty() {
        return Ok(Vec::new());
    }
    if !undoes {
        return Ok(vec![format!(
            "the CSI driver {} is ceph-csi's: where it fences, the address of a Node whose volumes are let go under out-of-service stays on \
             Ceph's blocklist for years, and nothing of Ceph mounts there once it is back: `ceph osd blocklist ls` shows it, `ceph osd \
             blocklist range rm ADDRESS/32` undoes it, and so does network_fences = \"undone\" (docs/kubernetes-ceph.md)",
            drivers.join(" and ")
        )]);
    }
    if !is_there(cluster, until).await? {
        return Ok(vec![format!(
            "network_fences = \"undone\" needs the API {GROUP}, which the cluster does not have"
        )]);
    }
    let (lacking, classes) = tokio::join!(
        rights::lacking(cluster, &rights::NETWORK_FENCES, until),
        cluster.get::<List<Class>>(CLASSES, until)
    );
    let lacking = lacking?;
    let of_classes = match classes {
        Ok(classes) => {
            let is_there = classes.items.iter().any(|class| is_of_ceph(&class.spec.provisioner));
            (!is_there).then(no_class)
        }
        // What is lacking says why.
        Err(_) if lacking.is_some() => None,
        Err(fault) => Some(fault.to_string()),
    };
    Ok(lacking.into_iter().chain(of_classes).collect())
}
