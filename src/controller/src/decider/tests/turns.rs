//! Several that want one Node fenced: what one of them came to bars no other one (K12).

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::*;
use super::remediation_requests::{ended, first, wanted};
use super::scene::{Scene, policy, remediation};

/// Made by somebody else, for terms that no machine meets in time; it is the first by its name.
fn gag() -> RemediationRequest {
    let id = RemediationId { name: "a".to_owned(), health_check: None, ..remediation("gag", "n1").id };
    let (then, grade, deadline) = (AfterFence::StayOff, Grade::Observed, Some(Duration::from_secs(10)));
    RemediationRequest { id, then, grade, deadline, ..remediation("gag", "n1") }
}

fn whose(order: &FenceOrder) -> &str {
    order.remediation.as_ref().map_or("policy", |remediation| &remediation.uid)
}

#[test]
fn one_that_came_to_nothing_bars_neither_another_one_nor_the_policy() {
    for end in [RequestOutcome::Person, RequestOutcome::Refused, RequestOutcome::Held] {
        let mut scene = wanted(vec![gag(), remediation("w", "n1")]);
        scene.policies(vec![policy("workers")]);
        let order = first(&mut scene);
        assert_eq!(whose(&order), "gag");
        ended(&mut scene, &order, &end, false);
        let [next] = &*scene.run(5) else { panic!("{end:?}: the next one speaks at once") };
        assert_eq!((whose(next), next.then), ("w", AfterFence::PowerOn), "{end:?}");
        ended(&mut scene, next, &end, false);
        let [last] = &*scene.run(5) else { panic!("{end:?}: the policy speaks at once") };
        assert_eq!(whose(last), "policy", "{end:?}");
    }
}

#[test]
fn what_a_person_must_decide_is_asked_once_by_each() {
    let mut scene = wanted(vec![gag(), remediation("w", "n1")]);
    scene.policies(vec![policy("workers")]);
    let mut asked = BTreeSet::new();
    for _ in 0..3_000 {
        for order in scene.run(1) {
            assert!(asked.insert(whose(&order).to_owned()), "{order:?}");
            assert!(scene.decider.ended("n1", &order.key, &RequestOutcome::Person, scene.now));
        }
    }
    assert_eq!(asked.len(), 3);
    // The next failure is another one.
    scene.boot("n1", "True");
    scene.run(100);
    scene.turn("n1", "Unknown");
    assert_eq!(whose(&first(&mut scene)), "gag");
}

/// None of them takes the other ones' pause for its turn.
#[test]
fn those_that_wait_for_somebody_else_ask_no_more_often_for_being_several() {
    let mut scene = wanted(vec![gag(), remediation("w", "n1")]);
    scene.policies(vec![policy("workers")]);
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..300 {
        for order in scene.run(1) {
            *asked.entry(whose(&order).to_owned()).or_default() += 1;
            assert!(scene.decider.ended("n1", &order.key, &RequestOutcome::Held, scene.now));
        }
    }
    // Every fifteen seconds, and once at the beginning.
    assert!(asked.len() == 3 && asked.values().all(|times| (10..=21).contains(times)), "{asked:?}");
}

/// What a limit bars it bars for the others, too.
#[test]
fn one_that_is_blocked_keeps_its_turn() {
    let mut scene = wanted(vec![gag(), remediation("w", "n1")]);
    let order = first(&mut scene);
    ended(&mut scene, &order, &RequestOutcome::Blocked(None), false);
    assert_eq!(first(&mut scene).key, order.key);
}

#[test]
fn one_that_was_refused_asks_again_where_no_other_one_takes_the_node_for_unhealthy() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    scene.policies(vec![Policy { unhealthy: vec![stuck(20)], ..policy("stuck") }]);
    let order = first(&mut scene);
    ended(&mut scene, &order, &RequestOutcome::Refused, false);
    assert_eq!(scene.run(290), []);
    assert_eq!(first(&mut scene).key, order.key);
}

fn stuck(least: u64) -> Unhealthy {
    Unhealthy { kind: "Stuck".to_owned(), status: "True".to_owned(), least: Duration::from_secs(least) }
}

