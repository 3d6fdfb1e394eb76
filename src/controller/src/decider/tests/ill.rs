//! Many Nodes are unhealthy at once, and their kubelets live: whoever looks is suspect.

use std::collections::BTreeMap;

use super::super::*;
use super::scene::{Scene, member, policy, worker};

/// So many workers in each of these zones, and one of the control plane in a zone of its own.
fn zones(of: &[(&str, usize)], policies: Vec<Policy>) -> Scene {
    let workers =
        of.iter().flat_map(|(zone, count)| (1..=*count).map(move |n| worker(&format!("{zone}{n}"), zone)));
    let mut nodes: BTreeMap<String, Node> = workers.map(|node| (node.name.clone(), node)).collect();
    let mut one = member("m1");
    one.labels.insert("topology.kubernetes.io/zone".to_owned(), "m".to_owned());
    nodes.insert("m1".to_owned(), one);
    Scene::with(nodes, policies)
}

fn braked(scene: &mut Scene, name: &str) -> ActiveBrake {
    match scene.verdict(name) {
        Verdict::Leave(SkipReason::Braked(braked)) => braked,
        other => panic!("{other:?}"),
    }
}

fn fenced(orders: &[FenceOrder]) -> Vec<&str> {
    orders.iter().map(|order| order.node.name.as_str()).collect()
}

/// The roll-out of a network plugin that does not work.
#[test]
fn eight_nodes_that_say_at_once_that_they_are_not_ready_are_not_fenced_while_their_leases_advance() {
    let every = Policy { selector: Selector::default(), every_node: true, ..policy("every") };
    let mut scene = zones(&[("a", 8)], vec![every]);
    (1..=8).for_each(|n| scene.turn(&format!("a{n}"), "False"));
    assert_eq!(scene.run(600), []);
    let found = braked(&mut scene, "a1");
    let held = ActiveBrake { place: BrakeScope::Cluster, sign: BrakeSign::Conditions, found: 8, of: 9 };
    assert_eq!(found, held);
    let told = scene.report("every").holding.expect("it is told");
    assert_eq!(told.reason, "Braked");
    assert!(
        told.message.starts_with("8 of 9 Nodes are unhealthy") && told.message.contains("(the cluster)"),
        "{told:?}"
    );
    let signs: Vec<BrakeSign> =
        scene.decider.judge(scene.now).braked.iter().map(|braked| braked.sign).collect();
    assert_eq!(signs, [BrakeSign::Conditions; 2], "the cluster, and the zone");
}

#[test]
fn of_a_zone_that_is_held_nothing_is_fenced_and_what_is_dead_elsewhere_is() {
    let mut scene = zones(&[("a", 5), ("b", 20)], vec![policy("workers")]);
    ["a1", "a2", "a3", "b1"].iter().for_each(|name| scene.turn(name, "False"));
    assert_eq!(fenced(&scene.run(300)), ["b1"]);
    let found = braked(&mut scene, "a1");
    assert_eq!((found.place, found.found, found.of), (BrakeScope::Zone("a".to_owned()), 3, 5));
}

/// A kubelet may label its own Node.
#[test]
fn a_node_that_says_another_zone_once_it_is_unhealthy_holds_no_brake_there() {
    let moves = |scene: &mut Scene| {
        scene.node("b1").labels.insert("topology.kubernetes.io/zone".to_owned(), "a".to_owned());
    };
    let mut scene = zones(&[("a", 3), ("b", 20)], vec![policy("workers")]);
    moves(&mut scene);
    ["a1", "a2", "b1"].iter().for_each(|name| scene.turn(name, "False"));
    assert_eq!(fenced(&scene.run(300)), ["a1", "a2", "b1"]);
    // One that was Ready there is one of that zone's.
    let mut scene = zones(&[("a", 3), ("b", 20)], vec![policy("workers")]);
    moves(&mut scene);
    scene.run(2);
    ["a1", "a2", "b1"].iter().for_each(|name| scene.turn(name, "False"));
    assert_eq!(scene.run(300), []);
    assert_eq!(braked(&mut scene, "a1").place, BrakeScope::Zone("a".to_owned()));
}

