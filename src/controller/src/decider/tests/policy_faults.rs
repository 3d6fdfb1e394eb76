//! Policies that would be mistakes: said, and nobody is harmed.

use super::super::*;
use super::scene::{Scene, policy, remediation, selector};

fn faults(scene: &mut Scene, policy: &str) -> Vec<(&'static str, String)> {
    scene.report(policy).faults.into_iter().map(|fault| (fault.reason, fault.message)).collect()
}

#[test]
fn one_that_selects_nothing_says_so() {
    let mut scene = Scene::new();
    scene.policies(vec![Policy { selector: selector("role", "wroker"), ..policy("workers") }]);
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(60), []);
    let told = faults(&mut scene, "workers");
    assert_eq!(told[0].0, "SelectsNothing");
    assert!(told[0].1.contains("nodeSelector"), "{told:?}");
}

#[test]
fn two_for_one_node_are_none_and_both_say_so() {
    let mut scene = Scene::new();
    let zone = Policy { selector: selector("topology.kubernetes.io/zone", "a"), ..policy("zone-a") };
    let exclude = |policy: Policy, name: &str| Policy { excluded: [name.to_owned()].into(), ..policy };
    scene.policies(vec![policy("workers"), zone.clone()]);
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(60), []);
    for (one, other) in [("workers", "zone-a"), ("zone-a", "workers")] {
        let told = faults(&mut scene, one);
        let shared = told.iter().find(|(reason, _)| *reason == "SharesNodes").expect("it is told");
        assert!(shared.1.contains(other) && shared.1.contains("n1, n2, n3"), "{told:?}");
    }
    // Excluded from one, it is the other's.
    scene.policies(vec![policy("workers"), exclude(zone, "n1")]);
    assert_eq!(scene.run(30).remove(0).policy, "workers");
}

/// A Node that the watch told of long ago is looked at within seconds of the first remediation; an API server that is away is told.
#[test]
fn a_remediation_is_taken_up_while_its_node_is_looked_at_and_then_told_that_nobody_answers() {
    let mut scene = Scene::with(Scene::new().nodes, Vec::new());
    scene.turn("n1", "Unknown");
    scene.run(2);
    let text = |scene: &mut Scene| scene.update("w").state.text;
    scene.now += UNBROKEN * 2;
    scene.decider.remediations(vec![remediation("w", "n1")]);
    assert_eq!(text(&mut scene), "it is taken up: its Node is looked at");
    scene.now += UNBROKEN;
    assert_eq!(text(&mut scene), "it is taken up: its Node is looked at");
    scene.now += UNBROKEN;
    assert!(text(&mut scene).contains("the API server does not answer"));
    // And from the beginning, the next time.
    scene.run(2);
    scene.decider.ended("n1", "k8s/uid-n1/boot-n1/w", &RequestOutcome::Blocked(None), scene.now);
    scene.now += BACK_WITHIN;
    assert!(text(&mut scene).contains("looked at"));
}

#[test]
fn a_name_that_is_none_of_the_control_plane_is_told() {
    let mut scene = Scene::new();
    let control_plane = ["m1", "n1", "m7"].map(str::to_owned).into();
    scene.policies(vec![Policy { control_plane, ..policy("workers") }]);
    let told = faults(&mut scene, "workers");
    assert!(told[0].0 == "NoControlPlaneNode" && told[0].1.ends_with("m7, n1"), "{told:?}");
}

#[test]
fn a_node_whose_policy_went_is_followed_while_it_is_asked_for_and_left_then() {
    let mut scene = Scene::new();
    scene.turn("n1", "Unknown");
    let first = scene.run(30).remove(0);
    scene.policies(Vec::new());
    assert_eq!(scene.run(5), []);
    assert_eq!(scene.verdict("n1"), Verdict::Follow(Stage::Asking));
    assert!(scene.decider.ended("n1", &first.key, &RequestOutcome::Blocked(None), scene.now));
    assert_eq!(scene.verdict("n1"), Verdict::Leave(SkipReason::Nobody(NoPolicy::Unselected)));
    assert_eq!(scene.run(300), []);
}

#[test]
fn every_reason_to_leave_a_node_alone_is_told_in_words() {
    for why in [
        SkipReason::Healthy,
        SkipReason::Nobody(NoPolicy::Several(vec!["a".to_owned(), "b".to_owned()])),
        SkipReason::Unseen,
        SkipReason::Quiet(Moment::ZERO),
        SkipReason::Heard(Moment::ZERO),
        SkipReason::Braked(ActiveBrake {
            place: BrakeScope::Zone(String::new()),
            sign: BrakeSign::Leases,
            found: 3,
            of: 5,
        }),
        SkipReason::Braked(ActiveBrake {
            place: BrakeScope::Policy("p".to_owned()),
            sign: BrakeSign::Conditions,
            found: 3,
            of: 5,
        }),
        SkipReason::Claimed { what: "providerID", other: "m1".to_owned() },
        SkipReason::ControlPlane("m1".to_owned()),
        SkipReason::Unnamed,
        SkipReason::NotLeading,
    ] {
        assert!(why.to_string().len() > 10, "{why:?}");
    }
}

/// Such a one selects every Node that is well.
#[test]
fn one_to_which_a_healthy_node_is_unhealthy_fences_nobody_and_says_so() {
    for (kind, status) in [
        ("MemoryPressure", "False"),
        ("NetworkUnavailable", "False"),
        ("KernelDeadlock", "False"),
        ("Ready", "True"),
        ("StorageReady", "True"),
    ] {
        let mut scene = Scene::new();
        let of = |status: &str| Condition { status: status.to_owned(), turned: "turn-0".to_owned() };
        for name in ["n1", "n2", "n3", "n4", "n5", "m1"] {
            scene.node(name).conditions.insert(kind.to_owned(), of(status));
        }
        let mut unhealthy = policy("workers").unhealthy;
        unhealthy.push(Unhealthy {
            kind: kind.to_owned(),
            status: status.to_owned(),
            ..unhealthy[0].clone()
        });
        scene.policies(vec![Policy { unhealthy, ..policy("workers") }]);
        assert_eq!(scene.run(120), [], "{kind}={status}");
        let said = format!("{kind}={status}");
        let told = faults(&mut scene, "workers");
        assert!(told[0].0 == "HealthyCondition" && told[0].1.contains(&said), "{told:?}");
        // Nor a Node that is dead: what else it takes for unhealthy is read by whoever corrects it.
        scene.turn("n1", "Unknown");
        assert_eq!(scene.run(60), []);
    }
}

#[test]
fn a_condition_that_says_that_a_node_is_ill_is_none_of_these() {
    for (kind, status) in
        [("MemoryPressure", "True"), ("StorageReady", "False"), ("Own", "True"), ("Own", "False")]
    {
        let mut scene = Scene::new();
        let condition = Condition { status: status.to_owned(), turned: "turn-0".to_owned() };
        scene.node("n1").conditions.insert(kind.to_owned(), condition);
        let own = Unhealthy {
            kind: kind.to_owned(),
            status: status.to_owned(),
            least: policy("workers").unhealthy[0].least,
        };
        scene.policies(vec![Policy { unhealthy: vec![own], ..policy("workers") }]);
        assert_eq!(scene.run(30).len(), 1, "{kind}={status}");
        assert_eq!(faults(&mut scene, "workers"), []);
    }
}
