//! Tells the cluster, one thing after the other. What cannot be told is counted, and nothing waits for it.

use std::sync::Arc;

use picket_metrics::Metrics;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::api::Api;
use crate::lead::Leading;
use crate::measured::UNTOLD;
use crate::medik8s::{self, Leases};
use crate::mind::{Node, Note, WishId};
use crate::remediation::{self, Kept};
use crate::told;

/// So much may wait.
const ROOM: usize = 2_048;

/// What is told.
#[derive(Debug)]
pub enum Tell {
    /// An Event on a Node: name, UID, reason, words.
    Event(String, String, &'static str, String),
    /// A note on a Node; `None`: it is taken away.
    Note(Box<Node>, Option<Note>),
    /// A policy's status.
    Status(String, Value),
    /// A remediation's status.
    Wish(WishId, Value),
    /// Our finalizer stands on a remediation, or does not.
    Keep(WishId, Kept),
    /// We work on that Node still.
    Renew(Box<Node>),
    /// We do not any more.
    GiveBack(String),
}

/// Where to say what is to be told.
#[derive(Clone, Debug)]
pub struct Teller {
    to: mpsc::Sender<Tell>,
    /// Finalizers: without its own a remediation asks for nothing, and so none of them waits behind what is only told.
    keeps: mpsc::Sender<Tell>,
    metrics: Metrics,
}

impl Teller {
    /// The teller, and what must be polled so that it tells.
    pub fn new(
        api: Api,
        identity: String,
        others: Arc<Leases>,
        leading: Leading,
        metrics: Metrics,
    ) -> (Self, impl Future<Output = ()>) {
        let ((to, mut from), (keeps, mut kept)) = (mpsc::channel(ROOM), mpsc::channel(ROOM));
        let counted = metrics.clone();
        let telling = async move {
            while let Some(one) = next(&mut from, &mut kept).await {
                // What waited may be older by now than what another replica says; a lease of ours is given back all the same.
                if !leading.now() && !matches!(one, Tell::GiveBack(_)) {
                    counted.count(&UNTOLD, &[]);
                    continue;
                }
                let told = match &one {
                    Tell::Event(name, uid, reason, text) => {
                        told::event(&api, &identity, (name, uid), reason, text).await
                    }
                    Tell::Note(node, note) => told::note(&api, node, note.as_ref()).await,
                    Tell::Status(policy, status) => told::write_status(&api, policy, status).await,
                    Tell::Wish(wish, status) => remediation::write_status(&api, wish, status).await,
                    Tell::Keep(wish, kept) => remediation::keep(&api, wish, *kept).await,
                    Tell::Renew(node) => medik8s::take(&api, node, &others).await.map(drop),
                    Tell::GiveBack(node) => medik8s::give_back(&api, node, &others).await,
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
        (Self { to, keeps, metrics }, telling)
    }

    /// Tells that, soon.
    pub fn tell(&self, what: Tell) {
        let to = if matches!(what, Tell::Keep(..)) { &self.keeps } else { &self.to };
        if to.try_send(what).is_err() {
            self.metrics.count(&UNTOLD, &[]);
        }
    }

    /// An Event on a Node, and a line in the log.
    pub fn event(&self, node: &Node, reason: &'static str, text: &str) {
        tracing::info!(node = %node.name, reason, text);
        self.tell(Tell::Event(node.name.clone(), node.uid.clone(), reason, text.to_owned()));
    }
}

/// What is told next: either of them in turn, by chance, so that neither keeps the other waiting.
async fn next(from: &mut mpsc::Receiver<Tell>, kept: &mut mpsc::Receiver<Tell>) -> Option<Tell> {
    tokio::select! {
        Some(one) = from.recv() => Some(one),
        Some(one) = kept.recv() => Some(one),
        else => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K12: statuses that many remediations want to have told keep no other one from what it needs to ask.
    #[tokio::test]
    async fn a_finalizer_is_placed_however_much_is_to_be_told() {
        let ((to, mut from), (keeps, mut kept)) = (mpsc::channel(ROOM), mpsc::channel(ROOM));
        let teller = Teller { to, keeps, metrics: crate::measured::metrics() };
        let wish = WishId {
            namespace: "medik8s".to_owned(),
            name: "n1".to_owned(),
            uid: "u".to_owned(),
            health_check: None,
        };
        (0..ROOM + 1).for_each(|_| teller.tell(Tell::Wish(wish.clone(), Value::Null)));
        teller.tell(Tell::Keep(wish, Kept::Stands));
        // Nothing more comes: what was dropped is not waited for.
        drop(teller);
        let mut others = 0;
        while !matches!(next(&mut from, &mut kept).await.expect("there is more"), Tell::Keep(..)) {
            others += 1;
        }
        assert!(others < ROOM / 2, "{others}");
        while next(&mut from, &mut kept).await.is_some() {}
    }
}
