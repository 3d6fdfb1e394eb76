//! What is told of a service at its check: what of it is borne, each once, and what keeps a fence from its end.

use picket_core::power::Power;
use picket_driver::PowerDriver;
use serde_json::json;

use crate::fake::{Etag, Fake};
use crate::subject::Hand;

/// How many of its remarks have that in them.
fn told(hand: &Hand, what: &str) -> usize {
    hand.driver.remarks().iter().filter(|remark| remark.contains(what)).count()
}

#[tokio::test]
async fn answers_that_are_packed_unasked_are_remarked_once() {
    let fake = Fake::start().await;
    let hand = Hand::of(&fake, json!({})).await;
    hand.power().await;
    assert_eq!(told(&hand, "gzip"), 0, "{:?}", hand.driver.remarks());
    fake.world().odd.packs = true;
    hand.power().await;
    hand.off().await.expect("taken");
    assert_eq!(told(&hand, "gzip"), 1, "{:?}", hand.driver.remarks());
    // It is known from then on.
    fake.world().odd.packs = false;
    hand.power().await;
    assert_eq!(told(&hand, "gzip"), 1, "{:?}", hand.driver.remarks());
}

#[tokio::test]
async fn a_version_that_is_taken_in_another_form_is_remarked_once() {
    let plain = Etag::default();
    for (etag, count) in [
        (plain, 0),
        (Etag { header: None, wants: None, ..plain }, 0),
        (Etag { wants: Some("\"7\""), ..plain }, 1),
        (Etag { header: Some("\"\"7\"\""), wants: Some("\"7\""), ..plain }, 1),
        (Etag { header: None, body: None, wants: Some("*"), refuses: 428 }, 1),
        (Etag { header: Some("\"7\""), wants: None, refuses: 400, ..plain }, 1),
    ] {
        let fake = Fake::start().await;
        fake.world().odd.etag = etag;
        let hand = Hand::of(&fake, json!({})).await;
        let found = hand.driver.inspect_hold(&hand.call()).await.expect("an answer");
        let order = hand.orders.hold(&found).await.expect("an order");
        let report = hand.driver.engage_hold(&order, &hand.call()).await.expect("an answer");
        assert_eq!(report.engaged.len(), 1, "{etag:?}: {report:?}");
        let order = hand.orders.unhold(&found).await.expect("an order");
        hand.driver.disengage_hold(&order, &hand.call()).await.expect("taken");
        assert_eq!(told(&hand, "ETag"), count, "{etag:?}: {:?}", hand.driver.remarks());
    }
}

/// A fence comes to its end by it, and the way back does not: whoever reads that at the unfence reads it too late.
#[tokio::test]
async fn a_board_that_offers_no_absolute_on_is_remarked_before_a_fence() {
    const WORDS: &str = "offers neither On nor ForceOn";
    for (allowed, count) in [
        (vec!["On", "ForceOff"], 0),
        (vec!["ForceOn", "ForceOff"], 0),
        (vec!["ForceOff", "PushPowerButton", "ForceRestart"], 1),
    ] {
        let fake = Fake::start().await;
        fake.world().allowed = allowed.clone();
        let hand = Hand::of(&fake, json!({})).await;
        hand.power().await;
        assert_eq!(told(&hand, WORDS), count, "{allowed:?}: {:?}", hand.driver.remarks());
        assert_eq!(hand.driver.obstacles(), [""; 0], "it can be fenced");
        hand.off().await.expect("taken");
        assert_eq!(hand.power().await, Power::Off);
        let on = hand.on().await;
        let is_told = on.is_err_and(|error| error.detail.contains(WORDS));
        assert_eq!(is_told, count == 1, "{allowed:?}");
        assert_eq!(fake.world().is_on(), count == 0, "{allowed:?}");
    }
}

/// S16: OpenBMC names the roles of a session where that is made. Who may only read switches nothing off.
#[tokio::test]
async fn an_account_that_may_only_read_is_an_obstacle() {
    for (roles, is_told) in [
        (Some(json!(["ReadOnly"])), true),
        (Some(json!(["Operator"])), false),
        (Some(json!(["ReadOnly", "Operator"])), false),
        (Some(json!(["Watcher"])), false),
        (Some(json!([])), false),
        (Some(json!("ReadOnly")), false),
        (None, false),
    ] {
        let fake = Fake::start().await;
        fake.world().odd.roles = roles.clone();
        let hand = Hand::of(&fake, json!({})).await;
        assert_eq!(hand.driver.obstacles(), [""; 0]);
        hand.driver.identify(&hand.call()).await.expect("an answer");
        let obstacles = hand.driver.obstacles();
        assert_eq!(!obstacles.is_empty(), is_told, "{roles:?}: {obstacles:?}");
        assert!(obstacles.iter().all(|told| told.contains("ReadOnly")), "{obstacles:?}");
        // The next session may have others.
        fake.world().end_sessions();
        fake.world().odd.roles = Some(json!(["Administrator"]));
        hand.driver.identify(&hand.call()).await.expect("an answer");
        assert_eq!(hand.driver.obstacles(), [""; 0], "{roles:?}");
    }
}
