//! A store that is away, or does not say whether it wrote.

use picket_core::outcome::Outcome;
use picket_core::store::StoreError;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{Admission, EngineError, Until};

use crate::lab::{Lab, NODE, lab, node, s};
use crate::points::Happens;

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
    *lab.points.happens_at.lock().expect("whole") = Some((point, goes));
    lab.open().await;
    while !lab.points.seen.lock().expect("whole").iter().any(|seen| seen == point) {
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
    let log = lab.store.log.lock().expect("whole").clone();
    assert!(log.windows(2).all(|two| two[0].version.next() == two[1].version && two[0].at <= two[1].at));
}
