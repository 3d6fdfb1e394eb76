//! What names a command, and what that tells of one whose answer was lost; what is under way at an instance.

use std::time::Duration;

use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind};
use serde_json::json;
use tokio::time::timeout;

use super::compute::{Fault, Op};
use super::{Scene, id};

fn requests(scene: &Scene) -> Vec<String> {
    scene.compute.heard("instances.stop").into_iter().map(|heard| heard.query["requestId"].clone()).collect()
}

fn somebody_s(kind: &str, of: usize) -> Op {
    Op {
        name: format!("theirs-{kind}"),
        kind: kind.to_owned(),
        target: id(of),
        request: String::new(),
        inserted: 2_000_000_000,
        done: false,
        error: None,
    }
}

#[tokio::test]
async fn an_order_that_is_sent_again_is_the_same_request_until_it_was_taken() {
    let (scene, driver, orders) = Scene::of_one().await;
    let order = orders.off().await.expect("an order");
    scene.compute.fail("instances.stop", Fault::Lose);
    let error = driver.power_off(&order, &scene.call(&orders)).await.expect_err("lost");
    assert_eq!(error.effect, Effect::Unknown, "{error}");
    driver.power_off(&order, &scene.call(&orders)).await.expect("taken");
    // Taken once, all copies of it are over.
    driver.quiesce(&scene.call(&orders)).await.expect("nothing is open");
    // Sent anew on purpose: Compute Engine would do nothing for the old one.
    driver.power_off(&order, &scene.call(&orders)).await.expect("taken");
    driver.power_off(&orders.off().await.expect("an order"), &scene.call(&orders)).await.expect("taken");
    let sent = requests(&scene);
    assert_eq!(
        (sent.len(), &sent[0]),
        (5, &sent[1]),
        "what an earlier copy did is over: another one follows"
    );
    let names: std::collections::BTreeSet<_> = sent.iter().collect();
    assert_eq!(names.len(), 4, "{sent:?}");
    assert_eq!(scene.compute.with(|world| world.operations.len()), 4);
}

/// What was done for a caller who left is over: who started it since is stopped by another request.
#[tokio::test]
async fn a_stop_that_nobody_heard_of_does_not_stand_for_the_next_one() {
    let (scene, driver, orders) = Scene::of_one().await;
    let (order, call) = (orders.off().await.expect("an order"), scene.call(&orders));
    driver.read_power(&call).await.expect("read");
    let came = async {
        while scene.compute.heard("instances.stop").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = came => {}
        off = driver.power_off(&order, &call) => panic!("it was heard only when it was answered: {off:?}"),
    }
    scene.compute.machine(&id(0), |machine| machine.status = "RUNNING");
    driver.power_off(&order, &call).await.expect("taken");
    assert_eq!(scene.compute.status(&id(0)), "TERMINATED");
}

/// Of another process, which had the same order: its operation is of old, and does nothing now.
#[tokio::test]
async fn an_answer_of_old_is_not_taken_for_a_stop_of_ours() {
    let scene = Scene::new(1).await;
    let (before, after) = (scene.driver(0), scene.elsewhere(0));
    let orders = scene.orders(&before).await;
    let order = orders.off().await.expect("an order");
    before.power_off(&order, &scene.call(&orders)).await.expect("taken");
    // Somebody starts it, and minutes later the same order comes.
    scene.compute.machine(&id(0), |machine| machine.status = "RUNNING");
    scene.ahead(300);
    after.power_off(&order, &scene.call(&orders)).await.expect("taken");
    assert_eq!(scene.compute.status(&id(0)), "TERMINATED", "it was really stopped");
    let sent = requests(&scene);
    assert_eq!((sent.len(), &sent[0]), (3, &sent[1]));
    assert_ne!(sent[1], sent[2]);
}

