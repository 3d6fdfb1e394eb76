//! Devices that do not answer, or not well: how long they are waited for, and what comes next.

use std::sync::Arc;
use std::time::Duration;

use picket_core::device::DeviceSpec;
use picket_core::outcome::{Outcome, Reason};
use picket_core::time::written;
use picket_driver_sim::{Act, Fault};
use picket_engine::{ErrorKind, PlanAction, PlanStep};
use tokio::time::Instant;

use crate::lab::{Lab, NODE, lab, node, s};
use crate::setup::Setup;

/// A BMC, and two outlets behind it.
async fn with_outlets(seed: u64) -> Lab {
    with_outlets_that(seed, |_| {}).await
}

/// The same, of devices that are a little different.
async fn with_outlets_that(seed: u64, adjust: impl Fn(&mut DeviceSpec) + Send + Sync + 'static) -> Lab {
    let setup = Setup { adjust: Arc::new(adjust), ..Setup::new(NODE, &[&["bmc"], &["pdu-a", "pdu-b"]]) };
    Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "pdu-a").add_supply(NODE, "pdu-b");
    })
    .await
}

/// When the second level was begun.
async fn next_level_after(lab: &mut Lab) -> Duration {
    let began = Instant::now();
    lab.open().await;
    let level = |lab: &Lab| lab.record().fence.map_or(0, |fence| fence.level);
    while level(lab) == 0 {
        assert_eq!(lab.phase(), "fencing");
        tokio::time::sleep(s(1) / 10).await;
    }
    began.elapsed()
}

fn about(time: Duration, expected: Duration) -> bool {
    time >= expected && time < expected + s(7)
}

