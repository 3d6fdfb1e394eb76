//! Remediations: what NodeHealthCheck wants, and what is told of it.

use std::time::Duration;

use super::super::*;
use super::scene::{Scene, policy, remediation, selector, worker};

/// A cluster in which n1 is dead, and is wanted to be remediated.
pub(super) fn wanted(remediations: Vec<RemediationRequest>) -> Scene {
    let mut scene = Scene::with(Scene::new().nodes, Vec::new());
    scene.turn("n1", "Unknown");
    scene.run(2);
    scene.decider.remediations(remediations);
    scene
}

pub(super) fn first(scene: &mut Scene) -> FenceOrder {
    let mut orders = scene.run(30);
    assert_eq!(orders.len(), 1, "{orders:?}");
    orders.remove(0)
}

/// It ended, and the control tells it.
pub(super) fn ended(scene: &mut Scene, order: &FenceOrder, end: &RequestOutcome, proven: bool) {
    assert!(scene.decider.ended("n1", &order.key, end, scene.now));
    let remediation = order.remediation.clone().expect("it is a remediation's");
    let state =
        RemediationState::ended(Some(order.key.clone()), end, order.then, (proven, "Reason", "words"));
    scene.decider.stands(&remediation, state);
}

fn said(update: &RemediationUpdate) -> (Progress, [(&str, &str); 2]) {
    let [one, two] = &update.conditions;
    (update.state.progress, [(one.1, one.2.as_str()), (two.1, two.2.as_str())])
}

#[test]
fn one_is_asked_for_at_once_and_succeeds_when_its_node_is_back() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    let order = first(&mut scene);
    assert_eq!(order.key, "k8s/uid-n1/boot-n1/w");
    assert_eq!(
        (order.then, order.remediation.as_ref().map(|remediation| remediation.uid.as_str())),
        (AfterFence::PowerOn, Some("w"))
    );
    let started = ("True", "RemediationStarted");
    let unknown = ("Unknown", "RemediationStarted");
    assert_eq!(said(&scene.update("w")), (Progress::Fencing, [started, unknown]));
    ended(&mut scene, &order, &RequestOutcome::Off, true);
    assert_eq!(scene.run(600), []);
    assert_eq!(said(&scene.update("w")), (Progress::Returning, [started, unknown]));
    scene.boot("n1", "False");
    assert_eq!(scene.run(60), [], "it boots");
    assert_eq!(scene.update("w").state.progress, Progress::Returning);
    scene.turn("n1", "True");
    scene.run(2);
    let finished = "RemediationFinishedSuccessfully";
    assert_eq!(said(&scene.update("w")), (Progress::Succeeded, [("False", finished), ("True", finished)]));
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(3_000), [], "its wish came true, and that is all");
}

#[test]
fn one_that_is_made_anew_under_its_name_asks_for_itself() {
    let mut scene = wanted(vec![remediation("w1", "n1")]);
    let before = first(&mut scene);
    scene.decider.remediations(vec![remediation("w2", "n1")]);
    assert_eq!(scene.run(2), [], "what is under way is followed to its end");
    assert!(scene.decider.ended("n1", &before.key, &RequestOutcome::Blocked(None), scene.now));
    assert_eq!(first(&mut scene).key, "k8s/uid-n1/boot-n1/w2");
}

#[test]
fn one_that_stays_off_has_succeeded_when_that_is_proven_and_released_and_not_before() {
    let stays = RemediationRequest { then: AfterFence::StayOff, ..remediation("w", "n1") };
    let mut scene = wanted(vec![stays.clone()]);
    let order = first(&mut scene);
    ended(&mut scene, &order, &RequestOutcome::Off, false);
    assert_eq!(said(&scene.update("w")).1[1], ("False", "RemediationNotProven"));
    let mut scene = wanted(vec![stays]);
    let order = first(&mut scene);
    ended(&mut scene, &order, &RequestOutcome::Off, true);
    assert_eq!(said(&scene.update("w")).1[1], ("True", "RemediationFinishedSuccessfully"));
    assert_eq!(scene.run(3_000), []);
}

#[test]
fn what_no_fence_has_proven_is_no_success_although_the_node_is_back() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    let order = first(&mut scene);
    ended(&mut scene, &order, &RequestOutcome::Superseded, false);
    scene.boot("n1", "True");
    scene.run(2);
    assert_eq!(said(&scene.update("w")).1[1], ("False", "RemediationNotProven"));
}

