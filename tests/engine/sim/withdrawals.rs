//! Withdrawals racing with everything else: the turn that comes, the store's weather, other withdrawals, deaths. Whoever is
//! told that a request was withdrawn is told the truth: it is never begun.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::budget::pause::PauseScope;
use picket_core::ids::NodeId;
use picket_core::store::{Store, StoreError};
use picket_driver_sim::Random;
use picket_engine::{Ask, Engine, EngineError, WaitState, Waits};

use crate::budget::{at_once, fleet, name};
use crate::lab::{Lab, node, number, person, s};
use crate::queue::{end, wait};

fn ask() -> Ask {
    person().into()
}

/// Whether a fence of `n1` was ever begun for `db`, as the store has it.
fn was_begun(lab: &Lab) -> bool {
    let log = lab.store.log.lock();
    log.iter().any(|entry| entry.record.node == node() && entry.record.holds.contains_key("db"))
}

/// `n2` takes the only place for about 10 s, and `n1` waits for it.
async fn waiting(seed: u64) -> (Lab, Waits) {
    let mut lab = fleet(seed, 3, at_once(1)).await;
    let call = lab.call();
    lab.engine.fence(&name(2), call).await.expect("let in");
    let call = lab.call();
    let waits = wait(&lab, &node(), call, None).await;
    (lab, waits)
}

