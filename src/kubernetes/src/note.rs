//! What of a fence stands on a Node beside the taints: a note whose and which it is, a finalizer, and what
//! keeps others away (K7, K8).
//!
//! # Invariants
//!
//! - What is noted for another node of the gateway is that node's: it is neither used nor removed. Shown by
//!   `what_is_noted_for_another_node_is_that_one_s`.
//! - The noted boot id is that of the first attempt after the confirmation (K1). Shown by
//!   `the_boot_id_is_that_of_the_confirmation`.

use picket_core::ids::Generation;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::identity::bounded;
use crate::object::Node;
use crate::stores::Stores;
use crate::taints::Mark;

/// The cluster autoscaler removes no such Node.
const NO_SCALE_DOWN: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";

/// A fence's generation, and how often evidence began from zero in it.
pub(crate) type Round = (Generation, u32);

/// What our annotation says of a Node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Note {
    pub(crate) owner: String,
    pub(crate) generation: u64,
    /// The gateway's node. `None`: it was written before this was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    /// The life of the gateway's store. `None`: it was written before this was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) store: Option<String>,
    /// The last leadership that had it proven off.
    pub(crate) term: u64,
    /// It was proven off in this fence.
    pub(crate) off: bool,
    /// The generation in which it was, and is: before the off of another round nothing is known of that. An older note does not say so.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub(crate) off_in: u64,
    /// And the round of that.
    #[serde(skip_serializing_if = "is_first")]
    off_round: u32,
    /// And what lets go on that confirmation was not taken back since.
    pub(crate) stands: bool,
    /// The boot id that the Node had when it was first let go.
    #[serde(rename = "bootID")]
    pub(crate) boot_id: String,
    /// That the cluster autoscaler lets it be is our doing.
    no_scale_down: bool,
    /// The version of the Node that was read for this: whatever names that one is refused from then on (S8).
    outdated: String,
}

impl Note {
    /// This owner's, of whichever node of the gateway's; `None`: there is none.
    pub(crate) fn of(node: &Node, owner: &str) -> Option<Self> {
        serde_json::from_str(node.metadata.annotations.get(&key(owner))?).ok()
    }

    /// Its boot id is that of when it was first let go in that round, whatever was taken back since.
    fn is_baseline(&self, (generation, round): Round) -> bool {
        let is_off = self.off_in != 0 && self.off_in == generation.0;
        (is_off || self.stands && self.generation == generation.0) && self.off_round == round
    }

    /// Why that Node is another machine's, where it was let go in that round: nothing boots that is off (K1).
    pub(crate) fn booted_since(&self, round: Round, node: &Node) -> Option<String> {
        let now = &node.status.node_info.boot_id;
        let booted = self.is_baseline(round) && self.boot_id != *now;
        let name = &node.metadata.name;
        booted.then(|| {
            format!("replaced: a machine booted as Node {name} since it was proven off (boot id {now})")
        })
    }
}

fn is_first(round: &u32) -> bool {
    *round == 0
}

fn is_none_yet(generation: &u64) -> bool {
    *generation == 0
}

/// Whose what stands on a Node is: one installation's, of one node of its gateway's. What is noted for another node is that one's, and what is noted in
/// another store's name is another installation's, which has the same owner by mistake.
#[derive(Clone, Debug)]
pub(crate) struct Ours {
    pub(crate) owner: String,
    /// The gateway's node.
    pub(crate) node: String,
    pub(crate) stores: Stores,
}

impl Ours {
    /// Our note; `None`: there is none, or it is another node's.
    pub(crate) fn note(&self, node: &Node) -> Option<Note> {
        let note = Note::of(node, &self.owner)?;
        let is_its = note.node.as_ref().is_none_or(|noted| *noted == self.node);
        (is_its && self.stores.has(note.store.as_deref())).then_some(note)
    }

    /// Whose our owner's note on that Node is, where it is not this one's: another node's of the gateway, or another store's; in words.
    pub(crate) fn others(&self, node: &Node) -> Option<String> {
        if let Some(store) = self.of_another_store(node) {
            return Some(format!(
                "another gateway with the owner {:?} (its store's life is {store})",
                self.owner
            ));
        }
        let other = Note::of(node, &self.owner)?.node.filter(|noted| *noted != self.node)?;
        Some(format!("this gateway's node {other}"))
    }

