//! Tells the cluster, one thing after the other. What cannot be told is counted, and nothing waits for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use picket_metrics::Metrics;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::api::Api;
use crate::decider::{Node, Note, RemediationId};
use crate::events::{self, EventSubject};
use crate::leader_election::LeadershipWatch;
use crate::measured::UNTOLD;
use crate::medik8s::{self, Medik8sLeases};
use crate::remediation::{self, FinalizerState};

/// So much may wait.
const ROOM: usize = 2_048;
/// So many finalizers of one namespace may wait: some two seconds of work for each namespace before another one's turn.
const PLACES: usize = 16;
/// And so many statuses of its remediations: what else there is to tell shares [`ROOM`] with them.
const STATUSES: usize = 64;

/// What is told.
#[derive(Debug)]
pub enum ClusterWrite {
    /// An Event: on what, reason, words.
    Event(EventSubject, &'static str, String),
    /// A note on a Node; `None`: it is taken away.
    Note(Box<Node>, Option<Note>),
    /// A policy's status.
    Status(String, Value),
    /// A remediation's status.
    Remediation(RemediationId, Value),
    /// Our finalizer stands on a remediation, or does not.
    Keep(RemediationId, FinalizerState),
    /// We work on that Node still.
    Renew(Box<Node>),
    /// We do not any more.
    GiveBack(String),
}

/// Where to say what is to be told.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    to: mpsc::Sender<Queued>,
    /// Finalizers: without its own a remediation asks for nothing, and so none of them waits behind what is only told.
    keeps: mpsc::Sender<Queued>,
    /// By the namespaces that the settings name.
    places: BTreeMap<String, Places>,
    /// Of all other namespaces together.
    elsewhere: Places,
    metrics: Metrics,
}

/// How much of a namespace may wait.
#[derive(Clone, Debug)]
struct Places {
    finalizers: Arc<Semaphore>,
    statuses: Arc<Semaphore>,
}

impl Places {
    fn new() -> Self {
        let of = |count| Arc::new(Semaphore::new(count));
        Self { finalizers: of(PLACES), statuses: of(STATUSES) }
    }
}

/// What is told, and the place of its namespace that it takes until then.
type Queued = (ClusterWrite, Option<OwnedSemaphorePermit>);

/// What waits to be told: what is only told, and finalizers.
#[derive(Debug)]
pub(crate) struct Waiting(mpsc::Receiver<Queued>, mpsc::Receiver<Queued>);

impl EventRecorder {
    /// The event recorder, and what must be polled so that it tells. `namespaces`: those whose remediations count.
    pub fn new(
        api: Api,
        identity: String,
        others: Arc<Medik8sLeases>,
        leading: LeadershipWatch,
        metrics: Metrics,
        namespaces: &[String],
    ) -> (Self, impl Future<Output = ()> + use<>) {
        let counted = metrics.clone();
        let (recorder, mut waiting) = Self::telling(namespaces, metrics);
        let telling = async move {
            while let Some((one, _place)) = waiting.next().await {
                // What waited may be older by now than what another replica says; a lease of ours is given back all the same.
                if !leading.now() && !matches!(one, ClusterWrite::GiveBack(_)) {
                    counted.count(&UNTOLD, &[]);
                    continue;
                }
                let told = match &one {
                    ClusterWrite::Event(about, reason, text) => {
                        events::event(&api, &identity, about, reason, text).await
                    }
                    ClusterWrite::Note(node, note) => events::note(&api, node, note.as_ref()).await,
                    ClusterWrite::Status(policy, status) => events::write_status(&api, policy, status).await,
                    ClusterWrite::Remediation(remediation, status) => {
                        remediation::write_status(&api, remediation, status).await
                    }
                    ClusterWrite::Keep(remediation, kept) => {
                        remediation::keep(&api, remediation, *kept).await
                    }
                    ClusterWrite::Renew(node) => medik8s::take(&api, node, &others).await.map(drop),
                    ClusterWrite::GiveBack(node) => medik8s::give_back(&api, node, &others).await,
                };
                match told {
                    // It is another Node by now, or is gone.
                    Err(fault) if fault.is_changed() || fault.is_not_found() => {}
                    Err(fault) => {
                        counted.count(&UNTOLD, &[]);
                        tracing::warn!(%fault, "it cannot be told");
                    }
                    Ok(()) => {}
                }
            }
        };
        (recorder, telling)
    }

    /// The event recorder, and what it is told.
    pub(crate) fn telling(namespaces: &[String], metrics: Metrics) -> (Self, Waiting) {
        // Whatever has a place has room.
        let (keeps, kept) = mpsc::channel(PLACES * (namespaces.len() + 1));
        let (to, from) = mpsc::channel(ROOM);
        let by_namespace = namespaces.iter().map(|one| (one.clone(), Places::new())).collect();
        let recorder = Self { to, keeps, places: by_namespace, elsewhere: Places::new(), metrics };
        (recorder, Waiting(from, kept))
    }

    /// Tells that, soon.
    pub fn tell(&self, what: ClusterWrite) {
        if self.to.try_send((what, None)).is_err() {
            self.metrics.count(&UNTOLD, &[]);
        }
    }

