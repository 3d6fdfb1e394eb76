//! What a reader would try who wants to show that the driver breaks the law: losses that nobody sees, sessions that are not over,
//! tasks that are not, words that tell too much.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use picket_core::power::{Epoch, Power};
use picket_driver::{Effect, ErrorKind, PowerDriver};
use serde_json::json;

use crate::fake::{Fake, PASSWORD, Reply, Then, World};
use crate::subject::Hand;

/// The manager restarts, and what is connected to it does not see that.
fn restarts(world: &mut World) {
    world.end_sessions();
    world.last_reset = json!("2026-11-22T02:00:00Z");
}

fn lost_since(epoch: Option<Epoch>) -> Option<picket_core::time::BootTime> {
    epoch.filter(|epoch| epoch.begins_after_loss())?.loss.map(|loss| loss.since)
}

#[tokio::test]
async fn an_on_of_the_life_before_is_not_told_of_the_life_after() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({ "last_reset_time": true })).await;
    assert_eq!(hand.power().await, Power::On);
    // It says On, restarts before the manager is asked, and has Off for everything from then on.
    let forgets = |world: &mut World| {
        restarts(world);
        world.says = Some(json!("Off"));
    };
    fake.world().then.push_back(("GET /redfish/v1/Systems/437", Then::is(forgets)));
    let reading = hand.read().await.expect("a reading");
    assert!(lost_since(reading.epoch).is_some(), "{reading:?}");
    assert_ne!(reading.power, Power::On, "else the Off after it would be a fall: {reading:?}");
}

#[tokio::test]
async fn no_off_is_sent_again_in_a_life_that_only_the_driver_saw() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({ "last_reset_time": true })).await;
    let before = hand.read().await.expect("a reading").epoch;
    fake.world().then.push_back(("Reset", Then::is(restarts)));
    fake.world().script.push_back(("Reset", Reply::raw(409, "")));
    let error = hand.off().await.expect_err("its manager restarted");
    assert_eq!((error.kind, error.effect), (ErrorKind::Unreachable, Effect::DidNotHappen), "{error}");
    hand.off().await.expect_err("power was not read since, as far as who asks can know");
    assert_eq!(fake.world().commands, 1);
    // Closing everything makes nobody forget it either.
    hand.quiesce().await.expect("closed");
    let after = hand.read().await.expect("a reading").epoch;
    assert!(lost_since(after).is_some() && after != before, "{after:?}");
    hand.off().await.expect("now it may be sent");
}

#[tokio::test]
async fn a_loss_is_as_old_as_the_first_question_that_nobody_heard() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({ "last_reset_time": true })).await;
    // So that the next question finds no connection that stands.
    fake.world().closes = true;
    hand.power().await;
    fake.world().silent = true;
    // It does not even shake hands.
    let call = hand.call_of(Duration::from_millis(300));
    hand.driver.read_power(&call).await.expect_err("nobody is there");
    let gone_by = hand.clock.boot();
    {
        let mut world = fake.world();
        world.silent = false;
        world.restart("2026-11-22T02:00:00Z");
    }
    let reading = hand.read().await.expect("it is back");
    let since = lost_since(reading.epoch).expect("it restarted");
    assert!(since < gone_by, "{since:?}, and it did not answer before {gone_by:?}");
}

#[tokio::test]
async fn a_session_is_over_when_its_token_is_not_known_and_not_when_its_place_is_not() {
    for status in [202, 404, 410, 500] {
        let fake = Fake::start().await;
        let hand = Hand::of(&fake, json!({})).await;
        hand.off().await.expect("taken");
        fake.world().script.extend((0..99).map(|_| ("DELETE", Reply::raw(status, ""))));
        let open = hand.driver.quiesce(&hand.call_of(Duration::from_secs(3))).await;
        assert_eq!(fake.world().open_sessions(), 1);
        assert_eq!(open.expect_err("its token is known").effect, Effect::Unknown, "{status}");
        fake.world().end_sessions();
        // Asked once more by itself where its place says nothing.
        hand.quiesce().await.expect("it is over");
    }
}

