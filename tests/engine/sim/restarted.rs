//! The ways out for a node whose BMC restarted within the fence, or was out of reach for as long (S2, S16).

use std::sync::Arc;
use std::time::Duration;

use picket_core::device::{Grade, Identity};
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{EngineError, ReceiptCall, Verified};

use crate::lab::{Lab, NODE, lab, node, person, s};
use crate::observer::Answer;
use crate::points::Happens;
use crate::setup::Setup;

const ASKED: Outcome = Outcome::NeedsOperator(Reason::BmcRestarted);

/// The BMC took an off that comes to nothing soon, restarted, and says off of a machine that runs.
pub async fn a_lying_bmc(seed: u64) -> Lab {
    let mut lab = lab(seed).await;
    lab.fault("bmc", Fault::OffTakes { least: s(3_000), most: s(3_000) });
    lab.schedule(s(1), Act::RestartBmc { device: "bmc".to_owned(), down: s(5), estranged: true });
    assert_eq!(lab.fence().await, ASKED);
    assert!(lab.is_on());
    lab
}

async fn settles(lab: &Lab) -> &'static str {
    while lab.phase() == "fencing" {
        tokio::time::sleep(s(1)).await;
    }
    lab.phase()
}

#[tokio::test(start_paused = true)]
async fn a_retry_alone_ends_where_it_began() {
    let lab = a_lying_bmc(2760).await;
    lab.engine.retry(&node(), person()).await.expect("taken");
    assert_eq!(settles(&lab).await, "needs_operator");
    assert!(lab.is_on() && lab.attempts() == 0);
}

#[tokio::test(start_paused = true)]
async fn the_word_of_a_person_who_saw_the_machine_off_lets_its_bmc_be_believed_after_a_minute_as_claimed() {
    let lab = a_lying_bmc(2761).await;
    // The plug was pulled.
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    let began = tokio::time::Instant::now();
    lab.engine.retry_seen_off(&node(), person()).await.expect("taken");
    lab.reach("released", s(170)).await;
    assert!(began.elapsed() > s(60), "{:?}", began.elapsed());
    assert!(!lab.is_on());
    let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("proven");
    assert_eq!(evidence.grade, Grade::Claimed);
    let why = "bmc: it restarted, and a person looked at the machine".to_owned();
    assert!(evidence.lowered_by.contains(&why), "{:?}", evidence.lowered_by);
}

