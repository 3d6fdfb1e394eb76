//! Commands that are sent anew because they came to nothing, and an off that counts once our own stop has done what it was for.

use std::time::Duration;

use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind};
use tokio::time::Instant;

use super::compute::Fault;
use super::{Scene, id};

fn requests(scene: &Scene, method: &str) -> Vec<String> {
    scene.compute.heard(method).into_iter().map(|heard| heard.query["requestId"].clone()).collect()
}

/// Of the old request Compute Engine would say that it was taken, and do nothing.
#[tokio::test]
async fn a_start_that_came_to_nothing_is_told_and_sent_anew() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    scene.compute.machine(&id(0), |machine| (machine.status, machine.lasts) = ("TERMINATED", true));
    driver.read_power(&call).await.expect("read");
    // Its answer is lost, so that it is sent again as the same.
    scene.compute.fail("instances.start", Fault::Lose);
    driver.power_on(orders.on().await.expect("an order"), &call).await.expect_err("lost");
    driver.power_on(orders.on().await.expect("an order"), &call).await.expect("taken");
    scene
        .compute
        .with(|world| (world.operations[0].done, world.operations[0].error) = (true, Some("NO_ROOM")));
    scene.compute.machine(&id(0), |machine| (machine.status, machine.lasts) = ("TERMINATED", false));
    let reading = driver.read_power(&call).await.expect("read");
    assert!(reading.said.contains("our start came to nothing: NO_ROOM"), "{reading:?}");
    driver.power_on(orders.on().await.expect("an order"), &call).await.expect("taken");
    assert_eq!(scene.compute.status(&id(0)), "RUNNING", "it was really started");
    let sent = requests(&scene, "instances.start");
    assert_eq!((sent.len(), &sent[0]), (3, &sent[1]));
    assert_ne!(sent[1], sent[2]);
    let reading = driver.read_power(&call).await.expect("read");
    assert_eq!((reading.power, reading.said.as_str()), (Power::On, "RUNNING"));
}

#[tokio::test]
async fn what_ended_with_an_error_when_it_was_answered_was_not_taken() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    const FAILED: &str = r#"{"name":"o","status":"DONE","insertTime":"2033-05-18T03:33:20Z","error":{"errors":[{"code":"NO_ROOM"}]}}"#;
    for method in ["instances.stop", "instances.start"] {
        driver.read_power(&call).await.expect("read");
        let mut told = Vec::new();
        for _ in 0..2 {
            scene.compute.fail(method, Fault::Say(200, FAILED));
            told.push(match method {
                "instances.stop" => {
                    driver.power_off(&orders.off().await.expect("an order"), &call).await.expect_err("failed")
                }
                _ => driver.power_on(orders.on().await.expect("an order"), &call).await.expect_err("failed"),
            });
        }
        for error in told {
            assert_eq!(
                (error.kind, error.effect),
                (ErrorKind::Refused, Effect::Unknown),
                "{method}: {error}"
            );
            assert!(error.detail.contains("came to nothing: NO_ROOM"), "{error}");
        }
        let sent = requests(&scene, method);
        assert_ne!(sent[0], sent[1], "{method}");
    }
    assert_eq!(scene.compute.status(&id(0)), "RUNNING");
}

