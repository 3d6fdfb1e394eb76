//! S14: no more fences at once than the settings allow, but for breaches and what a person set aside.

use std::collections::{BTreeMap, BTreeSet};

use picket_core::ids::NodeId;
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
}

/// Whether it takes a place: from the intent until Released, NeedsOperator or the end; but not while nothing was sent by it, and a round of its
/// levels came to nothing. (That no device was reached in it is not stored, and is held by tests of the engine.)
fn is_open(record: &NodeRecord) -> bool {
    matches!(record.phase, Phase::Fencing | Phase::Fenced) && !is_unreached(record)
}

fn is_unreached(record: &NodeRecord) -> bool {
    let told = |fence: &Fence| {
        fence.moments.iter().any(|moment| moment.what.ends_with("all are tried anew until its deadline"))
    };
    let is = |fence: &Fence| !fence.off_sent && fence.cause != Cause::Breach && told(fence);
    record.phase == Phase::Fencing && record.fence.as_ref().is_some_and(is)
}

impl Invariant for StaysWithinBudget {
    fn name(&self) -> &'static str {
        "stays_within_budget"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        let (What::Stored { record, .. }, Some(most)) = (&event.what, past.shape.at_once) else {
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
        if !began || exempt {
            return Ok(());
        }
        // Whoever waits for its parent has its place already, and the parent is fenced beside it (S22).
        let is_child = |node: &NodeId| past.shape.node(node).parent.is_some();
        let just_now =
            |node: &NodeId| self.unbarred.get(node).is_some_and(|at| event.at.since(*at) <= REQUEST);
        let open: BTreeSet<&NodeId> = past
            .records()
            .filter(|record| is_open(record))
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