    /// Places our finalizer, or takes it away, soon. False: its namespace has no place left, and it is to be said again.
    pub fn keep(&self, remediation: &RemediationId, kept: FinalizerState) -> bool {
        let Ok(place) = self.places_of(remediation).finalizers.clone().try_acquire_owned() else {
            return false;
        };
        self.keeps.try_send((ClusterWrite::Keep(remediation.clone(), kept), Some(place))).is_ok()
    }

    /// Tells a remediation's status, soon. False: the same.
    pub fn status(&self, remediation: &RemediationId, status: &Value) -> bool {
        let Ok(place) = self.places_of(remediation).statuses.clone().try_acquire_owned() else {
            return false;
        };
        self.to
            .try_send((ClusterWrite::Remediation(remediation.clone(), status.clone()), Some(place)))
            .is_ok()
    }

    fn places_of(&self, remediation: &RemediationId) -> &Places {
        self.places.get(&remediation.namespace).unwrap_or(&self.elsewhere)
    }

    /// An Event on a Node, and a line in the log.
    pub fn event(&self, node: &Node, reason: &'static str, text: &str) {
        tracing::info!(node = %node.name, reason, text);
        self.tell(ClusterWrite::Event(EventSubject::node(node), reason, text.to_owned()));
    }

    /// The same on a policy.
    pub fn policy_event(&self, name: &str, uid: &str, reason: &'static str, text: &str) {
        tracing::warn!(policy = name, reason, text);
        self.tell(ClusterWrite::Event(EventSubject::policy(name, uid), reason, text.to_owned()));
    }
}

impl Waiting {
    /// What is told next: either of them in turn, by chance, so that neither keeps the other waiting.
    pub(crate) async fn next(&mut self) -> Option<Queued> {
        tokio::select! {
            Some(one) = self.0.recv() => Some(one),
            Some(one) = self.1.recv() => Some(one),
            else => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remediation(namespace: &str, name: &str) -> RemediationId {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        RemediationId { uid: format!("{namespace}/{name}"), namespace, name, health_check: None }
    }

    fn recorder(namespaces: &[&str]) -> (EventRecorder, Waiting) {
        let namespaces: Vec<String> = namespaces.iter().map(|one| (*one).to_owned()).collect();
        EventRecorder::telling(&namespaces, crate::measured::metrics())
    }

    /// K12: statuses that many remediations want to have told keep no other one from what it needs to ask.
    #[tokio::test]
    async fn a_finalizer_is_placed_however_much_is_to_be_told() {
        let (recorder, mut waiting) = recorder(&["medik8s"]);
        let remediation = remediation("medik8s", "n1");
        (0..ROOM + 1).for_each(|_| recorder.tell(ClusterWrite::GiveBack("n1".to_owned())));
        assert!(recorder.keep(&remediation, FinalizerState::Stands));
        // Nothing more comes: what was dropped is not waited for.
        drop(recorder);
        let mut others = 0;
        while !matches!(waiting.next().await.expect("there is more"), (ClusterWrite::Keep(..), _)) {
            others += 1;
        }
        assert!(others < ROOM / 2, "{others}");
        while waiting.next().await.is_some() {}
    }

    /// K12, S14: neither the owner of another namespace nor that of one of several named ones takes the places of NodeHealthCheck's.
    #[tokio::test]
    async fn no_namespace_takes_another_one_s_places_for_finalizers() {
        let (recorder, mut waiting) = recorder(&["a-ns", "medik8s"]);
        for many in ["a-ns", "else1", "else2"] {
            (0..3 * ROOM)
                .for_each(|n| _ = recorder.keep(&remediation(many, &n.to_string()), FinalizerState::Not));
        }
        let own = remediation("medik8s", "n1");
        assert!(recorder.keep(&own, FinalizerState::Stands));
        let mut before = 0;
        while !matches!(waiting.next().await, Some((ClusterWrite::Keep(one, _), _)) if one == own) {
            before += 1;
        }
        assert_eq!(before, 2 * PLACES);
        // A place is free again once its finalizer was seen to.
        assert!(
            (0..PLACES).all(|n| recorder.keep(&remediation("a-ns", &n.to_string()), FinalizerState::Stands))
        );
        assert!(!recorder.keep(&remediation("a-ns", "one more"), FinalizerState::Stands));
    }
    /// S14: what the owner of one namespace has told leaves room for Events, notes and leases, and for the statuses of the others.
    #[tokio::test]
    async fn statuses_of_one_namespace_leave_room_for_what_else_is_told() {
        let (recorder, mut waiting) = recorder(&["a-ns", "medik8s"]);
        for many in ["a-ns", "else1", "else2"] {
            (0..3 * ROOM).for_each(|n| _ = recorder.status(&remediation(many, &n.to_string()), &Value::Null));
        }
        let own = remediation("medik8s", "n1");
        assert!(recorder.status(&own, &Value::Null));
        recorder.tell(ClusterWrite::GiveBack("n1".to_owned()));
        let mut before = 0;
        while !matches!(waiting.next().await, Some((ClusterWrite::GiveBack(_), _))) {
            before += 1;
        }
        assert_eq!(before, 2 * STATUSES + 1);
        assert!(
            recorder.status(&remediation("a-ns", "one more"), &Value::Null),
            "what was told has left its place"
        );
    }
}
