//! The Machine of Cluster API behind a Node (K8). While the Node is fenced nobody else remediates the
//! Machine.
//!
//! # Invariants
//!
//! - Nothing waits for any of this but a tidying up: the server of the Machines may be away for as long as
//!   it likes.
//! - A Machine that is being deleted ends a breach: whoever takes it away may switch it on. Shown by
//!   `its_machine_is_left_alone_while_it_is_fenced_and_one_that_is_deleted_is_not_fought_over`.

use std::sync::Arc;
use std::time::Duration;

use picket_core::ids::Generation;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::{Cluster, Kept, Patch};
use crate::fault::{Fault, Kind};
use crate::identity::{Met, bounded};
use crate::note::{Ours, pointer};
use crate::object::{List, Metadata};
use crate::rights;
use crate::settings::At;

/// A MachineHealthCheck leaves a Machine alone that has it, whatever its value.
const SKIP: &str = "cluster.x-k8s.io/skip-remediation";
/// By which a Node says which Machine is its.
const NAME: &str = "cluster.x-k8s.io/machine";
const NAMESPACE: &str = "cluster.x-k8s.io/cluster-namespace";
/// Where the API says in which version it is served best.
const GROUP: &str = "/apis/cluster.x-k8s.io";
/// Where they are served, and what the login may not do there, is good for so long.
const KNOWN: Duration = Duration::from_secs(60);
/// A list of all of them is.
const FRESH: Duration = Duration::from_secs(10);
/// So often one is changed that others change, too.
const TRIES: u32 = 3;

/// Where the Machines are.
#[derive(Debug)]
pub(crate) struct Machines {
    cluster: Arc<Cluster>,
    root: Kept<String>,
    all: Kept<Vec<Machine>>,
    lacking: Kept<Option<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Machine {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(rename = "providerID")]
    provider_id: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    node_ref: NodeRef,
}

/// Which Node Cluster API says that a Machine is; since v1beta2 by its name alone.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NodeRef {
    name: String,
    uid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    preferred_version: Version,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    group_version: String,
}

/// What our annotation says.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Mark {
    owner: String,
    /// The gateway's node.
    node: String,
    pub(crate) generation: u64,
    /// The life of the gateway's store. `None`: it was written before this was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store: Option<String>,
}

impl Mark {
    pub(crate) fn new(ours: &Ours, generation: Generation) -> Self {
        let (owner, node, store) = (ours.owner.clone(), ours.node.clone(), ours.stores.now());
        Self { owner, node, generation: generation.0, store }
    }

    /// What an annotation with that key says; `None`: there is none, or it is somebody else's.
    pub(crate) fn of(metadata: &Metadata, key: &str, ours: &Ours) -> Option<Self> {
        let mark: Self = serde_json::from_str(metadata.annotations.get(key)?).ok()?;
        let is_ours = mark.owner == ours.owner && ours.stores.had(mark.store.as_deref());
        (is_ours && mark.node == ours.node).then_some(mark)
    }

    pub(crate) fn words(&self) -> String {
        json!(self).to_string()
    }
}

/// A name in Kubernetes has no more bytes (a DNS subdomain).
const LONGEST: usize = 253;

/// The Machine that a Node names: its namespace and name. What no name can be names none.
pub(crate) fn named(node: &Metadata) -> Option<String> {
    let of = |key: &str| {
        let is_name = |value: &&String| (1..=LONGEST).contains(&value.len());
        node.annotations.get(key).filter(is_name)
    };
    Some(format!("{}/{}", of(NAMESPACE)?, of(NAME)?))
}

impl Machine {
    fn words(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }

    /// Whether Cluster API says that it is that Node's: a kubelet writes what its Node says by itself (K1). A name alone says nothing, since each
    /// cluster may have a Node of that name.
    fn is_of(&self, met: &Met) -> bool {
        let known = &self.status.node_ref;
        let provider_id = bounded(&self.spec.provider_id);
        let pairs = [(known.uid.as_str(), met.uid()), (provider_id.as_str(), met.provider_id())];
        let mut told = pairs.into_iter().filter(|(said, is)| !said.is_empty() && !is.is_empty()).peekable();
        known.name == met.node() && told.peek().is_some() && told.all(|(said, is)| said == is)
    }

    /// Our annotation; `None`: there is none, or it is somebody else's.
    fn mark(&self, ours: &Ours) -> Option<Mark> {
        Mark::of(&self.metadata, SKIP, ours)
    }

