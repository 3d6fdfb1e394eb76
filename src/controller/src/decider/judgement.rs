//! What is to be done about each Node, by what was seen of all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::brake::{self, ActiveBrakes};
use super::episode::{self, Episode, Stage};
use super::node::{Moment, Node};
use super::observation::NodeObservation;
use super::policy::{Policy, PolicyFault};
use super::policy_assignment::{NoPolicy, PolicyAssignments};
use super::policy_source::{PolicySource, SourceIndex, unhealthy};
use super::verdict::{Judgement, PolicyReport, SkipReason, Verdict};
use super::{BETTER_WORD, Decider};

impl Decider {
    /// What is to be done now.
    pub fn judge(&mut self, now: Moment) -> Judgement {
        if self.leading {
            self.take_over();
            self.returned();
            self.take_turns(now);
            self.fail_beside();
        }
        let assignments = self.assignments();
        let speaking = self.speaking();
        let mut brakes = std::mem::take(&mut self.brakes);
        let braked = brakes.hold(&self.counted(&speaking, &assignments), &self.leases, now);
        self.brakes = brakes;
        let mut verdicts = BTreeMap::new();
        let names: Vec<String> = self.nodes.keys().cloned().collect();
        for name in names {
            let verdict = match self.source_index(&name, &speaking, &assignments) {
                Some(Ok(source_index)) => self.one(&name, source_index, &assignments, &braked, now),
                Some(Err(nobody)) => self.unspoken(&name, nobody),
                None => continue,
            };
            verdicts.insert(name, verdict);
        }
        self.unseen = self.still_unseen(&verdicts, now);
        let reports = self.reports(assignments, &verdicts);
        let tidings = self.tidings(&verdicts, now);
        Judgement { verdicts, reports, tidings, braked: braked.into_values().collect() }
    }

    fn still_unseen(&self, verdicts: &BTreeMap<String, Verdict>, now: Moment) -> BTreeMap<String, Moment> {
        let unseen = verdicts.iter().filter(|(_, verdict)| **verdict == Verdict::Leave(SkipReason::Unseen));
        unseen.map(|(name, _)| (name.clone(), self.unseen.get(name).copied().unwrap_or(now))).collect()
    }

    /// What was asked for is followed to its end, also where its policy is gone meanwhile.
    fn unspoken(&mut self, name: &str, nobody: &NoPolicy) -> Verdict {
        let is_ready = self.node(name).is_some_and(Node::is_ready);
        if let Some(Episode { stage, .. }) = self.episodes.get(name)
            && (*stage == Stage::Asking || stage.is_awaited() && !is_ready)
        {
            return Verdict::Follow(stage.clone());
        }
        self.episodes.remove(name);
        Verdict::Leave(SkipReason::Nobody(nobody.clone()))
    }

    fn one(
        &mut self,
        name: &str,
        source_index: SourceIndex,
        assignments: &PolicyAssignments,
        braked: &ActiveBrakes,
        now: Moment,
    ) -> Verdict {
        let Some(observation) = self.nodes.get(name) else { return Verdict::Leave(SkipReason::Unseen) };
        let source = PolicySource::of(source_index, &self.policies, &self.remediations, &self.states);
        let turn = source.turn(observation);
        if !self.episodes.contains_key(name)
            && turn.is_some()
            && let Some(key) = source.returning(&observation.node)
        {
            let order = source.order(&observation.node, key);
            self.episodes.insert(name.to_owned(), Episode::returning(&order, now));
        }
        let (mut round, mut known) = (0, None);
        if let Some(episode) = self.episodes.get_mut(name) {
            if episode.stage == Stage::Asking {
                return Verdict::Follow(Stage::Asking);
            }
            if turn.is_none() {
                // A condition that its policy does not speak of is no word that it is back.
                if episode.stage.is_awaited()
                    && !observation.node.is_ready()
                    && episode.seen(&observation.node, now)
                {
                    return Verdict::Follow(episode.stage.clone());
                }
                self.episodes.remove(name);
                return Verdict::Leave(SkipReason::Healthy);
            }
            round = episode.round;
            let is_same = episode.seen(&observation.node, now);
            match &episode.stage {
                _ if !is_same => {
                    self.episodes.remove(name);
                    round = 0;
                }
                // Each asks for itself, by its own key: of it is told what the gateway says to it, and not what was said to another.
                Stage::Waiting(_) | Stage::Kept | Stage::Person
                    if source.is_of_another(episode.remediation.as_deref()) =>
                {
                    round = 0;
                }
                Stage::Waiting(until) if now >= *until => known = Some(episode.key.clone()),
                // It did not come back in time: that is one more failure.
                Stage::Returning(returning) if returning.is_over(now) => round = episode.next_round(),
                stage => return Verdict::Follow(stage.clone()),
            }
        }
        let Some(turn) = turn else { return Verdict::Leave(SkipReason::Healthy) };
        if let Some(why) = self.spared(observation, source_index, assignments) {
            return Verdict::Leave(why);
        }
        if let Some(why) =
            self.hindrance(observation, source, (braked, self.policy_of(name, assignments)), now)
        {
            return Verdict::Leave(why);
        }
        let noted = (!self.episodes.contains_key(name)).then(|| source.known(&observation.node)).flatten();
        let (key, round) = match (known, noted) {
            (Some(key), _) => (key, round),
            (None, Some(noted)) => noted,
            (None, None) => (episode::key(&observation.node, &turn, round), round),
        };
        let order = source.order(&observation.node, key);
        match self.episodes.get_mut(name) {
            Some(episode) if episode.key == order.key => episode.again(&order),
            _ => drop(self.episodes.insert(name.to_owned(), Episode::new(&order, round))),
        }
        if let Some(remediation) = order.remediation.clone() {
            self.asks(&remediation);
        }
        Verdict::Fence(Box::new(order))
    }