    /// In the name of which store, that is not ours, our owner's note on that Node is.
    pub(crate) fn of_another_store(&self, node: &Node) -> Option<String> {
        let store = Note::of(node, &self.owner)?.store?;
        (!self.stores.has(Some(&store))).then(|| bounded(&store))
    }
}

/// Our annotation, and our finalizer, each with the owner behind it: one for each installation.
pub(crate) const KEY: &str = "picket.dev/fence-";
pub(crate) const FINALIZER: &str = "picket.dev/fencing-";

pub(crate) fn key(owner: &str) -> String {
    format!("{KEY}{owner}")
}

fn finalizer(owner: &str) -> String {
    format!("{FINALIZER}{owner}")
}

/// A key as part of a JSON pointer (RFC 6901).
pub(crate) fn pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Writes the annotation, whether it is there or not.
fn noting(node: &Node, owner: &str, note: &Note) -> Value {
    let note = json!(note).to_string();
    match node.metadata.annotations.is_empty() {
        true => json!({"op": "add", "path": "/metadata/annotations", "value": { key(owner): note }}),
        false => {
            let path = format!("/metadata/annotations/{}", pointer(&key(owner)));
            json!({"op": "add", "path": path, "value": note})
        }
    }
}

/// Notes that fence, and keeps the cluster autoscaler away.
pub(crate) fn marking(node: &Node, mark: &Mark) -> Vec<Value> {
    let known = mark.ours.note(node).unwrap_or_default();
    let (Generation(generation), round) = mark.round;
    let is_free = !node.metadata.annotations.contains_key(NO_SCALE_DOWN);
    // What a fence of another node set there is taken over with it.
    let is_adopted = Note::of(node, &mark.ours.owner).is_some_and(|note| note.no_scale_down);
    // The boot id is that of when this round began to let go; before it is proven off, that of what an earlier fence left, which is not back yet.
    let stays = if mark.term.is_some() { known.is_baseline(mark.round) } else { known.off };
    let present = &node.status.node_info.boot_id;
    let note = Note {
        owner: mark.ours.owner.clone(),
        node: Some(mark.ours.node.clone()),
        store: mark.ours.stores.now(),
        generation,
        term: mark.term.unwrap_or(known.term),
        off: mark.term.is_some() || known.off,
        off_in: if mark.term.is_some() { generation } else { 0 },
        off_round: if mark.term.is_some() { round } else { 0 },
        stands: mark.term.is_some(),
        boot_id: if stays { known.boot_id } else { present.clone() },
        no_scale_down: is_free || is_adopted,
        outdated: node.metadata.resource_version.clone(),
    };
    let mut patch = vec![noting(node, &mark.ours.owner, &note)];
    if is_free {
        let path = format!("/metadata/annotations/{}", pointer(NO_SCALE_DOWN));
        patch.push(json!({"op": "add", "path": path, "value": "true"}));
    }
    patch
}

/// Changes nothing but the Node's version, and what the note says of that: nothing is let go on that confirmation any more. Of another node's note
/// it changes nothing else at all.
pub(crate) fn outdating(node: &Node, ours: &Ours) -> Vec<Value> {
    let owner = &ours.owner;
    let known = Note::of(node, owner).unwrap_or_else(|| Note { owner: owner.clone(), ..Note::default() });
    let stands = known.stands && ours.others(node).is_some();
    let note = Note { stands, outdated: node.metadata.resource_version.clone(), ..known };
    vec![noting(node, owner, &note)]
}

/// Whether the note is of no fence: it was written for the version alone.
pub(crate) fn blank(node: &Node, owner: &str) -> bool {
    Note::of(node, owner).is_some_and(|note| note.generation == 0)
}

