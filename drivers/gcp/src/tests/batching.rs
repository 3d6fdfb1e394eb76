//! Many at once: one question for all who come together, and none kept from its answer by another.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, PowerDriver};

use super::compute::Fault;
use super::{Scene, id};

fn asked(scene: &Scene) -> (usize, usize, usize) {
    let count = |method| scene.compute.heard(method).len();
    (count("instances.list"), count("instances.get"), count("zoneOperations.list"))
}

#[tokio::test]
async fn a_hundred_instances_are_read_by_one_question_and_a_thousand_by_ten() {
    for (many, lists) in [(100, 1), (1_000, 10)] {
        let scene = Scene::new(many).await;
        let drivers: Vec<Arc<dyn PowerDriver>> = (0..many).map(|number| scene.driver(number)).collect();
        let orders = scene.orders(&drivers[0]).await;
        let call = scene.call_of(&orders, Duration::from_secs(60));
        scene
            .compute
            .with(|world| world.machines.values_mut().for_each(|machine| machine.status = "TERMINATED"));
        drivers[0].read_power(&call).await.expect("read");
        let before = asked(&scene);
        let readings = join_all(drivers.iter().map(|driver| driver.read_power(&call))).await;
        let off = |reading: &Result<picket_core::power::Reading, _>| {
            reading.as_ref().is_ok_and(|one| one.power == Power::Off)
        };
        assert!(readings.iter().all(off), "{:?}", readings.iter().find(|reading| !off(reading)));
        let after = asked(&scene);
        // What is stopped is looked at once more, after what is under way.
        assert_eq!((after.0 - before.0, after.1), (2 * lists, before.1));
        assert!(after.2 - before.2 <= 3, "what is under way is asked for together too: {after:?}");
    }
}

#[tokio::test]
async fn all_pages_of_a_list_are_read() {
    let scene = Scene::new(25).await;
    scene.compute.with(|world| world.page = 10);
    let drivers: Vec<_> = (0..25).map(|number| scene.driver(number)).collect();
    let orders = scene.orders(&drivers[0]).await;
    let call = scene.call(&orders);
    let readings = join_all(drivers.iter().map(|driver| driver.read_power(&call))).await;
    assert!(readings.iter().all(|reading| reading.as_ref().is_ok_and(|one| one.power == Power::On)));
    let lists = scene.compute.heard("instances.list");
    assert_eq!(lists.len(), 3);
    assert_eq!(lists[2].query.get("pageToken").map(String::as_str), Some("20"));
}

#[tokio::test]
async fn one_that_is_not_there_keeps_none_of_the_others_from_its_answer() {
    let scene = Scene::new(9).await;
    let drivers: Vec<_> = (0..10).map(|number| scene.driver(number)).collect();
    let orders = scene.orders(&drivers[0]).await;
    let call = scene.call(&orders);
    let mut readings = join_all(drivers.iter().map(|driver| driver.read_power(&call))).await;
    let missing = readings.pop().expect("the last one").expect("an answer");
    assert_eq!(missing.power, Power::Unknown);
    assert!(missing.said.contains("was not found"), "its own words: {missing:?}");
    assert!(readings.iter().all(|reading| reading.as_ref().is_ok_and(|one| one.power == Power::On)));
}

#[tokio::test]
async fn what_limits_refuse_is_asked_again_and_what_a_list_is_refused_each_is_asked_alone() {
    let scene = Scene::new(5).await;
    let drivers: Vec<_> = (0..5).map(|number| scene.driver(number)).collect();
    let orders = scene.orders(&drivers[0]).await;
    let call = scene.call(&orders);
    scene.compute.fail("instances.list", Fault::Refuse(429, "", "Too many requests"));
    let readings = join_all(drivers.iter().map(|driver| driver.read_power(&call))).await;
    assert!(readings.iter().all(Result::is_ok), "{readings:?}");
    assert_eq!(scene.compute.heard("instances.list").len(), 2);
    let words = "Required 'compute.instances.list' permission for 'projects/p-1'";
    let senseless = r#"{"kind":"compute#diskList"}"#;
    for (fault, lists) in [
        (Fault::Refuse(403, "forbidden", words), 1),
        (Fault::Say(200, "{}"), 1),
        (Fault::Say(200, senseless), 1),
        (Fault::Cut, 1),
        // It may be too long: halves are asked of.
        (Fault::Refuse(400, "invalid", "Invalid value for field 'filter'"), 3),
    ] {
        let before = asked(&scene);
        scene.compute.fail("instances.list", fault.clone());
        let readings = join_all(drivers.iter().map(|driver| driver.read_power(&call))).await;
        assert!(readings.iter().all(Result::is_ok), "{fault:?}: {readings:?}");
        let after = asked(&scene);
        assert_eq!(after.0 - before.0, lists, "{fault:?}");
        assert_eq!(after.1 - before.1, if lists == 1 { 5 } else { 0 }, "{fault:?}");
    }
    // What fails for all of them is not asked again for each.
    let before = asked(&scene);
    scene.compute.fail("instances.list", Fault::Refuse(503, "backendError", "Sorry."));
    for reading in join_all(drivers.iter().map(|driver| driver.read_power(&call))).await {
        let error = reading.expect_err("it fails");
        assert_eq!((error.kind, error.effect), (ErrorKind::Protocol, Effect::DidNotHappen), "{error}");
    }
    assert_eq!((asked(&scene).0 - before.0, asked(&scene).1), (1, before.1));
}

/// One whose shape is not known keeps none of the others from its answer.
#[tokio::test]
async fn one_that_cannot_be_read_is_everybody_else_s_no_matter() {
    let scene = Scene::new(3).await;
    let drivers: Vec<_> = (0..3).map(|number| scene.driver(number)).collect();
    let orders = scene.orders(&drivers[0]).await;
    let call = scene.call(&orders);
    let mixed = r#"{"kind":"compute#instanceList","items":[{"name":"x"},5,
        {"id":"1000000000000000001","name":"vm-1000000000000000001","status":"RUNNING"}]}"#;
    scene.compute.fail("instances.list", Fault::Say(200, mixed));
    let readings = join_all(drivers.iter().map(|driver| driver.read_power(&call))).await;
    assert!(
        readings.iter().all(|reading| reading.as_ref().is_ok_and(|one| one.power == Power::On)),
        "{readings:?}"
    );
    assert_eq!(asked(&scene), (1, 2, 0));
}

#[tokio::test]
async fn two_who_ask_of_one_instance_at_once_are_both_answered() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    let (reading, identity) = tokio::join!(driver.read_power(&call), driver.identify(&call));
    assert_eq!(reading.expect("read").power, Power::On);
    assert_eq!(identity.expect("told").identity.serial, Some(id(0)));
    assert_eq!(asked(&scene), (0, 1, 0));
}
