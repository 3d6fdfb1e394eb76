//! The facade: leads, runs a task a node, and lets callers in.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use picket_audit::{Audit, Told};
use picket_core::election::{self, Leadership};
use picket_core::event::Person;
use picket_core::ids::{FenceId, NodeId, ReleaseId, Revision, Term, Version};
use picket_core::near::near;
use picket_core::outcome::Outcome;
use picket_core::record::{Fence, NodeRecord};
use picket_core::store::{FenceQuery, StoreError, Stored};
use picket_core::time::Clock;
use picket_core::time::WallTime;
use tokio::sync::{Mutex, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::EngineError;
use crate::node::{Command, Kept, NodeTask, Outlets};
use crate::parts::{NodePlan, Parts};
use crate::request::{Admission, Ask, FenceCall, Taken, Until, outcome_of};
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
}

#[derive(Debug)]
struct Shared {
    parts: Arc<Parts>,
    slots: BTreeMap<NodeId, Slot>,
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
        let lead = watch::Sender::new(Lead::No("starting".to_owned()));
        Self { shared: Arc::new(Shared { parts: Arc::new(parts), slots, feed, lead }) }
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

    fn slot(&self, node: &NodeId) -> Result<&Slot, EngineError> {
        self.shared.slots.get(node).ok_or_else(|| EngineError::UnknownNode {
            name: node.to_string(),
            near: near(node.as_str(), self.shared.slots.keys().map(NodeId::as_str))
                .into_iter()
                .map(str::to_owned)
                .collect(),
        })
    }

    async fn ask<T>(
        &self,
        node: &NodeId,
        make: impl FnOnce(oneshot::Sender<Result<T, EngineError>>) -> Command,
    ) -> Result<T, EngineError> {
        let (reply, answer) = oneshot::channel();
        let command = make(reply);
        let asked = command.asked();
        // What reaches the node's task is told by it, with what became of it.
        let refused = |error: EngineError| {
            if let Some(asked) = asked.clone() {
                let at = self.shared.parts.clock.wall().millis();
                let entry =
                    Told { at, what: "request".to_owned(), node: Some(node.to_string()), ..Told::default() };
                self.shared.parts.audit.tell_counted(asked.told(entry, Err(error.to_string())));
            }
            error
        };
        let slot = self.slot(node).map_err(refused)?;
        if let Lead::No(why) = &*self.shared.lead.borrow() {
            return Err(refused(EngineError::NoLeader(why.clone())));
        }
        let gone = || EngineError::NoLeader("leadership ended while the request waited".to_owned());
        slot.mailbox.send(command).await.map_err(|_| refused(gone()))?;
        answer.await.map_err(|_| refused(gone()))?
    }

    /// Opens or joins the fence of a node. A caller who leaves does not stop it.
    pub async fn fence(&self, node: &NodeId, call: FenceCall) -> Result<Admission, EngineError> {
        self.ask(node, |reply| Command::Fence(Box::new(call), reply)).await
    }

    /// Drops a hold; with none left the node is brought back.
    pub async fn unfence(
        &self,
        node: &NodeId,
        holder: String,
        ask: impl Into<Ask>,
    ) -> Result<Taken, EngineError> {
        self.ask(node, |reply| Command::Unfence { holder, ask: ask.into(), reply }).await
    }

    /// Tries again what waits for a person.
    pub async fn retry(&self, node: &NodeId, ask: impl Into<Ask>) -> Result<Taken, EngineError> {
        self.ask(node, |reply| Command::Retry(ask.into(), reply)).await
    }

    /// Gives a release up, by name.
    pub async fn abandon(
        &self,
        node: &NodeId,
        release: ReleaseId,
        ask: impl Into<Ask>,
    ) -> Result<NodeRecord, EngineError> {
        match self.ask(node, |reply| Command::Abandon(release, ask.into(), reply)).await? {
            Taken::Now(record) => Ok(*record),
            Taken::Before(_) => Ok(self.node(node)?.stored.record),
        }
    }

    /// It was alive: undo, without an on of the host.
    pub async fn stand_down(&self, node: &NodeId, ask: impl Into<Ask>) -> Result<Taken, EngineError> {
        self.ask(node, |reply| Command::StandDown(ask.into(), reply)).await
    }

