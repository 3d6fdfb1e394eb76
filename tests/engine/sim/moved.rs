//! A request means the machine that its node had when it came: under the same name the settings may have another one since (S13).

use picket_core::budget::pause::PauseScope;
use picket_core::outcome::Reason;
use picket_core::store::Store;
use picket_engine::EngineError;

use crate::budget::{at_once, setup};
use crate::lab::{Lab, NODE, node, person, s};
use crate::queue::{end, wait};

/// A node whose BMC's address is known, and who waits for it: it is paused.
async fn lab(seed: u64) -> Lab {
    let mut setup = setup(2, at_once(9));
    setup.addresses.insert(NODE.to_owned(), "here".to_owned());
    Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc1");
        world.add_machine("n2").add_host("n2", "bmc2");
    })
    .await
}

async fn paused(lab: &Lab) {
    lab.engine.pause(PauseScope::Node(node()), person(), s(3_600)).await.expect("paused");
}

async fn resumed(lab: &Lab) {
    lab.engine.resume(PauseScope::Node(node()), person()).await.expect("resumed");
    tokio::time::sleep(s(60)).await;
}

async fn is_untouched(lab: &Lab) {
    assert_eq!((lab.phase(), lab.is_on(), lab.received("bmc1").offs), ("normal", true, 0));
    assert_eq!(lab.store.notes("queue/").await.expect("a store"), []);
}

fn is_void(error: &EngineError, how: &str) -> bool {
    matches!(error, EngineError::Blocked { reason: Reason::Expired, detail } if detail.contains(how))
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_is_void_once_the_settings_have_another_machine() {
    let mut lab = lab(2701).await;
    paused(&lab).await;
    let call = lab.call();
    let waits = wait(&lab, &node(), call.clone(), None).await;
    lab.setup.addresses.insert(NODE.to_owned(), "there".to_owned());
    lab.reload().await.expect("it is at rest");
    tokio::time::sleep(s(1)).await;
    let ended = end(&waits).expect("told at once").expect_err("of another machine");
    assert!(is_void(&ended, "was here/bmc1 and is there/bmc1"), "{ended}");
    resumed(&lab).await;
    is_untouched(&lab).await;
    assert!(lab.engine.fence(&node(), call).await.is_ok(), "asked again, it is decided again");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_is_void_once_its_node_left_the_settings() {
    let mut lab = lab(2702).await;
    paused(&lab).await;
    let call = lab.call();
    let waits = wait(&lab, &node(), call, None).await;
    let whole = lab.setup.clone();
    lab.setup.nodes.remove(0);
    lab.reload().await.expect("it is at rest");
    tokio::time::sleep(s(1)).await;
    let ended = end(&waits).expect("told at once").expect_err("of a node that is gone");
    assert!(is_void(&ended, "not in the settings any more"), "{ended}");
    lab.setup = whole;
    lab.reload().await.expect("it is back");
    resumed(&lab).await;
    is_untouched(&lab).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waited_over_a_restart_is_void_where_the_settings_name_another_machine() {
    let mut lab = lab(2703).await;
    paused(&lab).await;
    let call = lab.call();
    drop(wait(&lab, &node(), call, None).await);
    lab.kill().await;
    lab.world.lock().exchange(NODE, "new");
    lab.start().await;
    resumed(&lab).await;
    is_untouched(&lab).await;
}

/// The node's task is busy with another caller: what comes meanwhile is taken by the task with the new settings.
#[tokio::test(start_paused = true)]
async fn a_request_that_came_before_a_reload_does_not_reach_the_new_machine() {
    let mut lab = lab(2704).await;
    let first = lab.call();
    let mut ask = picket_engine::Ask::from(person());
    ask.key.clone_from(&first.key);
    lab.store.reads_take(s(3));
    let busy = tokio::spawn({
        let engine = lab.engine.clone();
        async move { engine.unfence(&node(), "db".to_owned(), ask).await.map(drop) }
    });
    tokio::time::sleep(s(1)).await;
    lab.setup.addresses.insert(NODE.to_owned(), "there".to_owned());
    let change = lab.setup.change(&lab.world);
    let reload = tokio::spawn({
        let engine = lab.engine.clone();
        async move { engine.change(change).await }
    });
    tokio::time::sleep(s(1)).await;
    let call = lab.call();
    let refused = lab.engine.fence(&node(), call).await.expect_err("of another machine");
    assert!(is_void(&refused, "was here/bmc1 and is there/bmc1"), "{refused}");
    reload.await.expect("ended").expect("it is at rest");
    assert!(busy.await.expect("ended").is_err(), "the node was not fenced");
    lab.store.reads_take(Default::default());
    tokio::time::sleep(s(60)).await;
    is_untouched(&lab).await;
}