#[tokio::test(start_paused = true)]
async fn that_word_does_not_outlive_the_next_restart() {
    let lab = a_lying_bmc(2762).await;
    lab.engine.retry_seen_off(&node(), person()).await.expect("taken");
    tokio::time::sleep(s(20)).await;
    lab.happen(Act::RestartBmc { device: "bmc".to_owned(), down: s(5), estranged: true });
    assert_eq!(settles(&lab).await, "needs_operator");
    assert_eq!(lab.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_word_stands_against_a_host_device_that_says_on_nor_where_nothing_restarted() {
    let mut lab = Lab::with(2763, &[&["bmc"], &["second"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "second");
    })
    .await;
    lab.fault("second", Fault::Silent);
    lab.fault("bmc", Fault::OffTakes { least: s(3_000), most: s(3_000) });
    lab.schedule(s(1), Act::RestartBmc { device: "bmc".to_owned(), down: s(5), estranged: true });
    assert_eq!(lab.fence().await, ASKED);
    lab.mend("second");
    let refused = lab.engine.retry_seen_off(&node(), person()).await.expect_err("it runs");
    assert!(matches!(&refused, EngineError::Refused(why) if why.to_string().contains("second")), "{refused}");

    let mut lab = crate::lab::lab(2764).await;
    lab.fault("bmc", Fault::Silent);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    let refused = lab.engine.retry_seen_off(&node(), person()).await.expect_err("nothing restarted");
    assert!(refused.to_string().contains("no BMC restarted within this fence"), "{refused}");
}

/// The network of the BMCs is dark for longer than a session lives, while releases are pending.
#[tokio::test(start_paused = true)]
async fn a_node_that_was_proven_is_proven_anew_by_itself_once_its_bmc_answers_with_its_hold_engaged() {
    for dark in [s(45), s(75), s(120)] {
        let mut lab = lab(2765).await;
        lab.answers(&[Answer::Refuse]);
        lab.open().await;
        lab.reach("fenced", s(60)).await;
        lab.fault("bmc", Fault::Silent);
        tokio::time::sleep(dark).await;
        lab.mend("bmc");
        lab.answers(&[Answer::Complete]);
        lab.reach("released", s(300)).await;
        assert!(!lab.is_on());
        let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("proven");
        println!("dark for {dark:?}: {:?} {:?}", evidence.grade, evidence.lowered_by);
    }
}

/// Where the hold is gone the BMC may have been set back, and nobody knows what it says now.
#[tokio::test(start_paused = true)]
async fn a_node_that_was_proven_and_whose_hold_is_gone_waits_for_a_person() {
    let mut lab = lab(2766).await;
    lab.answers(&[Answer::Refuse]);
    lab.open().await;
    lab.reach("fenced", s(60)).await;
    lab.happen(Act::RestartBmc { device: "bmc".to_owned(), down: s(75), estranged: true });
    lab.happen(Act::ForgetHold { machine: NODE.to_owned() });
    lab.answers(&[Answer::Complete]);
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("needs_operator", s(400)).await;
    assert!(matches!(lab.record().phase, Phase::NeedsOperator(Reason::BmcRestarted)));
    // The hold that is read now is the one that was put back since.
    for dies in [false, true] {
        lab.engine.retry(&node(), person()).await.expect("taken");
        if dies {
            tokio::time::sleep(s(3)).await;
            lab.crash().await;
        }
        assert_eq!(settles(&lab).await, "needs_operator");
        assert!(lab.is_on());
    }
}

/// A BMC that has just started says that its watchdog does not run, whatever it forgot: that is no hold that outlived the restart.
#[tokio::test(start_paused = true)]
async fn a_stopped_watchdog_alone_lets_no_restarted_bmc_be_believed() {
    let mut lab = lab(2779).await;
    lab.fault("bmc", Fault::HoldsByWatchdog);
    lab.answers(&[Answer::Refuse]);
    lab.open().await;
    lab.reach("fenced", s(60)).await;
    let held = lab.record().fence.expect("a fence").holds.into_values().next().expect("a hold").engaged;
    assert_eq!(held, ["watchdog stopped"]);
    lab.happen(Act::RestartBmc { device: "bmc".to_owned(), down: s(20), estranged: true });
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.answers(&[Answer::Complete]);
    lab.reach("needs_operator", s(400)).await;
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::BmcRestarted));
    assert!(lab.is_on());
}

/// Nothing shows the restarts of this BMC but its silence.
async fn sessionless(seed: u64) -> Lab {
    Lab::with(seed, &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").set_sessionless("bmc");
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_bmc_without_epochs_that_lies_after_a_silence_is_not_believed() {
    for down in [s(12), s(20), s(60)] {
        let mut lab = sessionless(2770).await;
        lab.fault("bmc", Fault::OffTakes { least: s(3_000), most: s(3_000) });
        lab.schedule(s(2), Act::RestartBmc { device: "bmc".to_owned(), down, estranged: true });
        assert_eq!(lab.fence().await, ASKED, "down for {down:?}");
        assert!(lab.is_on() && lab.attempts() == 0);
    }
}

/// Its first look is not answered either, and a person asks for something while the off is under way.
#[tokio::test(start_paused = true)]
async fn an_off_that_was_let_go_may_have_been_taken_by_a_bmc_that_never_answered_before() {
    let mut lab = sessionless(2774).await;
    // Where something were expected of it, it would be read before it is believed to say nothing.
    lab.setup.adjust = Arc::new(|spec| spec.identity = Identity::default());
    lab.reload().await.expect("at rest");
    lab.fault("bmc", Fault::SaysIdentity(Identity::default()));
    lab.fault("bmc", Fault::HoldUnsupported);
    let (world, clock, points) = (lab.world.clone(), lab.clock.clone(), lab.points.clone());
    let happen = move |act| {
        world.lock().happen(clock.boot(), act);
    };
    let falls_silent = move || {
        happen(Act::Fault { device: "bmc".to_owned(), fault: Fault::Silent });
        let restarts = move || {
            happen(Act::Mend { device: "bmc".to_owned() });
            happen(Act::RestartBmc { device: "bmc".to_owned(), down: s(13), estranged: true });
        };
        *points.happens_at.lock() = Some(("sending off", Happens(Box::new(restarts))));
    };
    *lab.points.happens_at.lock() = Some(("saved hold_ended", Happens(Box::new(falls_silent))));
    lab.open().await;
    let sends_off = |lab: &Lab| lab.points.seen.lock().iter().any(|point| point == "sending off");
    while !sends_off(&lab) {
        tokio::time::sleep(s(1)).await;
    }
    lab.engine.retry_seen_off(&node(), person()).await.expect_err("nothing restarted yet");
    assert_eq!(settles(&lab).await, "needs_operator");
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::BmcRestarted));
    assert!(lab.is_on() && lab.attempts() == 0);
}