/// n1 is Ready, and unhealthy to a policy.
fn ill_and_ready(scene: &mut Scene) {
    scene.turn("n1", "True");
    let condition = Condition { status: "True".to_owned(), turned: "then".to_owned() };
    scene.node("n1").conditions.insert("Stuck".to_owned(), condition);
}

/// To the remediation it is healthy for as long as it is Ready, and that may be for ever.
#[test]
fn a_remediation_of_a_node_that_is_ready_silences_no_policy_that_takes_it_for_unhealthy() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    scene.policies(vec![Policy { unhealthy: vec![stuck(20)], ..policy("stuck") }]);
    ill_and_ready(&mut scene);
    scene.run(2);
    assert_eq!(scene.suspects(), ["n1"], "it is looked at");
    let order = first(&mut scene);
    assert_eq!(whose(&order), "policy");
    // What was said to the policy holds while the Node is Ready, and bars no remediation once it is not.
    assert!(scene.decider.ended("n1", &order.key, &RequestOutcome::Blocked(None), scene.now));
    let again = first(&mut scene);
    assert_eq!(again.key, order.key);
    assert!(scene.decider.ended("n1", &again.key, &RequestOutcome::Blocked(None), scene.now));
    scene.turn("n1", "Unknown");
    assert_eq!(whose(&first(&mut scene)), "w");
}

/// To it every cordoned Node is planned work; a policy may say otherwise.
#[test]
fn a_remediation_that_takes_a_failure_for_planned_work_silences_no_policy_that_does_not() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    scene.turn("n1", "True");
    scene.node("n1").cordoned = true;
    scene.run(2);
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(60), [], "where no policy says otherwise");
    scene.policies(vec![policy("workers")]);
    assert_eq!(scene.run(60), [], "nor one that says the same");
    scene.policies(vec![Policy { spare_cordoned: false, ..policy("workers") }]);
    assert_eq!(whose(&first(&mut scene)), "policy");
}

/// Whoever may write a remediation's status may write there what it likes; what is noted on the Node is not its to write.
#[test]
fn a_status_that_says_that_its_node_is_brought_back_is_believed_only_where_the_node_says_so_too() {
    for key in ["x", "k8s/uid-n1/boot-before/w"] {
        for progress in [Progress::Fencing, Progress::Returning] {
            let state =
                RemediationState { progress, key: Some(key.to_owned()), ..RemediationState::default() };
            let mut scene = wanted(vec![RemediationRequest { state, ..remediation("w", "n1") }]);
            // A policy's note is of another fence, and so is that of another key.
            scene.note_of("n1", "workers", Phase::Returning, key);
            assert_eq!(first(&mut scene).key, "k8s/uid-n1/boot-n1/w", "{key} {progress:?}");
        }
    }
    let key = Some("k8s/uid-n1/boot-before/w".to_owned());
    let state = RemediationState { progress: Progress::Returning, key, ..RemediationState::default() };
    let mut scene = wanted(Vec::new());
    scene.note_of("n1", "PicketRemediation ops/n1", Phase::Blocked, "k8s/uid-n1/boot-earlier/w");
    scene.run(1);
    scene.decider.remediations(vec![RemediationRequest { state, ..remediation("w", "n1") }]);
    assert_eq!(first(&mut scene).key, "k8s/uid-n1/boot-n1/w");
}

/// K12: what is noted on a Node counts, and in a remediation's metadata; whoever may write a status would else have a Node fenced anew that comes back.
#[test]
fn a_node_on_its_way_back_is_not_asked_for_anew_whatever_a_status_says() {
    let key = "k8s/uid-n1/boot-before/w";
    for progress in [Progress::Waiting, Progress::Fencing, Progress::Returning, Progress::Failed] {
        let state = RemediationState { progress, key: Some(key.to_owned()), ..RemediationState::default() };
        let mut scene = wanted(Vec::new());
        scene.note_of("n1", "PicketRemediation ops/n1", Phase::Returning, key);
        scene.run(1);
        scene.decider.remediations(vec![RemediationRequest { state, ..remediation("w", "n1") }]);
        assert_eq!(scene.run(60), [], "{progress:?}");
    }
}
