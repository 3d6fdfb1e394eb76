//! Planned work, people's words, and the control plane.

use std::collections::BTreeSet;

use super::super::*;
use super::scene::{Scene, member, policy, remediation};

fn excluded(scene: &mut Scene) -> Exclusion {
    match scene.verdict("n1") {
        Verdict::Leave(SkipReason::Excluded(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_that_was_cordoned_before_it_failed_is_left_alone() {
    let mut scene = Scene::new();
    scene.node("n1").cordoned = true;
    scene.run(3);
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(300), []);
    assert_eq!(excluded(&mut scene), Exclusion::Cordoned);
    scene.policies(vec![Policy { spare_cordoned: false, ..policy("workers") }]);
    assert_eq!(scene.run(30).len(), 1);
}

#[test]
fn one_that_is_cordoned_since_is_not() {
    let mut scene = Scene::new();
    scene.turn("n1", "Unknown");
    scene.run(3);
    scene.node("n1").cordoned = true;
    assert_eq!(scene.run(30).len(), 1);
}

#[test]
fn whatever_excludes_a_node_is_heard_as_label_and_as_annotation() {
    for word in [
        "picket.dev/exclude",
        "picket.dev/paused",
        "remediation.medik8s.io/exclude-from-remediation",
        "cluster.x-k8s.io/paused",
        "cluster.x-k8s.io/skip-remediation",
    ] {
        for is_label in [true, false] {
            let mut scene = Scene::new();
            let node = scene.node("n1");
            let all = if is_label { &mut node.labels } else { &mut node.annotations };
            all.insert(word.to_owned(), String::new());
            scene.turn("n1", "Unknown");
            assert_eq!(scene.run(120), [], "{word}");
            assert_eq!(excluded(&mut scene), Exclusion::Said(word));
            assert!(!scene.suspects().contains(&"n1".to_owned()), "nobody need look often");
            let node = scene.node("n1");
            let all = if is_label { &mut node.labels } else { &mut node.annotations };
            all.insert(word.to_owned(), "false".to_owned());
            assert_eq!(scene.run(60).len(), 1, "{word}");
        }
    }
}

#[test]
fn a_lock_for_reboots_excludes_its_node() {
    for (annotation, value) in [
        ("weave.works/kured-reboot-in-progress", "2026-01-01T00:00:00Z"),
        ("machineconfiguration.openshift.io/state", "Working"),
    ] {
        let mut scene = Scene::new();
        scene.node("n1").annotations.insert(annotation.to_owned(), value.to_owned());
        scene.turn("n1", "Unknown");
        assert_eq!(scene.run(120), []);
        assert_eq!(excluded(&mut scene), Exclusion::Reboot(annotation.to_owned()));
    }
    let mut scene = Scene::new();
    scene.decider.rebooting(BTreeSet::from(["n1".to_owned()]));
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(120), []);
    assert!(matches!(excluded(&mut scene), Exclusion::Reboot(_)));
    scene.policies(vec![Policy { spare_rebooting: false, ..policy("workers") }]);
    assert_eq!(scene.run(60).len(), 1);
}

#[test]
fn a_machine_config_that_is_done_is_no_lock() {
    let mut scene = Scene::new();
    scene
        .node("n1")
        .annotations
        .insert("machineconfiguration.openshift.io/state".to_owned(), "Done".to_owned());
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(30).len(), 1);
}

#[test]
fn a_policy_that_is_paused_asks_for_nothing_and_says_so() {
    let mut scene = Scene::new();
    scene.policies(vec![Policy { paused: true, ..policy("workers") }]);
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(120), []);
    assert_eq!(scene.verdict("n1"), Verdict::Leave(SkipReason::Paused("workers".to_owned())));
    let report = scene.report("workers");
    assert_eq!((report.selected, report.unhealthy, report.fencing), (5, 1, 0));
    assert_eq!(report.holding.expect("it is told").reason, "Paused");
}

fn three_members(policy: Policy) -> Scene {
    let mut scene = Scene::new();
    for name in ["m2", "m3"] {
        scene.nodes.insert(name.to_owned(), member(name));
    }
    scene.policies(vec![policy]);
    scene.run(30);
    scene
}

#[test]
fn the_control_plane_is_reached_by_name_and_never_by_a_selector_alone() {
    let any = Selector(vec![Requirement::Exists("topology.kubernetes.io/zone".to_owned())]);
    let all = Policy { selector: any, every_node: true, ..policy("workers") };
    let mut scene = three_members(all.clone());
    scene.turn("m1", "Unknown");
    assert_eq!(scene.run(120), []);
    let nobody = NoPolicy::ControlPlane("workers".to_owned());
    assert_eq!(scene.verdict("m1"), Verdict::Leave(SkipReason::Nobody(nobody)));
    let report = scene.report("workers");
    assert_eq!((report.selected, report.faults[0].reason), (5, "ControlPlane"));
    assert!(
        report.faults[0].message.contains("controlPlaneNodes which may be fenced of m1, m2, m3"),
        "{report:?}"
    );

    let control_plane = ["m1", "m2", "m3"].map(str::to_owned).into();
    scene.policies(vec![Policy { control_plane, ..all }]);
    assert_eq!(scene.run(60).len(), 1);
    assert_eq!(scene.report("workers").faults, []);
}

