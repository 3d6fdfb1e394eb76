//! Any history of looks, gaps, turns, leases and answers, against what the law says of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::super::*;
use super::scene::{Scene, policy, remediation};

#[derive(Clone, Debug)]
enum Happens {
    /// So many seconds pass, in which everybody looks.
    Looks(u8),
    /// So many seconds pass, in which nobody does.
    Gap(u8),
    /// A Node's condition turns.
    Turns(u8, u8),
    Boots(u8),
    Cordons(u8, bool),
    Excludes(u8, bool),
    /// The leases of these stand still, a bit a Node.
    Silent(u8),
    /// What was asked for ends.
    Ends(u8, u8),
    Leads(bool),
    /// A remediation of a Node is made, or is away.
    Remediations(u8, bool),
    /// It times out, is deleted, or loses its finalizer.
    WishEnds(u8, u8),
    /// Of a Node that is to come back the gateway says that.
    Brought(u8, u8),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => (1..30_u8).prop_map(Happens::Looks),
        1 => (1..90_u8).prop_map(Happens::Gap),
        5 => (0..6_u8, 0..3_u8).prop_map(|(node, status)| Happens::Turns(node, status)),
        1 => (0..6_u8).prop_map(Happens::Boots),
        1 => (0..6_u8, any::<bool>()).prop_map(|(node, so)| Happens::Cordons(node, so)),
        1 => (0..6_u8, any::<bool>()).prop_map(|(node, so)| Happens::Excludes(node, so)),
        2 => any::<u8>().prop_map(Happens::Silent),
        3 => (0..6_u8, 0..7_u8).prop_map(|(node, end)| Happens::Ends(node, end)),
        1 => any::<bool>().prop_map(Happens::Leads),
        3 => (0..6_u8, any::<bool>()).prop_map(|(node, so)| Happens::Remediations(node, so)),
        1 => (0..6_u8, 0..3_u8).prop_map(|(node, how)| Happens::WishEnds(node, how)),
        3 => (0..6_u8, 0..3_u8).prop_map(|(node, way)| Happens::Brought(node, way)),
    ]
}

fn end(number: u8) -> RequestOutcome {
    [
        RequestOutcome::Off,
        RequestOutcome::Recovered,
        RequestOutcome::Superseded,
        RequestOutcome::Blocked(None),
        RequestOutcome::Held,
        RequestOutcome::Person,
        RequestOutcome::Refused,
    ][usize::from(number) % 7]
        .clone()
}

const NAMES: [&str; 6] = ["n1", "n2", "n3", "n4", "n5", "m1"];
const STATUS: [&str; 3] = ["True", "False", "Unknown"];

const EXCLUDE: &str = "picket.dev/exclude";

/// Every look that was taken, of every Node.
#[derive(Default)]
struct Looks(BTreeMap<String, Vec<(Moment, Node)>>);

impl Looks {
    /// For how long it was seen as it is now, by looks that follow each other within six seconds.
    fn lasted(&self, name: &str) -> Duration {
        let looks = &self.0[name];
        let (last, now) = looks.last().expect("a look");
        let mut from = *last;
        for (at, node) in looks.iter().rev() {
            let same = node.conditions == now.conditions && node.boot_id == now.boot_id;
            if !same || from - *at > Duration::from_secs(6) {
                break;
            }
            from = *at;
        }
        *last - from
    }

    /// Whether it was Ready within so long.
    fn was_ready_within(&self, name: &str, now: Moment, within: Duration) -> bool {
        let looks = self.0[name].windows(2);
        let mut turns = looks.filter(|two| !two[0].1.is_ready() && two[1].1.is_ready());
        turns.any(|two| now - two[1].0 < within)
    }

    fn was_cordoned_before(&self, name: &str) -> bool {
        let looks = &self.0[name];
        let failed = looks.iter().rev().take_while(|(_, node)| !node.is_ready());
        failed.clone().count() > 0
            && failed.clone().all(|(_, node)| node.cordoned)
            && looks.iter().rev().find(|(_, node)| node.is_ready()).is_none_or(|(_, node)| node.cordoned)
    }
}

struct Run {
    scene: Scene,
    looks: Looks,
    leading: bool,
    excluded: BTreeSet<String>,
    advanced: BTreeMap<String, Moment>,
    open: BTreeMap<String, String>,
    remediations: BTreeMap<String, RemediationRequest>,
    /// Remediations of which a request came to nothing.
    to_nothing: BTreeSet<String>,
    /// Nodes of which the gateway said that they do not come back by themselves.
    not_back: BTreeSet<String>,
    made: u32,
}

