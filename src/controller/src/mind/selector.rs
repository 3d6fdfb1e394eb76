//! Label selectors.

use std::collections::BTreeMap;

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
    /// Whether no labels meet it that lack one. Otherwise a Node without any label is selected, and so may be all of them.
    pub(super) fn needs_a_label(&self) -> bool {
        self.0.iter().any(|one| matches!(one, Requirement::In(..) | Requirement::Exists(_)))
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
}
