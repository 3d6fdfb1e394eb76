//! What was seen of a Node, and for how long without a break.

use std::collections::BTreeMap;
use std::time::Duration;

use super::node::{Moment, Node};

/// How far two looks may be apart so that the time between them counts. Suspects are looked at every two seconds.
pub const UNBROKEN: Duration = Duration::from_secs(6);

/// A Node, and since when it is seen to be so.
#[derive(Clone, Debug)]
pub(super) struct NodeObservation {
    pub(super) node: Node,
    /// When it was looked at last.
    pub(super) last: Moment,
    /// By the condition's type: since when it is seen as it is, without a break.
    since: BTreeMap<String, Moment>,
    /// The same, also where nobody looked for a while: whose turn it is to be looked at.
    first: BTreeMap<String, Moment>,
    /// When a condition turned into that status, by type and status.
    turned: BTreeMap<(String, String), Moment>,
    /// It was cordoned when it was last seen with Ready, or is cordoned since before it was first seen.
    pub(super) cordoned_before: bool,
    /// The gateway found that it had recovered.
    pub(super) recovered: Option<Moment>,
    /// Its zone when it was last seen to be Ready; `None`: it was not seen so yet.
    ready_in: Option<String>,
}

impl NodeObservation {
    pub(super) fn new(node: Node, at: Moment) -> Self {
        let since: BTreeMap<_, _> = node.conditions.keys().map(|kind| (kind.clone(), at)).collect();
        let first = since.clone();
        let cordoned_before = node.cordoned;
        let ready_in = node.is_ready().then(|| node.zone().to_owned());
        let turned = BTreeMap::new();
        Self { node, last: at, since, first, turned, cordoned_before, recovered: None, ready_in }
    }

    /// It looks so at `at`, which is when the question was sent: the answer is at least that fresh.
    pub(super) fn see(&mut self, node: Node, at: Moment) {
        if at < self.last {
            return;
        }
        let before = &self.node;
        // Who says another boot begins again, and has no turn by what was before.
        let booted = before.boot_id != node.boot_id;
        let broken = at.saturating_sub(self.last) > UNBROKEN || booted;
        for (kind, now) in &node.conditions {
            let same = before.conditions.get(kind);
            let turned = same.is_some_and(|then| then != now);
            if turned {
                // A turn there and back between two looks is one that nobody saw.
                let missed = same.is_some_and(|then| then.status == now.status);
                let into = if missed { String::new() } else { now.status.clone() };
                self.turned.insert((kind.clone(), into), at);
            }
            if turned || broken || same.is_none() {
                self.since.insert(kind.clone(), at);
            }
            if turned || booted || same.is_none() {
                self.first.insert(kind.clone(), at);
            }
        }
        self.since.retain(|kind, _| node.conditions.contains_key(kind));
        self.first.retain(|kind, _| node.conditions.contains_key(kind));
        if node.is_ready() || !node.cordoned {
            self.cordoned_before = node.cordoned;
        }
        if node.is_ready() {
            self.ready_in = Some(node.zone().to_owned());
        }
        self.last = at;
        self.node = node;
    }

    /// The zone in which it counts. A kubelet may label its own Node: one that is not Ready, and says another zone than before, would hold that zone's
    /// brake.
    pub(super) fn zone(&self) -> &str {
        self.ready_in.as_deref().unwrap_or_else(|| self.node.zone())
    }

    /// Whether it was looked at just now.
    pub(super) fn is_fresh(&self, now: Moment) -> bool {
        now.saturating_sub(self.last) <= UNBROKEN
    }

    /// For how long it was seen to be so, up to the last look: the time since then was not seen.
    pub(super) fn lasted(&self, kind: &str) -> Duration {
        self.since.get(kind).map_or(Duration::ZERO, |since| self.last.saturating_sub(*since))
    }

    /// Since when it is known to be so, looked at or not.
    pub(super) fn first(&self, kind: &str) -> Option<Moment> {
        self.first.get(kind).copied()
    }

    /// When that condition turned into a status that `is_unhealthy` does not say.
    pub(super) fn turned_healthy(&self, kind: &str, is_unhealthy: impl Fn(&str) -> bool) -> Option<Moment> {
        let of = self.turned.iter().filter(|((one, status), _)| one == kind && !is_unhealthy(status));
        of.map(|(_, at)| *at).max()
    }
}

#[cfg(test)]
mod tests {
    use super::super::node::Condition;
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn node(status: &str, turned: &str) -> Node {
        let ready = Condition { status: status.to_owned(), turned: turned.to_owned() };
        Node { conditions: BTreeMap::from([("Ready".to_owned(), ready)]), ..Node::default() }
    }

    #[test]
    fn time_counts_between_looks_that_follow_each_other_and_never_after_the_last() {
        let mut observation = NodeObservation::new(node("Unknown", "a"), S);
        assert_eq!(observation.lasted("Ready"), Duration::ZERO);
        for second in 2..20 {
            observation.see(node("Unknown", "a"), S * second);
        }
        assert_eq!(observation.lasted("Ready"), S * 18);
        assert!(observation.is_fresh(S * 25) && !observation.is_fresh(S * 26));
        // Nobody looked for a minute.
        observation.see(node("Unknown", "a"), S * 79);
        assert_eq!(observation.lasted("Ready"), Duration::ZERO);
    }

    #[test]
    fn a_turn_that_nobody_saw_begins_the_time_again() {
        let mut observation = NodeObservation::new(node("False", "a"), S);
        observation.see(node("False", "a"), S * 5);
        observation.see(node("False", "b"), S * 7);
        assert_eq!(observation.lasted("Ready"), Duration::ZERO);
        assert_eq!(observation.turned_healthy("Ready", |status| status == "False"), Some(S * 7));
    }

    #[test]
    fn another_boot_begins_the_time_again() {
        let mut observation = NodeObservation::new(node("False", "a"), S);
        observation.see(node("False", "a"), S * 5);
        observation.see(Node { boot_id: "new".to_owned(), ..node("False", "a") }, S * 7);
        assert_eq!(observation.lasted("Ready"), Duration::ZERO);
    }

    #[test]
    fn one_that_is_cordoned_after_it_failed_was_not_cordoned_before() {
        let cordoned = |status| Node { cordoned: true, ..node(status, status) };
        let mut observation = NodeObservation::new(node("True", "a"), S);
        observation.see(node("Unknown", "b"), S * 2);
        observation.see(cordoned("Unknown"), S * 3);
        assert!(!observation.cordoned_before);
        let mut observation = NodeObservation::new(node("True", "a"), S);
        observation.see(cordoned("True"), S * 2);
        observation.see(cordoned("Unknown"), S * 3);
        assert!(observation.cordoned_before);
        // What is found so was so.
        assert!(NodeObservation::new(cordoned("Unknown"), S).cordoned_before);
    }
}
