//! `PicketRemediationTemplate` and `PicketRemediation`: what medik8s' NodeHealthCheck asks for.

use serde_json::{Value, json};

use super::{GROUP, VERSION, column, conditions, deadline, grade, then};

/// As it stands in paths.
pub const PLURAL: &str = "picketremediations";
/// Its kind.
pub const KIND: &str = "PicketRemediation";
/// Of the template.
pub const TEMPLATES: &str = "picketremediationtemplates";

/// What is wanted; without a word about it the machine is powered on again (K12).
fn spec() -> Value {
    json!({
        "type": "object",
        "description": "How the Node is fenced, and what comes after.",
        "properties": { "then": then("PowerOn"), "minimumGrade": grade(), "deadlineSeconds": deadline() },
    })
}

fn status() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    json!({
        "type": "object",
        "properties": {
            "observedGeneration": { "type": "integer", "format": "int64" },
            "node": text("The Node that is meant."),
            "phase": text("How far it is: Waiting, Fencing, Returning, Failed, Succeeded, Interrupted."),
            "key": text("Under which key the gateway was asked, as the annotation picket.dev/asked has it, which alone counts. Not there: it never was."),
            "gatewayNode": text("As the gateway calls the node: `picket status` wants that name. Look there before you retire a node by it, as others may write a status. Not there: it has not said."),
            "proven": {
                "type": "boolean",
                "description": "The fence said that the Node is proven off, and that everything is released.",
            },
            "conditions": conditions(),
        },
    })
}

fn definition(
    kind: &str,
    plural: &str,
    short: &str,
    description: &str,
    columns: &[Value],
    properties: &Value,
) -> Value {
    let mut all = json!({
        "apiVersion": { "type": "string" },
        "kind": { "type": "string" },
        "metadata": { "type": "object" },
    });
    if let (Some(all), Some(more)) = (all.as_object_mut(), properties.as_object()) {
        all.extend(more.clone());
    }
    let mut version = json!({
        "name": VERSION,
        "served": true,
        "storage": true,
        "additionalPrinterColumns": columns,
        "schema": { "openAPIV3Schema": { "type": "object", "description": description, "properties": all, "required": ["spec"] } },
    });
    if properties.get("status").is_some() {
        version["subresources"] = json!({ "status": {} });
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                "singular": kind.to_ascii_lowercase(), "shortNames": [short],
            },
            "versions": [version],
        },
    })
}

/// The definition of `PicketRemediationTemplate`.
pub fn template() -> Value {
    let spec = json!({
        "type": "object",
        "description": "Of what NodeHealthCheck makes remediations.",
        "required": ["template"],
        "properties": {
            "template": { "type": "object", "required": ["spec"], "properties": { "spec": spec() } },
        },
    });
    let columns = [
        column("Then", "string", ".spec.template.spec.then"),
        column("Age", "date", ".metadata.creationTimestamp"),
    ];
    definition(
        "PicketRemediationTemplate",
        TEMPLATES,
        "pkrt",
        "What a NodeHealthCheck names as its remediationTemplate, so that the gateway is asked to fence its Nodes.",
        &columns,
        &json!({ "spec": spec }),
    )
}

/// The definition of `PicketRemediation`.
pub fn remediation() -> Value {
    let mut spec = spec();
    spec["default"] = json!({});
    spec["x-kubernetes-validations"] = json!([{
        "rule": "self == oldSelf",
        "message": "what was asked for stays so: the gateway's key is bound to it",
    }]);
    let said = |kind: &str, what: &str| format!(".status.conditions[?(@.type==\"{kind}\")].{what}");
    let columns = [
        column("Node", "string", ".status.node"),
        column("Phase", "string", ".status.phase"),
        column("Processing", "string", &said("Processing", "status")),
        column("Succeeded", "string", &said("Succeeded", "status")),
        column("Reason", "string", &said("Processing", "reason")),
        column("Then", "string", ".spec.then"),
        column("Age", "date", ".metadata.creationTimestamp"),
    ];
    definition(
        KIND,
        PLURAL,
        "pkr",
        "A Node that NodeHealthCheck wants to be remediated: a wish, and not a lock.",
        &columns,
        &json!({ "spec": spec, "status": status() }),
    )
}
