//! The facade: leads, runs a task a node, and lets callers in.

mod asks;
mod reads;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use picket_core::election::{self, Leadership};
use picket_core::groups::Groups;
use picket_core::ids::{NodeId, Revision, Version};
use picket_core::record::NodeRecord;
use picket_core::store::{StoreError, Stored};
use picket_core::time::WallTime;
use tokio::sync::{Mutex, Semaphore, broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::node::{Command, Kept, NodeTask, Outlets};
use crate::parts::{NodePlan, Parts};
use crate::view::{Live, NodeView};

/// Requests that may wait for one node's task.
const MAILBOX: usize = 64;
/// Changes that a slow watcher may fall behind before it must start again.
const FEED: usize = 4_096;
/// Nodes that are checked side by side after the start.
const CHECKS: usize = 64;
/// How often the history forgets what is too old.
const FORGETTING: Duration = Duration::from_secs(3_600);
/// How often the permit's clocks are looked at.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// What stays of a node while leaderships come and go.
#[derive(Debug)]
struct Slot {
    plan: Arc<NodePlan>,
    mailbox: mpsc::Sender<Command>,
    /// Taken by the node's task while this gateway leads.
    kept: Arc<Mutex<Kept>>,
    view: Arc<watch::Sender<NodeView>>,
}

/// Who leads here.
#[derive(Clone, Debug)]
enum Lead {
    No(String),
    Yes(Arc<Leadership>),
}

/// The engine. Cheap to clone; all clones are the same engine.
#[derive(Clone, Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    /// In which roles it is asked, for the audit.
    role: Arc<str>,
}

#[derive(Debug)]
struct Shared {
    parts: Arc<Parts>,
    slots: BTreeMap<NodeId, Slot>,
    groups: Groups,
    feed: broadcast::Sender<(Revision, NodeId)>,
    lead: watch::Sender<Lead>,
}

impl Engine {
    /// An engine over these parts. Nothing runs before [`Engine::run`].
    pub fn new(parts: Parts) -> Self {
        let (feed, _) = broadcast::channel(FEED);
        let slots = parts.nodes.iter().map(|plan| {
            let plan = Arc::new(plan.clone());
            let (mailbox, inbox) = mpsc::channel(MAILBOX);
            let stored = Stored {
                version: Version(0),
                revision: Revision(0),
                record: NodeRecord::new(plan.id.clone()),
            };
            let view = NodeView { stored, live: Live::default(), plan: plan.clone() };
            let slot = Slot {
                plan: plan.clone(),
                mailbox,
                kept: Arc::new(Mutex::new(Kept::new(inbox))),
                view: Arc::new(watch::Sender::new(view)),
            };
            (plan.id.clone(), slot)
        });
        let slots = slots.collect();
        let groups = Groups::of_nodes(parts.nodes.iter().map(|plan| (&plan.id, &plan.groups)));
        let lead = watch::Sender::new(Lead::No("starting".to_owned()));
        Self {
            shared: Arc::new(Shared { parts: Arc::new(parts), slots, groups, feed, lead }),
            role: Arc::from(""),
        }
    }

    /// The same engine, asked by somebody with these roles: what is asked of it is audited so.
    pub fn acting_as(&self, roles: &str) -> Self {
        Self { shared: self.shared.clone(), role: Arc::from(roles) }
    }

