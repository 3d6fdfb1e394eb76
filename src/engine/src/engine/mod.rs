//! The facade: leads, runs a task a node, and lets callers in.

mod asks;
mod backup;
mod change;
mod ending;
mod fleet;
mod following;
mod keeping;
mod parents;
mod pauses;
mod queue;
mod reads;
mod receipts;
mod settled;
mod showing;
mod wishes;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

pub use change::{Change, ChangeError, Changed};
use fleet::{Fleet, Slot};
use following::Following;
pub use following::Part;
use futures::FutureExt;
use parking_lot::RwLock;
use picket_core::election::Leadership;
use picket_core::ids::{NodeId, Revision};
use picket_core::store::{StoreError, Stored};
use settled::Seen;
use tokio::sync::{Mutex, broadcast, mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::hooks::gated;
use crate::node::{Gone, Inbox, Kept, NodeTask, Outlets, Turns};
use crate::office::Office;
use crate::parents::Nodes;
use crate::parts::Parts;
use crate::request::Acting;
use crate::work::Work;

/// Changes that a slow watcher may fall behind before it must start again.
const FEED: usize = 4_096;
/// Nodes that are checked side by side after the start; and as many are tidied up after.
const CHECKS: usize = 64;
/// After a leadership ended the next one is stood for after this time.
const AGAIN: Duration = Duration::from_secs(1);
/// A node whose task so many defects of ours ended is left alone: each of them ended the leadership over the whole fleet.
const PANICS: u32 = 3;
/// Why nobody leads here once it has ended.
const STOPPED: &str = "stopped";
/// How often the permit's clocks are looked at.
const HEARTBEAT: Duration = Duration::from_millis(500);

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
    /// In which roles it is asked.
    acting: Arc<Acting>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    /// What never changes: clocks, randomness, store, election, audit.
    parts: Arc<Parts>,
    fleet: RwLock<Fleet>,
    office: Arc<Office>,
    feed: broadcast::Sender<(Revision, NodeId)>,
    shown: broadcast::Sender<NodeId>,
    lead: watch::Sender<Lead>,
    /// What is known here while another one leads.
    following: watch::Sender<Following>,
    asks: mpsc::Sender<change::Asked>,
    asked: Mutex<mpsc::Receiver<change::Asked>>,
    work: Work,
    seen: Seen,
}

/// One leadership, and the tasks of its nodes.
struct Reign {
    leadership: Arc<Leadership>,
    over: CancellationToken,
    turns: Arc<Turns>,
    /// In boxes: a task keeps room for what it ends with from its beginning on.
    tasks: JoinSet<Box<Ended>>,
    /// The queue's runner.
    queue: JoinSet<()>,
}

/// How a node's task ended.
struct Ended {
    node: NodeId,
    stored: Arc<Stored>,
    /// `None`: the leadership is over.
    gone: Option<Gone>,
}

impl Engine {
    /// An engine over these parts. Nothing runs before [`Engine::run`].
    pub fn new(parts: Parts) -> Self {
        let (feed, _) = broadcast::channel(FEED);
        let (shown, _) = broadcast::channel(FEED);
        let (asks, asked) = mpsc::channel(1);
        let lead = watch::Sender::new(Lead::No("starting".to_owned()));
        let fleet = Fleet::new(parts);
        let office = Arc::new(Office::new(&fleet.parts, &fleet.plans));
        let shared = Shared {
            parts: fleet.parts.clone(),
            fleet: RwLock::new(fleet),
            office,
            feed,
            shown,
            lead,
            following: watch::Sender::default(),
            asks,
            asked: Mutex::new(asked),
            work: Work::default(),
            seen: Seen::default(),
        };
        let shared = Arc::new(shared);
        let nodes: Weak<dyn Nodes> = Arc::<Shared>::downgrade(&shared);
        shared.parts.parents.bind(nodes);
        Self { shared, acting: Arc::default() }
    }

    /// The same engine, asked by somebody with these roles: what is asked of it is audited, and judged again, by them.
    pub fn acting_as(&self, acting: Acting) -> Self {
        Self { shared: self.shared.clone(), acting: Arc::new(acting) }
    }

    /// Leads and works until `stop`. Returns an error only where going on would be wrong: a damaged store.
    pub async fn run(&self, stop: CancellationToken) -> Result<(), StoreError> {
        self.run_until(stop, CancellationToken::new()).await
    }

    /// The same; at `stop` what was sent is let end, in about 13 s at most, unless `hurry` cuts it short.
    pub async fn run_until(
        &self,
        stop: CancellationToken,
        hurry: CancellationToken,
    ) -> Result<(), StoreError> {
        tokio::select! {
            biased;
            never = self.shared.parts.own.learn() => match never {},
            ended = self.lead_until(stop, hurry) => ended,
        }
    }

