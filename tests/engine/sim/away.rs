//! A store that is away, or does not say whether it wrote.

use std::time::Duration;

use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;
use picket_core::store::StoreError;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{Admission, EngineError, ReceiptCall, Until};
use tokio::task::JoinHandle;

use crate::lab::{Lab, NODE, lab, node, person, s};
use crate::points::Happens;
use crate::setup::Setup;

#[tokio::test(start_paused = true)]
async fn while_it_is_away_offs_are_repeated_and_nothing_is_confirmed() {
    let mut lab = lab(120).await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.open().await;
    tokio::time::sleep(s(5)).await;
    lab.store.away(s(100));
    tokio::time::sleep(s(40)).await;
    let offs = lab.received("bmc").offs;
    assert!(offs >= 3, "{offs} offs: the ledger has it, so it may be repeated");
    lab.mend("bmc");
    tokio::time::sleep(s(30)).await;
    assert_eq!((lab.is_on(), lab.phase(), lab.attempts()), (false, "fencing", 0));
    lab.reach("released", s(120)).await;
    assert_eq!(lab.attempts(), 1);
}

/// A disk that hangs: the write is neither taken nor refused.
#[tokio::test(start_paused = true)]
async fn while_it_does_not_answer_that_is_told_and_nobody_waits_unanswered() {
    let mut lab = lab(124).await;
    lab.store.linger(s(60));
    let (engine, first, second) = (lab.engine.clone(), lab.call(), lab.call());
    let asked = tokio::spawn(async move { engine.fence(&node(), first).await });
    let at = lab.clock.boot();
    tokio::time::sleep(s(5)).await;
    let wait = lab.view().live.wait.clone().expect("it is said what for");
    assert_eq!((wait.what.as_str(), wait.whose.as_str()), ("the store (no answer for 4s)", "store"));
    let refused = lab.engine.fence(&node(), second).await;
    assert!(matches!(refused, Err(EngineError::Store(StoreError::Unavailable(_)))), "{refused:?}");
    assert!(lab.clock.boot().since(at) < s(31));
    assert!(matches!(asked.await.expect("whole"), Ok(Admission::Opened(_))));
    lab.store.linger(s(0));
    lab.reach("released", s(120)).await;
    assert!(lab.view().live.wait.is_none());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_released_or_brought_back_while_it_is_away() {
    let mut lab = lab(121).await;
    let id = lab.open().await;
    lab.outcome(id, Until::Confirmed).await;
    lab.store.away(s(60));
    tokio::time::sleep(s(50)).await;
    assert_eq!((lab.phase(), lab.attempts()), ("fenced", 0));
    lab.reach("released", s(120)).await;
    lab.unfence().await.expect("unfenced");
    lab.store.away(s(60));
    tokio::time::sleep(s(50)).await;
    assert_eq!((lab.is_on(), lab.received("bmc").ons), (false, 0));
    lab.reach("normal", s(120)).await;
    assert!(lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn a_breach_while_it_is_away_is_fenced_again_when_it_is_back() {
    let mut lab = lab(122).await;
    lab.fence().await;
    lab.store.away(s(60));
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    tokio::time::sleep(s(50)).await;
    // What a new fence sends stands in the ledger first.
    assert!(lab.is_on());
    lab.reach("fencing", s(60)).await;
    lab.reach("released", s(120)).await;
    assert!(!lab.is_on());
}

/// S2: a BMC that tells of no lives restarts while the store is away between two releases, and says Off of a machine that runs by then.
#[tokio::test(start_paused = true)]
async fn a_restart_that_nothing_shows_is_seen_while_it_is_away() {
    let mut lab = Lab::with(129, &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").set_sessionless("bmc");
    })
    .await;
    // What it engaged would let its Off be believed again (S2).
    lab.fault("bmc", Fault::HoldUnsupported);
    let observer = lab.observer.clone();
    lab.setup.releases.push(("more".to_owned(), observer));
    lab.reload().await.expect("at rest");
    let point = "saving release_progress";
    let store = lab.store.clone();
    let goes = Happens(Box::new(move || store.away(s(300))));
    *lab.points.happens_at.lock() = Some((point, goes));
    lab.open().await;
    while !lab.points.seen.lock().iter().any(|seen| seen == point) {
        tokio::time::sleep(s(1)).await;
    }
    let attempts = lab.attempts();
    lab.schedule(s(60), Act::RestartBmc { device: "bmc".to_owned(), down: s(20), estranged: true });
    lab.schedule(s(70), Act::Fault { device: "bmc".to_owned(), fault: Fault::SaysOff });
    lab.schedule(s(75), Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    tokio::time::sleep(s(900)).await;
    assert!(lab.is_on(), "it runs");
    assert_eq!(lab.attempts(), attempts, "nothing more is let go: {:#?}", lab.record().fence);
}

/// What was seen of it then binds the judge of the next run: an Off is believed by the hold alone that was found engaged still, and for what that is worth.
#[tokio::test(start_paused = true)]
async fn what_was_seen_while_it_was_away_binds_the_next_run() {
    let mut lab = Lab::with(130, &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").set_sessionless("bmc");
    })
    .await;
    lab.open().await;
    lab.reach("fenced", s(60)).await;
    lab.store.away(s(300));
    lab.schedule(s(60), Act::RestartBmc { device: "bmc".to_owned(), down: s(20), estranged: false });
    lab.reach("released", s(900)).await;
    let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("proven");
    let why =
        "bmc: its session was lost, and the hold with which it proved the node off before was engaged still";
    assert!(evidence.lowered_by.iter().any(|one| one == why), "{evidence:?}");
}

/// A BMC that tells of no lives, and whose hold would not let its Off be believed again (S2).
async fn hides_its_restarts(seed: u64, without_releases: bool) -> Lab {
    let setup = Setup { without_releases, ..Setup::new(NODE, &[&["bmc"]]) };
    let lab = Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").set_sessionless("bmc");
    })
    .await;
    lab.fault("bmc", Fault::HoldUnsupported);
    lab
}

