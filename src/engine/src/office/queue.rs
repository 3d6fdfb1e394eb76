//! What a request that waits is: stored, so that neither its caller's leaving nor our death stops it, until it expires.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::budget::{Bar, Ticket};
use picket_core::device::Grade;
use picket_core::event::{BoundKey, Holder, Person};
use picket_core::ids::{Generation, NodeId};
use picket_core::record::Then;
use picket_core::roles;
use picket_core::target::Target;
use picket_core::time::{BootTime, WallTime};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, mpsc, oneshot, watch};

use super::Office;
use super::callers::May;
use crate::error::EngineError;
use crate::request::{Admission, FenceCall, Turn};

/// Where requests that wait stand among the notes of the fleet.
pub(crate) const PREFIX: &str = "queue/";
/// What is on its way to the queue.
const ENTRANCE: usize = 64;

/// The entrance of the queue, and the end from which its runner takes.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) entrance: mpsc::Sender<Asked>,
    pub(crate) inbox: Mutex<mpsc::Receiver<Asked>>,
}

impl Queue {
    pub(super) fn new() -> Self {
        let (entrance, inbox) = mpsc::channel(ENTRANCE);
        Self { entrance, inbox: Mutex::new(inbox) }
    }
}

/// What the runner is asked, in the order of its coming.
#[derive(Debug)]
pub(crate) enum Asked {
    Enter(Box<Enter>),
    Withdraw(Withdraw),
}

/// A request that wants to wait.
#[derive(Debug)]
pub(crate) struct Enter {
    pub(crate) node: NodeId,
    pub(crate) generation: Generation,
    /// The node's machine when the request came.
    pub(crate) target: Target,
    pub(crate) call: FenceCall,
    /// At most for so long; `None`: as long as the settings say.
    pub(crate) at_most: Option<Duration>,
    pub(crate) bar: Bar,
    pub(crate) reply: oneshot::Sender<Result<Waits, EngineError>>,
}

/// A holder does not want the node off any more: what it has waiting ends.
#[derive(Debug)]
pub(crate) struct Withdraw {
    pub(crate) node: NodeId,
    pub(crate) holder: String,
    pub(crate) person: Person,
    /// What was ended so far.
    pub(crate) ended: Vec<Ticket>,
    pub(crate) reply: oneshot::Sender<Result<Vec<Ticket>, EngineError>>,
}

/// A request that waits, as its caller sees it. Whoever drops it stops nothing.
#[derive(Clone, Debug)]
pub struct Waits {
    /// Its number; later ones are greater.
    pub ticket: Ticket,
    /// When it expires.
    pub expires_at: WallTime,
    /// What becomes of it. It closes without an end where this leadership does.
    pub state: watch::Receiver<WaitState>,
}

/// What becomes of a request that waits.
#[derive(Clone, Debug)]
pub enum WaitState {
    /// This bars it now.
    Barred(Box<Bar>),
    /// Its turn came, or it never will.
    Over(Box<Result<Admission, EngineError>>),
}

/// A request that waits, as whoever looks at its node sees it.
#[derive(Clone, Debug)]
pub struct Queued {
    /// Its number.
    pub ticket: Ticket,
    /// Who would keep the node off.
    pub holder: String,
    /// Who asked.
    pub by: String,
    /// When it expires.
    pub expires_at: WallTime,
    /// What bars it.
    pub bar: Box<Bar>,
}

/// What is kept to tell of a request that waits.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    node: NodeId,
    holder: Holder,
    waits: Waits,
}

impl Seen {
    fn queued(&self) -> Option<Queued> {
        let bar = match &*self.waits.state.borrow() {
            WaitState::Barred(bar) => bar.clone(),
            WaitState::Over(_) => return None,
        };
        Some(Queued {
            ticket: self.waits.ticket,
            holder: self.holder.name.clone(),
            by: self.holder.by.clone(),
            expires_at: self.waits.expires_at,
            bar,
        })
    }
}

/// A request that waits.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) node: NodeId,
    pub(crate) generation: Generation,
    /// The node's machine when it came: it is void once the settings have another one.
    pub(crate) target: Target,
    pub(crate) call: FenceCall,
    pub(crate) until: BootTime,
    pub(crate) expires_at: WallTime,
    pub(crate) state: watch::Sender<WaitState>,
    /// Its node's task decides it now.
    pub(crate) goes: bool,
    /// It was decided, and stays: not again before then.
    pub(crate) not_before: BootTime,
    /// It was decided again although limits bar it, because the node was in that generation, and not at rest.
    pub(crate) tried: Option<Generation>,
}

impl Entry {
    pub(crate) fn waits(&self, ticket: Ticket) -> Waits {
        Waits { ticket, expires_at: self.expires_at, state: self.state.subscribe() }
    }

