//! What devices of several nodes share (a PDU, a chassis, one management service): they take turns there.
//!
//! There are two kinds of turns. A *call* is one question or command: so many go on side by side as the
//! unit bears. A *level* is the time in which a node's devices there are switched off and confirmed. So
//! many levels go on as the unit can answer within a dwell, by how long its readings took of late. With
//! more, each would wait for the others' readings until its own are too old. For the same reason the dwell
//! of a slow unit's devices is longer ([`Unit::least_dwell`]). While a level is held, a look at what did
//! not answer last time waits for a minute.
//!
//! The gateway itself is a unit, too: for drivers whose calls are programs on its machine
//! ([`Unit::of_programs`]).
//!
//! # Invariants
//!
//! - A rack on one slow unit is proven, node after node. Shown by
//!   `a_rack_on_one_slow_pdu_is_fenced_one_call_at_a_time_and_all_of_it_is_proven`.
//! - A fence's call comes first. What waits long enough comes all the same, every other time. Shown by
//!   `fences_come_first_and_checks_last_whoever_came_before`,
//!   `a_watch_that_waits_long_enough_comes_before_a_fence_that_came_later`.
//! - No call has its turn for longer than it may take: a holder that is not worked keeps nobody else
//!   waiting. Shown by `whoever_has_a_turn_and_is_not_worked_loses_it`.
//! - Between the store's word and an on nothing waits for a turn: the turn is taken before power is read.
//!   Shown by `an_on_waits_for_no_turn`.
//! - No task waits for a level while it holds one at a unit whose name comes later: no two nodes wait for
//!   each other.
//! - There is one unit of a name, whatever settings are read anew or refused. New limits hold once the
//!   settings do. Shown by `another_limit_holds_at_once_for_whoever_waits_and_whoever_has_a_turn_keeps_it`.
//! - A turn that does not come gives way to the next level where the unit answers nobody, or the later
//!   levels would have no time left. Shown by `a_dead_pdu_keeps_no_node_from_its_next_level`.
//! - A turn ends when it is dropped, wherever its holder is. Shown by
//!   `whoever_leaves_while_it_waits_or_works_keeps_nobody_waiting`.
//! - As many levels go on as the unit answers within a dwell, else none would ever be proven. Shown by
//!   `as_many_levels_go_on_as_the_unit_can_answer_within_a_dwell`.

mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::ids::NodeId;
use picket_driver::{DriverError, Effect, ErrorKind};
use state::State;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, SemaphorePermit, oneshot};
use tokio::time::Instant;

/// A call waits no longer than this for its turn.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// So many nodes are named; of more, how many.
const NAMED: usize = 8;

/// A call ends by itself within its time; its turn is taken from it a little later.
const MARGIN: Duration = Duration::from_secs(2);

/// For what a call is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// A fence.
    Fence,
    /// A release, or bringing a node back.
    Ground,
    /// Keeping off.
    #[default]
    Watch,
    /// Whether it could be used.
    Check,
    /// Keeping off, or looking at, what did not answer last time: it takes its whole time again, as a rule.
    Unanswered,
}

impl Rank {
    /// A call comes before all that are asked for so much later, whatever their rank.
    fn allowance(self) -> Duration {
        match self {
            Rank::Fence => Duration::ZERO,
            Rank::Ground => Duration::from_millis(500),
            Rank::Watch => Duration::from_secs(10),
            Rank::Check | Rank::Unanswered => Duration::from_secs(60),
        }
    }

    /// Whether what it finds becomes too old where another call comes between.
    fn is_urgent(self) -> bool {
        matches!(self, Rank::Fence | Rank::Ground)
    }

    fn is_check(self) -> bool {
        matches!(self, Rank::Check | Rank::Unanswered)
    }
}

/// How much a unit bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitLimits {
    /// Calls side by side, at least 1.
    pub at_once: usize,
    /// From the beginning of one call to that of the next, at least.
    pub pause: Duration,
}

