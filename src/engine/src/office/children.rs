//! Machines that run on other machines, and what they hold (S22): who stands where, whom they keep off, and
//! what relies on that.
//!
//! # Invariants
//!
//! - A child's hold ends only while no record that begins to stand on that parent is being stored. One lock
//!   ensures that. Shown by `a_parent_stays_off_while_a_proof_of_its_child_by_it_is_being_stored`.
//! - A hold that an admin ended goes once the child's record stands on no parent, and no release or receipt
//!   of it is open. Shown by `the_end_of_a_child_s_hold_voids_its_proof_before_the_parent_comes_back`,
//!   `a_parent_whose_child_s_hold_was_ended_stays_off_while_a_receipt_of_the_child_holds`.

use std::time::Duration;

use picket_core::ids::{FenceId, NodeId};
use picket_core::parent::child_of;
use picket_core::record::{Cause, Fence, NodeRecord, Phase};
use picket_core::restore::HOLD as RESTORED;
use picket_core::roles::Person;
use picket_core::time::BootTime;

use super::{Office, Papers};

/// A child's hold on a node.
#[derive(Debug)]
pub(super) struct ChildsHold {
    child: NodeId,
    /// An admin ended it.
    ended: bool,
    /// The node was found on since.
    breached: bool,
}

/// Where a node stands that is not at rest, for those that it holds, or that hold it.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// Its phase, in a word.
    pub(crate) phase: &'static str,
    /// It is being fenced.
    pub(crate) is_fencing: bool,
    /// It is being brought back.
    pub(crate) is_unfencing: bool,
    /// It was found on although nobody unfenced it.
    pub(crate) is_breach: bool,
    /// It is being fenced, and the turn of its parent has come.
    pub(crate) tries_its_parent: bool,
    /// Something of it is let go on its parent's proof, may be, or is vouched for.
    pub(crate) relies: bool,
    /// Its fence.
    pub(crate) fence: Option<FenceId>,
    /// Who asked for its fence, and keeps it off.
    pub(crate) askers: Vec<Person>,
}

impl Standing {
    fn of(record: &NodeRecord) -> Option<Self> {
        let fence = record.fence.as_ref();
        let is_at_rest = matches!(record.phase, Phase::Normal | Phase::Retired);
        (!is_at_rest).then(|| Self {
            phase: record.phase.label(),
            is_fencing: record.phase == Phase::Fencing,
            is_unfencing: record.phase == Phase::Unfencing,
            is_breach: fence.is_some_and(|fence| fence.cause == Cause::Breach),
            tries_its_parent: record.phase == Phase::Fencing && fence.is_some_and(Fence::tries_its_parent),
            fence: fence.map(|fence| fence.id),
            relies: ends_in(record).is_some() || may_let_go(record),
            askers: askers(record),
        })
    }
}

/// Those by whose word a node is off, and not the gateway's own.
fn askers(record: &NodeRecord) -> Vec<Person> {
    let asked = record.holds.iter().filter(|(name, _)| child_of(name).is_none() && name.as_str() != RESTORED);
    asked.flat_map(|(_, hold)| hold.askers()).collect()
}

/// Whether something of a child may be let go on its parent's word, or on a person's, who looked at a machine that was off.
fn may_let_go(record: &NodeRecord) -> bool {
    let Some(fence) = record.fence.as_ref().filter(|_| !record.is_groundless()) else { return false };
    match record.phase {
        Phase::Fenced => fence.proved_by_its_parent() || fence.attestation.is_some(),
        Phase::Released => fence.proved_by_its_parent(),
        _ => false,
    }
}

/// How long what is open of a node may bar the on of the machine on which it ran: a release or a receipt, wherever that lands. `None`: nothing
/// of the kind is open.
fn ends_in(record: &NodeRecord) -> Option<Duration> {
    let beyond_devices =
        record.ledger.open().iter().filter(|open| open.kind.bars_on() && open.kind.device().is_none());
    beyond_devices.map(|open| open.life.unwrap_or(Duration::MAX)).max()
}

impl Office {
    /// The nodes that a child holds, as their records say.
    pub(crate) fn held_by(&self, child: &NodeId) -> Vec<NodeId> {
        let papers = self.papers();
        papers.holds_of(child).map(|(parent, _)| parent.clone()).collect()
    }

