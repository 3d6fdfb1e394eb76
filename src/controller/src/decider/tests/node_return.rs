//! A Node that is brought back: in time, late, or never.

use super::super::*;
use super::remediation_requests::{ended, first, wanted};
use super::scene::{Scene, policy, remediation};

fn power_on() -> Policy {
    Policy { then: AfterFence::PowerOn, ..policy("workers") }
}

fn failed() -> ReturnProgress {
    ReturnProgress::Failed("PowerOnFailed", "it was not seen on".to_owned())
}

/// n1 was fenced by its policy, and is brought back. The key.
fn returning(scene: &mut Scene) -> String {
    scene.policies(vec![power_on()]);
    scene.turn("n1", "Unknown");
    let first = scene.run(30).remove(0);
    scene.decider.ended("n1", &first.key, &RequestOutcome::Off, scene.now);
    first.key
}

/// So many seconds pass, and every ten of them the gateway says that.
fn run(scene: &mut Scene, key: &str, way: &ReturnProgress, seconds: u32) -> Vec<FenceOrder> {
    let tens = (0..seconds / 10).map(|_| {
        scene.decider.brought("n1", key, way, scene.now);
        scene.run(10)
    });
    tens.flatten().collect()
}

#[test]
fn one_that_is_brought_back_has_a_quarter_of_an_hour() {
    let mut scene = Scene::new();
    let key = returning(&mut scene);
    assert_eq!(run(&mut scene, &key, &ReturnProgress::Back, 880), []);
    assert!(matches!(scene.verdict("n1"), Verdict::Follow(Stage::Returning(_))));
    let second = run(&mut scene, &key, &ReturnProgress::Back, 30).remove(0);
    assert_eq!(
        second.key,
        format!("{key}/2"),
        "its machine is on, and it never came: that is one more failure"
    );
}

/// Of a machine of which nobody knows that it is on no more is asked.
#[test]
fn the_quarter_of_an_hour_begins_once_its_machine_is_on_and_nothing_is_asked_while_nobody_says_so() {
    let mut scene = Scene::new();
    let key = returning(&mut scene);
    assert_eq!(
        run(&mut scene, &key, &ReturnProgress::UnderWay(String::new()), 3_000),
        [],
        "the gateway has a deadline of its own"
    );
    assert_eq!(run(&mut scene, &key, &ReturnProgress::Back, 860), []);
    assert_eq!(scene.run(2_000), [], "the gateways are away");
    let second = run(&mut scene, &key, &ReturnProgress::Back, 20).remove(0);
    assert_eq!(second.key, format!("{key}/2"));
}

/// The gateways were away while it was switched on, for longer than a quarter of an hour.
#[test]
fn its_quarter_of_an_hour_begins_when_it_is_first_heard_to_be_on() {
    let mut scene = Scene::new();
    let key = returning(&mut scene);
    assert_eq!(scene.run(1_200), [], "nobody says anything");
    assert_eq!(run(&mut scene, &key, &ReturnProgress::Back, 880), []);
    assert_eq!(run(&mut scene, &key, &ReturnProgress::Back, 30).len(), 1);
}

#[test]
fn one_that_was_not_seen_on_is_a_person_s_and_told_once() {
    let mut scene = Scene::new();
    let key = returning(&mut scene);
    assert_eq!(
        scene.decider.brought("n1", "another", &failed(), scene.now),
        None,
        "that was not asked of it"
    );
    assert_eq!(
        scene.decider.brought("n1", &key, &failed(), scene.now).map(|news| news.policy).as_deref(),
        Some("workers")
    );
    assert_eq!(scene.decider.brought("n1", &key, &failed(), scene.now), None);
    assert_eq!(run(&mut scene, &key, &failed(), 3_000), [], "it is off, and another fence mends nothing");
    assert_eq!(scene.verdict("n1"), Verdict::Follow(Stage::NotBack));
    assert!(scene.suspects().is_empty(), "no look decides about it");
    assert_eq!(scene.decider.on_their_way().len(), 1);
    // A person retries: its time begins, and ends as any other one's.
    assert_eq!(run(&mut scene, &key, &ReturnProgress::UnderWay(String::new()), 100), []);
    assert_eq!(run(&mut scene, &key, &ReturnProgress::Back, 880), []);
    scene.boot("n1", "True");
    assert_eq!(scene.run(60), []);
    assert_eq!(scene.verdict("n1"), Verdict::Leave(SkipReason::Healthy));
    assert!(scene.decider.on_their_way().is_empty());
    // The next failure is another one.
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(120).len(), 1);
}

