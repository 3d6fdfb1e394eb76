//! The definitions of `FencingPolicy`, and of remediations, as the API server is told them.
//!
//! They are written by hand, without kube's derive, so that limits and rules are read side by side.
//!
//! # Invariants
//!
//! - `deploy/kubernetes/crds.yaml`, and the chart's, are the same. Shown by
//!   `what_is_shipped_is_what_is_printed`.
//! - What the definitions take is what `spec` reads. Shown by `every_field_of_the_schema_is_read`.

pub mod remediation;

use serde_json::{Value, json};

use crate::decider::{FALSE_IS_HEALTHY, TRUE_IS_HEALTHY};

/// Its API group.
pub const GROUP: &str = "picket.dev";
/// Its only version.
pub const VERSION: &str = "v1alpha1";
/// As it stands in paths.
pub const PLURAL: &str = "fencingpolicies";
/// Its kind.
pub const KIND: &str = "FencingPolicy";

/// What makes definitions be there.
pub const APPLY: &str = "picket-controller crds | kubectl apply -f -";

const HEAD: &str =
    "# What a FencingPolicy is, and what NodeHealthCheck asks for: picket-controller crds prints it.\n";

/// All definitions, as YAML.
///
/// # Errors
/// None that is known: it is made of plain values.
pub fn yaml() -> Result<String, serde_saphyr::ser::Error> {
    let all = [policy(), remediation::template(), remediation::remediation()];
    let all: Result<Vec<String>, _> = all.iter().map(serde_saphyr::to_string).collect();
    Ok(format!("{HEAD}{}", all?.join("---\n")))
}

/// Of labels and of names of Nodes.
fn name_of(longest: u32) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": longest })
}

fn names(description: &str, most: u32) -> Value {
    json!({
        "type": "array",
        "description": description,
        "items": name_of(253),
        "maxItems": most,
        "x-kubernetes-list-type": "set",
    })
}

fn selector(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "properties": {
            "matchLabels": {
                "type": "object",
                "description": "Labels that must have these values.",
                "maxProperties": 32,
                "additionalProperties": { "type": "string", "maxLength": 63 },
            },
            "matchExpressions": {
                "type": "array",
                "description": "Requirements, all of which must be met.",
                "maxItems": 32,
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": name_of(317),
                        "operator": { "type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"] },
                        "values": {
                            "type": "array",
                            "maxItems": 64,
                            "items": { "type": "string", "maxLength": 63 },
                            "x-kubernetes-list-type": "atomic",
                        },
                    },
                    "x-kubernetes-validations": [{
                        "rule": "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
                        "message": "In and NotIn want values, Exists and DoesNotExist have none",
                    }],
                },
            },
        },
    })
}

fn seconds(description: &str, least: u32, default: Option<u32>) -> Value {
    let mut schema = json!({
        "type": "integer",
        "format": "int32",
        "description": description,
        "minimum": least,
        "maximum": 86_400,
    });
    if let Some(default) = default {
        schema["default"] = json!(default);
    }
    schema
}

fn flag(description: &str, default: bool) -> Value {
    json!({ "type": "boolean", "description": description, "default": default })
}

fn word(description: &str, words: &[&str], default: &str) -> Value {
    json!({ "type": "string", "description": description, "enum": words, "default": default })
}

fn then(default: &str) -> Value {
    word("What becomes of a Node that was fenced.", &["StayOff", "PowerOn"], default)
}

fn grade() -> Value {
    let words = ["Claimed", "Learned", "Hypervisor", "Observed"];
    word("The least grade of the evidence that it is off.", &words, "Claimed")
}

fn deadline() -> Value {
    seconds("How long the proof may take. Not given: what the gateway's settings say.", 10, None)
}

fn column(name: &str, kind: &str, path: &str) -> Value {
    json!({ "name": name, "type": kind, "jsonPath": path })
}

fn conditions() -> Value {
    json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": { "type": "string" },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                "reason": { "type": "string" },
                "message": { "type": "string" },
                "lastTransitionTime": { "type": "string", "format": "date-time" },
                "observedGeneration": { "type": "integer", "format": "int64" },
            },
        },
    })
}

fn unhealthy() -> Value {
    let ready = |status: &str| json!({ "type": "Ready", "status": status, "forSeconds": 20 });
    json!({
        "type": "array",
        "description": "What is unhealthy, and for how long it must have been seen so, without a break. Any of them is enough.",
        "minItems": 1,
        "maxItems": 16,
        "default": [ready("False"), ready("Unknown")],
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type", "status"],
        "items": {
            "type": "object",
            "required": ["type", "status"],
            "properties": {
                "type": name_of(316),
                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                "forSeconds": seconds("How long. Time in which the controller did not look does not count.", 5, Some(20)),
            },
            "x-kubernetes-validations": [
                healthy(&TRUE_IS_HEALTHY, "True", "a Node that is Ready is healthy, and so is one of which this type says True"),
                healthy(&FALSE_IS_HEALTHY, "False", "of this type False is what a healthy Node says"),
            ],
        },
    })
}

