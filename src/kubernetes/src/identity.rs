//! Whether a Node of the API is the machine that was switched off (K1).

use std::net::IpAddr;

use picket_core::device::{Identity, IdentityMatch};
use serde::{Deserialize, Serialize};

use crate::machines;
use crate::object::Node;

/// Whom the API had by that name when a fence began, and where. It stands in the gateway's record: what the fence set up stands there, whatever the
/// settings say by then (K3).
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Met {
    node: String,
    uid: String,
    #[serde(rename = "systemUUID")]
    system_uuid: String,
    #[serde(rename = "machineID")]
    machine_id: String,
    /// The Machine of Cluster API that it named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    /// Its providerID; empty: it had none, or a version before this one noted none.
    #[serde(rename = "providerID", default, skip_serializing_if = "String::is_empty")]
    provider_id: String,
    /// The UID of its cluster; empty: a version before this one noted none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    cluster: String,
    /// Its own addresses, where a fence of those may have to be undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<IpAddr>,
}

/// No machine needs more of them.
const ADDRESSES: usize = 8;

/// A field of a Node has no length that the API server bounds, and whoever writes it may write a megabyte. No machine needs more than this.
const LONGEST: usize = 256;

/// The field, or its beginning and how many of its bytes were left out: it stands in the record of each fence, twice, and a record that
/// is too large for the store is never written.
pub(crate) fn bounded(field: &str) -> String {
    let kept = (0..=LONGEST.min(field.len())).rev().find(|at| field.is_char_boundary(*at)).unwrap_or(0);
    match field.len() - kept {
        0 => field.to_owned(),
        left_out => format!("{} and {left_out} bytes more", &field[..kept]),
    }
}

impl Met {
    pub(crate) fn of(node: &Node) -> Self {
        let info = &node.status.node_info;
        Self {
            node: node.metadata.name.clone(),
            uid: node.metadata.uid.clone(),
            system_uuid: bounded(&info.system_uuid),
            machine_id: bounded(&info.machine_id),
            machine: machines::named(&node.metadata),
            provider_id: bounded(&node.spec.provider_id),
            cluster: String::new(),
            addresses: Vec::new(),
        }
    }

