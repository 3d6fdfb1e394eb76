//! The pods of a node that is off (K4): which of them go, before the taint that would make others delete them by their names.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::note::Round;
use crate::object::{List, Node, Pod, Toleration};
use crate::{remains, taints};

/// Whom taint eviction deletes within so many seconds, it is left to.
const SOON: i64 = 5;
/// It is waited for so many seconds at most.
const PATIENCE: i64 = 30;
/// And for so long by our own clock: from [`SOON`] before its time until the end of that patience.
const LEFT: Duration = Duration::from_secs((SOON + PATIENCE).unsigned_abs());

/// What becomes of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is deleted.
    Goes,
    /// Taint eviction is about to delete it by its name: a pod made anew under that name would be deleted again.
    Evicted,
    /// It is no reason to wait, and why.
    Stays(&'static str),
}

/// Since when pods of a node are left to taint eviction, by their UIDs. The API lets whoever may change a pod lengthen its toleration again and again:
/// by what its spec says now, taint eviction would be about to come without an end.
#[derive(Debug, Default)]
pub(crate) struct Evictions {
    round: Option<Round>,
    since: BTreeMap<String, Instant>,
}

impl Evictions {
    /// Of these pods of the node those are left to it now, in that round of a fence. Answers the UIDs of those that were for too long.
    pub(crate) fn seen(
        &mut self,
        round: Round,
        (pods, evicted): (&[Pod], &[&Pod]),
        now: Instant,
    ) -> BTreeSet<String> {
        if self.round != Some(round) {
            *self = Self { round: Some(round), since: BTreeMap::new() };
        }
        let there: BTreeSet<&str> = pods.iter().map(|pod| pod.metadata.uid.as_str()).collect();
        self.since.retain(|uid, _| there.contains(uid.as_str()));
        for pod in evicted {
            self.since.entry(pod.metadata.uid.clone()).or_insert(now);
        }
        let overdue = self.since.iter().filter(|(_, since)| now.duration_since(**since) > LEFT);
        overdue.map(|(uid, _)| uid.clone()).collect()
    }
}

/// The pods of a node, as a quorum has them.
pub(crate) async fn of(cluster: &Cluster, name: &str, until: Instant) -> Result<Vec<Pod>, Fault> {
    let path = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{name}");
    let all: List<Pod> = cluster.get(&path, until).await?;
    Ok(all.items)
}

pub(crate) fn fate(pod: &Pod, node: &Node, now: OffsetDateTime) -> Fate {
    let meta = &pod.metadata;
    if meta.annotations.contains_key("kubernetes.io/config.mirror") {
        return Fate::Stays("static");
    }
    if meta.owner_references.iter().any(|owner| owner.controller && owner.kind == "DaemonSet") {
        return Fate::Stays("of a DaemonSet");
    }
    let is_deleted = meta.deletion_timestamp.is_some();
    if is_deleted && !meta.finalizers.is_empty() && is_over(pod) {
        return Fate::Stays("kept by a finalizer");
    }
    if !is_deleted && is_evicted_soon(pod, node, now) {
        return Fate::Evicted;
    }
    Fate::Goes
}

/// A volume of it is detached: it does not run, whatever its kubelet would say.
pub(crate) fn is_over(pod: &Pod) -> bool {
    matches!(pod.status.phase.as_str(), "Failed" | "Succeeded")
}

/// Whether taint eviction deletes it about now, for a taint that is not ours.
fn is_evicted_soon(pod: &Pod, node: &Node, now: OffsetDateTime) -> bool {
    let at = taints::evicting(node).filter_map(|(key, value, since)| {
        let since = OffsetDateTime::parse(since?, &Rfc3339).ok()?;
        let tolerating = pod.spec.tolerations.iter().filter(|one| tolerates(one, key, value));
        // The shortest counts; without any it is evicted at once, and one without a time tolerates for ever.
        let seconds = tolerating.map(|one| one.toleration_seconds).reduce(shortest).unwrap_or(Some(0))?;
        // One beyond the end of the calendar is never evicted.
        since.checked_add(time::Duration::seconds(seconds.max(0)))
    });
    let about = |at: OffsetDateTime| {
        let left = (at - now).whole_seconds();
        (-PATIENCE..=SOON).contains(&left)
    };
    at.into_iter().any(about)
}

fn shortest(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    [one, other].into_iter().flatten().min()
}