/// A condition of these types and this status, which every healthy Node has, is refused.
fn healthy(types: &[&str], status: &str, message: &str) -> Value {
    let types: Vec<String> = types.iter().map(|kind| format!("'{kind}'")).collect();
    json!({
        "rule": format!("!(self.type in [{}] && self.status == '{status}')", types.join(", ")),
        "message": message,
    })
}

fn spec() -> Value {
    json!({
        "type": "object",
        "description": "Which Nodes are fenced, when, and what comes after.",
        "required": ["nodeSelector"],
        "properties": {
            "nodeSelector": selector("The Nodes for which it speaks. Those of the control plane are reached by name alone."),
            "everyNode": flag("That it may select every Node of the cluster is meant. Without it a policy whose nodeSelector wants no label that some Nodes lack (NotIn and DoesNotExist alone, or kubernetes.io/os, kubernetes.io/arch, or that there is a kubernetes.io/hostname) asks for nothing.", false),
            "controlPlaneNodes": names("Nodes of the control plane for which it speaks too, by name; one at a time.", 64),
            "unhealthyConditions": unhealthy(),
            "quietSeconds": seconds("How long a Node that turned healthy is left alone, whatever it says then.", 0, Some(60)),
            "then": then("StayOff"),
            "minimumGrade": grade(),
            "deadlineSeconds": deadline(),
            "exclude": {
                "type": "object",
                "description": "Nodes for which it does not speak.",
                "properties": {
                    "names": names("By name.", 256),
                    "nodeSelector": selector("By labels."),
                },
            },
            "excludeCordoned": flag("Leave Nodes alone that were cordoned before they failed.", true),
            "excludeRebooting": flag("Leave Nodes alone whose reboot is planned (kured, machine-config, Flatcar).", true),
            "paused": flag("It asks for nothing.", false),
        },
        "x-kubernetes-validations": [{
            "rule": "self.everyNode || (has(self.nodeSelector.matchLabels) && size(self.nodeSelector.matchLabels) > 0) || \
                     (has(self.nodeSelector.matchExpressions) && size(self.nodeSelector.matchExpressions) > 0)",
            "message": "an empty nodeSelector selects every Node: give labels, or say everyNode: true",
        }, {
            "rule": "!has(self.exclude) || !has(self.exclude.nodeSelector) || \
                     (has(self.exclude.nodeSelector.matchLabels) && size(self.exclude.nodeSelector.matchLabels) > 0) || \
                     (has(self.exclude.nodeSelector.matchExpressions) && size(self.exclude.nodeSelector.matchExpressions) > 0)",
            "message": "an empty exclude.nodeSelector excludes every Node: give labels, or say paused: true",
        }],
    })
}

fn status() -> Value {
    let count =
        |description: &str| json!({ "type": "integer", "format": "int32", "description": description });
    json!({
        "type": "object",
        "properties": {
            "observedGeneration": { "type": "integer", "format": "int64" },
            "selected": count("For so many Nodes it speaks."),
            "unhealthy": count("So many of them are unhealthy."),
            "fencing": count("So many of them are being fenced, are off, or are on their way back."),
            "conditions": conditions(),
        },
    })
}

/// The definition of `FencingPolicy`.
pub fn policy() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{PLURAL}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": { "kind": KIND, "listKind": format!("{KIND}List"), "plural": PLURAL, "singular": "fencingpolicy", "shortNames": ["fp"] },
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": [
                    column("Selected", "integer", ".status.selected"),
                    column("Unhealthy", "integer", ".status.unhealthy"),
                    column("Fencing", "integer", ".status.fencing"),
                    column("Then", "string", ".spec.then"),
                    column("Accepted", "string", ".status.conditions[?(@.type==\"Accepted\")].status"),
                    column("Acting", "string", ".status.conditions[?(@.type==\"Acting\")].status"),
                    column("Reason", "string", ".status.conditions[?(@.type==\"Acting\")].reason"),
                    column("Age", "date", ".metadata.creationTimestamp"),
                ],
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "description": "Which Nodes the gateway is asked to fence, and when.",
                    "required": ["spec"],
                    "properties": {
                        "apiVersion": { "type": "string" },
                        "kind": { "type": "string" },
                        "metadata": { "type": "object" },
                        "spec": spec(),
                        "status": status(),
                    },
                } },
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shipped_is_what_is_printed() {
        let text = yaml().expect("plain values");
        let mut shipped = String::new();
        for path in ["deploy/kubernetes/crds.yaml", "deploy/helm/picket/crds/crds.yaml"] {
            let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
            if std::env::var_os("PICKET_BLESS").is_some() {
                std::fs::write(&path, &text).expect("written");
            }
            shipped = std::fs::read_to_string(&path).expect("it is shipped");
            assert_eq!(shipped, text, "{path} differs (PICKET_BLESS=1 takes the new one)");
        }
        let read: Vec<Value> =
            shipped.split("\n---\n").map(|one| serde_saphyr::from_str(one).expect("it is YAML")).collect();
        assert_eq!(read, [policy(), remediation::template(), remediation::remediation()]);
    }
}
