//! What lands late, and when nothing lands any more.

use super::*;

#[tokio::test(start_paused = true)]
async fn after_quiesce_no_late_off_is_executed_and_the_epoch_is_fresh() {
    let bench = Bench::new().await;
    bench.fault(Fault::Twice { verb: Verb::Off, after: Duration::from_secs(20), times: 1 });
    bench.off().await.expect("taken");
    bench.driver.quiesce(&bench.call()).await.expect("closed");
    bench.read().await.expect("answers");
    bench.on().await.expect("taken");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let reading = bench.read().await.expect("answers");
    assert_eq!((reading.power, reading.epoch.expect("has epochs").loss), (Power::On, None));
    assert_eq!(bench.world().edges("n1", bench.now()).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn after_its_longest_life_nothing_is_executed_any_more() {
    let bench = Bench::new().await;
    let life = bench.driver.traits().max_in_flight.off.expect("is bounded");
    bench.read().await.expect("answers");
    for after in [50, 59, 61, 70, 100] {
        bench.fault(Fault::Twice { verb: Verb::Off, after: Duration::from_secs(after), times: 1 });
        bench.off().await.expect("taken");
    }
    let last_sent = bench.now();
    tokio::time::sleep(Duration::from_secs(300)).await;
    let now = bench.now();
    let mut world = bench.world();
    let executed: Vec<_> = world.heard(now).iter().filter(|heard| heard.late && heard.executed).collect();
    assert!(
        !executed.is_empty() && executed.iter().all(|heard| heard.at <= last_sent + life),
        "{executed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_device_without_sessions_has_no_epochs_and_no_bound() {
    let bench = Bench::of(|world| {
        world.set_sessionless(DEV);
    })
    .await;
    let traits = bench.driver.traits();
    assert!(!traits.has_epochs && traits.max_in_flight.off.is_none());
    bench.off().await.expect("taken");
    assert_eq!(bench.read().await.expect("answers").epoch, None);
    bench.driver.quiesce(&bench.call()).await.expect("everything is answered");
    bench.fault(Fault::Silent);
    bench.on().await.expect_err("no answer");
    bench.driver.quiesce(&bench.call()).await.expect_err("an on may still land");
}

/// A process that stood still between the permit of an on and its sending may send it just before its session is over; that
/// renews the session, and a copy that the network kept may land in it for one more idle limit (S8).
#[tokio::test(start_paused = true)]
async fn an_on_lives_as_long_as_its_session_before_it_was_sent_and_after() {
    let bench = Bench::of(|world| {
        world.happen(BootTime::default(), Act::Foreign { machine: "n1".to_owned(), verb: Verb::Off });
    })
    .await;
    bench.read().await.expect("answers");
    let permitted = bench.now();
    bench.fault(Fault::Twice { verb: Verb::On, after: Duration::from_secs(58), times: 1 });
    tokio::time::sleep(Duration::from_secs(58)).await;
    bench.on().await.expect("its session is there still");
    bench.world().happen(bench.now(), Act::Foreign { machine: "n1".to_owned(), verb: Verb::Off });
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert!(bench.world().truth("n1", bench.now()), "the copy landed");
    let landed = bench.now().since(permitted);
    let life = bench.driver.traits().max_in_flight;
    assert!(landed > life.off.expect("bounded"), "longer than one idle limit");
    assert!(life.on.expect("bounded") >= landed, "{landed:?}");
}
