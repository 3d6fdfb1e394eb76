//! Pods are deleted by their UIDs (K4), and deletions under way are refused once the pods are not to go any
//! more (S8).
//!
//! # Invariants
//!
//! - A pod that a policy or a webhook refuses keeps no other from being asked for: the pod behind that
//!   webhook may be the one whose going would heal it. Shown by
//!   `the_pod_behind_a_webhook_that_fails_closed_is_asked_for_in_the_first_round`.
//! - A deletion that is withdrawn is refused for every pod that can be changed. Shown by
//!   `a_deletion_on_its_way_is_refused_for_every_pod_that_can_be_changed`.

use std::collections::BTreeSet;

use futures::StreamExt;
use futures::stream::{self, FuturesUnordered};
use picket_reach::LastWord;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;

use crate::cluster::{Cluster, Patch};
use crate::fault::{Fault, Kind};
use crate::note::Ours;
use crate::object::{Node, Pod};
use crate::pods::{Fate, fate, is_over, of, words};

/// So many are deleted side by side.
const AT_ONCE: usize = 16;

/// Our annotation of a pod, with the owner behind it: the version that was read for it.
const OUTDATED: &str = "picket.dev/outdated-";

/// What became of pods that were to be deleted.
#[derive(Debug, Default)]
pub(crate) struct Deleted {
    /// So many were sent off.
    pub(crate) sent: usize,
    /// The UIDs of those that the API server would not delete.
    pub(crate) refused: BTreeSet<String>,
    /// The first of those, and why.
    pub(crate) why: Option<Fault>,
    /// What one of them met that the others meet as well, and after which none more was asked for: nobody answers, or the permit is over.
    pub(crate) ended: Option<Fault>,
}

impl Deleted {
    /// What keeps the attempt from having an end. That something may have happened is told before anything else.
    pub(crate) fn fault(&self) -> Option<&Fault> {
        let unknown = self.why.as_ref().filter(|why| why.unknown);
        self.ended.as_ref().filter(|ended| ended.unknown || unknown.is_none())
    }
}

/// Pods of a node that were refused: the next attempt asks for all others first, until each was asked for.
#[derive(Debug, Default)]
pub(crate) struct RefusedPods(BTreeSet<String>);

impl RefusedPods {
    /// Those that were not refused yet come first.
    pub(crate) fn in_turn<'p>(&mut self, mut pods: Vec<&'p Pod>) -> Vec<&'p Pod> {
        let is_refused = |pod: &&Pod| self.0.contains(&pod.metadata.uid);
        if pods.iter().all(is_refused) {
            self.0.clear();
        }
        pods.sort_by_key(|pod| self.0.contains(&pod.metadata.uid));
        pods
    }

    /// These were refused just now.
    pub(crate) fn note(&mut self, refused: &BTreeSet<String>) {
        self.0.extend(refused.iter().cloned());
    }
}

/// Deletes these, side by side, each request at that word, in that order.
pub(crate) async fn delete(cluster: &Cluster, pods: &[&Pod], word: &LastWord, until: Instant) -> Deleted {
    let mut waiting = pods.iter();
    let delete = async |pod: &Pod| (pod.metadata.uid.clone(), delete_one(cluster, pod, word, until).await);
    let mut deleting: FuturesUnordered<_> = waiting.by_ref().take(AT_ONCE).map(|pod| delete(pod)).collect();
    let mut deleted = Deleted::default();
    while let Some((uid, one)) = deleting.next().await {
        match one {
            Ok(()) => deleted.sent += 1,
            // Changed since it was read: it is looked at anew.
            Err(fault) if fault.is(Kind::Conflict) => {}
            Err(fault) if fault.is_of_one_object() => {
                deleted.refused.insert(uid);
                // That something may have happened is told before anything else.
                if deleted.why.as_ref().is_none_or(|known| fault.unknown && !known.unknown) {
                    deleted.why = Some(fault);
                }
            }
            // Those that are on their way are heard. A webhook may have taken all of the API server's time: it is asked for after the others.
            Err(fault) => {
                deleted.refused.insert(uid);
                if deleted.ended.as_ref().is_none_or(|known| fault.unknown && !known.unknown) {
                    deleted.ended = Some(fault);
                }
            }
        }
        if deleted.ended.is_none()
            && let Some(pod) = waiting.next()
        {
            deleting.push(delete(pod));
        }
    }
    deleted
}

