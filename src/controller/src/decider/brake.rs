//! Leases, and the brakes: where too many Nodes are silent, or unhealthy, at once, the observer is suspect (K9, S14).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Decider;
use super::episode::Episode;
use super::node::{Moment, Node};
use super::policy_assignment::PolicyAssignments;
use super::remediation_turn::RemediationTurn;

/// A lease that was not seen to advance for so long is stale: a kubelet renews it every ten seconds.
pub const STALE: Duration = Duration::from_secs(20);
/// So many stale leases, or unhealthy Nodes, of a zone hold the brake, in percent of its Nodes...
const SHARE: usize = 55;
/// ... and there must be so many: of a zone of three Nodes one that is dead, or two, are fenced.
const LEAST: usize = 3;
/// A zone heals Node by Node: who is not heard again yet is given two renewals more.
const HEALS: Duration = Duration::from_secs(20);
/// What made Nodes unhealthy is mended Node by Node, too, by whoever rolls it out: so long after the last one that became healthy.
const MENDS: Duration = Duration::from_secs(60);

/// A lease that was seen to advance so short a while ago is that of a kubelet that lives now.
const LIVES: Duration = Duration::from_secs(12);

/// When each Node's lease was seen to advance. Its `renewTime` names a renewal, and is compared with no clock.
#[derive(Clone, Debug, Default)]
pub(super) struct LeaseHistory(BTreeMap<String, Lease>);

#[derive(Clone, Debug)]
struct Lease {
    renewal: String,
    advanced: Option<Moment>,
    /// Since when it advances without a break.
    since: Option<Moment>,
}

impl LeaseHistory {
    pub(super) fn see(&mut self, node: &str, renewal: &str, at: Moment) {
        match self.0.get_mut(node) {
            Some(lease) if lease.renewal == renewal => {}
            Some(lease) => {
                let goes_on = lease.advanced.is_some_and(|last| at.saturating_sub(last) <= STALE);
                let since = lease.since.filter(|_| goes_on).or(Some(at));
                *lease = Lease { renewal: renewal.to_owned(), advanced: Some(at), since };
            }
            // What is found may have been so for long.
            None => {
                let lease = Lease { renewal: renewal.to_owned(), advanced: None, since: None };
                drop(self.0.insert(node.to_owned(), lease));
            }
        }
    }

    pub(super) fn forget(&mut self, node: &str) {
        self.0.remove(node);
    }

    /// Since when a kubelet is heard, if it is heard now.
    pub(super) fn heard_since(&self, node: &str, now: Moment) -> Option<Moment> {
        let lease = self.0.get(node)?;
        let lives = lease.advanced.is_some_and(|at| now.saturating_sub(at) <= LIVES);
        lease.since.filter(|_| lives)
    }

    fn is_fresh(&self, node: &str, now: Moment) -> bool {
        let advanced = self.0.get(node).and_then(|lease| lease.advanced);
        advanced.is_some_and(|at| now.saturating_sub(at) <= STALE)
    }
}

/// Where so much looks dead at once that nothing is fenced.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BrakeScope {
    /// The whole cluster.
    Cluster,
    /// A zone; empty: the Nodes without one.
    Zone(String),
    /// The Nodes for which the FencingPolicy of that name speaks.
    Policy(String),
}

/// By what it looks so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BrakeSign {
    /// Leases of kubelets do not advance.
    Leases,
    /// Nodes are unhealthy by their conditions, or are being fenced, kept off or brought back.
    Conditions,
}

impl BrakeSign {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Leases, Self::Conditions];

    /// In a word, for machines.
    pub fn word(self) -> &'static str {
        match self {
            Self::Leases => "leases",
            Self::Conditions => "conditions",
        }
    }
}

/// A brake that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveBrake {
    /// Where.
    pub place: BrakeScope,
    /// By what.
    pub sign: BrakeSign,
    /// So many Nodes there are stale, or unhealthy.
    pub found: usize,
    /// So many Nodes there are.
    pub of: usize,
}

/// The brakes that hold.
pub(super) type ActiveBrakes = BTreeMap<(BrakeSign, BrakeScope), ActiveBrake>;

/// A Node, as brakes count it.
#[derive(Debug)]
pub(super) struct CountedNode<'a> {
    pub(super) node: &'a Node,
    /// In which it counts.
    pub(super) zone: &'a str,
    /// The policy that speaks for it.
    pub(super) policy: Option<&'a str>,
    /// It is unhealthy, or is being fenced, kept off or brought back.
    pub(super) ill: bool,
    /// Its policy takes it for unhealthy by a condition of which nobody else knows what is healthy.
    pub(super) ill_by_word: bool,
}

/// The places of a Node of that zone.
fn places(zone: &str, policy: Option<&str>) -> impl Iterator<Item = BrakeScope> {
    let of_policy = policy.map(|name| BrakeScope::Policy(name.to_owned()));
    [BrakeScope::Cluster, BrakeScope::Zone(zone.to_owned())].into_iter().chain(of_policy)
}

