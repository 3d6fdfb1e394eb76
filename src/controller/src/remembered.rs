//! Which remediations of the cluster are kept in memory.
//!
//! **Invariant.** All of the namespaces that the settings name, and few of all others: whoever may make remediations there takes neither the
//! controller's memory nor its time (S14). What bears our finalizer may wait for it, and does not share its room with what does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::object::SeenWish;
use crate::remediation;

/// So many of other namespaces with our finalizer are kept, and so many without: each says in its status why nothing is asked by it.
const ELSEWHERE: usize = 64;

/// By namespace and name.
type Key = (Option<String>, Option<String>);

/// Those that are kept.
#[derive(Debug)]
pub struct Remembered {
    namespaces: Vec<String>,
    all: BTreeMap<Key, Arc<SeenWish>>,
}

impl Remembered {
    /// None yet; these are the namespaces that count.
    pub fn of(namespaces: Vec<String>) -> Self {
        Self { namespaces, all: BTreeMap::new() }
    }

    /// All are told anew.
    pub fn clear(&mut self) {
        self.all.clear();
    }

    /// It was seen. False: nothing of what is kept is another one now.
    pub fn put(&mut self, one: SeenWish) -> bool {
        let key = key(&one);
        if !self.has_room_for(&key, &one) {
            // It may have been kept, and has lost or got a finalizer.
            return self.all.remove(&key).is_some();
        }
        self.all.insert(key, Arc::new(one));
        true
    }

    /// It is gone. False: it was not kept.
    pub fn remove(&mut self, one: &SeenWish) -> bool {
        self.all.remove(&key(one)).is_some()
    }

    /// All that are kept.
    pub fn all(&self) -> Vec<Arc<SeenWish>> {
        self.all.values().cloned().collect()
    }

    fn counts(&self, namespace: Option<&String>) -> bool {
        namespace.is_some_and(|namespace| self.namespaces.contains(namespace))
    }

    fn has_room_for(&self, key: &Key, one: &SeenWish) -> bool {
        let is_like_it = |(other, kept): &(&Key, &Arc<SeenWish>)| {
            *other != key
                && !self.counts(other.0.as_ref())
                && remediation::is_kept(kept) == remediation::is_kept(one)
        };
        // What a person frees goes, and its finalizer with it.
        let is_to_go = remediation::is_kept(one) && remediation::is_freed(one);
        is_to_go || self.counts(key.0.as_ref()) || self.all.iter().filter(is_like_it).count() < ELSEWHERE
    }
}

fn key(one: &SeenWish) -> Key {
    (one.metadata.namespace.clone(), one.metadata.name.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(namespace: &str, name: &str, finalizers: &[&str]) -> SeenWish {
        serde_json::from_value(json!({
            "apiVersion": "picket.dev/v1alpha1", "kind": "PicketRemediation", "spec": {},
            "metadata": { "namespace": namespace, "name": name, "finalizers": finalizers },
        }))
        .expect("a remediation")
    }

    /// S14: whoever may make them anywhere fills neither the memory nor the time of the controller.
    #[test]
    fn of_other_namespaces_few_are_kept_and_none_takes_the_room_of_what_bears_our_finalizer() {
        let mut kept = Remembered::of(vec!["ops".to_owned()]);
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
        kept.clear();
        assert!(kept.all().is_empty());
    }
}