/// Failed first, by a disruption (a Job counts such a one against nobody), then gone: both of this pod, by its UID.
async fn delete_one(cluster: &Cluster, pod: &Pod, word: &LastWord, until: Instant) -> Result<(), Fault> {
    let meta = &pod.metadata;
    let path = format!("/api/v1/namespaces/{}/pods/{}", meta.namespace, meta.name);
    let mut version = meta.resource_version.clone();
    if !is_over(pod) {
        let (status, failed) = (format!("{path}/status"), disrupted(&meta.uid, &version));
        match cluster.patch_at::<Pod>(Some(word), &status, Patch::Strategic, &failed, until).await {
            Ok(now) => version = now.metadata.resource_version,
            Err(fault) if fault.is(Kind::NotFound) => return Ok(()),
            // Whoever may delete pods, and not say how they ended, deletes them.
            Err(fault) if fault.is_of_one_object() => {
                tracing::warn!(pod = words(pod), %fault, "it is not told that the pod failed");
            }
            Err(fault) => return Err(fault),
        }
    }
    match cluster.delete(word, &path, (&meta.uid, &version), until).await {
        Err(fault) if !fault.is(Kind::NotFound) => Err(fault),
        _ => Ok(()),
    }
}

/// Whatever is on its way to delete a pod of that Node, and goes by what was read before, is refused from now on: each pod has another version (S8).
pub(crate) async fn outdate(cluster: &Cluster, name: &str, ours: &Ours, until: Instant) -> Result<(), Fault> {
    let (mut pods, now) = (of(cluster, name, until).await?, OffsetDateTime::now_utc());
    pods.retain(|pod| !matches!(fate(pod, &Node::default(), now), Fate::Stays(_)));
    let outdating = pods.into_iter().map(|pod| async move { outdate_one(cluster, &pod, ours, until).await });
    // One that fails keeps none of the others as it is.
    let outdated: Vec<Result<(), Fault>> = stream::iter(outdating).buffer_unordered(AT_ONCE).collect().await;
    outdated.into_iter().collect()
}

async fn outdate_one(cluster: &Cluster, pod: &Pod, ours: &Ours, until: Instant) -> Result<(), Fault> {
    let (meta, key) = (&pod.metadata, format!("{OUTDATED}{}", ours.owner));
    let path = format!("/api/v1/namespaces/{}/pods/{}/status", meta.namespace, meta.name);
    let patch = json!({ "metadata": { "uid": meta.uid, "annotations": { key: meta.resource_version } } });
    match cluster.patch::<Pod>(&path, Patch::Strategic, &patch, until).await {
        // Another pod has its name.
        Err(fault) if fault.is(Kind::NotFound) || fault.is(Kind::Conflict) => Ok(()),
        // The check names the right that is lacking; the machine is not kept off for that.
        Err(fault) if fault.is(Kind::Refused) || fault.is(Kind::Invalid) => {
            tracing::warn!(pod = words(pod), %fault, "a deletion that is on its way to the pod is not refused");
            Ok(())
        }
        outdated => outdated.map(drop),
    }
}

fn disrupted(uid: &str, version: &str) -> Value {
    let now = OffsetDateTime::now_utc().replace_nanosecond(0).ok().and_then(|now| now.format(&Rfc3339).ok());
    json!({
        "metadata": { "uid": uid, "resourceVersion": version },
        "status": {
            "phase": "Failed",
            "reason": "NodeFenced",
            "message": "the node was switched off, and proven to be off",
            "conditions": [{
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "NodeFenced",
                "message": "Picket: the node was switched off, and proven to be off",
                "lastTransitionTime": now,
            }],
        },
    })
}
