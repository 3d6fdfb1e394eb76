//! Whose machine it is (S13): a slot in which another machine stands, or none, or nobody knows which, says nothing of ours.

use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, PowerDriver};
use serde_json::{Value, json};

use crate::fake::{Fake, Reply, SYSTEM};
use crate::subject::Hand;

const ANOTHER: &str = "11111111-64a1-4c2e-9d43-0f5a0a2b6c41";

/// One that knows whose machine it is, and read its power.
async fn identified(fake: &Fake) -> Hand {
    let hand = Hand::of(fake, json!({})).await;
    hand.driver.identify(&hand.call()).await.expect("an answer");
    fake.world().set_power(false);
    assert_eq!(hand.power().await, Power::Off);
    hand
}

async fn no_on_goes(fake: &Fake, hand: &Hand, why: &str) {
    let error = hand.on().await.expect_err(why);
    assert_eq!((error.kind, error.effect), (ErrorKind::Unreachable, Effect::DidNotHappen), "{why}: {error}");
    assert_eq!(fake.world().commands, 0, "{why}");
}

#[tokio::test]
async fn a_slot_that_does_not_say_whose_it_is_any_more_says_nothing_of_power() {
    let fake = Fake::start().await;
    let hand = identified(&fake).await;
    for uuid in ["", "00000000-0000-0000-0000-000000000000", "unknown"] {
        fake.world().uuid = uuid;
        let reading = hand.read().await.expect("an answer");
        assert_eq!(reading.power, Power::Unknown, "{uuid:?}: {reading:?}");
        assert!(reading.said.contains("UUID"), "{reading:?}");
        no_on_goes(&fake, &hand, uuid).await;
    }
    // Nobody knew before: then it lowers the grade, and no more.
    let other = Hand::of(&fake, json!({})).await;
    other.driver.identify(&other.call()).await.expect("an answer");
    assert_eq!(other.power().await, Power::Off);
}

#[tokio::test]
async fn an_empty_slot_is_not_off() {
    let fake = Fake::start().await;
    let hand = identified(&fake).await;
    let nobody = Hand::of(&fake, json!({})).await;
    nobody.power().await;
    for hand in [&hand, &nobody] {
        let uuid = fake.world().uuid;
        let absent =
            json!({ "UUID": uuid, "PowerState": "Off", "Status": { "State": "Absent", "Health": null } });
        fake.world().script.push_back((SYSTEM, Reply::json(200, absent)));
        let reading = hand.read().await.expect("an answer");
        assert_eq!(reading.power, Power::Unknown, "{reading:?}");
        no_on_goes(&fake, hand, "absent").await;
    }
    for state in [json!("Disabled"), json!("StandbyOffline"), Value::Null] {
        let said = json!({ "UUID": fake.world().uuid, "PowerState": "Off", "Status": { "State": state } });
        fake.world().script.push_back((SYSTEM, Reply::json(200, said)));
        assert_eq!(hand.power().await, Power::Off, "{state}");
    }
}

#[tokio::test]
async fn no_on_and_no_hold_goes_to_another_machine() {
    let fake = Fake::start().await;
    let hand = identified(&fake).await;
    fake.world().uuid = ANOTHER;
    assert_eq!(hand.read().await.expect_err("another").kind, ErrorKind::IdentityMismatch);
    no_on_goes(&fake, &hand, "another machine").await;
    let found = [("PowerRestorePolicy".to_owned(), "LastState".to_owned())].into_iter().collect();
    let order = hand.orders.hold(&found).await.expect("an order");
    let error = hand.driver.engage_hold(&order, &hand.call()).await.expect_err("another's policy");
    assert_eq!((error.kind, error.effect), (ErrorKind::IdentityMismatch, Effect::DidNotHappen), "{error}");
    let order = hand.orders.unhold(&found).await.expect("an order");
    hand.driver.disengage_hold(&order, &hand.call()).await.expect_err("another's policy");
    fake.world().uuid = "";
    let order = hand.orders.hold(&found).await.expect("an order");
    let error = hand.driver.engage_hold(&order, &hand.call()).await.expect_err("nobody knows whose");
    assert_eq!(error.effect, Effect::DidNotHappen, "{error}");
    assert_eq!(fake.world().commands, 0);
}

#[tokio::test]
async fn no_on_goes_to_what_was_found_after_it_was_gone() {
    let fake = Fake::start().await;
    let hand = identified(&fake).await;
    fake.world().script.push_back((SYSTEM, Reply::json(404, json!({}))));
    assert_eq!(hand.power().await, Power::Unknown);
    // On the way to that everything is looked for anew.
    hand.driver.inspect_hold(&hand.call()).await.expect("an answer");
    no_on_goes(&fake, &hand, "power was not read since").await;
    assert_eq!(hand.power().await, Power::Off);
    hand.on().await.expect("it was");
}