/// Three would be too many; two are dead, and are fenced.
#[test]
fn of_a_zone_of_three_what_is_dead_is_fenced() {
    let mut scene = zones(&[("a", 3), ("b", 3), ("c", 3)], vec![policy("workers")]);
    scene.turn("a1", "False");
    assert_eq!(fenced(&scene.run(30)), ["a1"]);
    scene.turn("a2", "Unknown");
    assert_eq!(fenced(&scene.run(30)), ["a2"]);
    scene.turn("a3", "False");
    assert_eq!(scene.run(300), [], "the two that are being fenced count");
    assert_eq!(braked(&mut scene, "a3").found, 3);
    ["a1", "a2"].iter().for_each(|name| scene.turn(name, "True"));
    assert_eq!(scene.run(300), [], "they are switched off, whatever they say");
}

/// Who is kept off counts, and who is brought back, though it says what it said before it was switched off.
#[test]
fn those_that_are_kept_off_count() {
    let mut scene = zones(&[("a", 5), ("b", 20)], vec![policy("workers")]);
    for name in ["a1", "a2"] {
        scene.turn(name, "False");
        let first = scene.run(30).remove(0);
        assert!(scene.decider.ended(name, &first.key, &RequestOutcome::Off, scene.now));
    }
    scene.turn("a3", "False");
    assert_eq!(scene.run(300), []);
    assert_eq!(braked(&mut scene, "a3").place, BrakeScope::Zone("a".to_owned()));
    // A person brings one of them back.
    scene.boot("a1", "True");
    assert_eq!(scene.run(60), []);
    assert_eq!(fenced(&scene.run(5)), ["a3"]);
}

/// Each that became healthy may be followed by the next one: nobody is fenced in the middle of it.
#[test]
fn what_is_mended_node_by_node_costs_nobody_a_fence() {
    let mut scene = zones(&[("a", 8), ("b", 20)], vec![policy("workers")]);
    (1..=8).for_each(|n| scene.turn(&format!("a{n}"), "False"));
    assert_eq!(scene.run(60), []);
    for n in 1..=7 {
        scene.turn(&format!("a{n}"), "True");
        assert_eq!(scene.run(50), [], "a{n}");
    }
    assert_eq!(scene.run(10), []);
    assert_eq!(fenced(&scene.run(5)), ["a8"], "a minute after the last one it is dead");
}

/// Nobody but whoever wrote it knows which status of such a condition is the healthy one.
#[test]
fn of_a_policy_of_which_most_nodes_are_unhealthy_nobody_is_fenced() {
    let own = |status: &str| Condition { status: status.to_owned(), turned: "turn-0".to_owned() };
    let unhealthy =
        Unhealthy { kind: "Own".to_owned(), status: "False".to_owned(), ..policy("p").unhealthy[0].clone() };
    let mut scene =
        zones(&[("a", 20), ("g", 4)], vec![Policy { unhealthy: vec![unhealthy], ..policy("workers") }]);
    let selector = Selector(vec![Requirement::In("pool".to_owned(), vec!["gpu".to_owned()])]);
    let pool = Policy { selector, ..scene.decider.policies[0].clone() };
    scene.policies(vec![pool]);
    for name in ["a1", "a2", "g1", "g2", "g3", "g4"] {
        scene.node(name).labels.insert("pool".to_owned(), "gpu".to_owned());
        scene.node(name).conditions.insert("Own".to_owned(), own("True"));
        scene.node(name).labels.insert("topology.kubernetes.io/zone".to_owned(), "a".to_owned());
    }
    scene.run(3);
    for name in ["a1", "a2", "g1", "g2"] {
        scene.node(name).conditions.insert("Own".to_owned(), own("False"));
    }
    assert_eq!(scene.run(300), []);
    let found = braked(&mut scene, "g1");
    assert_eq!((found.place, found.found, found.of), (BrakeScope::Policy("workers".to_owned()), 4, 6));
    scene.node("a1").conditions.insert("Own".to_owned(), own("True"));
    scene.run(1);
    assert_eq!(scene.run(59), []);
    assert_eq!(scene.run(3).len(), 3, "half of them, and no more");
}