#[tokio::test]
async fn a_login_whose_caller_left_is_not_begun_again() {
    let fake = Fake::start().await;
    let login = "POST /redfish/v1/SessionService/Sessions";
    fake.world().slow = Some((login, Duration::from_secs(3)));
    let hand = Hand::of(&fake, json!({})).await;
    for _ in 0..400 {
        if fake.world().asked(login) > 0 {
            break;
        }
        // On a busy machine a call may be over after the login.
        let _ = hand.driver.read_power(&hand.call_of(Duration::from_millis(200))).await;
    }
    for _ in 0..5 {
        let _ = hand.driver.read_power(&hand.call_of(Duration::from_millis(100))).await;
    }
    assert_eq!(hand.power().await, Power::On);
    assert_eq!(fake.world().asked(login), 1);
    assert_eq!(fake.world().open_sessions(), 1);
}

#[tokio::test]
async fn what_the_service_says_of_a_login_is_not_repeated_where_it_has_the_password_in_it() {
    let fake = Fake::start().await;
    let told =
        json!({ "error": { "message": format!("The value '{PASSWORD}' of Password is of a wrong format") } });
    for (status, more) in [(400, json!({})), (503, json!({})), (401, json!({ "authentication": "basic" }))] {
        fake.world().script.extend((0..9).map(|_| ("redfish", Reply::json(status, told.clone()))));
        // The root is asked before, and everybody may read it.
        fake.world().script.push_front((
            "GET /redfish/v1/",
            Reply::json(
                200,
                json!({
                    "Systems": { "@odata.id": "/redfish/v1/Systems" },
                    "Links": { "Sessions": { "@odata.id": "/redfish/v1/SessionService/Sessions" } },
                }),
            ),
        ));
        let hand = Hand::of(&fake, more).await;
        let error = hand.fails(Duration::from_secs(3), async |call| hand.driver.read_power(call).await).await;
        let text = format!("{error} {error:?} {:?}", hand.driver);
        assert!(!text.contains(PASSWORD), "a password of {} characters is in an error", PASSWORD.len());
        assert!(text.contains(&format!("HTTP {status}")), "{text}");
        fake.world().script.clear();
    }
}

#[tokio::test]
async fn a_task_that_we_may_not_look_at_may_be_running() {
    let fake = Fake::start().await;
    fake.world().task = Some(Duration::from_secs(60));
    let hand = Hand::of(&fake, json!({})).await;
    fake.world().script.extend((0..9).map(|_| ("TaskMonitors", Reply::raw(403, ""))));
    hand.off().await.expect("taken");
    let open = hand.driver.quiesce(&hand.call_of(Duration::from_secs(3))).await.expect_err("who knows");
    assert_eq!(open.effect, Effect::Unknown, "{open}");
}

#[tokio::test]
async fn a_hold_that_is_a_task_is_over_before_its_session_is() {
    let fake = Fake::start().await;
    fake.world().task = Some(Duration::from_secs(4));
    let hand = Hand::of(&fake, json!({})).await;
    let found = hand.driver.inspect_hold(&hand.call()).await.expect("an answer");
    let order = hand.orders.hold(&found).await.expect("an order");
    let report = hand.driver.engage_hold(&order, &hand.call()).await.expect("taken");
    assert_eq!(report.engaged, ["restore policy always-off"]);
    hand.quiesce().await.expect("it is over");
    assert!(fake.world().asked("TaskMonitors") >= 2);
    let log = fake.world().log.clone();
    assert!(log.iter().any(|line| line.contains("TaskMonitors") && line.ends_with("204")), "{log:?}");
}

/// A manager that restarts ends its connections: what was seen of its life was seen on the one on which an off goes, or is seen anew (S2).
#[tokio::test]
async fn an_off_whose_connection_ends_just_before_it_is_not_sent_unseen() {
    let fake = Fake::start().await;
    fake.world().has_sessions = false;
    let hand = Hand::of(&fake, json!({ "authentication": "basic", "last_reset_time": true })).await;
    // At each step of an off it restarts once, until the off is sent before that.
    for steps in 0.. {
        let first = hand.read().await;
        assert!(first.is_ok_and(|reading| reading.epoch.is_some()), "{steps}");
        let mut off = pin!(hand.off());
        for _ in 0..steps {
            let step = poll_fn(|context| Poll::Ready(off.as_mut().poll(context))).await;
            assert!(step.is_pending(), "{steps}: it is sent before that");
            tokio::task::yield_now().await;
        }
        if fake.world().commands > 0 {
            assert!(steps > 10, "{steps}: one step after the other");
            break;
        }
        fake.world().restart(&format!("2026-11-22T02:{:02}:{:02}Z", steps / 60, steps % 60));
        let off = off.await;
        assert!(off.is_err(), "{steps}: the life of before was seen last: {off:?}");
    }
}
