//! Groups of nodes: each label of a node is one (`rack=r1`), and the settings name others (`[groups]`).
//!
//! # Invariants
//!
//! - Only the group of a label has `=` in its name, so that the two kinds are never taken for each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::NodeId;
use crate::near::near;

/// The name of a label's group: `rack=r1`.
pub fn label(key: &str, value: &str) -> String {
    format!("{key}={value}")
}

/// All groups of a fleet, with their nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    members: BTreeMap<String, BTreeSet<NodeId>>,
}

impl Groups {
    /// The groups that these nodes say they are in.
    pub fn of_nodes<'a>(nodes: impl IntoIterator<Item = (&'a NodeId, &'a BTreeSet<String>)>) -> Self {
        let mut groups = Self::default();
        for (node, names) in nodes {
            for name in names {
                groups.put(name, node.clone());
            }
        }
        groups
    }

    /// Puts a node into a group, which is there from then on.
    pub fn put(&mut self, group: &str, node: NodeId) {
        match self.members.get_mut(group) {
            Some(nodes) => drop(nodes.insert(node)),
            None => drop(self.members.insert(group.to_owned(), BTreeSet::from([node]))),
        }
    }

    /// The nodes of a group; `None`: there is no such group.
    pub fn members(&self, group: &str) -> Option<&BTreeSet<NodeId>> {
        self.members.get(group)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &BTreeSet<NodeId>)> {
        self.members.iter().map(|(name, nodes)| (name.as_str(), nodes))
    }

    /// The names of the groups in which each node is.
    pub fn by_node(&self) -> BTreeMap<NodeId, BTreeSet<String>> {
        let mut nodes: BTreeMap<NodeId, BTreeSet<String>> = BTreeMap::new();
        for (group, members) in &self.members {
            for node in members {
                nodes.entry(node.clone()).or_default().insert(group.clone());
            }
        }
        nodes
    }

    /// Names like that of a group that is not there, best first.
    pub fn near(&self, name: &str) -> Vec<&str> {
        near(name, self.members.keys().map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeId {
        NodeId::new(name).expect("a good name")
    }

    #[test]
    fn groups_and_nodes_know_one_another() {
        let mut groups = Groups::default();
        groups.put(&label("rack", "r1"), node("n1"));
        groups.put("rack=r1", node("n2"));
        groups.put("db", node("n2"));
        assert_eq!(groups.members("rack=r1").map(BTreeSet::len), Some(2));
        assert_eq!(groups.members("rack=r2"), None);
        let by_node = groups.by_node();
        assert_eq!(by_node[&node("n2")].iter().collect::<Vec<_>>(), ["db", "rack=r1"]);
        assert_eq!(Groups::of_nodes(&by_node), groups);
        assert_eq!(groups.near("rack=r2"), ["rack=r1"]);
    }
}
