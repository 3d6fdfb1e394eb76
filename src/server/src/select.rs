//! Which nodes a caller means.

use std::collections::BTreeSet;

use picket_core::device::{Identity, IdentityMatch};
use picket_core::hostlist;
use picket_core::ids::NodeId;
use picket_engine::{EngineError, NodeView};
use picket_proto::v1::{ErrorReason, NodeSelector, NodeSet, node_selector, node_set};

use crate::calls::Desk;
use crate::convert::node::identities;
use crate::fault::{Fault, Fields};
use crate::names;

/// The longest provider id or other identity, in bytes.
const LONGEST: usize = 1_024;

/// One node, as a caller names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// By its name in the settings.
    Name(NodeId),
    /// By its `spec.providerID` in Kubernetes.
    ProviderId(String),
    /// By its system UUID.
    SystemUuid(Identity),
    /// By any other identity.
    Identity(String),
}

/// Some nodes, as a caller names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WantedSet {
    /// All of them.
    All,
    /// Those of a host list, in its order.
    Names(Vec<NodeId>),
    /// Those of a group.
    Group(String),
    /// That one.
    One(Wanted),
}

impl Wanted {
    /// Checks a selector that stands in the request's field `at`.
    pub(crate) fn of(selector: Option<&NodeSelector>, at: &str, fields: &mut Fields) -> Option<Self> {
        let Some(by) = selector.and_then(|selector| selector.by.as_ref()) else {
            fields.wrong(at, "is missing: name the node (name, provider_id, system_uuid or identity)");
            return None;
        };
        let (kind, checked) = match by {
            node_selector::By::Name(name) => {
                ("name", NodeId::new(name).map(Wanted::Name).map_err(|error| error.to_string()))
            }
            node_selector::By::ProviderId(id) => ("provider_id", bounded(id).map(Wanted::ProviderId)),
            node_selector::By::SystemUuid(text) => ("system_uuid", uuid(text).map(Wanted::SystemUuid)),
            node_selector::By::Identity(text) => ("identity", bounded(text).map(Wanted::Identity)),
        };
        checked.map_err(|what| fields.wrong(&format!("{at}.{kind}"), what)).ok()
    }

    /// The one node that is meant, if the caller may make the call for it. Of nodes that the caller may not look at none
    /// is named but by the caller: sought by an identity it is not found.
    pub(crate) fn find(&self, desk: &Desk) -> Result<NodeId, Fault> {
        let found = match self {
            Wanted::Name(name) => known(desk, name).map(|()| name.clone()),
            Wanted::ProviderId(id) => only(desk, id, |view| view.plan.provider_id.as_ref() == Some(id)),
            Wanted::SystemUuid(wanted) => {
                let name = wanted.uuid.as_deref().unwrap_or_default();
                let is = |identity: &Identity| wanted.compare(identity) == IdentityMatch::Match;
                only(desk, name, |view| identities(view).any(is))
            }
            Wanted::Identity(text) => {
                let is = |identity: &Identity| identity.serial.as_ref() == Some(text);
                only(desk, text, |view| identities(view).any(is))
            }
        }?;
        desk.may(&found).map(|()| found)
    }
}

impl WantedSet {
    /// Checks a set that stands in the request's field `at`; all nodes where it is absent.
    pub(crate) fn of(set: Option<&NodeSet>, at: &str, fields: &mut Fields) -> Option<Self> {
        match set.and_then(|set| set.of.as_ref()) {
            None => Some(WantedSet::All),
            Some(node_set::Of::Group(group)) => {
                let checked = bounded(group).map(WantedSet::Group);
                checked.map_err(|what| fields.wrong(&format!("{at}.group"), what)).ok()
            }
            Some(node_set::Of::Node(selector)) => {
                Wanted::of(Some(selector), &format!("{at}.node"), fields).map(WantedSet::One)
            }
            Some(node_set::Of::Hosts(list)) => {
                let names = hostlist::expand(list).map_err(|error| error.to_string());
                let ids = names.and_then(|names| {
                    names.iter().map(|name| NodeId::new(name).map_err(|error| error.to_string())).collect()
                });
                ids.map(WantedSet::Names).map_err(|what| fields.wrong(&format!("{at}.hosts"), what)).ok()
            }
        }
    }

