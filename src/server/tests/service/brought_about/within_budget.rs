//! Whether a fence that was opened is within the budget, and whether whoever set the budget aside might.

use picket_core::budget::{Budget, Limits};
use picket_core::ids::{FenceId, NodeId};
use picket_core::parent::child_of;
use picket_core::record::{Cause, Fence, NodeRecord, Phase};
use picket_core::roles::Role;
use picket_core::time::BootTime;

use super::laws::{Book, Kind};
use super::stage::{NODES, RACK, parent_of};

impl Book {
    pub(super) fn opened(&mut self, fence: &Fence, now: BootTime) {
        if fence.cause != Cause::Asked {
            return;
        }
        self.seen.opened += 1;
        let node = fence.node.clone();
        if child_of(&fence.holder).is_none() {
            let request = self.request(&fence.reason);
            if request.is_none_or(|one| one.caller != fence.by || one.node != node.as_str()) {
                self.broken.push(format!("{node} is fenced by {:?}, who did not ask for it", fence.by));
            }
        }
        match &fence.budget_override {
            Some(aside) => {
                self.seen.set_aside += 1;
                let request = self.request(&aside.reason);
                let may = request.is_some_and(|one| {
                    let is_it = one.caller == aside.by && one.kind == Kind::Fence { sets_aside: true };
                    is_it
                        && self
                            .rights
                            .since(one.at)
                            .any(|rights| rights.may(one.caller, Role::Admin, one.node))
                });
                if !may || request.is_none_or(|one| one.node != node.as_str()) {
                    self.broken.push(format!("{aside:?} set the budget aside for {node}"));
                }
            }
            None => {
                let bars: Vec<String> =
                    self.budgets.since(now).filter_map(|one| self.bar(one, &node, now)).collect();
                if bars.len() == self.budgets.since(now).count() {
                    self.broken.push(format!("{node} is fenced beyond the budget: {bars:?}"));
                }
            }
        }
        self.opened.push((now, fence.id, node));
    }

    /// What bars a fence at the least: the gateway may know of more.
    fn bar(&self, budget: &Budget, node: &NodeId, now: BootTime) -> Option<String> {
        let cools = self.back.get(node).filter(|back| now.since(**back) < budget.cool_down);
        if let Some(back) = cools {
            return Some(format!(
                "it is back since {back:?} only, and cools down for {:?}",
                budget.cool_down
            ));
        }
        let rack = budget.groups.get(RACK.0).filter(|_| RACK.1.contains(&node.as_str()));
        let of_rack = rack.and_then(|limits| self.among(limits, &RACK.1, node, now));
        self.among(&budget.fleet, &NODES, node, now).or(of_rack)
    }

    fn among(&self, limits: &Limits, members: &[&str], node: &NodeId, now: BootTime) -> Option<String> {
        let others = || {
            let of = |record: &&NodeRecord| members.contains(&record.node.as_str()) && record.node != *node;
            // What runs on it falls with it, and has its place already.
            self.records.values().filter(of).filter(|one| parent_of(one.node.as_str()) != Some(node.as_str()))
        };
        let is_open = |one: &&NodeRecord| {
            let waits = one.fence.as_ref().is_some_and(|fence| fence.gave_way);
            one.phase == Phase::Fenced || one.phase == Phase::Fencing && !waits
        };
        let open = others().filter(is_open).count();
        if limits.at_once.is_some_and(|most| open >= most as usize) {
            return Some(format!("{open} are fenced already"));
        }
        let down = others().filter(|one| one.phase != Phase::Normal).count();
        if limits.min_not_fenced.is_some_and(|least| members.len() - down - 1 < least as usize) {
            return Some(format!("{down} are not at work"));
        }
        let (most, window) = limits.per_window?;
        let begun = |(at, fence, one): &&(BootTime, FenceId, NodeId)| {
            let of = (*fence, one.clone());
            let is_sent = self.off_sent.contains(&of) && !self.taken_back.contains(&of);
            is_sent && now.since(*at) < window && members.contains(&one.as_str())
        };
        let begun = self.opened.iter().filter(begun).count();
        (begun >= most as usize).then(|| format!("{begun} of {most} were begun within {window:?}"))
    }
}