impl Run {
    fn second(&mut self) -> Result<(), TestCaseError> {
        let orders = self.scene.run(1);
        let now = self.scene.now;
        for (name, node) in &self.scene.nodes {
            self.looks.0.entry(name.clone()).or_default().push((now, node.clone()));
            if !self.scene.silent.contains(name) {
                self.advanced.insert(name.clone(), now);
            }
            if node.is_ready() {
                self.not_back.remove(name);
            }
        }
        for order in orders {
            self.allowed(&order)?;
            self.open.insert(order.node.name.clone(), order.key);
        }
        Ok(())
    }

    fn allowed(&self, order: &FenceOrder) -> Result<(), TestCaseError> {
        let (name, now) = (&order.node.name, self.scene.now);
        prop_assert!(self.leading, "only who leads asks");
        match &order.remediation {
            // How long it must have failed is whoever made the remediation's to say.
            Some(remediation) => {
                let found = &self.remediations[name];
                prop_assert_eq!(&found.id, remediation);
                prop_assert!(found.kept && !found.deleted && !found.timed_out, "{:?}", found);
                prop_assert!(order.key.contains(&remediation.uid), "{}", order.key);
                let last = self.looks.0[name].last().expect("a look").0;
                prop_assert!(now - last <= Duration::from_secs(6), "nobody looked");
            }
            None => {
                prop_assert!(name != "m1", "no selector reaches the control plane");
                let lasted = self.looks.lasted(name);
                prop_assert!(lasted >= Duration::from_secs(20), "{name}: {lasted:?}");
                let quiet = self.looks.was_ready_within(name, now, Duration::from_secs(60));
                prop_assert!(!quiet, "{name} is quiet");
                let wanted =
                    self.remediations.get(name).filter(|one| one.kept && !one.deleted && !one.timed_out);
                let is_done =
                    |one: &RemediationRequest| self.scene.decider.state(one).progress == Progress::Succeeded;
                let gave_way = |one: &RemediationRequest| self.to_nothing.contains(&one.id.uid);
                let is_silent = wanted.is_none_or(|one| is_done(one) || gave_way(one));
                prop_assert!(is_silent, "a remediation speaks for {name}");
            }
        }
        let is_excluded = |node: &Node| node.labels.contains_key(EXCLUDE);
        let seen = &self.looks.0[name].last().expect("a look").1;
        prop_assert!(!order.node.is_ready() && !is_excluded(seen));
        // What was set since anybody looked stops it at the last look, before anything is sent.
        prop_assert!(!self.excluded.contains(name) || !order.holds(&self.scene.nodes[name]));
        prop_assert!(!self.looks.was_cordoned_before(name), "{name} was cordoned before");
        prop_assert!(!self.open.contains_key(name), "{name} is asked for already");
        prop_assert!(!self.not_back.contains(name), "{name} was not seen on: it is a person's");
        let prefix = format!("k8s/{}/{}/", order.node.uid, order.node.boot_id);
        prop_assert!(order.key.starts_with(&prefix) && order.key.len() <= 128, "{}", order.key);
        for zone in ["a", "b", ""] {
            let of = |node: &&Node| zone.is_empty() || node.zone() == zone;
            let all: Vec<&Node> = self.scene.nodes.values().filter(of).collect();
            let fresh = |node: &&&Node| {
                self.advanced.get(&node.name).is_some_and(|at| now - *at <= Duration::from_secs(20))
            };
            let stale = all.len() - all.iter().filter(fresh).count();
            let braked = stale >= 3 && stale * 100 >= all.len() * 55;
            prop_assert!(
                !braked || (!zone.is_empty() && order.node.zone() != zone),
                "{stale} are silent in {zone:?}"
            );
            let is_ill =
                |node: &&&Node| self.looks.0[&node.name].last().is_some_and(|seen| !seen.1.is_ready());
            let ill = all.iter().filter(is_ill).count();
            let suspect = ill >= 3 && ill * 100 >= all.len() * 55;
            prop_assert!(
                !suspect || (!zone.is_empty() && order.node.zone() != zone),
                "{ill} are unhealthy in {zone:?}"
            );
        }
        Ok(())
    }