    /// Why an unhealthy Node is not asked for, if somebody's word says so. A remediation goes by the rules of policies (K12).
    pub(super) fn spared(
        &self,
        observation: &NodeObservation,
        source_index: SourceIndex,
        assignments: &PolicyAssignments,
    ) -> Option<SkipReason> {
        let node = &observation.node;
        let ruled_out = match (source_index, assignments.of.get(&node.name)) {
            (SourceIndex::Policy(_), _) => None,
            (SourceIndex::Remediation(_), _) if let Some(why) = assignments.barred.get(&node.name) => {
                Some(why.clone())
            }
            (SourceIndex::Remediation(_), Some(Err(_))) if node.is_control_plane() => {
                Some(SkipReason::Unnamed)
            }
            (SourceIndex::Remediation(_), _) => None,
        };
        ruled_out
            .or_else(|| self.source(source_index).spared(observation, self.rebooting.contains(&node.name)))
    }

    /// Why an unhealthy Node that nobody spares is not asked for now.
    fn hindrance(
        &self,
        observation: &NodeObservation,
        source: PolicySource<'_>,
        (braked, policy): (&ActiveBrakes, Option<&str>),
        now: Moment,
    ) -> Option<SkipReason> {
        if !observation.is_fresh(now) {
            return Some(SkipReason::Unseen);
        }
        if let Some(why) = source.early(observation, now) {
            return Some(why);
        }
        if let Some(why) = self.heard_again(observation, source, now) {
            return Some(why);
        }
        if let Some(braked) = brake::over(braked, observation.zone(), policy) {
            return Some(SkipReason::Braked(braked.clone()));
        }
        if let Some(why) = self.barred_by_another(&observation.node) {
            return Some(why);
        }
        (!self.leading).then_some(SkipReason::NotLeading)
    }

    /// Unknown is what nobody has heard: of a kubelet that is heard again a better word is about to come.
    pub(super) fn heard_again(
        &self,
        observation: &NodeObservation,
        source: PolicySource<'_>,
        now: Moment,
    ) -> Option<SkipReason> {
        let until = self.leases.heard_since(&observation.node.name, now)? + BETTER_WORD;
        (now < until && source.goes_by_silence(observation)).then_some(SkipReason::Heard(until))
    }

    /// What other Nodes are, or say, that keeps this one from being asked for.
    pub(super) fn barred_by_another(&self, node: &Node) -> Option<SkipReason> {
        self.claimed(node).or_else(|| self.other_of_the_control_plane(node).map(SkipReason::ControlPlane))
    }

    /// Another Node of the control plane that is not there, or soon will not be.
    fn other_of_the_control_plane(&self, node: &Node) -> Option<String> {
        if !node.is_control_plane() {
            return None;
        }
        let others = self.nodes.values().map(|observation| &observation.node);
        let mut others = others.filter(|other| other.name != node.name && other.is_control_plane());
        let lost = |other: &Node| !other.is_ready() || self.episodes.contains_key(&other.name);
        others.find(|other| lost(other)).map(|other| other.name.clone())
    }

    fn reports(
        &self,
        assignments: PolicyAssignments,
        verdicts: &BTreeMap<String, Verdict>,
    ) -> Vec<PolicyReport> {
        let of = |place: usize| {
            let assignments = &assignments.of;
            self.nodes
                .iter()
                .filter(move |(name, _)| assignments.get(*name).is_some_and(|of| *of == Ok(place)))
        };
        let report = |(place, (policy, faults)): (usize, (&Policy, Vec<PolicyFault>))| {
            let is_fencing = |name: &&String| self.episodes.get(*name).is_some_and(Episode::is_fencing);
            let held = of(place).filter_map(|(name, _)| match verdicts.get(name) {
                Some(Verdict::Leave(why)) => why.holds(name),
                _ => None,
            });
            // The brake is of all its Nodes: what keeps one of them alone does not hide it.
            let held = held.min_by_key(|fault| fault.reason != "Braked");
            let paused = policy.paused.then(|| paused(&assignments.instead[place]));
            PolicyReport {
                policy: policy.name.clone(),
                generation: policy.generation,
                selected: assignments.selected[place],
                unhealthy: of(place)
                    .filter(|(_, observation)| unhealthy(observation, policy).is_some())
                    .count(),
                fencing: of(place).map(|(name, _)| name).filter(is_fencing).count(),
                faults,
                holding: paused.or(held),
            }
        };
        self.policies.iter().zip(assignments.faults.clone()).enumerate().map(report).collect()
    }
}

/// What is told of a policy that is paused. `instead`: those that act for Nodes that it selects.
fn paused(instead: &BTreeSet<String>) -> PolicyFault {
    let message = match instead.iter().map(String::as_str).collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "spec.paused is true".to_owned(),
        others => format!("spec.paused is true; of the Nodes that it selects some are fenced by {others}"),
    };
    PolicyFault { reason: "Paused", message }
}
