//! Commands one by one: what is sent, as of when it is signed, and what its answers mean.

use std::sync::Arc;
use std::time::Duration;

use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, Witness};

use super::ec2::{Ec2, Fault};
use super::{Scene, id};
use crate::cloud::{LIFE, SIGNED};

/// What a whole machine does that is stopped between its permit and its packet: meanwhile AWS's time goes on, and none of ours.
#[derive(Debug)]
struct Stopped(Ec2);

impl Witness for Stopped {
    fn permitted(&self) {
        self.0.with(|world| world.now += SIGNED + Duration::from_secs(1));
    }
}

/// S8: what was permitted long ago AWS does not take, whatever the clocks here say.
#[tokio::test]
async fn an_on_that_was_kept_between_its_permit_and_its_packet_is_not_taken() {
    let (scene, driver, orders) = Scene::of_one().await;
    scene.ec2.with(|world| world.machines.get_mut(&id(0)).expect("there").state = "stopped");
    let call = scene.call(&orders);
    driver.read_power(&call).await.expect("read");
    let order = orders.on().await.expect("an order");
    let (asked, kept) = (scene.far_time(), call.clone().before(Arc::new(Stopped(scene.ec2.clone()))));
    let error = driver.power_on(order, &kept).await.expect_err("too late");
    assert_eq!((error.kind, error.effect), (ErrorKind::Authentication, Effect::DidNotHappen), "{error}");
    let sent = scene.ec2.heard("StartInstances");
    assert_eq!((sent.len(), sent[0].signed), (1, Some(asked)), "it bears the time of the answer before it");
    assert_eq!(scene.ec2.state(&id(0)), "stopped");
    // Also where something else was asked after the machine went on, and before the packet was made.
    driver.read_power(&call).await.expect("read");
    let order = orders.on().await.expect("an order");
    scene.ec2.with(|world| world.now += SIGNED + Duration::from_secs(1));
    driver.identify(&call).await.expect("told");
    let error = driver.power_on(order, &call).await.expect_err("too late still");
    assert_eq!((error.kind, error.effect), (ErrorKind::Authentication, Effect::DidNotHappen), "{error}");
    // And one that is not kept is taken.
    driver.read_power(&call).await.expect("read");
    let accepted = driver.power_on(orders.on().await.expect("an order"), &call).await.expect("taken");
    assert!(!accepted.already);
    assert_eq!(scene.ec2.state(&id(0)), "running");
}

#[tokio::test]
async fn no_on_goes_without_a_reading_of_just_now() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    for ahead in [None, Some(21)] {
        if let Some(seconds) = ahead {
            driver.read_power(&call).await.expect("read");
            scene.ahead(seconds);
        }
        let error =
            driver.power_on(orders.on().await.expect("an order"), &call).await.expect_err("no reading");
        assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{error}");
    }
    assert_eq!(scene.ec2.heard("StartInstances").len(), 0);
}

#[tokio::test]
async fn every_stop_is_by_force_and_never_asks_the_system() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    let order = orders.off().await.expect("an order");
    assert!(!driver.power_off(&order, &call).await.expect("taken").already);
    assert!(driver.power_off(&order, &call).await.expect("taken").already, "it was stopped already");
    scene.ec2.fail(
        "StopInstances",
        Fault::Refuse("UnknownParameter", "The parameter SkipOsShutdown is not recognized", 400),
    );
    let error = driver.power_off(&order, &call).await.expect_err("not known there");
    assert_eq!((error.kind, error.effect), (ErrorKind::Unsupported, Effect::DidNotHappen), "{error}");
    assert!(error.detail.contains("less is not asked"), "{error}");
    let sent = scene.ec2.heard("StopInstances");
    assert_eq!(sent.len(), 3);
    for heard in sent {
        let field = |key: &str| heard.fields.get(key).map(String::as_str);
        assert_eq!(
            (field("Force"), field("SkipOsShutdown"), field("Hibernate")),
            (Some("true"), Some("true"), None)
        );
    }
    assert_eq!(driver.read_power(&call).await.expect("read").power, Power::Off);
}

/// EC2 took it, and gave it up, or an auto-scaling group or a person started the instance since.
#[tokio::test]
async fn a_stop_is_sent_again_also_where_the_instance_reads_on() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    let order = orders.off().await.expect("an order");
    driver.power_off(&order, &call).await.expect("taken");
    let again = async |state: &'static str| {
        scene.ec2.with(|world| world.machines.get_mut(&id(0)).expect("there").state = state);
        driver.off_again(driver.read_power(&call).await.expect("read").power)
    };
    let half_a_minute = Some(Duration::from_secs(30));
    assert_eq!((again("running").await, again("stopping").await), (half_a_minute, half_a_minute));
    assert_eq!(again("stopped").await, None);
}

