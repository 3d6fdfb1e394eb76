//! Which remediation speaks for a Node, and when it gives way to the others that want to.
//!
//! # Invariants
//!
//! - A remediation that came to nothing by what it asks for, or that somebody's lease keeps from asking,
//!   bars no other one and no policy (K12). Shown by
//!   `one_that_came_to_nothing_bars_neither_another_one_nor_the_policy`.
//! - A remediation that a limit of the gateway bars keeps its turn: the limit would bar the others, too.
//!   Shown by `one_that_is_blocked_keeps_its_turn`.
//! - A remediation that only stands by bars no policy that sees its Node otherwise. Shown by
//!   `a_remediation_of_a_node_that_is_ready_silences_no_policy_that_takes_it_for_unhealthy`.

use std::collections::BTreeMap;

use super::Decider;
use super::episode::{AGAIN, AGAIN_AT_MOST, RequestOutcome};
use super::node::{Moment, Node};
use super::observation::NodeObservation;
use super::policy::AfterFence;
use super::policy_assignment::{NoPolicy, PolicyAssignments};
use super::policy_source::{SourceIndex, unhealthy};
use super::remediation_state::Progress;

/// A remediation that wants to speak for a Node: the least one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RemediationTurn {
    /// What it asked for came to nothing.
    pub(super) gives_way: bool,
    /// It was not the last one to ask.
    is_new: bool,
    /// Which one.
    pub(super) place: usize,
}

impl Decider {
    /// By a Node's name: the remediation that speaks for it. Of several the one that has asked, unless it gives way.
    pub(super) fn speaking(&self) -> BTreeMap<String, RemediationTurn> {
        let mut speaking: BTreeMap<String, RemediationTurn> = BTreeMap::new();
        for (place, remediation) in self.remediations.iter().enumerate() {
            let state = self.state(remediation);
            let is_over =
                remediation.deleted || remediation.timed_out || state.progress == Progress::Succeeded;
            if !remediation.kept || is_over || remediation.wrong.is_some() {
                continue;
            }
            let episode = self.episodes.get(&remediation.node);
            let has_asked = episode.is_some_and(|one| one.remediation.as_ref() == Some(&remediation.id.uid));
            let gives_way = self.giving_way.contains_key(&remediation.id.uid);
            let turn = RemediationTurn { gives_way, is_new: !has_asked, place };
            let known = speaking.entry(remediation.node.clone()).or_insert(turn);
            *known = turn.min(*known);
        }
        speaking
    }

    /// Who speaks for a Node: a remediation before its policy, for whoever made it has the Node's medik8s lease; behind it where it stands back.
    pub(super) fn source_index<'a>(
        &self,
        name: &str,
        speaking: &BTreeMap<String, RemediationTurn>,
        assignments: &'a PolicyAssignments,
    ) -> Option<Result<SourceIndex, &'a NoPolicy>> {
        match (speaking.get(name), assignments.of.get(name)?) {
            (Some(turn), Err(_)) => Some(Ok(SourceIndex::Remediation(turn.place))),
            (Some(turn), Ok(place)) if !self.stands_back(turn, name) || !self.is_ill_to(*place, name) => {
                Some(Ok(SourceIndex::Remediation(turn.place)))
            }
            (_, Ok(place)) => Some(Ok(SourceIndex::Policy(*place))),
            (None, Err(nobody)) => Some(Err(nobody)),
        }
    }

    /// Whether no more comes of that remediation for now: what it asked for came to nothing, or it asks for nothing, as the Node is Ready, or is down
    /// for planned work. Whoever makes one that only stands by would silence the Node's policy by it.
    fn stands_back(&self, turn: &RemediationTurn, node: &str) -> bool {
        let source = self.source(SourceIndex::Remediation(turn.place));
        let asks = |observation: &NodeObservation| {
            source.turn(observation).is_some()
                && source.spared(observation, self.rebooting.contains(node)).is_none()
        };
        turn.gives_way || !self.nodes.get(node).is_some_and(asks)
    }

    /// Whether the policy at that place takes the Node for unhealthy: for no other policy a remediation stands back.
    pub(super) fn is_ill_to(&self, place: usize, node: &str) -> bool {
        self.nodes
            .get(node)
            .is_some_and(|observation| unhealthy(observation, &self.policies[place]).is_some())
    }

    /// What was asked for by that remediation has ended so.
    pub(super) fn gives_way(
        &mut self,
        remediation: &str,
        end: &RequestOutcome,
        then: AfterFence,
        now: Moment,
    ) {
        let until = match end {
            // It is not asked again: by the same key the gateway says the same.
            RequestOutcome::Person => Moment::MAX,
            // A remediation that succeeded speaks no more; of any other one no more is to come.
            RequestOutcome::Off if then == AfterFence::StayOff => Moment::MAX,
            RequestOutcome::Refused => now + AGAIN_AT_MOST,
            // Another one may be the remediation of whoever has the lease.
            RequestOutcome::Held => now + AGAIN,
            RequestOutcome::Off
            | RequestOutcome::Recovered
            | RequestOutcome::Superseded
            | RequestOutcome::Blocked(_) => return,
        };
        self.giving_way.insert(remediation.to_owned(), until);
    }

    /// Those whose time is over, and those whose Node is Ready, give way no more: the next failure is another one.
    pub(super) fn take_turns(&mut self, now: Moment) {
        let gives_way = |uid: &str, node: &str| {
            let until = self.giving_way.get(uid).filter(|until| now < **until)?;
            (!self.node(node).is_some_and(Node::is_ready)).then_some((uid.to_owned(), *until))
        };
        let left = self
            .remediations
            .iter()
            .filter_map(|remediation| gives_way(&remediation.id.uid, &remediation.node))
            .collect();
        self.giving_way = left;
    }
}
