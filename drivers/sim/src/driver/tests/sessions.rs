//! Sessions: which end is a loss, and what is not done without one.

use super::*;
use picket_core::power::Loss;

#[tokio::test(start_paused = true)]
async fn no_session_is_opened_for_an_on() {
    let bench = Bench::of(|world| {
        world.happen(BootTime::default(), Act::Foreign { machine: "n1".to_owned(), verb: Verb::Off });
    })
    .await;
    let refused = |error: DriverError| (error.kind, error.effect);
    let none = (ErrorKind::Unreachable, Effect::DidNotHappen);
    assert_eq!(refused(bench.on().await.expect_err("no session")), none);
    bench.read().await.expect("answers");
    bench.driver.quiesce(&bench.call()).await.expect("closed");
    assert_eq!(refused(bench.on().await.expect_err("it was closed")), none);
    // The whole machine of the gateway stood still after the store's word, and its clocks with it: the device ended the session.
    bench.read().await.expect("answers");
    bench.world().happen(bench.now(), Act::LoseSessions { device: DEV.to_owned() });
    assert_eq!(bench.on().await.expect_err("it is over").effect, Effect::DidNotHappen);
    assert_eq!(bench.world().edges("n1", bench.now()).len(), 1, "nothing switched it on");
    bench.read().await.expect("answers");
    bench.on().await.expect("taken");
    assert!(bench.world().truth("n1", bench.now()));
}

#[tokio::test(start_paused = true)]
async fn a_silent_device_that_knows_the_old_session_did_not_restart() {
    let bench = Bench::new().await;
    let first = bench.read().await.expect("answers");
    bench.fault(Fault::Silent);
    bench.read().await.expect_err("silent");
    bench.mend();
    assert_eq!(bench.read().await.expect("answers").epoch, first.epoch);
}

#[tokio::test(start_paused = true)]
async fn a_restart_begins_a_new_epoch_after_loss() {
    let bench = Bench::new().await;
    let first = bench.read().await.expect("answers").epoch.expect("has epochs");
    assert!(!first.begins_after_loss());
    let restart = Act::RestartBmc { device: DEV.to_owned(), down: Duration::ZERO, estranged: true };
    bench.world().happen(bench.now(), restart);
    let reading = bench.read().await.expect("answers in a new session");
    let second = reading.epoch.expect("has epochs");
    assert!(second.begins_after_loss());
    assert_eq!(reading.power, Power::Off);
    assert!(second.id > first.id);
    assert!(bench.world().truth("n1", bench.now()), "it lies");
}

#[tokio::test(start_paused = true)]
async fn a_device_silent_for_long_is_lost_while_the_old_session_may_live_on() {
    let bench = Bench::new().await;
    bench.read().await.expect("answers");
    bench.fault(Fault::Silent);
    let since = bench.now();
    bench.read().await.expect_err("silent");
    bench.read().await.expect_err("silent to the old session and to a new one");
    bench.mend();
    let epoch = bench.read().await.expect("answers").epoch.expect("has epochs");
    assert_eq!(epoch.loss, Some(Loss { epoch: epoch.id, since }), "since the first question");
    assert_eq!(bench.world().sessions(DEV, bench.now()), 2, "the old one was never closed");
    bench.driver.quiesce(&bench.call()).await.expect_err("the old one lives for a minute");
    let patient = bench.call().until(Instant::now() + Duration::from_secs(60));
    let long = Call::reading(Instant::now() + Duration::from_secs(60), bench.clock.clone());
    bench.driver.quiesce(&patient).await.expect_err("its deadline is five seconds away");
    bench.driver.quiesce(&long).await.expect("waited out");
    assert_eq!(bench.world().sessions(DEV, bench.now()), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ended_idle_was_not_lost() {
    let bench = Bench::new().await;
    for quiesced in [false, true] {
        bench.off().await.expect("taken");
        tokio::time::sleep(Duration::from_secs(90)).await;
        if quiesced {
            bench.driver.quiesce(&bench.call()).await.expect("nothing is open");
        }
        let epoch = bench.read().await.expect("answers").epoch.expect("has epochs");
        assert!(!epoch.begins_after_loss());
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_fell_silent_and_then_ended_idle_was_lost() {
    for quiesced in [false, true] {
        let bench = Bench::new().await;
        bench.read().await.expect("answers");
        bench.fault(Fault::Silent);
        let since = bench.now();
        bench.read().await.expect_err("silent");
        bench.mend();
        tokio::time::sleep(Duration::from_secs(90)).await;
        if quiesced {
            bench.driver.quiesce(&bench.call()).await.expect("nothing is open");
        }
        let epoch = bench.read().await.expect("answers").epoch.expect("has epochs");
        assert_eq!(epoch.loss, Some(Loss { epoch: epoch.id, since }));
    }
}

#[tokio::test(start_paused = true)]
async fn no_off_is_sent_after_a_loss_before_a_reading() {
    let bench = Bench::new().await;
    bench.read().await.expect("answers");
    let restart = Act::RestartBmc { device: DEV.to_owned(), down: Duration::ZERO, estranged: false };
    bench.world().happen(bench.now(), restart);
    for _ in 0..2 {
        let error = bench.off().await.expect_err("nothing was read");
        assert_eq!((error.kind, error.effect), (ErrorKind::Unreachable, Effect::DidNotHappen));
    }
    assert!(bench.world().truth("n1", bench.now()));
    bench.read().await.expect("answers");
    bench.off().await.expect("taken");
}

/// The session after the loss ends before anything is read in it, by our own doing or by its idleness: the next one tells of
/// the loss.
#[tokio::test(start_paused = true)]
async fn a_loss_that_no_reading_told_is_told_by_the_next_session() {
    for quiesced in [false, true] {
        let bench = Bench::new().await;
        let before = bench.read().await.expect("answers").epoch.expect("has epochs");
        let restart = Act::RestartBmc { device: DEV.to_owned(), down: Duration::ZERO, estranged: false };
        bench.world().happen(bench.now(), restart);
        bench.off().await.expect_err("nothing was read");
        match quiesced {
            true => bench.driver.quiesce(&bench.call()).await.expect("closed"),
            false => tokio::time::sleep(Duration::from_secs(90)).await,
        }
        bench.off().await.expect_err("nothing was read since");
        let after = bench.read().await.expect("answers").epoch.expect("has epochs");
        assert!(after.was_lost_after(before.id), "{before:?}, {after:?}");
        bench.off().await.expect("taken");
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_whose_caller_left_is_no_loss() {
    let bench = Bench::new().await;
    let before = bench.read().await.expect("answers").epoch.expect("has epochs");
    bench.fault(Fault::Slow(Duration::from_millis(100)));
    let call = bench.call();
    let left = tokio::time::timeout(Duration::from_millis(50), bench.driver.quiesce(&call)).await;
    left.expect_err("the answer is late");
    bench.mend();
    let after = bench.read().await.expect("answers").epoch.expect("has epochs");
    assert!(after.id > before.id && !after.begins_after_loss(), "{after:?}");
}