/// The brake that holds for a Node of that zone.
pub(super) fn over<'b>(
    holding: &'b ActiveBrakes,
    zone: &str,
    policy: Option<&str>,
) -> Option<&'b ActiveBrake> {
    let both = |sign| places(zone, policy).map(move |place| (sign, place));
    BrakeSign::ALL.into_iter().flat_map(both).find_map(|one| holding.get(&one))
}

/// How many Nodes of each place are stale, and how many are ill, of how many.
fn count(
    nodes: &[CountedNode<'_>],
    leases: &LeaseHistory,
    now: Moment,
) -> BTreeMap<(BrakeSign, BrakeScope), (usize, usize)> {
    let mut counts: BTreeMap<(BrakeSign, BrakeScope), (usize, usize)> = BTreeMap::new();
    let mut add = |sign, place, so| {
        let (found, of) = counts.entry((sign, place)).or_default();
        *found += usize::from(so);
        *of += 1;
    };
    for one in nodes {
        let is_stale = !leases.is_fresh(&one.node.name, now);
        for place in places(one.zone, None) {
            add(BrakeSign::Leases, place, is_stale);
        }
        for place in places(one.zone, one.policy) {
            let is_own = matches!(place, BrakeScope::Policy(_));
            add(BrakeSign::Conditions, place, if is_own { one.ill_by_word } else { one.ill });
        }
    }
    counts
}

/// Whether that is too much at once. Of a policy's own Nodes it is more than half: what it alone takes for unhealthy may be what a healthy Node
/// says.
fn is_suspect(place: &BrakeScope, found: usize, of: usize) -> bool {
    let is_most = match place {
        BrakeScope::Policy(_) => found * 2 > of,
        BrakeScope::Cluster | BrakeScope::Zone(_) => found * 100 >= of * SHARE,
    };
    found >= LEAST && is_most
}

/// The brakes, and those that were released just now.
#[derive(Clone, Debug, Default)]
pub(super) struct Brakes {
    /// Places that were seen without a brake: at the beginning no lease was seen to advance, and nothing has failed yet.
    free: BTreeSet<(BrakeSign, BrakeScope)>,
    held: BTreeMap<(BrakeSign, BrakeScope), HeldBrake>,
}

#[derive(Clone, Debug)]
struct HeldBrake {
    braked: ActiveBrake,
    /// When it was too much, or became less, last.
    at: Moment,
    /// The least that was found since it was too much.
    least: usize,
}

impl Brakes {
    /// Those that hold now.
    pub(super) fn hold(
        &mut self,
        nodes: &[CountedNode<'_>],
        leases: &LeaseHistory,
        now: Moment,
    ) -> ActiveBrakes {
        let mut holding = ActiveBrakes::new();
        for (over, (found, of)) in count(nodes, leases, now) {
            let (sign, place) = over.clone();
            if !is_suspect(&place, found, of) {
                if let Some(held) = self.held.get_mut(&over)
                    && sign == BrakeSign::Conditions
                    && found < held.least
                {
                    (held.at, held.least) = (now, found);
                }
                self.free.insert(over);
                continue;
            }
            let braked = ActiveBrake { place, sign, found, of };
            // Conditions are facts from the beginning on.
            if sign == BrakeSign::Conditions || self.free.contains(&over) {
                let held = HeldBrake { braked: braked.clone(), at: now, least: found };
                self.held.insert(over.clone(), held);
            }
            holding.insert(over, braked);
        }
        let heals = |sign| if sign == BrakeSign::Leases { HEALS } else { MENDS };
        self.held.retain(|(sign, _), held| now.saturating_sub(held.at) <= heals(*sign));
        for (over, held) in &self.held {
            holding.entry(over.clone()).or_insert_with(|| held.braked.clone());
        }
        holding
    }

    /// Whether one held for a Node of that zone when they were looked at last.
    pub(super) fn held_over(&self, zone: &str, policy: Option<&str>) -> bool {
        let both = |sign| places(zone, policy).map(move |place| (sign, place));
        BrakeSign::ALL.into_iter().flat_map(both).any(|over| self.held.contains_key(&over))
    }
}

impl Decider {
    /// The policy that speaks for a Node, also where a remediation speaks before it.
    pub(super) fn policy_of(&self, name: &str, assignments: &PolicyAssignments) -> Option<&str> {
        let place = assignments.of.get(name)?.as_ref().ok()?;
        Some(self.policies[*place].name.as_str())
    }

    /// All Nodes, and whether each is unhealthy: by whoever speaks for it, by not being Ready, or since its machine is switched off for it.
    pub(super) fn counted(
        &self,
        speaking: &BTreeMap<String, RemediationTurn>,
        assignments: &PolicyAssignments,
    ) -> Vec<CountedNode<'_>> {
        let mut all = Vec::with_capacity(self.nodes.len());
        for (name, observation) in &self.nodes {
            let source_index = self.source_index(name, speaking, assignments).and_then(Result::ok);
            let is_spoken_ill = source_index
                .is_some_and(|source_index| self.source(source_index).turn(observation).is_some());
            let is_worked_on = self.episodes.get(name).is_some_and(Episode::is_fencing);
            let ill = is_spoken_ill || is_worked_on || !observation.node.is_ready();
            let place = assignments.of.get(name).and_then(|of| of.as_ref().ok());
            let ill_by_word =
                place.is_some_and(|place| self.policies[*place].takes_at_its_word(&observation.node));
            let (node, zone, policy) =
                (&observation.node, observation.zone(), self.policy_of(name, assignments));
            all.push(CountedNode { node, zone, policy, ill, ill_by_word });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn counted<'a>(nodes: &[&'a Node]) -> Vec<CountedNode<'a>> {
        let counted = |node: &&'a Node| CountedNode {
            node,
            zone: node.zone(),
            policy: None,
            ill: false,
            ill_by_word: false,
        };
        nodes.iter().map(counted).collect()
    }

    fn braked(zones: &[(&str, usize, usize)]) -> Vec<BrakeScope> {
        let (mut nodes, mut leases) = (Vec::new(), LeaseHistory::default());
        for (zone, count, stale) in zones {
            for n in 0..*count {
                let labels = BTreeMap::from([("topology.kubernetes.io/zone".to_owned(), (*zone).to_owned())]);
                let node = Node { name: format!("{zone}{n}"), labels, ..Node::default() };
                leases.see(&node.name, "1", S);
                if n >= *stale {
                    leases.see(&node.name, "2", S * 90);
                }
                nodes.push(node);
            }
        }
        let nodes = nodes.iter().collect::<Vec<_>>();
        let holding = Brakes::default().hold(&counted(&nodes), &leases, S * 100);
        holding
            .into_keys()
            .map(|(sign, place)| (sign == BrakeSign::Leases).then_some(place).expect("leases"))
            .collect()
    }

    #[test]
    fn a_share_of_a_zone_holds_it_and_at_least_three() {
        let a = || BrakeScope::Zone("a".to_owned());
        assert_eq!(braked(&[("a", 20, 10), ("b", 20, 0)]), []);
        assert_eq!(braked(&[("a", 20, 11), ("b", 20, 0)]), [a()]);
        assert_eq!(braked(&[("a", 2, 2), ("b", 20, 0)]), []);
        assert_eq!(braked(&[("a", 3, 3), ("b", 20, 0)]), [a()]);
        // Zones too small for a brake of their own are one cluster.
        assert_eq!(braked(&[("a", 2, 2), ("b", 2, 2)]), [BrakeScope::Cluster]);
    }

    /// The first two that are heard again do not cost the third its life.
    #[test]
    fn a_zone_that_heals_is_held_for_two_renewals_more_and_one_that_is_new_is_not() {
        let nodes: Vec<Node> =
            ["n1", "n2", "n3"].map(|name| Node { name: name.to_owned(), ..Node::default() }).into();
        let nodes = counted(&nodes.iter().collect::<Vec<_>>());
        let (mut leases, mut brakes) = (LeaseHistory::default(), Brakes::default());
        let heard = |leases: &mut LeaseHistory, names: &[&str], at: u32| {
            names.iter().for_each(|name| leases.see(name, &at.to_string(), S * at));
        };
        let all = ["n1", "n2", "n3"];
        heard(&mut leases, &all, 1);
        assert!(!brakes.hold(&nodes, &leases, S * 1).is_empty(), "nobody was seen to advance");
        heard(&mut leases, &all, 10);
        assert!(brakes.hold(&nodes, &leases, S * 10).is_empty(), "and that was the beginning");
        assert!(!brakes.hold(&nodes, &leases, S * 40).is_empty());
        heard(&mut leases, &["n1"], 41);
        assert!(!brakes.hold(&nodes, &leases, S * 41).is_empty(), "two are stale, and no more");
        heard(&mut leases, &["n1"], 60);
        assert!(!brakes.hold(&nodes, &leases, S * 60).is_empty());
        assert!(brakes.hold(&nodes, &leases, S * 61).is_empty(), "who is silent still is dead");
    }

    #[test]
    fn of_a_policy_s_own_nodes_more_than_half_are_too_many_and_at_least_three() {
        let own = BrakeScope::Policy("p".to_owned());
        for (found, of, is) in
            [(2, 2, false), (3, 3, true), (3, 5, true), (3, 6, false), (50, 100, false), (51, 100, true)]
        {
            assert_eq!(is_suspect(&own, found, of), is, "{found} of {of}");
        }
    }

    #[test]
    fn a_lease_that_was_never_seen_to_advance_is_stale() {
        let mut leases = LeaseHistory::default();
        leases.see("n", "1", S);
        leases.see("n", "1", S * 2);
        assert!(!leases.is_fresh("n", S * 2) && !leases.is_fresh("other", S * 2));
        leases.see("n", "2", S * 3);
        assert!(leases.is_fresh("n", S * 23) && !leases.is_fresh("n", S * 24));
    }
}