#[tokio::test]
async fn a_command_whose_answer_was_lost_is_over_once_its_operation_is() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    scene.compute.machine(&id(0), |machine| (machine.status, machine.lasts) = ("TERMINATED", true));
    driver.read_power(&call).await.expect("read");
    scene.compute.fail("instances.start", Fault::Lose);
    let error = driver.power_on(orders.on().await.expect("an order"), &call).await.expect_err("lost");
    assert_eq!(error.effect, Effect::Unknown, "{error}");
    let short = || scene.call_of(&orders, Duration::from_millis(900));
    let error = driver.quiesce(&short()).await.expect_err("it is under way");
    assert_eq!((error.kind, error.effect), (ErrorKind::TimedOut, Effect::Unknown), "{error}");
    scene.compute.with(|world| world.operations.iter_mut().for_each(|op| op.done = true));
    driver.quiesce(&short()).await.expect("its operation has ended");
}

/// A start may come to nothing (no machine is free): told again, it is another request.
#[tokio::test]
async fn a_start_that_was_taken_and_is_ordered_anew_is_another_request() {
    let scene = Scene::new(1).await;
    let (driver, other) = (scene.driver(0), scene.elsewhere(0));
    let orders = scene.orders(&driver).await;
    scene.compute.machine(&id(0), |machine| machine.status = "TERMINATED");
    let call = scene.call(&orders);
    driver.read_power(&call).await.expect("read");
    driver.power_on(orders.on().await.expect("an order"), &call).await.expect("taken");
    scene.compute.machine(&id(0), |machine| machine.status = "TERMINATED");
    driver.power_on(orders.on().await.expect("an order"), &call).await.expect("taken");
    let sent = scene.compute.heard("instances.start");
    assert_ne!(sent[0].query["requestId"], sent[1].query["requestId"]);
    assert_eq!(scene.compute.status(&id(0)), "RUNNING");
    // Of another process, minutes later: the answer of old is none.
    scene.ahead(300);
    other.read_power(&scene.call(&orders)).await.expect("read");
    let old =
        other.power_on(orders.on().await.expect("an order"), &scene.call(&orders)).await.expect_err("of old");
    assert_eq!((old.kind, old.effect), (ErrorKind::Throttled, Effect::DidNotHappen), "{old}");
    other.power_on(orders.on().await.expect("an order"), &scene.call(&orders)).await.expect_err("of old too");
    other.power_on(orders.on().await.expect("an order"), &scene.call(&orders)).await.expect("a new one");
}

/// A reload may make the device anew: what the one before sent is on its way all the same.
#[tokio::test]
async fn a_device_that_is_made_anew_knows_what_was_sent_before() {
    let scene = Scene::new(1).await;
    let before = scene.driver(0);
    let orders = scene.orders(&before).await;
    scene.compute.fail("instances.stop", Fault::Drop);
    let order = orders.off().await.expect("an order");
    before.power_off(&order, &scene.call(&orders)).await.expect_err("lost");
    drop(before);
    let after = scene.driver_with(0, json!({ "discard_local_ssd": true }));
    let short = || scene.call_of(&orders, Duration::from_millis(900));
    let error = after.quiesce(&short()).await.expect_err("it may come");
    assert!(error.detail.contains("while its token lives"), "{error}");
    after.power_off(&order, &scene.call(&orders)).await.expect("taken");
    after.quiesce(&short()).await.expect("the same request was taken");
    let sent = requests(&scene);
    assert_eq!((sent.len(), &sent[0]), (3, &sent[1]), "the same request, and one that is surely of now");
    assert_ne!(sent[1], sent[2]);
}

/// What never came may come as long as its token lives.
#[tokio::test]
async fn a_command_that_was_lost_on_its_way_is_waited_out() {
    let (scene, driver, orders) = Scene::of_one().await;
    scene.compute.fail("instances.stop", Fault::Drop);
    let order = orders.off().await.expect("an order");
    driver.power_off(&order, &scene.call(&orders)).await.expect_err("lost");
    let short = || scene.call_of(&orders, Duration::from_millis(900));
    let error = driver.quiesce(&short()).await.expect_err("it may come");
    assert!(error.detail.contains("while its token lives"), "{error}");
    scene.ahead(3_631);
    driver.quiesce(&short()).await.expect("nobody takes it any more");
}

