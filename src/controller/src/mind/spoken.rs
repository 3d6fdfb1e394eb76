//! Which policy speaks for which Node.

use std::collections::{BTreeMap, BTreeSet};

use super::node::Node;
use super::policy::{Fault, Policy};

/// So many names stand in a message at most.
const NAMED: usize = 5;

/// Which policy speaks for which Node.
#[derive(Clone, Debug, Default)]
pub(super) struct Spoken {
    /// By a Node's name: the place of its only policy, or why none acts.
    pub(super) of: BTreeMap<String, Result<usize, Nobody>>,
    /// By the policy's place.
    pub(super) selected: Vec<usize>,
    pub(super) faults: Vec<Vec<Fault>>,
    /// By the policy's place: it leaves a Node out, or was seen to.
    pub(super) selective: Vec<bool>,
}

/// Why no policy acts for a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nobody {
    /// None selects it.
    Unselected,
    /// The one that selects it, or the first of them, excludes it by its own list.
    Excluded(String),
    /// Several do.
    Several(Vec<String>),
    /// It is of the control plane, and the one that selects it does not name it (K11).
    ControlPlane(String),
    /// The one that selects it selects every Node, and does not say that this is meant.
    Everything(String),
    /// To the one that selects it a healthy Node is unhealthy.
    HealthyCondition(String),
}

impl Nobody {
    /// The policies that select the Node.
    fn policies(&self) -> &[String] {
        match self {
            Self::Unselected | Self::Excluded(_) => &[],
            Self::Several(policies) => policies,
            Self::ControlPlane(policy) | Self::Everything(policy) | Self::HealthyCondition(policy) => {
                std::slice::from_ref(policy)
            }
        }
    }

    /// The first of those that is paused.
    pub(super) fn paused<'p>(&self, policies: &'p [Policy]) -> Option<&'p str> {
        let of_it = |policy: &&Policy| policy.paused && self.policies().contains(&policy.name);
        policies.iter().find(of_it).map(|policy| policy.name.as_str())
    }
}

fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(NAMED) {
        Some(more @ 1..) => format!("{shown} and {more} more"),
        _ => shown,
    }
}

/// The Nodes for which one of the policies speaks.
pub fn spoken_for(policies: &[Policy], nodes: &[Node]) -> BTreeSet<String> {
    let nodes: Vec<&Node> = nodes.iter().collect();
    let of = speak(policies, &nodes).of;
    of.into_iter().filter_map(|(name, spoken)| spoken.is_ok().then_some(name)).collect()
}

/// Who speaks for whom.
pub(super) fn speak(policies: &[Policy], nodes: &[&Node]) -> Spoken {
    let mut spoken = Spoken {
        selected: vec![0; policies.len()],
        faults: vec![Vec::new(); policies.len()],
        selective: policies.iter().map(|policy| policy.selective || leaves_out(policy, nodes)).collect(),
        ..Spoken::default()
    };
    let is_everything =
        |policy: &Policy, selective: &bool| !nodes.is_empty() && !policy.every_node && !selective;
    let everything: Vec<bool> = policies
        .iter()
        .zip(&spoken.selective)
        .map(|(policy, selective)| is_everything(policy, selective))
        .collect();
    let mut unnamed: Vec<Vec<&str>> = vec![Vec::new(); policies.len()];
    let mut shared: Vec<BTreeMap<&str, Vec<&str>>> = vec![BTreeMap::new(); policies.len()];
    for node in nodes {
        let named = |policy: &Policy| node.is_control_plane() && policy.control_plane.contains(&node.name);
        let selects = |place: &usize| {
            let policy = &policies[*place];
            named(policy) || policy.selector.meets(&node.labels)
        };
        let (sparing, speaking): (Vec<usize>, Vec<usize>) =
            (0..policies.len()).filter(selects).partition(|place| policies[*place].spares(node));
        let of = match *speaking {
            [] => Err(match sparing.first() {
                Some(place) => Nobody::Excluded(policies[*place].name.clone()),
                None => Nobody::Unselected,
            }),
            [place] if node.is_control_plane() && !named(&policies[place]) => {
                unnamed[place].push(&node.name);
                Err(Nobody::ControlPlane(policies[place].name.clone()))
            }
            [place] if policies[place].healthy().next().is_some() => {
                Err(Nobody::HealthyCondition(policies[place].name.clone()))
            }
            [place] if everything[place] => Err(Nobody::Everything(policies[place].name.clone())),
            [place] => {
                spoken.selected[place] += 1;
                Ok(place)
            }
            _ => {
                for place in &speaking {
                    for other in speaking.iter().filter(|other| *other != place) {
                        shared[*place].entry(&policies[*other].name).or_default().push(&node.name);
                    }
                }
                Err(Nobody::Several(speaking.iter().map(|place| policies[*place].name.clone()).collect()))
            }
        };
        spoken.of.insert(node.name.clone(), of);
    }
    for (place, policy) in policies.iter().enumerate() {
        let faults = &mut spoken.faults[place];
        let mut tell = |reason, message| faults.push(Fault { reason, message });
        let healthy: Vec<String> =
            policy.healthy().map(|one| format!("{}={}", one.kind, one.status)).collect();
        if !healthy.is_empty() {
            let message = format!(
                "unhealthyConditions has what every healthy Node says: {}. Nobody is fenced by it: take that out",
                healthy.join(", ")
            );
            tell("HealthyCondition", message);
        } else if everything[place] {
            let message = "it selects every Node of the cluster: nobody is fenced by it. Select fewer, or say everyNode: true";
            tell("SelectsEverything", message.to_owned());
        } else if spoken.selected[place] == 0 && shared[place].is_empty() && unnamed[place].is_empty() {
            tell(
                "SelectsNothing",
                "no Node is selected: look at nodeSelector, and at the Nodes' labels".to_owned(),
            );
        }
        for (other, names) in &shared[place] {
            let message = format!(
                "the FencingPolicy {other} selects {} too: for these no policy acts. One policy a Node: narrow one of both, or exclude them",
                listed(names)
            );
            tell("SharesNodes", message);
        }
        if !unnamed[place].is_empty() {
            let message = format!(
                "{} of the control plane, and a selector alone does not reach such a Node: name in controlPlaneNodes which may be fenced; \
                 it is done to one at a time",
                match *unnamed[place] {
                    [one] => format!("{one} is"),
                    ref several => format!("{} are", listed(several)),
                }
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
            let message = format!(
                "controlPlaneNodes names what is no Node of the control plane: {}",
                listed(&strangers)
            );
            tell("NoControlPlaneNode", message);
        }
    }
    spoken
}

/// Whether it does not select one of these Nodes.
fn leaves_out(policy: &Policy, nodes: &[&Node]) -> bool {
    nodes.iter().any(|node| !policy.selector.meets(&node.labels) || policy.spares(node))
}
