//! What is ordinary: how many requests a fence takes, who it says it is, holds, sessions that end with what they carried.

use std::sync::Arc;
use std::time::{Duration, Instant};

use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, PowerDriver, Witness};
use serde_json::json;

use crate::fake::{Fake, Reply};
use crate::subject::Hand;

#[tokio::test]
async fn an_off_and_its_first_off_reading_are_two_requests() {
    let fake = Fake::start().await;
    fake.world().tells_reset = false;
    let hand = Hand::of(&fake, json!({})).await;
    assert_eq!(hand.power().await, Power::On);
    let before = fake.world().log.len();
    hand.off().await.expect("taken");
    assert_eq!(hand.power().await, Power::Off);
    let world = fake.world();
    assert_eq!(world.log.len() - before, 2, "{:?}", &world.log[before..]);
    assert_eq!(world.connections, 1);
}

#[tokio::test]
async fn with_a_manager_that_is_asked_they_are_three() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({ "last_reset_time": true })).await;
    assert_eq!(hand.power().await, Power::On);
    let before = fake.world().log.len();
    hand.off().await.expect("taken");
    assert_eq!(hand.power().await, Power::Off);
    let world = fake.world();
    assert_eq!(world.log.len() - before, 3, "{:?}", &world.log[before..]);
    assert!(
        world.log[before].starts_with("POST") && world.log[before + 2].contains("Managers"),
        "{:?}",
        world.log
    );
}

#[tokio::test]
async fn it_says_whose_machine_it_is() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    let identity = hand.driver.identify(&hand.call()).await.expect("an answer").identity;
    assert_eq!(identity.uuid.as_deref(), Some("8d3f2f1e64a14c2e9d430f5a0a2b6c41"));
    assert_eq!(identity.serial.as_deref(), Some("SN-0041"));
}

#[tokio::test]
async fn the_session_that_carried_an_off_is_deleted_before_the_on() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.off().await.expect("taken");
    assert_eq!(fake.world().open_sessions(), 1);
    hand.quiesce().await.expect("ended");
    assert_eq!(fake.world().open_sessions(), 0);
    let refused = hand.on().await.expect_err("no session is opened for an on");
    assert_eq!((refused.kind, refused.effect), (ErrorKind::Unreachable, Effect::DidNotHappen));
    assert_eq!(fake.world().open_sessions(), 0);
    assert_eq!(hand.power().await, Power::Off);
    hand.on().await.expect("taken");
    assert!(fake.world().is_on());
    assert_eq!(fake.world().shown, ["token", "token"]);
}

#[tokio::test]
async fn an_on_is_not_sent_in_another_session_than_that_of_its_reading() {
    let fake = Fake::start().await;
    fake.world().set_power(false);
    let hand = Hand::of(&fake, json!({})).await;
    assert_eq!(hand.power().await, Power::Off);
    // As when its idle limit has passed over a machine that stood still.
    fake.world().end_sessions();
    let refused = hand.on().await.expect_err("its session is over");
    assert_eq!((refused.kind, refused.effect), (ErrorKind::Unreachable, Effect::DidNotHappen), "{refused}");
    assert!(!fake.world().is_on() && fake.world().open_sessions() == 0);
}

#[tokio::test]
async fn a_session_that_the_service_ended_is_opened_again_for_an_off() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    fake.world().end_sessions();
    hand.off().await.expect("taken in another session");
    assert!(!fake.world().is_on());
}