#[tokio::test]
async fn an_answer_that_does_not_say_how_old_it_is_is_told_and_nothing_more_is_sent() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    scene.compute.fail("instances.stop", Fault::Say(200, r#"{"name":"o","status":"RUNNING"}"#));
    let order = orders.off().await.expect("an order");
    let error = driver.power_off(&order, &call).await.expect_err("of whenever");
    assert_eq!((error.kind, error.effect), (ErrorKind::Protocol, Effect::Unknown), "{error}");
    assert!(error.detail.contains("without an insertTime"), "{error}");
    assert_eq!(requests(&scene, "instances.stop").len(), 1);
}

/// S2: that it is stopped may be its own doing. Ours counts once it is done.
#[tokio::test]
async fn off_is_told_once_our_own_stop_has_done_what_it_was_for() {
    let (scene, driver, orders) = Scene::of_one().await;
    let (order, call) = (orders.off().await.expect("an order"), scene.call(&orders));
    scene.compute.machine(&id(0), |machine| machine.lasts = true);
    driver.power_off(&order, &call).await.expect("taken");
    // Its guest shuts down by itself.
    scene.compute.machine(&id(0), |machine| machine.status = "TERMINATED");
    let reading = driver.read_power(&call).await.expect("read");
    assert_eq!(reading.power, Power::Unknown, "{reading:?}");
    assert!(reading.said.contains("our stop operation-0 is not known to have ended"), "{reading:?}");
    scene
        .compute
        .with(|world| (world.operations[0].done, world.operations[0].error) = (true, Some("INTERNAL_ERROR")));
    let reading = driver.read_power(&call).await.expect("read");
    assert_eq!(reading.power, Power::Unknown, "{reading:?}");
    assert!(reading.said.contains("our stop came to nothing: INTERNAL_ERROR"), "{reading:?}");
    driver.read_power(&call).await.expect("read");
    assert!(driver.off_again(reading.power).is_some());
    scene.compute.machine(&id(0), |machine| machine.lasts = false);
    driver.power_off(&order, &call).await.expect("taken");
    let reading = driver.read_power(&call).await.expect("read");
    assert_eq!(reading.power, Power::Off, "{reading:?}");
    let sent = requests(&scene, "instances.stop");
    assert_ne!(sent[0], sent[1]);
}

/// What begins and ends between two questions neither of them sees.
#[tokio::test]
async fn off_is_told_where_it_is_stopped_still_once_nothing_was_under_way() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    scene.compute.machine(&id(0), |machine| machine.status = "TERMINATED");
    let started = |world: &mut super::compute::World| {
        world.machines.values_mut().for_each(|machine| machine.status = "RUNNING");
    };
    scene.compute.fail("zoneOperations.list", Fault::Then(started));
    let reading = driver.read_power(&call).await.expect("read");
    assert_eq!(reading.power, Power::Unknown, "{reading:?}");
    assert!(reading.said.contains("TERMINATED, and then RUNNING"), "{reading:?}");
    scene.compute.machine(&id(0), |machine| machine.status = "TERMINATED");
    let reading = driver.read_power(&call).await.expect("read");
    assert_eq!(reading.power, Power::Off, "{reading:?}");
    assert!(reading.answered_at > reading.asked_at);
}

/// The quota for reads is another one: who used that up keeps no off back.
#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_no_question_that_limits_refuse_or_that_is_forbidden() {
    for (status, reason) in
        [(403, "rateLimitExceeded"), (429, ""), (403, "forbidden"), (500, "internalError")]
    {
        let (scene, driver, orders) = Scene::of_one().await;
        for _ in 0..50 {
            scene.compute.fail("instances.get", Fault::Refuse(status, reason, "No."));
        }
        let began = Instant::now();
        let order = orders.off().await.expect("an order");
        let taken = driver.power_off(&order, &scene.call(&orders)).await;
        assert!(taken.as_ref().is_ok_and(|taken| taken.already), "{status} {reason}: {taken:?}");
        assert!(began.elapsed() <= Duration::from_secs(4), "{status} {reason}: {:?}", began.elapsed());
        assert_eq!(scene.compute.status(&id(0)), "TERMINATED");
    }
}

/// A list may be late: of what was taken the name is known.
#[tokio::test]
async fn what_was_taken_is_over_once_its_own_operation_says_so() {
    let (scene, driver, orders) = Scene::of_one().await;
    scene.compute.machine(&id(0), |machine| machine.lasts = true);
    let order = orders.off().await.expect("an order");
    driver.power_off(&order, &scene.call(&orders)).await.expect("taken");
    scene.compute.fail("zoneOperations.list", Fault::Say(200, r#"{"kind":"compute#operationList"}"#));
    let short = || scene.call_of(&orders, Duration::from_millis(900));
    let error = driver.quiesce(&short()).await.expect_err("it is under way");
    assert_eq!((error.kind, error.effect), (ErrorKind::TimedOut, Effect::Unknown), "{error}");
    assert!(error.detail.contains("our operation-0 is not known to have ended"), "{error}");
    scene.compute.with(|world| world.operations[0].done = true);
    driver.quiesce(&short()).await.expect("it has ended");
}
