//! What counts: which nodes stand where, what was begun when, who waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::bar::Bar;
use super::brake::{Brake, Complaints, Fleet};
use super::{Aside, Budget, Limits};
use crate::groups::Groups;
use crate::ids::NodeId;
use crate::record::{Cause, Fence, NodeRecord, Phase};
use crate::time::{BootTime, WallTime};

/// The number of a request that waits. Later ones are greater.
pub type Ticket = u64;

/// A node that is not at rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stand {
    /// It counts as fenced at once; else it is only not left.
    pub(super) is_open: bool,
    /// It would, but none of its devices answers: nothing is sent to it, and others have its place meanwhile.
    pub(super) is_unreached: bool,
    /// The place in the order in which they left their rest, or their fences were begun.
    pub(super) order: u64,
    /// No limit bars it at the last look either: a breach, or somebody set the budget aside.
    pub(super) is_exempt: bool,
    /// Its fence ended before an off was sent: it was taken out of the window, once.
    pub(super) is_undone: bool,
    /// It is retired: it is not left, and is no failure either.
    pub(super) is_retired: bool,
    /// Somebody set the store's quorum aside for this try of its fence.
    pub(super) may_cost_quorum: bool,
}

/// What is counted by groups.
#[derive(Clone, Debug, Default)]
pub(super) struct Count {
    pub(super) stands: BTreeMap<NodeId, Stand>,
    /// When callers' fences were begun, oldest first; as long as the longest window.
    pub(super) begun: VecDeque<(BootTime, NodeId)>,
    pub(super) next: u64,
}

impl Count {
    pub(super) fn begin(&mut self, node: &NodeId, is_exempt: bool, now: BootTime) {
        let order = self.order();
        let stand = Stand {
            is_open: true,
            is_unreached: false,
            order,
            is_exempt,
            is_undone: false,
            is_retired: false,
            may_cost_quorum: false,
        };
        self.stands.insert(node.clone(), stand);
        self.begun.push_back((now, node.clone()));
    }

    /// The newest fence of that node counts in no window.
    fn take_back(&mut self, node: &NodeId) {
        if let Some(at) = self.begun.iter().rposition(|(_, one)| one == node) {
            self.begun.remove(at);
        }
    }

