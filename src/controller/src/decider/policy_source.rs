//! Who speaks for a Node: its policy, or a remediation.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::episode::{self, FenceOrder};
use super::exclusion;
use super::node::{Moment, Node};
use super::note::{Note, Phase};
use super::observation::NodeObservation;
use super::policy::{Policy, Unhealthy};
use super::remediation_request::RemediationRequest;
use super::remediation_state::{RemediationState, is_of_this_life};
use super::verdict::SkipReason;

/// How long a Node that the gateway found alive is left alone by a remediation.
const QUIET: Duration = Duration::from_secs(60);

/// Which one, by its place.
#[derive(Clone, Copy, Debug)]
pub(super) enum SourceIndex {
    Policy(usize),
    Remediation(usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum PolicySource<'a> {
    Policy(&'a Policy),
    Remediation(&'a RemediationRequest, &'a RemediationState),
}

impl<'a> PolicySource<'a> {
    pub(super) fn of(
        source_index: SourceIndex,
        policies: &'a [Policy],
        remediations: &'a [RemediationRequest],
        states: &'a BTreeMap<String, RemediationState>,
    ) -> Self {
        match source_index {
            SourceIndex::Policy(place) => Self::Policy(&policies[place]),
            SourceIndex::Remediation(place) => {
                let remediation = &remediations[place];
                Self::Remediation(remediation, states.get(&remediation.id.uid).unwrap_or(&remediation.state))
            }
        }
    }

    /// Whether what was asked for by that remediation, or by a policy (`None`), says nothing to this one: a key is bound to what was asked for by
    /// it. A remediation that was made anew under its name is another.
    pub(super) fn is_of_another(&self, remediation: Option<&str>) -> bool {
        match self {
            Self::Policy(_) => remediation.is_some(),
            Self::Remediation(own, _) => remediation != Some(own.id.uid.as_str()),
        }
    }

    /// As it stands in notes.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Policy(policy) => policy.name.clone(),
            Self::Remediation(remediation, _) => remediation.id.to_string(),
        }
    }

    /// What names the failure; `None`: there is none. To a remediation a Node that is Ready is healthy, whatever else is said of it.
    pub(super) fn turn(&self, observation: &NodeObservation) -> Option<String> {
        match self {
            Self::Policy(policy) => unhealthy(observation, policy).map(|(turn, _)| turn),
            Self::Remediation(remediation, _) => {
                observation.node.has_failed().then(|| remediation.id.uid.clone())
            }
        }
    }

    /// Since when it is known to have failed, looked at or not; `None`: it has not.
    pub(super) fn since(&self, observation: &NodeObservation) -> Option<Moment> {
        match self {
            Self::Policy(policy) => {
                let found = policy.unhealthy.iter().filter(|one| is_so(observation, one));
                found.filter_map(|one| observation.first(&one.kind)).min()
            }
            Self::Remediation(..) => {
                observation.node.has_failed().then(|| observation.first("Ready")).flatten()
            }
        }
    }

    /// The key that an earlier life of the controller has used for this failure, and its round.
    pub(super) fn known(&self, node: &Node) -> Option<(String, u32)> {
        match self {
            Self::Policy(policy) => episode::noted(node, policy),
            Self::Remediation(_, state) => episode::taken_up(node, state.key.as_ref()?),
        }
    }

    /// The key under which a life of the controller that is over had it fenced, where it has booted since. The Node's note must say so, too: what
    /// stands on a remediation is its namespace's to write, and would keep the Node's policy from asking. How far it is by its status is no word of
    /// it: who writes another one there would have a Node fenced anew that comes back.
    pub(super) fn returning(&self, node: &Node) -> Option<String> {
        let Self::Remediation(_, state) = self else { return None };
        let key = state.key.as_ref().filter(|_| !is_of_this_life(state, node))?;
        let note = Note::of(node).filter(|note| note.policy == self.name() && note.key == *key)?;
        matches!(note.phase, Phase::Fencing | Phase::Returning).then(|| key.clone())
    }