    /// A person vouches that the node is off.
    pub async fn attest(&self, node: &NodeId, person: Person) -> Result<NodeRecord, EngineError> {
        self.ask(node, |reply| Command::Attest(person, reply)).await
    }

    /// Asks all devices of the node now; what they say is in its view afterwards.
    pub async fn check(&self, node: &NodeId) -> Result<NodeView, EngineError> {
        match self.ask(node, Command::Check).await {
            // A fence ended the check: what is known is what its readings say.
            Ok(_) | Err(EngineError::NoLeader(_)) => self.node(node),
            Err(error) => Err(error),
        }
    }

    /// What is known of a node.
    pub fn node(&self, node: &NodeId) -> Result<NodeView, EngineError> {
        Ok(self.slot(node)?.view.borrow().clone())
    }

    /// All nodes, by name.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView> + '_ {
        self.shared.slots.values().map(|slot| slot.view.borrow().clone())
    }

    /// The names of all nodes.
    pub fn names(&self) -> impl Iterator<Item = &NodeId> {
        self.shared.slots.keys()
    }

    /// Follows a node: the present at once, then each change (coalesced for a slow follower).
    pub fn follow(&self, node: &NodeId) -> Result<watch::Receiver<NodeView>, EngineError> {
        let mut view = self.slot(node)?.view.subscribe();
        view.mark_changed();
        Ok(view)
    }

    /// Stored changes of all nodes, from now on.
    pub fn feed(&self) -> broadcast::Receiver<(Revision, NodeId)> {
        self.shared.feed.subscribe()
    }

    /// The newest revision, and the store's life that it belongs to.
    pub async fn revision(&self) -> Result<(picket_core::ids::Incarnation, Revision), EngineError> {
        let store = &self.shared.parts.store;
        Ok((store.incarnation(), store.revision().await?))
    }

    /// Nodes that changed after a revision of the same life of the store.
    pub async fn changed_since(&self, since: Revision) -> Result<Vec<(Revision, NodeId)>, EngineError> {
        Ok(self.shared.parts.store.changed_since(since).await?)
    }

    /// One fence, open or of the history.
    pub async fn get_fence(&self, id: FenceId) -> Result<Option<Fence>, EngineError> {
        Ok(self.shared.parts.store.fence(id).await?)
    }

    /// Fences, newest first.
    pub async fn fences(&self, query: FenceQuery) -> Result<Vec<Fence>, EngineError> {
        Ok(self.shared.parts.store.fences(query).await?)
    }

    /// The fence `id` as it stands in `view`, or in the history where the node has moved on, and its outcome for a
    /// caller who waits `until` and wants at least `grade`.
    pub async fn outcome(
        &self,
        view: &NodeView,
        id: FenceId,
        until: Until,
        grade: Option<picket_core::device::Grade>,
    ) -> Result<(Option<Fence>, Option<Outcome>), EngineError> {
        let fence = match view.stored.record.fence.clone().filter(|fence| fence.id == id) {
            Some(fence) => fence,
            None => match self.get_fence(id).await? {
                Some(fence) => fence,
                None => return Ok((None, None)),
            },
        };
        let ended = fence.ended_at.is_some();
        let outcome = match outcome_of(&fence, until, grade) {
            // Ended by a breach or another fence before it came to what this caller waited for.
            None if ended => Some(Outcome::Superseded),
            outcome => outcome,
        };
        Ok((Some(fence), outcome))
    }

    /// The term led here, or why none is.
    pub fn leading(&self) -> Result<Term, String> {
        match &*self.shared.lead.borrow() {
            Lead::Yes(leadership) => Ok(leadership.term()),
            Lead::No(why) => Err(why.clone()),
        }
    }

    /// What is told of everything that was asked, decided and done.
    pub fn audit(&self) -> &Audit {
        &self.shared.parts.audit
    }

    /// The clocks by which it works.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.parts.clock
    }

    /// Waits until the leadership of `term` is over, or another one has begun here.
    pub async fn until_over(&self, term: Term) {
        let mut lead = self.shared.lead.subscribe();
        let over = |lead: &Lead| !matches!(lead, Lead::Yes(leadership) if leadership.term() == term);
        let _ = lead.wait_for(over).await;
    }

    /// Waits until this gateway leads.
    pub async fn until_leading(&self) {
        let mut lead = self.shared.lead.subscribe();
        let _ = lead.wait_for(|lead| matches!(lead, Lead::Yes(_))).await;
    }
}