    /// Where a node stands that is neither normal nor retired.
    pub(crate) fn standing(&self, node: &NodeId) -> Option<Standing> {
        self.papers().standing.get(node).cloned()
    }

    /// Whether nothing of that node keeps its parent off: it is at rest, and so is what was sent for it (S22).
    pub(crate) fn is_gone(&self, node: &NodeId) -> bool {
        let papers = self.papers();
        let has_ended = papers.ending.get(node).is_none_or(|until| *until <= self.clock.boot());
        has_ended && !papers.standing.contains_key(node)
    }

    /// The nodes that a child holds, and may be proven by: no admin ended its hold there.
    pub(crate) fn kept_by(&self, child: &NodeId) -> Vec<NodeId> {
        let papers = self.papers();
        let kept = papers.holds_of(child).filter(|(_, hold)| !hold.ended);
        kept.map(|(parent, _)| parent.clone()).collect()
    }

    /// Whether an admin of the machine on which that node runs ended its hold, and something of it relies on that still.
    pub(crate) fn is_taken_back(&self, child: &NodeId) -> bool {
        let papers = self.papers();
        let relies = papers.standing.get(child).is_some_and(|standing| standing.relies);
        relies && papers.holds_of(child).any(|(_, hold)| hold.ended)
    }

    /// Whether a record may be stored, where one was stored before. Refused is one that begins to rely on a parent's proof once a hold of the
    /// child was ended, or none stands any more: the readings may be older than that.
    ///
    /// This and [`Self::relies_on_none`] see each other under one lock. A hold goes only once it was ended as stored, and the parent's task asked
    /// after that whether its child relies on it. Whichever comes first here, the child's claim or that question, is seen by the other: either
    /// the hold stays until the child's record says that it relies on nothing, or no record is stored that would. No time is guessed, however
    /// long a reading, or the store, takes. A leadership that follows begins without claims: what its predecessor had under way is not stored.
    pub(crate) fn may_store(&self, before: &NodeRecord, next: &NodeRecord) -> bool {
        if !may_let_go(next) {
            return true;
        }
        let mut papers = self.papers();
        let begins = !may_let_go(before) && next.fence.as_ref().is_some_and(Fence::proved_by_its_parent);
        let holds: Vec<_> = papers.holds_of(&next.node).map(|(_, hold)| hold).collect();
        let is_kept = holds.iter().any(|hold| !hold.breached) && holds.iter().all(|hold| !hold.ended);
        if begins && !is_kept {
            return false;
        }
        // It stands until the next record is stored: the store may have taken one whose answer did not come.
        papers.relying.insert(next.node.clone());
        true
    }

    /// Whether nothing of a child relies on the machine on which it runs, neither as stored nor as is being stored.
    pub(crate) fn relies_on_none(&self, child: &NodeId) -> bool {
        let papers = self.papers();
        let relies = papers.standing.get(child).is_some_and(|standing| standing.relies);
        !relies && !papers.relying.contains(child)
    }
}

impl Papers {
    /// The record is stored.
    pub(super) fn stored_of_a_child(&mut self, record: &NodeRecord, now: BootTime) {
        self.relying.remove(&record.node);
        match Standing::of(record) {
            Some(standing) => drop(self.standing.insert(record.node.clone(), standing)),
            None => drop(self.standing.remove(&record.node)),
        }
        match ends_in(record).filter(|_| !self.standing.contains_key(&record.node)) {
            // What is open of a node at rest grows no more: what was counted first is right.
            Some(life) => drop(self.ending.entry(record.node.clone()).or_insert(now + life)),
            None => drop(self.ending.remove(&record.node)),
        }
        let children = record.holds.iter().filter_map(|(holder, hold)| {
            let child = NodeId::new(child_of(holder)?).ok()?;
            Some(ChildsHold { child, ended: hold.ended, breached: hold.breached })
        });
        let children: Vec<ChildsHold> = children.collect();
        match children.is_empty() {
            true => drop(self.held.remove(&record.node)),
            false => drop(self.held.insert(record.node.clone(), children)),
        }
    }

    /// The holds of a child, and on which nodes.
    fn holds_of(&self, child: &NodeId) -> impl Iterator<Item = (&NodeId, &ChildsHold)> {
        let of = move |hold: &&ChildsHold| hold.child == *child;
        self.held.iter().filter_map(move |(parent, holds)| Some((parent, holds.iter().find(of)?)))
    }
}
