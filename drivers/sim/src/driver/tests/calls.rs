//! One call: what its answer, its silence and its refusal mean.

use super::*;

#[tokio::test(start_paused = true)]
async fn off_then_off_in_one_epoch() {
    let bench = Bench::new().await;
    let before = bench.read().await.expect("answers");
    let off = bench.off().await.expect("taken");
    let after = bench.read().await.expect("answers");
    assert_eq!((before.power, after.power), (Power::On, Power::Off));
    assert!(!off.already && off.epoch == before.epoch && after.epoch == before.epoch);
    assert!(after.asked_at >= off.answered_at && after.answered_at > after.asked_at);
    assert_eq!(bench.world().received(DEV, bench.now()).opens, 1, "the session is kept");
    assert!(bench.off().await.expect("taken").already);
}

#[tokio::test(start_paused = true)]
async fn already_off_as_an_error_is_no_error() {
    let bench = Bench::new().await;
    bench.fault(Fault::AlreadyIsError);
    assert!(!bench.off().await.expect("taken").already);
    assert!(bench.off().await.expect("taken").already);
}

#[tokio::test(start_paused = true)]
async fn silence_ends_in_time_and_says_what_it_means() {
    let bench = Bench::new().await;
    bench.read().await.expect("answers");
    bench.fault(Fault::Silent);
    let call = bench.call();
    let error = bench.driver.command(None, &call, Verb::Off).await.expect_err("no answer");
    assert_eq!((error.kind, error.effect), (ErrorKind::TimedOut, Effect::Unknown));
    assert!(Instant::now() <= call.deadline());
    let error = bench.read().await.expect_err("no answer");
    assert_eq!((error.kind, error.effect), (ErrorKind::TimedOut, Effect::DidNotHappen));
}

#[tokio::test(start_paused = true)]
async fn an_off_without_a_session_surely_did_not_happen() {
    for (fault, kind) in [
        (Fault::Silent, ErrorKind::TimedOut),
        (Fault::WrongPassword, ErrorKind::Authentication),
        (Fault::SessionsFull, ErrorKind::Throttled),
    ] {
        let bench = Bench::new().await;
        bench.fault(fault);
        let error = bench.off().await.expect_err("no session");
        assert_eq!((error.kind, error.effect), (kind, Effect::DidNotHappen));
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_question_keeps_its_first_time() {
    let bench = Bench::new().await;
    bench.read().await.expect("answers");
    let asked = bench.now();
    bench.fault(Fault::RequestLost { times: 2 });
    let reading = bench.read().await.expect("the third copy is answered");
    assert_eq!(reading.asked_at, asked);
    assert!(reading.answered_at.since(asked) >= Duration::from_millis(750));
}

#[tokio::test(start_paused = true)]
async fn an_off_is_repeated_and_an_on_never() {
    let bench = Bench::new().await;
    bench.fault(Fault::AnswerLost { times: 1 });
    bench.read().await.expect("the session's answer was lost once");
    bench.fault(Fault::AnswerLost { times: 1 });
    assert!(bench.off().await.expect("the second copy is answered").already);
    bench.fault(Fault::AnswerLost { times: 1 });
    let error = bench.on().await.expect_err("one copy, no answer");
    assert_eq!((error.effect, bench.world().received(DEV, bench.now()).ons), (Effect::Unknown, 1));
    assert!(bench.world().truth("n1", bench.now()), "unknown, and it happened");
}

#[tokio::test(start_paused = true)]
async fn without_a_permit_nothing_is_sent() {
    let bench = Bench::new().await;
    let reading = Call::reading(Instant::now() + Duration::from_secs(5), bench.clock.clone());
    let error = bench.driver.command(None, &reading, Verb::Off).await.expect_err("may only read");
    assert_eq!((error.kind, error.effect), (ErrorKind::NotLeader, Effect::DidNotHappen));
    bench.permit.end();
    let error = bench.off().await.expect_err("leads no more");
    assert_eq!((error.kind, error.effect), (ErrorKind::NotLeader, Effect::DidNotHappen));
    assert_eq!(bench.world().received(DEV, bench.now()).offs, 0);
}

#[tokio::test(start_paused = true)]
async fn leadership_that_ends_between_two_copies_leaves_the_effect_unknown() {
    let bench = Bench::new().await;
    bench.read().await.expect("answers");
    bench.fault(Fault::RequestLost { times: 1 });
    let (off, ()) = tokio::join!(bench.off(), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        bench.permit.end();
    });
    let error = off.expect_err("the second copy may not be sent");
    assert_eq!((error.kind, error.effect), (ErrorKind::NotLeader, Effect::Unknown));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_does_not_harm_the_next() {
    let bench = Bench::new().await;
    bench.fault(Fault::Slow(Duration::from_secs(3)));
    let cancelled = tokio::time::timeout(Duration::from_millis(1500), bench.read()).await;
    assert!(cancelled.is_err());
    bench.mend();
    assert_eq!(bench.read().await.expect("answers").power, Power::On);
}

#[tokio::test(start_paused = true)]
async fn one_call_at_a_time_and_a_waiting_one_ends_in_time() {
    let bench = Bench::new().await;
    bench.read().await.expect("answers");
    bench.fault(Fault::Silent);
    let long = Call::reading(Instant::now() + Duration::from_secs(20), bench.clock.clone());
    let (first, second) = tokio::join!(bench.driver.read_power(&long), bench.read());
    first.expect_err("silent");
    let error = second.expect_err("waited");
    assert!(error.detail.contains("under way"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_inspected_engaged_and_put_back() {
    let bench = Bench::new().await;
    let found = bench.driver.inspect_hold(&bench.call()).await.expect("answers");
    assert_eq!(found.get("restore").map(String::as_str), Some("last-state"));
    assert_eq!(read_back(&found).expect("what was written"), HoldSettings::FREE);
    let report = bench.driver.set_hold(None, &bench.call(), HoldSettings::HELD).await.expect("engaged");
    assert_eq!(report.engaged.len(), 3);
    assert!(read_back(&HoldFound::new()).is_err());
    bench.fault(Fault::HoldUnsupported);
    assert!(bench.driver.inspect_hold(&bench.call()).await.expect("an honest answer").is_empty());
}
