//! Many nodes: what is wrong with one does not delay the others.

use picket_core::ids::NodeId;
use picket_core::outcome::Outcome;
use picket_driver_sim::Fault;
use picket_engine::Until;
use tokio::time::Instant;

use crate::lab::{Lab, s};
use crate::setup::{NodeSetup, Setup, named};

const NODES: usize = 200;

#[tokio::test(start_paused = true)]
async fn dead_bmcs_are_not_noticed_by_the_others() {
    fenced_beside_dead_ones(130, 512).await;
}

/// As many as there are dead ones: if these kept their turns, nobody else would ever have one.
#[tokio::test(start_paused = true)]
async fn dead_bmcs_do_not_keep_the_turns_in_which_the_others_are_logged_in_to() {
    fenced_beside_dead_ones(131, NODES / 50).await;
}

/// All are fenced at once, so many of them logged in to side by side.
async fn fenced_beside_dead_ones(seed: u64, logins: usize) {
    let name = |index: usize| if index == 0 { "n1".to_owned() } else { format!("m{index}") };
    let mut setup = Setup::new("n1", &[&["bmc0"]]);
    setup.nodes.extend((1..NODES).map(|index| NodeSetup {
        name: name(index),
        levels: named(&[&[format!("bmc{index}").as_str()]]),
        own_host: false,
    }));
    setup.logins = logins;
    let mut lab = Lab::set_up(seed, setup, |world| {
        for index in 0..NODES {
            world.add_machine(&name(index)).add_host(&name(index), &format!("bmc{index}"));
        }
        for dead in (0..NODES).step_by(50) {
            world.fault(&format!("bmc{dead}"), Fault::Silent);
        }
    })
    .await;
    let began = Instant::now();
    let mut fences = Vec::new();
    for index in 0..NODES {
        let node = NodeId::new(&name(index)).expect("a good name");
        let call = lab.call();
        let id = lab.engine.fence(&node, call).await.expect("let in").fence();
        fences.push((index, node, id));
    }
    for (index, node, id) in fences.iter().filter(|(index, ..)| index % 50 != 0) {
        let mut view = lab.engine.follow(node).expect("known");
        let outcome = loop {
            view.changed().await.expect("the engine lives");
            let now = view.borrow_and_update().clone();
            if let (_, Some(outcome)) =
                lab.engine.outcome(&now, *id, Until::Released, None).await.expect("a store")
            {
                break outcome;
            }
        };
        assert_eq!(outcome, Outcome::Fenced { released: true }, "{index}");
    }
    assert!(began.elapsed() < s(6), "{:?}", began.elapsed());
    lab.reach("needs_operator", s(700)).await;
}
