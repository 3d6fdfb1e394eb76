//! The taints of a Node: two of ours, and those of others, which stay as they are (K6, K7).

use std::time::Duration;

use picket_core::ground::ReleasePermit;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::{Cluster, Patch};
use crate::fault::{Fault, Kind};
use crate::node;
use crate::object::Node;

/// Lets volumes go, and pods, for as long as it stands. Whoever sets it says that the machine is off.
pub(crate) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// Keeps new pods away until the machine is back and was seen to be.
pub(crate) const FENCED: &str = "picket.dev/fenced";
/// What of a fence stands with them: whose, which, and the boot id of then.
pub(crate) const FENCE: &str = "picket.dev/fence";

/// Before what was changed meanwhile is read anew.
pub(crate) const AGAIN: Duration = Duration::from_millis(50);

/// Whose taints these are: one installation's, of one fence, by one leadership.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    owner: String,
    generation: u64,
    term: u64,
}

impl Mark {
    pub(crate) fn of(owner: &str, permit: &ReleasePermit<'_>) -> Self {
        Self { owner: owner.to_owned(), generation: permit.generation().0, term: permit.term().0 }
    }

    /// The value of our taints.
    fn value(&self) -> String {
        format!("{}{}", prefix(&self.owner), self.generation)
    }
}

/// What our annotation says of a Node.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) owner: String,
    #[serde(default)]
    pub(crate) generation: u64,
    #[serde(default)]
    pub(crate) term: u64,
    /// The boot id that the Node had when it was fenced.
    #[serde(default, rename = "bootID")]
    pub(crate) boot_id: String,
}

impl Note {
    /// `None`: there is none, or none of ours.
    pub(crate) fn of(node: &Node) -> Option<Self> {
        serde_json::from_str(node.metadata.annotations.get(FENCE)?).ok()
    }
}

fn prefix(owner: &str) -> String {
    format!("picket.{owner}.")
}

/// Whether that value is one of this installation's, of whichever fence.
pub(crate) fn is_of(owner: &str, value: &str) -> bool {
    let number = value.strip_prefix(&prefix(owner));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn text<'t>(taint: &'t Value, key: &str) -> &'t str {
    taint.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// All taints with that key, as key and place.
fn of_key<'n>(node: &'n Node, key: &'n str) -> impl Iterator<Item = (usize, &'n Value)> {
    let taints = node.spec.taints.iter().flatten().enumerate();
    taints.filter(move |(_, taint)| text(taint, "key") == key)
}

/// The value of the taint with that key; `None`: there is none.
pub(crate) fn value<'n>(node: &'n Node, key: &'static str) -> Option<&'n str> {
    of_key(node, key).next().map(|(_, taint)| text(taint, "value"))
}

/// Every taint that evicts pods, but ours: key, value, since when.
pub(crate) fn evicting(node: &Node) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
    let taints = node.spec.taints.iter().flatten();
    let evicts =
        taints.filter(|taint| text(taint, "effect") == "NoExecute" && text(taint, "key") != OUT_OF_SERVICE);
    evicts.map(|taint| {
        (text(taint, "key"), text(taint, "value"), taint.get("timeAdded").and_then(Value::as_str))
    })
}

/// The beginning of each patch of a Node: it is this one, as it was read.
fn tests(node: &Node) -> Vec<Value> {
    let mut tests = vec![
        json!({"op": "test", "path": "/metadata/uid", "value": node.metadata.uid}),
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": node.metadata.resource_version}),
    ];
    if let Some(taints) = &node.spec.taints {
        tests.push(json!({"op": "test", "path": "/spec/taints", "value": taints}));
    }
    tests
}