    /// The nodes that are meant: in the order of the host list, else by name. All, and those of a group, means all for
    /// which the caller may make the call; a name of another is refused.
    pub(crate) fn members(&self, desk: &Desk) -> Result<Vec<NodeId>, Fault> {
        let engine = &desk.engine;
        match self {
            WantedSet::All => {
                let mut all: Vec<NodeId> = engine.names().collect();
                if !desk.sees_all() {
                    all.retain(|node| desk.sees(node));
                }
                all.sort_by(|a, b| names::compare(a.as_str(), b.as_str()));
                Ok(all)
            }
            WantedSet::One(node) => Ok(vec![node.find(desk)?]),
            WantedSet::Group(group) => {
                let mut members: Vec<NodeId> = group_members(desk, group)?.into_iter().collect();
                if !desk.sees_all() {
                    members.retain(|node| desk.sees(node));
                }
                members.sort_by(|a, b| names::compare(a.as_str(), b.as_str()));
                Ok(members)
            }
            WantedSet::Names(names) => {
                let mut unknown: Vec<&NodeId> =
                    names.iter().filter(|name| known(desk, name).is_err()).collect();
                if !unknown.is_empty() && !desk.knows_all() {
                    // How many are unknown would tell how many of the others there are.
                    unknown =
                        names.iter().filter(|name| !desk.knows(name) || known(desk, name).is_err()).collect();
                }
                match unknown.as_slice() {
                    [] => names.iter().map(|name| desk.may(name).map(|()| name.clone())).collect(),
                    [one] => Err(known(desk, one).err().unwrap_or_else(|| not_found(one.as_str(), ""))),
                    several => Err(several_not_found(several)),
                }
            }
        }
    }
}

/// The nodes of a group.
pub(crate) fn group_members(desk: &Desk, group: &str) -> Result<BTreeSet<NodeId>, Fault> {
    let groups = desk.engine.groups();
    groups.members(group).cloned().ok_or_else(|| {
        let mut near = groups.near(group);
        near.retain(|near| {
            groups.members(near).is_some_and(|nodes| nodes.iter().any(|node| desk.knows(node)))
        });
        let hint = if near.is_empty() {
            ": a label of a node is a group (rack=r1), and so is each [groups.NAME] of the settings"
                .to_owned()
        } else {
            format!("; did you mean {}?", near.join(", "))
        };
        Fault::new(ErrorReason::GroupNotFound, format!("there is no group {group:?}{hint}"))
            .resource("group", group)
            .with_list("near", &near)
    })
}

fn bounded(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("is empty".to_owned()),
        1..=LONGEST => Ok(text.to_owned()),
        length => Err(format!("has {length} bytes: at most {LONGEST}")),
    }
}

fn uuid(text: &str) -> Result<Identity, String> {
    match Identity::usable_uuid(text) {
        Some(uuid) => Ok(Identity { uuid: Some(uuid), serial: None }),
        None => Err("is no UUID that identifies a machine: 32 hexadecimal digits, not all 0 or f".to_owned()),
    }
}

fn known(desk: &Desk, name: &NodeId) -> Result<(), Fault> {
    match desk.engine.node(name) {
        Ok(_) => Ok(()),
        Err(EngineError::UnknownNode { name, mut near }) => {
            near.retain(|near| NodeId::new(near).is_ok_and(|near| desk.knows(&near)));
            let error = EngineError::UnknownNode { name: name.clone(), near: near.clone() }.to_string();
            Err(Fault::new(ErrorReason::NodeNotFound, error).resource("node", &name).with_list("near", &near))
        }
        Err(error) => Err(not_found(name.as_str(), &error.to_string())),
    }
}

fn not_found(name: &str, hint: &str) -> Fault {
    let hint = if hint.is_empty() { String::new() } else { format!(": {hint}") };
    Fault::new(ErrorReason::NodeNotFound, format!("there is no node {name:?}{hint}")).resource("node", name)
}

fn several_not_found(names: &[&NodeId]) -> Fault {
    const SHOWN: usize = 8;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(|name| name.as_str()).collect();
    let more = names.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let fault =
        Fault::new(ErrorReason::NodeNotFound, format!("there are no nodes {}{more}", shown.join(", ")));
    shown.into_iter().fold(fault, |fault, name| fault.resource("node", name))
}

fn only(desk: &Desk, wanted: &str, fits: impl Fn(&NodeView) -> bool) -> Result<NodeId, Fault> {
    let found = desk.engine.nodes().filter(&fits).map(|view| view.plan.id.clone()).collect();
    one_of(wanted, found, |node| desk.knows(node)).inspect_err(|fault| {
        if fault.reason() == ErrorReason::NodeNotFound {
            desk.engine.nodes().filter(&fits).for_each(|view| desk.conceal(&view.plan.id));
        }
    })
}

