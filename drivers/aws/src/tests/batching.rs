//! Many at once: one request for all who come together, and none kept from its answer by another.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use picket_core::power::Power;
use picket_driver::{Accepted, DriverError, Effect, ErrorKind, PowerDriver};
use tokio::time::timeout;

use super::ec2::Fault;
use super::{Scene, id};

async fn all_off(scene: &Scene, drivers: &[Arc<dyn PowerDriver>]) -> Vec<Result<Accepted, DriverError>> {
    let orders = scene.orders(&drivers[0]).await;
    let order = orders.off().await.expect("an order");
    let call = scene.call_of(&orders, Duration::from_secs(60));
    let (order, call) = (&order, &call);
    // All at once each time, however slow this machine is.
    let read = join_all(drivers.iter().map(|driver| driver.read_power(call))).await;
    let off = |(driver, read): (&Arc<dyn PowerDriver>, Result<_, DriverError>)| {
        let driver = driver.clone();
        async move {
            match read {
                Ok(_) => driver.power_off(order, call).await,
                Err(error) => Err(error),
            }
        }
    };
    join_all(drivers.iter().zip(read).map(off)).await
}

#[tokio::test]
async fn a_thousand_instances_are_stopped_by_three_requests_at_most_and_read_by_one() {
    let scene = Scene::new(1_000).await;
    let drivers: Vec<_> = (0..1_000).map(|number| scene.driver(number)).collect();
    let done = all_off(&scene, &drivers).await;
    assert!(done.iter().all(Result::is_ok), "{:?}", done.iter().find(|done| done.is_err()));
    assert!(scene.ec2.heard("StopInstances").len() <= 3, "{}", scene.ec2.heard("StopInstances").len());
    let before = scene.ec2.heard("DescribeInstances").len();
    let orders = scene.orders(&drivers[0]).await;
    let call = scene.call_of(&orders, Duration::from_secs(60));
    let readings = join_all(drivers.iter().map(|driver| driver.read_power(&call))).await;
    assert!(readings.iter().all(|reading| reading.as_ref().is_ok_and(|reading| reading.power == Power::Off)));
    assert_eq!(scene.ec2.heard("DescribeInstances").len() - before, 1);
}

#[tokio::test]
async fn one_that_is_not_there_keeps_none_of_the_others_from_its_end() {
    for (mumbles, most) in [(false, 2), (true, 17)] {
        let scene = Scene::new(199).await;
        scene.ec2.with(|world| world.mumbles = mumbles);
        let drivers: Vec<_> = (0..200).map(|number| scene.driver(number)).collect();
        let done = all_off(&scene, &drivers).await;
        let (bad, good) = done.split_last().expect("there are some");
        assert!(good.iter().all(Result::is_ok), "{:?}", good.iter().find(|done| done.is_err()));
        let error = bad.as_ref().expect_err("it is not there");
        assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{error}");
        let sent = scene.ec2.heard("StopInstances").len();
        assert!(sent <= most, "{sent} requests, {mumbles}");
        assert!(scene.ec2.with(|world| world.machines.values().all(|machine| machine.state == "stopped")));
    }
}

/// Instances are paid for once: else the others would wait for a bucket of a thousand to be full again, 50 s.
#[tokio::test]
async fn of_a_thousand_one_that_is_not_there_and_one_that_may_not_be_told_cost_the_others_nothing() {
    let scene = Scene::new(999).await;
    let drivers: Vec<_> = (0..1_000).map(|number| scene.driver(number)).collect();
    let (orders, barred) = (scene.orders(&drivers[0]).await, scene.orders(&drivers[0]).await);
    let order = orders.off().await.expect("an order");
    let (call, of_barred) = (scene.call(&orders), scene.call(&barred));
    join_all(drivers.iter().map(|driver| driver.read_power(&call))).await;
    barred.permit().end();
    let began = std::time::Instant::now();
    let call_of = |number: usize| if number == 500 { &of_barred } else { &call };
    let offs = drivers.iter().enumerate().map(|(number, driver)| driver.power_off(&order, call_of(number)));
    let offs = join_all(offs).await;
    let took = began.elapsed();
    for (number, off) in offs.iter().enumerate() {
        match (number, off) {
            (500, Err(error)) => assert_eq!(error.kind, ErrorKind::NotLeader, "{error}"),
            (999, Err(error)) => assert_eq!(error.kind, ErrorKind::Refused, "{error}"),
            _ => assert!(off.is_ok() && scene.ec2.state(&id(number)) == "stopped", "{number}: {off:?}"),
        }
    }
    let sent = scene.ec2.heard("StopInstances").len();
    assert!(sent <= 3 && took < Duration::from_secs(45), "{sent} requests in {took:?}");
    assert_eq!(scene.ec2.state(&id(500)), "running");
}