    /// Whether that request asks for nothing that this one does not: it has its key, or neither has one.
    pub(crate) fn is_asked_by(&self, enter: &Enter) -> bool {
        let is_same = match (&self.call.key, &enter.call.key) {
            (Some(its), Some(key)) => key.is_same(its),
            // What was set aside is asked for anew when its turn comes.
            (None, None) => {
                let asker = self.call.holder.asker.clone();
                let holder = Holder { asker, ..enter.call.holder.clone() };
                let asked = FenceCall { set_aside: None, holder, ..enter.call.clone() };
                self.generation == enter.generation && self.call == asked
            }
            _ => false,
        };
        is_same && self.node == enter.node
    }

    /// What the node's task is asked when its turn has come; whoever may not ask as a person any more does not.
    pub(crate) fn call(&self, ticket: Ticket, may: May) -> FenceCall {
        let mut call = self.call.clone();
        call.holder.by_person &= may.as_a_person;
        call.turn = Some(Turn { ticket, generation: self.generation });
        call
    }
}

/// A request that waits, as it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    node: NodeId,
    /// The node's when it came: once the node was fenced and brought back, it is void.
    generation: Generation,
    /// The node's machine when it came; of one that was stored before this was, nothing is known.
    #[serde(default)]
    target: Target,
    holder: String,
    by: String,
    reason: String,
    then: Then,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    by_person: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_grade: Option<Grade>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_after: Option<WallTime>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected_generation: Option<Generation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asker: Option<roles::Person>,
    since: WallTime,
    expires_at: WallTime,
}

impl Stored {
    pub(crate) fn of(enter: &Enter, since: WallTime, expires_at: WallTime) -> Self {
        let FenceCall { holder, key, min_grade, deadline, not_after, expected_generation, .. } =
            enter.call.clone();
        Self {
            node: enter.node.clone(),
            generation: enter.generation,
            target: enter.target.clone(),
            holder: holder.name,
            by: holder.by,
            reason: holder.reason,
            then: holder.then,
            by_person: holder.by_person,
            key: key.map(|bound| (bound.key, bound.digest)),
            min_grade,
            deadline,
            not_after,
            expected_generation,
            asker: holder.asker,
            since,
            expires_at,
        }
    }

    /// What is left of its life; never more than it had, whatever the clock did.
    pub(crate) fn left(&self, office: &Office) -> Duration {
        let now = office.now_as_of(self.since);
        let life = self.expires_at.millis().saturating_sub(self.since.millis());
        Duration::from_millis(self.expires_at.millis().saturating_sub(now.millis()).min(life))
    }

    /// The request as it came.
    pub(crate) fn entry(self, until: BootTime, bar: Bar) -> Entry {
        // Before who asked was stored its name was, which is how whoever reaches the loopback is known.
        let asker = self.asker.or_else(|| Some(roles::Person::known_by_name(&self.by)));
        let Self { holder: name, by, reason, then, by_person, .. } = self;
        let holder = Holder { name, by, reason, then, by_person, asker };
        Entry {
            node: self.node,
            generation: self.generation,
            target: self.target,
            call: FenceCall {
                holder,
                key: self.key.map(|(key, digest)| BoundKey { key, digest }),
                min_grade: self.min_grade,
                deadline: self.deadline,
                not_after: self.not_after,
                expected_generation: self.expected_generation,
                set_aside: None,
                turn: None,
            },
            until,
            expires_at: self.expires_at,
            state: watch::Sender::new(WaitState::Barred(Box::new(bar))),
            goes: false,
            not_before: BootTime::default(),
            tried: None,
        }
    }
}

impl Office {
    /// A request begins to wait.
    pub(crate) fn waits(&self, ticket: Ticket, entry: &Entry) {
        let (node, holder) = (entry.node.clone(), entry.call.holder.clone());
        let seen = Seen { node, holder, waits: entry.waits(ticket) };
        let mut papers = self.papers();
        papers.books.wait(ticket, entry.node.clone());
        papers.queued.insert(ticket, seen);
    }

    /// A request does not wait any more.
    pub(crate) fn leaves(&self, ticket: Ticket) {
        let mut papers = self.papers();
        papers.books.leave(&ticket);
        papers.queued.remove(&ticket);
        drop(papers);
        self.changed.notify_one();
    }

    /// Shows these as what waits; nothing is let go here.
    pub(crate) fn see_queue(&self, entries: BTreeMap<Ticket, Entry>) {
        let seen = entries.into_iter().map(|(ticket, entry)| {
            let waits = entry.waits(ticket);
            (ticket, Seen { node: entry.node, holder: entry.call.holder, waits })
        });
        self.papers().queued = seen.collect();
    }

    /// The requests that wait for that node, in their order.
    pub(crate) fn queued_for(&self, node: &NodeId) -> Vec<Queued> {
        let papers = self.papers();
        papers.queued.values().filter(|seen| seen.node == *node).filter_map(Seen::queued).collect()
    }

    /// Something changed that may let somebody go.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// For each request that waits whether its turn has come.
    pub(crate) fn turns(&self) -> Vec<(Ticket, Result<(), Bar>)> {
        let (papers, now) = (self.papers(), self.clock.boot());
        papers.books.turns(&|node| papers.paused(node, now), now)
    }
}
