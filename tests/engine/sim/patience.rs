//! Enough time for what must happen, and no more than is right.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use picket_core::device::Identity;
use picket_core::ids::ReceiptId;
use picket_core::machine::Refused;
use picket_core::outcome::{Outcome, Reason};
use picket_core::time::WallTime;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{Ask, EngineError, Until};
use picket_liveness::Look;
use tokio::task::JoinSet;

use crate::lab::{Lab, NODE, lab, node, person, s};
use crate::liveness::as_seen;
use crate::setup::Setup;

fn switch(lab: &Lab, verb: Verb) {
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb });
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_was_away_for_longer_than_the_deadline_has_time_for_each_level() {
    for away in [60, 900] {
        let mut lab = Lab::with(931, &[&["bmc"], &["pdu-a"]], |world| {
            world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "pdu-a");
        })
        .await;
        lab.fault("bmc", Fault::Silent);
        let id = lab.open().await;
        tokio::time::sleep(s(5)).await;
        lab.kill().await;
        tokio::time::sleep(s(away)).await;
        lab.start().await;
        let outcome = lab.outcome_within(id, Until::Released, s(600)).await;
        assert_eq!(outcome, Some(Outcome::Fenced { released: true }), "away for {away} s");
    }
}

#[tokio::test(start_paused = true)]
async fn and_for_a_restarted_bmc_that_is_trusted() {
    let mut lab = lab(932).await;
    lab.kill().await;
    lab.setup.adjust = Arc::new(|spec| spec.trust_after_restart = Some(s(60)));
    lab.start().await;
    lab.fault("bmc", Fault::OffIgnored);
    let id = lab.open().await;
    tokio::time::sleep(s(5)).await;
    lab.happen(Act::RestartBmc { device: "bmc".to_owned(), down: s(0), estranged: false });
    tokio::time::sleep(s(5)).await;
    assert!(!lab.record().fence.expect("open").lost.is_empty());
    lab.kill().await;
    lab.mend("bmc");
    switch(&lab, Verb::Off);
    tokio::time::sleep(s(900)).await;
    lab.start().await;
    let outcome = lab.outcome_within(id, Until::Released, s(600)).await;
    assert_eq!(outcome, Some(Outcome::Fenced { released: true }));
}

#[tokio::test(start_paused = true)]
async fn a_person_stands_down_a_node_of_which_nothing_answers_any_more() {
    let mut lab = lab(933).await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.schedule(s(100), Act::Fault { device: "bmc".to_owned(), fault: Fault::Silent });
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    lab.engine.stand_down(&node(), person()).await.expect("stood down");
    lab.settled(s(1_200)).await;
    assert_eq!(lab.phase(), "normal");
}