    async fn lead_until(&self, stop: CancellationToken, hurry: CancellationToken) -> Result<(), StoreError> {
        let mut asked = self.shared.asked.lock().await;
        let result = loop {
            let ended = self.lead_once(&stop, &hurry, &mut asked).await;
            // What was won ends at once for everybody, also where it ended here by itself.
            let election = &self.shared.parts.election;
            let _ = if stop.is_cancelled() { election.leave().await } else { election.resign().await };
            match ended {
                Err(error @ StoreError::Damaged(_)) => break Err(error),
                Err(error) => {
                    let why = error.to_string();
                    // What stays as it is, is told once: it is asked again every second.
                    match &*self.shared.lead.borrow() {
                        Lead::No(before) if *before == why => tracing::debug!(why, "stands again"),
                        _ => tracing::warn!(why, "does not lead; standing again"),
                    }
                    self.shared.lead.send_replace(Lead::No(why));
                }
                Ok(()) => {}
            }
            let pause = tokio::time::sleep(AGAIN);
            if stop.is_cancelled() || stop.run_until_cancelled(pause).await.is_none() {
                break Ok(());
            }
        };
        self.shared.lead.send_replace(Lead::No(STOPPED.to_owned()));
        result
    }

    /// Whether it runs, or is about to.
    fn is_at_work(&self) -> bool {
        !matches!(&*self.shared.lead.borrow(), Lead::No(why) if why == STOPPED)
    }

    /// Begins the nodes' tasks under a leadership that was won.
    async fn begin_reign(&self, leadership: Arc<Leadership>) -> Result<Reign, StoreError> {
        let parts = self.fleet().parts.clone();
        tracing::info!(term = leadership.term().0, "leading");
        let all = parts.store.load_all().await?.into_iter().map(Arc::new);
        let mut stored: BTreeMap<NodeId, Arc<Stored>> =
            all.map(|one| (one.record.node.clone(), one)).collect();
        let plans = self.fleet().plans.clone();
        self.shared.office.begin(&*parts.store, &plans, &stored).await?;
        let waiting = queue::read(self).await?;
        let mut reign = Reign {
            leadership,
            over: CancellationToken::new(),
            turns: Arc::new(Turns::new(CHECKS)),
            tasks: JoinSet::new(),
            queue: JoinSet::new(),
        };
        let gate = parts.hooks.gate();
        let queue = queue::run(self.clone(), reign.leadership.clone(), waiting, reign.over.clone());
        reign.queue.spawn(gated(gate, queue));
        let known: Vec<NodeId> = self.fleet().plans.keys().cloned().collect();
        for id in known {
            // What was seen of it before may be of another life of the store, and its version is of no record there (S21).
            stored.entry(id.clone()).or_insert_with(|| Arc::new(fleet::never_stored(&id)));
        }
        self.shared.following.send_if_modified(|following| {
            following.life = Some(reign.leadership.guard().incarnation);
            false
        });
        self.fleet_mut().slots.retain(|id, _| stored.contains_key(id));
        parts.twins.forget_all();
        // Orphans first: what is theirs is nobody else's.
        let mut stored: Vec<Arc<Stored>> = stored.into_values().collect();
        let plans = self.fleet().plans.clone();
        stored.sort_by_cached_key(|one| {
            fleet::orphaned(&one.record, plans.get(&one.record.node).map(|plan| &**plan)).is_none()
        });
        self.seat_all(stored, &mut reign);
        Ok(reign)
    }

    /// Gives each of these nodes its slot, and only then begins their tasks: none is fenced before it is known which machines are others'.
    fn seat_all(&self, all: Vec<Arc<Stored>>, reign: &mut Reign) {
        let seated: Vec<_> = all.into_iter().filter_map(|one| Some((self.seat(&one)?, one))).collect();
        for (slot, stored) in seated {
            self.begin(&slot, stored, reign);
        }
    }

