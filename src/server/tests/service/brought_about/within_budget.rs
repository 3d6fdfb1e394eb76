//! Whether a fence that was opened is within the budget, and whether whoever set the budget aside might.

use std::collections::BTreeSet;
use std::time::Duration;

use picket_core::budget::Limits;
use picket_core::ids::{FenceId, NodeId};
use picket_core::parent::child_of;
use picket_core::record::{Cause, Fence, NodeRecord, Phase};
use picket_core::roles::Role;
use picket_core::time::BootTime;

use super::bounds::{Bounds, RACK};
use super::laws::{Book, Kind};
use super::stage::NODES;

/// Who sets a limit aside for what nobody asked for.
const GATEWAY: &str = "picket";

impl Book {
    pub(super) fn opened(&mut self, fence: &Fence, record: &NodeRecord, now: BootTime) {
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
        self.expect_in_time(fence, now);
        let goes_through = self.is_held_for_a_breach(record);
        if let Some(scope) = self.pause_of(&node, now).filter(|_| !goes_through) {
            self.broken.push(format!("{node} is fenced although {scope:?} is paused"));
        }
        match &fence.budget_override {
            // What a machine that was found on goes by: nobody asked for that.
            Some(aside) if goes_through && aside.by == GATEWAY => {}
            Some(aside) => {
                self.seen.set_aside += 1;
                let request = self.request(&aside.reason);
                let may = request.is_some_and(|one| {
                    let is_it =
                        one.caller == aside.by && matches!(one.kind, Kind::Fence { sets_aside: true, .. });
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
                    self.bounds.since(now).filter_map(|one| self.bar(one, &node, now)).collect();
                if bars.len() == self.bounds.since(now).count() {
                    self.broken.push(format!("{node} is fenced beyond the budget: {bars:?}"));
                }
            }
        }
        self.opened.push((now, fence.id, node));
    }

    /// What bars a fence at the least: the gateway may know of more.
    fn bar(&self, bounds: &Bounds, node: &NodeId, now: BootTime) -> Option<String> {
        let budget = &bounds.budget;
        let cools = self.back.get(node).filter(|back| now.since(**back) < budget.cool_down);
        if let Some(back) = cools {
            return Some(format!(
                "it is back since {back:?} only, and cools down for {:?}",
                budget.cool_down
            ));
        }
        let rack = budget.groups.get(RACK).filter(|_| bounds.rack.contains(node.as_str()));
        let of_rack = rack.and_then(|limits| self.among(limits, &bounds.rack, node, now));
        let of_fleet = self.among(&budget.fleet, &NODES.into(), node, now);
        self.brake(bounds, node, now, Duration::ZERO).or(of_fleet).or(of_rack)
    }

    fn among(
        &self,
        limits: &Limits,
        members: &BTreeSet<&str>,
        node: &NodeId,
        now: BootTime,
    ) -> Option<String> {
        let others = || {
            let of = |record: &&NodeRecord| members.contains(record.node.as_str()) && record.node != *node;
            // What runs on it falls with it, and has its place already.
            self.records.values().filter(of).filter(|one| !self.ran_on(one.node.as_str(), node.as_str()))
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
            is_sent && now.since(*at) < window && members.contains(one.as_str())
        };
        let begun = self.opened.iter().filter(begun).count();
        (begun >= most as usize).then(|| format!("{begun} of {most} were begun within {window:?}"))
    }
}