#[tokio::test]
async fn what_an_answer_means_is_said_with_its_effect() {
    let (scene, driver, orders) = Scene::of_one().await;
    let order = orders.off().await.expect("an order");
    use Effect::{DidNotHappen, Unknown};
    for (fault, kind, effect, is_final) in [
        (Fault::Refuse("UnauthorizedOperation", "No.", 403), ErrorKind::Forbidden, DidNotHappen, true),
        (Fault::Refuse("AccessDenied", "No.", 403), ErrorKind::Forbidden, DidNotHappen, true),
        (Fault::Refuse("ExpiredToken", "No.", 400), ErrorKind::Authentication, DidNotHappen, false),
        (
            Fault::Refuse("OperationNotPermitted", "disableApiStop", 400),
            ErrorKind::Refused,
            DidNotHappen,
            true,
        ),
        (Fault::Refuse("IncorrectInstanceState", "pending", 400), ErrorKind::Refused, DidNotHappen, false),
        (Fault::Refuse("UnsupportedOperation", "No.", 400), ErrorKind::Unsupported, DidNotHappen, true),
        (Fault::Refuse("InternalError", "Sorry.", 500), ErrorKind::Protocol, Unknown, false),
        (Fault::Lose, ErrorKind::Protocol, Unknown, false),
        (Fault::Garble, ErrorKind::Protocol, Unknown, false),
    ] {
        scene.ec2.fail("StopInstances", fault.clone());
        let error = driver.power_off(&order, &scene.call(&orders)).await.expect_err("a fault");
        let meaning = (error.kind, error.effect, error.is_final);
        assert_eq!(meaning, (kind, effect, is_final), "{fault:?}: {error}");
        let shown = format!("{error} {error:?} {driver:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("hunter4"), "{shown}");
    }
    let error = driver
        .quiesce(&scene.call_of(&orders, Duration::from_millis(10)))
        .await
        .expect_err("three of them are not known to be over");
    assert_eq!(error.effect, Unknown, "{error}");
    scene.ahead(LIFE.as_secs() + 1);
    driver.quiesce(&scene.call(&orders)).await.expect("AWS takes none of them any more");
}

#[tokio::test]
async fn what_ec2_has_no_room_for_is_not_waited_out() {
    let (scene, driver, orders) = Scene::of_one().await;
    scene.ec2.with(|world| world.machines.get_mut(&id(0)).expect("there").state = "stopped");
    let call = scene.call(&orders);
    driver.read_power(&call).await.expect("read");
    let words = "We currently do not have sufficient capacity in the Availability Zone you requested.";
    scene.ec2.fail("StartInstances", Fault::Refuse("InsufficientInstanceCapacity", words, 500));
    let error = driver.power_on(orders.on().await.expect("an order"), &call).await.expect_err("no room");
    assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{error}");
    driver.quiesce(&call).await.expect("nothing of it is open");
}

/// The signature of a question is AWS's own matter, too: its refusal tells the time.
#[tokio::test]
async fn a_clock_that_is_wrong_here_keeps_nothing_back() {
    let scene = Scene::new(1).await;
    scene.ec2.with(|world| world.is_strict = true);
    let driver = scene.driver(0);
    let orders = scene.orders(&driver).await;
    let call = scene.call(&orders);
    assert_eq!(driver.read_power(&call).await.expect("read").power, Power::On);
    driver.power_off(&orders.off().await.expect("an order"), &call).await.expect("taken");
    assert_eq!(driver.read_power(&call).await.expect("read").power, Power::Off);
    driver.power_on(orders.on().await.expect("an order"), &call).await.expect("taken");
    let asked = scene.ec2.heard("DescribeInstances").len();
    assert_eq!(asked, 3, "the first one twice: once it is known, AWS's time is used");
}

#[tokio::test]
async fn a_question_that_is_refused_keeps_no_off_back() {
    let (scene, driver, orders) = Scene::of_one().await;
    let (order, call) = (orders.off().await.expect("an order"), scene.call(&orders));
    scene.ec2.fail("DescribeInstances", Fault::Refuse("UnauthorizedOperation", "No.", 403));
    driver.power_off(&order, &call).await.expect("taken");
    assert_eq!(scene.ec2.heard("StopInstances")[0].signed, Some(scene.far_time()));
    // Nor where it is not answered at all, once AWS's time is known.
    scene.ahead(60);
    scene.ec2.fail("DescribeInstances", Fault::Lose);
    driver.power_off(&order, &call).await.expect("taken");
    assert_eq!(scene.ec2.heard("StopInstances").len(), 2);
}

#[tokio::test]
async fn one_question_that_is_lost_does_not_keep_a_command_open() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    driver.power_off(&orders.off().await.expect("an order"), &call).await.expect("taken");
    scene.ec2.fail("DescribeInstances", Fault::Lose);
    driver.quiesce(&call).await.expect("it is asked again");
}

