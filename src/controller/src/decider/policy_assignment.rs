//! Which policy speaks for which Node.
//!
//! # Invariants
//!
//! - A policy that does not act takes no Node from another one. Shown by
//!   `a_policy_that_does_not_act_disarms_none_that_does`, `of_a_node_the_only_policy_that_acts_speaks`.
//! - A selector that needs no label asks for nothing unless it says so. Shown by
//!   `one_that_needs_no_label_is_everything_whichever_nodes_there_are_unless_it_says_so`.

use std::collections::{BTreeMap, BTreeSet};

use super::exclusion::Exclusion;
use super::node::Node;
use super::policy::{Policy, PolicyFault};
use super::verdict::SkipReason;

/// So many names stand in a message at most.
const NAMED: usize = 5;

/// Which policy speaks for which Node.
#[derive(Clone, Debug, Default)]
pub(super) struct PolicyAssignments {
    /// By a Node's name: the place of the only policy that acts for it, else of one that is right and paused, or why there is none.
    pub(super) of: BTreeMap<String, Result<usize, NoPolicy>>,
    /// By a Node's name: what a policy says that bars a remediation, whether that policy acts or not (K12).
    pub(super) barred: BTreeMap<String, SkipReason>,
    /// By the policy's place.
    pub(super) selected: Vec<usize>,
    pub(super) faults: Vec<Vec<PolicyFault>>,
    /// By the policy's place: those that act for Nodes that it selects while it does not.
    pub(super) instead: Vec<BTreeSet<String>>,
}

/// Why no policy acts for a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPolicy {
    /// None selects it.
    Unselected,
    /// The one that selects it, or the first of them, excludes it by its own list.
    Excluded(String),
    /// Several act for it.
    Several(Vec<String>),
    /// It is of the control plane, and the one that selects it does not name it (K11).
    ControlPlane(String),
    /// The one that selects it selects every Node, and does not say that this is meant.
    Everything(String),
    /// To the one that selects it a healthy Node is unhealthy.
    HealthyCondition(String),
}

impl NoPolicy {
    /// Whether somebody wanted it to be fenced, and it is not by a mistake in the policies.
    pub(crate) fn is_a_mistake(&self) -> bool {
        !matches!(self, Self::Unselected | Self::Excluded(_))
    }
}

impl Policy {
    fn names(&self, node: &Node) -> bool {
        node.is_control_plane() && self.control_plane.contains(&node.name)
    }

    /// Whether its selector selects every Node there may be. That is a matter of its text: which Nodes there are, and what they are labelled with,
    /// may be otherwise the next minute.
    fn is_everything(&self) -> bool {
        !self.every_node && !self.selector.needs_a_label()
    }

    /// Why it does not speak for a Node that it selects, be it paused or not.
    fn refused(&self, node: &Node) -> Option<NoPolicy> {
        let name = || self.name.clone();
        if node.is_control_plane() && !self.names(node) {
            return Some(NoPolicy::ControlPlane(name()));
        }
        if self.healthy().next().is_some() {
            return Some(NoPolicy::HealthyCondition(name()));
        }
        self.is_everything().then(|| NoPolicy::Everything(name()))
    }
}

/// What was found of one policy.
#[derive(Clone, Debug, Default)]
struct PolicyFindings<'a> {
    /// It selects a Node that it does not exclude.
    selects: bool,
    /// By another policy that acts: the Nodes for which this one acts, too.
    shared: BTreeMap<&'a str, Vec<&'a str>>,
    /// Nodes of the control plane that it does not name, and for which no other one acts.
    unnamed: Vec<&'a str>,
}

/// The Nodes for which one of the policies speaks.
pub fn spoken_for(policies: &[Policy], nodes: &[Node]) -> BTreeSet<String> {
    let nodes: Vec<&Node> = nodes.iter().collect();
    let of = speak(policies, &nodes).of;
    of.into_iter().filter_map(|(name, assignments)| assignments.is_ok().then_some(name)).collect()
}