#[test]
fn without_its_finalizer_deleted_or_timed_out_it_asks_for_nothing() {
    for changed in [
        RemediationRequest { kept: false, ..remediation("w", "n1") },
        RemediationRequest { deleted: true, ..remediation("w", "n1") },
        RemediationRequest { timed_out: true, ..remediation("w", "n1") },
    ] {
        let mut scene = wanted(vec![changed]);
        assert_eq!(scene.run(120), []);
        assert!(scene.suspects().is_empty());
    }
    let mut scene =
        wanted(vec![RemediationRequest { kept: false, timed_out: true, ..remediation("w", "n1") }]);
    let update = scene.update("w");
    let over = ("False", "RemediationInterruptedByNHC");
    assert_eq!(
        (said(&update), update.action),
        ((Progress::Interrupted, [over, over]), RemediationAction::Nothing)
    );
}

#[test]
fn after_its_time_is_over_a_fence_runs_to_its_end_and_nothing_more_is_asked() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    let order = first(&mut scene);
    scene.decider.remediations(vec![RemediationRequest { timed_out: true, ..remediation("w", "n1") }]);
    assert_eq!(scene.run(5), []);
    assert_eq!(scene.verdict("n1"), Verdict::Follow(Stage::Asking));
    assert_eq!(scene.update("w").state.progress, Progress::Fencing);
    ended(&mut scene, &order, &RequestOutcome::Off, true);
    assert_eq!(scene.run(3_000), [], "not even where it never comes back");
    scene.boot("n1", "True");
    scene.run(2);
    assert_eq!(scene.update("w").state.progress, Progress::Succeeded, "what the fence said stays true");
}

#[test]
fn what_excludes_or_brakes_holds_for_it_too_and_is_told() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    scene.node("n1").labels.insert("picket.dev/paused".to_owned(), String::new());
    assert_eq!(scene.run(60), []);
    let update = scene.update("w");
    assert_eq!(said(&update).1[0], ("True", "RemediationStarted"));
    assert!(update.state.text.contains("picket.dev/paused"), "{update:?}");

    let mut scene = Scene::with(Scene::new().nodes, Vec::new());
    for name in ["n1", "n2", "n3"] {
        scene.silent.insert(name.to_owned());
    }
    scene.turn("n1", "Unknown");
    scene.run(30);
    scene.decider.remediations(vec![remediation("w", "n1")]);
    assert_eq!(scene.run(60), []);
    assert!(scene.update("w").state.text.contains("zone a"), "{:?}", scene.update("w"));

    let mut scene = wanted(vec![remediation("w", "m1")]);
    let (control_plane, none) = (["m1".to_owned()].into(), selector("role", "none"));
    scene.policies(vec![Policy { control_plane, selector: none, ..policy("control-plane") }]);
    scene.nodes.insert("m2".to_owned(), super::scene::member("m2"));
    scene.turn("n1", "True");
    scene.turn("m2", "False");
    scene.turn("m1", "Unknown");
    assert_eq!(scene.run(60), [], "of the control plane one at a time");
    scene.turn("m2", "True");
    assert_eq!(scene.run(10).len(), 1);
}

#[test]
fn a_node_that_is_ready_is_not_asked_for_nor_one_that_nobody_looks_at() {
    let mut scene = Scene::with(Scene::new().nodes, Vec::new());
    scene.decider.remediations(vec![remediation("w", "n1")]);
    assert_eq!(scene.run(60), []);
    assert!(scene.update("w").state.text.contains("is Ready"));
    scene.turn("n1", "False");
    scene.run(0);
    scene.now += std::time::Duration::from_secs(30);
    assert!(!scene.decider.judge(scene.now).verdicts.values().any(|one| matches!(one, Verdict::Fence(_))));
    assert_eq!(scene.run(40).len(), 1, "once the leases were heard again");
}

#[test]
fn where_a_policy_speaks_too_there_is_one_request_and_both_are_told() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    scene.policies(vec![policy("workers")]);
    let order = first(&mut scene);
    assert!(order.remediation.is_some());
    assert_eq!(scene.report("workers").fencing, 1);
    ended(&mut scene, &order, &RequestOutcome::Off, true);
    assert_eq!(scene.run(600), []);

    // The policy was first: its request is followed to its end, and then the remediation asks for itself, for its own answer.
    let mut scene = wanted(Vec::new());
    scene.policies(vec![policy("workers")]);
    let order = first(&mut scene);
    assert!(order.remediation.is_none());
    scene.decider.remediations(vec![remediation("w", "n1")]);
    assert_eq!(scene.run(60), []);
    assert!(scene.update("w").state.text.contains("another request"), "{:?}", scene.update("w"));
    assert!(scene.decider.ended("n1", &order.key, &RequestOutcome::Off, scene.now));
    assert!(first(&mut scene).remediation.is_some());
}

