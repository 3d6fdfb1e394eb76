//! The brake: when too much of the fleet looks dead at once, the observer is suspect.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::bar::{Bar, LimitKind};
use super::books::Ticket;
use crate::ids::NodeId;
use crate::time::{BootTime, written};

/// What it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is wrong.
    Free,
    /// No new fence begins.
    Holds,
    /// A person let it go; it is free again once it is calm.
    LetGo,
}

/// The brake.
#[derive(Clone, Debug)]
pub(super) struct Brake {
    at: usize,
    within: Duration,
    state: State,
    asked: BTreeMap<NodeId, BootTime>,
}

type Waiting = BTreeMap<Ticket, NodeId>;

impl Brake {
    pub(super) fn new(at: usize, within: Duration) -> Self {
        Self { at, within, state: State::Free, asked: BTreeMap::new() }
    }

    /// What was asked stays asked, and a brake that was let go stays so.
    pub(super) fn go_on_from(&mut self, before: &Self) {
        self.asked = before.asked.clone();
        self.state = before.state;
    }

    pub(super) fn ask(&mut self, node: &NodeId, at: BootTime) {
        let newest = self.asked.get(node).copied().unwrap_or(at).max(at);
        self.asked.insert(node.clone(), newest);
    }

    /// How many different nodes look dead: asked for of late, or waited for.
    fn count(&self, besides: Option<&NodeId>, waiting: &Waiting, now: BootTime) -> usize {
        let is_late = |node: &NodeId| self.asked.get(node).is_some_and(|at| now.since(*at) < self.within);
        let late = self.asked.values().filter(|at| now.since(**at) < self.within).count();
        // Those who wait are few, and often asked of late as well.
        let others: BTreeSet<&NodeId> =
            waiting.values().chain(besides).filter(|node| !is_late(node)).collect();
        late + others.len()
    }

    /// Looks where it stands now.
    pub(super) fn look(&mut self, waiting: &Waiting, now: BootTime) {
        let within = self.within;
        self.asked.retain(|_, at| now.since(*at) < within);
        if self.count(None, waiting, now) < self.at {
            self.state = State::Free;
        } else if self.state == State::Free {
            self.state = State::Holds;
        }
    }

    pub(super) fn let_go(&mut self, waiting: &Waiting, now: BootTime) -> bool {
        self.look(waiting, now);
        let held = self.state == State::Holds;
        if held {
            self.state = State::LetGo;
        }
        held
    }

    /// Why no fence of that node may begin; without a node, whether it holds at all.
    pub(super) fn bar(
        &self,
        node: Option<&NodeId>,
        fleet: usize,
        waiting: &Waiting,
        now: BootTime,
    ) -> Option<Bar> {
        let found = self.count(node, waiting, now);
        if found < self.at || self.state == State::LetGo {
            return None;
        }
        // Who waits keeps it on, however long ago that was asked.
        let standing: BTreeSet<&NodeId> = waiting.values().collect();
        let mut ends: Vec<Duration> = self
            .asked
            .iter()
            .filter(|(one, at)| {
                !standing.contains(one) && Some(*one) != node && now.since(**at) < self.within
            })
            .map(|(_, at)| (*at + self.within).since(now))
            .collect();
        ends.sort_unstable();
        let too_many = found + 1 - self.at;
        let retry_after = ends.get(too_many - 1).copied();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Some(Bar {
            kind: LimitKind::Brake,
            whose: "the fleet".to_owned(),
            allowed: number(self.at - 1),
            found: number(found),
            text: format!(
                "{found} of {fleet} nodes look dead within {}, and from {} on whoever says so is suspect: look at what asks; if they \
                 are dead, resume everything, or set the budget aside by name",
                written(self.within),
                self.at
            ),
            retry_after,
        })
    }
}
