//! The driver on the world, with paused time.

use std::sync::Arc;

use picket_core::election::{Election, ElectionError, Leadership, Lease, Won, lead};
use picket_core::ids::{Incarnation, Term};
use picket_core::power::EpochOrigin;
use picket_core::time::{BootTime, Clock};

use super::*;
use crate::{Act, Fault, SimClock, World};

const DEV: &str = "n1-bmc";

#[derive(Debug)]
struct Alone(Arc<Lease>);

#[async_trait]
impl Election for Alone {
    async fn campaign(&self) -> Result<Won, ElectionError> {
        let incarnation = Incarnation::mint(Default::default(), [0; 10]);
        Ok(Won { term: Term(1), incarnation, lease: self.0.clone() })
    }
    async fn resign(&self) -> Result<(), ElectionError> {
        Ok(())
    }
}

/// A world with one machine and one BMC, its driver, a clock and a permit.
struct Bench {
    world: SharedWorld,
    driver: SimDriver,
    clock: Arc<dyn Clock>,
    permit: Arc<Leadership>,
}

impl Bench {
    async fn new() -> Self {
        Self::of(|_| {}).await
    }

    async fn of(prepare: impl FnOnce(&mut World)) -> Self {
        let mut world = World::new(1);
        world.add_machine("n1").add_host("n1", DEV);
        prepare(&mut world);
        let world = world.shared();
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let permit =
            lead(&Alone(Lease::endless()), clock.clone(), Duration::from_secs(1)).await.expect("leads");
        let driver = SimDriver::new(&world, DEV, &SimOptions::default());
        Self { world, driver, clock, permit }
    }

    fn call(&self) -> Call {
        Call::control(Instant::now() + Duration::from_secs(5), self.clock.clone(), self.permit.clone())
    }

    async fn read(&self) -> Result<Reading, DriverError> {
        self.driver.read_power(&self.call()).await
    }

    async fn off(&self) -> Result<Accepted, DriverError> {
        self.driver.command(&self.call(), Verb::Off).await
    }

    async fn on(&self) -> Result<Accepted, DriverError> {
        self.driver.command(&self.call(), Verb::On).await
    }

    fn world(&self) -> std::sync::MutexGuard<'_, World> {
        self.world.lock().expect("no test panicked")
    }

    fn fault(&self, fault: Fault) {
        self.world().fault(DEV, fault);
    }

    fn mend(&self) {
        self.world().mend(DEV);
    }

    fn now(&self) -> BootTime {
        self.clock.boot()
    }
}

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
    let error = bench.driver.command(&call, Verb::Off).await.expect_err("no answer");
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
    assert_eq!(first.origin, EpochOrigin::Fresh);
    let restart = Act::RestartBmc { device: DEV.to_owned(), down: Duration::ZERO, estranged: true };
    bench.world().happen(bench.now(), restart);
    let reading = bench.read().await.expect("answers in a new session");
    let second = reading.epoch.expect("has epochs");
    assert!(second.origin.is_loss());
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
    assert_eq!(epoch.origin, EpochOrigin::AfterLoss { since }, "since the first question");
    assert_eq!(bench.world().sessions(DEV, bench.now()), 2, "the old one was never closed");
    bench.driver.quiesce(&bench.call()).await.expect_err("the old one lives for a minute");
    let patient = bench.call().until(Instant::now() + Duration::from_secs(60));
    let long = Call::reading(Instant::now() + Duration::from_secs(60), bench.clock.clone());
    bench.driver.quiesce(&patient).await.expect_err("its deadline is five seconds away");
    bench.driver.quiesce(&long).await.expect("waited out");
    assert_eq!(bench.world().sessions(DEV, bench.now()), 0);
}

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
    assert_eq!((reading.power, reading.epoch.expect("has epochs").origin), (Power::On, EpochOrigin::Fresh));
    assert_eq!(bench.world().edges("n1", bench.now()).len(), 2);
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
        assert_eq!(epoch.origin, EpochOrigin::Fresh);
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
        assert_eq!(epoch.origin, EpochOrigin::AfterLoss { since });
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
    assert!(after.id > before.id && after.origin == EpochOrigin::Fresh, "{after:?}");
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
async fn without_a_permit_nothing_is_sent() {
    let bench = Bench::new().await;
    let reading = Call::reading(Instant::now() + Duration::from_secs(5), bench.clock.clone());
    let error = bench.driver.command(&reading, Verb::Off).await.expect_err("may only read");
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
    let report = bench.driver.set_hold(&bench.call(), HoldSettings::HELD).await.expect("engaged");
    assert_eq!(report.engaged.len(), 3);
    assert!(read_back(&HoldFound::new()).is_err());
    bench.fault(Fault::HoldUnsupported);
    assert!(bench.driver.inspect_hold(&bench.call()).await.expect("an honest answer").is_empty());
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