#[test]
fn of_two_remediations_one_asks_and_goes_on() {
    let later = |uid: &str| RemediationRequest {
        id: RemediationId { name: "n1-later".to_owned(), ..remediation(uid, "n1").id },
        ..remediation(uid, "n1")
    };
    let mut scene = wanted(vec![remediation("w", "n1")]);
    let order = first(&mut scene);
    ended(&mut scene, &order, &RequestOutcome::Blocked(None), false);
    scene.decider.remediations(vec![later("a"), remediation("w", "n1")]);
    assert_eq!(first(&mut scene).key, order.key);
    // The first one's time is over: the other one's turn.
    ended(&mut scene, &order, &RequestOutcome::Blocked(None), false);
    scene
        .decider
        .remediations(vec![later("a"), RemediationRequest { timed_out: true, ..remediation("w", "n1") }]);
    assert_eq!(first(&mut scene).remediation.map(|remediation| remediation.uid), Some("a".to_owned()));
    assert_eq!(scene.update("w").state.progress, Progress::Interrupted);
}

#[test]
fn a_controller_that_begins_anew_goes_on_by_what_the_status_says() {
    let state = |progress, key: &str| RemediationState {
        progress,
        key: Some(key.to_owned()),
        ..RemediationState::default()
    };
    let key = "k8s/uid-n1/boot-n1/w";
    let known = |state| RemediationRequest { state, ..remediation("w", "n1") };
    let mut scene = wanted(vec![known(state(Progress::Fencing, &format!("{key}/2")))]);
    assert_eq!(first(&mut scene).key, format!("{key}/2"), "it joins");

    // It was fenced, and boots: that is no failure of its own.
    let before = "k8s/uid-n1/boot-before/w";
    let mut scene = wanted(Vec::new());
    scene.note_of("n1", "PicketRemediation ops/n1", Phase::Returning, before);
    scene.run(1);
    scene.decider.remediations(vec![known(state(Progress::Returning, before))]);
    for _ in 0..89 {
        assert_eq!(scene.decider.brought("n1", before, &ReturnProgress::Back, scene.now), None);
        assert_eq!(scene.run(10), []);
    }
    assert!(matches!(scene.verdict("n1"), Verdict::Follow(Stage::Returning(_))));
    scene.decider.brought("n1", before, &ReturnProgress::Back, scene.now);
    assert_eq!(first(&mut scene).key, key, "it never came");

    let mut scene = wanted(vec![known(state(Progress::Succeeded, key))]);
    assert_eq!(scene.run(60), []);
}

#[test]
fn a_node_that_the_gateway_found_alive_is_left_alone_for_a_minute() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    let order = first(&mut scene);
    ended(&mut scene, &order, &RequestOutcome::Recovered, false);
    assert_eq!(scene.run(59), []);
    assert_eq!(first(&mut scene).key, order.key);
}

#[test]
fn the_finalizer_goes_with_the_hold_once_the_node_is_ready_or_by_a_person_s_word() {
    let asked = RemediationState {
        progress: Progress::Returning,
        key: Some("k8s/uid-n1/boot-n1/w".to_owned()),
        ..RemediationState::default()
    };
    let deleted = |state: &RemediationState| RemediationRequest {
        deleted: true,
        state: state.clone(),
        ..remediation("w", "n1")
    };
    let action = |scene: &mut Scene| scene.update("w").action;
    assert_eq!(
        action(&mut wanted(vec![RemediationRequest { kept: false, ..remediation("w", "n1") }])),
        RemediationAction::Keep
    );
    assert_eq!(action(&mut wanted(vec![remediation("w", "n1")])), RemediationAction::Nothing);
    assert_eq!(
        action(&mut wanted(vec![deleted(&RemediationState::default())])),
        RemediationAction::Free,
        "nothing was asked"
    );
    let mut scene = wanted(vec![deleted(&asked)]);
    assert_eq!(action(&mut scene), RemediationAction::Page);
    scene.turn("n1", "True");
    scene.run(2);
    assert!(matches!(action(&mut scene), RemediationAction::LetGo { .. }));
    assert_eq!(
        action(&mut wanted(vec![RemediationRequest { freed: true, ..deleted(&asked) }])),
        RemediationAction::Free
    );
    assert_eq!(
        action(&mut wanted(vec![RemediationRequest { kept: false, ..deleted(&asked) }])),
        RemediationAction::Nothing
    );
    let mut scene = wanted(vec![deleted(&asked)]);
    scene.nodes.remove("n1");
    scene.decider.gone("n1");
    assert_eq!(action(&mut scene), RemediationAction::Page, "a Node that is gone is not Ready");
}