/// The only one of those that fit. One that the caller may not know of makes it ambiguous all the same: another machine
/// than the one that was meant must never be shot.
fn one_of(wanted: &str, found: Vec<NodeId>, knows: impl Fn(&NodeId) -> bool) -> Result<NodeId, Fault> {
    let is_one = found.len() == 1;
    let mut shown: Vec<NodeId> = found.into_iter().filter(knows).collect();
    if shown.is_empty() {
        return Err(not_found(wanted, "no node has that identity in the settings, or told it at a check"));
    }
    if is_one {
        return Ok(shown.remove(0));
    }
    let names: Vec<&str> = shown.iter().map(NodeId::as_str).collect();
    let message = format!("{wanted:?} fits several nodes: select one of them by its name");
    Err(Fault::new(ErrorReason::AmbiguousNode, message).with_list("nodes", &names))
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt;

    use super::*;

    fn check(by: node_selector::By) -> Result<Wanted, String> {
        let mut fields = Fields::default();
        let wanted = Wanted::of(Some(&NodeSelector { by: Some(by) }), "node", &mut fields);
        fields.done().map_err(|fault| fault.status().message().to_owned())?;
        Ok(wanted.expect("no fault"))
    }

    fn check_set(of: node_set::Of) -> Result<WantedSet, String> {
        let mut fields = Fields::default();
        let wanted = WantedSet::of(Some(&NodeSet { of: Some(of) }), "nodes", &mut fields);
        fields.done().map_err(|fault| fault.status().message().to_owned())?;
        Ok(wanted.expect("no fault"))
    }

    #[test]
    fn each_kind_of_selector_is_checked() {
        assert!(check(node_selector::By::Name("n1".to_owned())).is_ok());
        assert!(
            check(node_selector::By::SystemUuid("00112233-4455-6677-8899-AABBCCDDEEFF".to_owned())).is_ok()
        );
        assert!(check(node_selector::By::ProviderId("aws:///eu/i-1".to_owned())).is_ok());
        for (by, field) in [
            (node_selector::By::Name("n 1".to_owned()), "node.name"),
            (node_selector::By::SystemUuid("0000".to_owned()), "node.system_uuid"),
            (node_selector::By::ProviderId(String::new()), "node.provider_id"),
            (node_selector::By::Identity("x".repeat(2_000)), "node.identity"),
        ] {
            let message = check(by).expect_err(field);
            assert!(message.starts_with(field), "{message}");
        }
    }

    #[test]
    fn no_selector_is_a_fault() {
        let mut fields = Fields::default();
        assert_eq!(Wanted::of(None, "node", &mut fields), None);
        assert!(fields.done().is_err());
    }

    #[test]
    fn a_host_list_is_expanded_or_its_fault_is_told_with_its_column() {
        let set = check_set(node_set::Of::Hosts("n[1-3]".to_owned())).expect("good");
        assert!(matches!(set, WantedSet::Names(names) if names.len() == 3));
        let message = check_set(node_set::Of::Hosts("n[1-".to_owned())).expect_err("bad");
        assert!(message.starts_with("nodes.hosts: host list, column"), "{message}");
    }

    #[test]
    fn what_fits_several_nodes_fits_none() {
        let nodes =
            |names: &[&str]| names.iter().map(|name| NodeId::new(name).expect("a good name")).collect();
        let one_of = |names: &[&str], hidden: &str| {
            one_of("s7", nodes(names), |node| node.as_str() != hidden).map_err(Fault::status)
        };
        assert_eq!(one_of(&["n1"], "").expect("one").as_str(), "n1");
        for (names, hidden) in [(&[][..], ""), (&["n1"][..], "n1")] {
            assert_eq!(one_of(names, hidden).expect_err("none").code(), tonic::Code::NotFound, "{names:?}");
        }
        for hidden in ["", "n2"] {
            let several = one_of(&["n1", "n2"], hidden).expect_err("two");
            assert_eq!(several.code(), tonic::Code::InvalidArgument);
            assert!(several.message().contains("several nodes"), "{}", several.message());
            let details = several.get_error_details();
            let shown = &details.error_info().expect("an info").metadata["nodes"];
            assert_eq!(shown, if hidden.is_empty() { "n1,n2" } else { "n1" });
        }
    }
}