#[tokio::test]
async fn only_terminated_with_nothing_under_way_that_may_start_it_is_off() {
    let (scene, driver, orders) = Scene::of_one().await;
    for (status, theirs, power) in [
        ("RUNNING", None, Power::On),
        ("TERMINATED", None, Power::Off),
        ("TERMINATED", Some("start"), Power::Unknown),
        ("TERMINATED", Some("a word of tomorrow"), Power::Unknown),
        ("TERMINATED", Some("stop"), Power::Off),
        ("TERMINATED", Some("detachDisk"), Power::Off),
        ("STOPPING", Some("stop"), Power::Unknown),
        ("SUSPENDED", None, Power::Unknown),
        ("REPAIRING", None, Power::Unknown),
        ("FROBNICATING", None, Power::Unknown),
    ] {
        scene.compute.machine(&id(0), |machine| machine.status = status);
        scene
            .compute
            .with(|world| world.operations = theirs.map(|kind| somebody_s(kind, 0)).into_iter().collect());
        let reading = driver.read_power(&scene.call(&orders)).await.expect("read");
        assert_eq!(reading.power, power, "{status} {theirs:?}: {reading:?}");
        // The reading names both to a person who waits for an off in vain.
        let names = theirs.is_none_or(|kind| reading.said.contains(&format!("under way: {kind}")));
        assert!(reading.said.contains(status) && (power == Power::Off || names), "{reading:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_at_the_instance_is_waited_for_and_then_it_is_told() {
    let (scene, driver, orders) = Scene::of_one().await;
    let order = orders.off().await.expect("an order");
    scene.compute.with(|world| world.operations.push(somebody_s("reset", 0)));
    let error = driver.power_off(&order, &scene.call(&orders)).await.expect_err("it lasts");
    assert_eq!((error.kind, error.effect), (ErrorKind::Throttled, Effect::DidNotHappen), "{error}");
    assert!(error.detail.contains("reset theirs-reset"), "{error}");
    let call = scene.call(&orders);
    let ends = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        scene.compute.with(|world| world.operations[0].done = true);
    };
    let (off, ()) = tokio::join!(driver.power_off(&order, &call), ends);
    assert!(!off.expect("taken once it has ended").already);
    assert_eq!(scene.compute.status(&id(0)), "TERMINATED");
    let sent = requests(&scene);
    assert!(sent.iter().all(|request| *request == sent[0]), "all of it one request: {sent:?}");
}

#[tokio::test]
async fn a_stop_that_came_to_nothing_is_told_and_sent_again() {
    let (scene, driver, orders) = Scene::of_one().await;
    let (order, call) = (orders.off().await.expect("an order"), scene.call(&orders));
    scene.compute.machine(&id(0), |machine| machine.lasts = true);
    driver.power_off(&order, &call).await.expect("taken");
    assert_eq!(driver.read_power(&call).await.expect("read").power, Power::Unknown);
    assert_eq!(driver.off_again(Power::Unknown), None, "it is on its way");
    scene
        .compute
        .with(|world| (world.operations[0].done, world.operations[0].error) = (true, Some("INTERNAL_ERROR")));
    scene.compute.machine(&id(0), |machine| machine.status = "RUNNING");
    assert_eq!(driver.read_power(&call).await.expect("read").power, Power::On);
    let reading = driver.read_power(&call).await.expect("read");
    assert_eq!(reading.power, Power::On);
    assert!(reading.said.contains("our stop came to nothing: INTERNAL_ERROR"), "{reading:?}");
    assert_eq!(driver.off_again(Power::On), None, "it may have been asked for before that");
    driver.read_power(&call).await.expect("read");
    assert!(driver.off_again(Power::On).is_some());
    assert_eq!(driver.off_again(Power::Off), None);
}

/// What was sent for a caller who left is heard all the same, so that nothing of it is waited out.
#[tokio::test]
async fn an_answer_is_heard_also_where_its_caller_has_left() {
    let (scene, driver, orders) = Scene::of_one().await;
    let (order, call) = (orders.off().await.expect("an order"), scene.call(&orders));
    driver.read_power(&call).await.expect("read");
    let came = async {
        while scene.compute.heard("instances.stop").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = came => {}
        off = driver.power_off(&order, &call) => panic!("it was heard only when it was answered: {off:?}"),
    }
    let over = async {
        while driver.quiesce(&scene.call_of(&orders, Duration::from_millis(100))).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), over).await.expect("nothing is open");
}
