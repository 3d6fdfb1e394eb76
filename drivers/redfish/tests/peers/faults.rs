//! Services that answer oddly, late, too much, or not at all; and settings that do not fit the service.

use std::time::{Duration, Instant};

use picket_core::device::MaxInFlight;
use picket_core::power::Power;
use picket_driver::{Call, DriverError, Effect, ErrorKind, PowerDriver};
use picket_driver_redfish::RedfishKind;
use serde_json::{Value, json};

use crate::fake::{Fake, Reply, SYSTEM};
use crate::subject::Hand;

async fn found(fake: &Fake, more: Value) -> DriverError {
    Hand::of(fake, more).await.read().await.expect_err("it does not fit")
}

#[tokio::test]
async fn busy_services_are_asked_again_when_they_say() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    let busy = |status| Reply::json(status, json!({})).with("Retry-After", "1");
    fake.world().script.extend([("POST", busy(503)), ("POST", busy(429))]);
    let began = Instant::now();
    hand.off().await.expect("taken at last");
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(!fake.world().is_on());

    // Longer than the call lasts: said at once, and surely not done.
    fake.world().set_power(true);
    let long = Reply::json(503, json!({})).with("Retry-After", "120");
    fake.world().script.extend([("POST", long)]);
    let began = Instant::now();
    let error = hand.off().await.expect_err("busy");
    assert_eq!((error.kind, error.effect), (ErrorKind::Throttled, Effect::DidNotHappen), "{error}");
    assert!(began.elapsed() < Duration::from_secs(30), "not waited for");
}

#[tokio::test]
async fn a_503_without_a_time_may_have_been_done() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    fake.world().after.extend((0..9).map(|_| ("POST", Reply::raw(503, ""))));
    let order = hand.orders.off().await.expect("an order");
    let off = async |call: &Call| hand.driver.power_off(&order, call).await;
    let error = hand.fails(Duration::from_millis(600), off).await;
    assert_eq!(error.effect, Effect::Unknown, "{error}");
    assert!(!fake.world().is_on(), "it was done each time");
}

#[tokio::test]
async fn an_on_is_sent_once_whatever_becomes_of_it() {
    for (reply, kind, effect) in [
        (Reply::raw(500, ""), ErrorKind::Protocol, Effect::Unknown),
        (Reply::raw(503, ""), ErrorKind::Throttled, Effect::Unknown),
        (Reply::raw(503, "").with("Retry-After", "1"), ErrorKind::Throttled, Effect::DidNotHappen),
        (Reply::raw(403, ""), ErrorKind::Forbidden, Effect::DidNotHappen),
        (Reply { hangs_up: true, ..Reply::raw(204, "") }, ErrorKind::Unreachable, Effect::Unknown),
        (
            Reply { after: Duration::from_secs(60), ..Reply::raw(204, "") },
            ErrorKind::TimedOut,
            Effect::Unknown,
        ),
    ] {
        let fake = Fake::start().await;
        fake.world().set_power(false);
        let hand = Hand::of(&fake, json!({})).await;
        hand.power().await;
        fake.world().script.extend([("POST", reply.clone())]);
        let order = hand.orders.on_in(hand.driver.session()).await.expect("an order");
        let call = match kind {
            ErrorKind::TimedOut => hand.call_of(Duration::from_millis(1_500)),
            _ => hand.call(),
        };
        let error = hand.driver.power_on(order, &call).await.expect_err("it failed");
        assert_eq!((error.kind, error.effect), (kind, effect), "{reply:?}: {error}");
        assert_eq!(fake.world().commands, 1, "{reply:?}");
    }
}