#[tokio::test]
async fn a_session_that_does_not_answer_its_deletion_is_waited_out() {
    let fake = Fake::start().await;
    fake.world().session_timeout = 1;
    fake.world().session_life = Duration::from_secs(1);
    let hand = Hand::of(&fake, json!({ "session_timeout": "1s" })).await;
    hand.off().await.expect("taken");
    let deaf = |fake: &Fake| {
        let lost = Reply { hangs_up: true, ..Reply::raw(204, "") };
        fake.world().script.extend((0..50).map(|_| ("DELETE", lost.clone())));
    };
    deaf(&fake);
    let began = std::time::Instant::now();
    hand.quiesce().await.expect("its idle limit has passed");
    assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());

    hand.off().await.expect("taken");
    deaf(&fake);
    let began = std::time::Instant::now();
    match hand.driver.quiesce(&hand.call_of(Duration::from_millis(300))).await {
        Ok(()) => assert!(began.elapsed() >= Duration::from_millis(900), "it may be open"),
        Err(short) => assert_eq!((short.kind, short.effect), (ErrorKind::TimedOut, Effect::Unknown)),
    }
    hand.quiesce().await.expect("it is not forgotten");
    assert_eq!(fake.world().open_sessions(), 0);
}

#[tokio::test]
async fn full_sessions_are_said_or_gone_without_where_the_settings_allow_it() {
    let fake = Fake::start().await;
    fake.world().most_sessions = 0;
    let hand = Hand::of(&fake, json!({})).await;
    let full = hand.fails(Duration::from_secs(6), async |call| hand.driver.read_power(call).await).await;
    assert_eq!((full.kind, full.effect), (ErrorKind::Throttled, Effect::DidNotHappen), "{full}");
    assert!(full.detail.contains("all sessions"), "{full}");

    let hand = Hand::of(&fake, json!({ "authentication": "session_or_basic" })).await;
    assert_eq!(hand.driver.traits().max_in_flight.on, None, "nothing bounds what went without a session");
    hand.power().await;
    hand.off().await.expect("taken");
    assert_eq!(fake.world().shown, ["basic"]);
    hand.quiesce().await.expect("it was answered");
}