    /// Whose word keeps it from asking. `holder`: a lock for reboots is this Node's.
    pub(super) fn spared(&self, observation: &NodeObservation, holder: bool) -> Option<SkipReason> {
        let spares = match self {
            Self::Policy(policy) if policy.paused => return Some(SkipReason::Paused(policy.name.clone())),
            Self::Policy(policy) => (policy.spare_cordoned, policy.spare_rebooting),
            Self::Remediation(..) => (true, true),
        };
        exclusion::of(observation, spares, holder).map(SkipReason::Excluded)
    }

    /// Why it is too early. How long a Node must have failed for a remediation is NodeHealthCheck's to say, and it has waited.
    pub(super) fn early(&self, observation: &NodeObservation, now: Moment) -> Option<SkipReason> {
        let until = match self {
            Self::Remediation(..) => observation.recovered.map(|at| at + QUIET),
            Self::Policy(policy) => {
                let overdue =
                    |one: &&Unhealthy| is_so(observation, one) && observation.lasted(&one.kind) >= one.least;
                if !policy.unhealthy.iter().any(|one| overdue(&one)) {
                    let next = policy.unhealthy.iter().filter(|one| is_so(observation, one));
                    let next = next.min_by_key(|one| one.least.saturating_sub(observation.lasted(&one.kind)));
                    return next.map(|one| SkipReason::Watching {
                        lasted: observation.lasted(&one.kind),
                        least: one.least,
                    });
                }
                let kinds: BTreeSet<&str> = policy.unhealthy.iter().map(|one| one.kind.as_str()).collect();
                let turned = kinds
                    .iter()
                    .filter_map(|kind| {
                        observation.turned_healthy(kind, |status| policy.is_unhealthy(kind, status))
                    })
                    .chain(observation.recovered)
                    .max();
                turned.map(|at| at + policy.quiet)
            }
        };
        until.filter(|until| now < *until).map(SkipReason::Quiet)
    }

    /// Whether nothing but silence speaks against the Node.
    pub(super) fn goes_by_silence(&self, observation: &NodeObservation) -> bool {
        match self {
            Self::Remediation(..) => {
                observation.node.conditions.get("Ready").is_none_or(|ready| ready.status == "Unknown")
            }
            Self::Policy(policy) => {
                let overdue =
                    |one: &&Unhealthy| is_so(observation, one) && observation.lasted(&one.kind) >= one.least;
                policy.unhealthy.iter().filter(overdue).all(|one| one.status == "Unknown")
            }
        }
    }

    /// What is asked for under that key.
    pub(super) fn order(&self, node: &Node, key: String) -> FenceOrder {
        let name = &node.name;
        let order = |reason, then, grade, deadline| FenceOrder {
            node: node.clone(),
            key,
            reason,
            policy: self.name(),
            remediation: None,
            then,
            grade,
            deadline,
            unhealthy: Vec::new(),
        };
        let of = |kind: &str, status: &str| (kind.to_owned(), status.to_owned());
        match self {
            Self::Policy(policy) => FenceOrder {
                unhealthy: policy.unhealthy.iter().map(|one| of(&one.kind, &one.status)).collect(),
                ..order(
                    format!("Kubernetes: the Node {name} failed (FencingPolicy {})", policy.name),
                    policy.then,
                    policy.grade,
                    policy.deadline,
                )
            },
            Self::Remediation(remediation, _) => FenceOrder {
                remediation: Some(remediation.id.clone()),
                unhealthy: vec![of("Ready", "False"), of("Ready", "Unknown")],
                ..order(
                    format!("Kubernetes: the Node {name} is to be remediated ({})", remediation.id),
                    remediation.then,
                    remediation.grade,
                    remediation.deadline,
                )
            },
        }
    }
}

fn is_so(observation: &NodeObservation, one: &Unhealthy) -> bool {
    observation.node.conditions.get(&one.kind).is_some_and(|condition| condition.status == one.status)
}

/// The turn of the first condition of the policy that is unhealthy, and for how long the worst of them is. Which one names the
/// failure hangs on no clock: who begins later finds the same.
pub(super) fn unhealthy(observation: &NodeObservation, policy: &Policy) -> Option<(String, Duration)> {
    let found = || policy.unhealthy.iter().filter(|one| is_so(observation, one));
    let first = found().next()?;
    let condition = observation.node.conditions.get(&first.kind)?;
    let lasted = found().map(|one| observation.lasted(&one.kind)).max()?;
    Some((format!("{}={}", first.kind, condition.turned), lasted))
}
