//! What a lost or silent session means to whoever goes on: no hole, and no false alarm.

use std::sync::Arc;
use std::time::Duration;

use picket_core::outcome::{Outcome, Reason};
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{EngineError, Until};
use tokio::time::Instant;

use crate::lab::{Lab, NODE, lab, node, person, s};

const FENCED: Option<Outcome> = Some(Outcome::Fenced { released: true });

async fn falls_silent(lab: &Lab) {
    while lab.record().fence.expect("open").silent.is_empty() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_silence_that_is_stored_binds_whoever_goes_on() {
    for join in [true, false] {
        let mut lab = lab(921).await;
        assert_eq!(Some(lab.fence().await), FENCED);
        lab.happen(Act::RestartBmc { device: "bmc".to_owned(), down: s(40), estranged: true });
        lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
        falls_silent(&lab).await;
        lab.kill().await;
        tokio::time::sleep(s(100)).await;
        lab.start().await;
        tokio::time::sleep(s(5)).await;
        if !join {
            lab.unfence().await.expect("unfenced");
            tokio::time::sleep(s(1)).await;
        }
        lab.open_again().await;
        tokio::time::sleep(s(120)).await;
        let outcome = lab.record().fence.and_then(|fence| fence.outcome);
        assert_eq!(outcome, Some(Outcome::NeedsOperator(Reason::BmcRestarted)), "joined: {join}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_process_under_another_leadership_has_its_sessions_still() {
    let mut lab = lab(922).await;
    lab.fault("bmc", Fault::OffTakes { least: s(3), most: s(3) });
    let id = lab.open().await;
    tokio::time::sleep(s(1)).await;
    let logins = lab.received("bmc").opens;
    lab.fault("bmc", Fault::Silent);
    lab.store.swallow(s(8));
    tokio::time::sleep(s(8)).await;
    lab.mend("bmc");
    assert_eq!(lab.outcome_within(id, Until::Released, s(600)).await, FENCED);
    assert_eq!(lab.received("bmc").opens, logins, "the old session answered");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_closed_after_a_silence_is_not_lost() {
    let mut lab = lab(923).await;
    assert_eq!(Some(lab.fence().await), FENCED);
    lab.fault("bmc", Fault::Silent);
    falls_silent(&lab).await;
    lab.mend("bmc");
    lab.fault("bmc", Fault::OnDropped { times: 1_000 });
    lab.unfence().await.expect("unfenced");
    tokio::time::sleep(s(4)).await;
    let id = lab.open().await;
    assert_eq!(lab.outcome_within(id, Until::Released, s(600)).await, FENCED);
}

/// S3: an On speaks against the Off before it, whoever asked.
#[tokio::test(start_paused = true)]
async fn an_on_that_only_a_person_s_look_heard_begins_the_proof_anew() {
    let mut lab = Lab::with(925, &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").set_sessionless("bmc");
    })
    .await;
    let id = lab.open().await;
    while lab.is_on() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(s(6)).await;
    lab.fault("bmc", Fault::SaysOn);
    let refused = lab.engine.attest(&node(), person()).await;
    assert!(matches!(&refused, Err(EngineError::Refused(_))), "{refused:?}");
    lab.mend("bmc");
    let heard = Instant::now();
    assert_eq!(lab.outcome(id, Until::Confirmed).await, Outcome::Fenced { released: false });
    assert!(heard.elapsed() >= s(15), "{:?}", heard.elapsed());
}

/// What a look has to store is stored whole, whatever the releaser answers meanwhile.
#[tokio::test(start_paused = true)]
async fn an_answer_of_a_releaser_cuts_no_write_off() {
    let mut lab = lab(924).await;
    lab.answers(&[crate::lab::Answer::Accept]);
    *lab.observer.look_takes.lock() = s(8);
    lab.open().await;
    lab.reach("fenced", s(60)).await;
    while !lab.observer.looking.load(std::sync::atomic::Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let term = lab.engine.leading();
    lab.fault("bmc", Fault::Silent);
    lab.store.linger(s(2));
    tokio::time::sleep(s(9)).await;
    lab.store.linger(s(0));
    lab.mend("bmc");
    tokio::time::sleep(s(60)).await;
    assert_eq!(lab.engine.leading(), term, "no write was lost");
}

/// What had stopped answering before the fence began was not lost within it: a node that is off is proven off.
#[tokio::test(start_paused = true)]
async fn a_session_that_fell_silent_before_the_fence_is_no_loss_within_it() {
    for restarts in [false, true] {
        let mut lab = lab(925).await;
        lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
        lab.engine.check(&node()).await.expect("checked");
        lab.fault("bmc", Fault::Silent);
        lab.engine.check(&node()).await.expect("checked");
        if restarts {
            lab.happen(Act::RestartBmc { device: "bmc".to_owned(), down: s(0), estranged: false });
        }
        lab.mend("bmc");
        tokio::time::sleep(s(240)).await;
        let id = lab.open().await;
        assert_eq!(lab.outcome_within(id, Until::Released, s(600)).await, FENCED, "restarts: {restarts}");
        assert!(lab.record().fence.expect("kept").lost.is_empty());
    }
}

/// What another process may have switched on keeps an Off from counting for minutes: its session is kept meanwhile, however seldom the settings
/// want a fenced node watched.
#[tokio::test(start_paused = true)]
async fn no_session_ends_by_idleness_while_the_end_of_an_on_is_waited_for() {
    let mut lab = lab(2790).await;
    lab.kill().await;
    lab.setup.rules.watch = s(60);
    lab.setup.adjust = Arc::new(|spec| spec.max_in_flight.on = Some(s(200)));
    lab.start().await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.fault("bmc", Fault::OnDropped { times: 100 });
    lab.unfence().await.expect("unfenced");
    while lab.received("bmc").ons == 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    lab.crash().await;
    let opens = lab.received("bmc").opens;
    lab.open().await;
    lab.reach("released", s(400)).await;
    assert!(lab.received("bmc").opens <= opens + 1, "one session all the time");
    assert!(lab.record().fence.expect("open").lost.is_empty());
}
