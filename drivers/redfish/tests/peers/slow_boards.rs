//! Boards that take their time: each answer comes, and none of them soon.

use std::time::Duration;

use picket_core::power::Power;
use picket_driver::{Call, Effect, ErrorKind, PowerDriver};
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

/// The off is carried out at once, and said to be after 3.5 s, or after 7 s.
#[tokio::test]
async fn a_force_off_that_is_answered_late_is_told_from_its_asking_to_its_answer() {
    // All of its time, and little else: what is asked around it belongs to no command. On a busy machine the best of some counts.
    let tried = async |late: Duration| {
        let mut took = Vec::new();
        while took.len() < 5 && took.last().is_none_or(|took| *took >= late * 2) {
            took.push(answered_after(late).await);
        }
        assert!(took.iter().any(|took| *took < late * 2), "{late:?}: {took:?}");
    };
    tokio::join!(tried(Duration::from_millis(3_500)), tried(Duration::from_millis(7_000)));
}

/// How long the longer of two offs is told to have taken that are answered so late.
async fn answered_after(late: Duration) -> Duration {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({ "last_reset_time": true })).await;
    let before = hand.read().await.expect("a reading");
    fake.world().slow = Some(("ComputerSystem.Reset", late));
    let mut longest = Duration::ZERO;
    // The first one falls; the one that seals it finds the machine off.
    for _ in 0..2 {
        let called_at = hand.clock.boot();
        let taken = hand.off().await.unwrap_or_else(|error| panic!("{late:?}: {error}"));
        assert!(taken.asked_at >= called_at && taken.answered_at <= hand.clock.boot(), "{taken:?}");
        let took = taken.answered_at.since(taken.asked_at);
        assert!(took >= late, "{late:?}: {taken:?}");
        longest = longest.max(took);
        let after = hand.read().await.expect("a reading");
        assert_eq!(after.power, Power::Off);
        assert!(after.asked_at >= taken.answered_at, "{after:?}, {taken:?}");
        // Nothing was lost meanwhile.
        assert_eq!((taken.epoch, after.epoch), (before.epoch, before.epoch), "{late:?}");
    }
    assert_eq!(hand.driver.refused_session_at(), None);
    let world = fake.world();
    assert_eq!((world.commands, world.asked(LOGIN)), (2, 1), "each was sent once: {:?}", world.log);
    longest
}

/// Each off ends with its call, and may have happened: it is sent again, and what is read after that is of the same session and life.
#[tokio::test]
async fn a_force_off_that_outlasts_its_call_is_unknown_and_loses_nothing() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({ "last_reset_time": true })).await;
    let before = hand.read().await.expect("a reading");
    fake.world().slow = Some(("ComputerSystem.Reset", Duration::from_secs(7)));
    for _ in 0..2 {
        let order = hand.orders.off().await.expect("an order");
        let asked = hand.driver.power_off(&order, &hand.call_of(Duration::from_secs(2))).await;
        let error = asked.expect_err("it is not answered in time");
        assert_eq!((error.kind, error.effect), (ErrorKind::TimedOut, Effect::Unknown), "{error}");
        let after = hand.read().await.expect("a reading");
        assert_eq!((after.power, after.epoch), (Power::Off, before.epoch), "{after:?}");
    }
    assert_eq!(hand.driver.refused_session_at(), None);
    let world = fake.world();
    assert_eq!((world.commands, world.asked(LOGIN)), (2, 1), "{:?}", world.log);
}

/// At 1.3 s for each answer four fit into a call of 5 s, and six are needed: what the calls before learned stays, also where the board goes on
/// with what nobody waits for any more.
#[tokio::test]
async fn a_service_at_1_3_seconds_a_request_is_found_over_several_calls_of_5_seconds() {
    let found = async |one_at_a_time: bool| {
        // A busy machine may hear an answer after the end of its call more than once: the best of some counts.
        let mut asked = Vec::new();
        while asked.len() < 5 && asked.last().is_none_or(|times| *times > 2) {
            asked.push(found_over_several_calls(one_at_a_time).await);
        }
        // What was not answered in time is asked once more.
        assert!(asked.iter().any(|times| *times <= 2), "one at a time: {one_at_a_time}, {asked:?}");
    };
    tokio::join!(found(false), found(true));
}

/// How often that service was asked, at the most, for one thing of those that are asked once.
async fn found_over_several_calls(one_at_a_time: bool) -> usize {
    let fake = Fake::start().await;
    if one_at_a_time {
        fake.world().does_one_thing_at_a_time();
    }
    // Each line holds that.
    fake.world().slow = Some(("", Duration::from_millis(1_300)));
    let hand = Hand::of(&fake, json!({})).await;
    let mut calls = 1;
    while let Err(error) = hand.driver.read_power(&hand.call_of(Duration::from_secs(5))).await {
        assert_eq!(error.kind, ErrorKind::TimedOut, "{error}");
        assert!(calls < 20, "it is never found: {:?}", fake.world().log);
        calls += 1;
    }
    assert!(calls > 1, "six answers do not fit into a call");
    let before = fake.world().log.clone();
    // And it is known from now on.
    hand.power().await;
    let after = fake.world().log.split_off(before.len());
    assert!(
        after.iter().all(|line| line.contains(SYSTEM) || line.contains("Managers")),
        "{before:?}, {after:?}"
    );
    let times = |question: &str| before.iter().filter(|line| line.contains(question)).count();
    [ROOT, LOGIN, SYSTEMS, SESSION_SERVICE].map(times).into_iter().max().unwrap_or_default()
}
