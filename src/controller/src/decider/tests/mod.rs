//! Scenarios: a cluster of five Nodes in two zones, looked at every two seconds.

mod acting;
mod claims;
mod crowd;
mod ill;
mod node_return;
mod planned;
mod policy_faults;
mod properties;
mod remediation_requests;
mod retired;
mod scene;
mod turns;
mod upgraded;

use std::time::Duration;

use super::*;
use scene::{Scene, policy, worker};

const S: Duration = Duration::from_secs(1);

#[test]
fn a_node_that_is_not_ready_for_twenty_seconds_is_asked_for_once() {
    let mut scene = Scene::new();
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(19), []);
    let orders = scene.run(60);
    let [order] = &*orders else { panic!("{orders:?}") };
    assert_eq!((order.node.name.as_str(), order.policy.as_str()), ("n1", "workers"));
    assert_eq!(order.key, "k8s/uid-n1/boot-n1/Ready=turn-1");
    assert_eq!(scene.verdict("n1"), Verdict::Follow(Stage::Asking));
}

/// A zone comes back: its kubelets are heard before their Nodes are Ready again. Who is heard, and says nothing better for a minute, is ill.
#[test]
fn a_node_that_is_unknown_and_heard_again_is_given_a_minute() {
    let mut scene = Scene::new();
    // Its lease stands still for long before anybody calls it Unknown.
    scene.silent.insert("n1".to_owned());
    assert_eq!(scene.run(30), []);
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(19), []);
    scene.silent.remove("n1");
    assert_eq!(scene.run(59), []);
    assert!(matches!(scene.verdict("n1"), Verdict::Leave(SkipReason::Heard(_))));
    scene.turn("n1", "True");
    assert_eq!(scene.run(120), []);
    scene.silent.insert("n1".to_owned());
    assert_eq!(scene.run(30), []);
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(10), []);
    scene.silent.remove("n1");
    assert_eq!(scene.run(60), [], "heard since then, and nothing better is said");
    assert_eq!(scene.run(3).len(), 1);
    // Its own word that it is not Ready is no silence.
    let mut scene = Scene::new();
    scene.turn("n2", "False");
    assert_eq!(scene.run(21).len(), 1);
}

#[test]
fn another_controller_finds_the_same_key_whenever_it_begins() {
    let mut one = Scene::new();
    one.turn("n1", "False");
    let first = one.run(60);
    let mut other = Scene::with(one.nodes.clone(), vec![policy("workers")]);
    let second = other.run(60);
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_eq!(first[0].key, second[0].key);
    assert_eq!(first[0].reason, second[0].reason, "the key is bound to the reason too");
}

#[test]
fn who_takes_over_goes_on_with_the_key_that_is_noted() {
    let mut scene = Scene::new();
    scene.turn("n1", "False");
    let first = scene.run(60).remove(0);
    // What kubelet said turned into what is not known, which is another turn.
    scene.turn("n1", "Unknown");
    scene.note("n1", Phase::Fencing, &first.key);
    scene.decider.lead(false);
    assert_eq!(scene.run(40), [], "another one leads");
    scene.decider.lead(true);
    assert_eq!(scene.run(60).remove(0).key, first.key);
}

#[test]
fn only_what_may_have_to_be_asked_for_is_looked_at_often() {
    let mut scene = Scene::new();
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(10), []);
    assert_eq!(scene.suspects(), ["n1"]);
    let first = scene.run(30).remove(0);
    assert!(scene.suspects().is_empty(), "it is asked for");
    scene.decider.ended("n1", &first.key, &RequestOutcome::Off, scene.now);
    assert!(scene.suspects().is_empty(), "it is off");
    // Who stands by leaves it to the leader, whose note it reads.
    scene.note("n1", Phase::Fenced, &first.key);
    scene.decider.lead(false);
    assert_eq!(scene.run(2), []);
    assert!(scene.suspects().is_empty());
    scene.decider.lead(true);
    assert_eq!(scene.suspects(), ["n1"]);
}

#[test]
fn while_nobody_looks_nothing_counts() {
    let mut scene = Scene::new();
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(16), []);
    scene.now += S * 60;
    assert_eq!(scene.decider.judge(scene.now).verdicts["n1"], Verdict::Leave(SkipReason::Unseen));
    assert_eq!(scene.run(19), [], "it begins from zero");
    assert_eq!(scene.run(20).len(), 1);
}

#[test]
fn flapping_is_left_alone_for_its_quiet_time() {
    let mut scene = Scene::new();
    for _ in 0..5 {
        scene.turn("n1", "Unknown");
        assert_eq!(scene.run(16), []);
        scene.turn("n1", "True");
        assert_eq!(scene.run(10), []);
    }
    scene.turn("n1", "Unknown");
    // 60 s since it turned Ready, 10 of which have passed.
    assert_eq!(scene.run(46), []);
    assert!(matches!(scene.verdict("n1"), Verdict::Leave(SkipReason::Quiet(_))));
    assert_eq!(scene.run(10).len(), 1);
}