/// Also where its kubelet boots before anybody asked.
#[test]
fn one_that_boots_after_it_failed_is_given_its_time() {
    let mut scene = Scene::new();
    let key = returning(&mut scene);
    scene.decider.brought("n1", &key, &failed(), scene.now);
    scene.boot("n1", "False");
    assert_eq!(scene.run(800), []);
    assert!(matches!(scene.verdict("n1"), Verdict::Follow(Stage::Returning(_))));
}

/// Its remediation has failed, in words, and neither its Node's policy nor another remediation fences the Node again.
#[test]
fn a_remediation_whose_node_was_not_seen_on_has_failed_and_says_so() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    let order = first(&mut scene);
    ended(&mut scene, &order, &RequestOutcome::Off, true);
    scene.run(30);
    assert_eq!(scene.update("w").state.progress, Progress::Returning);
    assert!(scene.decider.brought("n1", &order.key, &failed(), scene.now).is_some());
    let update = scene.update("w");
    assert_eq!((update.state.progress, update.state.proven), (Progress::Failed, true));
    let said = ("False".to_owned(), "PowerOnFailed".to_owned(), "it was not seen on".to_owned());
    for (_, status, reason, text) in update.conditions {
        assert_eq!((status.to_owned(), reason, text), said);
    }
    scene.policies(vec![power_on()]);
    scene.decider.remediations(vec![remediation("w", "n1"), remediation("x", "n1")]);
    assert_eq!(run(&mut scene, &order.key, &failed(), 3_000), []);
    // Nor the policy alone, once the remediation's time is over.
    scene.decider.remediations(vec![RemediationRequest { timed_out: true, ..remediation("w", "n1") }]);
    assert_eq!(run(&mut scene, &order.key, &failed(), 3_000), []);
}

/// A policy that takes its own word alone for unhealthy: while it boots nobody has heard it, and what the gateway says of it counts all the same.
#[test]
fn one_that_its_policy_takes_for_well_is_followed_until_it_is_ready() {
    let mut scene = Scene::new();
    let unhealthy = power_on().unhealthy.into_iter().filter(|one| one.status == "False").collect();
    scene.policies(vec![Policy { unhealthy, ..power_on() }]);
    scene.turn("n1", "False");
    let key = scene.run(30).remove(0).key;
    scene.decider.ended("n1", &key, &RequestOutcome::Off, scene.now);
    scene.turn("n1", "Unknown");
    assert_eq!(run(&mut scene, &key, &ReturnProgress::UnderWay(String::new()), 60), []);
    assert!(matches!(scene.verdict("n1"), Verdict::Follow(Stage::Returning(_))));
    assert!(scene.decider.brought("n1", &key, &failed(), scene.now).is_some(), "a person is told");
    assert_eq!(run(&mut scene, &key, &failed(), 3_000), []);
    assert_eq!(scene.verdict("n1"), Verdict::Follow(Stage::NotBack));
    // Its quarter of an hour is over while nobody hears it: that is no failure to this policy.
    assert_eq!(run(&mut scene, &key, &ReturnProgress::Back, 2_000), []);
    scene.turn("n1", "True");
    assert_eq!(scene.run(2), []);
    assert_eq!(scene.verdict("n1"), Verdict::Leave(SkipReason::Healthy));
    assert!(scene.decider.on_their_way().is_empty());
}

/// A person's retry went well.
#[test]
fn a_remediation_that_failed_on_the_way_back_says_who_saw_to_it_and_succeeds_once_its_node_is_back() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    let order = first(&mut scene);
    ended(&mut scene, &order, &RequestOutcome::Off, true);
    scene.decider.brought("n1", &order.key, &failed(), scene.now);
    let news = scene.decider.brought("n1", &order.key, &ReturnProgress::UnderWay(String::new()), scene.now);
    let ReturnEvent { phase, reason, text, .. } = news.expect("it is told that it is on its way again");
    assert_eq!((phase, reason), (Phase::Returning, "NodeReturning"));
    let told = scene.update("w").state;
    // NodeHealthCheck was told that it failed, and may have gone on to another template: it is not taken back before the Node is there.
    assert_eq!((told.progress, &*told.reason, told.text), (Progress::Failed, "PowerOnFailed", text));
    assert_eq!(
        scene.decider.brought("n1", &order.key, &ReturnProgress::Back, scene.now),
        None,
        "it is told once"
    );
    scene.turn("n1", "True");
    scene.run(2);
    assert_eq!(scene.update("w").state.progress, Progress::Failed, "it speaks from before it was fenced");
    scene.boot("n1", "True");
    scene.run(2);
    let told = scene.update("w");
    assert_eq!((told.state.progress, told.conditions[1].1), (Progress::Succeeded, "True"));
}

