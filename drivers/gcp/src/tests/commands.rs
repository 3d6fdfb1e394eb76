//! Commands one by one: what is sent, with which token, and what their answers mean.

use std::sync::Arc;

use picket_cloud::fakes::header;
use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, Witness};
use serde_json::json;

use super::compute::{Compute, Fault};
use super::{Scene, id};

/// What a whole machine does that is stopped between its permit and its packet: meanwhile Google's time goes on, and none of ours.
#[derive(Debug)]
struct Stopped(Compute);

impl Witness for Stopped {
    fn permitted(&self) {
        self.0.with(|world| world.now += 3_601);
    }
}

/// S8: what was permitted long ago is not taken, whatever the clocks here say.
#[tokio::test]
async fn an_on_that_was_kept_between_its_permit_and_its_packet_is_not_taken() {
    let (scene, driver, orders) = Scene::of_one().await;
    scene.compute.machine(&id(0), |machine| machine.status = "TERMINATED");
    let call = scene.call(&orders);
    driver.read_power(&call).await.expect("read");
    let order = orders.on().await.expect("an order");
    let kept = call.clone().before(Arc::new(Stopped(scene.compute.clone())));
    let error = driver.power_on(order, &kept).await.expect_err("too late");
    assert_eq!((error.kind, error.effect), (ErrorKind::Authentication, Effect::DidNotHappen), "{error}");
    assert_eq!(
        (scene.compute.heard("instances.start").len(), scene.compute.status(&id(0))),
        (1, "TERMINATED")
    );
    // Once we are told that the token is of no use any more, there is a new one; and one that is not kept is taken.
    scene.ahead(11);
    driver.read_power(&call).await.expect("read");
    driver.power_on(orders.on().await.expect("an order"), &call).await.expect("taken");
    assert_eq!(scene.compute.status(&id(0)), "RUNNING");
}

/// S8: none is asked for on the way, and none that came after the store's last word is used.
#[tokio::test]
async fn an_on_goes_with_a_token_from_before_the_store_s_last_word_or_not_at_all() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    let without = driver.power_on(orders.on().await.expect("an order"), &call).await.expect_err("no token");
    assert_eq!(
        (without.kind, without.effect),
        (ErrorKind::Authentication, Effect::DidNotHappen),
        "{without}"
    );
    let order = orders.on().await.expect("an order");
    // The machine stands still here, and reads power when it goes on: that brings a new token.
    driver.read_power(&call).await.expect("read");
    let newer = driver.power_on(order, &call).await.expect_err("a newer token");
    assert_eq!((newer.kind, newer.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{newer}");
    assert!(newer.detail.contains("newer than the store's last word"), "{newer}");
    assert_eq!((scene.compute.heard("instances.start").len(), scene.compute.heard("/token").len()), (0, 1));
}

/// What lives longer than what stands in the ledger bears nothing that is bounded, and what is stored next has it.
#[tokio::test]
async fn a_token_that_lives_longer_than_the_ledger_says_bears_no_on() {
    let scene = Scene::new(1).await;
    scene.compute.with(|world| world.life = Some(43_200));
    let driver = scene.driver(0);
    let orders = scene.orders(&driver).await;
    let call = scene.call(&orders);
    driver.read_power(&call).await.expect("read");
    let error = driver.power_on(orders.on().await.expect("an order"), &call).await.expect_err("too long");
    assert_eq!((error.kind, error.effect), (ErrorKind::Refused, Effect::DidNotHappen), "{error}");
    assert!(error.detail.contains("stand in the ledger"), "{error}");
    let longest = driver.longest_life();
    assert_eq!((longest.off, longest.on.map(|life| life.as_secs())), (longest.on, Some(43_230)));
    assert_eq!(driver.volumes().expect("volumes").max_in_flight(), longest.on);
}

#[tokio::test]
async fn every_stop_skips_the_graceful_shutdown_and_names_the_numeric_id() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    let order = orders.off().await.expect("an order");
    assert!(!driver.power_off(&order, &call).await.expect("taken").already);
    assert!(driver.power_off(&order, &call).await.expect("taken").already, "it was stopped already");
    let sent = scene.compute.heard("instances.stop");
    assert_eq!(sent.len(), 2);
    for heard in &sent {
        assert_eq!(heard.query.get("noGracefulShutdown").map(String::as_str), Some("true"), "{heard:?}");
        assert!(
            heard.path.ends_with(&format!("/instances/{}/stop", id(0)))
                && !heard.query.contains_key("discardLocalSsd")
        );
        assert!(header(&heard.head, "authorization").is_some_and(|value| value.starts_with("Bearer ")));
    }
    assert_eq!(driver.read_power(&call).await.expect("read").power, Power::Off);
}

