//! Label selectors.

use std::collections::BTreeMap;

/// Labels that each kubelet writes on its Node (k8s.io/api/core/v1, `well_known_labels.go`), whatever their values: a cluster of one kind of machine
/// has one value of each.
const OF_EVERY_NODE: [&str; 4] =
    ["kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch"];
/// The same, with another value on each.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// One requirement of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// It has one of these values.
    In(String, Vec<String>),
    /// It has none of these values, or is not there.
    NotIn(String, Vec<String>),
    /// It is there.
    Exists(String),
    /// It is not there.
    DoesNotExist(String),
}

/// All of these requirements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector(pub Vec<Requirement>);

impl Selector {
    /// Whether no labels meet it that lack one, but for those that every Node has. Otherwise all Nodes may be selected.
    pub(super) fn needs_a_label(&self) -> bool {
        self.0.iter().any(|one| match one {
            Requirement::In(key, _) => !OF_EVERY_NODE.contains(&key.as_str()),
            Requirement::Exists(key) => key != HOSTNAME && !OF_EVERY_NODE.contains(&key.as_str()),
            Requirement::NotIn(..) | Requirement::DoesNotExist(_) => false,
        })
    }

    /// Whether labels meet all of them. None are met by all labels.
    pub fn meets(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|one| match one {
            Requirement::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
            Requirement::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
            Requirement::Exists(key) => labels.contains_key(key),
            Requirement::DoesNotExist(key) => !labels.contains_key(key),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_requirements_must_be_met() {
        let labels =
            BTreeMap::from([("role".to_owned(), "worker".to_owned()), ("rack".to_owned(), "r1".to_owned())]);
        let key = |key: &str| key.to_owned();
        let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        for (requirement, met) in [
            (Requirement::In(key("role"), values(&["worker", "other"])), true),
            (Requirement::In(key("role"), values(&["other"])), false),
            (Requirement::In(key("none"), values(&["worker"])), false),
            (Requirement::NotIn(key("role"), values(&["worker"])), false),
            (Requirement::NotIn(key("none"), values(&["worker"])), true),
            (Requirement::Exists(key("rack")), true),
            (Requirement::Exists(key("none")), false),
            (Requirement::DoesNotExist(key("none")), true),
            (Requirement::DoesNotExist(key("rack")), false),
        ] {
            assert_eq!(Selector(vec![requirement.clone()]).meets(&labels), met, "{requirement:?}");
            let both = Selector(vec![Requirement::Exists(key("role")), requirement.clone()]);
            assert_eq!(both.meets(&labels), met, "{requirement:?}");
        }
        assert!(Selector::default().meets(&labels));
    }

    /// By its text alone: which Nodes there are changes nothing about it.
    #[test]
    fn a_label_that_kubelets_write_on_every_node_is_none_that_a_node_must_have() {
        let one = |key: &str| Requirement::In(key.to_owned(), vec!["linux".to_owned()]);
        let needs = |all: Vec<Requirement>| Selector(all).needs_a_label();
        for key in
            ["kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch"]
        {
            assert!(!needs(vec![one(key)]) && !needs(vec![Requirement::Exists(key.to_owned())]), "{key}");
            assert!(needs(vec![one(key), one("role")]), "{key}");
        }
        let hostname = "kubernetes.io/hostname";
        assert!(!needs(vec![Requirement::Exists(hostname.to_owned())]));
        assert!(needs(vec![one(hostname)]), "Nodes that are named are some");
        assert!(needs(vec![Requirement::Exists("role".to_owned())]) && needs(vec![one("kubernetes.io/os2")]));
        assert!(!needs(vec![Requirement::NotIn("role".to_owned(), Vec::new())]));
    }
}