    /// The beginning of each patch: it is this one, as it was read.
    fn tests(&self) -> Vec<Value> {
        let (uid, version) = (&self.metadata.uid, &self.metadata.resource_version);
        vec![
            json!({"op": "test", "path": "/metadata/uid", "value": uid}),
            json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}),
        ]
    }

    /// A patch that keeps others away for that fence; `None`: somebody keeps them away already.
    fn sparing(&self, ours: &Ours, generation: Generation) -> Option<Value> {
        let is_there = self.metadata.annotations.contains_key(SKIP);
        if is_there && self.mark(ours).is_none_or(|mark| mark.generation >= generation.0) {
            return None;
        }
        let mark = Mark::new(ours, generation).words();
        let mut patch = self.tests();
        patch.push(match self.metadata.annotations.is_empty() {
            true => json!({"op": "add", "path": "/metadata/annotations", "value": { SKIP: mark }}),
            false => {
                let path = format!("/metadata/annotations/{}", pointer(SKIP));
                json!({"op": "add", "path": path, "value": mark})
            }
        });
        Some(Value::Array(patch))
    }

    /// A patch that takes away what a fence of ours left there; `None`: nothing of ours, or a later fence's.
    fn freeing(&self, ours: &Ours, generation: Generation) -> Option<Value> {
        self.mark(ours).filter(|mark| mark.generation <= generation.0)?;
        let mut patch = self.tests();
        patch.push(json!({"op": "remove", "path": format!("/metadata/annotations/{}", pointer(SKIP))}));
        Some(Value::Array(patch))
    }
}

impl Machines {
    /// What is wrong with the kubeconfig of their own cluster.
    pub(crate) fn remark(&self) -> Option<String> {
        self.cluster.remark()
    }

    /// Those beside the Nodes of that cluster, or those of the management cluster.
    pub(crate) fn at(at: &At, cluster: &Arc<Cluster>) -> Self {
        let cluster = match at {
            At::Here => cluster.clone(),
            At::Elsewhere(login) => Arc::new(Cluster::new(login.clone(), String::new())),
        };
        Self { cluster, root: Kept::new(), all: Kept::new(), lacking: Kept::new() }
    }

    /// Where the API serves them.
    async fn root(&self, until: Instant) -> Result<Arc<String>, Fault> {
        let asked = async {
            match self.cluster.get::<Group>(GROUP, until).await {
                Ok(group) => Ok(format!("/apis/{}", group.preferred_version.group_version)),
                Err(fault) if fault.is(Kind::NotFound) => Err(Fault::refused(
                    "there is no Cluster API where machines says: it knows no cluster.x-k8s.io",
                )),
                Err(fault) => Err(fault),
            }
        };
        self.root.get(KNOWN, until, asked).await
    }

    fn path(root: &str, machine: &str) -> String {
        let (namespace, name) = machine.split_once('/').unwrap_or_default();
        format!("{root}/namespaces/{namespace}/machines/{name}")
    }

