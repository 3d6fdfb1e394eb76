//! Boards that take their time: each answer comes, and none of them soon.

use std::time::Duration;

use picket_core::power::Power;
use picket_driver::{Call, PowerDriver};
use serde_json::json;

use crate::fake::{Fake, Reply, SYSTEM};
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

const ROOT: &str = "GET /redfish/v1/ ";
const LOGIN: &str = "POST /redfish/v1/SessionService/Sessions";
const SESSION_SERVICE: &str = "GET /redfish/v1/SessionService ";
const SYSTEMS: &str = "GET /redfish/v1/Systems ";
const INFO: &str = "GET /redfish/v1/Systems/437/ResetActionInfo";

/// Each call ends at another question on the way, as with a board that needs a good part of a call for each answer.
#[tokio::test]
async fn a_service_that_takes_its_time_is_found_all_the_same() {
    let fake = Fake::start().await;
    fake.world().action_info = true;
    let hand = Hand::of(&fake, json!({})).await;
    let check = || Call::reading(tokio::time::Instant::now() + Duration::from_secs(30), hand.clock.clone());
    for question in ["GET /redfish/v1/Systems", SYSTEM, "ResetActionInfo", "GET /redfish/v1/SessionService"] {
        fake.world().script.push_back((question, Reply::raw(500, "")));
        hand.driver.read_power(&check()).await.expect_err(question);
        assert!(fake.world().script.is_empty(), "{question} was asked");
    }
    let before = fake.world().log.len();
    assert_eq!(hand.driver.read_power(&check()).await.expect("a reading").power, Power::On);
    let world = fake.world();
    let asked = [ROOT, LOGIN, SYSTEMS, INFO, SESSION_SERVICE].map(|question| world.asked(question));
    assert_eq!(asked, [1, 1, 2, 2, 2], "once, and once more where no answer came: {:?}", world.log);
    // The system, its SessionTimeout, and the reading's two.
    assert_eq!(world.log.len() - before, 4, "{:?}", &world.log[before..]);
}

#[tokio::test]
async fn what_was_learned_goes_with_its_session() {
    let fake = Fake::start().await;
    fake.world().action_info = true;
    let hand = Hand::of(&fake, json!({})).await;
    let asked = |questions: [&str; 3]| questions.map(|question| fake.world().asked(question));
    hand.driver.identify(&hand.call()).await.expect("an answer");
    hand.driver.identify(&hand.call()).await.expect("an answer");
    assert_eq!(asked([ROOT, INFO, SESSION_SERVICE]), [1, 1, 1]);
    // Another service may give the next one, with another limit.
    fake.world().end_sessions();
    hand.driver.identify(&hand.call()).await.expect("an answer");
    assert_eq!(asked([LOGIN, INFO, SESSION_SERVICE]), [2, 2, 2]);
    hand.driver.identify(&hand.call()).await.expect("an answer");
    assert_eq!(asked([ROOT, INFO, SESSION_SERVICE]), [2, 2, 2]);
    hand.quiesce().await.expect("closed");
    hand.driver.identify(&hand.call()).await.expect("an answer");
    assert_eq!(asked([ROOT, INFO, SESSION_SERVICE]), [3, 3, 3]);
}

#[tokio::test]
async fn whose_machine_it_is_is_asked_each_time() {
    let fake = Fake::start().await;
    for more in [json!({}), json!({ "system": "437" }), json!({ "authentication": "basic" })] {
        fake.world().says_of_itself("8d3f2f1e-64a1-4c2e-9d43-0f5a0a2b6c41", "SN-0041");
        let hand = Hand::of(&fake, more.clone()).await;
        hand.driver.identify(&hand.call()).await.expect("an answer");
        let before = fake.world().log.len();
        fake.world().says_of_itself("11111111-64a1-4c2e-9d43-0f5a0a2b6c41", "SN-0042");
        let identity = hand.driver.identify(&hand.call()).await.expect("an answer").identity;
        assert_eq!(identity.serial.as_deref(), Some("SN-0042"), "{more}");
        let world = fake.world();
        assert_eq!(world.log.len() - before, 2, "the system and its manager: {:?}", &world.log[before..]);
    }
}

#[tokio::test]
async fn a_system_that_moved_is_looked_for() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.driver.identify(&hand.call()).await.expect("an answer");
    fake.world().script.push_back((SYSTEM, Reply::raw(404, "")));
    hand.driver.identify(&hand.call()).await.expect("it is looked for at once");
    assert_eq!(fake.world().asked(SYSTEMS), 2);
}
