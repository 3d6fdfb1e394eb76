//! What devices do, and what must come out.

use std::time::Duration;

use picket_core::outcome::{Outcome, Reason};
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::Until;

use crate::lab::{Lab, NODE, lab, s};

#[tokio::test(start_paused = true)]
async fn a_fence_is_confirmed_released_and_brought_back() {
    let mut lab = lab(1).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert_eq!((lab.phase(), lab.attempts(), lab.falls(), lab.is_on()), ("released", 1, 1, false));
    let evidence = lab.view().stored.record.fence.clone().and_then(|fence| fence.evidence).expect("evidence");
    assert_eq!(evidence.grade, picket_core::device::Grade::Observed, "{evidence:?}");
    assert_eq!(evidence.devices[0].long_window, None, "{evidence:?}");
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(60)).await;
    assert!(lab.is_on());
    let record = lab.view().stored.record.clone();
    assert!(record.ledger.open().is_empty() && record.fence.is_none(), "{record:?}");
}

#[tokio::test(start_paused = true)]
async fn a_fall_of_twenty_seconds_is_waited_for() {
    let mut lab = lab(2).await;
    lab.fault("bmc", Fault::OffTakes { least: s(20), most: s(20) });
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
}

#[tokio::test(start_paused = true)]
async fn an_ignored_off_needs_an_operator_and_is_never_released() {
    let mut lab = lab(3).await;
    lab.fault("bmc", Fault::OffIgnored);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    assert_eq!(lab.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn already_off_gets_our_own_off_and_the_long_window() {
    let mut lab = Lab::with(4, &[&["bmc"]], |world| {
        world.add_machine_off(NODE).add_host(NODE, "bmc");
    })
    .await;
    let began = tokio::time::Instant::now();
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert!(began.elapsed() > s(15), "{:?}", began.elapsed());
    let received = lab.world.lock().received("bmc", picket_core::time::Clock::boot(&*lab.clock));
    assert!(received.offs >= 2, "{received:?}");
}

#[tokio::test(start_paused = true)]
async fn off_within_somebody_elses_cycle_is_not_off() {
    let mut lab = lab(5).await;
    lab.happen(Act::ForeignCycle { machine: NODE.to_owned(), off_for: s(8) });
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert!(!lab.is_on());
    // Once by the foreign cycle, once by us when it came up.
    assert_eq!(lab.falls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_silent_bmc_without_a_next_level_needs_an_operator() {
    let mut lab = lab(6).await;
    lab.fault("bmc", Fault::Silent);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    assert_eq!(lab.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_silent_bmc_goes_to_the_supplies() {
    let mut lab = Lab::with(7, &[&["bmc"], &["pdu-a", "pdu-b"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "pdu-a").add_supply(NODE, "pdu-b");
    })
    .await;
    lab.fault("bmc", Fault::Silent);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert!(!lab.is_on());
    lab.mend("bmc");
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(200)).await;
    assert!(lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn one_of_two_outlets_is_not_off() {
    let mut lab = Lab::with(8, &[&["pdu-a", "pdu-b"]], |world| {
        world.add_machine(NODE).add_supply(NODE, "pdu-a").add_supply(NODE, "pdu-b");
    })
    .await;
    lab.fault("pdu-b", Fault::OffIgnored);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    assert!(lab.is_on() && lab.attempts() == 0);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_restarts_and_says_off_is_not_believed() {
    let mut lab = lab(9).await;
    lab.fault("bmc", Fault::OffTakes { least: s(30), most: s(30) });
    lab.schedule(s(1), Act::RestartBmc { device: "bmc".to_owned(), down: s(5), estranged: true });
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::BmcRestarted));
    assert_eq!(lab.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_device_of_another_machine_is_left_alone() {
    let mut lab = lab(10).await;
    let other = picket_core::device::Identity { uuid: None, serial: Some("another".to_owned()) };
    let stranger = picket_core::device::Identity {
        uuid: picket_core::device::Identity::usable_uuid("00112233445566778899aabbccddeeff"),
        ..other
    };
    lab.fault("bmc", Fault::SaysIdentity(stranger));
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::IdentityMismatch));
    tokio::time::sleep(s(3_600)).await;
    let received = lab.world.lock().received("bmc", picket_core::time::Clock::boot(&*lab.clock));
    assert_eq!((received.offs, lab.is_on()), (0, true));
}

#[tokio::test(start_paused = true)]
async fn a_lie_is_caught_by_the_second_host_device() {
    let mut lab = Lab::with(11, &[&["bmc", "second"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "second");
    })
    .await;
    lab.fault("bmc", Fault::OffLied);
    lab.fault("second", Fault::OffIgnored);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::Contradiction));
    assert_eq!(lab.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn power_that_comes_back_is_a_breach_and_is_fenced_again() {
    let mut lab = lab(12).await;
    let first = lab.open().await;
    lab.outcome(first, Until::Released).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: picket_driver_sim::Verb::On });
    lab.reach("fencing", s(30)).await;
    lab.reach("released", s(120)).await;
    assert!(!lab.is_on());
    let record = lab.view().stored.record.clone();
    assert!(record.holds.contains_key("db") && record.breaches == 1);
    assert_eq!(record.fence.expect("open").cause, picket_core::record::Cause::Breach);
}

#[tokio::test(start_paused = true)]
async fn an_on_that_is_dropped_is_sent_again_and_then_fails() {
    let mut lab = lab(13).await;
    lab.fence().await;
    lab.fault("bmc", Fault::OnDropped { times: 2 });
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(120)).await;
    lab.fence().await;
    lab.fault("bmc", Fault::OnDropped { times: 1_000 });
    lab.unfence().await.expect("unfenced");
    lab.reach("power_on_failed", s(400)).await;
    lab.mend("bmc");
    lab.engine.retry(&crate::lab::node(), crate::lab::person()).await.expect("retried");
    lab.reach("normal", s(120)).await;
}

/// What was let on, and comes on once its time is over, is brought back without a person; but once, and no more where that fails again.
#[tokio::test(start_paused = true)]
async fn an_on_that_comes_late_needs_no_person() {
    for again in [false, true] {
        let mut lab = lab(27).await;
        lab.fence().await;
        lab.fault("bmc", Fault::OnDropped { times: 1_000 });
        lab.unfence().await.expect("unfenced");
        lab.reach("power_on_failed", s(400)).await;
        lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
        if again {
            lab.reach("unfencing", s(30)).await;
            lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
            lab.reach("power_on_failed", s(400)).await;
            lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
            tokio::time::sleep(s(600)).await;
            assert_eq!((lab.phase(), lab.is_on()), ("power_on_failed", true));
            lab.engine.retry(&crate::lab::node(), crate::lab::person()).await.expect("retried");
        }
        lab.reach("normal", s(120)).await;
        assert_eq!((lab.record().breaches, lab.is_on()), (0, true), "again: {again}");
    }
}

#[tokio::test(start_paused = true)]
async fn loss_delays_and_does_not_mislead() {
    for (seed, percent) in [(20, 5), (21, 20), (22, 40), (23, 40), (24, 40)] {
        let mut lab = lab(seed).await;
        lab.fault("bmc", Fault::Loss { percent });
        match lab.fence().await {
            Outcome::Fenced { released: true } => assert!(!lab.is_on()),
            // So much was lost that the session was, and its Off cannot be told from a restarted device's.
            Outcome::NeedsOperator(Reason::BmcRestarted) if percent >= 40 => assert_eq!(lab.attempts(), 0),
            // It was proven before that, and its hold is engaged still: its Off would have to last for a minute.
            Outcome::NeedsOperator(Reason::LevelsSpent) if percent >= 40 => {}
            other => panic!("seed {seed}, {percent} %: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outlet_that_comes_back_does_not_shake_what_the_bmc_proves() {
    let mut lab = Lab::with(14, &[&["bmc"], &["pdu-a", "pdu-b"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "pdu-a").add_supply(NODE, "pdu-b");
    })
    .await;
    lab.fault("bmc", Fault::Silent);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.mend("bmc");
    lab.happen(Act::ForeignOutlet { outlet: "pdu-a".to_owned(), verb: picket_driver_sim::Verb::On });
    lab.reach("fencing", s(30)).await;
    lab.reach("released", s(120)).await;
    let offs = lab.received("bmc").offs;
    tokio::time::sleep(s(600)).await;
    assert_eq!((lab.phase(), lab.received("bmc").offs), ("released", offs), "the BMC proves it now");
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(200)).await;
    assert!(lab.is_on());
}

/// Whenever it comes back, and though the BMC beside it is silent for a whole call at each look.
#[tokio::test(start_paused = true)]
async fn an_outlet_that_comes_back_is_found_by_the_next_look_and_cut_again() {
    let mut lab = Lab::with(18, &[&["bmc"], &["pdu-a"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "pdu-a");
    })
    .await;
    lab.fault("bmc", Fault::Silent);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    for step in 0..12 {
        lab.reach("released", s(120)).await;
        tokio::time::sleep(s(20) + Duration::from_millis(1_300) * step).await;
        lab.happen(Act::ForeignOutlet { outlet: "pdu-a".to_owned(), verb: picket_driver_sim::Verb::On });
        let began = tokio::time::Instant::now();
        lab.reach("fencing", s(60)).await;
        assert!(
            began.elapsed() <= s(11),
            "looks are 10 s apart, and it was found after {:?}",
            began.elapsed()
        );
        // The silent level has its share of 20 s first.
        lab.reach("released", s(120)).await;
        assert!(!lab.is_on());
    }
}

#[tokio::test(start_paused = true)]
async fn each_on_is_sent_right_after_the_store_was_asked() {
    let mut lab = Lab::with(15, &[&["pdu-a", "pdu-b"]], |world| {
        world.add_machine(NODE).add_supply(NODE, "pdu-a").add_supply(NODE, "pdu-b");
    })
    .await;
    lab.fence().await;
    lab.store.rough(0, s(3));
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(200)).await;
    let now = lab.clock.boot();
    let heard = lab.world.lock().heard(now).to_vec();
    let ons: Vec<_> = heard.iter().filter(|heard| heard.verb == picket_driver_sim::Verb::On).collect();
    let checks = lab.store.checks.lock().clone();
    let asked = &checks[checks.len() - 2..];
    assert_eq!(ons.len(), asked.len());
    for (on, check) in ons.iter().zip(asked) {
        // A session is made in between: two trips of a millisecond.
        assert!(on.at >= *check && on.at.since(*check) < s(1) / 100, "{ons:?} {asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_device_that_says_already_off_and_reads_on_is_not_sent_off_after_off() {
    let mut lab = lab(740).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    lab.fault("bmc", Fault::SaysOn);
    lab.open().await;
    tokio::time::sleep(s(20)).await;
    let received = lab.received("bmc");
    assert!((2..=20).contains(&received.offs) && received.reads <= 100, "{received:?}");
}

#[tokio::test(start_paused = true)]
async fn an_outlet_that_comes_back_is_cut_again_within_two_looks_also_where_the_bmc_is_silent() {
    let mut lab = Lab::with(741, &[&["bmc"], &["pdu-a", "pdu-b"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "pdu-a").add_supply(NODE, "pdu-b");
    })
    .await;
    lab.fault("bmc", Fault::Silent);
    lab.open().await;
    lab.reach("released", s(600)).await;
    let before = lab.received("pdu-a").offs;
    lab.happen(Act::ForeignOutlet { outlet: "pdu-a".to_owned(), verb: Verb::On });
    let began = tokio::time::Instant::now();
    while lab.received("pdu-a").offs == before {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        assert!(began.elapsed() <= s(20), "{:?} after {:?}", lab.received("pdu-a"), began.elapsed());
    }
    lab.reach("released", s(600)).await;
}
