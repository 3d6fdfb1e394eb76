//! More Nodes fail than can be looked at in one round.

use std::collections::BTreeMap;

use super::super::*;
use super::scene::{Scene, member, policy, worker};
use crate::watch::SUSPECTS;

/// Two zones of twice as many Nodes as a round has room for.
fn crowd() -> Scene {
    let named = |zone: &'static str| (0..SUSPECTS * 2).map(move |n| worker(&format!("{zone}{n:03}"), zone));
    let mut nodes: BTreeMap<String, Node> =
        named("a").chain(named("b")).map(|node| (node.name.clone(), node)).collect();
    nodes.insert("m1".to_owned(), member("m1"));
    Scene::with(nodes, vec![policy("workers")])
}

fn names(zone: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{zone}{n:03}")).collect()
}

#[test]
fn a_zone_that_is_held_takes_nobody_else_s_turn_to_be_looked_at() {
    let mut scene = crowd();
    for name in names("a", SUSPECTS * 2) {
        scene.turn(&name, "Unknown");
        scene.silent.insert(name);
    }
    assert_eq!(scene.run(60), [], "the brake holds");
    scene.turn("b007", "Unknown");
    assert_eq!(scene.run(1), []);
    let suspects = scene.suspects();
    assert_eq!((suspects.len(), suspects[0].as_str()), (SUSPECTS * 2 + 1, "b007"));
}

#[test]
fn what_is_blocked_takes_nobody_else_s_turn_to_be_looked_at() {
    let mut scene = crowd();
    names("a", SUSPECTS + 1).iter().for_each(|name| scene.turn(name, "False"));
    let orders = scene.run(60);
    assert_eq!(orders.len(), SUSPECTS + 1);
    for order in orders {
        let least = Some(std::time::Duration::from_secs(3_600));
        assert!(scene.decider.ended(
            &order.node.name,
            &order.key,
            &RequestOutcome::Blocked(least),
            scene.now
        ));
    }
    scene.turn("b007", "False");
    assert_eq!(scene.run(1), []);
    assert_eq!(scene.suspects()[0], "b007");
    assert_eq!(scene.run(30).len(), 1);
}

/// Also while somebody else holds them off, or no gateway says how they are: for hours.
#[test]
fn nodes_that_are_brought_back_take_nobody_else_s_turn_to_be_looked_at() {
    let mut scene = crowd();
    scene.policies(vec![Policy { then: AfterFence::PowerOn, ..policy("workers") }]);
    names("a", SUSPECTS + 1).iter().for_each(|name| scene.turn(name, "False"));
    for order in scene.run(60) {
        assert!(scene.decider.ended(&order.node.name, &order.key, &RequestOutcome::Off, scene.now));
    }
    scene.turn("b007", "False");
    assert_eq!(scene.run(1), []);
    let suspects = scene.suspects();
    assert_eq!((suspects.len(), suspects[0].as_str()), (SUSPECTS + 2, "b007"));
}

/// S14: whoever may register Nodes has none of them fenced, and keeps nobody else from being looked at.
#[test]
fn nodes_that_fail_and_recover_in_turn_take_nobody_else_s_turn_to_be_looked_at() {
    let mut scene = crowd();
    scene.watch(10);
    let theirs: Vec<String> = names("a", SUSPECTS * 2).into_iter().chain(names("b", SUSPECTS)).collect();
    let mut asked = Vec::new();
    for second in 0..100 {
        // Half of them are ill, each for less than its policy wants: no brake holds.
        for (place, name) in theirs.iter().enumerate() {
            match (second + place) % 36 {
                0 => scene.turn(name, "False"),
                18 => scene.turn(name, "True"),
                _ => {}
            }
        }
        if second == 40 {
            scene.turn("b200", "False");
        }
        asked.extend(scene.watch(1).into_iter().map(|name| (name, second)));
    }
    assert!(matches!(&*asked, [(name, second)] if name == "b200" && *second < 90), "{asked:?}");
}

/// S14: the same of those that nobody could ever ask for.
#[test]
fn nodes_that_are_kept_from_being_asked_for_take_nobody_else_s_turn() {
    let mut scene = crowd();
    scene.decider.select = Select::SystemUuid;
    for name in names("a", SUSPECTS + 10) {
        scene.node(&name).system_uuid = "4b554245-2d4e-4f44-452d-303030303031".to_owned();
        scene.turn(&name, "False");
    }
    assert_eq!(scene.watch(40), [""; 0], "they claim one identity");
    scene.turn("b007", "False");
    assert_eq!(scene.watch(30), ["b007"]);
}