/// AWS names one a time of those whom a policy does not reach.
#[tokio::test]
async fn many_whom_a_policy_does_not_reach_keep_the_others_from_nothing_the_second_time() {
    let scene = Scene::new(64).await;
    scene.ec2.with(|world| world.denied = (0..64).step_by(8).map(id).collect());
    let drivers: Vec<_> = (0..64).map(|number| scene.driver(number)).collect();
    for (round, most) in [(1, 40), (2, 9)] {
        let before = scene.ec2.heard("StopInstances").len();
        for (number, off) in all_off(&scene, &drivers).await.iter().enumerate() {
            let is_forbidden = off.as_ref().is_err_and(|error| error.kind == ErrorKind::Forbidden);
            assert_eq!(is_forbidden, number % 8 == 0, "{number}: {off:?}");
            assert!(is_forbidden || off.is_ok(), "{number}: {off:?}");
        }
        let sent = scene.ec2.heard("StopInstances")[before..].to_vec();
        assert!(sent.len() <= most, "round {round}: {} requests", sent.len());
        let named = |heard: &super::ec2::RequestRecord| {
            heard.fields.values().filter(|id| id.starts_with("i-")).count()
        };
        if round == 2 {
            assert!(sent.iter().any(|heard| named(heard) == 56), "all others go together");
        }
    }
}

#[tokio::test]
async fn what_is_refused_by_limits_again_goes_by_halves() {
    let scene = Scene::new(40).await;
    scene.ec2.with(|world| world.most = 20);
    let drivers: Vec<_> = (0..40).map(|number| scene.driver(number)).collect();
    let done = all_off(&scene, &drivers).await;
    assert!(done.iter().all(Result::is_ok), "{:?}", done.iter().find(|done| done.is_err()));
    assert_eq!(scene.ec2.heard("StopInstances").len(), 4, "twice together, then both halves");
}

#[tokio::test]
async fn of_whom_the_answer_is_lost_nothing_is_known_and_nothing_is_repeated() {
    let scene = Scene::new(20).await;
    let drivers: Vec<_> = (0..20).map(|number| scene.driver(number)).collect();
    scene
        .ec2
        .fail("DescribeInstances", Fault::Refuse("RequestLimitExceeded", "Request limit exceeded.", 503));
    scene.ec2.with(|world| world.faults.push_back(("StopInstances", Fault::Lose)));
    for done in all_off(&scene, &drivers).await {
        assert_eq!(done.expect_err("lost").effect, Effect::Unknown);
    }
    let sent = scene.ec2.heard("StopInstances");
    assert_eq!(sent.len(), 1, "it is not repeated");
    let named: BTreeSet<_> = sent[0]
        .fields
        .iter()
        .filter(|(key, _)| key.starts_with("InstanceId"))
        .map(|(_, id)| id.clone())
        .collect();
    assert_eq!(named, (0..20).map(id).collect());
    assert_eq!(
        scene.ec2.heard("DescribeInstances").len(),
        2,
        "a question that was refused by limits is asked again"
    );
}

#[tokio::test]
async fn two_who_ask_of_one_instance_at_once_are_both_answered() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    let (reading, identity) = tokio::join!(driver.read_power(&call), driver.identify(&call));
    assert_eq!(reading.expect("read").power, Power::On);
    assert_eq!(identity.expect("told").identity.serial, Some(id(0)));
    let asked = scene.ec2.heard("DescribeInstances");
    let ids = |heard: &super::ec2::RequestRecord| {
        heard.fields.keys().filter(|key| key.starts_with("InstanceId")).count()
    };
    assert_eq!(asked.iter().map(ids).collect::<Vec<_>>(), [1]);
}

/// A caller who is gone before the request leaves takes what it ordered with it, and nobody else's.
#[tokio::test]
async fn what_nobody_waits_for_any_more_is_not_sent() {
    let scene = Scene::new(2).await;
    let (leaves, stays) = (scene.driver(0), scene.driver(1));
    let orders = scene.orders(&stays).await;
    let (order, call) = (orders.off().await.expect("an order"), scene.call(&orders));
    leaves.read_power(&call).await.expect("read");
    stays.read_power(&call).await.expect("read");
    let left = timeout(Duration::ZERO, leaves.power_off(&order, &call));
    let (left, stayed) = tokio::join!(left, stays.power_off(&order, &call));
    assert!(left.is_err() && stayed.is_ok(), "{left:?} {stayed:?}");
    assert_eq!((scene.ec2.state(&id(0)), scene.ec2.state(&id(1))), ("running", "stopped"));
}

/// The same of what goes alone.
#[tokio::test]
async fn a_start_is_heard_also_where_its_caller_has_left() {
    let (scene, driver, orders) = Scene::of_one().await;
    scene.ec2.with(|world| world.machines.get_mut(&id(0)).expect("there").state = "stopped");
    let call = scene.call(&orders);
    driver.read_power(&call).await.expect("read");
    let order = orders.on().await.expect("an order");
    let came = async {
        while scene.ec2.heard("StartInstances").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = came => {}
        on = driver.power_on(order, &call) => panic!("it was heard only when it was answered: {on:?}"),
    }
    timeout(Duration::from_secs(120), driver.quiesce(&call))
        .await
        .expect("in time")
        .expect("nothing is open");
    assert_eq!(scene.ec2.state(&id(0)), "running");
}

/// What was sent for a caller who left is heard all the same, so that nothing of it is waited out.
#[tokio::test]
async fn an_answer_is_heard_also_where_its_caller_has_left() {
    let (scene, driver, orders) = Scene::of_one().await;
    let (order, call) = (orders.off().await.expect("an order"), scene.call(&orders));
    driver.read_power(&call).await.expect("read");
    let came = async {
        while scene.ec2.heard("StopInstances").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = came => {}
        off = driver.power_off(&order, &call) => panic!("it was heard only when it was answered: {off:?}"),
    }
    let over = async {
        while driver.quiesce(&call).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(120), over).await.expect("nothing is open");
}