/// A patch that sets these taints, each with its effect, and notes whose they are: those of an earlier fence of ours become this one's.
/// It changes the Node in any case.
pub(crate) fn setting(node: &Node, wanted: &[(&'static str, &str)], mark: &Mark) -> Value {
    let mut patch = tests(node);
    let mut there = node.spec.taints.is_some();
    for (key, effect) in wanted {
        let taint = json!({"key": key, "value": mark.value(), "effect": effect});
        patch.push(match of_key(node, key).next() {
            Some((place, there)) if is_of(&mark.owner, text(there, "value")) => {
                json!({"op": "replace", "path": format!("/spec/taints/{place}/value"), "value": mark.value()})
            }
            // Another installation keeps new pods away, which is as good.
            Some(_) => continue,
            None if there => json!({"op": "add", "path": "/spec/taints/-", "value": taint}),
            None => json!({"op": "add", "path": "/spec/taints", "value": [taint]}),
        });
        there = true;
    }
    // The boot id is that of when this fence began to let go.
    let read = Note::of(node).filter(|note| note.owner == mark.owner && note.generation == mark.generation);
    let boot = read.map_or_else(|| node.status.node_info.boot_id.clone(), |note| note.boot_id);
    let note = json!({
        "owner": mark.owner,
        "generation": mark.generation,
        "term": mark.term,
        "bootID": boot,
        "outdated": node.metadata.resource_version,
    });
    patch.push(noting(node, &note));
    Value::Array(patch)
}

/// Writes the annotation, whether it is there or not.
fn noting(node: &Node, note: &Value) -> Value {
    let note = note.to_string();
    match node.metadata.annotations.is_empty() {
        true => json!({"op": "add", "path": "/metadata/annotations", "value": { FENCE: note }}),
        false => {
            json!({"op": "add", "path": format!("/metadata/annotations/{}", pointer(FENCE)), "value": note})
        }
    }
}

/// A patch that changes nothing but the Node's version, and what the annotation says of that: whatever is on its way and names
/// the version that was read before is refused from then on (S8).
fn outdating(node: &Node, owner: &str) -> Value {
    let read = node.metadata.annotations.get(FENCE).and_then(|note| serde_json::from_str(note).ok());
    let mut note = read.filter(Value::is_object).unwrap_or_else(|| json!({ "owner": owner }));
    note["outdated"] = json!(node.metadata.resource_version);
    let mut patch = tests(node);
    patch.push(noting(node, &note));
    Value::Array(patch)
}

/// A patch that removes our taint with that key, whichever fence set it; `None`: it is not there. `with_note`: the annotation too.
pub(crate) fn removing(node: &Node, key: &'static str, owner: &str, with_note: bool) -> Option<Value> {
    let (place, _) = of_key(node, key).find(|(_, taint)| is_of(owner, text(taint, "value")))?;
    let mut patch = tests(node);
    patch.push(json!({"op": "remove", "path": format!("/spec/taints/{place}")}));
    if with_note && Note::of(node).is_some_and(|note| note.owner == owner) {
        patch.push(json!({"op": "remove", "path": format!("/metadata/annotations/{}", pointer(FENCE))}));
    }
    Some(Value::Array(patch))
}

/// A patch that removes the annotation, where no taint of ours is there; `None`: it is not there either.
pub(crate) fn forgetting(node: &Node, owner: &str) -> Option<Value> {
    Note::of(node).filter(|note| note.owner == owner)?;
    let mut patch = tests(node);
    patch.push(json!({"op": "remove", "path": format!("/metadata/annotations/{}", pointer(FENCE))}));
    Some(Value::Array(patch))
}

/// A key as part of a JSON pointer (RFC 6901).
fn pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Removes our taint with that key: until it was seen to be gone, or the time is over. `outdates`: where it is not there, what may be on its
/// way to set it is made to be refused.
pub(crate) async fn remove(
    cluster: &Cluster,
    name: &str,
    key: &'static str,
    owner: &str,
    outdates: bool,
    until: Instant,
) -> Result<(), Fault> {
    loop {
        let node: Node = match node::read(cluster, name, until).await {
            // With the Node its taints are gone.
            Err(fault) if fault.is(Kind::NotFound) => return Ok(()),
            read => read?,
        };
        let patch = match removing(&node, key, owner, key == FENCED) {
            Some(patch) => patch,
            // Another installation's, or ours by another name: nothing says that it does not let go.
            None if value(&node, key).is_some_and(|value| value.starts_with("picket.")) => {
                let value = value(&node, key).unwrap_or_default();
                return Err(Fault::refused(format!(
                    "the taint {key} of another owner ({value:?}) stands on Node {name}"
                )));
            }
            None if outdates => outdating(&node, owner),
            None => return Ok(()),
        };
        match cluster.patch::<Node>(&node::path(name), Patch::Json, &patch, until).await {
            // It was changed meanwhile: it is read anew.
            Err(fault) if fault.is_changed() && Instant::now() + AGAIN < until => {
                tokio::time::sleep(AGAIN).await;
            }
            Err(fault) => return Err(fault),
            Ok(after) if removing(&after, key, owner, false).is_none() => return Ok(()),
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests_of_patches {
    use super::*;

    fn mark() -> Mark {
        Mark { owner: "blue".to_owned(), generation: 7, term: 3 }
    }

    fn node(value: Value) -> Node {
        serde_json::from_value(value).expect("a Node")
    }

    #[test]
    fn a_patch_tests_all_that_was_read() {
        let foreign = json!({"key": "mine", "value": "x", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z", "new": 1});
        let node = node(json!({
            "metadata": {"name": "n1", "uid": "u", "resourceVersion": "5", "annotations": {"a": "b"}},
            "spec": {"taints": [foreign]},
        }));
        let patch = setting(&node, &[(OUT_OF_SERVICE, "NoExecute")], &mark());
        let patch = patch.as_array().expect("a list");
        assert_eq!(patch[0], json!({"op": "test", "path": "/metadata/uid", "value": "u"}));
        assert_eq!(patch[1], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "5"}));
        assert_eq!(
            patch[2],
            json!({"op": "test", "path": "/spec/taints", "value": [foreign]}),
            "byte for byte"
        );
        assert_eq!(patch[3]["path"], "/spec/taints/-");
        assert_eq!(patch[3]["value"]["value"], "picket.blue.7");
        assert_eq!(patch[4]["path"], "/metadata/annotations/picket.dev~1fence");
    }

    #[test]
    fn what_is_outdated_keeps_what_was_noted() {
        let note = json!({"owner": "blue", "generation": 7, "bootID": "b"}).to_string();
        let node = node(json!({
            "metadata": {"name": "n1", "uid": "u", "resourceVersion": "5", "annotations": {FENCE: note}},
        }));
        let patch = outdating(&node, "blue");
        let written: Value = serde_json::from_str(patch[2]["value"].as_str().expect("a text")).expect("JSON");
        assert_eq!(written, json!({"owner": "blue", "generation": 7, "bootID": "b", "outdated": "5"}));
        assert_eq!(Note::of(&node).map(|note| note.boot_id).as_deref(), Some("b"));
    }

    /// Fenced again before what the first fence left was tidied up: the note is the new fence's, and its boot id the present one.
    #[test]
    fn a_note_of_an_earlier_fence_becomes_this_one_s() {
        let node = |generation: u64| {
            let note =
                json!({"owner": "blue", "generation": generation, "term": 1, "bootID": "old"}).to_string();
            let taint =
                json!({"key": FENCED, "value": format!("picket.blue.{generation}"), "effect": "NoSchedule"});
            node(json!({
                "metadata": {"name": "n1", "uid": "u", "resourceVersion": "5", "annotations": {FENCE: note}},
                "spec": {"taints": [taint]}, "status": {"nodeInfo": {"bootID": "new"}},
            }))
        };
        for (generation, boot) in [(6, "new"), (7, "old")] {
            let patch = setting(&node(generation), &[(FENCED, "NoSchedule")], &mark());
            assert_eq!(
                patch[3],
                json!({"op": "replace", "path": "/spec/taints/0/value", "value": "picket.blue.7"})
            );
            let note: Note =
                serde_json::from_str(patch[4]["value"].as_str().expect("a text")).expect("a note");
            assert_eq!((note.generation, note.term, note.boot_id.as_str()), (7, 3, boot));
        }
    }

    #[test]
    fn where_there_is_none_the_list_is_made() {
        let node = node(json!({"metadata": {"name": "n1", "uid": "u", "resourceVersion": "5"}}));
        let patch = setting(&node, &[(FENCED, "NoSchedule"), (OUT_OF_SERVICE, "NoExecute")], &mark());
        assert_eq!(
            (&patch[2]["path"], &patch[3]["path"]),
            (&json!("/spec/taints"), &json!("/spec/taints/-"))
        );
        assert_eq!(patch[4]["path"], "/metadata/annotations");
    }

    #[test]
    fn only_this_installation_s_own_is_removed() {
        let taint = |value: &str| json!({"key": OUT_OF_SERVICE, "value": value, "effect": "NoExecute"});
        for (value, ours) in [
            ("picket.blue.7", true),
            ("picket.blue.1", true),
            ("picket.green.7", false),
            ("nodeshutdown", false),
            ("picket.blue.", false),
        ] {
            let node = node(json!({
                "metadata": {"uid": "u", "resourceVersion": "5"}, "spec": {"taints": [{"key": "other"}, taint(value)]},
            }));
            let patch = removing(&node, OUT_OF_SERVICE, "blue", false);
            assert_eq!(patch.is_some(), ours, "{value}");
            if let Some(patch) = patch {
                assert_eq!(patch[3], json!({"op": "remove", "path": "/spec/taints/1"}));
            }
        }
    }
}