    /// The same, with the addresses by which it is reached in its cluster: those that it has now, and no others that its kubelet may write later (K1).
    pub(crate) fn with_addresses_of(self, node: &Node) -> Self {
        let inner = node.status.addresses.iter().filter(|one| one.r#type == "InternalIP");
        let inner = inner.filter_map(|one| one.address.parse::<IpAddr>().ok());
        let is_its =
            |address: &IpAddr| !address.is_loopback() && !address.is_unspecified() && !address.is_multicast();
        let addresses = inner.map(|one| one.to_canonical()).filter(is_its).take(ADDRESSES).collect();
        Self { addresses, ..self }
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.iter().copied()
    }

    /// The same, in the cluster of that UID.
    pub(crate) fn in_cluster(self, uid: &str) -> Self {
        Self { cluster: bounded(uid), ..self }
    }

    /// Why what is asked of the cluster with that UID is not asked where it was met.
    pub(crate) fn is_elsewhere(&self, uid: &str) -> Option<String> {
        let (node, cluster) = (&self.node, &self.cluster);
        (!cluster.is_empty() && cluster != uid).then(|| {
            format!(
                "its Node was {node} of the cluster {cluster} when the fence began, and the settings say the cluster {uid}, which says nothing of what \
                 the fence set up there: start the gateway with this release as it was"
            )
        })
    }

    /// As it stands in the record; `None`: nothing of ours.
    pub(crate) fn read(words: &str) -> Option<Self> {
        serde_json::from_str(words).ok()
    }

    /// The Node's name.
    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    pub(crate) fn uid(&self) -> &str {
        &self.uid
    }

    pub(crate) fn provider_id(&self) -> &str {
        &self.provider_id
    }

    /// The namespace and name of its Machine.
    pub(crate) fn machine(&self) -> Option<&str> {
        self.machine.as_deref()
    }

    pub(crate) fn words(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Why that Node is not the one of then. `made_anew`: one that was made anew for the same machine is another, too.
    pub(crate) fn differs(&self, node: &Node, made_anew: bool) -> Option<String> {
        let now = Self::of(node);
        let said = |what: &str, was: &str, is: &str| {
            let name = &self.node;
            Some(format!("replaced: the {what} of Node {name} was {was} when the fence began, and is {is}"))
        };
        if self.system_uuid != now.system_uuid {
            return said("system UUID", &self.system_uuid, &now.system_uuid);
        }
        if self.machine_id != now.machine_id {
            return said("machine ID", &self.machine_id, &now.machine_id);
        }
        let is_another = made_anew && self.uid != now.uid;
        is_another.then(|| said("UID", &self.uid, &now.uid)).flatten()
    }
}

/// What has to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// The Node's system UUID, or its providerID, with what the node's devices and settings say.
    Identity,
    /// Its name alone.
    Name,
}

/// How a Node is known, in words.
pub(crate) const BY_UUID: &str = "by its system UUID";
pub(crate) const BY_PROVIDER_ID: &str = "by its providerID";

/// Compares them. In words how it is known; `Err`: it is another machine, or nothing says that it is this one. What another one of `all` Nodes
/// says of itself, too, says nothing.
pub(crate) fn is_this(
    node: &Node,
    all: &[Node],
    devices: &[Identity],
    provider_id: Option<&str>,
    matched: Match,
) -> Result<&'static str, String> {
    let name = &node.metadata.name;
    let said = said_by(node);
    let compared: Vec<IdentityMatch> = devices.iter().map(|device| uuid_of(device).compare(&said)).collect();
    if compared.contains(&IdentityMatch::Mismatch) {
        let wanted: Vec<String> = devices.iter().map(Identity::words).collect();
        return Err(format!(
            "Node {name} is another machine: its system UUID is {}, and the node's devices say {}",
            node.status.node_info.system_uuid,
            wanted.join(" and ")
        ));
    }
    let provider = provider_id.filter(|_| !node.spec.provider_id.is_empty());
    if let Some(wanted) = provider.filter(|wanted| **wanted != node.spec.provider_id) {
        let found = &node.spec.provider_id;
        return Err(format!(
            "Node {name} is another machine: its providerID is {found}, and the node's is {wanted}"
        ));
    }
    let mut shared = None;
    if compared.contains(&IdentityMatch::Match) {
        match who_shares_its_uuid(node, all) {
            None => return Ok(BY_UUID),
            other => shared = other.map(|other| (other, "system UUID")),
        }
    }
    if provider.is_some() {
        let same = |other: &Node| other.spec.provider_id == node.spec.provider_id;
        match another(node, all, same) {
            None => return Ok(BY_PROVIDER_ID),
            other => shared = other.map(|other| (other, "providerID")),
        }
    }
    match (matched, shared) {
        (Match::Name, _) => Ok("by its name alone"),
        (Match::Identity, Some((other, what))) => Err(format!(
            "the Nodes {name} and {other} both have one {what}: which of them is the machine is not known"
        )),
        (Match::Identity, None) => Err(format!(
            "nothing says that Node {name} is this machine: its devices and Kubernetes know no UUID in common, and no providerID is \
             set; set `provider_id` of the node, or `match = \"name\"` of the release"
        )),
    }
}

/// What a Node says of its machine.
fn said_by(node: &Node) -> Identity {
    Identity { uuid: Identity::usable_uuid(&node.status.node_info.system_uuid), serial: None }
}

/// The name of another Node that says the same system UUID, in either byte order.
pub(crate) fn who_shares_its_uuid<'n>(node: &Node, all: &'n [Node]) -> Option<&'n str> {
    let said = said_by(node);
    another(node, all, |other| said_by(other).compare(&said) == IdentityMatch::Match)
}

fn another<'n>(node: &Node, all: &'n [Node], same: impl Fn(&Node) -> bool) -> Option<&'n str> {
    let others = all.iter().filter(|other| other.metadata.name != node.metadata.name);
    others.into_iter().find(|other| same(other)).map(|other| other.metadata.name.as_str())
}

