//! The taints of a Node: two of ours, and those of others, which stay as they are (K6, K7).

use std::time::Duration;

use picket_core::ground::ReleasePermit;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::{Cluster, Patch};
use crate::fault::{Fault, Kind};
use crate::node;
use crate::note::{self, Ours, Round};
use crate::object::Node;

/// Lets volumes go, and pods, for as long as it stands. Whoever sets it says that the machine is off.
pub(crate) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// Keeps new pods away until the machine is back and was seen to be.
pub(crate) const FENCED: &str = "picket.dev/fenced";

/// Before what was changed meanwhile is read anew.
pub(crate) const AGAIN: Duration = Duration::from_millis(50);

/// Whose taints these are: ours, of one fence, by one leadership.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) ours: Ours,
    pub(crate) round: Round,
    /// `None`: the node is not proven off by anybody.
    pub(crate) term: Option<u64>,
}

impl Mark {
    /// Of a node that is proven off.
    pub(crate) fn of(ours: &Ours, permit: &ReleasePermit<'_>, round: u32) -> Self {
        Self { ours: ours.clone(), round: (permit.generation(), round), term: Some(permit.term().0) }
    }

    /// The value of our taints.
    pub(crate) fn value(&self) -> String {
        format!("{}{}", prefix(&self.ours.owner), self.round.0.0)
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
    values(node, key).next()
}

/// The values of all taints with that key, of whatever effect.
pub(crate) fn values<'n>(node: &'n Node, key: &'static str) -> impl Iterator<Item = &'n str> {
    of_key(node, key).map(|(_, taint)| text(taint, "value"))
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
pub(crate) fn tests(node: &Node) -> Vec<Value> {
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
/// It changes the Node in any case. `kept`: with the finalizer.
pub(crate) fn setting(node: &Node, wanted: &[(&'static str, &str)], mark: &Mark, kept: bool) -> Value {
    let mut patch = tests(node);
    let mut there = node.spec.taints.is_some();
    for (key, effect) in wanted {
        let taint = json!({"key": key, "value": mark.value(), "effect": effect});
        patch.push(match of_key(node, key).next() {
            Some((place, there)) if is_of(&mark.ours.owner, text(there, "value")) => {
                json!({"op": "replace", "path": format!("/spec/taints/{place}/value"), "value": mark.value()})
            }
            // Another installation keeps new pods away, which is as good.
            Some(_) => continue,
            None if there => json!({"op": "add", "path": "/spec/taints/-", "value": taint}),
            None => json!({"op": "add", "path": "/spec/taints", "value": [taint]}),
        });
        there = true;
    }
    patch.extend(note::marking(node, mark));
    patch.extend(if kept { note::keeping(node, &mark.ours.owner) } else { None });
    Value::Array(patch)
}

/// Whether a taint of a fence's stands there, whoever set it.
pub(crate) fn of_a_fence(node: &Node) -> bool {
    [FENCED, OUT_OF_SERVICE].into_iter().any(|key| value(node, key).is_some())
}

/// Whether our taint `out-of-service` stands there.
pub(crate) fn stands(node: &Node, ours: &Ours) -> bool {
    value(node, OUT_OF_SERVICE).is_some_and(|value| is_of(&ours.owner, value)) && ours.others(node).is_none()
}

/// A patch that removes `out-of-service`, whichever fence of this installation set it, of whichever node: taking it away lets nothing go. It notes that nothing is let go any more; `None`: it is not there.
pub(crate) fn removing(node: &Node, ours: &Ours) -> Option<Value> {
    let (place, _) =
        of_key(node, OUT_OF_SERVICE).find(|(_, taint)| is_of(&ours.owner, text(taint, "value")))?;
    let mut patch = tests(node);
    patch.push(json!({"op": "remove", "path": format!("/spec/taints/{place}")}));
    patch.extend(note::outdating(node, ours));
    Some(Value::Array(patch))
}

/// A patch that takes away what is left of a fence of ours: the taint that keeps new pods away, the note, and what it noted; `None`: nothing is
/// left.
pub(crate) fn clearing(node: &Node, ours: &Ours) -> Option<Value> {
    taking_away(node, ours, &[FENCED])
}

/// The same, and what lets volumes go: the Node is another machine's (K1).
pub(crate) fn letting_be(node: &Node, ours: &Ours) -> Option<Value> {
    taking_away(node, ours, &[FENCED, OUT_OF_SERVICE])
}

fn taking_away(node: &Node, ours: &Ours, keys: &[&str]) -> Option<Value> {
    if ours.others(node).is_some() {
        return None;
    }
    let owner = &ours.owner;
    let is_ours = |taint: &Value| keys.contains(&text(taint, "key")) && is_of(owner, text(taint, "value"));
    let taints = node.spec.taints.iter().flatten().enumerate().filter(|(_, taint)| is_ours(taint));
    let mut changes: Vec<Value> =
        taints.map(|(place, _)| json!({"op": "remove", "path": format!("/spec/taints/{place}")})).collect();
    // The last is removed first: the places of the others stay what they are.
    changes.reverse();
    changes.extend(note::forgetting(node, owner));
    changes.extend(note::freeing(node, owner));
    if changes.is_empty() {
        return None;
    }
    let mut patch = tests(node);
    patch.extend(changes);
    Some(Value::Array(patch))
}

/// Removes our taint `out-of-service`: until it was seen to be gone, or the time is over. Where it is not there, what may be on its way to set it
/// is made to be refused (S8).
pub(crate) async fn remove(cluster: &Cluster, name: &str, ours: &Ours, until: Instant) -> Result<(), Fault> {
    loop {
        let node: Node = match node::read(cluster, name, until).await {
            // With the Node its taints are gone.
            Err(fault) if fault.is(Kind::NotFound) => return Ok(()),
            read => read?,
        };
        let foreign = |value: &str| value.starts_with("picket.") && !is_of(&ours.owner, value);
        let patch = match removing(&node, ours) {
            Some(patch) => patch,
            // Another installation's, or ours by another name: nothing says that it does not let go.
            None if value(&node, OUT_OF_SERVICE).is_some_and(foreign) => {
                let value = value(&node, OUT_OF_SERVICE).unwrap_or_default();
                return Err(Fault::refused(format!(
                    "the taint {OUT_OF_SERVICE} of another owner ({value:?}) stands on Node {name}"
                )));
            }
            None => {
                let mut patch = tests(&node);
                patch.extend(note::outdating(&node, ours));
                Value::Array(patch)
            }
        };
        match cluster.patch::<Node>(&node::path(name), Patch::Json, &patch, until).await {
            // It was changed meanwhile: it is read anew.
            Err(fault) if fault.is_changed() && Instant::now() + AGAIN < until => {
                tokio::time::sleep(AGAIN).await;
            }
            Err(fault) if fault.is(Kind::NotFound) => return Ok(()),
            Err(fault) => return Err(fault),
            Ok(after) if removing(&after, ours).is_none() => {
                return unmark(cluster, &after, &ours.owner, until).await;
            }
            Ok(_) => {}
        }
    }
}

/// A patch that takes away the note that was written for the version alone, and nothing else: what stands beside it is a fence's, whose note
/// somebody took away. `None`: it is a fence's note.
fn unmarking(node: &Node, owner: &str) -> Option<Value> {
    let changes = note::blank(node, owner).then(|| note::forgetting(node, owner))?;
    Some(Value::Array(tests(node).into_iter().chain(changes).collect()))
}

/// Where nothing was noted, what made its version another one is taken away as well: it may be another machine's Node.
async fn unmark(cluster: &Cluster, node: &Node, owner: &str, until: Instant) -> Result<(), Fault> {
    let Some(patch) = unmarking(node, owner) else { return Ok(()) };
    match cluster.patch::<Node>(&node::path(&node.metadata.name), Patch::Json, &patch, until).await {
        Err(fault) if !fault.is_changed() && !fault.is(Kind::NotFound) => Err(fault),
        // Where it was changed meanwhile it stays, and is tidied away.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests_of_patches {
    use picket_core::ids::Generation;

    use super::*;
    use crate::stores::Stores;

    fn mark() -> Mark {
        Mark { ours: of("blue"), round: (Generation(7), 0), term: Some(3) }
    }

    fn of(owner: &str) -> Ours {
        Ours { owner: owner.to_owned(), node: "r1".to_owned(), stores: Stores::default() }
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
        let patch = setting(&node, &[(OUT_OF_SERVICE, "NoExecute")], &mark(), false);
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
        assert_eq!(patch[4]["path"], "/metadata/annotations/picket.dev~1fence-blue");
    }

    #[test]
    fn where_there_is_none_the_list_is_made() {
        let node = node(json!({"metadata": {"name": "n1", "uid": "u", "resourceVersion": "5"}}));
        let patch = setting(&node, &[(FENCED, "NoSchedule"), (OUT_OF_SERVICE, "NoExecute")], &mark(), false);
        assert_eq!(
            (&patch[2]["path"], &patch[3]["path"]),
            (&json!("/spec/taints"), &json!("/spec/taints/-"))
        );
        assert_eq!(patch[4]["path"], "/metadata/annotations");
    }

    #[test]
    fn a_note_of_no_fence_goes_alone() {
        let fenced = |note: Value| {
            node(json!({
                "metadata": {
                    "uid": "u", "resourceVersion": "5", "finalizers": ["picket.dev/fencing-blue"],
                    "annotations": { "picket.dev/fence-blue": note.to_string() },
                },
                "spec": { "taints": [{ "key": FENCED, "value": "picket.blue.7" }] },
            }))
        };
        let patch = unmarking(&fenced(json!({ "owner": "blue", "outdated": "4" })), "blue").expect("it goes");
        let changes: Vec<&Value> =
            patch.as_array().expect("a list").iter().filter(|one| one["op"] != "test").collect();
        assert_eq!(
            changes,
            [&json!({ "op": "remove", "path": "/metadata/annotations/picket.dev~1fence-blue" })]
        );
        assert_eq!(unmarking(&fenced(json!({ "owner": "blue", "generation": 7 })), "blue"), None);
    }

    #[test]
    fn both_taints_go_from_a_node_that_is_let_be_and_others_stay() {
        let taint = |key: &str, value: &str| json!({"key": key, "value": value});
        let taints =
            [taint(FENCED, "picket.blue.7"), taint("mine", "x"), taint(OUT_OF_SERVICE, "picket.blue.7")];
        let node = |taints: &[Value]| {
            node(json!({"metadata": {"uid": "u", "resourceVersion": "5"}, "spec": {"taints": taints}}))
        };
        let removed = |patch: Option<Value>| -> Vec<Value> {
            let all = patch.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
            all.into_iter().filter(|one| one["op"] == "remove").map(|one| one["path"].clone()).collect()
        };
        let all = node(&taints);
        assert_eq!(removed(letting_be(&all, &of("blue"))), ["/spec/taints/2", "/spec/taints/0"]);
        assert_eq!(removed(clearing(&all, &of("blue"))), ["/spec/taints/0"]);
        assert_eq!(letting_be(&all, &of("green")), None);
        assert_eq!(letting_be(&node(&taints[1..2]), &of("blue")), None);
    }

    /// Nor is it taken for gone, or used: that node's fence goes by it.
    #[test]
    fn what_stands_for_another_node_of_the_gateway_stays() {
        let node = |whose: &str| {
            let note = json!({ "owner": "blue", "node": whose, "generation": 7 }).to_string();
            node(json!({
                "metadata": {"uid": "u", "resourceVersion": "5", "annotations": {"picket.dev/fence-blue": note}},
                "spec": {"taints": [{"key": OUT_OF_SERVICE, "value": "picket.blue.7"}, {"key": FENCED, "value": "picket.blue.7"}]},
            }))
        };
        for (whose, ours) in [("r1", true), ("r2", false)] {
            let (node, of) = (node(whose), of("blue"));
            let changes = [clearing(&node, &of), letting_be(&node, &of)].map(|one| one.is_some());
            assert_eq!((changes, stands(&node, &of)), ([ours; 2], ours), "{whose}");
            // Whoever finds the machine on takes it away all the same.
            assert!(removing(&node, &of).is_some(), "{whose}");
        }
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
            let patch = removing(&node, &of("blue"));
            assert_eq!(patch.is_some(), ours, "{value}");
            if let Some(patch) = patch {
                assert_eq!(patch[3], json!({"op": "remove", "path": "/spec/taints/1"}));
            }
        }
    }
}
