//! Boards that end a session, and say so late: its end is known as soon as they say it.

use std::time::{Duration, Instant};

use picket_driver::{Call, Effect, ErrorKind, PowerDriver};
use serde_json::json;

use crate::fake::{Fake, Reply, SYSTEM};
use crate::subject::Hand;

/// What a session's end may take to be known, once it was said: what the operator was promised. It is a hundredth of that.
const PROMISED: Duration = Duration::from_secs(3);

/// Asks for power, and leaves when the board has begun to answer that.
async fn leave_a_question(hand: &Hand, fake: &Fake) {
    let call = hand.call();
    let begun = async {
        while fake.world().asked(SYSTEM) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        biased;
        () = begun => {}
        read = hand.driver.read_power(&call) => panic!("it is answered late: {read:?}"),
    }
}

/// Whether the end of the session is told within what was promised since the answer to its deletion.
async fn ends_with_its_answer(hand: &Hand, fake: &Fake, what: &str) -> bool {
    hand.quiesce().await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let since = fake.world().answered_at("DELETE").expect("it was answered").elapsed();
    println!("{what}: known {since:?} after the board had said so");
    assert_eq!(fake.world().open_sessions(), 0, "{what}");
    since < PROMISED
}

/// A busy machine is late with anything: the best of some counts.
async fn at_best(what: &str, ends: impl AsyncFn() -> bool) {
    for _ in 0..5 {
        if ends().await {
            return;
        }
    }
    panic!("{what}: known more than {PROMISED:?} after the board had said so, each time");
}

#[tokio::test]
async fn a_deletion_that_is_answered_late_ends_its_session_then() {
    for one_at_a_time in [false, true] {
        let what = format!("one at a time: {one_at_a_time}");
        at_best(&what, async || {
            let fake = Fake::start().await;
            if one_at_a_time {
                fake.world().does_one_thing_at_a_time();
            }
            let hand = Hand::of(&fake, json!({})).await;
            hand.off().await.expect("taken");
            fake.world().slow = Some(("DELETE", Duration::from_millis(2_500)));
            let is_prompt = ends_with_its_answer(&hand, &fake, &what).await;
            assert_eq!(fake.world().asked("DELETE"), 1, "it was waited for");
            is_prompt
        })
        .await;
    }
}

/// Nobody waits for the answer to that question any more, and the board goes on with it: the deletion has its turn after that.
#[tokio::test]
async fn a_board_that_is_busy_with_a_question_that_was_left_ends_its_session_after_that() {
    for (busy, late) in [(1_300, 0), (3_000, 0), (3_000, 2_500)] {
        let what = format!("busy for {busy} ms, and {late} ms late");
        at_best(&what, async || {
            let fake = Fake::start().await;
            fake.world().does_one_thing_at_a_time();
            let hand = Hand::of(&fake, json!({})).await;
            hand.off().await.expect("taken");
            fake.world().log.clear();
            fake.world().slow = Some((SYSTEM, Duration::from_millis(busy)));
            let began = Instant::now();
            leave_a_question(&hand, &fake).await;
            fake.world().slow = Some(("DELETE", Duration::from_millis(late)));
            let is_prompt = ends_with_its_answer(&hand, &fake, &what).await;
            let took = began.elapsed();
            assert!(took > Duration::from_millis(busy / 2), "the board was busy: {took:?}");
            is_prompt
        })
        .await;
    }
}

/// Whoever waits for it reads for what, how long it is, what was tried, and which setting says so.
#[tokio::test]
async fn an_end_that_was_not_seen_names_the_setting_that_bounds_it() {
    for (more, said, names) in [
        (json!({}), 1_800, r#"session_timeout = "1800s""#),
        (json!({ "session_timeout": "10m" }), 600, r#"session_timeout = "600s""#),
        // A fence goes on with a service that says more, and waits for longer.
        (json!({ "session_timeout": "10m" }), 1_200, "the service's SessionTimeout of 1200 s"),
        (json!({ "authentication": "basic", "max_life": "2h" }), 1_800, r#"max_life = "7200s""#),
    ] {
        let fake = Fake::start().await;
        fake.world().session_timeout = said;
        let hand = Hand::of(&fake, more.clone()).await;
        if more["authentication"] == "basic" {
            hand.power().await;
            fake.world().script.extend((0..9).map(|_| ("Reset", Reply::raw(504, ""))));
            let order = hand.orders.off().await.expect("an order");
            // A second before it would be sent again.
            let off = async |call: &Call| hand.driver.power_off(&order, call).await;
            hand.fails(Duration::from_millis(900), off).await;
        } else {
            hand.off().await.expect("taken");
        }
        fake.world().script.extend((0..99).map(|_| ("DELETE", Reply::raw(500, ""))));
        let call = hand.call_of(Duration::from_secs(2));
        let error = hand.driver.quiesce(&call).await.expect_err("it may be open");
        assert_eq!((error.kind, error.effect), (ErrorKind::TimedOut, Effect::Unknown), "{error}");
        assert!(error.detail.contains(names) && error.detail.contains(" more"), "{more}: {error}");
        let is_counted = error.detail.contains("times in");
        assert_eq!(is_counted, more["authentication"] != "basic", "{more}: {error}");
    }
}
