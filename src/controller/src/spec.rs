//! A `FencingPolicy` as the API server has it, read into what the decider takes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;

use crate::decider::{AfterFence, Grade, Policy, Requirement, Selector, Unhealthy};
use crate::object::SeenPolicy;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    node_selector: Labels,
    #[serde(default)]
    every_node: bool,
    #[serde(default)]
    control_plane_nodes: BTreeSet<String>,
    unhealthy_conditions: Vec<Condition>,
    quiet_seconds: u64,
    then: AfterFenceWord,
    minimum_grade: GradeWord,
    deadline_seconds: Option<u64>,
    #[serde(default)]
    exclude: Exclude,
    exclude_cordoned: bool,
    exclude_rebooting: bool,
    #[serde(default)]
    paused: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Labels {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<Expression>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expression {
    key: String,
    operator: Operator,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Deserialize)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    for_seconds: u64,
}

#[derive(Clone, Copy, Deserialize)]
pub(crate) enum AfterFenceWord {
    StayOff,
    PowerOn,
}

#[derive(Clone, Copy, Deserialize)]
pub(crate) enum GradeWord {
    Claimed,
    Learned,
    Hypervisor,
    Observed,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Exclude {
    #[serde(default)]
    names: BTreeSet<String>,
    node_selector: Option<Labels>,
}

impl From<AfterFenceWord> for AfterFence {
    fn from(word: AfterFenceWord) -> Self {
        match word {
            AfterFenceWord::StayOff => Self::StayOff,
            AfterFenceWord::PowerOn => Self::PowerOn,
        }
    }
}

impl From<GradeWord> for Grade {
    fn from(word: GradeWord) -> Self {
        match word {
            GradeWord::Claimed => Self::Claimed,
            GradeWord::Learned => Self::Learned,
            GradeWord::Hypervisor => Self::Hypervisor,
            GradeWord::Observed => Self::Observed,
        }
    }
}

impl From<Labels> for Selector {
    fn from(labels: Labels) -> Self {
        let equal = labels.match_labels.into_iter().map(|(key, value)| Requirement::In(key, vec![value]));
        let met = labels.match_expressions.into_iter().map(|one| match one.operator {
            Operator::In => Requirement::In(one.key, one.values),
            Operator::NotIn => Requirement::NotIn(one.key, one.values),
            Operator::Exists => Requirement::Exists(one.key),
            Operator::DoesNotExist => Requirement::DoesNotExist(one.key),
        });
        Self(equal.chain(met).collect())
    }
}

/// Reads a policy.
///
/// # Errors
/// The policy was stored under another version of its definition, and this controller does not understand it. No Node is fenced by that policy.
pub fn of(seen: &SeenPolicy) -> Result<Policy, serde_json::Error> {
    let name = seen.metadata.name.as_deref().unwrap_or_default();
    read(name, seen.metadata.generation.unwrap_or_default(), &seen.spec)
}

fn read(name: &str, generation: i64, spec: &serde_json::Value) -> Result<Policy, serde_json::Error> {
    let spec = Spec::deserialize(spec)?;
    let unhealthy = spec.unhealthy_conditions.into_iter().map(|one| Unhealthy {
        kind: one.kind,
        status: one.status,
        least: Duration::from_secs(one.for_seconds),
    });
    Ok(Policy {
        name: name.to_owned(),
        generation,
        selector: spec.node_selector.into(),
        every_node: spec.every_node,
        control_plane: spec.control_plane_nodes,
        unhealthy: unhealthy.collect(),
        quiet: Duration::from_secs(spec.quiet_seconds),
        then: spec.then.into(),
        grade: spec.minimum_grade.into(),
        deadline: spec.deadline_seconds.map(Duration::from_secs),
        excluded: spec.exclude.names,
        excluding: spec.exclude.node_selector.map(Selector::from),
        spare_cordoned: spec.exclude_cordoned,
        spare_rebooting: spec.exclude_rebooting,
        paused: spec.paused,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::crd;

    /// What the API server makes of a spec: the defaults of the schema are filled in.
    fn with_defaults(mut spec: Value) -> Value {
        let schema = &crd::policy()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        for (name, one) in schema["properties"].as_object().expect("an object") {
            if let (Some(default), true) = (one.get("default"), spec[name].is_null()) {
                spec[name] = default.clone();
            }
        }
        spec
    }

    #[test]
    fn the_least_that_the_schema_takes_is_read_with_its_defaults() {
        let spec = with_defaults(json!({ "nodeSelector": { "matchLabels": { "role": "worker" } } }));
        let policy = read("workers", 3, &spec).expect("it is right");
        assert_eq!((policy.unhealthy.len(), policy.unhealthy[0].least), (2, Duration::from_secs(20)));
        assert_eq!((policy.quiet, policy.then), (Duration::from_secs(60), AfterFence::StayOff));
        assert!(policy.spare_cordoned && policy.spare_rebooting && !policy.every_node && !policy.paused);
    }

    #[test]
    fn every_field_of_the_schema_is_read() {
        let labels = json!({ "matchExpressions": [
            { "key": "a", "operator": "In", "values": ["b"] }, { "key": "c", "operator": "DoesNotExist" },
        ] });
        let spec = json!({
            "nodeSelector": labels, "everyNode": true, "controlPlaneNodes": ["m1"],
            "unhealthyConditions": [{ "type": "KernelDeadlock", "status": "True", "forSeconds": 60 }],
            "quietSeconds": 5, "then": "PowerOn", "minimumGrade": "Observed", "deadlineSeconds": 90,
            "exclude": { "names": ["n7"], "nodeSelector": labels },
            "excludeCordoned": false, "excludeRebooting": false, "paused": true,
        });
        let schema = &crd::policy()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let known: Vec<&String> = schema["properties"].as_object().expect("an object").keys().collect();
        let given: Vec<&String> = spec.as_object().expect("an object").keys().collect();
        assert_eq!(known, given);
        let policy = read("workers", 3, &spec).expect("it is right");
        assert_eq!((policy.selector.0.len(), policy.excluding.expect("one").0.len()), (2, 2));
        assert_eq!(
            (policy.then, policy.grade, policy.deadline),
            (AfterFence::PowerOn, Grade::Observed, Some(Duration::from_secs(90)))
        );
    }

    #[test]
    fn what_another_version_stored_is_told_by_its_key() {
        let spec = with_defaults(json!({ "nodeSelector": {}, "colour": "red" }));
        assert!(read("workers", 1, &spec).expect_err("unknown").to_string().contains("colour"));
    }
}
