//! What Nodes and policies are told of what was found.

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::time::Instant;

use super::{Control, WRITE_AGAIN};
use crate::decider::{FenceOrder, Phase, PolicyReport, STATUS, SkipReason};
use crate::event_recorder::ClusterWrite;
use crate::events;
use crate::fence_request::note;
use crate::object::SeenPolicy;
use crate::policy_events::PolicyStatus;

impl Control {
    pub(super) fn noted(&self, order: &FenceOrder, phase: Phase, text: &str) {
        // Another one of that name has no note of this one's.
        let Some(node) = self.decider.node(&order.node.name).filter(|node| node.uid == order.node.uid) else {
            return;
        };
        self.recorder.tell(ClusterWrite::Note(Box::new(node.clone()), Some(note(order, phase, text))));
    }

    /// Every policy says in its status what is found of it.
    pub(super) fn write_all(&mut self, reports: Vec<PolicyReport>) {
        let before = |policies: &BTreeMap<String, SeenPolicy>, name: &str| {
            let found = policies.get(name)?;
            Some((found.metadata.generation.unwrap_or_default(), found.status.clone().unwrap_or_default()))
        };
        for report in reports {
            let Some((_, before)) = before(&self.policies, &report.policy) else { continue };
            let status = events::status(&report, &before);
            self.tell_news(&report.policy, &status, &before, &PolicyStatus::Read(&report));
            self.write(&report.policy, status, &before);
        }
        for (name, why) in self.malformed.clone() {
            let Some((generation, before)) = before(&self.policies, &name) else { continue };
            let status = events::malformed(generation, &why, &before);
            self.tell_news(&name, &status, &before, &PolicyStatus::Malformed(&why));
            self.write(&name, status, &before);
        }
    }

    /// What stops a policy, or is wrong with it, is told at once, and so is its end.
    fn tell_news(&mut self, name: &str, status: &Value, before: &Value, found: &PolicyStatus<'_>) {
        let uid = self.policies.get(name).and_then(|policy| policy.metadata.uid.clone()).unwrap_or_default();
        for (reason, text) in self.news.of(name, status, before, found, Instant::now()) {
            self.recorder.policy_event(name, &uid, reason, &text);
        }
    }

    /// Of a policy that is gone nothing is known any more; of one that acted it is told.
    pub(super) fn forget_others(&mut self, before: &BTreeMap<String, SeenPolicy>) {
        let policies = &self.policies;
        let uid = |policy: &SeenPolicy| policy.metadata.uid.clone().unwrap_or_default();
        let is_the_same = |name: &str| {
            policies.get(name).zip(before.get(name)).is_some_and(|(now, then)| uid(now) == uid(then))
        };
        self.news.only(is_the_same);
        self.written.retain(|name, _| is_the_same(name));
        if !self.leads {
            return;
        }
        for (name, policy) in before.iter().filter(|(name, _)| !is_the_same(name)) {
            let all = policy.status.as_ref().and_then(|status| status["conditions"].as_array());
            let is_acting = |one: &Value| one["type"] == "Acting" && one["status"] == "True";
            if all.is_some_and(|all| all.iter().any(is_acting)) {
                let text = "it does not act any more: it is deleted";
                self.recorder.policy_event(name, &uid(policy), "Deleted", text);
            }
        }
    }

    /// It is not asked for: what we noted goes once it is healthy, and why it is spared is told once.
    pub(super) fn leave(&mut self, name: &str, why: &SkipReason, now: Instant) {
        let Some(node) = self.decider.node(name) else { return };
        let is_noted = node.annotations.contains_key(STATUS);
        if !is_noted {
            self.cleaned.remove(name);
        }
        let is_left_alone = match why {
            SkipReason::Nobody(nobody) => !(nobody.is_a_mistake() && node.has_failed()),
            other => *other == SkipReason::Healthy,
        };
        if !is_noted && is_left_alone {
            // Nearly all of them, each second.
            self.withheld.forget(name);
            return;
        }
        let node = node.clone();
        let again = self.cleaned.get(name).is_none_or(|last| now - *last >= WRITE_AGAIN);
        if is_noted && node.is_ready() && again {
            self.cleaned.insert(name.to_owned(), now);
            self.recorder.event(&node, "NodeBack", "it is Ready again");
            self.recorder.tell(ClusterWrite::Note(Box::new(node.clone()), None));
            self.recorder.tell(ClusterWrite::GiveBack(name.to_owned()));
        }
        let word = match why {
            SkipReason::Nobody(nobody) if nobody.is_a_mistake() && node.has_failed() => "no policy acts",
            SkipReason::Healthy | SkipReason::Nobody(_) => {
                self.withheld.forget(name);
                return;
            }
            SkipReason::Paused(_) => "paused",
            SkipReason::Excluded(_) => "excluded",
            SkipReason::Braked(_) => "braked",
            SkipReason::Claimed { .. } => "claimed identity",
            SkipReason::Quiet(_) => "quiet",
            SkipReason::ControlPlane(_) | SkipReason::Unnamed => "control plane",
            SkipReason::Unseen
            | SkipReason::Watching { .. }
            | SkipReason::Heard(_)
            | SkipReason::NotLeading => return,
        };
        if self.withheld.is_news(&node, word, now) {
            self.recorder.event(
                &node,
                "FenceWithheld",
                &format!("it is unhealthy, and is not fenced: {why}"),
            );
        }
    }

    /// Writes a policy's status where it is another one.
    fn write(&mut self, policy: &str, status: Value, before: &Value) {
        if status == *before {
            return;
        }
        let last = self.written.get(policy);
        if last.is_some_and(|(same, at)| events::is_same(same, &status) && at.elapsed() < WRITE_AGAIN) {
            return;
        }
        self.recorder.tell(ClusterWrite::Status(policy.to_owned(), status.clone()));
        self.written.insert(policy.to_owned(), (status, Instant::now()));
    }
}
