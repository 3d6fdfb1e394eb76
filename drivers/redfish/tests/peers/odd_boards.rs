//! Boards that do what no specification says: their machines are fenced all the same.

use std::time::{Duration, Instant};

use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, PowerDriver};
use serde_json::json;

use crate::fake::{Fake, Reply, SYSTEM};
use crate::subject::Hand;

/// As iDRAC 8 does it: chunked, and the connection ends before the last chunk.
#[tokio::test]
async fn a_dead_token_that_is_refused_in_half_an_answer_is_renewed() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    fake.world().end_sessions();
    fake.world().cuts_refusals = true;
    assert_eq!(hand.power().await, Power::On);
    assert_eq!(fake.world().asked("POST /redfish/v1/SessionService/Sessions"), 2);
}

#[tokio::test]
async fn an_off_that_is_answered_by_half_a_body_was_taken() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    fake.world().after.push_back(("Reset", Reply::json(200, json!({ "said": "Success" })).cut()));
    hand.off().await.expect("its status says so");
    let mut world = fake.world();
    assert_eq!((world.is_on(), world.commands), (false, 1));
}

#[tokio::test]
async fn half_a_reading_is_asked_again_and_never_off() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    let off = json!({ "PowerState": "Off" });
    fake.world().script.extend([(SYSTEM, Reply::json(200, off).cut())]);
    assert_eq!(hand.power().await, Power::On);
    assert!(fake.world().script.is_empty(), "it was asked");
}

#[tokio::test]
async fn a_refusal_in_half_an_answer_is_one() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    fake.world().script.push_back(("Reset", Reply::json(405, json!({ "error": {} })).cut()));
    let error = hand.off().await.expect_err("no such action");
    assert_eq!((error.kind, error.effect), (ErrorKind::Unsupported, Effect::DidNotHappen), "{error}");
    let busy = Reply::json(503, json!({ "error": {} })).with("Retry-After", "600").cut();
    fake.world().script.extend((0..9).map(|_| ("Reset", busy.clone())));
    let order = hand.orders.off().await.expect("an order");
    let call = hand.call_of(Duration::from_secs(4));
    let error = hand.driver.power_off(&order, &call).await.expect_err("it is busy");
    assert_eq!((error.kind, error.effect), (ErrorKind::Throttled, Effect::DidNotHappen), "{error}");
}

/// The service is done with it, and says so a little later than a client would like.
#[tokio::test]
async fn a_deletion_that_is_answered_late_ends_its_session() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.off().await.expect("taken");
    fake.world().slow = Some(("DELETE", Duration::from_millis(2_500)));
    let began = Instant::now();
    hand.quiesce().await.expect("its end was told");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(fake.world().open_sessions(), 0);
}

#[tokio::test]
async fn a_deletion_that_was_lost_is_asked_for_again() {
    for lost in [1, 4] {
        let fake = Fake::start().await;
        let hand = Hand::of(&fake, json!({})).await;
        hand.off().await.expect("taken");
        let hangs_up = Reply { hangs_up: true, ..Reply::raw(204, "") };
        fake.world().after.extend((0..lost).map(|_| ("DELETE", hangs_up.clone())));
        hand.quiesce().await.expect("whoever asks again hears that the token is not known");
        assert_eq!(fake.world().open_sessions(), 0);
    }
}
