//! Which policies speak: those that act, whatever else there is of policies and of Nodes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::policy_assignment::{NoPolicy, speak};
use super::super::*;
use super::scene::{Scene, member, policy, remediation, selector, worker};

const HEALTHY: &str = "True";

fn paused(policy: Policy) -> Policy {
    Policy { paused: true, ..policy }
}

/// To which every healthy Node is unhealthy.
fn wrong(mut policy: Policy) -> Policy {
    policy.unhealthy[0].status = HEALTHY.to_owned();
    policy
}

fn not_in(label: &str, value: &str) -> Requirement {
    Requirement::NotIn(label.to_owned(), vec![value.to_owned()])
}

fn zone_a() -> Policy {
    Policy { selector: selector("topology.kubernetes.io/zone", "a"), ..policy("zone-a") }
}

/// A roll-out by a policy that is paused at first, or one that is refused, disarms no right one.
#[test]
fn a_policy_that_does_not_act_disarms_none_that_does() {
    let everything = || Policy { selector: Selector::default(), ..zone_a() };
    for other in [paused(zone_a()), wrong(zone_a()), everything(), paused(everything())] {
        let mut scene = Scene::new();
        scene.policies(vec![policy("workers"), other.clone()]);
        scene.turn("n1", "Unknown");
        let orders = scene.run(30);
        assert_eq!(orders.len(), 1, "{other:?}");
        assert_eq!(orders[0].policy, "workers");
        let report = scene.report("workers");
        assert_eq!((report.selected, report.faults), (5, Vec::new()));
        let other = scene.report("zone-a");
        assert_eq!(other.selected, 0, "for these Nodes another one speaks");
        assert!(other.faults.iter().all(|fault| fault.reason != "SharesNodes"), "{other:?}");
    }
    // Its own word says who speaks meanwhile.
    let mut scene = Scene::new();
    scene.policies(vec![policy("workers"), paused(zone_a())]);
    let holding = scene.report("zone-a").holding.expect("it is paused");
    assert!(holding.reason == "Paused" && holding.message.contains("workers"), "{holding:?}");
    // Once it acts, both are told, and none speaks.
    scene.policies(vec![policy("workers"), zone_a()]);
    for (one, other) in [("workers", "zone-a"), ("zone-a", "workers")] {
        let told = scene.report(one).faults;
        assert!(told[0].reason == "SharesNodes" && told[0].message.contains(other), "{told:?}");
    }
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(60), []);
}

