//! Boards that do what no specification says: their machines are fenced all the same.

use std::time::{Duration, Instant};

use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, PowerDriver};
use serde_json::json;

use crate::fake::{Etag, Fake, Reply, SYSTEM};
use crate::subject::{Hand, LONGEST};

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

/// S16: nobody is sent to the manual of a library.
#[tokio::test]
async fn a_board_whose_answers_are_never_whole_is_told_as_one() {
    let fake = Fake::start().await;
    fake.world().cuts = true;
    let hand = Hand::of(&fake, json!({})).await;
    let error = hand.fails(Duration::from_secs(6), async |call| hand.driver.read_power(call).await).await;
    assert_eq!((error.kind, error.effect), (ErrorKind::Unreachable, Effect::DidNotHappen), "{error}");
    let words = "the service ended the connection before its answer was whole";
    assert!(error.detail.contains(words) && !error.detail.contains("://"), "{error}");
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
    let error = hand.driver.power_off(&order, &hand.call()).await.expect_err("it is busy");
    assert_eq!((error.kind, error.effect), (ErrorKind::Throttled, Effect::DidNotHappen), "{error}");
}

/// What it answers to an off of a machine that is off says nothing of that: it is told as the board's own refusal, and the judge looks.
#[tokio::test]
async fn a_repeat_that_is_refused_is_told_as_the_board_s_own_answer() {
    for (status, is_final) in [(500, false), (403, true), (501, true), (422, false)] {
        let fake = Fake::start().await;
        let hand = Hand::of(&fake, json!({})).await;
        hand.power().await;
        let taken = hand.off().await.expect("it is on");
        let refuses = Reply::json(status, json!({ "error": {} }));
        fake.world().script.extend((0..9).map(|_| ("Reset", refuses.clone())));
        let order = hand.orders.off().await.expect("an order");
        let before = hand.clock.boot();
        let mut life = Duration::from_secs(2);
        let error = loop {
            let error = hand.driver.power_off(&order, &hand.call_of(life)).await.expect_err("it is refused");
            // The first of its copies, and the last of its answers. A busy machine may hear it after the call's end.
            let is_whole = error.refusal.is_some() && (fake.world().script.len() < 8) == (status == 500);
            if is_whole || life > LONGEST {
                break error;
            }
            life *= 2;
        };
        let refusal = error.refusal.expect("an answer to the off itself");
        assert!(before <= refusal.asked_at && refusal.asked_at <= refusal.answered_at, "{refusal:?}");
        assert_eq!((refusal.epoch, error.is_final), (taken.epoch, is_final), "{status}: {error}");
        assert_eq!(fake.world().script.len() < 8, status == 500, "{status}");
    }
    // What stands in front of it speaks of itself.
    let others = [503, 404, 502, 504, 408].map(|status| Reply::json(status, json!({})));
    for reply in others.into_iter().chain([Reply::raw(307, "").with("Location", "/elsewhere")]) {
        let fake = Fake::start().await;
        let hand = Hand::of(&fake, json!({})).await;
        hand.power().await;
        fake.world().script.extend((0..99).map(|_| ("Reset", reply.clone())));
        let order = hand.orders.off().await.expect("an order");
        let error =
            hand.driver.power_off(&order, &hand.call_of(Duration::from_secs(2))).await.expect_err("not now");
        assert_eq!((error.refusal, error.is_final), (None, false), "{error}");
    }
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

const LOGIN: &str = "POST /redfish/v1/SessionService/Sessions";

#[tokio::test]
async fn a_root_that_wants_credentials_is_asked_with_them() {
    for (status, place) in [(401, None), (403, None), (401, Some("/redfish/v1/Sessions"))] {
        let fake = Fake::start().await;
        fake.world().odd.root_is_refused = Some(status);
        fake.world().odd.sessions_at = place;
        let hand = Hand::of(&fake, json!({})).await;
        assert_eq!(hand.power().await, Power::On, "{status} {place:?}");
        assert!(hand.driver.session().is_some(), "its session has a place");
        hand.off().await.expect("taken");
        assert_eq!(fake.world().shown, ["token"]);
        hand.quiesce().await.expect("ended");
        assert_eq!(fake.world().open_sessions(), 0, "{status} {place:?}");
        hand.power().await;
        let logins = fake.world().asked(LOGIN);
        assert_eq!(logins, if place.is_some() { 1 } else { 2 }, "the place that worked is known");
    }
}

#[tokio::test]
async fn links_that_strangers_do_not_see_are_asked_for() {
    for more in [json!({}), json!({ "authentication": "session_or_basic" })] {
        let fake = Fake::start().await;
        fake.world().hides_from_strangers = true;
        assert_eq!(Hand::of(&fake, more.clone()).await.power().await, Power::On, "{more}");
        fake.world().odd.root_is_bare = true;
        let hand = Hand::of(&fake, more.clone()).await;
        assert_eq!(hand.power().await, Power::On, "{more}");
        hand.off().await.expect("taken");
        assert_eq!(fake.world().shown, ["token"], "{more}");
        // Once a session, and not with each question.
        assert_eq!(fake.world().asked("GET /redfish/v1/ "), 4, "{more}");
    }
}

/// A root that shows strangers its systems and no sessions has none: no password is tried where nobody said that it belongs.
#[tokio::test]
async fn no_place_for_sessions_is_guessed_where_the_root_shows_its_systems() {
    let fake = Fake::start().await;
    fake.world().has_sessions = false;
    let hand = Hand::of(&fake, json!({})).await;
    let error = hand.read().await.expect_err("it has no sessions");
    assert_eq!((error.kind, error.effect), (ErrorKind::Unsupported, Effect::DidNotHappen), "{error}");
    assert_eq!(fake.world().asked("POST"), 0);
}

#[tokio::test]
async fn a_login_that_is_refused_where_basic_works_is_gone_without() {
    for status in [400, 401, 403] {
        let fake = Fake::start().await;
        fake.world().odd.refuses_logins = Some(status);
        let hand = Hand::of(&fake, json!({ "authentication": "session_or_basic" })).await;
        assert_eq!(hand.power().await, Power::On, "{status}");
        hand.off().await.expect("taken");
        assert_eq!(fake.world().shown, ["basic"], "{status}");
        assert_eq!(hand.driver.longest_life().off, None, "{status}: no session bounds it");
        assert_eq!(fake.world().asked(LOGIN), 1, "{status}");
        // Who wants sessions alone is refused, as ever.
        let error = Hand::of(&fake, json!({})).await.read().await.expect_err("no session");
        assert_eq!(error.kind, ErrorKind::Authentication, "{status}: {error}");
    }
}

/// Its directory was down for a moment, and it takes no basic authentication: it is not gone without sessions for ten minutes.
#[tokio::test]
async fn a_login_that_is_refused_in_passing_where_basic_never_works_is_tried_again() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({ "authentication": "session_or_basic" })).await;
    let refused = || Reply::json(401, json!({ "error": {} }));
    fake.world().script.push_back(("Sessions", refused()));
    fake.world().odd.no_basic = true;
    hand.driver.read_power(&hand.call()).await.expect_err("neither is taken");
    let until = Instant::now() + 2 * LONGEST;
    while hand.driver.read_power(&hand.call()).await.is_err() {
        assert!(Instant::now() < until, "the login is not tried again");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_wrong_password_is_not_tried_twice_as_often() {
    let fake = Fake::start().await;
    let path = fake.ca_file().with_file_name("wrong");
    std::fs::write(&path, "wrong-hunter3").expect("written");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("ours");
    let more = json!({ "authentication": "session_or_basic", "password_file": path });
    let hand = Hand::of(&fake, more).await;
    let tries = |fake: &Fake| fake.world().log.iter().filter(|line| line.ends_with(" 401")).count();
    for expected in [2, 3] {
        while tries(&fake) < expected {
            let error = hand.read().await.expect_err("nobody knows it");
            assert_eq!(error.kind, ErrorKind::Authentication, "{error}");
            tokio::task::yield_now().await;
        }
    }
    let logins = fake.world().asked(LOGIN);
    assert_eq!((tries(&fake), logins), (3, 2), "one try more, and not with each one");
}

/// A web server in front of it packs whatever it passes on.
#[tokio::test]
async fn a_packed_answer_is_unpacked() {
    let fake = Fake::start().await;
    fake.world().odd.packs = true;
    let hand = Hand::of(&fake, json!({ "last_reset_time": true })).await;
    assert_eq!(hand.power().await, Power::On);
    hand.off().await.expect("taken");
    assert_eq!(hand.power().await, Power::Off);
    hand.quiesce().await.expect("ended");
    fake.world().odd.packs = false;
    for coding in ["br", "gzip, gzip"] {
        let off = Reply::json(200, json!({ "PowerState": "Off" })).with("Content-Encoding", coding);
        fake.world().script.push_back((SYSTEM, off));
        let reading = hand.read().await.expect("an answer");
        assert_eq!(reading.power, Power::Unknown, "{reading:?}");
        assert!(reading.said.contains(coding), "{reading:?}");
    }
}

#[tokio::test]
async fn a_version_that_is_weak_or_odd_keeps_no_hold_away() {
    let plain = Etag::default();
    for etag in [
        Etag { wants: Some("\"7\""), ..plain },
        Etag { header: Some("\"\"7\"\""), wants: Some("\"7\""), ..plain },
        Etag { header: Some("\"7\""), wants: None, ..plain },
        Etag { header: Some("\"7\""), wants: None, refuses: 400, ..plain },
        Etag { header: None, body: Some("\"7\""), wants: Some("\"7\""), refuses: 428 },
        Etag { header: None, body: None, wants: Some("*"), refuses: 428 },
        Etag { header: Some("\"7\""), wants: Some("*"), refuses: 428, ..plain },
    ] {
        let fake = Fake::start().await;
        fake.world().odd.etag = etag;
        let hand = Hand::of(&fake, json!({})).await;
        let found = hand.driver.inspect_hold(&hand.call()).await.expect("an answer");
        let order = hand.orders.hold(&found).await.expect("an order");
        let report = hand.driver.engage_hold(&order, &hand.call()).await.expect("an answer");
        assert_eq!(report.engaged, ["restore policy always-off"], "{etag:?}: {report:?}");
        assert_eq!(fake.world().policy.as_deref(), Some("AlwaysOff"), "{etag:?}");
        let order = hand.orders.unhold(&found).await.expect("an order");
        hand.driver.disengage_hold(&order, &hand.call()).await.expect("taken");
        assert_eq!(fake.world().policy.as_deref(), Some("LastState"), "{etag:?}");
    }
    // None that it takes: no hold, and that is said.
    for (refuses, tries) in [(400, 2), (412, 4), (428, 4)] {
        let fake = Fake::start().await;
        fake.world().odd.etag = Etag { wants: Some("another"), refuses, ..plain };
        let hand = Hand::of(&fake, json!({})).await;
        let found = hand.driver.inspect_hold(&hand.call()).await.expect("an answer");
        let order = hand.orders.hold(&found).await.expect("an order");
        let report = hand.driver.engage_hold(&order, &hand.call()).await.expect("an answer");
        let says = format!("HTTP {refuses}");
        assert!(report.engaged.is_empty() && report.detail.contains(&says), "{report:?}");
        assert_eq!(fake.world().commands, tries, "{refuses}");
    } // Nor is it the version, where the service names what it does not take.
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    let found = hand.driver.inspect_hold(&hand.call()).await.expect("an answer");
    let order = hand.orders.hold(&found).await.expect("an order");
    let message = json!({ "MessageId": "Base.1.8.PropertyNotWritable", "Message": "read only" });
    let refusal = json!({ "error": { "@Message.ExtendedInfo": [message] } });
    fake.world().script.push_back(("PATCH", Reply::json(400, refusal)));
    let report = hand.driver.engage_hold(&order, &hand.call()).await.expect("an answer");
    assert!(report.engaged.is_empty() && report.detail.contains("read only"), "{report:?}");
    assert_eq!(fake.world().commands, 1);
}
