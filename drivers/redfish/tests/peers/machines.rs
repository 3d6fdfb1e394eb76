//! Whose machine it is (S13): a slot in which another machine stands, or none, or nobody knows which, says nothing of ours.

use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, PowerDriver};
use serde_json::{Value, json};

use crate::fake::{Fake, Reply, SYSTEM, Then, World};
use crate::subject::Hand;

const OWN: &str = "8d3f2f1e-64a1-4c2e-9d43-0f5a0a2b6c41";
const ANOTHER: &str = "11111111-64a1-4c2e-9d43-0f5a0a2b6c41";

/// One that knows whose machine it is, and read its power.
async fn identified(fake: &Fake) -> Hand {
    identified_with(fake, json!({})).await
}

async fn identified_with(fake: &Fake, more: Value) -> Hand {
    let hand = Hand::of(fake, more).await;
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
        fake.world().says_of_itself(uuid, "");
        let reading = hand.read().await.expect("an answer");
        assert_eq!(reading.power, Power::Unknown, "{uuid:?}: {reading:?}");
        assert!(reading.said.contains("nobody knows which machine"), "{reading:?}");
        no_on_goes(&fake, &hand, uuid).await;
    }
    // Nobody knew before: then it lowers the grade, and no more.
    let other = Hand::of(&fake, json!({})).await;
    other.driver.identify(&other.call()).await.expect("an answer");
    assert_eq!(other.power().await, Power::Off);
}

/// Many tell no UUID, or one of zeros: their serial number is told again in each answer.
#[tokio::test]
async fn a_system_that_is_known_by_its_serial_number_alone_is_asked_for_it_each_time() {
    for (more, last_reset) in
        [(json!({}), false), (json!({ "authentication": "basic" }), false), (json!({}), true)]
    {
        let fake = Fake::start().await;
        fake.world().says_of_itself("00000000-0000-0000-0000-000000000000", "SN-0041");
        fake.world().closes = true;
        fake.world().tells_reset = last_reset;
        let hand = identified_with(&fake, more.clone()).await;
        fake.world().serial = "SN-0042";
        for what in ["off", "on"] {
            hand.quiesce().await.expect("ended");
            let sent = if what == "off" { hand.off().await } else { hand.on().await };
            let error = sent.expect_err(what);
            assert_eq!(error.effect, Effect::DidNotHappen, "{what} {more}: {error}");
            let error = hand.read().await.expect_err("another machine");
            assert_eq!(error.kind, ErrorKind::IdentityMismatch, "{what} {more}: {error}");
            assert!(error.detail.contains("serial SN-0042") && error.detail.contains("SN-0041"), "{error}");
        }
        fake.world().serial = "";
        assert_eq!(hand.power().await, Power::Unknown, "{more}");
        assert!(hand.off().await.is_err() && hand.on().await.is_err(), "{more}");
        fake.world().serial = "SN-0041";
        assert_eq!(hand.power().await, Power::Off, "{more}");
        assert_eq!(fake.world().commands, 0, "{more}");
        hand.off().await.expect("it is ours");
    }
}