#[tokio::test]
async fn already_off_is_believed_only_where_it_reads_off() {
    let fake = Fake::start().await;
    for status in [400, 409] {
        let hand = Hand::of(&fake, json!({})).await;
        fake.world().set_power(false);
        fake.world().script.extend([("POST", Reply::raw(200, "")), ("Reset", Reply::raw(status, ""))]);
        // The first of the script is the login's; the session comes from the second try.
        fake.world().script.pop_front();
        assert!(hand.off().await.expect("off already").already, "{status}");
        fake.world().set_power(true);
        fake.world().script.extend((0..40).map(|_| ("Reset", Reply::raw(status, ""))));
        let order = hand.orders.off().await.expect("an order");
        let call = hand.call_of(Duration::from_millis(700));
        let error = hand.driver.power_off(&order, &call).await.expect_err("it is on");
        // On a machine that is busy the call may end in the middle of an answer.
        assert!(matches!(error.kind, ErrorKind::Refused | ErrorKind::TimedOut), "{error}");
        fake.world().script.clear();
    }
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    let elsewhere = Reply::raw(307, "").with("Location", "/redfish/v1/Elsewhere");
    fake.world().script.extend([("POST", elsewhere.clone()), ("Systems", elsewhere)]);
    let error = hand.off().await.expect_err("elsewhere");
    assert_eq!((error.kind, error.effect), (ErrorKind::Protocol, Effect::DidNotHappen), "{error}");
    let error = hand.read().await.expect_err("elsewhere");
    assert!(error.detail.contains("redirect"), "{error}");
    assert_eq!(fake.world().asked("Elsewhere"), 0);
}

#[tokio::test]
async fn what_a_cache_had_kept_is_no_reading_and_no_life_of_the_manager() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({ "last_reset_time": true })).await;
    hand.power().await;
    let kept = |body: Value| Reply::json(200, body).with("Age", "0");
    for power in ["Off", "On"] {
        fake.world().script.push_back((SYSTEM, kept(json!({ "PowerState": power }))));
        let reading = hand.read().await.expect("an answer");
        assert_eq!(reading.power, Power::Unknown, "{reading:?}");
        assert!(reading.said.contains("cache"), "{reading:?}");
    }
    fake.world().script.push_back(("Managers", kept(json!({ "LastResetTime": "2026-11-22T01:00:00Z" }))));
    let error = hand.read().await.expect_err("nobody knows whether it restarted");
    assert!(error.detail.contains("cache"), "{error}");
    assert_eq!(hand.power().await, Power::On);
}

#[tokio::test]
async fn what_is_no_whole_answer_is_never_off() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    let off = json!({ "PowerState": "Off" }).to_string();
    let large = format!("{{\"PowerState\": \"Off\", \"x\": \"{}\"}}", "x".repeat(2 << 20));
    for reply in [
        Reply::raw(200, large),
        Reply::raw(200, &off[..off.len() - 1]),
        Reply::raw(200, ""),
        Reply::raw(404, off.clone()),
        Reply::raw(500, off.clone()),
        Reply::raw(304, off.clone()),
        Reply { hangs_up: true, ..Reply::raw(200, off.clone()) },
    ] {
        fake.world().script.extend([("GET", reply.clone())]);
        if let Ok(reading) = hand.read().await {
            assert_ne!(reading.power, Power::Off, "{} {reading:?}", reply.status);
        }
        fake.world().script.clear();
    }
    for says in [json!("PoweringOff"), json!("Paused"), json!(null), json!("off")] {
        fake.world().says = Some(says.clone());
        let reading = hand.read().await.expect("an answer");
        assert_eq!(reading.power, Power::Unknown, "{says}");
        // What it said is what a person reads in the end.
        let word = says.as_str().map_or_else(|| says.to_string(), str::to_owned);
        assert_eq!(reading.said, format!("PowerState {word}"));
    }
}

#[tokio::test]
async fn a_slow_drip_ends_with_the_call() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    let drip = Duration::from_millis(50);
    fake.world().script.extend([(
        "GET",
        Reply { drip, ..Reply::raw(200, json!({ "PowerState": "Off", "x": "x".repeat(99) }).to_string()) },
    )]);
    let call = hand.call_of(Duration::from_millis(500));
    let error = hand.driver.read_power(&call).await.expect_err("not whole in time");
    assert_eq!(error.kind, ErrorKind::TimedOut);
    assert_eq!(hand.power().await, Power::On, "the rest of it is not taken for the next answer");
}

