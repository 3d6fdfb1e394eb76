//! The decider: what was seen goes in, what is to be done comes out. No I/O, no clock.
//!
//! # Invariants
//!
//! - A Node is asked for only after it was seen to be unhealthy for as long as its policy says. The looks
//!   are six seconds apart at most. Time in which nobody looked does not count, and no time of an API
//!   object is compared with a clock (K9). Shown by `nothing_is_asked_for_that_the_law_does_not_allow`,
//!   `time_counts_between_looks_that_follow_each_other_and_never_after_the_last`.
//! - Of a Node at most one request is under way. Its key is made of UID, boot id and the turn of the
//!   condition, the same for whoever sees it. Shown by
//!   `another_controller_finds_the_same_key_whenever_it_begins`.
//! - Where most leases of a zone stand still, or most Nodes of a zone are unhealthy, nothing is asked for
//!   (K9, S14). Shown by `leases_that_stand_still_in_most_of_a_zone_hold_it`,
//!   `of_a_zone_that_is_held_nothing_is_fenced_and_what_is_dead_elsewhere_is`.
//! - Where two policies act for a Node, or two Nodes claim one identity, nothing is asked for. Shown by
//!   `two_for_one_node_are_none_and_both_say_so`, `an_identity_that_another_node_claims_is_nobody_s`.
//! - A Node of the control plane is reached by its name alone, and only while the others are Ready (K11).
//!   Shown by `of_the_control_plane_one_at_a_time_and_none_while_another_is_not_ready`.
//! - Which policy acts for a Node depends on the policies' texts and that Node alone. Shown by
//!   `who_speaks_for_a_node_hangs_on_no_other_node`.

mod brake;
mod claims;
mod condition_meaning;
mod episode;
mod exclusion;
mod judgement;
mod node;
mod node_return;
mod note;
mod observation;
mod policy;
mod policy_assignment;
mod policy_source;
mod remediation_request;
mod remediation_state;
mod remediation_turn;
mod selector;
mod suspects;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

pub use brake::{ActiveBrake, BrakeScope, BrakeSign, STALE};
pub(crate) use condition_meaning::{FALSE_IS_HEALTHY, TRUE_IS_HEALTHY};
pub use episode::{BACK_WITHIN, FenceOrder, RequestOutcome, Stage};
pub use exclusion::Exclusion;
pub use node::{Condition, Moment, Node};
pub(crate) use node_return::waiting;
pub use node_return::{ReturnEvent, ReturnProgress};
pub use note::{Note, Phase, STATUS};
pub use observation::UNBROKEN;
pub use policy::{AfterFence, Grade, Policy, PolicyFault, Unhealthy};
pub use policy_assignment::{NoPolicy, spoken_for};
pub(crate) use remediation_request::MALFORMED;
pub use remediation_request::{
    RemediationAction, RemediationCondition, RemediationId, RemediationRequest, RemediationUpdate,
};
pub use remediation_state::{Progress, RemediationState, StatusClaim};
pub use selector::{Requirement, Selector};
pub use verdict::{Judgement, PolicyReport, SkipReason, Verdict};

use brake::{Brakes, LeaseHistory};
use episode::Episode;
use observation::NodeObservation;
use policy_assignment::PolicyAssignments;
use policy_source::{PolicySource, SourceIndex};

use crate::settings::Select;

/// So long a Node is given to say how it is, whose kubelet is heard again: it posts its status within some ten seconds.
const BETTER_WORD: std::time::Duration = std::time::Duration::from_secs(60);

/// What is known of the cluster, and what was asked for.
#[derive(Clone, Debug, Default)]
pub struct Decider {
    leading: bool,
    select: Select,
    policies: Vec<Policy>,
    nodes: BTreeMap<String, NodeObservation>,
    leases: LeaseHistory,
    brakes: Brakes,
    episodes: BTreeMap<String, Episode>,
    rebooting: BTreeSet<String>,
    remediations: Vec<RemediationRequest>,
    /// By the UID of a remediation: where it stands, as far as its status may not say yet.
    states: BTreeMap<String, RemediationState>,
    /// By the UID of a remediation that came to nothing: until when others speak before it.
    giving_way: BTreeMap<String, Moment>,
    /// By a Node's name: since when it would be judged, and no look is fresh enough.
    unseen: BTreeMap<String, Moment>,
}

