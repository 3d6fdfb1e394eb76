//! Who has a turn, and who waits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use picket_core::ids::NodeId;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{LevelTurn, Pace, Rank, Turn, Unit};

/// Of so many readings it is remembered how long they took.
const REMEMBERED: usize = 16;
/// What a program is reckoned to take before any has run: an interpreter, and a device that answers.
const USUAL: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct State {
    /// Calls under way.
    calls: BTreeMap<u64, UnderWay>,
    last_began: Option<Instant>,
    /// The last call was not urgent.
    gave_way: bool,
    /// By when they are due, then in the order in which they came.
    waiting: BTreeMap<(Instant, u64), Asking>,
    next: u64,
    /// How long the last readings took.
    took: VecDeque<Duration>,
    /// Since when no reading was answered.
    silent_since: Option<Instant>,
    /// Levels under way.
    levels: BTreeMap<u64, NodeId>,
    levels_waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct UnderWay {
    is_check: bool,
    /// When it is over at the latest.
    until: Instant,
}

#[derive(Debug)]
struct Asking {
    rank: Rank,
    life: Duration,
    turn: oneshot::Sender<Turn>,
}

#[derive(Debug)]
struct Waiting {
    node: NodeId,
    devices: usize,
    dwell: Duration,
    turn: oneshot::Sender<LevelTurn>,
}

/// Turns that were granted to somebody who had left: dropped where nothing is locked.
pub(super) type Left<T> = Vec<T>;

impl State {
    /// A turn at once, or when it comes.
    pub(super) fn ask(
        &mut self,
        unit: &Arc<Unit>,
        rank: Rank,
        life: Duration,
    ) -> Result<Turn, oneshot::Receiver<Turn>> {
        let due = Instant::now() + rank.allowance();
        let is_first =
            self.first(unit).is_none_or(|first| self.order(due, rank) < self.order(first.0, first.1));
        if is_first && self.has_room(unit, rank) {
            return Ok(self.grant(unit, rank, life));
        }
        let (turn, waits) = oneshot::channel();
        self.next += 1;
        self.waiting.insert((due, self.next), Asking { rank, life, turn });
        Err(waits)
    }

    /// What comes first: by when it is due, but that an urgent call follows each that is not.
    fn order(&self, due: Instant, rank: Rank) -> (bool, Instant) {
        (self.gave_way && !rank.is_urgent(), due)
    }

    /// Whether one more call may begin. Checks have half of the places at most: those of the dead keep no fence waiting.
    fn has_room(&self, unit: &Unit, rank: Rank) -> bool {
        let most = unit.limits().at_once;
        let checks = || self.calls.values().filter(|call| call.is_check).count();
        let is_held = rank == Rank::Unanswered && !self.levels.is_empty();
        self.calls.len() < most && !is_held && (!rank.is_check() || checks() < (most / 2).max(1))
    }

    /// Who waits and is next, of those that may begin: when it is due, its rank and its key.
    fn first(&self, unit: &Unit) -> Option<(Instant, Rank, (Instant, u64))> {
        let may = |rank| self.has_room(unit, rank);
        // Asked once a rank: very many may wait.
        let (calls, checks, unanswered) = (may(Rank::Fence), may(Rank::Check), may(Rank::Unanswered));
        let now = Instant::now();
        let waiting = self.waiting.iter().filter(|((due, _), asking)| match asking.rank {
            Rank::Check => checks,
            // What is kept off behind a device that answers again is watched, however many levels follow one another (S11).
            Rank::Unanswered => unanswered || checks && *due <= now,
            _ => calls,
        });
        let next = waiting.min_by_key(|((due, number), asking)| (self.order(*due, asking.rank), *number));
        next.map(|(key, asking)| (key.0, asking.rank, *key))
    }

    fn grant(&mut self, unit: &Arc<Unit>, rank: Rank, life: Duration) -> Turn {
        let now = Instant::now();
        let not_before = self.last_began.map(|last| last + unit.limits().pause).filter(|at| *at > now);
        let begins = not_before.unwrap_or(now);
        self.last_began = Some(begins);
        self.gave_way = !rank.is_urgent();
        self.next += 1;
        self.calls.insert(self.next, UnderWay { is_check: rank.is_check(), until: begins + life });
        Turn { unit: unit.clone(), number: self.next, not_before }
    }

    /// A call ended: the next ones begin. One that is granted to somebody who has left counts as under way until it is dropped.
    pub(super) fn ended(&mut self, unit: &Arc<Unit>, number: u64) -> Left<Turn> {
        self.calls.remove(&number);
        self.begin_calls(unit)
    }

    /// The limits are others now: what fits begins.
    pub(super) fn resume(&mut self, unit: &Arc<Unit>) -> (Left<Turn>, Left<LevelTurn>) {
        (self.begin_calls(unit), self.begin_levels(unit))
    }

    fn begin_calls(&mut self, unit: &Arc<Unit>) -> Left<Turn> {
        let mut left = Vec::new();
        while self.calls.len() < unit.limits().at_once {
            let Some(Asking { rank, life, turn }) =
                self.first(unit).and_then(|(.., key)| self.waiting.remove(&key))
            else {
                break;
            };
            left.extend(turn.send(self.grant(unit, rank, life)).err());
        }
        left
    }

    /// When the first of the calls under way must be over.
    pub(super) fn first_overdue(&self) -> Option<Instant> {
        self.calls.values().map(|call| call.until).min()
    }

    /// Takes their turns from those that must be over.
    pub(super) fn take_overdue(&mut self, unit: &Arc<Unit>) -> Left<Turn> {
        let now = Instant::now();
        let over: Vec<u64> =
            self.calls.iter().filter(|(_, call)| call.until <= now).map(|(number, _)| *number).collect();
        over.into_iter().flat_map(|number| self.ended(unit, number)).collect()
    }

    /// A reading took so long. One that was not answered says how long its call may take, and nothing of how fast the unit is.
    pub(super) fn note(&mut self, unit: &Arc<Unit>, took: Duration, answered: bool) -> Left<LevelTurn> {
        if answered {
            self.silent_since = None;
            if self.took.len() == REMEMBERED {
                self.took.pop_front();
            }
            self.took.push_back(took);
        } else {
            self.silent_since.get_or_insert_with(Instant::now);
        }
        self.begin_levels(unit)
    }

    pub(super) fn silent_since(&self) -> Option<Instant> {
        self.silent_since
    }

    /// How long a reading is reckoned to take. `None`: nothing is known.
    pub(super) fn reading(&self, pace: Pace) -> Option<Duration> {
        match pace {
            Pace::Slowest => self.took.iter().max().copied(),
            Pace::Usual => {
                let mut took: Vec<Duration> = self.took.iter().copied().collect();
                took.sort_unstable();
                took.get(took.len() / 2).copied().or(Some(USUAL))
            }
        }
    }

    pub(super) fn levels(&self) -> impl Iterator<Item = &NodeId> {
        self.levels.values()
    }

    pub(super) fn ask_level(
        &mut self,
        unit: &Arc<Unit>,
        node: NodeId,
        devices: usize,
        dwell: Duration,
    ) -> oneshot::Receiver<LevelTurn> {
        let (turn, waits) = oneshot::channel();
        self.levels_waiting.push_back(Waiting { node, devices, dwell, turn });
        // The one that waits now is there to take it.
        let left = self.begin_levels(unit);
        debug_assert!(left.is_empty());
        waits
    }

    pub(super) fn level_ended(&mut self, unit: &Arc<Unit>, number: u64) -> (Left<Turn>, Left<LevelTurn>) {
        self.levels.remove(&number);
        // The next level first: what does not answer waits for it as well.
        let levels = self.begin_levels(unit);
        (self.begin_calls(unit), levels)
    }

    /// How many levels may go on side by side: each of their devices is asked once in a dwell, and half of the unit's time is for
    /// offs and for others; in any case so many as have half of its places for themselves, as none is asked twice at once. Nothing is
    /// known before the first readings.
    fn most_levels(&self, unit: &Unit, first: &Waiting) -> usize {
        let Some(reading) = self.reading(unit.pace) else { return 1 };
        let round = reading.as_secs_f64().max(0.001) * first.devices as f64 * 2.0;
        let levels = first.dwell.as_secs_f64() * unit.limits().at_once as f64 / round;
        (levels as usize).max(unit.limits().at_once / (2 * first.devices.max(1))).max(1)
    }

    fn begin_levels(&mut self, unit: &Arc<Unit>) -> Left<LevelTurn> {
        let mut left = Vec::new();
        while let Some(first) = self.levels_waiting.front() {
            if first.turn.is_closed() {
                self.levels_waiting.pop_front();
                continue;
            }
            if self.levels.len() >= self.most_levels(unit, first) {
                break;
            }
            let Some(Waiting { node, turn, .. }) = self.levels_waiting.pop_front() else { break };
            self.next += 1;
            self.levels.insert(self.next, node);
            if let Err(turn) = turn.send(LevelTurn { unit: unit.clone(), number: self.next }) {
                left.push(turn);
            }
        }
        left
    }
}