#[tokio::test]
async fn a_certificate_that_does_not_match_is_not_believed() {
    let (fake, other) = (Fake::start().await, Fake::start().await);
    let error = found(&fake, json!({ "ca_file": other.ca_file() })).await;
    assert_eq!(error.kind, ErrorKind::Authentication, "{error}");
    let pinned = json!({ "ca_file": null, "certificate_sha256": other.digest() });
    let error = found(&fake, pinned).await;
    assert_eq!(error.kind, ErrorKind::Authentication, "{error}");
    assert_eq!(fake.world().log.len(), 0, "nothing was said to it");

    let pinned = json!({ "ca_file": null, "certificate_sha256": fake.digest() });
    assert_eq!(Hand::of(&fake, pinned).await.power().await, Power::On);
    let anyone = Hand::of(&fake, json!({ "ca_file": null, "accept_any_certificate": true })).await;
    let reading = anyone.read().await.expect("a reading");
    assert!(reading.said.contains("certificate not checked"), "{reading:?}");
    assert_eq!(anyone.driver.traits().grade, picket_core::device::Grade::Claimed);
    // Told by `picketd --check` and `picket check`, by the setting's name.
    let [remark] = &anyone.driver.remarks()[..] else { panic!("{:?}", anyone.driver.remarks()) };
    assert!(remark.contains("accept_any_certificate") && remark.contains("claimed"), "{remark}");
    assert!(Hand::of(&fake, json!({})).await.driver.remarks().is_empty());
}

#[tokio::test]
async fn without_force_off_there_is_no_driver_for_it() {
    let fake = Fake::start().await;
    fake.world().allowed = vec!["On", "GracefulShutdown"];
    let error = found(&fake, json!({})).await;
    assert!(error.kind == ErrorKind::Unsupported && error.detail.contains("GracefulShutdown"), "{error}");
    fake.world().action_info = true;
    assert_eq!(found(&fake, json!({})).await.kind, ErrorKind::Unsupported);
    fake.world().allowed = vec!["ForceOn", "ForceOff"];
    let hand = Hand::of(&fake, json!({})).await;
    hand.off().await.expect("the action's info names it");
    hand.power().await;
    hand.on().await.expect("by its other name");
    assert!(fake.world().is_on());
}

#[tokio::test]
async fn a_system_is_named_or_the_only_one() {
    let fake = Fake::start().await;
    let error = found(&fake, json!({ "system": "438" })).await;
    assert!(error.kind == ErrorKind::Settings && error.detail.contains("\"437\""), "{error}");
    fake.world().others = vec!["a system without a path"];
    let error = found(&fake, json!({})).await;
    assert!(error.kind == ErrorKind::Protocol && error.detail.contains("list of systems"), "{error}");
    fake.world().others = vec!["1", "2"];
    let error = found(&fake, json!({})).await;
    assert!(error.kind == ErrorKind::Settings && error.detail.contains("several systems"), "{error}");
    assert_eq!(Hand::of(&fake, json!({ "system": "437" })).await.power().await, Power::On);
}

/// A template with a fixed place: the off would go to the system that has it.
#[tokio::test]
async fn of_several_systems_one_whose_reset_is_another_ones_is_not_switched() {
    let fake = Fake::start().await;
    fake.world().reset_at = "/redfish/v1/Systems/4371/Actions/ComputerSystem.Reset";
    let error = found(&fake, json!({ "system": "437" })).await;
    let told = error.detail.contains("Systems/4371/Actions") && error.detail.contains("another one");
    assert!(error.kind == ErrorKind::Unsupported && told, "{error}");
}

#[tokio::test]
async fn the_only_one_of_a_list_that_is_not_whole_is_not_taken_for_the_only_one() {
    let fake = Fake::start().await;
    let one = json!({ "@odata.id": SYSTEM });
    for list in [
        json!({}),
        json!({ "Members": {} }),
        json!({ "Members": [one], "Members@odata.count": 2 }),
        json!({ "Members": [one], "Members@odata.count": "1" }),
        json!({ "Members": [one], "Members@odata.nextLink": "Systems?skip=1" }),
        json!({ "Members": [one], "Members@odata.nextLink": "/redfish/v1/Systems?skip=1" }),
        json!({ "Members": [one, {}] }),
    ] {
        fake.world().script.push_back(("GET /redfish/v1/Systems", Reply::json(200, list.clone())));
        let error = found(&fake, json!({})).await;
        assert!(
            error.kind == ErrorKind::Protocol && error.detail.contains("list of systems"),
            "{list}: {error}"
        );
    }
    fake.world().script.clear();
    assert_eq!(Hand::of(&fake, json!({})).await.power().await, Power::On);
}