/// K12: what a policy bars for remediations stays barred, also where another one acts, or where what else selects the Node is refused.
#[test]
fn a_pause_or_an_exclusion_beside_a_policy_that_acts_holds_for_remediations() {
    let excludes = |policy: Policy| Policy { excluded: ["n1".to_owned()].into(), ..policy };
    for (policies, words) in [
        (vec![policy("workers"), paused(zone_a())], "zone-a is paused"),
        (vec![paused(policy("workers")), wrong(zone_a())], "workers is paused"),
        (vec![paused(wrong(policy("workers"))), zone_a()], "workers is paused"),
        (vec![excludes(policy("workers")), wrong(zone_a())], "workers excludes it"),
    ] {
        let mut scene = Scene::with(Scene::new().nodes, policies.clone());
        // As a remediation knows it: a policy asks after 20 s.
        scene.turn("n1", "Unknown");
        scene.run(2);
        scene.decider.remediations(vec![remediation("w", "n1")]);
        assert_eq!(scene.run(10), [], "{policies:?}");
        let text = scene.update("w").state.text;
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// A Node of the control plane is its policy's that names it, whatever selectors reach it besides.
#[test]
fn a_selector_that_does_not_reach_the_control_plane_disarms_no_policy_that_names_it() {
    let any = Selector(vec![Requirement::Exists("topology.kubernetes.io/zone".to_owned())]);
    let named = Policy { control_plane: ["m1".to_owned()].into(), ..policy("members") };
    let named = Policy { selector: selector("role", "none"), ..named };
    let mut scene = Scene::new();
    scene.policies(vec![Policy { selector: any, ..policy("all") }, named]);
    scene.turn("m1", "Unknown");
    assert_eq!(scene.run(30).remove(0).policy, "members");
    assert_eq!(scene.report("all").faults, []);
}

/// Managed clusters show no control plane, and the last infra Node may go at any time.
#[test]
fn a_selector_that_needs_a_label_is_never_everything_whichever_nodes_there_are() {
    let mut scene = Scene::new();
    scene.nodes.remove("m1");
    scene.decider.gone("m1");
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(30).len(), 1);
    assert_eq!(scene.report("workers").faults, []);
}

#[test]
fn one_that_needs_no_label_is_everything_whichever_nodes_there_are_unless_it_says_so() {
    let absent = |key: &str| Requirement::DoesNotExist(key.to_owned());
    for requirements in [
        vec![],
        vec![absent("node-role.kubernetes.io/control-plane")],
        vec![not_in("role", "infra")],
        vec![absent("no-such-label"), not_in("role", "infra")],
    ] {
        // It leaves m1 out, and may leave none out the next day.
        let mut scene = Scene::new();
        let all =
            Policy { selector: Selector(requirements), excluded: ["n5".to_owned()].into(), ..policy("all") };
        scene.policies(vec![all.clone()]);
        scene.turn("n1", "Unknown");
        assert_eq!(scene.run(60), [], "{all:?}");
        let told = scene.report("all").faults;
        assert!(
            told[0].reason == "SelectsEverything" && told[0].message.contains("everyNode: true"),
            "{told:?}"
        );
        scene.policies(vec![Policy { every_node: true, ..all }]);
        assert_eq!(scene.run(30).len(), 1);
    }
}

fn some_policy(name: String) -> impl Strategy<Value = Policy> {
    let one = prop_oneof![
        Just(Requirement::In("role".to_owned(), vec!["worker".to_owned()])),
        Just(Requirement::In("topology.kubernetes.io/zone".to_owned(), vec!["a".to_owned()])),
        Just(Requirement::Exists("topology.kubernetes.io/zone".to_owned())),
        Just(not_in("role", "infra")),
        Just(Requirement::DoesNotExist("role".to_owned())),
    ];
    let names = proptest::sample::subsequence(vec!["n1", "n4", "m1"], 0..3);
    let control_plane = proptest::sample::subsequence(vec!["m1", "m2"], 0..3);
    let flags = (any::<bool>(), any::<bool>(), 0..4_u8);
    (proptest::collection::vec(one, 0..3), names, control_plane, flags).prop_map(
        move |(requirements, names, control_plane, (paused, every_node, healthy))| {
            let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
            let made = Policy {
                selector: Selector(requirements),
                excluded: owned(names),
                control_plane: owned(control_plane),
                paused,
                every_node,
                ..policy(&name)
            };
            if healthy == 0 { wrong(made) } else { made }
        },
    )
}

fn some_policies() -> impl Strategy<Value = Vec<Policy>> {
    (some_policy("a".to_owned()), some_policy("b".to_owned()), some_policy("c".to_owned()))
        .prop_map(|(a, b, c)| vec![a, b, c])
}

fn cluster() -> Vec<Node> {
    let workers = [("n1", "a"), ("n2", "a"), ("n4", "b")].map(|(name, zone)| worker(name, zone));
    workers.into_iter().chain([member("m1"), member("m2")]).collect()
}

/// By the words of the law: it selects it and does not exclude it, is not paused, takes no healthy Node for ill, is not everything unsaid, and
/// names it where it is of the control plane.
fn acts(policy: &Policy, node: &Node) -> bool {
    let is_named = node.name.starts_with('m') && policy.control_plane.contains(&node.name);
    let needs = |one: &Requirement| matches!(one, Requirement::In(..) | Requirement::Exists(_));
    (is_named || policy.selector.meets(&node.labels) && !node.name.starts_with('m'))
        && !policy.excluded.contains(&node.name)
        && !policy.paused
        && policy.unhealthy.iter().all(|one| one.status != HEALTHY)
        && (policy.every_node || policy.selector.0.iter().any(needs))
}

/// By a Node's name: the policy that speaks for it and acts.
fn speakers(policies: &[Policy], nodes: &[Node]) -> BTreeMap<String, String> {
    let nodes: Vec<&Node> = nodes.iter().collect();
    let speaking = speak(policies, &nodes).of.into_iter();
    let acting = speaking.filter_map(|(name, place)| Some((name, &policies[place.ok()?])));
    acting.filter(|(_, one)| !one.paused).map(|(name, one)| (name, one.name.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn of_a_node_the_only_policy_that_acts_speaks(policies in some_policies()) {
        let found = speakers(&policies, &cluster());
        for node in cluster() {
            let acting: Vec<&Policy> = policies.iter().filter(|policy| acts(policy, &node)).collect();
            let only = match *acting { [one] => Some(&one.name), _ => None };
            prop_assert_eq!(found.get(&node.name), only, "{} by {:?}", node.name, acting);
        }
    }

    #[test]
    fn both_of_two_that_act_for_a_node_are_told_of_each_other_and_no_other_one_is(policies in some_policies()) {
        let nodes = cluster();
        let faults = speak(&policies, &nodes.iter().collect::<Vec<_>>()).faults;
        for (one, faults) in policies.iter().zip(faults) {
            for other in policies.iter().filter(|other| other.name != one.name) {
                let told = |fault: &&PolicyFault| fault.reason == "SharesNodes" && fault.message.contains(&format!("FencingPolicy {} ", other.name));
                let is_shared = nodes.iter().any(|node| acts(one, node) && acts(other, node));
                prop_assert_eq!(faults.iter().any(|fault| told(&fault)), is_shared, "{} and {}", one.name, other.name);
            }
            // What is told of it is told anew for no other list of Nodes.
            for fault in &faults {
                let head = fault.message.split(':').next().unwrap_or_default();
                let is_named = |node: &Node| head.contains(&node.name);
                prop_assert!(head != fault.message && !nodes.iter().any(is_named), "{}", fault.message);
            }
        }
    }

    #[test]
    fn who_speaks_for_a_node_hangs_on_no_other_node(policies in some_policies(), left in 0..5_usize) {
        let whole = speakers(&policies, &cluster());
        let fewer: Vec<Node> = cluster().into_iter().enumerate().filter(|(place, _)| *place != left).map(|(_, node)| node).collect();
        for (name, policy) in speakers(&policies, &fewer) {
            prop_assert_eq!(whole.get(&name), Some(&policy));
        }
        let gone = &cluster()[left].name;
        prop_assert_eq!(speakers(&policies, &fewer).len(), whole.keys().filter(|name| *name != gone).count());
        let nobody: Vec<NoPolicy> = speak(&policies, &fewer.iter().collect::<Vec<_>>()).of.into_values().filter_map(Result::err).collect();
        prop_assert!(nobody.iter().all(|nobody| !nobody.to_string().is_empty()));
    }
}
