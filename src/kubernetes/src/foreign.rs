//! What another installation of Picket's has left on a Node, or is about to do there: it is told, and neither used nor removed (K7).

use crate::note::{self, Ours};
use crate::object::Node;
use crate::taints::{self, FENCED};

/// In words; `None`: nothing is there but ours.
pub(crate) fn left(node: &Node, owner: &str) -> Option<String> {
    let taints = taints::values(node, FENCED).filter(|value| !taints::is_of(owner, value));
    let taints = taints.map(|value| format!("the taint {FENCED} ({value:?})"));
    let is_others =
        |key: &&String, prefix: &str| key.strip_prefix(prefix).is_some_and(|whose| whose != owner);
    let meta = &node.metadata;
    let notes = meta.annotations.keys().filter(|key| is_others(key, note::KEY));
    let finalizers = meta.finalizers.iter().filter(|key| is_others(key, note::FINALIZER));
    let all: Vec<String> = taints
        .chain(notes.map(|key| format!("the annotation {key}")))
        .chain(finalizers.map(|key| format!("the finalizer {key}")))
        .collect();
    (!all.is_empty()).then(|| {
        format!(
            "another installation of Picket's fences Node {}, or has left something there: {}: that is neither ours to use nor to remove",
            meta.name,
            all.join(", ")
        )
    })
}

/// What a gateway that has our owner by mistake, and a store of its own, has noted there; in words.
pub(crate) fn of_another_store(node: &Node, ours: &Ours) -> Option<String> {
    let (life, name) = (ours.of_another_store(node)?, &node.metadata.name);
    let (owner, key) = (&ours.owner, note::key(&ours.owner));
    Some(format!(
        "another gateway has the owner {owner:?} too, and a store of its own (its life is {life}): the annotation {key} of Node {name} is \
         neither ours to use nor to remove: give each gateway its own owner; if that store is gone for good: `kubectl annotate node {name} {key}-`"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(taint: &str, annotation: &str, finalizer: &str) -> Node {
        let of = |key: &str| if key.is_empty() { json!({}) } else { json!({ key: "{}" }) };
        let list = |one: Value, is: bool| if is { json!([one]) } else { json!([]) };
        let taints =
            list(json!({ "key": FENCED, "value": taint, "effect": "NoSchedule" }), !taint.is_empty());
        let finalizers = list(json!(finalizer), !finalizer.is_empty());
        let meta = json!({ "name": "n1", "annotations": of(annotation), "finalizers": finalizers });
        serde_json::from_value(json!({ "metadata": meta, "spec": { "taints": taints } })).expect("a Node")
    }

    #[test]
    fn what_another_owner_left_is_named_and_ours_and_everybody_else_s_is_not() {
        for (taint, annotation, finalizer) in [
            ("", "", ""),
            ("picket.blue.7", "picket.dev/fence-blue", "picket.dev/fencing-blue"),
            ("", "picket.dev/phase", "example.org/held"),
        ] {
            assert_eq!(left(&node(taint, annotation, finalizer), "blue"), None, "{taint} {annotation}");
        }
        let told = |taint: &str, annotation: &str, finalizer: &str| {
            left(&node(taint, annotation, finalizer), "blue").expect("it is told")
        };
        let all = told("picket.green.3", "picket.dev/fence-green", "picket.dev/fencing-green");
        for named in [
            "Node n1",
            "the taint picket.dev/fenced (\"picket.green.3\")",
            "the annotation picket.dev/fence-green",
            "the finalizer picket.dev/fencing-green",
        ] {
            assert!(all.contains(named), "{all}");
        }
        assert!(told("by-hand", "", "").contains("\"by-hand\""));
        assert!(!told("", "picket.dev/fence-blue-2", "").contains("taint"));
        assert!(told("", "", "picket.dev/fencing-blues").contains("fencing-blues"));
    }
}
