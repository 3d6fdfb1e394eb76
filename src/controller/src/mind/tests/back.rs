//! A Node that is brought back: in time, late, or never.

use super::super::*;
use super::scene::{Scene, policy, wish};
use super::wished::{ended, first, wanted};

fn power_on() -> Policy {
    Policy { then: Then::PowerOn, ..policy("workers") }
}

fn failed() -> Way {
    Way::Failed("PowerOnFailed", "it was not seen on".to_owned())
}

/// n1 was fenced by its policy, and is brought back. The key.
fn returning(scene: &mut Scene) -> String {
    scene.policies(vec![power_on()]);
    scene.turn("n1", "Unknown");
    let first = scene.run(30).remove(0);
    scene.mind.ended("n1", &first.key, &End::Off, scene.now);
    first.key
}

/// So many seconds pass, and every ten of them the gateway says that.
fn run(scene: &mut Scene, key: &str, way: &Way, seconds: u32) -> Vec<Order> {
    let tens = (0..seconds / 10).map(|_| {
        scene.mind.brought("n1", key, way, scene.now);
        scene.run(10)
    });
    tens.flatten().collect()
}

#[test]
fn one_that_is_brought_back_has_a_quarter_of_an_hour() {
    let mut scene = Scene::new();
    let key = returning(&mut scene);
    assert_eq!(run(&mut scene, &key, &Way::Back, 880), []);
    assert!(matches!(scene.verdict("n1"), Verdict::Follow(Stage::Returning(_))));
    let second = run(&mut scene, &key, &Way::Back, 30).remove(0);
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
    assert_eq!(run(&mut scene, &key, &Way::UnderWay, 3_000), [], "the gateway has a deadline of its own");
    assert_eq!(run(&mut scene, &key, &Way::Back, 860), []);
    assert_eq!(scene.run(2_000), [], "the gateways are away");
    let second = run(&mut scene, &key, &Way::Back, 20).remove(0);
    assert_eq!(second.key, format!("{key}/2"));
}

/// The gateways were away while it was switched on, for longer than a quarter of an hour.
#[test]
fn its_quarter_of_an_hour_begins_when_it_is_first_heard_to_be_on() {
    let mut scene = Scene::new();
    let key = returning(&mut scene);
    assert_eq!(scene.run(1_200), [], "nobody says anything");
    assert_eq!(run(&mut scene, &key, &Way::Back, 880), []);
    assert_eq!(run(&mut scene, &key, &Way::Back, 30).len(), 1);
}

#[test]
fn one_that_was_not_seen_on_is_a_person_s_and_told_once() {
    let mut scene = Scene::new();
    let key = returning(&mut scene);
    assert_eq!(scene.mind.brought("n1", "another", &failed(), scene.now), None, "that was not asked of it");
    assert_eq!(scene.mind.brought("n1", &key, &failed(), scene.now).as_deref(), Some("workers"));
    assert_eq!(scene.mind.brought("n1", &key, &failed(), scene.now), None);
    assert_eq!(run(&mut scene, &key, &failed(), 3_000), [], "it is off, and another fence mends nothing");
    assert_eq!(scene.verdict("n1"), Verdict::Follow(Stage::NotBack));
    assert!(scene.suspects().is_empty(), "no look decides about it");
    assert_eq!(scene.mind.on_their_way().len(), 1);
    // A person retries: its time begins, and ends as any other one's.
    assert_eq!(run(&mut scene, &key, &Way::UnderWay, 100), []);
    assert_eq!(run(&mut scene, &key, &Way::Back, 880), []);
    scene.boot("n1", "True");
    assert_eq!(scene.run(60), []);
    assert_eq!(scene.verdict("n1"), Verdict::Leave(Why::Healthy));
    assert!(scene.mind.on_their_way().is_empty());
    // The next failure is another one.
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(120).len(), 1);
}

/// Also where its kubelet boots before anybody asked.
#[test]
fn one_that_boots_after_it_failed_is_given_its_time() {
    let mut scene = Scene::new();
    let key = returning(&mut scene);
    scene.mind.brought("n1", &key, &failed(), scene.now);
    scene.boot("n1", "False");
    assert_eq!(scene.run(800), []);
    assert!(matches!(scene.verdict("n1"), Verdict::Follow(Stage::Returning(_))));
}

/// Its remediation has failed, in words, and neither its Node's policy nor another remediation fences the Node again.
#[test]
fn a_remediation_whose_node_was_not_seen_on_has_failed_and_says_so() {
    let mut scene = wanted(vec![wish("w", "n1")]);
    let order = first(&mut scene);
    ended(&mut scene, &order, &End::Off, true);
    scene.run(30);
    assert_eq!(scene.tiding("w").standing.progress, Progress::Returning);
    assert!(scene.mind.brought("n1", &order.key, &failed(), scene.now).is_some());
    let tiding = scene.tiding("w");
    assert_eq!((tiding.standing.progress, tiding.standing.proven), (Progress::Failed, true));
    let said = ("False".to_owned(), "PowerOnFailed".to_owned(), "it was not seen on".to_owned());
    for (_, status, reason, text) in tiding.conditions {
        assert_eq!((status.to_owned(), reason, text), said);
    }
    scene.policies(vec![power_on()]);
    scene.mind.wishes(vec![wish("w", "n1"), wish("x", "n1")]);
    assert_eq!(run(&mut scene, &order.key, &failed(), 3_000), []);
    // Nor the policy alone, once the remediation's time is over.
    scene.mind.wishes(vec![Wish { timed_out: true, ..wish("w", "n1") }]);
    assert_eq!(run(&mut scene, &order.key, &failed(), 3_000), []);
}
