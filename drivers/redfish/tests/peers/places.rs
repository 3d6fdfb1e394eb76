//! Places that a service gives its sessions, and that are none (S8).

use std::time::{Duration, Instant};

use picket_driver::{Effect, ErrorKind, PowerDriver};
use serde_json::json;

use crate::fake::{Fake, Reply, Says};
use crate::subject::Hand;

const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";
const LOGIN: &str = "POST /redfish/v1/SessionService/Sessions";

fn made(token: &str, place: &str) -> Reply {
    Reply::json(201, json!({})).with("X-Auth-Token", token).with("Location", place)
}

#[tokio::test]
async fn a_place_that_no_session_has_is_no_name_and_is_never_deleted() {
    for place in [
        SESSIONS.to_owned(),
        format!("{SESSIONS}/"),
        "/redfish/v1/AccountService/Accounts/3".to_owned(),
        "/".to_owned(),
        format!("{SESSIONS}X/1"),
        format!("{SESSIONS}/.."),
        format!("{SESSIONS}/../Sessions"),
        format!("{SESSIONS}/%2e%2E"),
        format!("{SESSIONS}/1/Oem"),
        format!("{SESSIONS}/?1"),
        format!("{SESSIONS}/1?x"),
        // It would stand in the ledger, and in logs.
        format!("{SESSIONS}/token-1"),
    ] {
        let fake = Fake::start().await;
        fake.world().after.push_back((LOGIN, made("token-1", &place)));
        let hand = Hand::of(&fake, json!({})).await;
        hand.power().await;
        assert_eq!(hand.driver.session(), None, "{place}");
        hand.off().await.expect("nothing else bounds it than its life");
        let call = hand.call_of(Duration::from_secs(1));
        let open = hand.driver.quiesce(&call).await.expect_err("its token is known");
        assert_eq!(open.effect, Effect::Unknown, "{place}: {open}");
        fake.world().end_sessions();
        hand.quiesce().await.expect("its token is known no more");
        hand.power().await;
        assert_eq!(fake.world().asked("DELETE"), 0, "{place}");
        assert!(hand.driver.session().is_some(), "the next one has a place");
    }
}

#[tokio::test]
async fn a_place_may_be_said_in_many_ways() {
    for place in [
        format!("{SESSIONS}/1"),
        format!("{SESSIONS}/1/"),
        format!("https://bmc.example{SESSIONS}/1"),
        format!("{SESSIONS}/admin-0c.f_7~00@1"),
    ] {
        let fake = Fake::start().await;
        fake.world().after.push_back((LOGIN, made("token-1", &place)));
        let hand = Hand::of(&fake, json!({})).await;
        hand.power().await;
        assert!(hand.driver.session().is_some(), "{place}");
    }
}

#[tokio::test]
async fn two_sessions_at_one_place_are_not_told_apart() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.off().await.expect("taken");
    let first = hand.driver.session().expect("it has a place");
    let lost = Reply { hangs_up: true, ..Reply::raw(204, "") };
    fake.world().script.extend([("DELETE", lost.clone()), ("DELETE", lost)]);
    hand.driver.quiesce(&hand.call_of(Duration::from_millis(900))).await.expect_err("it may be open");
    let place = format!("{SESSIONS}/1");
    assert!(first.contains(&place), "{first}");
    fake.world().after.push_back((LOGIN, made("token-2", &place)));
    hand.power().await;
    assert_eq!(hand.driver.session(), None, "a successor would end one of the two");
}

#[tokio::test]
async fn our_own_session_in_anothers_place_says_where_it_is() {
    let fake = Fake::start().await;
    fake.world().reuses = true;
    let first = Hand::of(&fake, json!({})).await;
    first.power().await;
    let name = first.driver.session().expect("it has a session");
    fake.world().end_sessions();
    let second = Hand::of(&fake, json!({})).await;
    second.power().await;
    assert_eq!(second.driver.session().as_ref(), Some(&name));
    for body in [json!({}), json!({ "@odata.id": SESSIONS }), json!({ "@odata.id": format!("{SESSIONS}/2") })]
    {
        let said = body.to_string();
        fake.world().script.push_back(("GET /redfish/v1/SessionService/Sessions/1", Reply::json(200, body)));
        let error = second.driver.end_session(&name, &second.call()).await.expect_err("another resource");
        assert_eq!(error.effect, Effect::Unknown, "{said}: {error}");
    }
    second.driver.end_session(&name, &second.call()).await.expect("ours is there");
}