impl Decider {
    /// Whether this replica leads. What one that led had under way is the next leader's.
    pub fn lead(&mut self, leading: bool) {
        if leading == self.leading {
            return;
        }
        // What a follower made of what it saw is no more the leader's word than what a leader of long ago knew.
        self.episodes.clear();
        self.states.clear();
        self.giving_way.clear();
        self.leading = leading;
    }

    /// The policies, all of them.
    pub fn policies(&mut self, mut policies: Vec<Policy>) {
        policies.sort_by(|a, b| a.name.cmp(&b.name));
        self.policies = policies;
    }

    /// A Node was looked at; `at`: when the question was sent, or when the watch told it.
    pub fn see(&mut self, node: Node, at: Moment) {
        let name = node.name.clone();
        match self.nodes.get_mut(&name) {
            Some(observation) if observation.node.uid == node.uid => observation.see(node, at),
            _ => {
                // Another Node of that name: what was asked of the other one is not this one's.
                self.episodes.remove(&name);
                self.nodes.insert(name, NodeObservation::new(node, at));
            }
        }
    }

    /// There is no such Node any more.
    pub fn gone(&mut self, name: &str) {
        self.nodes.remove(name);
        self.leases.forget(name);
        self.episodes.remove(name);
    }

    /// There are these Nodes and no others.
    pub fn only(&mut self, names: &BTreeSet<String>) {
        let gone: Vec<String> = self.nodes.keys().filter(|name| !names.contains(*name)).cloned().collect();
        gone.iter().for_each(|name| self.gone(name));
    }

    /// A Node's lease says this renewal.
    pub fn lease(&mut self, node: &str, renewal: &str, at: Moment) {
        self.leases.see(node, renewal, at);
    }

    /// Nodes for which a lock for reboots is held.
    pub fn rebooting(&mut self, nodes: BTreeSet<String>) {
        self.rebooting = nodes;
    }

    /// Whether such a lock is held: it is looked for until it is given back.
    pub fn is_rebooting(&self) -> bool {
        !self.rebooting.is_empty()
    }

    /// What was asked for under this key has ended. False: that was not the last word asked of this Node, and changes nothing.
    pub fn ended(&mut self, node: &str, key: &str, end: &RequestOutcome, now: Moment) -> bool {
        let Some(episode) = self.episodes.get_mut(node) else { return false };
        if episode.key != key || episode.stage != Stage::Asking {
            return false;
        }
        let (goes_on, then, remediation) =
            (episode.ended(end, now), episode.then, episode.remediation.clone());
        if let Some(remediation) = remediation {
            self.gives_way(&remediation, end, then, now);
        }
        if !goes_on {
            self.episodes.remove(node);
            if let Some(observation) = self.nodes.get_mut(node) {
                observation.recovered = Some(now);
            }
        }
        true
    }

    /// A Node, as it was seen last.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name).map(|observation| &observation.node)
    }

    /// The same, where it is not a remediation by which it was asked for.
    pub fn policy_s(&self, name: &str) -> Option<&Node> {
        let is_wish = self.episodes.get(name).is_some_and(|episode| episode.remediation.is_some());
        self.node(name).filter(|_| !is_wish)
    }

    fn assignments(&self) -> PolicyAssignments {
        let nodes: Vec<&Node> = self.nodes.values().map(|observation| &observation.node).collect();
        policy_assignment::speak(&self.policies, &nodes)
    }

    fn source(&self, source_index: SourceIndex) -> PolicySource<'_> {
        PolicySource::of(source_index, &self.policies, &self.remediations, &self.states)
    }
}

#[cfg(test)]
mod tests;