/// So much later it restarts, its machine comes on meanwhile, and it says Off of that.
fn restarts_and_lies(lab: &Lab, after: Duration) {
    lab.schedule(after, Act::RestartBmc { device: "bmc".to_owned(), down: s(20), estranged: true });
    lab.schedule(after + s(10), Act::Fault { device: "bmc".to_owned(), fault: Fault::SaysOff });
    lab.schedule(after + s(15), Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
}

/// Fences, and the confirmation is answered so much later.
async fn is_confirmed_late(lab: &mut Lab, late: Duration) {
    let (point, store) = ("saving confirmed", lab.store.clone());
    let goes = Happens(Box::new(move || store.linger(late)));
    *lab.points.happens_at.lock() = Some((point, goes));
    lab.open().await;
    while !lab.points.seen.lock().iter().any(|seen| seen == point) {
        tokio::time::sleep(s(1) / 10).await;
    }
    tokio::time::sleep(s(1)).await;
    lab.store.linger(s(0));
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_nothing_shows_is_seen_while_it_hangs_over_the_confirmation() {
    let mut lab = hides_its_restarts(131, false).await;
    is_confirmed_late(&mut lab, s(50)).await;
    restarts_and_lies(&lab, s(4));
    tokio::time::sleep(s(900)).await;
    assert!(lab.is_on(), "it runs");
    assert_eq!(lab.attempts(), 0, "nothing is let go: {:#?}", lab.record().fence);
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::BmcRestarted));
}

/// It is asked all the while: that the store took its time is no silence of the device.
#[tokio::test(start_paused = true)]
async fn what_answers_while_it_hangs_over_the_confirmation_keeps_its_proof() {
    let mut lab = hides_its_restarts(132, false).await;
    is_confirmed_late(&mut lab, s(50)).await;
    lab.reach("released", s(120)).await;
    assert_eq!(lab.received("bmc").offs, 2, "the first off, and the one at the end of its window");
    assert!(lab.record().fence.is_some_and(|fence| fence.lost.is_empty() && fence.round == 0));
}