    /// Leads and works until `stop`. Returns an error only where going on would be wrong: a damaged store.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), StoreError> {
        let result = loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break Ok(()),
                result = self.lead_once(&stop) => match result {
                    Err(error @ StoreError::Damaged(_)) => break Err(error),
                    Err(error) => {
                        tracing::warn!(%error, "leadership ended; standing again");
                        self.shared.lead.send_replace(Lead::No(error.to_string()));
                    }
                    Ok(()) => {}
                }
            }
            if stop.is_cancelled() {
                break Ok(());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        self.shared.lead.send_replace(Lead::No("stopped".to_owned()));
        let _ = self.shared.parts.election.resign().await;
        result
    }

    /// One leadership, from its beginning to its end.
    async fn lead_once(&self, stop: &CancellationToken) -> Result<(), StoreError> {
        let parts = &self.shared.parts;
        let leadership = election::lead(&*parts.election, parts.clock.clone(), parts.rules.clock_jump)
            .await
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        tracing::info!(term = leadership.term().0, "leading");
        let mut stored: BTreeMap<NodeId, Stored> =
            parts.store.load_all().await?.into_iter().map(|one| (one.record.node.clone(), one)).collect();
        let over = CancellationToken::new();
        let turns = Arc::new(Semaphore::new(CHECKS));
        let mut tasks = JoinSet::new();
        for (id, slot) in &self.shared.slots {
            let one = stored.remove(id).unwrap_or_else(|| slot.view.borrow().stored.clone());
            tasks.spawn(self.node_task(slot, one, leadership.clone(), turns.clone(), over.clone()));
        }
        for (id, orphan) in stored {
            let phase = orphan.record.phase.label();
            tracing::error!(node = %id, phase, "the store has a record of a node that is not in the settings");
        }
        self.shared.lead.send_replace(Lead::Yes(leadership.clone()));
        let mut forget_at = parts.clock.boot();
        let ended = loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break Ok(()),
                done = tasks.join_next() => match done {
                    Some(Ok(Some(error))) => break Err(error),
                    Some(Ok(None)) | None => break Ok(()),
                    Some(Err(panic)) => break Err(StoreError::Unknown(format!("a node's task ended: {panic}"))),
                },
                () = tokio::time::sleep(HEARTBEAT) => {
                    if let Err(ended) = leadership.check() {
                        break Err(StoreError::Deposed(ended.to_string()));
                    }
                    if parts.clock.boot() >= forget_at {
                        forget_at = parts.clock.boot() + FORGETTING;
                        self.forget(&leadership).await;
                    }
                }
            }
        };
        self.shared.lead.send_replace(Lead::No("leadership ended".to_owned()));
        leadership.end();
        over.cancel();
        while tasks.join_next().await.is_some() {}
        ended
    }

    /// Ended fences, and their keys, are kept as long as the rules say. What cannot be forgotten now is forgotten later.
    async fn forget(&self, leadership: &Leadership) {
        let parts = &self.shared.parts;
        let kept = u64::try_from(parts.rules.history.as_millis()).unwrap_or(u64::MAX);
        let before = WallTime::from_millis(parts.clock.wall().millis().saturating_sub(kept));
        match parts.store.forget(leadership.guard(), before).await {
            Ok(0) => {}
            Ok(fences) => tracing::info!(fences, "the history forgot what is too old"),
            Err(error) => tracing::warn!(%error, "the history did not forget what is too old"),
        }
    }

    fn node_task(
        &self,
        slot: &Slot,
        stored: Stored,
        leadership: Arc<Leadership>,
        turns: Arc<Semaphore>,
        over: CancellationToken,
    ) -> impl Future<Output = Option<StoreError>> + Send + 'static {
        let (parts, plan, kept) = (self.shared.parts.clone(), slot.plan.clone(), slot.kept.clone());
        let outlets = Outlets { view: slot.view.clone(), feed: self.shared.feed.clone(), turns };
        async move {
            let mut kept = kept.lock().await;
            // The task owns its mailbox while it runs; the placeholder only stands in.
            let taken = std::mem::replace(&mut *kept, Kept::new(mpsc::channel(1).1));
            let mut task = NodeTask::new(parts, plan, leadership, stored, taken, outlets);
            let ended = tokio::select! {
                biased;
                () = over.cancelled() => None,
                // After a panic the node's mailbox, and what it knows to be its own, must serve the next leadership.
                fatal = AssertUnwindSafe(task.run()).catch_unwind() => Some(match fatal {
                    Ok(fatal) => fatal.0,
                    Err(_) => StoreError::Unknown("a node's task ended in a panic".to_owned()),
                }),
            };
            *kept = task.keep();
            ended
        }
    }
}