/// What Kubernetes knows of a machine besides: a BMC's serial number is another one.
fn uuid_of(device: &Identity) -> Identity {
    Identity { uuid: device.uuid.clone(), serial: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{NodeInfo, NodeSpec, NodeStatus};

    const UUID: &str = "4b554245-2d4e-4f44-452d-303030303031";

    fn node(uuid: &str, provider_id: &str) -> Node {
        let node_info = NodeInfo { system_uuid: uuid.to_owned(), ..NodeInfo::default() };
        Node {
            status: NodeStatus { node_info, ..NodeStatus::default() },
            spec: NodeSpec { provider_id: provider_id.to_owned(), ..NodeSpec::default() },
            ..Node::default()
        }
    }

    fn device(uuid: &str) -> Identity {
        Identity { uuid: Identity::usable_uuid(uuid), serial: Some("SN-1".to_owned()) }
    }

    fn known(node: &Node, devices: &[Identity], provider_id: Option<&str>) -> Option<&'static str> {
        is_this(node, &[], devices, provider_id, Match::Identity).ok()
    }

    /// S16: one kubelet keeps no record from being written.
    #[test]
    fn who_was_met_is_told_in_few_words_whatever_its_kubelet_writes() {
        let mut node = node(UUID, &"p".repeat(300_000));
        node.status.node_info.machine_id = "\"".repeat(200_000);
        let met = Met::of(&node);
        assert!(met.words().len() < 2_048, "{}", met.words().len());
        assert_eq!(met.differs(&node, true), None);
        node.status.node_info.machine_id.push('x');
        assert!(met.differs(&node, true).is_some(), "another one is another one");
        let usual = super::tests::node(UUID, "aws:///eu-central-1a/i-0123456789abcdef0");
        assert_eq!(Met::of(&usual).provider_id(), "aws:///eu-central-1a/i-0123456789abcdef0");
    }

    #[test]
    fn a_uuid_in_either_byte_order_is_a_match() {
        let swapped = "4542554b-4e2d-444f-452d-303030303031";
        for uuid in [UUID, swapped] {
            assert_eq!(known(&node(uuid, ""), &[device(UUID)], None), Some("by its system UUID"), "{uuid}");
        }
    }

    #[test]
    fn a_contradiction_stops_whatever_else_agrees() {
        let other = node("11111111-2222-4333-8444-555555555555", "aws:///a/i-1");
        assert_eq!(known(&other, &[device(UUID)], Some("aws:///a/i-1")), None);
        assert_eq!(known(&node(UUID, "aws:///a/i-2"), &[device(UUID)], Some("aws:///a/i-1")), None);
        let by_name = is_this(&other, &[], &[device(UUID)], None, Match::Name);
        assert!(by_name.expect_err("another machine").contains("another machine"));
    }

    #[test]
    fn who_was_met_is_known_again() {
        let whom = |uid: &str, system: &str, machine: &str| {
            let mut node = node(system, "");
            node.metadata.uid = uid.to_owned();
            node.status.node_info.machine_id = machine.to_owned();
            node
        };
        let met = Met::of(&whom("u", UUID, "m"));
        assert_eq!(Met::read(&met.words()), Some(met.clone()));
        assert_eq!(Met::read("something else"), None);
        assert_eq!(met.differs(&whom("u", UUID, "m"), true), None);
        assert_eq!(met.differs(&whom("v", UUID, "m"), false), None, "made anew for the same machine");
        for (other, made_anew) in
            [(whom("v", UUID, "m"), true), (whom("u", "s", "m"), false), (whom("u", UUID, "n"), false)]
        {
            assert!(met.differs(&other, made_anew).expect("another").starts_with("replaced: "));
        }
    }

    /// A cloned machine, or a board whose vendor gave all of them one UUID.
    #[test]
    fn what_two_nodes_say_of_themselves_says_nothing_of_either() {
        let named = |name: &str, uuid: &str, provider_id: &str| {
            let mut node = node(uuid, provider_id);
            name.clone_into(&mut node.metadata.name);
            node
        };
        let (swapped, aws) = ("4542554b-4e2d-444f-452d-303030303031", "aws:///a/i-1");
        let n1 = named("n1", UUID, aws);
        let known = |other: Node, provider_id: Option<&str>, matched: Match| {
            is_this(&n1, &[n1.clone(), other], &[device(UUID)], provider_id, matched)
        };
        for uuid in [UUID, swapped] {
            let refused = known(named("n2", uuid, ""), None, Match::Identity);
            assert!(
                refused
                    .expect_err("either of them")
                    .starts_with("the Nodes n1 and n2 both have one system UUID")
            );
            assert_eq!(known(named("n2", uuid, ""), None, Match::Name), Ok("by its name alone"));
            assert_eq!(known(named("n2", uuid, ""), Some(aws), Match::Identity), Ok("by its providerID"));
        }
        let refused = known(named("n2", UUID, aws), Some(aws), Match::Identity);
        assert!(refused.expect_err("either of them").contains("both have one providerID"));
        assert_eq!(known(named("n2", "", ""), None, Match::Identity), Ok("by its system UUID"));
        // What contradicts stops it, whoever says the same.
        let stranger = [device("11111111-2222-4333-8444-555555555555")];
        let others = is_this(&n1, &[named("n2", UUID, "")], &stranger, None, Match::Name);
        assert!(others.expect_err("another machine").contains("another machine"));
    }

    #[test]
    fn nothing_known_is_no_match_but_where_a_setting_says_so() {
        for nothing in ["", "00000000-0000-0000-0000-000000000000"] {
            assert_eq!(known(&node(nothing, ""), &[device(UUID)], None), None);
        }
        assert_eq!(known(&node(UUID, ""), &[], None), None);
        assert_eq!(is_this(&node("", ""), &[], &[], None, Match::Name), Ok("by its name alone"));
        assert_eq!(known(&node("", "gce://p/z/n"), &[], Some("gce://p/z/n")), Some("by its providerID"));
    }
}
