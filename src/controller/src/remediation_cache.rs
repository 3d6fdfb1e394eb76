//! Which remediations of the cluster are kept in memory.
//!
//! # Invariants
//!
//! - Many are kept of each namespace that the settings name, and few of all others together, so that others
//!   take neither memory nor time (S14). Shown by
//!   `of_a_namespace_that_counts_no_more_are_kept_than_nodes_fail`.
//! - What bears our finalizer may wait for it, and shares its room with nothing else. Shown by
//!   `of_other_namespaces_few_are_kept_and_none_takes_the_room_of_what_bears_our_finalizer`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::object::SeenRemediation;
use crate::remediation;

/// So many of each sort are kept of all other namespaces together: each says in its status why nothing is asked by it.
const ELSEWHERE: usize = 64;
/// So many of each sort are kept of one namespace that the settings name: a NodeHealthCheck has one for each Node that failed.
const OF_ONE: usize = 1_024;

/// What may become of one. Each sort has its own room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    /// Nothing of ours hangs on it.
    Loose,
    /// It bears our finalizer.
    Kept,
    /// It is deleted, and a person says that our finalizer goes.
    Freed,
}

/// By namespace and name.
type Key = (Option<String>, Option<String>);

/// Those of one sort of one namespace that counts; `None`: of all others together.
type Room = (Option<String>, Sort);

/// Those that are kept.
#[derive(Debug)]
pub struct RemediationCache {
    namespaces: Vec<String>,
    all: BTreeMap<Key, Arc<SeenRemediation>>,
    taken: BTreeMap<Room, usize>,
    /// Those of which it was told that they are full.
    full: BTreeSet<Room>,
}

impl RemediationCache {
    /// None yet; these are the namespaces that count.
    pub fn of(namespaces: Vec<String>) -> Self {
        Self { namespaces, all: BTreeMap::new(), taken: BTreeMap::new(), full: BTreeSet::new() }
    }

    /// All are told anew.
    pub fn clear(&mut self) {
        self.all.clear();
        self.taken.clear();
        self.full.clear();
    }

    /// It was seen. False: nothing of what is kept is another one now.
    pub fn put(&mut self, one: SeenRemediation) -> bool {
        // It may have lost or got a finalizer, and goes from one room to the other.
        let was_kept = self.remove(&one);
        let room = self.room(&one);
        let most = if room.0.is_some() { OF_ONE } else { ELSEWHERE };
        // What is kept stays so with its finalizer: forgotten, nobody would take that away again.
        let most = if was_kept { most * 2 } else { most };
        let taken = self.taken.entry(room.clone()).or_default();
        if *taken >= most {
            if let Some(namespace) = room.0.clone().filter(|_| self.full.insert(room)) {
                let why = "it has too many PicketRemediations: those beyond are not read, and nobody is fenced by them";
                tracing::warn!(namespace, most, why);
            }
            return was_kept;
        }
        *taken += 1;
        self.all.insert(key(&one), Arc::new(one));
        true
    }

    /// It is gone. False: it was not kept.
    pub fn remove(&mut self, one: &SeenRemediation) -> bool {
        let Some(known) = self.all.remove(&key(one)) else { return false };
        let room = self.room(&known);
        if let Some(taken) = self.taken.get_mut(&room) {
            *taken -= 1;
        }
        true
    }

    /// All that are kept.
    pub fn all(&self) -> Vec<Arc<SeenRemediation>> {
        self.all.values().cloned().collect()
    }

    fn room(&self, one: &SeenRemediation) -> Room {
        let namespace = one.metadata.namespace.as_ref();
        (namespace.filter(|one| self.namespaces.contains(one)).cloned(), sort(one))
    }
}

/// The annotation alone frees nothing: whoever makes a remediation writes it, and our finalizer, at will. What is deleted, too, is gone as soon as its
/// finalizer is.
fn sort(one: &SeenRemediation) -> Sort {
    match remediation::is_kept(one) {
        false => Sort::Loose,
        true if one.metadata.deletion_timestamp.is_some() && remediation::is_freed(one) => Sort::Freed,
        true => Sort::Kept,
    }
}

