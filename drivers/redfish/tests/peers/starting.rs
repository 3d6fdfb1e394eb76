//! Boards that start: they answer, so nobody takes them for silent, and they get their off as soon as they take one.

use std::time::{Duration, Instant};

use picket_core::power::Power;
use picket_driver::{DriverError, Effect, ErrorKind, PowerDriver};
use serde_json::json;

use crate::fake::Fake;
use crate::subject::Hand;

/// How long one call may last: nothing here waits for its end.
const CALL: Duration = Duration::from_secs(30);

/// What it says to a reading and to an off while it starts; whoever asks is answered at once, and no off is sent.
async fn says(hand: &Hand, fake: &Fake) -> [DriverError; 2] {
    let began = Instant::now();
    let read = hand.driver.read_power(&hand.call_of(CALL)).await.expect_err("it is starting");
    let order = hand.orders.off().await.expect("an order");
    let off = hand.driver.power_off(&order, &hand.call_of(CALL)).await.expect_err("it is starting");
    assert!(began.elapsed() < CALL, "it is waited for: {:?}", began.elapsed());
    assert_eq!(fake.world().commands, 0, "no off was sent");
    [read, off]
}

/// Once it has started the off is taken at once, whenever it said to be asked again.
async fn is_switched_off(hand: &Hand, fake: &Fake) {
    assert_eq!(hand.power().await, Power::On);
    hand.off().await.expect("taken");
    assert_eq!(hand.power().await, Power::Off);
    hand.quiesce().await.expect("ended");
    let mut world = fake.world();
    assert_eq!((world.is_on(), world.open_sessions()), (false, 0));
}

#[tokio::test]
async fn a_board_that_names_no_system_while_it_starts_is_told_as_one() {
    let fake = Fake::start().await;
    fake.world().odd.names_no_system = true;
    let hand = Hand::of(&fake, json!({})).await;
    for error in says(&hand, &fake).await {
        assert_eq!((error.kind, error.effect), (ErrorKind::Protocol, Effect::DidNotHappen), "{error}");
        assert!(error.detail.contains("names no computer system; it may be starting"), "{error}");
        assert!(!error.is_final, "time changes it: {error}");
    }
    assert_eq!(fake.world().open_sessions(), 1, "it is asked in the session that is there");
    fake.world().odd.names_no_system = false;
    is_switched_off(&hand, &fake).await;
}

#[tokio::test]
async fn a_board_whose_questions_are_answered_503_while_it_starts_says_when_to_ask_again() {
    for was_read in [false, true] {
        let fake = Fake::start().await;
        let hand = Hand::of(&fake, json!({})).await;
        if was_read {
            hand.power().await;
            // The off itself is no question, and is sent where the system is known: this connection says nothing of that.
            fake.world().end_sessions();
            fake.world().drop_connections();
        }
        fake.world().odd.starts_for = Some("60");
        for error in says(&hand, &fake).await {
            // Of its manager it is no more than an answer that tells nothing of its restarts.
            let is_answer = matches!(error.kind, ErrorKind::Throttled | ErrorKind::Protocol);
            assert!(is_answer && error.effect == Effect::DidNotHappen, "{error}");
            let words = "HTTP 503 (the service is starting), to be asked again in 60 s";
            assert!(error.detail.contains(words), "{error}");
            assert!(!error.is_final, "time changes it: {error}");
        }
        fake.world().odd.starts_for = None;
        is_switched_off(&hand, &fake).await;
    }
}