/// Its turn has come: the write of its intent has happened, and for another second nobody is told.
async fn going(seed: u64) -> (Lab, Waits) {
    let (lab, waits) = waiting(seed).await;
    lab.reach_of(&name(2), "fenced", s(120)).await;
    lab.store.linger(s(1));
    let begins = async {
        while !was_begun(&lab) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(s(120), begins).await.expect("its turn comes");
    assert_eq!((lab.phase(), end(&waits).is_none()), ("normal", true), "nobody was told yet");
    (lab, waits)
}

#[tokio::test(start_paused = true)]
async fn what_its_node_decides_just_now_is_waited_for() {
    let (lab, waits) = going(340).await;
    let ended = lab.engine.withdraw(&node(), "db", &ask()).await.expect("answered");
    assert!(ended.is_empty(), "it was let in: {ended:?}");
    assert!(matches!(end(&waits), Some(Ok(()))) && lab.record().holds.contains_key("db"));
    lab.store.linger(s(0));
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_begun_is_not_told_as_withdrawn() {
    let (lab, waits) = going(341).await;
    // Whether its intent was written is not told, nor can it be read; notes of the queue can be.
    lab.store.mute(s(3));
    let first = lab.engine.withdraw(&node(), "db", &ask()).await;
    assert!(matches!(first, Err(EngineError::Unanswered)), "{first:?}");
    lab.store.linger(s(0));
    assert!(end(&waits).is_none(), "nobody knew");
    lab.reach("fencing", s(60)).await;
    let ended = lab.engine.withdraw(&node(), "db", &ask()).await.expect("answered");
    assert!(ended.is_empty(), "it was let in: {ended:?}");
    lab.reach("released", s(600)).await;
    assert_eq!(lab.store.notes("queue/").await.expect("a store"), []);
}

#[tokio::test(start_paused = true)]
async fn of_two_withdrawals_both_are_answered_and_one_ended_it() {
    let mut lab = fleet(345, 2, at_once(9)).await;
    lab.engine.pause(PauseScope::Node(node()), person(), s(3_600)).await.expect("paused");
    let call = lab.call();
    let waits = wait(&lab, &node(), call, None).await;
    let (engine, ask, of) = (&lab.engine, ask(), node());
    let (first, second) = tokio::join!(engine.withdraw(&of, "db", &ask), engine.withdraw(&of, "db", &ask));
    let (first, second) = (first.expect("answered"), second.expect("answered"));
    assert_eq!([first, second].concat(), [waits.ticket]);
    assert!(lab.engine.waiting_for(&node()).is_empty());
    assert_eq!(lab.store.notes("queue/").await.expect("a store"), []);
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_it_goes_on_waiting_and_its_holder_is_told_so() {
    let mut lab = fleet(346, 2, at_once(9)).await;
    lab.engine.pause(PauseScope::Node(node()), person(), s(3_600)).await.expect("paused");
    let call = lab.call();
    let waits = wait(&lab, &node(), call, None).await;
    lab.store.away(s(30));
    let refused = lab.engine.withdraw(&node(), "db", &ask()).await;
    assert!(matches!(refused, Err(EngineError::Store(StoreError::Unavailable(_)))), "{refused:?}");
    assert!(end(&waits).is_none() && lab.engine.waiting_for(&node()).len() == 1, "it waits, and is seen");
    // Whoever dies now has it still.
    lab.kill().await;
    tokio::time::sleep(s(31)).await;
    lab.start().await;
    assert_eq!(lab.engine.waiting_for(&node()).len(), 1);
    assert_eq!(lab.engine.withdraw(&node(), "db", &ask()).await.expect("withdrawn"), [waits.ticket]);
    lab.crash().await;
    lab.engine.resume(PauseScope::Node(node()), person()).await.expect("resumed");
    tokio::time::sleep(s(60)).await;
    assert!(!was_begun(&lab) && lab.is_on());
}

/// The store goes away right after its fence was begun: the request waits no more, and the next leader would find it waiting.
#[tokio::test(start_paused = true)]
async fn what_was_decided_is_out_of_the_store_before_its_holder_is_answered() {
    let (lab, waits) = going(347).await;
    lab.store.away(s(20));
    tokio::time::sleep(s(3)).await;
    assert!(matches!(end(&waits), Some(Ok(()))), "it was let in");
    let refused = lab.engine.withdraw(&node(), "db", &ask()).await;
    assert!(matches!(refused, Err(EngineError::Store(StoreError::Unavailable(_)))), "{refused:?}");
    lab.store.linger(s(0));
    lab.store.clear();
    assert_ne!(lab.store.notes("queue/").await.expect("a store"), []);
    let ended = lab.engine.withdraw(&node(), "db", &ask()).await.expect("answered");
    assert!(ended.is_empty(), "it was let in: {ended:?}");
    assert_eq!(lab.store.notes("queue/").await.expect("a store"), []);
}

/// What a caller who wants the node no more does, until it is answered: its requests are withdrawn, then its hold is dropped.
async fn leaves(engine: Engine, node: NodeId, told: Arc<Mutex<Vec<u64>>>) {
    loop {
        match engine.withdraw(&node, "db", &ask()).await {
            Ok(ended) => {
                told.lock().extend(ended);
                break;
            }
            Err(EngineError::Store(_) | EngineError::NoLeader(_) | EngineError::Unanswered) => {
                tokio::time::sleep(s(1)).await
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    // Dropping a hold that is not there, or within a fence, is refused: both are an answer.
    let _ = engine.unfence(&node, "db".to_owned(), person()).await;
}

async fn race(seed: u64) {
    let (mut lab, waits) = waiting(seed).await;
    let mut random = Random::new(seed);
    // About when the place becomes free, in a store that is slow, silent, or away.
    lab.reach_of(&name(2), "fenced", s(120)).await;
    let silent = if random.percent(50) { 20 } else { 0 };
    lab.store
        .rough(silent, Duration::from_millis(random.between(Duration::ZERO, s(1)).as_millis() as u64 / 2));
    if random.percent(30) {
        lab.store.swallow(random.between(Duration::ZERO, s(5)));
    }
    let told = Arc::<Mutex<Vec<u64>>>::default();
    let callers = 1 + usize::from(random.percent(50));
    let mut leaving = Vec::new();
    for _ in 0..callers {
        tokio::time::sleep(random.between(Duration::ZERO, s(4))).await;
        leaving.push(tokio::spawn(leaves(lab.engine.clone(), node(), told.clone())));
        if random.percent(20) {
            lab.store.away(random.between(Duration::ZERO, s(10)));
        }
    }
    let dies = random.percent(40);
    if dies {
        tokio::time::sleep(random.between(Duration::ZERO, s(2))).await;
        lab.kill().await;
        leaving.drain(..).for_each(|one| one.abort());
        lab.store.clear();
        lab.start().await;
        // Whoever was not answered asks again.
        leaving.push(tokio::spawn(leaves(lab.engine.clone(), node(), told.clone())));
    }
    for one in leaving {
        tokio::time::timeout(s(120), one).await.expect("answered in time").expect("no panic");
    }
    assert!(lab.engine.waiting_for(&node()).is_empty(), "seed {seed}: nothing of it waits any more");
    let begun = was_begun(&lab);
    lab.store.clear();
    tokio::time::sleep(s(120)).await;
    assert_eq!(was_begun(&lab), begun, "seed {seed}: begun after its holder was answered");
    let told = told.lock().clone();
    assert!(told.iter().all(|ticket| *ticket == waits.ticket) && told.len() <= 1, "seed {seed}: {told:?}");
    assert!(told.is_empty() || !begun, "seed {seed}: told as withdrawn, and begun");
    assert_eq!(lab.store.notes("queue/").await.expect("a store"), [], "seed {seed}");
    if !dies {
        let over = match &*waits.state.borrow() {
            WaitState::Over(over) => Some(over.is_ok()),
            // Its leadership ended without one: the store did not say whether it wrote.
            WaitState::Barred(_) => None,
        };
        assert!(over.is_none_or(|let_in| let_in == begun), "seed {seed}: {over:?} {begun}");
    }
    let _ = lab.unfence().await;
    lab.reach("normal", s(600)).await;
    assert!(lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn whenever_it_comes_it_is_withdrawn_or_let_in_and_never_both() {
    let count = match number("PICKET_SOAK") {
        Some(on) if on > 0 => 2_000,
        _ => 25,
    };
    let from = number("PICKET_FROM").unwrap_or(34_000);
    for seed in from..from + number("PICKET_HISTORIES").unwrap_or(count) {
        race(seed).await;
    }
}
