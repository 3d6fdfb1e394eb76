//! The brake: how many nodes look dead at the least, by what callers heard and by what is stored.

use std::collections::BTreeSet;
use std::time::Duration;

use picket_core::ids::NodeId;
use picket_core::parent::child_of;
use picket_core::record::{Cause, NodeRecord, Phase};
use picket_core::roles::Role;
use picket_core::time::BootTime;

use super::bounds::Bounds;
use super::laws::{Book, Kind, Request};
use super::pauses::{SAME_MOMENT, Scope};
use super::rights::{Rights, id};

/// What was said of a node counts for so long.
const STANDS: Duration = Duration::from_secs(3_600);
/// What was said so short a time before a gateway died may be lost with it.
const LOST: Duration = Duration::from_secs(8);

/// Somebody said that a node is dead, and heard that a limit bars it.
#[derive(Debug)]
pub(super) struct Complaint {
    node: &'static str,
    holder: String,
    at: BootTime,
    heard: BootTime,
}

/// A fence whose first off is sent after that waited for it.
const LATE: Duration = Duration::from_secs(10);

impl Book {
    /// Whoever asks for an end takes back what was said in that name.
    pub(super) fn asks_for_an_end(&mut self, request: &Request) {
        let is_of = |one: &Complaint| one.node == request.node && one.holder == request.holder;
        self.complaints.retain(|one| !is_of(one));
    }

    /// A limit barred it.
    pub(super) fn is_barred(&mut self, request: &Request, now: BootTime) {
        let takes_back = |one: &&Request| {
            let is_of = one.node == request.node && one.holder == request.holder;
            is_of && one.kind == Kind::Ends && one.at >= request.at
        };
        if matches!(request.kind, Kind::Fence { .. }) && !self.requests.iter().any(|one| takes_back(&one)) {
            let (node, holder) = (request.node, request.holder.clone());
            self.complaints.push(Complaint { node, holder, at: request.at, heard: now });
        }
    }

    /// Somebody resumes everything: whatever looks dead may be believed to be.
    pub(super) fn resumes(&mut self, request: &Request, now: BootTime) {
        let may = |rights: &Rights| rights.may_everywhere(request.caller, Role::Operator);
        if request.kind == (Kind::Resume { scope: Scope::Everything }) && self.rights.since(now).any(may) {
            let looks_dead = self.looks_dead(now, Duration::ZERO);
            self.seen.believed +=
                looks_dead.iter().filter(|node| !self.believed.contains(*node)).count() as u64;
            self.believed.extend(looks_dead);
        }
    }

    /// Another gateway leads.
    pub(super) fn loses_complaints(&mut self, now: BootTime) {
        self.complaints.retain(|one| one.heard + LOST < now);
    }

    /// The node stands otherwise.
    pub(super) fn is_away_or_well(&mut self, was: &NodeRecord, record: &NodeRecord, now: BootTime) {
        let node = &record.node;
        match (&was.phase, &record.phase) {
            (Phase::Normal, Phase::Normal) => {}
            (Phase::Normal, _) => drop(self.away.insert(node.clone(), now)),
            (_, Phase::Normal) => {
                self.away.remove(node);
                // Of what ended before an off nobody knows that the node is well.
                let is_mended = was
                    .fence
                    .as_ref()
                    .is_none_or(|fence| fence.off_sent || self.off_sent.contains(&(fence.id, node.clone())));
                if is_mended {
                    self.believed.remove(node);
                    self.complaints.retain(|one| one.node != node.as_str());
                }
            }
            _ => {}
        }
    }

    fn looks_dead(&self, now: BootTime, before: Duration) -> BTreeSet<NodeId> {
        let said =
            self.complaints.iter().filter(|one| now.since(one.at) < STANDS && one.heard + before <= now);
        let away = self.away.iter().filter(|(_, since)| **since + before <= now);
        said.map(|one| id(one.node)).chain(away.map(|(node, _)| node.clone())).collect()
    }

    /// Whether the brake holds for that node at the least; `before`: counting what is as old as that alone.
    pub(super) fn brake(
        &self,
        bounds: &Bounds,
        node: &NodeId,
        now: BootTime,
        before: Duration,
    ) -> Option<String> {
        let mut all = self.looks_dead(now, before);
        all.insert(node.clone());
        all.retain(|one| !self.believed.contains(one));
        let fell = |one: &NodeId| all.iter().any(|on| self.ran_on(one.as_str(), on.as_str()));
        let counted: Vec<&NodeId> = all.iter().filter(|one| !fell(one)).collect();
        let at = bounds.brakes_at();
        (counted.len() >= at).then(|| format!("{counted:?} look dead, and the brake holds at {at}"))
    }

    /// The brake and the pauses, as the first off is sent.
    pub(super) fn sends(&mut self, was: &NodeRecord, record: &NodeRecord, now: BootTime) {
        let Some(fence) = record.fence.as_ref().filter(|fence| fence.off_sent) else { return };
        let is_first = was.fence.as_ref().is_none_or(|before| before.id != fence.id || !before.off_sent);
        if !is_first || fence.cause != Cause::Asked || self.is_held_for_a_breach(record) {
            return;
        }
        self.seen.sent += 1;
        let opened = self.opened.iter().rfind(|(_, one, _)| *one == fence.id).map(|(at, ..)| *at);
        self.seen.sent_late += u64::from(opened.is_some_and(|at| at + LATE < now));
        let node = &record.node;
        if let Some(scope) = self.pause_of(node, now) {
            self.broken.push(format!("{node} is switched off although {scope:?} is paused"));
        }
        let bars: Vec<String> =
            self.bounds.since(now).filter_map(|one| self.brake(one, node, now, SAME_MOMENT)).collect();
        if fence.budget_override.is_none() && bars.len() == self.bounds.since(now).count() {
            self.broken.push(format!("{node} is switched off although the brake holds: {bars:?}"));
        }
    }

    /// A machine that is kept off for one that was found on goes through pauses and limits.
    pub(super) fn is_held_for_a_breach(&self, record: &NodeRecord) -> bool {
        let mut children = record.holds.keys().filter_map(|holder| child_of(holder));
        children.any(|child| {
            let child = self.records.get(&id(child));
            let fence = child.and_then(|child| child.fence.as_ref());
            fence.is_some_and(|fence| fence.cause == Cause::Breach)
        })
    }
}