/// They have one holder.
#[test]
fn while_a_policy_s_request_runs_the_hold_is_not_dropped() {
    let key = Some("k8s/uid-n1/boot-before/w".to_owned());
    let state = RemediationState { progress: Progress::Failed, key, ..RemediationState::default() };
    let mut scene = Scene::with(Scene::new().nodes, vec![policy("p")]);
    scene.decider.remediations(vec![RemediationRequest { deleted: true, state, ..remediation("w", "n1") }]);
    scene.turn("n1", "Unknown");
    let orders = scene.run(60);
    assert_eq!(orders.iter().map(|order| order.remediation.is_none()).collect::<Vec<_>>(), [true]);
    scene.turn("n1", "True");
    scene.run(2);
    assert_eq!(scene.update("w").action, RemediationAction::Nothing);
    assert!(scene.decider.ended("n1", &orders[0].key, &RequestOutcome::Recovered, scene.now));
    scene.run(2);
    assert!(matches!(scene.update("w").action, RemediationAction::LetGo { .. }));
}

/// What it says of itself may be of before the off, or its fence is another's.
#[test]
fn what_a_node_says_while_a_policy_keeps_it_off_drops_no_hold() {
    let stuck =
        Unhealthy { kind: "Stuck".to_owned(), status: "True".to_owned(), least: Duration::from_secs(20) };
    let mut scene = Scene::with(Scene::new().nodes, vec![Policy { unhealthy: vec![stuck], ..policy("p") }]);
    let key = Some("k8s/uid-n1/boot-before/w".to_owned());
    let state = RemediationState { progress: Progress::Failed, key, ..RemediationState::default() };
    scene.decider.remediations(vec![RemediationRequest { deleted: true, state, ..remediation("w", "n1") }]);
    let condition = Condition { status: "True".to_owned(), turned: "then".to_owned() };
    scene.node("n1").conditions.insert("Stuck".to_owned(), condition);
    let order = first(&mut scene);
    assert!(scene.decider.ended("n1", &order.key, &RequestOutcome::Off, scene.now));
    scene.run(2);
    assert_eq!(scene.update("w").action, RemediationAction::Nothing, "it is Ready, as its kubelet said last");
}

/// The gateway's key is bound to what was asked for by it.
#[test]
fn a_key_is_of_whoever_asked_by_it() {
    let mut scene = Scene::with(Scene::new().nodes, vec![policy("p")]);
    scene.decider.remediations(vec![remediation("w", "n1")]);
    scene.turn("n1", "Unknown");
    let order = first(&mut scene);
    assert!(order.remediation.is_some());
    assert!(scene.decider.ended("n1", &order.key, &RequestOutcome::Held, scene.now));
    let state = RemediationState { key: Some(order.key.clone()), ..RemediationState::default() };
    scene.decider.remediations(vec![RemediationRequest { deleted: true, state, ..remediation("w", "n1") }]);
    let after = first(&mut scene);
    assert_eq!((after.remediation.is_none(), after.key.as_str()), (true, "k8s/uid-n1/boot-n1/Ready=turn-1"));
}