/// Also where it fell silent while releases were pending, and its hold, which would let it be believed, is gone.
#[tokio::test(start_paused = true)]
async fn one_that_fell_silent_after_its_proof_proves_nothing_either() {
    for down in [s(13), s(30)] {
        let mut lab = sessionless(2771).await;
        lab.answers(&[Answer::Refuse]);
        lab.open().await;
        lab.reach("fenced", s(60)).await;
        tokio::time::sleep(s(10)).await;
        lab.happen(Act::RestartBmc { device: "bmc".to_owned(), down, estranged: true });
        lab.happen(Act::ForgetHold { machine: NODE.to_owned() });
        lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
        tokio::time::sleep(down + s(5)).await;
        lab.answers(&[Answer::Complete]);
        lab.reach("needs_operator", s(400)).await;
        assert_eq!(lab.phase(), "needs_operator", "down for {down:?}");
        assert!(!matches!(lab.record().fence.and_then(|fence| fence.outcome), Some(Outcome::Fenced { .. })));
    }
}

/// Settings that let a node be watched each minute only: a silence that shows a restart is heard all the same.
#[tokio::test(start_paused = true)]
async fn a_restart_between_two_looks_of_a_rare_watch_is_seen() {
    for (seed, without_epochs) in [(2780, true), (2781, false)] {
        let mut setup = Setup::new(NODE, &[&["bmc"]]);
        setup.rules.watch = s(180);
        let mut lab = Lab::set_up(seed, setup, |world| {
            world.add_machine(NODE).add_host(NODE, "bmc");
            if without_epochs {
                world.set_sessionless("bmc");
            }
        })
        .await;
        lab.fault("bmc", Fault::OffIgnored);
        assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
        // Within one watch it is silent, answers again, and says off of a machine that runs.
        tokio::time::sleep(s(200)).await;
        lab.happen(Act::RestartBmc { device: "bmc".to_owned(), down: s(35), estranged: true });
        tokio::time::sleep(s(300)).await;
        assert!(!lab.record().fence.expect("open").lost.is_empty(), "without epochs: {without_epochs}");
        lab.engine.retry(&node(), person()).await.expect("taken");
        assert_eq!(settles(&lab).await, "needs_operator");
        assert!(lab.is_on() && lab.attempts() == 0);
    }
}

/// Nor does one that restarts while the next off of a breach is waited for.
#[tokio::test(start_paused = true)]
async fn a_restart_while_a_breach_backs_off_is_seen() {
    let mut lab = sessionless(2782).await;
    lab.fence().await;
    for breach in 1..=6 {
        lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
        lab.reach("fencing", s(60)).await;
        if breach < 6 {
            lab.reach("released", s(300)).await;
        }
    }
    // The next off is half a minute away.
    tokio::time::sleep(s(1)).await;
    lab.happen(Act::RestartBmc { device: "bmc".to_owned(), down: s(25), estranged: true });
    assert_eq!(settles(&lab).await, "needs_operator");
    assert!(lab.is_on());
}

/// A successor knows nothing of what this BMC answered before: the silence that was seen is stored.
#[tokio::test(start_paused = true)]
async fn nor_is_one_whose_silence_the_gateway_before_saw() {
    let mut lab = sessionless(2772).await;
    lab.fault("bmc", Fault::OffTakes { least: s(3_000), most: s(3_000) });
    lab.open().await;
    tokio::time::sleep(s(3)).await;
    lab.happen(Act::RestartBmc { device: "bmc".to_owned(), down: s(22), estranged: true });
    tokio::time::sleep(s(12)).await;
    lab.crash().await;
    assert_eq!(settles(&lab).await, "needs_operator");
    assert!(lab.is_on() && lab.attempts() == 0);
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::BmcRestarted));
}

/// S12: a person's word stands until a host device says On, whatever else that one does.
#[tokio::test(start_paused = true)]
async fn a_bmc_without_epochs_that_comes_back_says_nothing_against_a_persons_word() {
    let mut lab = sessionless(2773).await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.schedule(s(3), Act::Fault { device: "bmc".to_owned(), fault: Fault::Silent });
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    lab.answers(&[Answer::Refuse]);
    lab.engine.attest(&node(), person()).await.expect("attested");
    tokio::time::sleep(s(20)).await;
    lab.mend("bmc");
    tokio::time::sleep(s(30)).await;
    assert_eq!(lab.phase(), "fenced");
    let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("attested");
    assert_eq!(evidence.grade, Grade::Attested);
}