/// What EC2 took it shows a moment later.
#[tokio::test]
async fn what_is_shown_late_is_not_over() {
    let (scene, driver, orders) = Scene::of_one().await;
    scene.ec2.with(|world| world.machines.get_mut(&id(0)).expect("there").shows = Some("running"));
    driver.power_off(&orders.off().await.expect("an order"), &scene.call(&orders)).await.expect("taken");
    let short = scene.call_of(&orders, Duration::from_millis(10));
    let error = driver.quiesce(&short).await.expect_err("a stop that was taken a moment ago");
    assert_eq!((error.kind, error.effect), (ErrorKind::TimedOut, Effect::Unknown), "{error}");
    scene.ahead(6);
    driver.quiesce(&scene.call(&orders)).await.expect("somebody started it again");
}

#[tokio::test]
async fn what_is_refused_by_limits_is_sent_again() {
    let (scene, driver, orders) = Scene::of_one().await;
    scene.ec2.fail("StopInstances", Fault::Refuse("RequestLimitExceeded", "Request limit exceeded.", 503));
    let order = orders.off().await.expect("an order");
    driver.power_off(&order, &scene.call(&orders)).await.expect("taken the second time");
    assert_eq!(scene.ec2.heard("StopInstances").len(), 2);
    // An on is sent once.
    driver.read_power(&scene.call(&orders)).await.expect("read");
    scene.ec2.fail("StartInstances", Fault::Refuse("RequestLimitExceeded", "Request limit exceeded.", 503));
    let error = driver.power_on(orders.on().await.expect("an order"), &scene.call(&orders)).await;
    let error = error.expect_err("refused");
    assert_eq!((error.kind, error.effect), (ErrorKind::Throttled, Effect::DidNotHappen), "{error}");
    assert_eq!(scene.ec2.heard("StartInstances").len(), 1);
}

#[tokio::test]
async fn nothing_is_sent_under_a_leadership_that_has_ended() {
    let (scene, driver, orders) = Scene::of_one().await;
    driver.read_power(&scene.call(&orders)).await.expect("read");
    let (off, on) = (orders.off().await.expect("an order"), orders.on().await.expect("an order"));
    orders.permit().end();
    for error in [
        driver.power_off(&off, &scene.call(&orders)).await.expect_err("deposed"),
        driver.power_on(on, &scene.call(&orders)).await.expect_err("deposed"),
    ] {
        assert_eq!((error.kind, error.effect), (ErrorKind::NotLeader, Effect::DidNotHappen), "{error}");
    }
    assert_eq!(scene.ec2.heard("StopInstances").len() + scene.ec2.heard("StartInstances").len(), 0);
}

#[tokio::test]
async fn a_start_that_is_denied_right_after_our_own_untagging_is_asked_for_again() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    let found = driver.inspect_hold(&call).await.expect("inspected");
    let held =
        driver.engage_hold(&orders.hold(&found).await.expect("an order"), &call).await.expect("tagged");
    assert_eq!(held.engaged, ["tagged picket-fenced"]);
    let now = driver.inspect_hold(&call).await.expect("inspected");
    assert_eq!(driver.engaged(&now), held.engaged);
    let deny =
        || scene.ec2.fail("StartInstances", Fault::Refuse("UnauthorizedOperation", "explicit deny", 403));
    deny();
    driver.read_power(&call).await.expect("read");
    let error = driver.power_on(orders.on().await.expect("an order"), &call).await.expect_err("denied");
    assert_eq!((error.kind, error.effect), (ErrorKind::Forbidden, Effect::DidNotHappen), "{error}");
    driver.disengage_hold(&orders.unhold(&found).await.expect("an order"), &call).await.expect("untagged");
    assert!(scene.ec2.with(|world| world.machines[&id(0)].tags.is_empty()));
    deny();
    let error = driver.power_on(orders.on().await.expect("an order"), &call).await.expect_err("denied still");
    assert_eq!((error.kind, error.effect), (ErrorKind::Throttled, Effect::DidNotHappen), "{error}");
    driver.power_on(orders.on().await.expect("an order"), &call).await.expect("taken");
}

#[tokio::test]
async fn what_is_terminated_is_off_already_and_what_is_not_there_is_nothing() {
    let scene = Scene::new(1).await;
    scene.ec2.with(|world| world.machines.get_mut(&id(0)).expect("there").state = "terminated");
    let (driver, nobody) = (scene.driver(0), scene.driver(7));
    let orders = scene.orders(&driver).await;
    let (order, call) = (orders.off().await.expect("an order"), scene.call(&orders));
    assert!(driver.power_off(&order, &call).await.expect("off").already);
    let reading = nobody.read_power(&call).await.expect("an answer");
    assert_eq!(reading.power, Power::Unknown, "not found is no off: {reading:?}");
    let error = nobody.power_off(&order, &call).await.expect_err("not there");
    assert_eq!(error.effect, Effect::DidNotHappen, "{error}");
}
