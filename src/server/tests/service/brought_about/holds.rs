//! Holds: who may place one, and end it, on the node itself and on the machine on which it runs.

use picket_core::parent::child_of;
use picket_core::record::{Fence, Hold, NodeRecord, Phase};
use picket_core::roles::Role;
use picket_core::time::BootTime;

use super::laws::{Book, Kind, Request};
use super::rights::Rights;

impl Book {
    pub(super) fn placed(&mut self, was: &NodeRecord, record: &NodeRecord, now: BootTime) {
        let is_new = |(name, hold): &(&String, &Hold)| {
            was.holds.get(*name).is_none_or(|old| (&old.by, &old.reason) != (&hold.by, &hold.reason))
        };
        let node = record.node.as_str();
        for (name, hold) in record.holds.iter().filter(is_new) {
            let told = match child_of(name) {
                Some(child) => self.is_placed_for(child, hold, was, record, now),
                None => self.is_asked_for(name, hold, node, now),
            };
            if let Err(why) = told {
                self.broken.push(format!("{name} holds {node}, by {:?} ({}): {why}", hold.by, hold.reason));
            }
            match child_of(name) {
                Some(_) => self.seen.for_children += 1,
                None => self.seen.joined += u64::from(was.phase != Phase::Normal),
            }
        }
    }

    fn is_asked_for(&self, name: &str, hold: &Hold, node: &str, now: BootTime) -> Result<(), &'static str> {
        let request = self.request(&hold.reason).ok_or("nobody asked for it")?;
        if (request.caller, request.node, request.holder.as_str()) != (hold.by.as_str(), node, name) {
            return Err("somebody else asked, or for something else");
        }
        // A hold is judged as it is asked for, a fence as it is let in.
        let since = match request.kind {
            Kind::Fence { .. } => now,
            Kind::Hold => request.at,
            _ => return Err("no fence and no hold was asked for"),
        };
        let mut rights = self.rights.since(since);
        rights
            .any(|rights| rights.may_hold(&hold.by, name, node))
            .then_some(())
            .ok_or("who has no role for that")
    }

    /// A machine is held for what runs on it by the right of those who asked for that, or by its own settings, or as it is off.
    fn is_placed_for(
        &self,
        child: &str,
        hold: &Hold,
        was: &NodeRecord,
        record: &NodeRecord,
        now: BootTime,
    ) -> Result<(), &'static str> {
        let node = record.node.as_str();
        let asked = |who: &str| {
            let of = |one: &&Request| one.caller == who && one.node == child;
            self.requests.iter().filter(of).any(|one| matches!(one.kind, Kind::Fence { .. } | Kind::Hold))
        };
        if !self.ran_on(child, node) || !hold.by.split(", ").all(asked) {
            return Err("who did not ask for that child");
        }
        let is_same = |fence: &&Fence| record.fence.as_ref().is_some_and(|now| now.id == fence.id);
        let is_off = was.fence.as_ref().filter(is_same).is_some_and(|fence| fence.off_sent);
        let may = |rights: &Rights| {
            let named = rights
                .fenced_for
                .get(node)
                .is_some_and(|children| children.iter().any(|one| one.as_str() == child));
            named || hold.by.split(", ").all(|who| rights.may(who, Role::Controller, node))
        };
        (is_off || self.rights.since(now).any(may))
            .then_some(())
            .ok_or("who has no role for the machine itself")
    }

    pub(super) fn dropped(&mut self, was: &NodeRecord, record: &NodeRecord) {
        let node = record.node.as_str();
        let gone = was.holds.iter().filter(|(name, _)| !record.holds.contains_key(*name));
        for (name, hold) in gone.filter(|(name, _)| child_of(name).is_none()) {
            self.seen.dropped += 1;
            let by = |one: &&Request| match one.kind {
                Kind::Ends => one.holder == *name,
                Kind::StandsDown => true,
                _ => false,
            };
            let may = |one: &Request| {
                self.rights.since(one.at).any(|rights| match one.kind {
                    Kind::StandsDown => rights.may(one.caller, Role::Operator, node),
                    _ => rights.may_hold(one.caller, name, node),
                })
            };
            let ended = self.requests.iter().filter(|one| one.node == node).filter(by).any(may);
            // What sent nothing and is given up takes back what it placed.
            let sent_nothing = record.fence.as_ref().is_some_and(|fence| !fence.off_sent);
            if !(ended || hold.drop_when_released || sent_nothing && !hold.placed_alone) {
                self.broken.push(format!("{name} holds {node} no more, and nobody ended that"));
            }
        }
    }
}