#[tokio::test(start_paused = true)]
async fn a_mismatch_that_was_found_is_written_once() {
    let mut lab = lab(934).await;
    lab.fault("bmc", Fault::OffIgnored);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    let uuid = Identity::usable_uuid("00112233-4455-6677-8899-aabbccddeeff");
    lab.fault("bmc", Fault::SaysIdentity(Identity { uuid, serial: Some("x".to_owned()) }));
    tokio::time::sleep(s(100)).await;
    let before = lab.store.log.lock().len();
    tokio::time::sleep(s(3_600)).await;
    assert_eq!(lab.store.log.lock().len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_drops_questions_is_kept_off_all_the_same() {
    let mut lab = lab(935).await;
    lab.fault("bmc", Fault::DropsQuestions);
    lab.fault("bmc", Fault::OffIgnored);
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    lab.mend("bmc");
    lab.fault("bmc", Fault::DropsQuestions);
    tokio::time::sleep(s(600)).await;
    assert!(!lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn callers_however_many_keep_no_watch_from_ending() {
    let mut lab = Lab::with(936, &[&["bmc", "second"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "second");
    })
    .await;
    lab.fault("second", Fault::Silent);
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    switch(&lab, Verb::On);
    for _ in 0..15 {
        tokio::time::sleep(s(4)).await;
        lab.open_again().await;
    }
    assert!(!lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn a_network_that_is_gone_for_a_moment_costs_no_hold() {
    // Up to where the hold itself is sent.
    for ms in 1..6 {
        let mut lab = lab(937).await;
        let after = std::time::Duration::from_millis(ms);
        lab.schedule(after, Act::Fault { device: "bmc".to_owned(), fault: Fault::Silent });
        lab.schedule(s(13), Act::Mend { device: "bmc".to_owned() });
        lab.fence().await;
        let holds = lab.record().fence.expect("open").holds;
        assert!(holds.values().all(|hold| !hold.engaged.is_empty()), "gone after {ms} ms: {holds:?}");
    }
}

/// A switch that is away for a minute takes no node from its fence.
#[tokio::test(start_paused = true)]
async fn a_bmc_that_answers_again_within_the_deadline_is_switched_off_by_itself() {
    let mut lab = lab(938).await;
    lab.fault("bmc", Fault::Silent);
    lab.schedule(s(65), Act::Mend { device: "bmc".to_owned() });
    let id = lab.open().await;
    tokio::time::sleep(s(30)).await;
    let view = lab.view();
    assert!(view.live.unreached, "a person is told after the first round");
    let wait = view.live.wait.clone().expect("told");
    assert!(
        wait.what.starts_with("bmc: timed out: ") && wait.what.contains("; a device that takes the off ("),
        "{wait:?}"
    );
    let outcome = lab.outcome_within(id, Until::Released, s(120)).await;
    assert_eq!(outcome, Some(Outcome::Fenced { released: true }));
    assert!(!lab.view().live.unreached);
}

/// Both faults are of one kind.
#[tokio::test(start_paused = true)]
async fn what_is_waited_for_has_the_newest_fault_of_the_device() {
    let mut lab = lab(955).await;
    let told = |lab: &Lab| lab.view().live.wait.clone().expect("told").what;
    lab.fault("bmc", Fault::SessionsFull);
    lab.open().await;
    tokio::time::sleep(s(10)).await;
    assert!(told(&lab).starts_with("bmc: throttled: bmc has no session left; "), "{}", told(&lab));
    lab.mend("bmc");
    lab.fault("bmc", Fault::Starting);
    tokio::time::sleep(s(30)).await;
    assert!(told(&lab).starts_with("bmc: throttled: bmc is busy; "), "{}", told(&lab));
}

#[tokio::test(start_paused = true)]
async fn one_that_never_answers_is_told_once_and_ends_at_the_deadline() {
    let levels: [&[&str]; 2] = [&["bmc"], &["second"]];
    for count in 1..=2 {
        let mut lab = Lab::with(939, &levels[..count], |world| {
            world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "second");
        })
        .await;
        lab.fault("bmc", Fault::Silent);
        lab.fault("second", Fault::Silent);
        let began = tokio::time::Instant::now();
        assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
        let took = began.elapsed();
        assert!((s(600)..s(640)).contains(&took), "{took:?}");
        let moments = lab.record().fence.expect("kept").moments;
        let told =
            moments.iter().filter(|one| one.what.contains("all are tried anew until its deadline")).count();
        assert_eq!(told, 1, "{moments:#?}");
        assert!(moments.len() < 8, "{moments:#?}");
    }
}

/// Its BMC fell silent between the question whose machine it controls and the off.
#[tokio::test(start_paused = true)]
async fn one_that_is_found_on_and_never_took_an_off_gets_one_within_the_deadline() {
    let mut lab = lab(940).await;
    let fall = std::time::Duration::from_millis(4);
    lab.schedule(fall, Act::Fault { device: "bmc".to_owned(), fault: Fault::Silent });
    lab.schedule(s(300), Act::Mend { device: "bmc".to_owned() });
    lab.open().await;
    tokio::time::sleep(s(290)).await;
    assert_eq!((lab.phase(), lab.received("bmc").offs, lab.view().live.unreached), ("fencing", 0, true));
    lab.reach("released", s(20)).await;
    assert!(!lab.record().fence.expect("kept").by_person, "the gateway is no person");
}

/// K9: that round asks whether the node recovered, whoever held the node meanwhile without being a person.
#[tokio::test(start_paused = true)]
async fn a_program_s_hold_takes_no_recovery_from_a_fence_that_waits_and_sent_nothing() {
    let is_well = Arc::new(AtomicBool::new(false));
    let seen = is_well.clone();
    let source = as_seen(move || match seen.load(Ordering::SeqCst) {
        true => Some(Look::Recovered("ready again".to_owned())),
        false => Some(Look::NotRecovered("not ready".to_owned())),
    });
    let setup = Setup { liveness: Some(source), ..Setup::new(NODE, &[&["bmc"]]) };
    let mut lab = Lab::set_up(942, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await;
    lab.fault("bmc", Fault::WrongPassword);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    assert_eq!(lab.received("bmc").offs, 0);
    let program = Ask { by_person: false, ..person().into() };
    let refused = lab.engine.hold(&node(), "other".to_owned(), program).await;
    assert!(matches!(&refused, Err(EngineError::Refused(Refused::Phase { .. }))), "{refused:?}");
    is_well.store(true, Ordering::SeqCst);
    lab.mend("bmc");
    lab.reach("normal", s(120)).await;
    assert_eq!((lab.is_on(), lab.received("bmc").offs), (true, 0), "it was well again");
}

/// Two callers whose receipts are verified one after the other, for as long as this is kept: the mailbox never empties.
fn verifying(lab: &Lab) -> JoinSet<()> {
    // As long as a store takes for a round trip that is slow.
    lab.store.reads_take(std::time::Duration::from_millis(5));
    let mut callers = JoinSet::new();
    for _ in 0..2 {
        let engine = lab.engine.clone();
        callers.spawn(async move {
            let unknown = ReceiptId::mint(WallTime::from_millis(1), [0; 10]);
            loop {
                engine.verify_receipt(&node(), unknown, false).await.expect("answered");
            }
        });
    }
    callers
}

/// S11, S16: whoever only reads, however often, keeps no fence from its off, and no On from being seen.
#[tokio::test(start_paused = true)]
async fn callers_who_never_pause_keep_no_answer_of_a_device_unread() {
    let mut lab = lab(938).await;
    let callers = verifying(&lab);
    let id = lab.open().await;
    let outcome = lab.outcome_within(id, Until::Released, s(60)).await;
    assert_eq!(outcome, Some(Outcome::Fenced { released: true }));
    switch(&lab, Verb::On);
    lab.reach("fencing", s(20)).await;
    assert_eq!(lab.record().breaches, 1);
    drop(callers);
}

/// A plan reads devices itself, and waits for the one that is dead.
#[tokio::test(start_paused = true)]
async fn whoever_plans_one_fence_after_the_other_keeps_no_on_from_being_seen() {
    let mut lab = Lab::with(939, &[&["bmc"], &["second"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "second");
    })
    .await;
    lab.fault("second", Fault::Silent);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let mut callers = JoinSet::new();
    for _ in 0..2 {
        let (engine, call) = (lab.engine.clone(), lab.call());
        callers.spawn(async move {
            let is_released =
                || engine.node(&node()).expect("known").stored.record.phase.label() == "released";
            while is_released() {
                engine.plan(&node(), call.clone()).await.expect("planned");
            }
        });
    }
    tokio::time::sleep(s(30)).await;
    switch(&lab, Verb::On);
    lab.reach("fencing", s(20)).await;
    assert_eq!(lab.record().breaches, 1);
    drop(callers);
}

/// It answers, and takes no off for a minute, as a BMC that starts: it gets one as soon as it would take it.
#[tokio::test(start_paused = true)]
async fn one_that_answers_and_takes_no_off_yet_gets_one_once_it_does() {
    let levels: [&[&str]; 2] = [&["bmc"], &["second"]];
    for (seed, count) in [(944, 1), (945, 2)] {
        let mut lab = Lab::with(seed, &levels[..count], |world| {
            world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "second");
        })
        .await;
        lab.fault("bmc", Fault::OffRefused);
        lab.fault("second", Fault::Silent);
        lab.schedule(s(400), Act::Mend { device: "bmc".to_owned() });
        let id = lab.open().await;
        tokio::time::sleep(s(399)).await;
        assert_eq!((lab.phase(), lab.is_on(), lab.view().live.unreached), ("fencing", true, true), "{count}");
        let outcome = lab.outcome_within(id, Until::Released, s(30)).await;
        assert_eq!(outcome, Some(Outcome::Fenced { released: true }), "{count}");
    }
}

/// A rack switch restarts: both levels fall silent, and the first one is back while the second one has its turn. It waits for nobody's silence.
/// A second host device is to be asked once more after the fall (S3), and its silence takes a call.
#[tokio::test(start_paused = true)]
async fn one_that_is_back_while_another_level_has_its_turn_gets_its_off_at_once() {
    for (others, within) in [(&[][..], 10), (&["pdu-a"], 10), (&["agent"], 10), (&["second"], 15)] {
        let levels: Vec<&[&str]> =
            std::iter::once(&["bmc"][..]).chain((!others.is_empty()).then_some(others)).collect();
        for back in [21, 22, 25, 29, 33, 38, 44, 51, 60, 120] {
            let mut setup = Setup::new(NODE, &levels);
            // A fence agent has the longest call that is shipped.
            setup.adjust = Arc::new(|spec| {
                if spec.id.to_string().ends_with("agent") {
                    spec.call = s(60);
                }
            });
            let mut lab = Lab::set_up(948, setup, |world| {
                world.add_machine(NODE).add_host(NODE, "bmc");
                world.add_supply(NODE, "pdu-a").add_supply(NODE, "agent").add_host(NODE, "second");
            })
            .await;
            for device in levels.concat() {
                lab.fault(device, Fault::Silent);
            }
            lab.schedule(s(back), Act::Mend { device: "bmc".to_owned() });
            let id = lab.open().await;
            tokio::time::sleep(s(back)).await;
            let outcome = lab.outcome_within(id, Until::Confirmed, s(within)).await;
            let confirmed = outcome == Some(Outcome::Fenced { released: false });
            assert!(confirmed, "{others:?}, back after {back} s: {outcome:?} {:?}", lab.view().live);
        }
    }
}

/// It says for a minute that it starts, or that it is busy: it gets its off within ten seconds of its return.
#[tokio::test(start_paused = true)]
async fn one_that_starts_gets_its_off_within_ten_seconds_of_its_return() {
    for fault in [Fault::Starting, Fault::Busy { times: 10_000 }, Fault::SessionsFull, Fault::DropsQuestions]
    {
        for back in [25, 60, 97] {
            let mut lab = lab(950).await;
            lab.fault("bmc", fault.clone());
            lab.fault("bmc", Fault::OffRefused);
            lab.schedule(s(back), Act::Mend { device: "bmc".to_owned() });
            let id = lab.open().await;
            tokio::time::sleep(s(back)).await;
            let outcome = lab.outcome_within(id, Until::Confirmed, s(10)).await;
            let is_confirmed = outcome == Some(Outcome::Fenced { released: false });
            assert!(is_confirmed, "{fault:?}, back after {back} s: {outcome:?}, {:?}", lab.view().live);
        }
    }
}

/// One that says that it starts is there: it is given its time before outlets are cut, and is not told as silent.
#[tokio::test(start_paused = true)]
async fn one_that_answers_that_it_is_busy_is_not_silent() {
    let mut lab = Lab::with(949, &[&["bmc"], &["second"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "second");
    })
    .await;
    lab.fault("bmc", Fault::Busy { times: 1_000 });
    lab.schedule(s(40), Act::Mend { device: "bmc".to_owned() });
    let id = lab.open().await;
    let outcome = lab.outcome_within(id, Until::Released, s(60)).await;
    assert_eq!(outcome, Some(Outcome::Fenced { released: true }));
    assert_eq!(lab.received("second").offs, 0, "the other level was not tried meanwhile");
}

/// A device that took our off and does not fall is no case for another round: a person is asked at once.
#[tokio::test(start_paused = true)]
async fn one_that_took_the_off_and_does_not_fall_is_given_no_second_turn() {
    let mut lab = lab(946).await;
    lab.fault("bmc", Fault::OffIgnored);
    let began = tokio::time::Instant::now();
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    assert!(began.elapsed() < s(200), "{:?}", began.elapsed());
    let asks = lab.record().fence.expect("kept").moments.pop().expect("told").what;
    assert!(asks.contains("not off within 3m: bmc on (asked "), "{asks}");
}

/// It lets nobody in for a while, as one whose accounts are not there yet after its start: a person is asked at once, and it gets its off all the
/// same once it says On.
#[tokio::test(start_paused = true)]
async fn one_that_let_nobody_in_is_for_a_person_and_gets_its_off_within_the_deadline() {
    let mut lab = lab(947).await;
    lab.fault("bmc", Fault::WrongPassword);
    let began = tokio::time::Instant::now();
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    assert!(began.elapsed() < s(60), "{:?}", began.elapsed());
    lab.mend("bmc");
    lab.reach("released", s(120)).await;
    assert!(!lab.record().fence.expect("kept").by_person, "the gateway is no person");
}