    fn happens(&mut self, what: &Happens) -> Result<(), TestCaseError> {
        let name = |number: &u8| NAMES[usize::from(*number) % NAMES.len()];
        let marked = |set: &mut BTreeSet<String>, number: &u8, so: bool| match so {
            true => drop(set.insert(name(number).to_owned())),
            false => drop(set.remove(name(number))),
        };
        match what {
            Happens::Looks(seconds) => (0..*seconds).try_for_each(|_| self.second())?,
            Happens::Gap(seconds) => {
                self.scene.now += Duration::from_secs(u64::from(*seconds));
                let verdicts = self.scene.decider.judge(self.scene.now).verdicts;
                let asked = |verdict: &Verdict| matches!(verdict, Verdict::Fence(_));
                prop_assert!(*seconds <= 6 || !verdicts.values().any(asked), "nobody looked");
                for (name, verdict) in verdicts {
                    if let Verdict::Fence(order) = verdict {
                        self.allowed(&order)?;
                        self.open.insert(name, order.key);
                    }
                }
            }
            Happens::Turns(node, status) => self.scene.turn(name(node), STATUS[usize::from(*status) % 3]),
            Happens::Boots(node) => {
                self.not_back.remove(name(node));
                self.scene.boot(name(node), "False");
            }
            Happens::Brought(node, way) => {
                let all = self.scene.decider.on_their_way();
                let key =
                    all.iter().find(|(one, _)| one.name == name(node)).map(|(_, key)| (*key).to_owned());
                let failed = || ReturnProgress::Failed("PowerOnFailed", "words".to_owned());
                let way = [ReturnProgress::Back, ReturnProgress::UnderWay(String::new()), failed()]
                    [usize::from(*way)]
                .clone();
                if let Some(key) = key {
                    self.scene.decider.brought(name(node), &key, &way, self.scene.now);
                    marked(&mut self.not_back, node, matches!(way, ReturnProgress::Failed(..)));
                }
            }
            Happens::Cordons(node, so) => self.scene.node(name(node)).cordoned = *so,
            Happens::Excludes(node, so) => {
                marked(&mut self.excluded, node, *so);
                let all = &mut self.scene.node(name(node)).labels;
                match so {
                    true => drop(all.insert(EXCLUDE.to_owned(), "true".to_owned())),
                    false => drop(all.remove(EXCLUDE)),
                }
            }
            Happens::Silent(which) => {
                (0..6_u8).for_each(|node| marked(&mut self.scene.silent, &node, which >> node & 1 == 1));
            }
            Happens::Ends(node, number) => {
                if let Some(key) = self.open.remove(name(node)) {
                    let end = end(*number);
                    prop_assert!(self.scene.decider.ended(name(node), &key, &end, self.scene.now));
                    if let (
                        Some(remediation),
                        RequestOutcome::Person | RequestOutcome::Refused | RequestOutcome::Held,
                    ) = (self.remediations.get(name(node)), end)
                        && key.contains(&format!("/{}", remediation.id.uid))
                    {
                        self.to_nothing.insert(remediation.id.uid.clone());
                    }
                }
            }
            Happens::Remediations(node, true) => {
                self.made += 1;
                let made = remediation(&format!("w{}", self.made), name(node));
                self.remediations.entry(name(node).to_owned()).or_insert(made);
            }
            Happens::Remediations(node, false) => drop(self.remediations.remove(name(node))),
            Happens::WishEnds(node, how) => {
                if let Some(remediation) = self.remediations.get_mut(name(node)) {
                    match how {
                        0 => remediation.timed_out = true,
                        1 => remediation.deleted = true,
                        _ => remediation.kept = false,
                    }
                }
            }
            Happens::Leads(so) => {
                self.leading = *so;
                self.scene.decider.lead(*so);
                if !so {
                    self.open.clear();
                    // Who leads next asks by the key that is noted, and is told the same.
                    self.not_back.clear();
                }
            }
        }
        self.scene.decider.remediations(self.remediations.values().cloned().collect());
        Ok(())
    }
}

/// From the beginning on, in which all is well.
fn lives_through(history: &[Happens]) -> Result<(), TestCaseError> {
    let mut run = Run {
        scene: Scene::with(BTreeMap::new(), vec![policy("workers")]),
        looks: Looks::default(),
        leading: true,
        excluded: BTreeSet::new(),
        advanced: BTreeMap::new(),
        open: BTreeMap::new(),
        remediations: BTreeMap::new(),
        to_nothing: BTreeSet::new(),
        not_back: BTreeSet::new(),
        made: 0,
    };
    run.scene.nodes = Scene::new().nodes;
    history.iter().try_for_each(|what| run.happens(what))
}

/// The decider goes by what it saw last; whoever sends looks once more.
#[test]
fn what_is_excluded_between_two_looks_is_not_asked_for() {
    use Happens::{Excludes, Gap, Leads, Looks, Turns};
    let history = [Leads(false), Turns(0, 1), Looks(21), Leads(true), Excludes(0, true), Gap(1)];
    lives_through(&history).expect("nothing is sent");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_asked_for_that_the_law_does_not_allow(
        history in proptest::collection::vec(happens(), 1..60),
    ) {
        lives_through(&history)?;
    }
}
