//! Which Node of the cluster a gateway's node is: the one of its name, or the one that says of its machine
//! what the settings, or the node's devices, say of theirs.
//!
//! # Invariants
//!
//! - In a fence it is the Node that was met when the fence began. What was set on it is found again by the
//!   note, which names the node: taking it away never depends on what a device or a kubelet says by now
//!   (K1). Shown by `what_a_fence_set_up_is_taken_from_the_node_that_it_met`.
//! - A note alone, which a kubelet may write on its own Node, bars no other node's return. It counts beside
//!   a taint (`Sought::concerns`). Shown by `a_forged_note_bars_no_other_nodes_power_on`.

use std::time::Duration;

use picket_core::device::{Identity, IdentityMatch};
use picket_release::{Machine, Whose};
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::identity::Met;
use crate::note::Ours;
use crate::object::Node;
use crate::{node, taints};

/// A list of all Nodes is good for so long, to find a name: the Node of that name is read for itself.
pub(crate) const FRESH: Duration = Duration::from_secs(10);

/// What the Node of that name says of its machine.
pub(crate) async fn machine_named(cluster: &Cluster, name: &str, until: Instant) -> Result<Machine, Fault> {
    cluster.is_meant(until).await?;
    let node = node::read(cluster, name, until).await?;
    let uuid = Identity::usable_uuid(&node.status.node_info.system_uuid);
    let provider_id = Some(node.spec.provider_id).filter(|id| !id.is_empty());
    Ok(Machine { provider_id, identity: Identity { uuid, serial: None } })
}

/// By what it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FindBy {
    /// Its name is the node's.
    Name,
    /// Its `spec.providerID` is the node's `provider_id`.
    ProviderId,
    /// Its system UUID is that of the node's devices.
    SystemUuid,
}

impl FindBy {
    pub(crate) const WORDS: [&str; 3] = ["name", "provider_id", "system_uuid"];

    pub(crate) fn of_word(word: Option<&str>) -> Self {
        match word {
            Some("provider_id") => Self::ProviderId,
            Some("system_uuid") => Self::SystemUuid,
            _ => Self::Name,
        }
    }
}

/// Of whom a Node is sought.
#[derive(Clone, Debug)]
pub(crate) struct Sought {
    pub(crate) by: FindBy,
    pub(crate) ours: Ours,
    pub(crate) provider_id: Option<String>,
}

impl Sought {
    /// The name of its Node. `met`: who was met when the fence began, as it stands in the record. A Node that is not there is
    /// [`Kind::NotFound`](crate::fault::Kind).
    pub(crate) async fn name(
        &self,
        cluster: &Cluster,
        devices: &[Identity],
        met: Option<&str>,
        until: Instant,
    ) -> Result<String, Fault> {
        if let Some(met) = self.met(met) {
            return Ok(met);
        }
        let nodes = cluster.nodes(FRESH, until).await?;
        let found: Vec<&str> = nodes
            .iter()
            .filter(|node| self.is(node, devices))
            .map(|node| node.metadata.name.as_str())
            .collect();
        match found[..] {
            [one] => Ok(one.to_owned()),
            [] => Err(Fault::not_found(self.nobody(devices))),
            [one, other, ..] => Err(Fault::refused(format!(
                "the Nodes {one} and {other} both have the {}: which of them is the machine is not known",
                self.what(devices)
            ))),
        }
    }

    /// The name of the Node that the record has for it, whatever any list says, and by whatever the settings find it by now; else that which it has by
    /// its own name.
    pub(crate) fn met(&self, met: Option<&str>) -> Option<String> {
        let met = met.and_then(Met::read).map(|met| met.node().to_owned());
        met.or_else(|| (self.by == FindBy::Name).then(|| self.ours.node.clone()))
    }

    /// The names of the Nodes on which something of this node's may be left: its own, and those on which it is noted. By a list that serves others
    /// for a while.
    pub(crate) async fn touched(
        &self,
        cluster: &Cluster,
        whose: &Whose,
        until: Instant,
    ) -> Result<Vec<String>, Fault> {
        self.all(cluster, FRESH, until, |node| self.is_noted(node) || self.is(node, &whose.identities)).await
    }

    /// The names of the Nodes on which this node's taint may let volumes go, as they are now.
    pub(crate) async fn letting_go(
        &self,
        cluster: &Cluster,
        devices: &[Identity],
        until: Instant,
    ) -> Result<Vec<String>, Fault> {
        self.all(cluster, Duration::ZERO, until, |node| self.may_let_go(node, devices)).await
    }

    async fn all(
        &self,
        cluster: &Cluster,
        age: Duration,
        until: Instant,
        which: impl Fn(&Node) -> bool,
    ) -> Result<Vec<String>, Fault> {
        if self.by == FindBy::Name {
            return Ok(vec![self.ours.node.clone()]);
        }
        let nodes = cluster.nodes(age, until).await?;
        Ok(nodes.iter().filter(|node| which(node)).map(|node| node.metadata.name.clone()).collect())
    }

    fn is_noted(&self, node: &Node) -> bool {
        self.ours.note(node).is_some_and(|note| note.node.is_some())
    }

    /// Whether that Node is this node's, or the gateway has tainted it for this node. A note alone does not say so: a kubelet may annotate its own
    /// Node, and an API server lets none change that Node's taints (K1).
    pub(crate) fn concerns(&self, node: &Node, devices: &[Identity]) -> bool {
        self.is_noted(node) && taints::of_a_fence(node) || self.is(node, devices)
    }