#[tokio::test]
async fn a_session_says_where_it_is_where_its_header_does_not() {
    let fake = Fake::start().await;
    let body = json!({ "@odata.id": format!("{SESSIONS}/7") });
    let reply = Reply::json(201, body).with("X-Auth-Token", "token-1").with("Location", SESSIONS);
    fake.world().after.push_back((LOGIN, reply));
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    assert!(
        hand.driver.session().is_some_and(|name| name.contains("Sessions/7")),
        "{:?}",
        hand.driver.session()
    );
}

/// Whoever asks whether a token is still known begins its idle limit anew, and waits for the whole of it from then on.
#[tokio::test]
async fn a_question_in_a_session_renews_it() {
    let fake = Fake::start().await;
    fake.world().after.push_back((LOGIN, made("token-1", SESSIONS)));
    let hand = Hand::of(&fake, json!({ "session_timeout": "2s" })).await;
    hand.power().await;
    hand.off().await.expect("taken");
    for _ in 0..2 {
        let began = Instant::now();
        match hand.driver.quiesce(&hand.call_of(Duration::from_millis(1_400))).await {
            // The machine stood still for so long.
            Ok(()) => assert!(began.elapsed() >= Duration::from_millis(1_900), "it was asked a moment ago"),
            Err(open) => assert_eq!(open.effect, Effect::Unknown, "{open}"),
        }
    }
}

#[tokio::test]
async fn a_place_without_its_slash_or_an_id_alone_is_a_place() {
    for says in [Says::Slashless, Says::Id] {
        let fake = Fake::start().await;
        fake.world().odd.says = says;
        let hand = Hand::of(&fake, json!({})).await;
        hand.off().await.expect("taken");
        let name = hand.driver.session().expect("it has a place");
        assert!(name.contains(&format!("{SESSIONS}/1 ")), "{says:?}: {name}");
        assert!(hand.driver.remarks().is_empty(), "{says:?}: {:?}", hand.driver.remarks());
        hand.quiesce().await.expect("ended");
        assert_eq!(fake.world().open_sessions(), 0, "{says:?}");
    }
}

/// An id says where a session is only where the service says nothing else: a place beside its collection is one that no id has.
#[tokio::test]
async fn a_login_that_does_not_say_its_place_is_used() {
    for says in [Says::Token, Says::Beside] {
        let fake = Fake::start().await;
        fake.world().odd.says = says;
        let hand = Hand::of(&fake, json!({})).await;
        hand.off().await.expect("taken");
        assert_eq!(hand.driver.session(), None, "{says:?}");
        let [remark] = &hand.driver.remarks()[..] else { panic!("{:?}", hand.driver.remarks()) };
        assert!(remark.contains("idle limit"), "{says:?}: {remark}");
        let call = hand.call_of(Duration::from_secs(1));
        let open = hand.driver.quiesce(&call).await.expect_err("its token is known");
        assert_eq!(open.effect, Effect::Unknown, "{says:?}: {open}");
        let mut world = fake.world();
        assert_eq!((world.asked("DELETE"), world.open_sessions()), (0, 1), "{says:?}");
    }
}

#[tokio::test]
async fn a_login_without_a_token_is_ended_and_not_begun_again_at_once() {
    for is_let in [true, false] {
        let fake = Fake::start().await;
        fake.world().odd.says = Says::Place;
        if !is_let {
            fake.world().script.extend((0..9).map(|_| ("DELETE", Reply::json(403, json!({})))));
        }
        let hand = Hand::of(&fake, json!({})).await;
        for _ in 0..10 {
            let error = hand.read().await.expect_err("it is of no use");
            assert_eq!((error.kind, error.effect), (ErrorKind::Protocol, Effect::DidNotHappen), "{error}");
            let says = if is_let { "was ended" } else { "stays there" };
            assert!(error.detail.contains("token") && error.detail.contains(says), "{error}");
        }
        let mut world = fake.world();
        let (logins, open) = (world.asked(LOGIN), world.open_sessions());
        assert!(logins < 5, "not one for each question: {logins}");
        assert_eq!((world.asked("DELETE"), open), (logins, if is_let { 0 } else { logins }));
    }
    // By name and password where that is allowed.
    let fake = Fake::start().await;
    fake.world().odd.says = Says::Place;
    let hand = Hand::of(&fake, json!({ "authentication": "session_or_basic" })).await;
    hand.power().await;
    hand.off().await.expect("taken");
    let mut world = fake.world();
    assert_eq!((world.open_sessions(), &world.shown[..]), (0, &["basic"][..]));
}
