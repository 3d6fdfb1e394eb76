//! S14: no more fences at once than the settings allow, but for breaches and what a person set aside.

use std::collections::{BTreeMap, BTreeSet};

use picket_core::ids::{NodeId, Term};
use picket_core::record::{Cause, Fence, NodeRecord, Phase};
use picket_core::time::BootTime;

use super::{Invariant, Past};
use crate::far::REQUEST;
use crate::trace::{Event, What};

#[derive(Debug, Default)]
pub(super) struct StaysWithinBudget {
    /// Nodes that took a place which no limit bars, as they were found on, or are proven anew for somebody who joins: since when.
    /// Whoever took the last place before that may have his intent on its way to the store still.
    unbarred: BTreeMap<NodeId, BootTime>,
    /// In which term each node gave its place away. A later leadership counts it in the order in which the fences were begun.
    gave_way_in: BTreeMap<NodeId, Term>,
}

/// Whether it takes a place: from the intent until Released, NeedsOperator or the end; but not while nothing was sent by it, and none of its
/// devices answers.
fn is_open(record: &NodeRecord) -> bool {
    matches!(record.phase, Phase::Fencing | Phase::Fenced) && !is_unreached(record)
}

fn is_unreached(record: &NodeRecord) -> bool {
    let is = |fence: &Fence| fence.gave_way && !fence.off_sent && fence.cause != Cause::Breach;
    record.phase == Phase::Fencing && record.fence.as_ref().is_some_and(is)
}

/// Whether `other` gave its place away too, was begun after that fence, and is barred by no limit: the next leadership counts it behind.
fn is_exempt_behind(record: &NodeRecord, other: &NodeRecord) -> bool {
    let both = record.fence.as_ref().zip(other.fence.as_ref());
    both.is_some_and(|(own, other)| other.gave_way && other.budget_override.is_some() && other.id > own.id)
}

impl Invariant for StaysWithinBudget {
    fn name(&self) -> &'static str {
        "stays_within_budget"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        let (What::Stored { record, term, .. }, Some(most)) = (&event.what, past.shape.at_once) else {
            return Ok(());
        };
        let old = past.record(&record.node);
        let began = old.phase == Phase::Normal && record.phase == Phase::Fencing
            || is_unreached(old) && record.phase == Phase::Fencing && !is_unreached(record);
        let exempt = record
            .fence
            .as_ref()
            .is_none_or(|fence| fence.budget_override.is_some() || fence.cause == Cause::Breach);
        let anew = old.generation == record.generation && old.phase == Phase::Released;
        if !is_open(old) && is_open(record) && (exempt || anew) {
            self.unbarred.insert(record.node.clone(), event.at);
        }
        if is_unreached(record) && !is_unreached(old) {
            self.gave_way_in.insert(record.node.clone(), *term);
        }
        if !began || exempt {
            return Ok(());
        }
        let in_order =
            is_unreached(old) && self.gave_way_in.get(&record.node).is_some_and(|then| then < term);
        // Whoever waits for its parent has its place already, and the parent is fenced beside it (S22).
        let is_child = |node: &NodeId| past.shape.node(node).parent.is_some();
        let just_now =
            |node: &NodeId| self.unbarred.get(node).is_some_and(|at| event.at.since(*at) <= REQUEST);
        let open: BTreeSet<&NodeId> = past
            .records()
            .filter(|other| is_open(other) && !(in_order && is_exempt_behind(record, other)))
            .map(|record| &record.node)
            .filter(|node| {
                **node != record.node && !just_now(node) && (is_child(&record.node) || !is_child(node))
            })
            .collect();
        if open.len() >= usize::try_from(most).unwrap_or(usize::MAX) {
            return Err(format!("{} begins beside {open:?}, and {most} may be open", record.node));
        }
        Ok(())
    }
}
