//! Which nodes a caller means.

use std::collections::BTreeSet;

use picket_core::device::{Identity, IdentityMatch};
use picket_core::hostlist;
use picket_core::ids::NodeId;
use picket_engine::{Engine, EngineError, NodeView};
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

    /// The one node that is meant, if the caller may make the call for it.
    pub(crate) fn find(&self, desk: &Desk) -> Result<NodeId, Fault> {
        let found = self.locate(&desk.engine)?;
        desk.may(&found).map(|()| found)
    }

    fn locate(&self, engine: &Engine) -> Result<NodeId, Fault> {
        match self {
            Wanted::Name(name) => known(engine, name).map(|()| name.clone()),
            Wanted::ProviderId(id) => Err(not_found(
                id,
                "no node has a provider id in this gateway's settings: select it by name or system_uuid",
            )),
            Wanted::SystemUuid(wanted) => {
                let name = wanted.uuid.as_deref().unwrap_or_default();
                only(engine, name, |identity| wanted.compare(identity) == IdentityMatch::Match)
            }
            Wanted::Identity(text) => only(engine, text, |identity| identity.serial.as_ref() == Some(text)),
        }
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
                let mut members: Vec<NodeId> = group_members(engine, group)?.into_iter().collect();
                if !desk.sees_all() {
                    members.retain(|node| desk.sees(node));
                }
                members.sort_by(|a, b| names::compare(a.as_str(), b.as_str()));
                Ok(members)
            }
            WantedSet::Names(names) => {
                let unknown: Vec<&NodeId> =
                    names.iter().filter(|name| known(engine, name).is_err()).collect();
                match unknown.as_slice() {
                    [] => names.iter().map(|name| desk.may(name).map(|()| name.clone())).collect(),
                    [one] => Err(known(engine, one).err().unwrap_or_else(|| not_found(one.as_str(), ""))),
                    several => Err(several_not_found(several)),
                }
            }
        }
    }
}

/// The nodes of a group.
pub(crate) fn group_members(engine: &Engine, group: &str) -> Result<BTreeSet<NodeId>, Fault> {
    let groups = engine.groups();
    groups.members(group).cloned().ok_or_else(|| {
        let near = groups.near(group);
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

fn known(engine: &Engine, name: &NodeId) -> Result<(), Fault> {
    match engine.node(name) {
        Ok(_) => Ok(()),
        Err(EngineError::UnknownNode { name, near }) => {
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

fn only(engine: &Engine, wanted: &str, is: impl Fn(&Identity) -> bool) -> Result<NodeId, Fault> {
    let fits = |view: &NodeView| identities(view).any(&is);
    one_of(wanted, engine.nodes().filter(fits).map(|view| view.plan.id.clone()).collect())
}

fn one_of(wanted: &str, mut found: Vec<NodeId>) -> Result<NodeId, Fault> {
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(not_found(wanted, "no node has that identity in the settings, or told it at a check")),
        many => {
            let names: Vec<&str> = found.iter().map(NodeId::as_str).collect();
            let message = format!("{wanted:?} fits {many} nodes: select one of them by its name");
            Err(Fault::new(ErrorReason::AmbiguousNode, message).with_list("nodes", &names))
        }
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(one_of("s7", nodes(&["n1"])).map_err(Fault::status).expect("one").as_str(), "n1");
        assert_eq!(one_of("s7", nodes(&[])).expect_err("none").status().code(), tonic::Code::NotFound);
        let several = one_of("s7", nodes(&["n1", "n2"])).expect_err("two").status();
        assert_eq!(several.code(), tonic::Code::InvalidArgument);
        assert!(several.message().contains("2 nodes"), "{}", several.message());
    }
}