#[tokio::test]
async fn settings_that_promise_more_than_the_service_keeps_are_told() {
    let fake = Fake::start().await;
    fake.world().session_timeout = 3_600;
    // At a check, which may only read.
    let hand = Hand::of(&fake, json!({})).await;
    let check = Call::reading(tokio::time::Instant::now() + Duration::from_secs(30), hand.clock.clone());
    let error = hand.driver.read_power(&check).await.expect_err("it does not fit");
    assert!(error.kind == ErrorKind::Settings && error.detail.contains("\"3600s\""), "{error}");
    fake.world().session_timeout = 60;
    Hand::of(&fake, json!({})).await.read().await.expect("shorter is as well");

    fake.world().last_reset = json!(null);
    let error = found(&fake, json!({ "last_reset_time": true })).await;
    assert!(error.kind == ErrorKind::Settings && error.detail.contains("last_reset_time = false"), "{error}");
    fake.world().has_sessions = false;
    let error = found(&fake, json!({})).await;
    assert!(error.kind == ErrorKind::Unsupported && error.detail.contains("\"basic\""), "{error}");
}

#[tokio::test]
async fn a_timeout_that_was_raised_keeps_no_off_back_and_what_is_open_is_waited_out_for_longer() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    let settings = hand.driver.longest_life();
    assert_eq!(settings, hand.driver.traits().max_in_flight);
    fake.world().session_timeout = 3_600;
    hand.driver.identify(&hand.call()).await.expect("a fence goes on");
    assert_eq!(hand.power().await, Power::On);
    hand.off().await.expect("an off is never refused for that");
    assert!(!fake.world().is_on());
    let longer = hand.driver.longest_life();
    assert_eq!((longer.off, longer.on), (Some(Duration::from_secs(3_780)), Some(Duration::from_secs(7_560))));
    // "Never", by the largest number there is.
    fake.world().session_timeout = u64::MAX;
    hand.driver.identify(&hand.call()).await.expect("a fence goes on");
    hand.off().await.expect("an off is never refused for that");
    assert_eq!(hand.driver.longest_life(), MaxInFlight { off: None, on: None }, "nothing bounds it");
    fake.world().session_timeout = 3_600;
    // Nor where it does not say it at all.
    fake.world().set_power(true);
    let other = Hand::of(&fake, json!({})).await;
    fake.world().script.push_back(("GET /redfish/v1/SessionService", Reply::raw(500, "")));
    other.off().await.expect("an off is never refused for that either");
    assert!(fake.world().script.is_empty(), "it was asked");
    fake.world().session_timeout = 1_800;
    hand.driver.identify(&hand.call()).await.expect("known");
    assert_eq!(hand.driver.longest_life(), settings);
}

#[tokio::test]
async fn a_service_that_lost_the_system_says_unknown_and_is_looked_at_anew() {
    let fake = Fake::start().await;
    for more in [json!({}), json!({ "last_reset_time": true })] {
        let hand = Hand::of(&fake, more).await;
        hand.power().await;
        fake.world().script.extend([(SYSTEM, Reply::json(404, json!({})))]);
        assert_eq!(hand.power().await, Power::Unknown);
        let before = fake.world().asked("GET /redfish/v1/ ");
        assert_eq!(hand.power().await, Power::On);
        assert!(fake.world().asked("GET /redfish/v1/ ") > before);
    }
}

#[tokio::test]
async fn only_so_many_connections_are_kept_that_did_nothing_but_look() {
    let fake = Fake::start().await;
    let kind = RedfishKind::keeping(1);
    let settings = fake.settings(json!({}));
    let first = Hand::with(kind.device(&settings).expect("right")).await;
    let second = Hand::with(kind.device(&settings).expect("right")).await;
    for _ in 0..3 {
        first.power().await;
        second.power().await;
    }
    assert_eq!(fake.world().connections, 4, "one for the first, one each for the second's");
    // What carried a command is kept for what follows.
    second.off().await.expect("taken");
    second.power().await;
    second.power().await;
    assert_eq!(fake.world().connections, 5);
}