#[test]
fn what_is_blocked_is_asked_again_later_and_later_with_the_same_key() {
    let mut scene = Scene::new();
    scene.turn("n1", "Unknown");
    let first = scene.run(30).remove(0);
    let mut pauses = Vec::new();
    for _ in 0..4 {
        assert!(scene.decider.ended("n1", &first.key, &RequestOutcome::Blocked(None), scene.now));
        let from = scene.now;
        let again = loop {
            if let Some(order) = scene.run(1).pop() {
                break order;
            }
        };
        assert_eq!(again.key, first.key);
        pauses.push((scene.now - from).as_secs());
    }
    assert!(pauses.windows(2).all(|two| two[1] >= two[0] * 2 - 2), "{pauses:?}");
}

#[test]
fn a_pause_that_a_person_ends_early_keeps_nobody_waiting_to_its_end() {
    let mut scene = Scene::new();
    scene.turn("n1", "Unknown");
    let first = scene.run(30).remove(0);
    for (told, asked) in [(S * 120, 120), (S * 8 * 3_600, 300)] {
        assert!(scene.decider.ended("n1", &first.key, &RequestOutcome::Blocked(Some(told)), scene.now));
        assert_eq!(scene.run(asked - 5), [], "the gateway said when it is worth asking");
        let again: Vec<String> = scene.run(10).into_iter().map(|order| order.key).collect();
        assert_eq!(again, [first.key.as_str()], "told to wait {told:?}");
    }
}

#[test]
fn what_recovered_while_it_was_blocked_is_not_asked_for() {
    let mut scene = Scene::new();
    scene.turn("n1", "Unknown");
    let first = scene.run(30).remove(0);
    scene.decider.ended("n1", &first.key, &RequestOutcome::Blocked(None), scene.now);
    scene.turn("n1", "True");
    assert_eq!(scene.run(300), []);
    assert_eq!(scene.verdict("n1"), Verdict::Leave(SkipReason::Healthy));
}

#[test]
fn a_person_s_matter_is_not_asked_again_until_the_node_was_healthy() {
    let mut scene = Scene::new();
    scene.turn("n1", "Unknown");
    let first = scene.run(30).remove(0);
    scene.decider.ended("n1", &first.key, &RequestOutcome::Person, scene.now);
    assert_eq!(scene.run(3_000), []);
    scene.turn("n1", "True");
    scene.run(100);
    scene.turn("n1", "Unknown");
    let second = scene.run(60).remove(0);
    assert_ne!(second.key, first.key, "that is another failure");
}

#[test]
fn one_that_stays_off_is_left_alone_until_somebody_brings_it_back() {
    let mut scene = Scene::new();
    scene.turn("n1", "Unknown");
    let first = scene.run(30).remove(0);
    scene.decider.ended("n1", &first.key, &RequestOutcome::Off, scene.now);
    assert_eq!(scene.run(5_000), []);
    assert_eq!(scene.verdict("n1"), Verdict::Follow(Stage::Kept));
    scene.boot("n1", "False");
    assert_eq!(scene.run(800), [], "it boots");
    scene.turn("n1", "True");
    assert_eq!(scene.run(10), []);
    assert_eq!(scene.verdict("n1"), Verdict::Leave(SkipReason::Healthy));
}

#[test]
fn a_reboot_of_its_own_begins_the_time_again() {
    let mut scene = Scene::new();
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(16), []);
    scene.boot("n1", "False");
    assert_eq!(scene.run(16), []);
    scene.turn("n1", "True");
    assert_eq!(scene.run(300), []);
}

#[test]
fn another_node_under_the_name_is_judged_by_itself() {
    let mut scene = Scene::new();
    scene.turn("n1", "Unknown");
    let first = scene.run(30).remove(0);
    let mut new = worker("n1", "a");
    new.uid = "another".to_owned();
    scene.nodes.insert("n1".to_owned(), new);
    assert_eq!(scene.run(1), []);
    assert!(
        !scene.decider.ended("n1", &first.key, &RequestOutcome::Off, scene.now),
        "that was the other one's"
    );
    scene.turn("n1", "Unknown");
    assert_ne!(scene.run(30).remove(0).key, first.key);
}

#[test]
fn leases_that_stand_still_in_most_of_a_zone_hold_it() {
    let mut scene = Scene::new();
    for name in ["n1", "n2", "n3"] {
        scene.silent.insert(name.to_owned());
    }
    scene.turn("n1", "Unknown");
    assert_eq!(scene.run(120), []);
    assert!(
        matches!(scene.verdict("n1"), Verdict::Leave(SkipReason::Braked(_))),
        "{:?}",
        scene.verdict("n1")
    );
    assert_eq!(scene.report("workers").holding.expect("it is told").reason, "Braked");
    scene.silent.clear();
    scene.silent.insert("n1".to_owned());
    assert_eq!(scene.run(30).len(), 1);
}