fn tolerates(one: &Toleration, key: &str, value: &str) -> bool {
    let of_effect = matches!(one.effect.as_str(), "" | "NoExecute");
    let of_key = one.key == key || one.key.is_empty() && one.operator == "Exists";
    let of_value = matches!(one.operator.as_str(), "" | "Equal") && one.value == value;
    of_effect && of_key && (one.operator == "Exists" || of_value)
}

/// A name for people.
pub(crate) fn words(pod: &Pod) -> String {
    format!("{}/{}", pod.metadata.namespace, pod.metadata.name)
}

/// The first of them, and how many more.
pub(crate) fn named(pods: &[&Pod]) -> String {
    remains::named(&pods.iter().map(|pod| words(pod)).collect::<Vec<_>>())
}

/// Whether it was deleted before, and something holds it.
pub(crate) fn is_held(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some() && !pod.metadata.finalizers.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SINCE: &str = "2026-01-01T00:00:00Z";

    fn at(seconds: i64) -> OffsetDateTime {
        OffsetDateTime::parse(SINCE, &Rfc3339).expect("a time") + time::Duration::seconds(seconds)
    }

    fn pod(value: Value) -> Pod {
        serde_json::from_value(value).expect("a pod")
    }

    fn unreachable() -> Node {
        let taint =
            json!({"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": SINCE});
        serde_json::from_value(json!({"spec": {"taints": [taint]}})).expect("a Node")
    }

    fn tolerating(seconds: Option<i64>) -> Pod {
        let mut toleration =
            json!({"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"});
        if let Some(seconds) = seconds {
            toleration["tolerationSeconds"] = json!(seconds);
        }
        pod(json!({"spec": {"tolerations": [toleration]}}))
    }

    #[test]
    fn static_pods_and_those_of_daemon_sets_stay() {
        let mirror = pod(json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}));
        assert_eq!(fate(&mirror, &Node::default(), at(0)), Fate::Stays("static"));
        let owned = |kind: &str, controller: bool| {
            pod(json!({"metadata": {"ownerReferences": [{"kind": kind, "controller": controller}]}}))
        };
        assert_eq!(fate(&owned("DaemonSet", true), &Node::default(), at(0)), Fate::Stays("of a DaemonSet"));
        for other in [owned("DaemonSet", false), owned("StatefulSet", true)] {
            assert_eq!(fate(&other, &Node::default(), at(0)), Fate::Goes);
        }
    }

    #[test]
    fn one_that_tolerates_beyond_the_end_of_the_calendar_is_never_evicted() {
        for seconds in [i64::MAX, 1_000_000_000_000, i64::MIN] {
            let soon = fate(&tolerating(Some(seconds)), &unreachable(), at(400));
            assert_eq!(soon, Fate::Goes, "{seconds}");
        }
    }

    #[test]
    fn what_a_finalizer_holds_stays_once_it_is_failed() {
        let held = |phase: &str| {
            let meta = json!({"finalizers": ["a/b"], "deletionTimestamp": SINCE});
            pod(json!({"metadata": meta, "status": {"phase": phase}}))
        };
        assert_eq!(fate(&held("Failed"), &Node::default(), at(0)), Fate::Stays("kept by a finalizer"));
        assert_eq!(
            fate(&held("Running"), &Node::default(), at(0)),
            Fate::Goes,
            "its volume would not be detached"
        );
    }

    #[test]
    fn whom_taint_eviction_is_about_to_delete_it_is_left_to_for_a_while() {
        let node = unreachable();
        for (seconds, now, fate_then) in [
            (Some(300), 0, Fate::Goes),
            (Some(300), 294, Fate::Goes),
            (Some(300), 295, Fate::Evicted),
            (Some(300), 330, Fate::Evicted),
            (Some(300), 331, Fate::Goes),
            (Some(3), 0, Fate::Evicted),
            (None, 1_000, Fate::Goes),
        ] {
            assert_eq!(fate(&tolerating(seconds), &node, at(now)), fate_then, "{seconds:?} at {now}");
        }
        let bare = pod(json!({}));
        assert_eq!(fate(&bare, &node, at(1)), Fate::Evicted);
        let deleted = pod(json!({"metadata": {"deletionTimestamp": SINCE}}));
        assert_eq!(fate(&deleted, &node, at(1)), Fate::Goes, "it was deleted by its name already");
    }

    #[test]
    fn the_shortest_toleration_counts() {
        let both = pod(json!({"spec": {"tolerations": [
            {"operator": "Exists"},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 10},
        ]}}));
        assert_eq!(fate(&both, &unreachable(), at(8)), Fate::Evicted);
    }
}