#[tokio::test(start_paused = true)]
async fn a_level_that_gives_no_answer_at_all_has_the_silent_share() {
    let mut lab = with_outlets(100).await;
    lab.fault("bmc", Fault::Silent);
    let time = next_level_after(&mut lab).await;
    assert!(about(time, s(20)), "{time:?}");
    lab.reach("released", s(120)).await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_says_after_how_long_a_silence_the_next_level_comes() {
    for (call, silent) in [(5, 20), (40, 40), (250, 180)] {
        let mut lab = with_outlets_that(103, move |spec| spec.call = s(call)).await;
        lab.fault("bmc", Fault::Silent);
        let asked = lab.call();
        let plan = lab.engine.plan(&node(), asked).await.expect("planned");
        let confirms = |step: &&PlanStep| step.action == PlanAction::Confirm && step.level == 1;
        let confirm = plan.steps.iter().find(confirms).expect("a step").text.clone();
        let said = format!("without any answer its turn ends after {}, and", written(s(silent)));
        assert!(confirm.contains(&said), "{confirm}");
        let until = format!("until the fence ends, after {}", written(s(600)));
        assert!(confirm.ends_with(&until), "{confirm}");
        let time = next_level_after(&mut lab).await;
        assert!(about(time, s(silent)), "{time:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_level_that_answers_has_its_whole_share() {
    let mut lab = with_outlets(101).await;
    lab.fault("bmc", Fault::OffIgnored);
    let time = next_level_after(&mut lab).await;
    assert!(about(time, s(180)), "{time:?}");
    lab.reach("released", s(120)).await;
}

#[tokio::test(start_paused = true)]
async fn a_level_that_fell_silent_after_an_answer_has_its_whole_share() {
    let mut lab = with_outlets(102).await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.schedule(s(3), Act::Fault { device: "bmc".to_owned(), fault: Fault::Silent });
    let time = next_level_after(&mut lab).await;
    assert!(about(time, s(180)), "{time:?}");
    // Its outlets went off, and the BMC says nothing against it.
    lab.reach("released", s(120)).await;
}

#[tokio::test(start_paused = true)]
async fn the_callers_deadline_ends_a_fence() {
    let mut lab = lab(103).await;
    lab.fault("bmc", Fault::OffIgnored);
    let mut call = lab.call();
    call.deadline = Some(s(45));
    let began = Instant::now();
    let id = lab.engine.fence(&crate::lab::node(), call).await.expect("let in").fence();
    let outcome = lab.outcome(id, picket_engine::Until::Released).await;
    assert_eq!(outcome, Outcome::NeedsOperator(Reason::Deadline));
    assert!(about(began.elapsed(), s(45)), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_refused_login_is_no_answer_and_is_not_hammered() {
    let mut lab = with_outlets(104).await;
    lab.fault("bmc", Fault::SessionsFull);
    let time = next_level_after(&mut lab).await;
    assert!(about(time, s(20)), "{time:?}");
    let opens = lab.received("bmc").opens;
    assert!(opens <= 16, "{opens} logins in {time:?}");
    assert_eq!(lab.view().live.devices.values().find_map(|d| d.fault_kind), Some(ErrorKind::Throttled));
    lab.reach("released", s(120)).await;
}

#[tokio::test(start_paused = true)]
async fn sessions_that_become_free_are_taken() {
    let mut lab = lab(105).await;
    lab.fault("bmc", Fault::SessionsFull);
    lab.schedule(s(10), Act::Mend { device: "bmc".to_owned() });
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
}

#[tokio::test(start_paused = true)]
async fn the_sessions_of_gateways_that_died_are_waited_out() {
    let mut lab = Lab::with(106, &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").set_sessions("bmc", 2, s(60));
    })
    .await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.open().await;
    for _ in 0..3 {
        tokio::time::sleep(s(2)).await;
        lab.crash().await;
    }
    lab.mend("bmc");
    // Two sessions leaked: none is free until the first of them was idle for a minute, which is longer than a level that
    // lets nobody in is waited for.
    for _ in 0..4 {
        assert!(lab.settled(s(600)).await);
        if lab.phase() == "needs_operator" {
            lab.engine.retry(&crate::lab::node(), crate::lab::person()).await.expect("retried");
        }
    }
    assert_eq!((lab.phase(), lab.is_on()), ("released", false));
}

#[tokio::test(start_paused = true)]
async fn a_busy_device_is_asked_again() {
    let mut lab = lab(107).await;
    lab.fault("bmc", Fault::Busy { times: 5 });
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
}

#[tokio::test(start_paused = true)]
async fn a_slow_device_takes_its_time() {
    for (seed, slow) in [(108, 500), (109, 1_000), (110, 1_900)] {
        let mut lab = lab(seed).await;
        lab.fault("bmc", Fault::Slow(Duration::from_millis(slow)));
        assert_eq!(lab.fence().await, Outcome::Fenced { released: true }, "{slow} ms");
        lab.unfence().await.expect("unfenced");
        lab.reach("normal", s(300)).await;
        assert!(lab.is_on());
    }
}

/// Its restarts are seen by its silence alone, and nobody takes our own pauses for one.
#[tokio::test(start_paused = true)]
async fn a_device_without_epochs_is_proven_off_by_readings_that_are_far_apart() {
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.adjust = Arc::new(|spec| spec.dwell = s(18));
    let mut lab = Lab::set_up(113, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").set_sessionless("bmc");
    })
    .await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert!(lab.record().fence.expect("open").lost.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_transition_for_five_minutes_is_not_off() {
    let mut lab = lab(111).await;
    lab.fault("bmc", Fault::SaysNothing);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    assert_eq!(lab.attempts(), 0);
    lab.mend("bmc");
    lab.engine.retry(&crate::lab::node(), crate::lab::person()).await.expect("retried");
    lab.reach("released", s(120)).await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_level_costs_the_others_nothing() {
    // Two BMCs of one level, of which one is dead: no proof by the other alone, and the outlets come next.
    let mut lab = Lab::with(112, &[&["bmc", "second"], &["pdu-a", "pdu-b"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "second");
        world.add_supply(NODE, "pdu-a").add_supply(NODE, "pdu-b");
    })
    .await;
    lab.fault("second", Fault::Silent);
    let time = next_level_after(&mut lab).await;
    assert!(about(time, s(180)), "one of them answers: {time:?}");
    assert_eq!(lab.attempts(), 0);
    lab.reach("released", s(120)).await;
    let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("evidence");
    assert_eq!(evidence.level, 2);
    lab.world.lock().mend("second");
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(300)).await;
    assert!(lab.is_on());
}

/// The outlet's window is over, and the host's BMC, which answers nobody, has to be asked once more: its level is not spent meanwhile.
#[tokio::test(start_paused = true)]
async fn a_silent_host_is_asked_once_more_though_the_share_of_the_outlet_s_level_is_over() {
    let mut setup = Setup::new(NODE, &[&["bmc"], &["pdu"]]);
    setup.rules.level_share = s(40);
    setup.adjust = Arc::new(|spec| {
        if spec.id.as_str() == "pdu" {
            spec.longest_cycle = s(35);
            spec.has_epochs = false;
        }
    });
    let mut lab = Lab::set_up(1631, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "pdu").set_sessionless("pdu");
    })
    .await;
    lab.fault("bmc", Fault::Silent);
    let began = Instant::now();
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert!(began.elapsed() < s(80), "{:?}", began.elapsed());
}