    /// The Machine that the Node named which was met, and where it is; `None`: it named none, or that one is gone. A Machine that is another
    /// Node's is refused.
    async fn find(&self, met: &Met, until: Instant) -> Result<Option<(String, Machine)>, Fault> {
        let Some(machine) = met.machine() else { return Ok(None) };
        let path = Self::path(&self.root(until).await?, machine);
        match self.cluster.get::<Machine>(&path, until).await {
            Ok(found) if found.is_of(met) => Ok(Some((path, found))),
            Ok(found) => Err(Fault::refused(format!(
                "the Machine {machine}, which the Node {} names, is not that Node's: its status.nodeRef is {:?}, its providerID {:?}, and it needs \
                 the Node's name, and its UID or providerID; correct the annotations {NAME} and {NAMESPACE} of the Node",
                met.node(),
                found.status.node_ref.name,
                found.spec.provider_id
            ))),
            Err(fault) if fault.is(Kind::NotFound) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Nobody else remediates from now on the Machine of the Node that was met.
    pub(crate) async fn spare(
        &self,
        met: &Met,
        ours: &Ours,
        generation: Generation,
        until: Instant,
    ) -> Result<(), Fault> {
        let mut tries = TRIES;
        loop {
            let Some((path, found)) = self.find(met, until).await? else { return Ok(()) };
            let Some(patch) = found.sparing(ours, generation) else { return Ok(()) };
            tries -= 1;
            match self.cluster.patch::<Machine>(&path, Patch::Json, &patch, until).await {
                Err(fault) if fault.is(Kind::NotFound) => return Ok(()),
                Err(fault) if fault.is_changed() && tries > 0 => {}
                patched => return patched.map(drop),
            }
        }
    }

    /// What our fences left on Machines is taken away. `Some`: what it waits for.
    pub(crate) async fn free(
        &self,
        ours: &Ours,
        generation: Generation,
        until: Instant,
    ) -> Result<Option<String>, Fault> {
        let root = self.root(until).await?;
        let asked = async {
            let all: List<Machine> = self.cluster.get(&format!("{root}/machines"), until).await?;
            Ok(all.items)
        };
        let all = self.all.get(FRESH, until, asked).await?;
        let mut waits = None;
        for machine in all.iter() {
            let Some(patch) = machine.freeing(ours, generation) else { continue };
            let path = Self::path(&root, &machine.words());
            match self.cluster.patch::<Machine>(&path, Patch::Json, &patch, until).await {
                Ok(_) => {}
                Err(fault) if fault.is(Kind::NotFound) => {}
                // As it was in a list that may have served others before: a younger one says how it is.
                Err(fault) if fault.is_changed() => {
                    waits = Some(format!("the Machine {} was changed meanwhile", machine.words()));
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(waits)
    }

    /// Whether the Machine of the Node that was met is being taken away; in words. One that is not there says nothing: the settings may name
    /// another cluster's Machines.
    pub(crate) async fn is_going(&self, met: &Met, until: Instant) -> Result<Option<String>, Fault> {
        let found = self.find(met, until).await?;
        let deleted = found.filter(|(_, found)| found.metadata.deletion_timestamp.is_some());
        Ok(deleted.map(|(_, found)| format!("the Machine {} of Cluster API is being deleted", found.words())))
    }

    /// Whether what a fence of that Node would do there can be done, as far as that can be told; in words what is wrong.
    pub(crate) async fn check(&self, met: &Met, until: Instant) -> Vec<String> {
        let Some(machine) = met.machine() else {
            return vec![format!(
                "machines is set, and the Node names no Machine ({NAME} and {NAMESPACE} in its annotations)"
            )];
        };
        let lacking =
            self.lacking.get(KNOWN, until, rights::lacking(&self.cluster, &rights::MACHINES, until));
        let (lacking, found) = tokio::join!(lacking, self.find(met, until));
        let mut told: Vec<String> = lacking.ok().and_then(|lacking| (*lacking).clone()).into_iter().collect();
        match found {
            Ok(Some(_)) => {}
            Ok(None) => told.push(format!("the Machine {machine}, which the Node names, is not there")),
            Err(fault) => told.push(fault.to_string()),
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use picket_core::ids::Incarnation;
    use picket_core::restore::Lives;
    use picket_core::time::WallTime;

    use super::*;
    use crate::stores::Stores;

    fn ours() -> Ours {
        Ours { owner: "blue".to_owned(), node: "r1".to_owned(), stores: Stores::default() }
    }

    /// It has our owner by mistake, and a node of that name (K7).
    #[test]
    fn what_another_store_marked_is_somebody_else_s() {
        let life = |number| Incarnation::mint(WallTime::default(), [number; 10]);
        let serving = |number| {
            let ours = ours();
            ours.stores.serves(&Arc::new(Lives { now: life(number), before: BTreeSet::new() }));
            ours
        };
        let marked = machine(Some(&Mark::new(&serving(2), Generation(7)).words()));
        let is_ours = |ours: &Ours| marked.freeing(ours, Generation(7)).is_some();
        assert_eq!((is_ours(&serving(2)), is_ours(&serving(1)), is_ours(&ours())), (true, false, true));
        let before = machine(Some(r#"{"owner":"blue","node":"r1","generation":7}"#));
        assert!(
            before.freeing(&serving(1), Generation(7)).is_some(),
            "it was written before marks named one"
        );
    }

    fn machine(skip: Option<&str>) -> Machine {
        let annotations: serde_json::Map<String, Value> =
            skip.into_iter().map(|value| (SKIP.to_owned(), json!(value))).collect();
        let metadata = json!({
            "namespace": "fleet", "name": "m1", "uid": "u", "resourceVersion": "5", "annotations": annotations,
        });
        serde_json::from_value(json!({ "metadata": metadata })).expect("a Machine")
    }

    #[test]
    fn a_node_names_its_machine_by_both_or_not_at_all() {
        let node = |annotations: Value| -> Metadata {
            serde_json::from_value(json!({ "name": "n1", "annotations": annotations })).expect("metadata")
        };
        assert_eq!(named(&node(json!({ NAME: "m1", NAMESPACE: "fleet" }))).as_deref(), Some("fleet/m1"));
        assert_eq!(named(&node(json!({ NAME: "m1" }))), None);
        assert_eq!(named(&node(json!({ NAME: "", NAMESPACE: "fleet" }))), None);
    }

    /// What somebody else set stays as it is; ours is of one fence, and goes with no later one's.
    #[test]
    fn what_is_ours_goes_and_what_is_others_stays() {
        let mark = |node: &str, generation: u64| {
            json!({ "owner": "blue", "node": node, "generation": generation }).to_string()
        };
        let (spares, frees) = (
            |machine: &Machine| machine.sparing(&ours(), Generation(7)).is_some(),
            |machine: &Machine| machine.freeing(&ours(), Generation(7)).is_some(),
        );
        for (skip, spared, freed) in [
            (None, true, false),
            (Some(String::new()), false, false),
            (Some("by hand".to_owned()), false, false),
            (Some(mark("r2", 7)), false, false),
            (Some(mark("r1", 6)), true, true),
            (Some(mark("r1", 7)), false, true),
            (Some(mark("r1", 8)), false, false),
        ] {
            let machine = machine(skip.as_deref());
            assert_eq!((spares(&machine), frees(&machine)), (spared, freed), "{skip:?}");
        }
        let patch = machine(None).sparing(&ours(), Generation(7)).expect("it is set");
        assert_eq!(patch[1], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "5"}));
        assert_eq!(patch[2]["path"], "/metadata/annotations", "it had none");
    }
}