    /// A taint of ours of which no note says whose it is may be this node's: somebody took the note away, or it was written before it said so.
    /// Taking that taint away lets nothing go, whose ever it is.
    fn may_let_go(&self, node: &Node, devices: &[Identity]) -> bool {
        self.concerns(node, devices) || taints::stands(node, &self.ours)
    }

    /// Whether that is it.
    pub(crate) fn is(&self, node: &Node, devices: &[Identity]) -> bool {
        match self.by {
            FindBy::Name => node.metadata.name == self.ours.node,
            FindBy::ProviderId => {
                let wanted = self.provider_id.as_deref().filter(|id| !id.is_empty());
                wanted.is_some_and(|id| node.spec.provider_id == id)
            }
            FindBy::SystemUuid => {
                let uuid = Identity::usable_uuid(&node.status.node_info.system_uuid);
                let said = Identity { uuid, serial: None };
                let by_uuid = |device: &Identity| Identity { uuid: device.uuid.clone(), serial: None };
                devices.iter().any(|device| by_uuid(device).compare(&said) == IdentityMatch::Match)
            }
        }
    }

    fn what(&self, devices: &[Identity]) -> String {
        match self.by {
            FindBy::Name => format!("name {}", self.ours.node),
            FindBy::ProviderId => {
                format!("providerID {}", self.provider_id.as_deref().unwrap_or("(none is set)"))
            }
            FindBy::SystemUuid => {
                let known: Vec<&str> = devices.iter().filter_map(|device| device.uuid.as_deref()).collect();
                match known.is_empty() {
                    true => "system UUID of the node's devices, which none of them has told yet".to_owned(),
                    false => format!("system UUID {}", known.join(" or ")),
                }
            }
        }
    }

    fn nobody(&self, devices: &[Identity]) -> String {
        format!("that cluster has no Node with the {}", self.what(devices))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::stores::Stores;
    use crate::taints::OUT_OF_SERVICE;

    const UUID: &str = "4b554245-2d4e-4f44-452d-303030303031";

    fn sought(by: FindBy) -> Sought {
        let ours = Ours { owner: "blue".to_owned(), node: "r1".to_owned(), stores: Stores::default() };
        Sought { by, ours, provider_id: Some("aws:///z/i-1".to_owned()) }
    }

    fn node(name: &str, provider_id: &str, uuid: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": { "providerID": provider_id },
            "status": { "nodeInfo": { "systemUUID": uuid } },
        }))
        .expect("a Node")
    }

    #[test]
    fn a_node_is_found_by_what_is_said_and_by_nothing_that_is_empty() {
        let device = Identity { uuid: Identity::usable_uuid(UUID), serial: None };
        for (by, found) in [
            (FindBy::Name, [true, false, false]),
            (FindBy::ProviderId, [false, true, false]),
            (FindBy::SystemUuid, [false, false, true]),
        ] {
            let nodes = [node("r1", "", ""), node("a", "aws:///z/i-1", ""), node("b", "", UUID)];
            let is = nodes.map(|node| sought(by).is(&node, std::slice::from_ref(&device)));
            assert_eq!(is, found, "{by:?}");
        }
        let nothing = Sought { provider_id: Some(String::new()), ..sought(FindBy::ProviderId) };
        assert!(!nothing.is(&node("a", "", ""), &[]));
        let zero = "00000000-0000-0000-0000-000000000000";
        assert!(
            !sought(FindBy::SystemUuid).is(&node("b", "", zero), &[Identity { uuid: None, serial: None }])
        );
    }

    /// What lets volumes go is never taken for gone because nobody says any more whose it is.
    #[test]
    fn a_taint_of_ours_without_a_note_may_be_anybody_s() {
        let node = |note: Option<serde_json::Value>, taint: &str| -> Node {
            let mut annotations = serde_json::Map::new();
            if let Some(note) = note {
                annotations.insert("picket.dev/fence-blue".to_owned(), json!(note.to_string()));
            }
            let taint = json!({ "key": OUT_OF_SERVICE, "value": taint, "effect": "NoExecute" });
            let taints: Vec<_> = [taint].into_iter().filter(|taint| taint["value"] != "").collect();
            let whole = json!({ "metadata": { "name": "a", "annotations": annotations }, "spec": { "taints": taints } });
            serde_json::from_value(whole).expect("a Node")
        };
        let of = |whose: &str| Some(json!({ "owner": "blue", "node": whose }));
        for (note, taint, may) in [
            (of("r1"), "picket.blue.7", true),
            (of("r1"), "mine", true),
            (of("r1"), "", false),
            (of("r2"), "picket.blue.7", false),
            (None, "picket.blue.7", true),
            (Some(json!({ "owner": "blue" })), "picket.blue.7", true),
            (None, "picket.green.7", false),
            (None, "mine", false),
        ] {
            let sought = sought(FindBy::SystemUuid);
            assert_eq!(sought.may_let_go(&node(note.clone(), taint), &[]), may, "{note:?} {taint}");
        }
    }

    #[test]
    fn words_name_what_was_sought() {
        assert!(sought(FindBy::ProviderId).nobody(&[]).ends_with("no Node with the providerID aws:///z/i-1"));
        assert!(sought(FindBy::SystemUuid).nobody(&[]).contains("none of them has told yet"));
    }
}