/// A node that is released stands on what its BMC says, too: whoever wants a receipt, or to know that it is fenced, is not told so by
/// the Off of one that may have restarted since.
#[tokio::test(start_paused = true)]
async fn a_bmc_without_epochs_that_restarts_once_all_is_released_bears_no_receipt() {
    let mut lab = sessionless(2774).await;
    lab.fence().await;
    let call = || ReceiptCall { by: "db".to_owned(), fence: None, renews: None, audience: String::new() };
    let before = lab.engine.receipt(&node(), call()).await.expect("it is dark");
    lab.happen(Act::RestartBmc { device: "bmc".to_owned(), down: s(25), estranged: true });
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    tokio::time::sleep(s(45)).await;
    let verified = lab.engine.verify_receipt(&node(), before.id, true).await.expect("answered");
    assert!(
        matches!(&verified, Verified::Holds { unsure: Some(why), .. } if why.contains("bmc")),
        "{verified:?}"
    );
    let refused = lab.engine.receipt(&node(), call()).await.expect_err("its Off says nothing");
    assert!(matches!(&refused, EngineError::NotProven(_)), "{refused}");
    // Whoever fences it again hears of no proof before there is one.
    lab.open_again().await;
    let told = format!("{:?}", lab.record().fence.expect("a fence").moments);
    assert!(told.contains("bmc may have restarted since"), "{told}");
    assert_eq!(settles(&lab).await, "needs_operator");
    assert!(lab.is_on());
}

/// The BMC answered who it is and what a hold would change, and nothing after that: to a successor that is a silence as well.
#[tokio::test(start_paused = true)]
async fn nor_is_one_believed_that_was_never_heard_to_read_anything_before_its_gateway_died() {
    for without_epochs in [false, true] {
        let mut lab = if without_epochs { sessionless(2775).await } else { lab(2776).await };
        // Its hold is answered, and it is not looked at yet.
        restarts_at(&lab, "sent hold", s(25));
        lab.open().await;
        tokio::time::sleep(s(20)).await;
        assert_eq!(lab.received("bmc").reads, 0);
        lab.crash().await;
        settles(&lab).await;
        let outcome = lab.record().fence.and_then(|fence| fence.outcome);
        let restarted = Some(Outcome::NeedsOperator(Reason::BmcRestarted));
        assert_eq!(outcome, restarted, "without epochs: {without_epochs}");
        assert!(lab.is_on() && lab.attempts() == 0);
    }
}

/// The BMC restarts at that point of the engine, and says off from then on.
fn restarts_at(lab: &Lab, point: &'static str, down: Duration) {
    let (world, clock) = (lab.world.clone(), lab.clock.clone());
    let restarts = move || {
        let restart = Act::RestartBmc { device: "bmc".to_owned(), down, estranged: true };
        world.lock().happen(clock.boot(), restart);
    };
    *lab.points.happens_at.lock() = Some((point, Happens(Box::new(restarts))));
}

/// A look at the machine, and a proof with a hold, are of one generation: a node that was found on since is proven as any other.
#[tokio::test(start_paused = true)]
async fn a_breach_leaves_nothing_of_what_let_a_restarted_bmc_be_believed() {
    let mut lab = lab(2777).await;
    lab.answers(&[Answer::Refuse]);
    lab.open().await;
    lab.reach("fenced", s(60)).await;
    lab.fault("bmc", Fault::Silent);
    tokio::time::sleep(s(45)).await;
    lab.mend("bmc");
    lab.answers(&[Answer::Complete]);
    lab.reach("released", s(300)).await;
    lab.fault("bmc", Fault::RestartsUnderOff { down: s(20) });
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(60)).await;
    assert_eq!(settles(&lab).await, "needs_operator");
    assert!(lab.is_on());
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::BmcRestarted));
}

/// Its settings say that it is to be believed after a minute, and that a level has less than that.
#[tokio::test(start_paused = true)]
async fn a_level_whose_device_restarted_has_the_time_after_which_it_is_believed() {
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.rules.level_share = s(45);
    setup.adjust = Arc::new(|spec| spec.trust_after_restart = Some(s(60)));
    let mut lab = Lab::set_up(2778, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await;
    lab.fault("bmc", Fault::RestartsUnderOff { down: s(5) });
    lab.schedule(s(4), Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert!(!lab.is_on());
}