/// NodeHealthCheck's time is over, and nobody speaks for it any more: what was asked for is followed to its end all the same, and told.
#[test]
fn what_was_asked_for_is_followed_on_its_way_back_where_nobody_speaks_for_it_any_more() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    let order = first(&mut scene);
    ended(&mut scene, &order, &RequestOutcome::Off, true);
    scene.run(5);
    let over = RemediationRequest { timed_out: true, ..remediation("w", "n1") };
    scene.decider.remediations(vec![over.clone()]);
    assert_eq!(run(&mut scene, &order.key, &ReturnProgress::Back, 2_000), [], "nobody asks for it again");
    assert!(scene.decider.brought("n1", &order.key, &failed(), scene.now).is_some());
    let told = scene.update("w").state;
    assert_eq!(
        (told.progress, &*told.reason),
        (Progress::Failed, "PowerOnFailed"),
        "that it failed is its end"
    );
    // Nor does another one begin anew meanwhile.
    scene.decider.remediations(vec![over, remediation("x", "n1")]);
    assert_eq!(run(&mut scene, &order.key, &failed(), 3_000), []);
    scene.boot("n1", "True");
    scene.run(2);
    assert_eq!(scene.update("w").state.progress, Progress::Succeeded);
    assert!(scene.decider.on_their_way().is_empty());
}

/// NodeHealthCheck goes on to its next template: that one says at once that nothing comes of it, so that it goes on again.
#[test]
fn a_remediation_beside_one_whose_node_was_not_seen_on_has_failed_too_and_stays_so() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    let order = first(&mut scene);
    ended(&mut scene, &order, &RequestOutcome::Off, true);
    scene.decider.brought("n1", &order.key, &failed(), scene.now);
    let beside = |deleted| RemediationRequest { deleted, ..remediation("x", "n1") };
    scene.decider.remediations(vec![
        remediation("w", "n1"),
        beside(false),
        RemediationRequest { wrong: Some(("R", String::new())), ..remediation("y", "n1") },
    ]);
    assert_eq!(run(&mut scene, &order.key, &failed(), 20), []);
    let told = scene.update("x").state;
    assert_eq!((told.progress, &*told.reason, told.key), (Progress::Failed, "NeedsOperator", None));
    assert_eq!(&*scene.update("w").state.reason, "PowerOnFailed", "it has its own words");
    assert_eq!(&*scene.update("y").state.reason, "R");
    run(&mut scene, &order.key, &ReturnProgress::Back, 20);
    assert_eq!(scene.update("x").state.progress, Progress::Failed, "it is not taken back");
    scene.decider.remediations(vec![remediation("w", "n1"), beside(true)]);
    assert_eq!(scene.update("x").action, RemediationAction::Free, "nothing hangs on it");
}

/// What a fence never proved is no success, whoever brings the Node back.
#[test]
fn a_remediation_that_was_never_proven_stays_failed() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    let order = first(&mut scene);
    ended(&mut scene, &order, &RequestOutcome::Person, false);
    scene.boot("n1", "True");
    scene.run(2);
    let told = scene.update("w").state;
    assert_eq!((told.progress, &*told.reason), (Progress::Failed, "Reason"));
}

/// What it waits for stands on its remediation.
#[test]
fn what_the_way_back_waits_for_is_said_of_a_remediation() {
    let mut scene = wanted(vec![remediation("w", "n1")]);
    let order = first(&mut scene);
    ended(&mut scene, &order, &RequestOutcome::Off, true);
    let text = |scene: &mut Scene, wait: &str| {
        scene.decider.brought("n1", &order.key, &ReturnProgress::UnderWay(wait.to_owned()), scene.now);
        scene.update("w").state.text
    };
    assert_eq!(text(&mut scene, "On to be seen (bmc)"), "words; it waits for On to be seen (bmc)");
    assert_eq!(text(&mut scene, "a hold (ops)"), "words; it waits for a hold (ops)");
    assert_eq!(text(&mut scene, ""), "words");
    assert_eq!(scene.update("w").state.progress, Progress::Returning);
}

/// Whoever may write a remediation's metadata may write any round there.
#[test]
fn a_round_that_is_beyond_all_numbers_is_followed_as_any_other() {
    let key = format!("k8s/uid-n1/boot-n1/w/{}", u32::MAX);
    let state = RemediationState { key: Some(key.clone()), ..RemediationState::default() };
    let mut scene = wanted(vec![RemediationRequest { state, ..remediation("w", "n1") }]);
    let order = first(&mut scene);
    assert_eq!(order.key, key);
    for _ in 0..2 {
        ended(&mut scene, &order, &RequestOutcome::Off, true);
        let orders = run(&mut scene, &key, &ReturnProgress::Back, 1_000);
        assert_eq!(orders.iter().map(|order| &order.key).collect::<Vec<_>>(), [&key]);
    }
}