/// Removes the note, and what it says is our doing.
pub(crate) fn forgetting(node: &Node, owner: &str) -> Vec<Value> {
    let known = Note::of(node, owner);
    let is_there = |key: &str| node.metadata.annotations.contains_key(key);
    let ours = known.is_some_and(|note| note.no_scale_down) && is_there(NO_SCALE_DOWN);
    let keys = [Some(key(owner)).filter(|key| is_there(key)), ours.then(|| NO_SCALE_DOWN.to_owned())];
    let remove =
        |key: String| json!({"op": "remove", "path": format!("/metadata/annotations/{}", pointer(&key))});
    keys.into_iter().flatten().map(remove).collect()
}

/// Sets the finalizer; `None`: it is there, or the Node is on its way out already, and takes none any more.
pub(crate) fn keeping(node: &Node, owner: &str) -> Option<Value> {
    let (all, ours) = (&node.metadata.finalizers, finalizer(owner));
    if all.contains(&ours) || node.metadata.deletion_timestamp.is_some() {
        return None;
    }
    Some(match all.is_empty() {
        true => json!({"op": "add", "path": "/metadata/finalizers", "value": [ours]}),
        false => json!({"op": "add", "path": "/metadata/finalizers/-", "value": ours}),
    })
}

/// Removes the finalizer; `None`: it is not there.
pub(crate) fn freeing(node: &Node, owner: &str) -> Option<Value> {
    let place = node.metadata.finalizers.iter().position(|one| *one == finalizer(owner))?;
    Some(json!({"op": "remove", "path": format!("/metadata/finalizers/{place}")}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(annotations: &[(&str, String)], boot: &str) -> Node {
        let annotations: serde_json::Map<String, Value> =
            annotations.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        let node = json!({
            "metadata": {"name": "n1", "uid": "u", "resourceVersion": "5", "annotations": annotations},
            "status": {"nodeInfo": {"bootID": boot}},
        });
        serde_json::from_value(node).expect("a Node")
    }

    fn noted(patch: &Value) -> Note {
        serde_json::from_str(patch["value"].as_str().expect("a text")).expect("a note")
    }

    fn noting_node(note: &Note, boot: &str) -> Node {
        node(&[("picket.dev/fence-blue", json!(note).to_string())], boot)
    }

    fn note() -> Note {
        Note {
            owner: "blue".to_owned(),
            node: Some("r1".to_owned()),
            generation: 7,
            term: 3,
            off: true,
            stands: true,
            boot_id: "old".to_owned(),
            ..Note::default()
        }
    }

    fn ours() -> Ours {
        Ours { owner: "blue".to_owned(), node: "r1".to_owned(), stores: Stores::default() }
    }

    fn mark(term: Option<u64>) -> Mark {
        Mark { ours: ours(), round: (Generation(7), 0), term }
    }

    #[test]
    fn what_is_outdated_keeps_what_was_noted_but_that_it_stands() {
        let patch = outdating(&noting_node(&note(), "new"), &ours());
        let expected = Note { stands: false, outdated: "5".to_owned(), ..note() };
        assert_eq!(noted(&patch[0]), expected);
        assert_eq!(patch.len(), 1);
        let other = node(&[("a/b", "c".to_owned())], "new");
        let anew = noted(&outdating(&other, &ours())[0]);
        assert!(blank(&noting_node(&anew, "new"), "blue"), "{anew:?}");
        assert!(!blank(&noting_node(&note(), "new"), "blue") && !blank(&node(&[], "new"), "blue"));
    }

    /// Two nodes of a gateway may have one Node, one after the other: the boots and generations of one say nothing of the other.
    #[test]
    fn what_is_noted_for_another_node_is_that_one_s() {
        let other = Note { node: Some("r2".to_owned()), generation: 70, ..note() };
        let node = noting_node(&other, "new");
        assert_eq!(
            (ours().note(&node), ours().others(&node)),
            (None, Some("this gateway's node r2".to_owned()))
        );
        assert_eq!(noted(&outdating(&node, &ours())[0]), Note { outdated: "5".to_owned(), ..other });
        let made = noted(&marking(&node, &mark(None))[0]);
        let told = (made.node.as_deref(), made.generation, made.term, made.off, made.boot_id.as_str());
        assert_eq!(told, (Some("r1"), 7, 0, false, "new"));
        let unsaid = noting_node(&Note { node: None, ..note() }, "new");
        assert!(ours().note(&unsaid).is_some() && ours().others(&unsaid).is_none());
    }

    /// The boot id is that of when a round began to let go: it stays for that one, and for no other.
    #[test]
    fn the_boot_id_is_that_of_the_confirmation() {
        for (known, term, boot, off) in [
            (note(), Some(3), "old", true),
            (Note { generation: 6, ..note() }, Some(3), "new", true),
            (Note { stands: false, ..note() }, Some(3), "new", true),
            // Taken back, and on its way to be set up again: nothing boots that is off.
            (Note { stands: false, off_in: 7, ..note() }, Some(3), "old", true),
            (Note { generation: 6, off_in: 6, ..note() }, Some(3), "new", true),
            // Evidence began from zero since, and nobody could note that.
            (Note { off_in: 7, off_round: 1, ..note() }, Some(3), "new", true),
            (note(), None, "old", true),
            (Note { generation: 6, ..note() }, None, "old", true),
            (Note { off: false, stands: false, ..note() }, None, "new", false),
        ] {
            let made = noted(&marking(&noting_node(&known, "new"), &mark(term))[0]);
            let told = (made.boot_id.as_str(), made.off, made.stands, made.term);
            assert_eq!(told, (boot, off, term.is_some(), 3), "{known:?}");
        }
    }

    /// A fence whose proof was lost may find another boot in the same generation: the machine was on, and nobody else's.
    #[test]
    fn before_the_off_of_another_round_no_boot_speaks_against_a_node() {
        let proven = noted(&marking(&noting_node(&note(), "old"), &mark(Some(3)))[0]);
        let booted = noting_node(&proven, "new");
        let seven = (Generation(7), 0);
        assert!(proven.booted_since(seven, &booted).is_some());
        let outdated = noted(&outdating(&booted, &ours())[0]);
        assert!(
            outdated.booted_since(seven, &booted).is_some(),
            "what let go was taken away, and it is off still"
        );
        let anew = noted(&marking(&noting_node(&outdated, "new"), &mark(None))[0]);
        assert_eq!(anew.booted_since(seven, &booted), None);
        assert!(anew.off && anew.boot_id == "old", "it is not back by that");
        // Also where that could not be noted.
        assert_eq!(outdated.booted_since((Generation(7), 1), &booted), None);
    }

    #[test]
    fn only_what_is_our_doing_is_taken_away() {
        let by_hand = node(&[(NO_SCALE_DOWN, "true".to_owned())], "b");
        let made = noted(&marking(&by_hand, &mark(None))[0]);
        assert!(!made.no_scale_down);
        let both = |ours: bool| {
            let note = Note { no_scale_down: ours, ..note() };
            let noted = ("picket.dev/fence-blue", json!(note).to_string());
            node(&[noted, (NO_SCALE_DOWN, "true".to_owned())], "b")
        };
        assert_eq!(forgetting(&both(true), "blue").len(), 2);
        assert_eq!(forgetting(&both(false), "blue").len(), 1);
        assert!(forgetting(&both(true), "green").is_empty(), "another installation's");
        assert!(noted(&marking(&both(true), &mark(None))[0]).no_scale_down, "it stays our doing");
    }

    #[test]
    fn a_finalizer_is_set_once_and_never_on_what_goes() {
        let mut node = node(&[], "b");
        assert_eq!(keeping(&node, "blue").expect("set")["value"], json!(["picket.dev/fencing-blue"]));
        node.metadata.finalizers = vec!["theirs".to_owned()];
        assert_eq!(keeping(&node, "blue").expect("set")["path"], "/metadata/finalizers/-");
        assert_eq!(freeing(&node, "blue"), None);
        node.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".to_owned());
        assert_eq!(keeping(&node, "blue"), None);
        node.metadata.finalizers.push("picket.dev/fencing-blue".to_owned());
        assert_eq!(freeing(&node, "blue").expect("removed")["path"], "/metadata/finalizers/1");
        assert_eq!(freeing(&node, "green"), None);
    }
}
