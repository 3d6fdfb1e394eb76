//! Boards that take their time: each answer comes, and none of them soon.

use std::time::Duration;

use picket_core::power::Power;
use picket_driver::PowerDriver;
use serde_json::json;

use crate::fake::Fake;
use crate::subject::Hand;

/// The time in which its manager is asked belongs to the reading, and is no gap between it and the next one.
#[tokio::test]
async fn a_reading_is_answered_when_its_manager_is() {
    let slow = Duration::from_millis(300);
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({ "last_reset_time": true })).await;
    hand.power().await;
    fake.world().slow = Some(("Managers", slow));
    let reading = hand.read().await.expect("a reading");
    assert_eq!(reading.power, Power::On);
    assert!(reading.answered_at.since(reading.asked_at) >= slow, "{reading:?}");
    let next = hand.read().await.expect("a reading");
    assert!(next.asked_at >= reading.answered_at, "{reading:?} {next:?}");

    // A manager that is not asked, or says nothing, has no part in it.
    for (more, tells_reset) in [(json!({ "last_reset_time": false }), true), (json!({}), false)] {
        fake.world().tells_reset = tells_reset;
        let hand = Hand::of(&fake, more).await;
        let reading = hand.driver.read_power(&hand.call()).await.expect("a reading");
        assert_eq!(reading.epoch, None, "{reading:?}");
    }
}
