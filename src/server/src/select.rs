//! Which nodes a caller means.
//!
//! # Invariants
//!
//! - There is no way from a request to a node but `NodeTarget::find` and `NodeSetTarget::members`. Both ask
//!   whether the role holds for that node, and name no node that the caller may not look at. Shown by
//!   `a_role_for_some_nodes_shows_and_touches_no_others`,
//!   `nodes_of_others_are_named_to_nobody_who_did_not_name_them`.

use std::collections::BTreeSet;

use picket_core::device::{Identity, IdentityMatch};
use picket_core::hostlist;
use picket_core::ids::NodeId;
use picket_engine::NodeView;
use picket_proto::v1::{ErrorReason, NodeSelector, NodeSet, node_selector, node_set};

use crate::calls::FencingHandlers;
use crate::convert::node::identities;
use crate::fault::{Fault, Fields};
use crate::natural_order;

/// The longest provider id or other identity, in bytes.
const LONGEST: usize = 1_024;

/// The most names that one host list of a request stands for: a few characters name many, and each is looked up.
const MOST_NAMES: usize = 16_384;

/// One node, as a caller names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeTarget {
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
pub(crate) enum NodeSetTarget {
    /// All of them.
    All,
    /// Those of a host list, in its order.
    Names(Vec<NodeId>),
    /// Those of a group.
    Group(String),
    /// That one.
    One(NodeTarget),
}

impl NodeTarget {
    /// Checks a selector that stands in the request's field `at`.
    pub(crate) fn of(selector: Option<&NodeSelector>, at: &str, fields: &mut Fields) -> Option<Self> {
        let Some(by) = selector.and_then(|selector| selector.by.as_ref()) else {
            fields.wrong(at, "is missing: name the node (name, provider_id, system_uuid or identity)");
            return None;
        };
        let (kind, checked) = match by {
            node_selector::By::Name(name) => {
                ("name", NodeId::new(name).map(NodeTarget::Name).map_err(|error| error.to_string()))
            }
            node_selector::By::ProviderId(id) => ("provider_id", bounded(id).map(NodeTarget::ProviderId)),
            node_selector::By::SystemUuid(text) => ("system_uuid", uuid(text).map(NodeTarget::SystemUuid)),
            node_selector::By::Identity(text) => ("identity", bounded(text).map(NodeTarget::Identity)),
        };
        checked.map_err(|what| fields.wrong(&format!("{at}.{kind}"), what)).ok()
    }

    /// The one node that is meant, if the caller may make the call for it. Of nodes that the caller may not look at none
    /// is named but by the caller: sought by an identity it is not found.
    pub(crate) fn find(&self, handlers: &FencingHandlers) -> Result<NodeId, Fault> {
        let found = match self {
            NodeTarget::Name(name) => known(handlers, name).map(|()| name.clone()),
            NodeTarget::ProviderId(id) => {
                only(handlers, id, |view| view.plan.provider_id.as_ref() == Some(id))
            }
            NodeTarget::SystemUuid(wanted) => {
                let name = wanted.uuid.as_deref().unwrap_or_default();
                let is = |identity: &Identity| wanted.compare(identity) == IdentityMatch::Match;
                only(handlers, name, |view| identities(view).any(is))
            }
            NodeTarget::Identity(text) => {
                let is = |identity: &Identity| identity.serial.as_ref() == Some(text);
                only(handlers, text, |view| identities(view).any(is))
            }
        }?;
        handlers.may(&found).map(|()| found)
    }
}

impl NodeSetTarget {
    /// Checks a set that stands in the request's field `at`; all nodes where it is absent.
    pub(crate) fn of(set: Option<&NodeSet>, at: &str, fields: &mut Fields) -> Option<Self> {
        match set.and_then(|set| set.of.as_ref()) {
            None => Some(NodeSetTarget::All),
            Some(node_set::Of::Group(group)) => {
                let checked = bounded(group).map(NodeSetTarget::Group);
                checked.map_err(|what| fields.wrong(&format!("{at}.group"), what)).ok()
            }
            Some(node_set::Of::Node(selector)) => {
                NodeTarget::of(Some(selector), &format!("{at}.node"), fields).map(NodeSetTarget::One)
            }
            Some(node_set::Of::Hosts(list)) => {
                let names = hostlist::expand_at_most(list, MOST_NAMES).map_err(|error| error.to_string());
                let ids = names.and_then(|names| {
                    names.iter().map(|name| NodeId::new(name).map_err(|error| error.to_string())).collect()
                });
                ids.map(NodeSetTarget::Names).map_err(|what| fields.wrong(&format!("{at}.hosts"), what)).ok()
            }
        }
    }

    /// The nodes that are meant: in the order of the host list, else by name. All, and those of a group, means all for
    /// which the caller may make the call; a name of another is refused.
    pub(crate) fn members(&self, handlers: &FencingHandlers) -> Result<Vec<NodeId>, Fault> {
        let engine = &handlers.engine;
        match self {
            NodeSetTarget::All => {
                let mut all: Vec<NodeId> = engine.names().collect();
                if !handlers.sees_all() {
                    all.retain(|node| handlers.sees(node));
                }
                all.sort_by(|a, b| natural_order::compare(a.as_str(), b.as_str()));
                Ok(all)
            }
            NodeSetTarget::One(node) => Ok(vec![node.find(handlers)?]),
            NodeSetTarget::Group(group) => {
                let mut members: Vec<NodeId> = group_members(handlers, group)?.into_iter().collect();
                if !handlers.sees_all() {
                    members.retain(|node| handlers.sees(node));
                }
                members.sort_by(|a, b| natural_order::compare(a.as_str(), b.as_str()));
                Ok(members)
            }
            NodeSetTarget::Names(names) => {
                let is_node = |name: &NodeId| engine.knows(name);
                // How many are unknown would tell how many of the others there are.
                let shows = |name: &NodeId| handlers.knows_all() || handlers.knows(name);
                refused(names, is_node, shows, |name| engine.near(name)).map_or_else(
                    || names.iter().map(|name| handlers.may(name).map(|()| name.clone())).collect(),
                    Err,
                )
            }
        }
    }
}

