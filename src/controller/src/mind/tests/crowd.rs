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
    let suspects = scene.mind.suspects();
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
        assert!(scene.mind.ended(&order.node.name, &order.key, &End::Blocked(least), scene.now));
    }
    scene.turn("b007", "False");
    assert_eq!(scene.run(1), []);
    assert_eq!(scene.mind.suspects()[0], "b007");
    assert_eq!(scene.run(30).len(), 1);
}