#[test]
fn of_the_control_plane_one_at_a_time_and_none_while_another_is_not_ready() {
    let control_plane = ["m1", "m2"].map(str::to_owned).into();
    let mut scene = three_members(Policy { control_plane, then: AfterFence::PowerOn, ..policy("workers") });
    // Nobody may fence m3, and it counts as lost all the same.
    scene.turn("m3", "False");
    scene.turn("m1", "Unknown");
    assert_eq!(scene.run(60), []);
    assert_eq!(scene.verdict("m1"), Verdict::Leave(SkipReason::ControlPlane("m3".to_owned())));
    // Also one that was never Ready: it may be a member of etcd by then. A person is told, and what ends it.
    let told = scene.report("workers").holding.expect("it is told");
    assert_eq!(told.reason, "OneAtATime");
    assert!(told.message.starts_with("m1: m3, also") && told.message.contains("delete its Node"), "{told:?}");
    scene.turn("m3", "True");
    let first = scene.run(30).remove(0);
    assert_eq!(first.node.name, "m1");
    scene.decider.ended("m1", &first.key, &RequestOutcome::Off, scene.now);
    scene.turn("m2", "Unknown");
    assert_eq!(scene.run(60), [], "m1 is not back");
    scene.boot("m1", "True");
    assert_eq!(scene.run(60).remove(0).node.name, "m2");
}

/// A remediation goes by the policy of its Node (K12).
#[test]
fn a_paused_policy_and_the_names_of_the_control_plane_hold_for_remediations_too() {
    let told = |node: &str, policies: Vec<Policy>| {
        let mut scene = Scene::with(Scene::new().nodes, policies);
        scene.turn(node, "Unknown");
        scene.run(2);
        scene.decider.remediations(vec![remediation("w", node)]);
        let (is_asked, is_looked_at) = (!scene.run(30).is_empty(), !scene.suspects().is_empty());
        assert!(is_asked || !is_looked_at, "{node}");
        (is_asked, scene.update("w").state.text)
    };
    assert!(told("n1", vec![policy("workers")]).0);
    let paused = told("n1", vec![Policy { paused: true, ..policy("workers") }]);
    assert_eq!(paused, (false, "nothing is asked yet: the FencingPolicy workers is paused".to_owned()));

    let named = || Policy { control_plane: BTreeSet::from(["m1".to_owned()]), ..policy("workers") };
    for (policies, names) in [
        (vec![], false),
        (vec![policy("workers")], false),
        (vec![named(), Policy { name: "others".to_owned(), ..named() }], false),
        (vec![named()], true),
    ] {
        let (is_asked, text) = told("m1", policies.clone());
        assert_eq!(is_asked, names, "{policies:?}");
        assert!(names || text.contains("controlPlaneNodes"), "{text}");
    }
    assert!(!told("m1", vec![Policy { paused: true, ..named() }]).0);
}

/// Also where several policies select it, and none speaks; and what a policy excludes no remediation asks for, unless another policy speaks for it (K12).
#[test]
fn a_pause_of_one_of_several_policies_and_an_exclusion_hold_for_remediations_too() {
    let told = |policies: Vec<Policy>| {
        let mut scene = Scene::with(Scene::new().nodes, policies);
        scene.turn("n1", "Unknown");
        scene.run(2);
        scene.decider.remediations(vec![remediation("w", "n1")]);
        (!scene.run(30).is_empty(), scene.update("w").state.text)
    };
    let other = || Policy { name: "others".to_owned(), ..policy("workers") };
    let paused = |policy: Policy| Policy { paused: true, ..policy };
    let excludes = |policy: Policy| Policy { excluded: BTreeSet::from(["n1".to_owned()]), ..policy };
    let by_label = |policy: Policy| Policy { excluding: Some(policy.selector.clone()), ..policy };
    for (policies, words) in [
        (vec![policy("workers"), other()], None),
        (vec![policy("workers"), paused(other())], Some("the FencingPolicy others is paused")),
        (vec![paused(policy("workers")), paused(other())], Some("is paused")),
        (vec![excludes(policy("workers"))], Some("the FencingPolicy workers excludes it")),
        (vec![by_label(policy("workers"))], Some("the FencingPolicy workers excludes it")),
        (vec![excludes(policy("workers")), other()], None),
    ] {
        let (is_asked, text) = told(policies.clone());
        assert_eq!(is_asked, words.is_none(), "{policies:?}: {text}");
        assert!(words.is_none_or(|words| text.contains(words)), "{text}");
    }
}