/// The nodes of a group.
pub(crate) fn group_members(handlers: &FencingHandlers, group: &str) -> Result<BTreeSet<NodeId>, Fault> {
    let groups = handlers.engine.groups();
    groups.members(group).cloned().ok_or_else(|| {
        let mut near = groups.near(group);
        near.retain(|near| {
            groups.members(near).is_some_and(|nodes| nodes.iter().any(|node| handlers.knows(node)))
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

/// Why a host list is refused that has a name of no node. A list that has one is refused by all names that are not shown.
fn refused(
    names: &[NodeId],
    is_node: impl Fn(&NodeId) -> bool,
    shows: impl Fn(&NodeId) -> bool,
    near: impl Fn(&NodeId) -> Vec<NodeId>,
) -> Option<Fault> {
    if names.iter().all(&is_node) {
        return None;
    }
    let unknown: Vec<&NodeId> = names.iter().filter(|name| !shows(name) || !is_node(name)).collect();
    Some(match unknown.as_slice() {
        // Names like it are sought for a single one: each costs a comparison with all names of the fleet.
        [one] => unlike(one, near(one).into_iter().filter(shows).collect()),
        several => several_not_found(several),
    })
}

fn known(handlers: &FencingHandlers, name: &NodeId) -> Result<(), Fault> {
    if handlers.engine.knows(name) {
        return Ok(());
    }
    Err(unlike(name, handlers.engine.near(name).into_iter().filter(|near| handlers.knows(near)).collect()))
}

fn unlike(name: &NodeId, near: Vec<NodeId>) -> Fault {
    let near: Vec<&str> = near.iter().map(NodeId::as_str).collect();
    let hint = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
    Fault::new(ErrorReason::NodeNotFound, format!("there is no node {:?}{hint}", name.as_str()))
        .resource("node", name.as_str())
        .with_list("near", &near)
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

fn only(handlers: &FencingHandlers, wanted: &str, fits: impl Fn(&NodeView) -> bool) -> Result<NodeId, Fault> {
    let found = handlers.engine.nodes().filter(&fits).map(|view| view.plan.id.clone()).collect();
    one_of(wanted, found, |node| handlers.knows(node)).inspect_err(|fault| {
        if fault.reason() == ErrorReason::NodeNotFound {
            handlers.engine.nodes().filter(&fits).for_each(|view| handlers.conceal(&view.plan.id));
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

    fn check(by: node_selector::By) -> Result<NodeTarget, String> {
        let mut fields = Fields::default();
        let wanted = NodeTarget::of(Some(&NodeSelector { by: Some(by) }), "node", &mut fields);
        fields.done().map_err(|fault| fault.status().message().to_owned())?;
        Ok(wanted.expect("no fault"))
    }

    fn check_set(of: node_set::Of) -> Result<NodeSetTarget, String> {
        let mut fields = Fields::default();
        let wanted = NodeSetTarget::of(Some(&NodeSet { of: Some(of) }), "nodes", &mut fields);
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
        assert_eq!(NodeTarget::of(None, "node", &mut fields), None);
        assert!(fields.done().is_err());
    }

    #[test]
    fn a_host_list_is_expanded_or_its_fault_is_told_with_its_column() {
        let set = check_set(node_set::Of::Hosts("n[1-3]".to_owned())).expect("good");
        assert!(matches!(set, NodeSetTarget::Names(names) if names.len() == 3));
        let message = check_set(node_set::Of::Hosts("n[1-".to_owned())).expect_err("bad");
        assert!(message.starts_with("nodes.hosts: host list, column"), "{message}");
    }

    #[test]
    fn a_host_list_of_a_request_stands_for_a_bounded_number_of_names() {
        assert!(check_set(node_set::Of::Hosts("n[1-16384]".to_owned())).is_ok());
        let message = check_set(node_set::Of::Hosts("n[1-16385]".to_owned())).expect_err("too many");
        assert!(message.contains("more than 16384 names"), "{message}");
    }

    /// Whoever may look at one node asks for any names: a name like each of them would be sought in the whole fleet.
    #[test]
    fn names_like_it_are_sought_for_a_single_unknown_name_alone() {
        let id = |name: &str| NodeId::new(name).expect("a good name");
        let sought = std::cell::Cell::new(0);
        let near = |_: &NodeId| {
            sought.set(sought.get() + 1);
            vec![id("n1"), id("n2")]
        };
        let refused = |names: &[&str]| {
            let names: Vec<NodeId> = names.iter().map(|name| id(name)).collect();
            let fleet = |name: &NodeId| ["n1", "n2"].contains(&name.as_str());
            refused(&names, fleet, |name| name.as_str() != "n2", near).map(|fault| fault.message().to_owned())
        };
        assert_eq!(refused(&["n1", "n2"]), None);
        assert_eq!(refused(&["n1", "n2", "n7"]).as_deref(), Some("there are no nodes n2, n7"));
        assert_eq!(refused(&["n7", "n8", "n9"]).as_deref(), Some("there are no nodes n7, n8, n9"));
        assert_eq!(sought.get(), 0);
        let one = refused(&["n1", "n7"]);
        assert_eq!(one.as_deref(), Some("there is no node \"n7\"; did you mean n1?"));
        assert_eq!(sought.get(), 1);
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