/// Who speaks for whom. A policy that is paused, or refused, keeps no other one from it.
pub(super) fn speak(policies: &[Policy], nodes: &[&Node]) -> PolicyAssignments {
    let mut assignments = PolicyAssignments {
        selected: vec![0; policies.len()],
        instead: vec![BTreeSet::new(); policies.len()],
        ..PolicyAssignments::default()
    };
    let mut found: Vec<PolicyFindings<'_>> = vec![PolicyFindings::default(); policies.len()];
    for node in nodes {
        let selects = |place: &usize| {
            let policy = &policies[*place];
            policy.names(node) || policy.selector.meets(&node.labels)
        };
        let (sparing, selecting): (Vec<usize>, Vec<usize>) =
            (0..policies.len()).filter(selects).partition(|place| policies[*place].spares(node));
        selecting.iter().for_each(|place| found[*place].selects = true);
        let name = |place: &usize| policies[*place].name.clone();
        let is_right = |place: &usize| policies[*place].refused(node).is_none();
        let (paused, acting): (Vec<usize>, Vec<usize>) =
            selecting.iter().filter(|place| is_right(place)).partition(|place| policies[**place].paused);
        let excluded = || sparing.first().map(|place| NoPolicy::Excluded(name(place)));
        let of = match (&*acting, &*paused) {
            ([place], _) | ([], [place, ..]) => {
                assignments.selected[*place] += 1;
                Ok(*place)
            }
            ([], []) => {
                let refused = selecting.first().and_then(|place| policies[*place].refused(node));
                Err(refused.or_else(excluded).unwrap_or(NoPolicy::Unselected))
            }
            (several, _) => Err(NoPolicy::Several(several.iter().map(name).collect())),
        };
        for place in &acting {
            for other in acting.iter().filter(|other| *other != place) {
                found[*place].shared.entry(&policies[*other].name).or_default().push(&node.name);
            }
        }
        for place in selecting.iter().filter(|place| !acting.contains(place)) {
            assignments.instead[*place].extend(acting.iter().map(name));
            if matches!(policies[*place].refused(node), Some(NoPolicy::ControlPlane(_))) && acting.is_empty()
            {
                found[*place].unnamed.push(&node.name);
            }
        }
        let pausing = selecting.iter().find(|place| policies[**place].paused);
        let excluding = sparing.first().filter(|_| acting.is_empty());
        let barred = pausing.map(|place| SkipReason::Paused(name(place)));
        let barred =
            barred.or_else(|| excluding.map(|place| SkipReason::Excluded(Exclusion::Policy(name(place)))));
        assignments.barred.extend(barred.map(|why| (node.name.clone(), why)));
        assignments.of.insert(node.name.clone(), of);
    }
    assignments.faults =
        policies.iter().zip(&found).map(|(policy, found)| faults(policy, found, nodes)).collect();
    assignments
}

fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMED) {
        Some(more @ 1..) => format!("{shown} and {more} more"),
        _ => shown,
    }
}

/// What is wrong with a policy. What stands before the first colon of a message names no Node: it stays the same while Nodes come and go.
fn faults(policy: &Policy, found: &PolicyFindings<'_>, nodes: &[&Node]) -> Vec<PolicyFault> {
    let mut faults = Vec::new();
    let mut tell = |reason, message: String| faults.push(PolicyFault { reason, message });
    let healthy: Vec<String> = policy.healthy().map(|one| format!("{}={}", one.kind, one.status)).collect();
    if !healthy.is_empty() {
        let message = format!(
            "unhealthyConditions has what every healthy Node says: {}. Nobody is fenced by it: take that out",
            healthy.join(", ")
        );
        tell("HealthyCondition", message);
    } else if policy.is_everything() {
        let message = "nodeSelector wants no label that some Nodes lack, and so may select every Node of the cluster: nobody is fenced by it. Give one \
                       (matchLabels, In, Exists; not kubernetes.io/os, /arch or /hostname, which every Node has), or say everyNode: true";
        tell("SelectsEverything", message.to_owned());
    } else if !found.selects {
        tell(
            "SelectsNothing",
            "no Node is selected: look at nodeSelector, and at the Nodes' labels".to_owned(),
        );
    }
    for (other, names) in &found.shared {
        let message = format!(
            "the FencingPolicy {other} acts for Nodes that this one selects too: {}. For these no policy acts. One policy a Node: narrow one of \
             both, exclude them, or pause one",
            listed(names)
        );
        tell("SharesNodes", message);
    }
    if !found.unnamed.is_empty() {
        let message = format!(
            "a selector alone reaches no Node of the control plane: name in controlPlaneNodes which may be fenced of {}; it is done to one at a time",
            listed(&found.unnamed)
        );
        tell("ControlPlane", message);
    }
    let strangers: Vec<&str> = policy
        .control_plane
        .iter()
        .filter(|name| !nodes.iter().any(|node| node.name == **name && node.is_control_plane()))
        .map(String::as_str)
        .collect();
    if !strangers.is_empty() {
        let message =
            format!("controlPlaneNodes names what is no Node of the control plane: {}", listed(&strangers));
        tell("NoControlPlaneNode", message);
    }
    faults
}