#[tokio::test]
async fn what_went_without_a_session_and_was_not_answered_is_over_when_the_operator_says() {
    let fake = Fake::start().await;
    let hang = || Reply { hangs_up: true, ..Reply::raw(204, "") };
    let hand = Hand::of(&fake, json!({ "authentication": "basic" })).await;
    hand.power().await;
    let order = hand.orders.off().await.expect("an order");
    fake.world().script.extend((0..9).map(|_| ("POST", hang())));
    let lost = loop {
        let call = hand.call_of(Duration::from_millis(400));
        let lost = hand.driver.power_off(&order, &call).await.expect_err("no answer");
        // A busy machine has not sent it.
        if fake.world().commands > 0 {
            break lost;
        }
    };
    assert_eq!(lost.effect, Effect::Unknown, "{lost}");
    let open = hand.quiesce().await.expect_err("nothing bounds it");
    assert!(open.effect == Effect::Unknown && open.detail.contains("max_life"), "{open}");
    // A later one that is answered says nothing of it.
    fake.world().script.clear();
    hand.off().await.expect("taken");
    hand.quiesce().await.expect_err("the first one may land still");

    let hand = Hand::of(&fake, json!({ "authentication": "basic", "max_life": "8s" })).await;
    assert_eq!(hand.driver.traits().max_in_flight.off, Some(Duration::from_secs(8)));
    hand.power().await;
    let (before, began) = (fake.world().commands, Instant::now());
    fake.world().script.extend((0..9).map(|_| ("POST", hang())));
    while fake.world().commands == before {
        let order = hand.orders.off().await.expect("an order");
        let call = hand.call_of(Duration::from_millis(400));
        hand.driver.power_off(&order, &call).await.expect_err("no answer");
    }
    let early = hand.driver.quiesce(&hand.call_of(Duration::from_millis(1))).await;
    assert!(early.is_err() || began.elapsed() >= Duration::from_secs(8), "not yet");
    hand.quiesce().await.expect("eight seconds have passed");
    assert!(began.elapsed() >= Duration::from_secs(8), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_hold_is_said_where_there_is_none() {
    let fake = Fake::start().await;
    fake.world().policy = None;
    let hand = Hand::of(&fake, json!({})).await;
    let found = hand.driver.inspect_hold(&hand.call()).await.expect("an answer");
    assert!(found.is_empty());
    let order = hand.orders.hold(&found).await.expect("an order");
    let report = hand.driver.engage_hold(&order, &hand.call()).await.expect("an answer");
    assert!(report.engaged.is_empty() && report.detail.contains("PowerRestorePolicy"), "{report:?}");
    assert_eq!(fake.world().commands, 0);
}

#[tokio::test]
async fn a_hold_stands_until_it_is_put_back() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    let found = hand.driver.inspect_hold(&hand.call()).await.expect("an answer");
    let order = hand.orders.hold(&found).await.expect("an order");
    let report = hand.driver.engage_hold(&order, &hand.call()).await.expect("taken");
    assert_eq!(report.engaged, ["restore policy always-off"]);
    assert_eq!(fake.world().policy.as_deref(), Some("AlwaysOff"));
    let now = hand.driver.inspect_hold(&hand.call()).await.expect("an answer");
    assert_eq!(hand.driver.engaged(&now), report.engaged);
    let order = hand.orders.unhold(&found).await.expect("an order");
    hand.driver.disengage_hold(&order, &hand.call()).await.expect("taken");
    assert_eq!(fake.world().policy.as_deref(), Some("LastState"));
}

#[tokio::test]
async fn a_task_counts_as_taken_and_is_over_before_the_session_is() {
    let fake = Fake::start().await;
    let task = Duration::from_millis(1_500);
    fake.world().task = Some(task);
    let hand = Hand::of(&fake, json!({})).await;
    let began = Instant::now();
    hand.off().await.expect("taken");
    if let Err(short) = hand.driver.quiesce(&hand.call_of(Duration::from_millis(400))).await {
        assert_eq!(short.effect, Effect::Unknown);
    }
    hand.quiesce().await.expect("it is over");
    assert!(began.elapsed() >= task, "it runs: {:?}", began.elapsed());
    assert!(fake.world().asked("TaskMonitors") >= 2);
}

/// The process, or its whole machine, stands still between the permit and the sending, for longer than a session lives.
#[derive(Debug)]
struct Stopped(Arc<Fake>);

impl Witness for Stopped {
    fn permitted(&self) {
        self.0.world().end_sessions();
    }
}

#[tokio::test]
async fn what_was_stopped_between_permit_and_sending_comes_to_nothing() {
    let fake = Arc::new(Fake::start().await);
    fake.world().set_power(false);
    let hand = Hand::of(&fake, json!({})).await;
    assert_eq!(hand.power().await, Power::Off);
    let order = hand.orders.on_in(hand.driver.session()).await.expect("an order");
    // The first permit is asked before anything else, the second with the connection standing.
    let stopped = hand.call().before(Arc::new(Stopped(fake.clone())));
    let late = hand.driver.power_on(order, &stopped).await.expect_err("its session is over");
    assert_eq!((late.kind, late.effect), (ErrorKind::Unreachable, Effect::DidNotHappen), "{late}");
    assert!(!fake.world().is_on());
    assert_eq!(fake.world().shown, ["token"], "it came, and came to nothing");
    assert_eq!(fake.world().open_sessions(), 0, "and no session was opened for it");
}

#[tokio::test]
async fn another_machine_in_its_place_is_not_spoken_for() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.driver.identify(&hand.call()).await.expect("an answer");
    fake.world().uuid = "11111111-64a1-4c2e-9d43-0f5a0a2b6c41";
    fake.world().set_power(false);
    let other = hand.read().await.expect_err("it is another");
    assert_eq!(other.kind, ErrorKind::IdentityMismatch, "{other}");
    hand.driver.identify(&hand.call()).await.expect("who decides on it is the engine");
    assert_eq!(hand.power().await, Power::Off);
}