    /// One leadership, from its beginning to its end.
    async fn lead_once(
        &self,
        stop: &CancellationToken,
        hurry: &CancellationToken,
        asked: &mut mpsc::Receiver<change::Asked>,
    ) -> Result<(), StoreError> {
        let Some(won) = self.stand(asked, stop).await else { return Ok(()) };
        let leadership = won?;
        let Some(began) = stop.run_until_cancelled(self.begin_reign(leadership)).await else { return Ok(()) };
        let mut reign = began?;
        let leadership = reign.leadership.clone();
        self.shared.lead.send_replace(Lead::Yes(leadership.clone()));
        // They end with it, and it waits for neither.
        let (mut besides, hooks) = (JoinSet::new(), &self.shared.parts.hooks);
        besides.spawn(gated(hooks.gate(), self.key_task(leadership.clone())));
        besides.spawn(gated(hooks.gate(), self.clone().forgetting(leadership.clone())));
        besides.spawn(gated(hooks.gate(), self.clone().keeping_complaints(leadership.clone())));
        let ended = loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    // Nobody is let go who waits: the next leadership goes on with them.
                    reign.queue.shutdown().await;
                    if self.has_successor() {
                        self.hand_over(&mut reign).await;
                    } else {
                        self.wind_down(&mut reign, hurry).await;
                    }
                    break Ok(());
                }
                Some(done) = reign.tasks.join_next() => {
                    if let Err(error) = self.ended(done, &mut reign) {
                        break Err(error);
                    }
                }
                Some(ended) = reign.queue.join_next() => {
                    break Err(StoreError::Unknown(format!("the queue ended: {:?}", ended.err())));
                }
                Some(asked) = asked.recv() => {
                    // Given up at any await it leaves a whole fleet: what stepped aside goes on by the plan that is there.
                    let done = tokio::select! {
                        biased;
                        () = stop.cancelled() => Ok(()),
                        ended = over(&leadership) => Err(ended),
                        done = self.do_change(asked, &mut reign) => done,
                    };
                    if let Err(error) = done {
                        break Err(error);
                    }
                }
                () = tokio::time::sleep(HEARTBEAT) => {
                    if let Err(ended) = leadership.check() {
                        break Err(StoreError::Deposed(ended.to_string()));
                    }
                }
            }
        };
        self.shared.lead.send_replace(Lead::No("leadership ended".to_owned()));
        leadership.end();
        reign.over.cancel();
        while reign.tasks.join_next().await.is_some() {}
        reign.queue.shutdown().await;
        ended
    }

    /// A node's task ended: the leadership with it, or it made room for another plan.
    fn ended(&self, done: Result<Box<Ended>, JoinError>, reign: &mut Reign) -> Result<(), StoreError> {
        let ended = done.map_err(|panic| StoreError::Unknown(format!("a node's task ended: {panic}")))?;
        match ended.gone {
            None => Ok(()),
            Some(Gone::Fatal(error)) => Err(error),
            Some(Gone::Aside) => {
                if let Some(slot) = self.seat(&ended.stored) {
                    self.begin(&slot, ended.stored, reign);
                }
                Ok(())
            }
        }
    }

    /// Begins a node's task.
    fn begin(&self, slot: &Slot, stored: Arc<Stored>, reign: &mut Reign) {
        let (parts, plan, kept) = (slot.parts.clone(), slot.plan.clone(), slot.kept.clone());
        let (leadership, over) = (reign.leadership.clone(), reign.over.clone());
        let mut outlets = Outlets {
            view: slot.view.clone(),
            feed: self.shared.feed.clone(),
            shown: self.shared.shown.clone(),
            turns: reign.turns.clone(),
            work: self.shared.work.clone(),
            orphan: slot.orphan.clone(),
            office: self.shared.office.clone(),
        };
        let gate = parts.hooks.gate();
        let work = async move {
            let mut kept = kept.lock().await;
            // The task owns its mailbox while it runs; the placeholder only stands in.
            let taken = std::mem::replace(&mut *kept, Kept::new(Inbox::taken()));
            let (node, mut panics) = (plan.id.clone(), taken.panics);
            if panics >= PANICS {
                let why = format!(
                    "a defect of this gateway ended its task {panics} times: its log says where; restart the gateway"
                );
                outlets.orphan.get_or_insert(why);
            }
            let mut task = NodeTask::new(parts, plan, leadership, stored, taken, outlets);
            let gone = tokio::select! {
                biased;
                () = over.cancelled() => None,
                // After a panic the node's mailbox, and what it knows to be its own, must serve the next leadership.
                // The panic opened the locks that the task held: none is poisoned, and the others go on.
                gone = AssertUnwindSafe(task.run()).catch_unwind() => Some(gone.unwrap_or_else(|_| {
                    panics += 1;
                    tracing::error!(%node, panics, "a defect of this gateway ended the node's task");
                    Gone::Fatal(StoreError::Unknown(format!("the task of node {node} ended in a panic")))
                })),
            };
            if gone.is_none() {
                task.let_nothing_stand().await;
            }
            let stored = task.stored.clone();
            *kept = task.keep();
            kept.panics = panics;
            Box::new(Ended { node, stored, gone })
        };
        reign.tasks.spawn(gated(gate, work));
    }
}

/// Until that leadership is over: why it is.
async fn over(leadership: &Leadership) -> StoreError {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        if let Err(ended) = leadership.check() {
            return StoreError::Deposed(ended.to_string());
        }
    }
}