/// By which of its last readings a unit is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// The slowest: all of them were of one thing.
    Slowest,
    /// The middle one: each was of another, and the slow ones say nothing of the others.
    Usual,
}

/// One unit of the fleet.
#[derive(Debug)]
pub struct Unit {
    name: String,
    pace: Pace,
    limits: Mutex<UnitLimits>,
    /// So many of its checks that nobody asked for go on side by side, as it bore at first: the others wait here, and not in the way
    /// of other units' checks.
    checks: Arc<Semaphore>,
    used_by: Mutex<BTreeSet<NodeId>>,
    state: Mutex<State>,
}

impl Unit {
    /// A unit of that name.
    pub fn new(name: impl Into<String>, limits: UnitLimits) -> Self {
        Self {
            name: name.into(),
            pace: Pace::Slowest,
            limits: Mutex::new(limits),
            checks: Arc::new(Semaphore::new(limits.at_once)),
            used_by: Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// The same of a cloud: it is judged by how long it takes as a rule.
    pub fn of_cloud(name: impl Into<String>, limits: UnitLimits) -> Self {
        Self { pace: Pace::Usual, ..Self::new(name, limits) }
    }

    /// The gateway itself, where so many programs of devices run side by side, one at least. The devices behind them have nothing else
    /// to do with each other.
    pub fn of_programs(at_once: usize) -> Self {
        let limits = UnitLimits { at_once: at_once.max(1), pause: Duration::ZERO };
        Self { pace: Pace::Usual, ..Self::new("the fence agents of this gateway", limits) }
    }

    /// From now on so many programs. Those that run go on.
    pub fn change_programs(self: &Arc<Self>, at_once: usize) {
        let users = self.used_by.lock().clone();
        self.change(UnitLimits { at_once: at_once.max(1), pause: Duration::ZERO }, users);
    }

    /// What it is, for people (`pdu1.example.org`).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How much it bears.
    pub fn limits(&self) -> UnitLimits {
        *self.limits.lock()
    }

    /// What the settings say now: how much it bears, and the nodes whose devices are there. Whoever has a turn keeps it.
    pub fn change(self: &Arc<Self>, limits: UnitLimits, nodes: BTreeSet<NodeId>) {
        *self.used_by.lock() = nodes;
        *self.limits.lock() = limits;
        let (calls, levels) = self.state.lock().resume(self);
        drop((calls, levels));
    }

    /// The turn of a check that nobody asked for, beside those of other units.
    pub(crate) async fn check(&self) -> Option<OwnedSemaphorePermit> {
        self.checks.clone().acquire_owned().await.ok()
    }

    /// The other nodes whose devices are there.
    pub(crate) fn others(&self, node: &NodeId) -> Vec<NodeId> {
        self.used_by.lock().iter().filter(|one| *one != node).cloned().collect()
    }

    /// The turn of one call, which is over within `life`.
    pub(crate) async fn turn(self: &Arc<Self>, rank: Rank, life: Duration) -> Result<Turn, DriverError> {
        let granted = self.state.lock().ask(self, rank, life + MARGIN);
        let turn = match granted {
            Ok(turn) => turn,
            Err(waits) => self.patiently(waits).await?,
        };
        if let Some(begins) = turn.not_before {
            tokio::time::sleep_until(begins).await;
        }
        Ok(turn)
    }

    async fn patiently(self: &Arc<Self>, mut waits: oneshot::Receiver<Turn>) -> Result<Turn, DriverError> {
        let late = Instant::now() + PATIENCE;
        while Instant::now() < late {
            let overdue = self.state.lock().first_overdue().unwrap_or(late);
            if let Ok(Ok(turn)) = tokio::time::timeout_at(overdue.min(late), &mut waits).await {
                return Ok(turn);
            }
            let left = self.state.lock().take_overdue(self);
            drop(left);
        }
        let detail = format!("its turn at {} did not come within {PATIENCE:?}", self.name);
        Err(DriverError::new(ErrorKind::NoTurn, Effect::DidNotHappen, detail))
    }

    /// A reading here took so long, and was answered or not: there may be room for another level.
    pub(crate) fn took(self: &Arc<Self>, took: Duration, answered: bool) {
        let left = self.state.lock().note(self, took, answered);
        drop(left);
    }

    /// How long it has answered nobody; zero where the last reading was answered.
    pub(crate) fn silent_for(&self) -> Duration {
        self.state.lock().silent_since().map(|since| since.elapsed()).unwrap_or_default()
    }

    /// The least time between two readings of each of so many devices of a level: their offs and readings, one after the other,
    /// must come round within three of it (S2).
    pub(crate) fn least_dwell(&self, devices: usize) -> Duration {
        let reading = self.state.lock().reading(self.pace).unwrap_or_default();
        let round = reading * u32::try_from(devices).unwrap_or(1);
        round.mul_f64(1.5 / self.limits().at_once as f64)
    }

    /// How long it takes at the longest to read so many devices here.
    pub(crate) fn round(&self, devices: usize) -> Duration {
        let rounds = u32::try_from(devices.div_ceil(self.limits().at_once)).unwrap_or(u32::MAX);
        self.state.lock().reading(self.pace).unwrap_or_default().saturating_mul(rounds)
    }

    /// The turn of a node's level, of which so many devices are here, each asked once in a `dwell`.
    pub(crate) async fn level(self: Arc<Self>, node: NodeId, devices: usize, dwell: Duration) -> LevelTurn {
        let waits = self.state.lock().ask_level(&self, node, devices, dwell);
        match waits.await {
            Ok(turn) => turn,
            // The sender lives in the unit, which lives here.
            Err(_) => std::future::pending().await,
        }
    }

    /// Who has a level there now.
    pub(crate) fn busy_with(&self) -> Vec<NodeId> {
        self.state.lock().levels().cloned().collect()
    }
}

/// These nodes for people: the first of them, and how many more.
pub(crate) fn named(nodes: &[NodeId]) -> String {
    let first: Vec<&str> = nodes.iter().take(NAMED).map(NodeId::as_str).collect();
    match nodes.len().saturating_sub(NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// The turn of one call; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    unit: Arc<Unit>,
    number: u64,
    /// The unit wants a pause between calls.
    not_before: Option<Instant>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let left = self.unit.state.lock().ended(&self.unit, self.number);
        // What nobody took any more is dropped, and ends, once nothing is locked.
        drop(left);
    }
}

/// One turn for several calls of a node, so that no other's come between: what they tell is of about the same time.
#[derive(Debug)]
pub(crate) struct Together {
    unit: Arc<Unit>,
    /// The least urgent of all of them.
    rank: Mutex<Rank>,
    /// How long all of them may take.
    life: Mutex<Duration>,
    turn: OnceCell<Turn>,
    /// Its own calls keep to what the unit bears, too.
    line: Semaphore,
}

impl Together {
    pub(crate) fn new(unit: &Arc<Unit>) -> Arc<Self> {
        let (line, rank) = (Semaphore::new(unit.limits().at_once), Mutex::new(Rank::Fence));
        Arc::new(Self { unit: unit.clone(), rank, life: Mutex::default(), turn: OnceCell::new(), line })
    }

    /// One more call, which takes so long at the most.
    pub(crate) fn add(&self, rank: Rank, life: Duration) {
        let mut least = self.rank.lock();
        *least = rank.max(*least);
        *self.life.lock() += life;
    }

    /// The turn of all, for one of them at a time.
    pub(crate) async fn next(&self) -> Result<Option<SemaphorePermit<'_>>, DriverError> {
        let (rank, life) = (*self.rank.lock(), *self.life.lock());
        self.turn.get_or_try_init(|| self.unit.turn(rank, life)).await?;
        Ok(self.line.acquire().await.ok())
    }
}

/// The turn of one node's level; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct LevelTurn {
    unit: Arc<Unit>,
    number: u64,
}

impl Drop for LevelTurn {
    fn drop(&mut self) {
        let (calls, levels) = self.unit.state.lock().level_ended(&self.unit, self.number);
        drop((calls, levels));
    }
}