/// Who cannot be read asks for nothing; what hangs on it is seen to all the same.
#[test]
fn one_that_cannot_be_read_is_told_and_goes_as_any_other() {
    let wrong = |deleted| RemediationRequest {
        wrong: Some((MALFORMED, "no such key".to_owned())),
        deleted,
        ..remediation("w", "n1")
    };
    let mut scene = wanted(vec![RemediationRequest { kept: false, ..wrong(false) }]);
    assert_eq!(scene.run(60), []);
    let update = scene.update("w");
    let malformed = ("False", "Malformed");
    assert_eq!(
        (said(&update), update.action),
        ((Progress::Failed, [malformed, malformed]), RemediationAction::Nothing)
    );
    assert_eq!(
        wanted(vec![wrong(true)]).update("w").action,
        RemediationAction::Free,
        "nothing was asked by it"
    );
    let key = Some("k8s/uid-n1/boot-n1/w".to_owned());
    let asked =
        RemediationRequest { state: RemediationState { key, ..RemediationState::default() }, ..wrong(true) };
    assert_eq!(wanted(vec![asked.clone()]).update("w").action, RemediationAction::Page);
    assert_eq!(
        wanted(vec![RemediationRequest { freed: true, ..asked }]).update("w").action,
        RemediationAction::Free
    );
    // A controller that understands it asks.
    let read = RemediationState {
        progress: Progress::Failed,
        reason: "Malformed".to_owned(),
        ..RemediationState::default()
    };
    let mut scene = wanted(vec![RemediationRequest { state: read, ..remediation("w", "n1") }]);
    assert_eq!(first(&mut scene).remediation.map(|remediation| remediation.uid), Some("w".to_owned()));
}

/// It is told, and what was asked by it before the settings said so is seen to.
#[test]
fn one_of_a_namespace_that_does_not_count_asks_for_nothing() {
    let elsewhere = |one: RemediationRequest| one.counting_in(&["another".to_owned()]);
    let mut scene = wanted(vec![elsewhere(remediation("w", "n1"))]);
    assert_eq!(scene.run(60), []);
    assert_eq!(scene.update("w").state.reason, "OtherNamespace");
    let deleted = elsewhere(RemediationRequest { deleted: true, ..remediation("w", "n1") });
    assert_eq!(wanted(vec![deleted]).update("w").action, RemediationAction::Free);
    let named = remediation("w", "n1").counting_in(&["ops".to_owned()]);
    assert_eq!(first(&mut wanted(vec![named])).key, "k8s/uid-n1/boot-n1/w");
    assert_eq!(
        remediation("w", "n1").counting_in(&[]).wrong.map(|(reason, _)| reason),
        Some("OtherNamespace")
    );
}

/// The leader tells what became of one: what a follower made of it is nobody's word.
#[test]
fn a_follower_concludes_nothing() {
    let key = Some("k8s/uid-n1/boot-before/w".to_owned());
    let state = |proven| RemediationState {
        progress: Progress::Returning,
        key: key.clone(),
        proven,
        ..RemediationState::default()
    };
    let mut scene = Scene::new();
    scene.decider.lead(false);
    scene.decider.remediations(vec![RemediationRequest { state: state(false), ..remediation("w", "n1") }]);
    scene.run(5);
    assert_eq!(scene.update("w").state.progress, Progress::Returning);
    // The leader of then told that it was proven, before it went.
    scene.decider.remediations(vec![RemediationRequest { state: state(true), ..remediation("w", "n1") }]);
    scene.decider.lead(true);
    assert_eq!(scene.update("w").state.progress, Progress::Succeeded);
}

#[test]
fn one_for_no_node_says_so_and_for_another_node_of_the_name_it_begins_anew() {
    let mut scene = wanted(vec![RemediationRequest { kept: false, ..remediation("w", "n9") }]);
    let update = scene.update("w");
    let none = ("False", "RemediationFinishedNodeNotFound");
    assert_eq!(
        (said(&update), update.action),
        ((Progress::Failed, [none, none]), RemediationAction::Nothing)
    );
    scene.nodes.insert("n9".to_owned(), worker("n9", "b"));
    scene.run(2);
    assert_eq!(scene.update("w").action, RemediationAction::Keep);
}

#[test]
fn what_ends_badly_is_told_by_its_own_word() {
    for (end, progress, succeeded) in [
        (RequestOutcome::Person, Progress::Failed, "False"),
        (RequestOutcome::Refused, Progress::Failed, "False"),
        (RequestOutcome::Blocked(None), Progress::Waiting, "Unknown"),
        (RequestOutcome::Held, Progress::Waiting, "Unknown"),
    ] {
        let mut scene = wanted(vec![remediation("w", "n1")]);
        let order = first(&mut scene);
        ended(&mut scene, &order, &end, false);
        let update = scene.update("w");
        let (told, [processing, other]) = said(&update);
        assert_eq!((told, processing.1, other), (progress, "Reason", (succeeded, "Reason")), "{end:?}");
    }
}