    fn order(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// The books of one leadership.
#[derive(Clone, Debug)]
pub struct Books {
    pub(super) budget: Budget,
    pub(super) fleet: BTreeSet<NodeId>,
    /// Groups with limits, and their nodes.
    pub(super) groups: Vec<(String, Limits, BTreeSet<NodeId>)>,
    pub(super) count: Count,
    /// Since when nodes are back: the stamp of the record, and when that was on our clock.
    pub(super) back: BTreeMap<NodeId, (WallTime, BootTime)>,
    pub(super) waiting: BTreeMap<Ticket, NodeId>,
    pub(super) brake: Brake,
    /// On which node each child was last seen to run (S22): what takes the parent away takes the child away.
    pub(super) runs_on: BTreeMap<NodeId, NodeId>,
    /// Members of the store that do not answer.
    pub(super) silent: BTreeSet<String>,
}

impl Books {
    /// Empty books of these nodes.
    pub fn new(budget: Budget, fleet: BTreeSet<NodeId>, groups: &Groups) -> Self {
        let mut limited = vec![("the fleet".to_owned(), budget.of_fleet(fleet.len()), fleet.clone())];
        for (name, limits) in &budget.groups {
            let members = groups.members(name).cloned().unwrap_or_default();
            limited.push((format!("group {name}"), limits.clone(), members));
        }
        let brake = Brake::new(budget.brakes_at(fleet.len()));
        Self {
            budget,
            fleet,
            groups: limited,
            count: Count::default(),
            back: BTreeMap::new(),
            waiting: BTreeMap::new(),
            brake,
            runs_on: BTreeMap::new(),
            silent: BTreeSet::new(),
        }
    }

    /// These members of the store do not answer now; all others do.
    pub fn hears_nothing_of(&mut self, members: BTreeSet<String>) {
        self.silent = members;
    }

    /// Whether a member of the store falls with that node.
    pub fn carries_a_member(&self, node: &NodeId) -> bool {
        self.budget.quorum.members.values().flatten().any(|on| self.falls_with(on, node))
    }

    /// A child was seen to run on that parent.
    pub fn runs_on(&mut self, child: &NodeId, parent: &NodeId) {
        if self.runs_on.get(child) != Some(parent) {
            self.runs_on.insert(child.clone(), parent.clone());
        }
    }

    /// The node on which that one was last seen to run.
    pub fn parent(&self, child: &NodeId) -> Option<&NodeId> {
        self.runs_on.get(child)
    }

    /// The nodes that were last seen to run on that one.
    pub fn children(&self, parent: &NodeId) -> impl Iterator<Item = &NodeId> {
        self.runs_on.iter().filter(move |(_, on)| *on == parent).map(|(child, _)| child)
    }

    /// The node itself, and the one on which it was last seen to run.
    pub(super) fn stands_on<'a>(&'a self, node: &'a NodeId) -> impl Iterator<Item = &'a NodeId> {
        std::iter::once(node).chain(self.runs_on.get(node))
    }

    /// These books, with all that was counted in others: the settings changed.
    #[must_use]
    pub fn going_on_from(mut self, before: &Self) -> Self {
        self.count = before.count.clone();
        self.back = before.back.clone();
        self.waiting = before.waiting.clone();
        self.brake.go_on_from(&before.brake);
        self.know_places_of(before);
        self
    }

    /// Where children were seen to run is known from others, of an earlier leadership or of other settings. What the settings say
    /// comes first.
    pub fn know_places_of(&mut self, before: &Self) {
        let known = before.runs_on.iter().filter(|(child, _)| self.fleet.contains(*child));
        for (child, parent) in known {
            self.runs_on.entry(child.clone()).or_insert_with(|| parent.clone());
        }
    }

    /// The limits that hold.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// A caller's fence of that node was begun then: told of the history, oldest first, after a restart. One that
    /// `sent_nothing` counts in no window: it is a complaint. Of any other the node's record says what became of it.
    pub fn remember(&mut self, node: &NodeId, begun: BootTime, sent_nothing: bool) {
        match sent_nothing {
            // Nobody knows in whose name any more.
            true => self.complain(node, "", begun),
            // Whatever was complained of before it came of that.
            false => {
                self.brake.is_well(node);
                self.count.begun.push_back((begun, node.clone()));
            }
        }
    }

    /// Since when a node is back, where that is known from before a restart.
    pub fn remember_back(&mut self, node: &NodeId, stamp: WallTime, since: BootTime) {
        self.back.insert(node.clone(), (stamp, since));
    }

    /// The node stands as its record says, which is stored.
    pub fn stored(&mut self, record: &NodeRecord, now: BootTime) {
        let node = &record.node;
        let old = self.count.stands.get(node).copied();
        if let Some(stamp) = record.back_since
            && self.back.get(node).is_none_or(|(known, _)| *known != stamp)
        {
            self.back.insert(node.clone(), (stamp, now));
        }
        match record.phase {
            Phase::Normal => {
                let stood = self.count.stands.remove(node);
                // What ended before an off was refuted, and not mended: whoever complained is as suspect as before.
                let is_refuted = stood.is_none_or(|stood| stood.is_undone)
                    || record.fence.as_ref().is_some_and(Fence::sent_nothing);
                if !is_refuted {
                    self.brake.is_well(node);
                }
            }
            _ => {
                let fence = record.fence.as_ref();
                let is_unreached = old.is_some_and(|old| old.is_unreached)
                    && record.phase == Phase::Fencing
                    && fence.is_some_and(|one| !one.off_sent);
                // What a restore keeps off is under way nowhere (S21).
                let is_open = matches!(record.phase, Phase::Fencing | Phase::Fenced)
                    && !record.is_groundless()
                    && !is_unreached;
                let is_breach = fence.is_some_and(|one| one.cause == Cause::Breach);
                let named = is_breach || fence.is_some_and(|one| one.budget_override.is_some());
                // A place that was taken is kept as it was taken.
                let kept = old.filter(|old| old.is_open || !is_open);
                let is_exempt = named || kept.is_some_and(|old| old.is_exempt && is_open);
                let order = match kept {
                    Some(old) => old.order,
                    None => self.count.order(),
                };
                let is_undone = fence.is_some_and(Fence::sent_nothing);
                // What ended before this leadership began was never counted by it.
                if is_undone && old.is_some_and(|old| !old.is_undone) {
                    self.count.take_back(node);
                }
                // What has sent nothing, and is tried again after a person was asked, is begun now.
                let is_sent = fence.is_none_or(|one| one.off_sent) || is_breach;
                if is_open && !is_sent && old.is_some_and(|old| !old.is_open) {
                    self.count.take_back(node);
                    self.count.begun.push_back((now, node.clone()));
                }
                let may_cost_quorum = is_breach
                    || fence.is_some_and(|one| one.quorum_override.is_some())
                    || kept.is_some_and(|old| old.may_cost_quorum && is_open);
                let is_retired = record.phase == Phase::Retired;
                let stand =
                    Stand { is_open, is_unreached, order, is_exempt, is_undone, is_retired, may_cost_quorum };
                self.count.stands.insert(node.clone(), stand);
            }
        }
    }

    /// Nothing is sent to that node any more, until a person has its settings put back or retires it: its fence counts as
    /// one that waits for a person.
    pub fn is_left_alone(&mut self, node: &NodeId) {
        if let Some(stand) = self.count.stands.get_mut(node) {
            stand.is_open = false;
        }
    }

    /// No device of that node answers, and nothing was sent to it: others have its place until one does.
    pub fn reaches_nothing(&mut self, node: &NodeId) {
        if let Some(stand) = self.count.stands.get_mut(node) {
            (stand.is_open, stand.is_unreached) = (false, true);
        }
    }

    /// A device of that node answers again: its fence stands behind whatever was begun meanwhile.
    pub fn reaches(&mut self, node: &NodeId) {
        let order = self.count.next + 1;
        if let Some(stand) = self.count.stands.get_mut(node).filter(|stand| stand.is_unreached) {
            (stand.is_open, stand.is_unreached, stand.order) = (true, false, order);
            self.count.next = order;
        }
    }

    /// The same where there is a place for it; else others have it still.
    ///
    /// # Errors
    /// The limit that bars it.
    pub fn regains(&mut self, node: &NodeId, now: BootTime) -> Result<(), Bar> {
        let before = self.count.stands.get(node).copied();
        self.reaches(node);
        let regained = self.recheck(node, now);
        if let (Err(_), Some(before)) = (&regained, before) {
            self.count.stands.insert(node.clone(), before);
        }
        regained
    }

    /// Takes a place for a fence of that node, before its intent is stored. It was decided in the same breath.
    pub fn take(&mut self, node: &NodeId, is_exempt: bool, now: BootTime) {
        self.count.begin(node, is_exempt, now);
        let longest = self.budget.longest_window();
        while self.count.begun.front().is_some_and(|(at, _)| now.since(*at) > longest) {
            self.count.begun.pop_front();
        }
    }

    /// The same, with what was set aside for it.
    pub fn take_aside(&mut self, node: &NodeId, aside: Aside, now: BootTime) {
        self.take(node, aside.budget, now);
        if let Some(stand) = self.count.stands.get_mut(node) {
            stand.may_cost_quorum = aside.quorum;
        }
    }

    /// The intent was not stored: the place is free again, and the node stands as its record says.
    pub fn give_back(&mut self, record: &NodeRecord, now: BootTime) {
        self.count.take_back(&record.node);
        self.count.stands.remove(&record.node);
        if record.phase != Phase::Normal {
            self.stored(record, now);
        }
    }

    /// Somebody says that the node is dead, as he asks for a fence of it.
    pub fn complain(&mut self, node: &NodeId, holder: &str, now: BootTime) {
        let (brake, fleet) = self.brake();
        brake.complain(node, holder, fleet, now);
    }

    /// That holder does not want that node off any more.
    pub fn takes_back(&mut self, node: &NodeId, holder: &str) {
        self.brake.takes_back(node, holder);
    }

    /// What of the brake outlives this leadership; `stamp`: what the wall clock said then.
    pub fn complaints(&self, stamp: impl Fn(BootTime) -> WallTime) -> Complaints {
        self.brake.kept(stamp)
    }

    /// The same of `most` nodes, and in nobody's name; of all others their number.
    pub fn short_of_complaints(&self, most: usize, stamp: impl Fn(BootTime) -> WallTime) -> Complaints {
        self.brake.short(most, stamp)
    }

    /// Goes on from what an earlier leadership kept of it; `when`: when that stamp was.
    pub fn take_up(&mut self, kept: Complaints, when: impl Fn(WallTime) -> BootTime) {
        self.brake.take_up(kept, when);
    }

    /// The brake, and what it counts beside complaints.
    fn brake(&mut self) -> (&mut Brake, Fleet<'_>) {
        let Self { brake, fleet: nodes, waiting, count, runs_on, .. } = self;
        (brake, Fleet { nodes, waiting, stands: &count.stands, runs_on })
    }

    /// The same, to look at.
    pub(super) fn brake_bars(&self, node: Option<&NodeId>, now: BootTime) -> Option<Bar> {
        let Self { brake, fleet: nodes, waiting, count, runs_on, .. } = self;
        brake.bar(node, Fleet { nodes, waiting, stands: &count.stands, runs_on }, now)
    }

    /// A request begins to wait.
    pub fn wait(&mut self, ticket: Ticket, node: NodeId) {
        self.waiting.insert(ticket, node);
    }

    /// A request does not wait any more.
    pub fn leave(&mut self, ticket: &Ticket) {
        self.waiting.remove(ticket);
    }

    /// A person says that what looks dead is dead: the brake counts it no more until it was well. False: it did not hold.
    pub fn let_go(&mut self, now: BootTime) -> bool {
        let (brake, fleet) = self.brake();
        brake.let_go(fleet, now)
    }

    /// Whether the brake holds now, and why.
    pub fn braked(&mut self, now: BootTime) -> Option<Bar> {
        let (brake, fleet) = self.brake();
        brake.look(fleet, now);
        self.brake_bars(None, now)
    }

    /// How many fences are open: begun, and neither released nor waiting for a person.
    pub fn open(&self) -> usize {
        let ours = |(node, stand): &(&NodeId, &Stand)| stand.is_open && self.fleet.contains(*node);
        self.count.stands.iter().filter(ours).count()
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