fn key(one: &SeenRemediation) -> Key {
    (one.metadata.namespace.clone(), one.metadata.name.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(namespace: &str, name: &str, finalizers: &[&str]) -> SeenRemediation {
        serde_json::from_value(json!({
            "apiVersion": "picket.dev/v1alpha1", "kind": "PicketRemediation", "spec": {},
            "metadata": { "namespace": namespace, "name": name, "finalizers": finalizers },
        }))
        .expect("a remediation")
    }

    /// One with our finalizer and with the annotation by which a person takes it away.
    fn freed(namespace: &str, name: &str, is_deleted: bool) -> SeenRemediation {
        let mut one = seen(namespace, name, &[remediation::FINALIZER]);
        one.metadata.annotations = Some([(remediation::FREED.to_owned(), "true".to_owned())].into());
        let deleted = json!(is_deleted.then_some("2026-01-01T00:00:00Z"));
        one.metadata.deletion_timestamp = serde_json::from_value(deleted).expect("a time, or none");
        one
    }

    /// S14: whoever may make them fills neither the memory nor the time of the controller.
    #[test]
    fn of_a_namespace_that_counts_no_more_are_kept_than_nodes_fail() {
        let mut kept = RemediationCache::of(vec!["a-ns".to_owned(), "medik8s".to_owned()]);
        let told = (0..3 * OF_ONE).filter(|n| kept.put(seen("a-ns", &n.to_string(), &[]))).count();
        assert_eq!((told, kept.all().len()), (OF_ONE, OF_ONE));
        // It takes neither the room of another one nor that of what bears our finalizer.
        assert!(kept.put(seen("medik8s", "n1", &[])));
        assert!(kept.put(seen("a-ns", "held", &[remediation::FINALIZER])));
        assert!(kept.put(seen("a-ns", "0", &[remediation::FINALIZER])), "and a change of room is one");
        assert!(kept.put(seen("a-ns", "a later one", &[])));
        assert_eq!(kept.all().len(), OF_ONE + 3);
    }

    /// S14: the same of all others together.
    #[test]
    fn of_other_namespaces_few_are_kept_and_none_takes_the_room_of_what_bears_our_finalizer() {
        let mut kept = RemediationCache::of(vec!["ops".to_owned()]);
        let told = (0..1_000).filter(|n| kept.put(seen("a", &format!("n{n:04}"), &[]))).count();
        assert_eq!((told, kept.all().len()), (ELSEWHERE, ELSEWHERE));
        assert!(
            !kept.put(seen("a", "n0999", &["theirs"])),
            "a change of one that is not kept is nothing new"
        );
        assert!(kept.put(seen("a", "held", &[remediation::FINALIZER])));
        for n in 0..1_000 {
            assert!(kept.put(seen("ops", &format!("n{n:04}"), &[])));
        }
        assert_eq!(kept.all().len(), ELSEWHERE + 1 + 1_000);
        // One goes, and another one is kept once it is told again.
        assert!(kept.remove(&seen("a", "n0000", &[])) && !kept.remove(&seen("a", "n0999", &[])));
        assert!(kept.put(seen("a", "n0999", &[])));
        // Whoever marks its own with our finalizer has no more room by it.
        for n in 0..1_000 {
            kept.put(seen("b", &format!("n{n:04}"), &[remediation::FINALIZER]));
        }
        assert_eq!(kept.all().len(), 2 * ELSEWHERE + 1_000);
        // What a person lets go has a room of its own, and what says so without being deleted has none of that.
        assert!(!kept.put(freed("b", "n2000", false)) && kept.put(freed("b", "n2000", true)));
        for n in 0..1_000 {
            kept.put(freed("b", &format!("m{n:04}"), n % 2 == 0));
        }
        assert_eq!(kept.all().len(), 3 * ELSEWHERE + 1_000);
        kept.clear();
        assert!(kept.all().is_empty());
    }
}
