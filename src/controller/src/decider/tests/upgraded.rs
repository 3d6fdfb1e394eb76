//! What a remediation has asked for, where its metadata does not say it: a version before noted that in the status, or the annotation is lost (K12).

use serde_json::{Value, json};

use super::super::*;
use super::remediation_requests::{first, wanted};
use super::scene::Scene;
use crate::remediation::read;

const OURS: &str = "PicketRemediation ops/n1";
const KEY: &str = "k8s/uid-n1/boot-n1/w";

/// One without the annotation, whose status has that key.
fn told(key: &str, more: &Value) -> RemediationRequest {
    let mut whole = json!({
        "apiVersion": "picket.dev/v1alpha1", "kind": "PicketRemediation",
        "metadata": { "name": "n1", "namespace": "ops", "uid": "w", "finalizers": ["picket.dev/remediation"] },
        "spec": { "then": "PowerOn", "minimumGrade": "Claimed" },
        "status": { "node": "n1", "key": key, "phase": "Returning", "proven": true },
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        whole["metadata"][name] = value.clone();
    }
    read(&serde_json::from_value(whole).expect("a remediation"))
}

fn deleted(key: &str) -> RemediationRequest {
    told(key, &json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }))
}

/// n1 is dead, and somebody has noted that on it.
fn noted(policy: &str, phase: Phase, key: &str) -> Scene {
    let mut scene = wanted(Vec::new());
    scene.note_of("n1", policy, phase, key);
    scene.run(1);
    scene
}

/// A version before had it fenced, and it is deleted now: nobody else knows that a hold stands.
#[test]
fn one_whose_node_names_it_and_its_key_has_asked_and_goes_with_its_hold() {
    for phase in [Phase::Fencing, Phase::Fenced, Phase::Returning, Phase::NeedsOperator] {
        let mut scene = noted(OURS, phase, KEY);
        scene.decider.remediations(vec![deleted(KEY)]);
        let update = scene.update("w");
        assert_eq!(
            (update.action, update.state.key.as_deref(), update.state.proven),
            (RemediationAction::Page, Some(KEY), false),
            "{phase:?}"
        );
        // The note goes once the Node is back, and what was taken over stays.
        scene.boot("n1", "True");
        scene.node("n1").annotations.clear();
        scene.run(2);
        assert!(matches!(scene.update("w").action, RemediationAction::LetGo { .. }), "{phase:?}");
    }
}

#[test]
fn one_whose_node_names_it_and_its_key_asks_for_the_same_and_for_nothing_while_that_comes_back() {
    let round = format!("{KEY}/2");
    let mut scene = noted(OURS, Phase::Fencing, &round);
    scene.decider.remediations(vec![told(&round, &Value::Null)]);
    assert_eq!(first(&mut scene).key, round);
    for phase in [Phase::Fencing, Phase::Returning] {
        let before = "k8s/uid-n1/boot-before/w";
        let mut scene = noted(OURS, phase, before);
        scene.decider.remediations(vec![told(before, &Value::Null)]);
        assert_eq!(scene.run(60), [], "{phase:?}: it was fenced, and boots");
        let is_back = scene.update("w").state.progress == Progress::Returning;
        assert_eq!(is_back, phase == Phase::Returning, "{phase:?}: so its Node says");
    }
}

/// Whoever may write a status may write any key there: it takes no finalizer away, keeps one at worst, and bars nothing.
#[test]
fn what_nothing_but_a_status_says_keeps_the_finalizer_until_a_person_says_otherwise() {
    let other = "k8s/uid-n9/boot-n9/w";
    for (policy, noted_key, key) in [
        ("workers", KEY, KEY),
        ("PicketRemediation ops/n2", KEY, KEY),
        (OURS, "k8s/uid-n1/boot-before/w", KEY),
        (OURS, other, other),
    ] {
        let mut scene = noted(policy, Phase::Fenced, noted_key);
        scene.decider.remediations(vec![deleted(key)]);
        let update = scene.update("w");
        assert_eq!(
            (update.action, update.state.key),
            (RemediationAction::Page, None),
            "{policy} {noted_key} {key}"
        );
    }
    let mut scene = wanted(vec![deleted(KEY)]);
    assert_eq!(scene.update("w").action, RemediationAction::Page, "nobody notes anything on its Node");
    scene.boot("n1", "True");
    scene.run(2);
    assert_eq!(scene.update("w").action, RemediationAction::Page, "nobody knows whether that Node was meant");
    scene.nodes.remove("n1");
    scene.decider.gone("n1");
    assert_eq!(scene.update("w").action, RemediationAction::Page, "there is no Node");
    let freed = json!({
        "deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": { "picket.dev/free-remediation": "true" },
    });
    scene.decider.remediations(vec![told(KEY, &freed)]);
    assert_eq!(scene.update("w").action, RemediationAction::Free);
    // Another one's key is no word of this one.
    scene.decider.remediations(vec![deleted("k8s/uid-n1/boot-n1/v")]);
    assert_eq!(scene.update("w").action, RemediationAction::Free);
    assert_eq!(first(&mut wanted(vec![told(other, &Value::Null)])).key, KEY, "it asks as ever");
}

/// Without our finalizer a remediation has asked for nothing, whatever stands on it and on its Node.
#[test]
fn one_without_our_finalizer_takes_nothing_over() {
    let mut scene = noted(OURS, Phase::Fencing, KEY);
    scene.decider.remediations(vec![told(KEY, &json!({ "finalizers": [] }))]);
    assert_eq!(scene.update("w").state.key, None);
}

/// What only a status says is not taken from it before somebody knows better.
#[test]
fn a_status_keeps_a_key_that_stands_there_alone_and_no_other_one() {
    let mut scene = wanted(vec![told(KEY, &Value::Null)]);
    let update = scene.update("w");
    for (key, right) in [(json!(KEY), None), (json!("k8s/uid-n1/boot-n1/v"), Some(&Value::Null))] {
        let status = crate::remediation::status(&update, &json!({ "key": key }));
        assert_eq!(status.as_object().expect("a status").get("key"), right, "{key}");
    }
}

/// By another key another machine may be meant.
#[test]
fn how_a_gateway_calls_the_node_is_known_for_the_key_that_it_was_asked_by() {
    let mut scene = wanted(vec![super::scene::remediation("w", "n1")]);
    let id = first(&mut scene).remediation.expect("it is a remediation's");
    let asked = |key: &str| RemediationState::asked(Some(key.to_owned()), "fencing");
    let named = |scene: &mut Scene| scene.update("w").state.gateway_node;
    scene.decider.stands(&id, asked(KEY));
    scene.decider.shown(&id, "rack1-n1");
    scene.decider.stands(&id, asked(KEY));
    assert_eq!(named(&mut scene).as_deref(), Some("rack1-n1"));
    scene.decider.stands(&id, asked("k8s/uid-n1/boot-n1/w/2"));
    assert_eq!(named(&mut scene), None);
    // Its metadata has the earlier key still.
    let state = RemediationState { gateway_node: Some("rack1-n1".to_owned()), ..asked(KEY) };
    scene.decider.remediations(vec![RemediationRequest { state, ..super::scene::remediation("w", "n1") }]);
    assert_eq!(named(&mut scene), None);
}
