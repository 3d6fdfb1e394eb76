//! Pods that are bound to a machine that is off again and again, whoever deletes them: one that tolerates every taint is kept away by none. They
//! keep no volume but their own (K4, K5).
//!
//! **Invariant.** Who was there when a confirmation looked first is deleted before anything else is let go. **Invariant.** Who may be left there
//! beside the taint is deleted by nobody else by its name.

use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::object::{Node, Pod};
use crate::pods;
use crate::release::OfNode;
use crate::taints::{self, Mark, OUT_OF_SERVICE};

/// Before they are deleted once more, beside the taint; each time it is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What is known of a Node's pods since it was proven off.
#[derive(Debug)]
pub(crate) struct Since {
    /// By their UIDs: who was there when this confirmation looked first.
    first: BTreeSet<String>,
    /// Who came since is deleted then.
    next: Instant,
    pause: Duration,
}

impl Since {
    fn of(pods: &[Pod]) -> Self {
        let first = pods.iter().map(|pod| pod.metadata.uid.clone()).collect();
        Self { first, next: Instant::now(), pause: FIRST_PAUSE }
    }

    fn back_off(&mut self) {
        self.next = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

impl OfNode {
    fn since(&self) -> MutexGuard<'_, Option<Since>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt goes by these pods. They are the first ones of this confirmation, unless the Node says that an attempt was made on it, and that
    /// nothing was taken back since.
    pub(crate) fn looks(&self, node: Option<&Node>, pods: &[Pod], mark: &Mark) {
        let note = node.and_then(|node| mark.ours.note(node)).filter(|note| note.stands);
        let goes_on =
            note.is_some_and(|note| (note.generation, Some(note.term)) == (mark.generation, mark.term));
        let mut since = self.since();
        *since = since.take().filter(|_| goes_on).or_else(|| Some(Since::of(pods)));
    }

    /// Whether it was bound to the Node since then, and is left alone by everybody else while the taint stands with that value.
    fn came_back(&self, pod: &Pod, node: &Node, value: &str) -> bool {
        let is_new = self.since().as_ref().is_some_and(|since| !since.first.contains(&pod.metadata.uid));
        is_new && pods::is_left_alone(pod, node, value)
    }

    /// Whether the taint is set although these pods are there: all of them came back. Where it stands already they are deleted now and then
    /// all the same.
    pub(crate) fn may_stay(&self, node: &Node, pods: &[&Pod], mark: &Mark) -> bool {
        if pods.is_empty() {
            return true;
        }
        let value = mark.value();
        if !pods.iter().all(|pod| self.came_back(pod, node, &value)) {
            return false;
        }
        let stands = taints::stands(node, &mark.ours);
        let mut since = self.since();
        let Some(since) = since.as_mut() else { return false };
        let is_due = since.next <= Instant::now();
        if is_due || !stands {
            since.back_off();
        }
        !(stands && is_due)
    }

    /// Whether it came back, and is not deleted yet.
    pub(crate) fn is_left(&self, pod: &Pod, node: &Node) -> bool {
        let Some(value) = taints::value(node, OUT_OF_SERVICE) else { return false };
        let is_due = self.since().as_ref().is_none_or(|since| since.next <= Instant::now());
        !is_due && self.came_back(pod, node, value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::finding::{FindBy, Sought};
    use crate::note::Ours;

    fn of_node() -> OfNode {
        let ours = Ours { owner: "blue".to_owned(), node: "n1".to_owned() };
        OfNode {
            sought: Sought { by: FindBy::Name, ours, provider_id: None },
            back: std::sync::Mutex::default(),
            read: std::sync::Mutex::default(),
            since: std::sync::Mutex::default(),
        }
    }

    fn mark(of: &OfNode, term: u64) -> Mark {
        Mark { ours: of.sought.ours.clone(), generation: 7, term: Some(term) }
    }

    /// With the note of an attempt of that leadership, and the taint, if it stands.
    fn node(note: Option<(u64, bool)>, stands: bool) -> Node {
        let note = note.map(|(term, stands)| {
            json!({ "owner": "blue", "node": "n1", "generation": 7, "term": term, "stands": stands })
                .to_string()
        });
        let unreachable = json!({ "key": "node.kubernetes.io/unreachable", "effect": "NoExecute" });
        let ours = json!({ "key": OUT_OF_SERVICE, "value": "picket.blue.7", "effect": "NoExecute" });
        let taints: Vec<Value> = [unreachable].into_iter().chain(stands.then_some(ours)).collect();
        let annotations = note.map_or(json!({}), |note| json!({ "picket.dev/fence-blue": note }));
        let node = json!({ "metadata": { "annotations": annotations }, "spec": { "taints": taints } });
        serde_json::from_value(node).expect("a Node")
    }

    fn pod(uid: &str, tolerations: &Value) -> Pod {
        let pod = json!({ "metadata": { "uid": uid }, "spec": { "tolerations": tolerations } });
        serde_json::from_value(pod).expect("a pod")
    }

    fn tolerating(uid: &str) -> Pod {
        pod(uid, &json!([{ "operator": "Exists" }]))
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_there_first_is_deleted_first_and_who_came_back_keeps_the_taint_from_nobody() {
        let of = of_node();
        let mark = mark(&of, 3);
        let (old, new) = (tolerating("old"), tolerating("new"));
        let told = node(Some((0, false)), false);
        of.looks(Some(&told), std::slice::from_ref(&old), &mark);
        assert!(!of.may_stay(&told, &[&old], &mark), "it may have run there");
        assert!(of.may_stay(&told, &[], &mark));

        let tried = node(Some((3, true)), false);
        of.looks(Some(&tried), std::slice::from_ref(&new), &mark);
        assert!(!of.may_stay(&tried, &[&old], &mark), "nor once it was to be deleted");
        let evicted = pod("evicted", &json!([]));
        assert!(!of.may_stay(&tried, &[&new, &evicted], &mark), "others would delete it by its name");
        assert!(of.may_stay(&tried, &[&new], &mark));
    }

    #[tokio::test(start_paused = true)]
    async fn beside_the_taint_it_is_deleted_more_and_more_rarely() {
        let of = of_node();
        let mark = mark(&of, 3);
        let (tried, stands, new) =
            (node(Some((3, true)), false), node(Some((3, true)), true), tolerating("new"));
        of.looks(Some(&node(None, false)), &[], &mark);
        assert!(of.may_stay(&tried, &[&new], &mark));
        for seconds in [2, 4, 8, 16, 30, 30] {
            assert!(of.is_left(&new, &stands) && of.may_stay(&stands, &[&new], &mark), "{seconds}");
            tokio::time::advance(Duration::from_secs(seconds)).await;
            assert!(!of.is_left(&new, &stands), "{seconds}");
            assert!(!of.may_stay(&stands, &[&new], &mark), "{seconds}");
        }
        assert!(!of.is_left(&pod("evicted", &json!([])), &stands));
    }

    /// It may have run there meanwhile.
    #[tokio::test(start_paused = true)]
    async fn who_came_back_before_another_confirmation_was_there_first() {
        for (note, term) in [(Some((3, false)), 3), (Some((3, true)), 4), (None, 3)] {
            let of = of_node();
            let (tried, new) = (node(Some((3, true)), false), tolerating("new"));
            of.looks(Some(&tried), &[], &mark(&of, 3));
            of.looks(Some(&tried), std::slice::from_ref(&new), &mark(&of, 3));
            assert!(of.may_stay(&tried, &[&new], &mark(&of, 3)));
            let after = node(note, false);
            of.looks(Some(&after), std::slice::from_ref(&new), &mark(&of, term));
            assert!(!of.may_stay(&after, &[&new], &mark(&of, term)), "{note:?} {term}");
        }
    }
}