/// It comes on while the confirmation is being stored, and is off again by the time that is.
#[tokio::test(start_paused = true)]
async fn an_on_while_it_hangs_over_the_confirmation_is_a_breach() {
    let mut lab = lab(133).await;
    is_confirmed_late(&mut lab, s(50)).await;
    lab.schedule(s(10), Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.schedule(s(20), Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    lab.reach("released", s(300)).await;
    assert_eq!(lab.record().breaches, 1);
}

/// The store hangs over the confirmation, and does not take it then. What was read meanwhile is no silence of the device.
#[tokio::test(start_paused = true)]
async fn what_answers_while_it_hangs_in_vain_is_proven_off_without_a_loss() {
    let mut lab = hides_its_restarts(136, false).await;
    let store = lab.store.clone();
    let goes = Happens(Box::new(move || {
        store.away(s(100));
        store.rough(0, s(90));
    }));
    *lab.points.happens_at.lock() = Some(("saving confirmed", goes));
    lab.open().await;
    tokio::time::sleep(s(17)).await;
    lab.store.rough(0, s(0));
    let hung = lab.view().live.wait.clone().map(|wait| wait.what);
    tokio::time::sleep(s(13)).await;
    let hangs = lab.view().live.wait.clone().map(|wait| wait.what);
    assert!(hangs.as_ref().is_some_and(|what| what.contains("no answer for")), "{hung:?} {hangs:?}");
    lab.reach("released", s(300)).await;
    let fence = lab.record().fence.expect("open");
    assert!(fence.lost.is_empty() && fence.round == 0, "{fence:#?}");
}

/// What asks the store while a released node is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    /// A receipt ran out, and the store is away.
    Expires,
    /// Another caller's fence, and the store hangs.
    Joins,
    /// A receipt, and the store hangs.
    IsVouchedFor,
}

const ASKING: [Asking; 3] = [Asking::Expires, Asking::Joins, Asking::IsVouchedFor];

fn receipt() -> ReceiptCall {
    ReceiptCall { by: "db".to_owned(), fence: None, renews: None, audience: "storage".to_owned() }
}

/// A node that is released, and of which the store is asked for so long from now on, or a minute later.
async fn released_and_asked(seed: u64, asking: Asking, time: Duration) -> (Lab, JoinHandle<bool>) {
    let mut lab = hides_its_restarts(seed, true).await;
    lab.fence().await;
    tokio::time::sleep(s(25)).await;
    let (engine, call) = (lab.engine.clone(), lab.call());
    let asked = match asking {
        Asking::Expires => {
            engine.receipt(&node(), receipt()).await.expect("proven off");
            lab.store.away(s(65) + time);
            tokio::time::sleep(s(65)).await;
            tokio::spawn(async move { false })
        }
        Asking::Joins => tokio::spawn(async move {
            matches!(engine.fence(&node(), call).await.expect("let in"), Admission::Already(_))
        }),
        Asking::IsVouchedFor => tokio::spawn(async move { engine.receipt(&node(), receipt()).await.is_ok() }),
    };
    if asking != Asking::Expires {
        lab.store.linger(time);
        tokio::time::sleep(s(1)).await;
        lab.store.linger(s(0));
    }
    (lab, asked)
}

/// S2: a BMC that tells of no lives restarts while nothing can be stored of a released node, and says Off of a machine that runs by then.
#[tokio::test(start_paused = true)]
async fn a_restart_that_nothing_shows_is_seen_in_a_released_node_too() {
    for asking in ASKING {
        let (mut lab, asked) = released_and_asked(134, asking, s(50)).await;
        restarts_and_lies(&lab, s(4));
        assert!(!asked.await.expect("whole"), "{asking:?}: it runs");
        tokio::time::sleep(s(60)).await;
        assert!(lab.is_on() && !lab.view().live.proven, "{asking:?}");
        assert!(lab.engine.receipt(&node(), receipt()).await.is_err(), "{asking:?}");
        let call = lab.call();
        let again = lab.engine.fence(&node(), call).await.expect("let in");
        assert!(matches!(again, Admission::Joined(_)), "{asking:?}: {again:?}");
    }
}

/// What an outlet does not answer while a released node is watched speaks against nothing, as ever.
#[tokio::test(start_paused = true)]
async fn an_outlet_that_is_silent_while_the_store_hangs_is_no_reason_to_prove_a_released_node_anew() {
    let setup = Setup { without_releases: true, ..Setup::new(NODE, &[&["a"]]) };
    let mut lab = Lab::set_up(137, setup, |world| {
        world.add_machine(NODE).add_supply(NODE, "a");
    })
    .await;
    lab.fence().await;
    lab.store.linger(s(50));
    let (engine, call) = (lab.engine.clone(), lab.call());
    let asked = tokio::spawn(async move { engine.fence(&node(), call).await });
    lab.schedule(s(4), Act::Fault { device: "a".to_owned(), fault: Fault::Silent });
    lab.schedule(s(30), Act::Mend { device: "a".to_owned() });
    tokio::time::sleep(s(1)).await;
    lab.store.linger(s(0));
    tokio::time::sleep(s(25)).await;
    assert!(lab.view().live.proven && lab.phase() == "released");
    asked.abort();
}

/// It comes on while nothing can be stored of it, and is off again by the time that can.
#[tokio::test(start_paused = true)]
async fn an_on_while_nothing_can_be_stored_of_a_released_node_is_a_breach() {
    let (lab, _) = released_and_asked(138, Asking::Expires, s(50)).await;
    lab.schedule(s(10), Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.schedule(s(20), Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    tokio::time::sleep(s(70)).await;
    assert_eq!(lab.record().breaches, 1);
}

/// One that is watched at its own pace is heard of no less often for a store that hangs.
#[tokio::test(start_paused = true)]
async fn a_released_node_that_answers_keeps_its_proof_whatever_the_store_does() {
    for asking in ASKING {
        for time in [s(12), s(50)] {
            let (lab, asked) = released_and_asked(135, asking, time).await;
            let taken = asked.await.expect("whole");
            assert!(taken || asking == Asking::Expires, "{asking:?}");
            tokio::time::sleep(s(60)).await;
            assert!(lab.view().live.proven, "{asking:?} for {time:?}");
            lab.engine.receipt(&node(), receipt()).await.expect("proven off");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_is_not_told_that_nothing_happened_when_nobody_knows() {
    let mut lab = lab(123).await;
    lab.store.swallow(s(20));
    let call = lab.call();
    match lab.engine.fence(&node(), call.clone()).await {
        Err(EngineError::Store(StoreError::Unknown(_))) => {}
        other => panic!("{other:?}"),
    }
    // It had been written; whoever asks again with the same key hears so.
    lab.reach("fencing", s(60)).await;
    let again = lab.engine.fence(&node(), call).await.expect("let in");
    assert!(matches!(again, Admission::Joined(_)), "{again:?}");
    assert_eq!(lab.outcome(again.fence(), Until::Released).await, Outcome::Fenced { released: true });
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_lost_is_asked_for_again() {
    let mut lab = lab(124).await;
    // One write of two is not answered; half of those happened.
    lab.store.rough(50, s(0));
    let id = loop {
        let call = lab.call();
        match lab.engine.fence(&node(), call).await {
            Ok(admission) => break admission.fence(),
            Err(EngineError::Store(_) | EngineError::NoLeader(_) | EngineError::Unanswered) => {
                tokio::time::sleep(s(2)).await
            }
            Err(other) => panic!("{other:?}"),
        }
    };
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
    lab.store.clear();
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(300)).await;
    let log = lab.store.log.lock().clone();
    assert!(log.windows(2).all(|two| two[0].version.next() == two[1].version && two[0].at <= two[1].at));
}

/// A person's word holds until a host device says On (S12), which one does while the store hangs over that word.
#[tokio::test(start_paused = true)]
async fn an_on_while_the_store_hangs_over_a_person_s_word_is_a_breach() {
    for given_up in [false, true] {
        let mut lab = lab(140).await;
        lab.fault("bmc", Fault::Silent);
        lab.open().await;
        if given_up {
            lab.reach("needs_operator", s(1_800)).await;
        }
        lab.store.linger(s(30));
        let engine = lab.engine.clone();
        let asked = tokio::spawn(async move { engine.attest(&node(), person()).await });
        while lab.points.seen.lock().last().is_none_or(|seen| seen != "saving attest") {
            tokio::time::sleep(s(1) / 10).await;
        }
        lab.store.linger(s(0));
        lab.schedule(s(5), Act::Mend { device: "bmc".to_owned() });
        lab.schedule(s(15), Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
        asked.await.expect("whole").expect("nobody said On before it");
        lab.reach("released", s(600)).await;
        assert_eq!(lab.record().breaches, 1, "given up: {given_up}");
    }
}