#[tokio::test]
async fn what_an_answer_means_is_said_with_its_effect() {
    let (scene, driver, orders) = Scene::of_one().await;
    use Effect::{DidNotHappen, Unknown};
    for (fault, kind, effect) in [
        (Fault::Refuse(401, "authError", "No."), ErrorKind::Authentication, DidNotHappen),
        (Fault::Refuse(403, "forbidden", "No."), ErrorKind::Forbidden, DidNotHappen),
        (Fault::Refuse(404, "notFound", "No."), ErrorKind::Refused, DidNotHappen),
        (Fault::Refuse(412, "conditionNotMet", "No."), ErrorKind::Refused, DidNotHappen),
        (Fault::Refuse(408, "", "Sorry."), ErrorKind::Protocol, Unknown),
        (Fault::Refuse(500, "internalError", "Sorry."), ErrorKind::Protocol, Unknown),
        (Fault::Refuse(503, "backendError", "Sorry."), ErrorKind::Protocol, Unknown),
        (Fault::Lose, ErrorKind::Protocol, Unknown),
        (Fault::Drop, ErrorKind::Protocol, Unknown),
        (Fault::Garble, ErrorKind::Protocol, Unknown),
        (Fault::Cut, ErrorKind::Protocol, Unknown),
    ] {
        scene.compute.fail("instances.stop", fault.clone());
        let order = orders.off().await.expect("an order");
        let error = driver.power_off(&order, &scene.call(&orders)).await.expect_err("a fault");
        assert_eq!((error.kind, error.effect), (kind, effect), "{fault:?}: {error}");
        assert_eq!(error.is_final, kind == ErrorKind::Forbidden, "{fault:?}: {error}");
        let shown = format!("{error} {error:?} {driver:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[tokio::test]
async fn what_is_refused_by_limits_is_sent_again_and_an_on_once() {
    let (scene, driver, orders) = Scene::of_one().await;
    let limited = || Fault::Refuse(403, "rateLimitExceeded", "Quota exceeded");
    scene.compute.fail("instances.stop", limited());
    let order = orders.off().await.expect("an order");
    driver.power_off(&order, &scene.call(&orders)).await.expect("taken the second time");
    let sent = scene.compute.heard("instances.stop");
    assert_eq!((sent.len(), &sent[0].query), (2, &sent[1].query), "the same request");
    driver.read_power(&scene.call(&orders)).await.expect("read");
    // Of the first refusal it still pauses: nothing that is bounded waits for that.
    scene.compute.fail("instances.start", limited());
    let mut effects = Vec::new();
    for _ in 0..2 {
        let error = driver
            .power_on(orders.on().await.expect("an order"), &scene.call(&orders))
            .await
            .expect_err("refused");
        effects.push((error.kind, error.effect));
    }
    assert_eq!(effects, [(ErrorKind::Throttled, Effect::DidNotHappen); 2]);
    assert!(scene.compute.heard("instances.start").len() <= 1);
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
    assert_eq!(scene.compute.heard("instances.stop").len() + scene.compute.heard("instances.start").len(), 0);
}

#[tokio::test]
async fn local_ssds_are_not_lost_unless_the_settings_say_what_becomes_of_them() {
    let scene = Scene::new(1).await;
    scene.compute.machine(&id(0), |machine| machine.has_ssd = true);
    let unset = scene.driver(0);
    let orders = scene.orders(&unset).await;
    let (order, call) = (orders.off().await.expect("an order"), scene.call(&orders));
    let error = unset.power_off(&order, &call).await.expect_err("not said");
    assert_eq!((error.kind, error.effect), (ErrorKind::Settings, Effect::DidNotHappen), "{error}");
    assert!(error.detail.contains("local-ssd-0") && error.detail.contains("discard_local_ssd"), "{error}");
    assert!(scene.compute.heard("instances.stop").is_empty());
    for (discards, word) in [(true, "true"), (false, "false")] {
        let driver = scene.driver_with(0, json!({ "discard_local_ssd": discards }));
        driver.power_off(&orders.off().await.expect("an order"), &call).await.expect("taken");
        let sent = scene.compute.heard("instances.stop");
        assert_eq!(
            sent.last().and_then(|heard| heard.query.get("discardLocalSsd")).map(String::as_str),
            Some(word)
        );
    }
}

#[tokio::test]
async fn an_instance_that_took_the_name_over_is_seen_and_never_touched() {
    let scene = Scene::new(2).await;
    let driver = scene.driver(0);
    let orders = scene.orders(&driver).await;
    let (order, call) = (orders.off().await.expect("an order"), scene.call(&orders));
    driver.read_power(&call).await.expect("read");
    // The first one is deleted, and the second one has its name, and is stopped.
    scene.compute.with(|world| {
        let gone = world.machines.remove(&id(0)).expect("there");
        let heir = world.machines.get_mut(&id(1)).expect("there");
        (heir.name, heir.status) = (gone.name, "TERMINATED");
    });
    let error = driver.read_power(&call).await.expect_err("it is gone, and its name another's");
    assert_eq!((error.kind, error.effect), (ErrorKind::IdentityMismatch, Effect::DidNotHappen), "{error}");
    assert!(error.detail.contains(&format!("the instance {}'s now", id(1))), "{error}");
    assert_eq!(
        driver.identify(&call).await.expect("told").identity.serial,
        Some(id(1)),
        "who is there is not the node"
    );
    let off = driver.power_off(&order, &call).await.expect_err("gone");
    let on = driver.power_on(orders.on().await.expect("an order"), &call).await.expect_err("gone");
    assert_eq!((off.effect, on.effect), (Effect::DidNotHappen, Effect::DidNotHappen), "{off} {on}");
    assert_eq!(scene.compute.status(&id(1)), "TERMINATED");
    let commands = |heard: &super::compute::RequestRecord| {
        heard.method.starts_with("instances.st") && heard.path.contains(&id(1))
    };
    assert!(!scene.compute.with(|world| world.log.iter().any(commands)));
}
