//! Who speaks for a Node: its policy, or a remediation.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::episode::{self, Order};
use super::exclusion;
use super::node::{Moment, Node};
use super::note::{Note, Phase};
use super::policy::{Policy, Unhealthy};
use super::sight::Sight;
use super::standing::{Standing, is_of_this_life};
use super::verdict::Why;
use super::wish::Wish;

/// How long a Node that the gateway found alive is left alone by a remediation.
const QUIET: Duration = Duration::from_secs(60);

/// Which one, by its place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Speaker {
    Policy(usize),
    Wish(usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Voice<'a> {
    Policy(&'a Policy),
    Wish(&'a Wish, &'a Standing),
}

impl<'a> Voice<'a> {
    pub(super) fn of(
        speaker: Speaker,
        policies: &'a [Policy],
        wishes: &'a [Wish],
        standings: &'a BTreeMap<String, Standing>,
    ) -> Self {
        match speaker {
            Speaker::Policy(place) => Self::Policy(&policies[place]),
            Speaker::Wish(place) => {
                let wish = &wishes[place];
                Self::Wish(wish, standings.get(&wish.id.uid).unwrap_or(&wish.standing))
            }
        }
    }

    /// Whether what was asked for by that remediation, or by a policy (`None`), says nothing to this one: a key is bound to what was asked for by
    /// it. A remediation that was made anew under its name is another.
    pub(super) fn is_of_another(&self, wish: Option<&str>) -> bool {
        match self {
            Self::Policy(_) => wish.is_some(),
            Self::Wish(own, _) => wish != Some(own.id.uid.as_str()),
        }
    }

    /// As it stands in notes.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Policy(policy) => policy.name.clone(),
            Self::Wish(wish, _) => wish.id.to_string(),
        }
    }

    /// What names the failure; `None`: there is none. To a remediation a Node that is Ready is healthy, whatever else is said of it.
    pub(super) fn turn(&self, sight: &Sight) -> Option<String> {
        match self {
            Self::Policy(policy) => unhealthy(sight, policy).map(|(turn, _)| turn),
            Self::Wish(wish, _) => sight.node.has_failed().then(|| wish.id.uid.clone()),
        }
    }

    /// Since when it is known to have failed, looked at or not; `None`: it has not.
    pub(super) fn since(&self, sight: &Sight) -> Option<Moment> {
        match self {
            Self::Policy(policy) => {
                let found = policy.unhealthy.iter().filter(|one| is_so(sight, one));
                found.filter_map(|one| sight.first(&one.kind)).min()
            }
            Self::Wish(..) => sight.node.has_failed().then(|| sight.first("Ready")).flatten(),
        }
    }

    /// The key that an earlier life of the controller has used for this failure, and its round.
    pub(super) fn known(&self, node: &Node) -> Option<(String, u32)> {
        match self {
            Self::Policy(policy) => episode::noted(node, policy),
            Self::Wish(_, standing) => episode::taken_up(node, standing.key.as_ref()?),
        }
    }

    /// The key under which a life of the controller that is over had it fenced, where it has booted since. The Node's note must say so, too: what
    /// stands on a remediation is its namespace's to write, and would keep the Node's policy from asking. How far it is by its status is no word of
    /// it: who writes another one there would have a Node fenced anew that comes back.
    pub(super) fn returning(&self, node: &Node) -> Option<String> {
        let Self::Wish(_, standing) = self else { return None };
        let key = standing.key.as_ref().filter(|_| !is_of_this_life(standing, node))?;
        let note = Note::of(node).filter(|note| note.policy == self.name() && note.key == *key)?;
        matches!(note.phase, Phase::Fencing | Phase::Returning).then(|| key.clone())
    }

    /// Whose word keeps it from asking. `holder`: a lock for reboots is this Node's.
    pub(super) fn spared(&self, sight: &Sight, holder: bool) -> Option<Why> {
        let spares = match self {
            Self::Policy(policy) if policy.paused => return Some(Why::Paused(policy.name.clone())),
            Self::Policy(policy) => (policy.spare_cordoned, policy.spare_rebooting),
            Self::Wish(..) => (true, true),
        };
        exclusion::of(sight, spares, holder).map(Why::Excluded)
    }

    /// Why it is too early. How long a Node must have failed for a remediation is NodeHealthCheck's to say, and it has waited.
    pub(super) fn early(&self, sight: &Sight, now: Moment) -> Option<Why> {
        let until = match self {
            Self::Wish(..) => sight.recovered.map(|at| at + QUIET),
            Self::Policy(policy) => {
                let overdue = |one: &&Unhealthy| is_so(sight, one) && sight.lasted(&one.kind) >= one.least;
                if !policy.unhealthy.iter().any(|one| overdue(&one)) {
                    let next = policy.unhealthy.iter().filter(|one| is_so(sight, one));
                    let next = next.min_by_key(|one| one.least.saturating_sub(sight.lasted(&one.kind)));
                    return next
                        .map(|one| Why::Watching { lasted: sight.lasted(&one.kind), least: one.least });
                }
                let kinds: BTreeSet<&str> = policy.unhealthy.iter().map(|one| one.kind.as_str()).collect();
                let turned = kinds
                    .iter()
                    .filter_map(|kind| sight.turned_healthy(kind, |status| policy.is_unhealthy(kind, status)))
                    .chain(sight.recovered)
                    .max();
                turned.map(|at| at + policy.quiet)
            }
        };
        until.filter(|until| now < *until).map(Why::Quiet)
    }

    /// Whether nothing but silence speaks against the Node.
    pub(super) fn goes_by_silence(&self, sight: &Sight) -> bool {
        match self {
            Self::Wish(..) => {
                sight.node.conditions.get("Ready").is_none_or(|ready| ready.status == "Unknown")
            }
            Self::Policy(policy) => {
                let overdue = |one: &&Unhealthy| is_so(sight, one) && sight.lasted(&one.kind) >= one.least;
                policy.unhealthy.iter().filter(overdue).all(|one| one.status == "Unknown")
            }
        }
    }

    /// What is asked for under that key.
    pub(super) fn order(&self, node: &Node, key: String) -> Order {
        let name = &node.name;
        let order = |reason, then, grade, deadline| Order {
            node: node.clone(),
            key,
            reason,
            policy: self.name(),
            wish: None,
            then,
            grade,
            deadline,
            unhealthy: Vec::new(),
        };
        let of = |kind: &str, status: &str| (kind.to_owned(), status.to_owned());
        match self {
            Self::Policy(policy) => Order {
                unhealthy: policy.unhealthy.iter().map(|one| of(&one.kind, &one.status)).collect(),
                ..order(
                    format!("Kubernetes: the Node {name} failed (FencingPolicy {})", policy.name),
                    policy.then,
                    policy.grade,
                    policy.deadline,
                )
            },
            Self::Wish(wish, _) => Order {
                wish: Some(wish.id.clone()),
                unhealthy: vec![of("Ready", "False"), of("Ready", "Unknown")],
                ..order(
                    format!("Kubernetes: the Node {name} is to be remediated ({})", wish.id),
                    wish.then,
                    wish.grade,
                    wish.deadline,
                )
            },
        }
    }
}

fn is_so(sight: &Sight, one: &Unhealthy) -> bool {
    sight.node.conditions.get(&one.kind).is_some_and(|condition| condition.status == one.status)
}

/// The turn of the first condition of the policy that is unhealthy, and for how long the worst of them is. Which one names the
/// failure hangs on no clock: who begins later finds the same.
pub(super) fn unhealthy(sight: &Sight, policy: &Policy) -> Option<(String, Duration)> {
    let found = || policy.unhealthy.iter().filter(|one| is_so(sight, one));
    let first = found().next()?;
    let condition = sight.node.conditions.get(&first.kind)?;
    let lasted = found().map(|one| sight.lasted(&one.kind)).max()?;
    Some((format!("{}={}", first.kind, condition.turned), lasted))
}
