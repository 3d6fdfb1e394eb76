//! Services that want their paths with a slash at the end, or without, and send there whoever asks otherwise.

use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, PowerDriver};
use serde_json::{Value, json};

use crate::fake::{Fake, Reply, SYSTEM, Slash, Then};
use crate::subject::Hand;

const RESET: &str = "/redfish/v1/Systems/437/Actions/ComputerSystem.Reset";

fn redirect(status: u16, to: &str) -> Reply {
    Reply::raw(status, "").with("Location", to)
}

async fn is_fenced_and_back(slash: Slash, status: u16, more: Value, closes: bool) {
    let fake = Fake::start().await;
    let service = match status {
        // By its whole address.
        308 => format!("https://{}", fake.address()),
        _ => String::new(),
    };
    fake.world().odd.slash = Some((slash, status, service));
    fake.world().closes = closes;
    let hand = Hand::of(&fake, more.clone()).await;
    let identified = hand.driver.identify(&hand.call()).await.expect("it is found");
    assert!(identified.identity.uuid.is_some());
    assert_eq!(hand.power().await, Power::On, "{slash:?} {status} {more}");
    let before = fake.world().log.len();
    assert_eq!(hand.power().await, Power::On);
    {
        let world = fake.world();
        let anew: Vec<&String> = world.log[before..].iter().filter(|line| !line.ends_with(" 200")).collect();
        assert!(anew.is_empty(), "what redirects is known: {anew:?}");
    }
    hand.off().await.expect("taken");
    assert_eq!(hand.power().await, Power::Off);
    hand.quiesce().await.expect("ended");
    assert_eq!(fake.world().open_sessions(), 0, "{slash:?} {status} {more}");
    assert_eq!(hand.power().await, Power::Off);
    hand.on().await.expect("taken");
    assert!(fake.world().is_on());
    // What was redirected was no command.
    assert_eq!(fake.world().commands, 2, "{slash:?} {status} {more}");
}

#[tokio::test]
async fn a_redirect_to_the_same_place_with_its_slash_is_followed_once() {
    for (slash, status) in
        [(Slash::Added, 308), (Slash::Added, 301), (Slash::Stripped, 307), (Slash::Stripped, 308)]
    {
        is_fenced_and_back(slash, status, json!({}), false).await;
        is_fenced_and_back(slash, status, json!({ "system": "437" }), true).await;
    }
    is_fenced_and_back(Slash::Added, 307, json!({ "authentication": "basic", "max_life": "5s" }), true).await;
}

/// Whoever leads later ends it all the same.
#[tokio::test]
async fn another_s_session_is_ended_where_its_place_is_redirected() {
    let fake = Fake::start().await;
    fake.world().odd.slash = Some((Slash::Added, 308, String::new()));
    let first = Hand::of(&fake, json!({})).await;
    first.off().await.expect("taken");
    let name = first.driver.session().expect("it has a place");
    let second = Hand::of(&fake, json!({})).await;
    second.driver.end_session(&name, &second.call()).await.expect("ended");
    assert_eq!(fake.world().open_sessions(), 1, "the second one's own");
}

#[tokio::test]
async fn a_redirect_to_another_place_host_port_or_scheme_is_not_followed() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    let (host, port) = (fake.address().ip(), fake.address().port());
    for to in [
        format!("https://elsewhere.example:{port}{SYSTEM}/"),
        format!("https://{host}{SYSTEM}/"),
        format!("https://{host}:1{SYSTEM}/"),
        format!("http://{host}:{port}{SYSTEM}/"),
        format!("//{host}:{port}{SYSTEM}/"),
        format!("{SYSTEM}//"),
        format!("{SYSTEM}/?x"),
        "/redfish/v1/Systems/438/".to_owned(),
        "437/".to_owned(),
    ] {
        fake.world().script.push_back((SYSTEM, redirect(308, &to)));
        let before = fake.world().log.len();
        let error = hand.read().await.expect_err("elsewhere");
        assert_eq!((error.kind, error.effect), (ErrorKind::Protocol, Effect::DidNotHappen), "{to}: {error}");
        assert!(error.detail.contains("redirect") && error.detail.contains("host"), "{to}: {error}");
        assert_eq!(fake.world().log.len(), before + 1, "{to}");
    }
    assert_eq!(hand.power().await, Power::On);
}

#[tokio::test]
async fn a_redirect_that_goes_round_is_told() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    let round = |place: &str| [redirect(308, &format!("{place}/")), redirect(308, place)];
    fake.world().script.extend(round(SYSTEM).map(|reply| (SYSTEM, reply)));
    let error = hand.read().await.expect_err("it goes round");
    assert!(error.kind == ErrorKind::Protocol && error.detail.contains("redirect"), "{error}");
    for is_on in [false, true] {
        hand.power().await;
        let before = fake.world().commands;
        fake.world().script.extend(round(RESET).map(|reply| ("Reset", reply)));
        let error = match is_on {
            true => hand.on().await.expect_err("it goes round"),
            false => hand.off().await.expect_err("it goes round"),
        };
        assert_eq!((error.kind, error.effect), (ErrorKind::Protocol, Effect::DidNotHappen), "{error}");
        assert_eq!(fake.world().asked(&format!("{RESET}/ ")), usize::from(is_on) + 1, "once");
        let world = fake.world();
        assert!(world.script.is_empty() && world.commands == before + 1, "{:?}", world.log);
    }
    assert!(fake.world().is_on());
}

/// The copy that is sent on is a command like the first, and asks whether it may go (S6).
#[tokio::test]
async fn who_leads_no_more_sends_nothing_on() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    let order = hand.orders.off().await.expect("an order");
    let (call, permit) = (hand.call(), hand.orders.permit());
    fake.world().script.push_back(("Reset", redirect(308, &format!("{RESET}/"))));
    fake.world().then.push_back(("Reset", Then::is(move |_| permit.end())));
    let error = hand.driver.power_off(&order, &call).await.expect_err("it leads no more");
    assert_eq!((error.kind, error.effect), (ErrorKind::NotLeader, Effect::DidNotHappen), "{error}");
    assert_eq!(fake.world().asked(RESET), 1);
    assert!(fake.world().is_on());
}