/// Where both were known one of the two is enough, and the other may not differ.
#[tokio::test]
async fn of_two_words_each_that_is_said_again_is_compared() {
    let fake = Fake::start().await;
    let hand = identified(&fake).await;
    for (uuid, serial, power) in [
        (OWN, "", Some(Power::Off)),
        ("", "SN-0041", Some(Power::Off)),
        (OWN, "SN-0042", None),
        (ANOTHER, "SN-0041", None),
        ("", "", Some(Power::Unknown)),
    ] {
        fake.world().says_of_itself(uuid, serial);
        assert_eq!(hand.read().await.ok().map(|reading| reading.power), power, "{uuid:?} {serial:?}");
    }
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
    fake.world().says_of_itself("", "");
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

#[tokio::test]
async fn without_a_session_nothing_goes_to_whoever_is_at_the_address_now() {
    for (uuid, kind) in [(ANOTHER, ErrorKind::IdentityMismatch), ("", ErrorKind::Unreachable)] {
        for more in [json!({ "authentication": "basic" }), json!({ "authentication": "session_or_basic" })] {
            let fake = Fake::start().await;
            fake.world().has_sessions = false;
            fake.world().closes = true;
            let hand = identified_with(&fake, more).await;
            fake.world().says_of_itself(uuid, "");
            for what in ["off", "on"] {
                let sent = if what == "off" { hand.off().await } else { hand.on().await };
                let error = sent.expect_err(what);
                assert_eq!((error.kind, error.effect), (kind, Effect::DidNotHappen), "{what}: {error}");
            }
            assert_eq!(fake.world().commands, 0);
        }
    }
}

#[tokio::test]
async fn without_a_session_no_hold_goes_elsewhere_than_where_its_policy_was_read() {
    let fake = Fake::start().await;
    fake.world().closes = true;
    let hand = identified_with(&fake, json!({ "authentication": "basic" })).await;
    let found = [("PowerRestorePolicy".to_owned(), "AlwaysOn".to_owned())].into_iter().collect();
    let hold = hand.orders.hold(&found).await.expect("an order");
    let unhold = hand.orders.unhold(&found).await.expect("an order");
    for holds in [true, false] {
        fake.world().uuid = OWN;
        let leads_elsewhere = |world: &mut World| world.uuid = ANOTHER;
        fake.world().then.push_back(("GET /redfish/v1/Systems/437", Then::is(leads_elsewhere)));
        let error = match holds {
            true => hand.driver.engage_hold(&hold, &hand.call()).await,
            false => hand.driver.disengage_hold(&unhold, &hand.call()).await,
        };
        let error = error.expect_err("another machine's policy");
        assert_eq!(error.effect, Effect::DidNotHappen, "{error}");
        assert_eq!(fake.world().commands, 0);
    }
}

/// As where the one before was silent, and ended meanwhile.
#[tokio::test]
async fn no_off_goes_in_a_session_that_was_opened_for_it_with_another_machine() {
    for (uuid, kind) in [(ANOTHER, ErrorKind::IdentityMismatch), ("", ErrorKind::Unreachable)] {
        let fake = Fake::start().await;
        let hand = identified(&fake).await;
        hand.quiesce().await.expect("ended");
        fake.world().says_of_itself(uuid, "");
        let error = hand.off().await.expect_err("another machine's session");
        assert_eq!((error.kind, error.effect), (kind, Effect::DidNotHappen), "{error}");
        assert_eq!(fake.world().commands, 0);
    }
}

#[tokio::test]
async fn no_off_goes_in_a_session_that_was_opened_while_the_manager_was_asked() {
    let fake = Fake::start().await;
    fake.world().closes = true;
    let hand = identified_with(&fake, json!({ "last_reset_time": true })).await;
    fake.world().script.push_back(("Managers", Reply::raw(401, "")));
    fake.world().then.push_back(("Managers", Then::is(|world| world.uuid = ANOTHER)));
    let error = hand.off().await.expect_err("another machine's session");
    assert_eq!((error.kind, error.effect), (ErrorKind::IdentityMismatch, Effect::DidNotHappen), "{error}");
    assert_eq!(fake.world().commands, 0);
}

#[tokio::test]
async fn on_a_connection_that_stands_it_is_not_asked_twice_whose_it_is() {
    let fake = Fake::start().await;
    fake.world().tells_reset = false;
    let hand = identified_with(&fake, json!({ "authentication": "basic" })).await;
    let before = fake.world().log.len();
    hand.off().await.expect("it is ours");
    assert_eq!(fake.world().log.len() - before, 1);
    fake.world().closes = true;
    hand.power().await;
    let before = fake.world().log.len();
    hand.off().await.expect("it is ours");
    let log = fake.world().log[before..].to_vec();
    assert!(log.len() == 2 && log[0].starts_with("GET") && log[1].starts_with("POST"), "{log:?}");
}

/// The service of another machine knows nothing of a task, which goes on where it was begun.
#[tokio::test]
async fn a_task_is_not_over_for_another_machine_s_service() {
    let fake = Fake::start().await;
    fake.world().task = Some(std::time::Duration::from_secs(3_600));
    fake.world().closes = true;
    let hand = identified_with(&fake, json!({ "authentication": "basic", "max_life": "1h" })).await;
    hand.off().await.expect("taken");
    fake.world().uuid = ANOTHER;
    fake.world().script.extend((0..9).map(|_| ("TaskMonitors", Reply::json(404, json!({})))));
    let error = hand.quiesce().await.expect_err("it may be running");
    assert_eq!((error.kind, error.effect), (ErrorKind::IdentityMismatch, Effect::Unknown), "{error}");
}
