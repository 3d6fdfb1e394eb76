//! Leases, and the brake: where too many Nodes are silent at once, the observer is suspect (K9).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::node::{Moment, Node};

/// A lease that was not seen to advance for so long is stale: a kubelet renews it every ten seconds.
pub const STALE: Duration = Duration::from_secs(20);
/// So many stale leases of a zone hold the brake, in percent of its Nodes...
const SHARE: usize = 55;
/// ... and there must be so many.
const LEAST: usize = 3;
/// A zone heals Node by Node: who is not heard again yet is given two renewals more.
const HEALS: Duration = Duration::from_secs(20);

/// A lease that was seen to advance so short a while ago is that of a kubelet that lives now.
const LIVES: Duration = Duration::from_secs(12);

/// When each Node's lease was seen to advance. Its `renewTime` names a renewal, and is compared with no clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Leases(BTreeMap<String, Lease>);

#[derive(Clone, Debug)]
struct Lease {
    renewal: String,
    advanced: Option<Moment>,
    /// Since when it advances without a break.
    since: Option<Moment>,
}

impl Leases {
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

/// A zone in which nothing is fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Braked {
    /// The zone; `None`: the whole cluster.
    pub zone: Option<String>,
    /// So many leases of it are stale.
    pub stale: usize,
    /// So many Nodes it has.
    pub of: usize,
}

/// The zones in which the brake holds, and whether it does for the whole cluster.
pub(super) fn brake(nodes: &[&Node], leases: &Leases, now: Moment) -> BTreeMap<Option<String>, Braked> {
    let mut counts: BTreeMap<Option<String>, (usize, usize)> = BTreeMap::new();
    for node in nodes {
        for zone in [None, Some(node.zone().to_owned())] {
            let (stale, of) = counts.entry(zone).or_default();
            *of += 1;
            *stale += usize::from(!leases.is_fresh(&node.name, now));
        }
    }
    let held = |(stale, of): (usize, usize)| stale >= LEAST && stale * 100 >= of * SHARE;
    let braked = counts.into_iter().filter(|(_, count)| held(*count));
    braked.map(|(zone, (stale, of))| (zone.clone(), Braked { zone, stale, of })).collect()
}

/// The brakes, and those that were released just now.
#[derive(Clone, Debug, Default)]
pub(super) struct Brakes {
    /// Zones that were seen without a brake: at the beginning no lease was seen to advance, and nothing has failed yet.
    free: BTreeSet<Option<String>>,
    held: BTreeMap<Option<String>, (Braked, Moment)>,
}

impl Brakes {
    /// Those that hold now.
    pub(super) fn hold(
        &mut self,
        nodes: &[&Node],
        leases: &Leases,
        now: Moment,
    ) -> BTreeMap<Option<String>, Braked> {
        let mut holding = brake(nodes, leases, now);
        let zones = nodes.iter().map(|node| Some(node.zone().to_owned())).chain([None]);
        self.free.extend(zones.filter(|zone| !holding.contains_key(zone)));
        let known = holding.iter().filter(|(zone, _)| self.free.contains(*zone));
        self.held.extend(known.map(|(zone, braked)| (zone.clone(), (braked.clone(), now))));
        self.held.retain(|_, (_, at)| now.saturating_sub(*at) <= HEALS);
        for (zone, (braked, _)) in &self.held {
            holding.entry(zone.clone()).or_insert_with(|| braked.clone());
        }
        holding
    }

    /// Whether one held when they were looked at last: that zone's, or that of the whole cluster.
    pub(super) fn held_in(&self, zone: &str) -> bool {
        self.held.contains_key(&None) || self.held.contains_key(&Some(zone.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn braked(zones: &[(&str, usize, usize)]) -> Vec<Option<String>> {
        let (mut nodes, mut leases) = (Vec::new(), Leases::default());
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
        brake(&nodes.iter().collect::<Vec<_>>(), &leases, S * 100).into_keys().collect()
    }

    #[test]
    fn a_share_of_a_zone_holds_it_and_at_least_three() {
        let a = || Some("a".to_owned());
        assert_eq!(braked(&[("a", 20, 10), ("b", 20, 0)]), []);
        assert_eq!(braked(&[("a", 20, 11), ("b", 20, 0)]), [a()]);
        assert_eq!(braked(&[("a", 2, 2), ("b", 20, 0)]), []);
        assert_eq!(braked(&[("a", 3, 3), ("b", 20, 0)]), [a()]);
        // Zones too small for a brake of their own are one cluster.
        assert_eq!(braked(&[("a", 2, 2), ("b", 2, 2)]), [None]);
    }

    /// The first two that are heard again do not cost the third its life.
    #[test]
    fn a_zone_that_heals_is_held_for_two_renewals_more_and_one_that_is_new_is_not() {
        let nodes: Vec<Node> =
            ["n1", "n2", "n3"].map(|name| Node { name: name.to_owned(), ..Node::default() }).into();
        let nodes: Vec<&Node> = nodes.iter().collect();
        let (mut leases, mut brakes) = (Leases::default(), Brakes::default());
        let heard = |leases: &mut Leases, names: &[&str], at: u32| {
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
    fn a_lease_that_was_never_seen_to_advance_is_stale() {
        let mut leases = Leases::default();
        leases.see("n", "1", S);
        leases.see("n", "1", S * 2);
        assert!(!leases.is_fresh("n", S * 2) && !leases.is_fresh("other", S * 2));
        leases.see("n", "2", S * 3);
        assert!(leases.is_fresh("n", S * 23) && !leases.is_fresh("n", S * 24));
    }
}
