//! A store that is away while something stands: it is taken away all the same, and that is stored later (K3).

use std::sync::Arc;
use std::time::Duration;

use picket_core::power::Power;
use picket_core::record::Then;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{Admission, EngineError, NodeView, ReceiptCall, Verified};

use super::cluster::Cluster;
use super::{behind_levels, lab, lawful, taint, until};
use crate::lab::{Lab, NODE, node, person, s};
use crate::points::Happens;

/// The store goes away just after the attempt was sent: what came of it cannot be stored.
async fn stands_without_a_store(seed: u64, takes: Duration) -> (Lab, Arc<Cluster>) {
    let (mut lab, cluster) = lab(seed, takes).await;
    let store = lab.store.clone();
    let goes = Happens(Box::new(move || store.away(s(3_600))));
    *lab.points.happens_at.lock() = Some(("sent release", goes));
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    (lab, cluster)
}

fn switched_on(lab: &Lab) {
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_does_not_keep_the_taint_on_a_machine_that_is_on() {
    let (lab, cluster) = stands_without_a_store(930, s(60)).await;
    tokio::time::sleep(s(11)).await;
    assert!(cluster.seen(|state| state.stands && state.removed.is_empty()), "it reads Off");
    switched_on(&lab);
    let at = lab.clock.boot();
    until(&cluster, |state| !state.stands).await;
    assert!(lab.clock.boot().since(at) < s(4), "{:?}", lab.clock.boot().since(at));
    assert_eq!((lab.phase(), lab.record().breaches), ("fenced", 0), "nothing could be stored");
    assert!(!lab.view().live.proven);
    // Off again before anything can be stored: it was on all the same.
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    tokio::time::sleep(s(60)).await;
    assert_eq!(cluster.seen(|state| (state.stands, state.placed.len())), (false, 1));
    lab.store.clear();
    lab.reach("released", s(300)).await;
    assert_eq!((lab.record().breaches, cluster.seen(|state| state.placed.len())), (1, 2));
    lawful(&cluster);
}

/// A disk that hangs takes nothing and refuses nothing.
#[tokio::test(start_paused = true)]
async fn nor_does_one_that_neither_takes_nor_refuses_anything() {
    let (mut lab, cluster) = lab(951, s(60)).await;
    let store = lab.store.clone();
    let hangs = Happens(Box::new(move || store.linger(s(600))));
    *lab.points.happens_at.lock() = Some(("sent release", hangs));
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(11)).await;
    assert!(cluster.seen(|state| state.stands && state.removed.is_empty()), "it reads Off");
    switched_on(&lab);
    let at = lab.clock.boot();
    until(&cluster, |state| !state.stands).await;
    assert!(lab.clock.boot().since(at) < s(4), "{:?}", lab.clock.boot().since(at));
    assert!(!lab.view().live.proven);
    assert_eq!(lab.record().breaches, 0, "what is stored is told later");
    lab.store.linger(s(0));
    lab.reach("released", s(900)).await;
    assert_eq!((lab.record().breaches, cluster.seen(|state| state.placed.len())), (1, 2));
    lawful(&cluster);
}

/// The store has answered: that is not kept waiting for a device that takes its time.
#[tokio::test(start_paused = true)]
async fn an_answer_of_the_store_waits_for_no_device() {
    let (mut lab, cluster) = lab(966, s(10_000)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(5)).await;
    let call = ReceiptCall { by: "db".to_owned(), fence: None, renews: None, audience: "storage".to_owned() };
    let id = lab.engine.receipt(&node(), call).await.expect("proven off").id;
    // The next look is due after two seconds, and has no answer by then.
    lab.store.reads_take(Duration::from_millis(2_100));
    lab.fault("bmc", Fault::Slow(Duration::from_millis(1_400)));
    let mut took = Vec::new();
    for _ in 0..5 {
        let at = lab.clock.boot();
        lab.engine.verify_receipt(&node(), id, false).await.expect("answered");
        took.push(lab.clock.boot().since(at));
    }
    let quickest = took.iter().min().expect("asked");
    assert!(*quickest < Duration::from_millis(2_200), "{took:?}");
    lawful(&cluster);
}

/// A node with a dead BMC that its outlet proves off: each look waits for the BMC.
async fn by_its_outlet(seed: u64) -> (Lab, Arc<Cluster>) {
    let (mut lab, cluster) = behind_levels(seed, s(10_000), &[&["bmc"], &["pdu-a"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "pdu-a");
    })
    .await;
    lab.fault("bmc", Fault::Silent);
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(5)).await;
    (lab, cluster)
}

fn turned(lab: &Lab, after: Duration, verb: Verb) {
    lab.schedule(after, Act::ForeignOutlet { outlet: "pdu-a".to_owned(), verb });
}

/// The store answers in the middle of a look: what that had heard by then is not lost (S19).
#[tokio::test(start_paused = true)]
async fn no_receipt_is_signed_over_an_on_of_a_look_that_was_cut_off() {
    let mut heard_at_all = 0;
    for step in 0..8 {
        let (lab, cluster) = by_its_outlet(967).await;
        tokio::time::sleep(Duration::from_millis(700) * step).await;
        let call =
            ReceiptCall { by: "db".to_owned(), fence: None, renews: None, audience: "storage".to_owned() };
        // The look before it waits for the BMC, and the next one is due two seconds later: it may find the outlet on.
        lab.store.linger(Duration::from_millis(2_700));
        turned(&lab, Duration::from_millis(2_000), Verb::On);
        turned(&lab, Duration::from_millis(4_000), Verb::Off);
        let mut view = lab.engine.follow(&node()).expect("known");
        let hears = tokio::spawn(async move {
            let is_on = |view: &NodeView| {
                view.live.devices.values().any(|live| live.power.is_some_and(|(power, _)| power == Power::On))
            };
            view.wait_for(is_on).await.map(|_| ()).expect("it runs");
        });
        let answer = lab.engine.receipt(&node(), call).await;
        tokio::task::yield_now().await;
        let heard = hears.is_finished();
        heard_at_all += u32::from(heard);
        assert_eq!(matches!(answer, Err(EngineError::NotProven(_))), heard, "{step}: {answer:?}");
        lab.store.linger(s(0));
        until(&cluster, |state| !heard || state.placed.len() == 2).await;
        lawful(&cluster);
    }
    assert!(heard_at_all >= 4, "{heard_at_all}");
}

/// The same of a look in the middle of a question to the far side, whatever that answers: on for no longer than that look it is heard by no other.
#[tokio::test(start_paused = true)]
async fn an_on_of_a_look_that_was_cut_off_ends_the_proof() {
    for is_complete in [false, true] {
        for step in 0..8 {
            let (lab, cluster) = by_its_outlet(968).await;
            tokio::time::sleep(Duration::from_millis(700) * step).await;
            let offs = lab.received("pdu-a").offs;
            {
                let mut state = cluster.state.lock();
                (state.answers_after, state.turns) = (Duration::from_millis(2_700), Some("pdu-a"));
                state.takes = if is_complete { s(1) } else { state.takes };
            }
            until(&cluster, |state| state.placed.len() == 2).await;
            assert!(
                lab.received("pdu-a").offs > offs,
                "{step}: an off of its own comes before the next proof"
            );
            cluster.state.lock().takes = s(1);
            lab.reach("released", s(60)).await;
            lawful(&cluster);
        }
    }
}

/// Who asks for a receipt reads an outlet on: the proof is gone, also where it is off again at the next look (S3).
#[tokio::test(start_paused = true)]
async fn an_on_that_a_receipt_was_refused_for_ends_the_proof() {
    let (lab, cluster) = by_its_outlet(970).await;
    let (offs, call) = (lab.received("pdu-a").offs, || ReceiptCall {
        by: "db".to_owned(),
        fence: None,
        renews: None,
        audience: "storage".to_owned(),
    });
    // Of the looks that follow one another at once it may be one of the release that finds it on.
    for _ in 0..8 {
        lab.happen(Act::ForeignOutlet { outlet: "pdu-a".to_owned(), verb: Verb::On });
        let answer = lab.engine.receipt(&node(), call()).await;
        lab.happen(Act::ForeignOutlet { outlet: "pdu-a".to_owned(), verb: Verb::Off });
        assert!(matches!(answer, Err(EngineError::NotProven(_))), "{answer:?}");
        let placed = cluster.seen(|state| state.placed.len());
        until(&cluster, |state| state.placed.len() > placed).await;
        tokio::time::sleep(Duration::from_millis(5_300)).await;
    }
    assert!(lab.received("pdu-a").offs >= offs + 8);
    lawful(&cluster);
}

/// Who joins finds an outlet on for a moment, and the disk that takes that hangs: what stands is gone by then (K3).
#[tokio::test(start_paused = true)]
async fn what_a_join_found_on_takes_away_what_stands_before_anything_is_stored() {
    for step in 0..6 {
        let (mut lab, cluster) = by_its_outlet(971).await;
        tokio::time::sleep(Duration::from_millis(450) * step).await;
        lab.store.linger(s(60));
        lab.happen(Act::ForeignOutlet { outlet: "pdu-a".to_owned(), verb: Verb::On });
        let (engine, call, at) = (lab.engine.clone(), lab.call(), lab.clock.boot());
        let asked = tokio::spawn(async move { engine.fence(&node(), call).await });
        turned(&lab, Duration::from_millis(1_600), Verb::Off);
        until(&cluster, |state| !state.stands).await;
        assert!(lab.clock.boot().since(at) < s(4), "{step}: {:?}", lab.clock.boot().since(at));
        lab.store.linger(s(0));
        asked.await.expect("answered").expect("let in");
        lawful(&cluster);
    }
}

/// A person gives it up right then, and it would be switched on: what was seen is stored before that (S11).
#[tokio::test(start_paused = true)]
async fn a_breach_that_is_not_stored_yet_comes_before_a_person_s_word() {
    let (mut lab, cluster) = lab(972, s(10_000)).await;
    let mut call = lab.call();
    call.holder.then = Then::PowerOn;
    lab.engine.fence(&node(), call).await.expect("let in");
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(5)).await;
    let call = ReceiptCall { by: "db".to_owned(), fence: None, renews: None, audience: "storage".to_owned() };
    let id = lab.engine.receipt(&node(), call).await.expect("proven off").id;
    lab.store.reads_take(s(20));
    let engine = lab.engine.clone();
    let asked = tokio::spawn(async move { engine.verify_receipt(&node(), id, false).await });
    tokio::time::sleep(s(3)).await;
    switched_on(&lab);
    until(&cluster, |state| !state.stands).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    let engine = lab.engine.clone();
    let given_up = tokio::spawn(async move { engine.abandon(&node(), taint(), person()).await });
    assert!(!asked.is_finished());
    lab.store.reads_take(s(0));
    asked.await.expect("answered").expect("known");
    given_up.await.expect("answered").expect_err("nothing is under way there any more");
    assert_eq!(lab.record().breaches, 1);
    lawful(&cluster);
}

/// What was seen on while its receipt was on its way to the disk has none (S19).
#[tokio::test(start_paused = true)]
async fn no_receipt_is_signed_over_what_was_seen_on_while_it_was_stored() {
    let (mut lab, cluster) = lab(953, s(10_000)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(5)).await;
    lab.store.linger(s(30));
    let call = ReceiptCall { by: "db".to_owned(), fence: None, renews: None, audience: "storage".to_owned() };
    let engine = lab.engine.clone();
    let asked = tokio::spawn(async move { engine.receipt(&node(), call).await });
    tokio::time::sleep(s(3)).await;
    switched_on(&lab);
    until(&cluster, |state| !state.stands).await;
    lab.store.linger(s(0));
    let answer = asked.await.expect("answered");
    assert!(matches!(answer, Err(EngineError::NotProven(_))), "{answer:?}");
    lawful(&cluster);
}

/// A caller repeats its key, and the disk that is to say what it is bound to hangs.
#[tokio::test(start_paused = true)]
async fn nor_does_one_that_hangs_over_a_question() {
    let (mut lab, cluster) = lab(957, s(10_000)).await;
    let call = lab.call();
    lab.engine.fence(&node(), call.clone()).await.expect("let in");
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(5)).await;
    lab.store.reads_take(s(600));
    let engine = lab.engine.clone();
    let asked = tokio::spawn(async move { engine.fence(&node(), call).await });
    tokio::time::sleep(s(11)).await;
    assert!(!asked.is_finished() && cluster.seen(|state| state.stands), "it reads Off");
    switched_on(&lab);
    let at = lab.clock.boot();
    until(&cluster, |state| !state.stands).await;
    assert!(lab.clock.boot().since(at) < s(4), "{:?}", lab.clock.boot().since(at));
    assert!(!lab.view().live.proven);
    // Off again before the disk answers: it was on all the same.
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    asked.await.expect("answered").expect("it is of that fence");
    assert_eq!(lab.record().breaches, 1);
    lawful(&cluster);
}

/// Nor is anybody told that it is fenced by what was read before the store's last word.
#[tokio::test(start_paused = true)]
async fn nobody_is_told_of_a_proof_that_was_lost_while_the_store_was_asked() {
    let (mut lab, cluster) = lab(960, s(10_000)).await;
    let call = lab.call();
    lab.engine.fence(&node(), call.clone()).await.expect("let in");
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(5)).await;
    // What its key is bound to, and then whether this leadership goes on.
    lab.store.reads_take(s(20));
    let engine = lab.engine.clone();
    let asked = tokio::spawn(async move { engine.fence(&node(), call).await });
    tokio::time::sleep(s(25)).await;
    switched_on(&lab);
    until(&cluster, |state| !state.stands).await;
    assert!(!asked.is_finished());
    let answer = asked.await.expect("answered");
    assert!(!matches!(answer, Ok(Admission::Joined(_) | Admission::Already(_))), "{answer:?}");
    assert_eq!(lab.record().breaches, 1);
    lawful(&cluster);
}

/// A receipt is worth nothing once its node was seen on, also while nobody could store that (S19).
#[tokio::test(start_paused = true)]
async fn no_receipt_holds_over_what_was_seen_on_while_the_store_was_asked() {
    let (mut lab, cluster) = lab(958, s(10_000)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(5)).await;
    let call = ReceiptCall { by: "db".to_owned(), fence: None, renews: None, audience: "storage".to_owned() };
    let id = lab.engine.receipt(&node(), call).await.expect("proven off").id;
    lab.store.reads_take(s(20));
    let engine = lab.engine.clone();
    let asked = tokio::spawn(async move { engine.verify_receipt(&node(), id, false).await });
    tokio::time::sleep(s(3)).await;
    switched_on(&lab);
    until(&cluster, |state| !state.stands).await;
    assert!(!asked.is_finished());
    let answer = asked.await.expect("answered").expect("known");
    assert!(matches!(answer, Verified::Void(_)), "{answer:?}");
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn nor_on_one_that_does_not_answer() {
    let (lab, cluster) = stands_without_a_store(931, s(25)).await;
    lab.fault("bmc", Fault::Silent);
    let at = lab.clock.boot();
    until(&cluster, |state| !state.stands).await;
    // A BMC that is silent has five seconds for each answer, and is asked every two.
    assert!(lab.clock.boot().since(at) < s(25), "{:?}", lab.clock.boot().since(at));
    lab.mend("bmc");
    tokio::time::sleep(s(10)).await;
    assert_eq!((lab.phase(), cluster.seen(|state| state.placed.len())), ("fenced", 1));
    lab.store.clear();
    lab.reach("released", s(300)).await;
    assert_eq!(lab.record().breaches, 0);
    lawful(&cluster);
}

/// A breach is found, the one question is not answered, and the breach cannot be stored.
#[tokio::test(start_paused = true)]
async fn who_did_not_answer_at_once_is_asked_on_while_the_breach_cannot_be_stored() {
    let (mut lab, cluster) = lab(932, s(60)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(3)).await;
    cluster.is_away(true);
    lab.store.away(s(3_600));
    switched_on(&lab);
    tokio::time::sleep(s(30)).await;
    assert_eq!((lab.phase(), cluster.seen(|state| state.stands)), ("fenced", true));
    cluster.is_away(false);
    let at = lab.clock.boot();
    until(&cluster, |state| !state.stands).await;
    assert!(lab.clock.boot().since(at) < s(7), "{:?}", lab.clock.boot().since(at));
    assert_eq!(lab.record().breaches, 0, "nothing could be stored");
    lab.store.clear();
    lab.reach("released", s(300)).await;
    assert_eq!(lab.record().breaches, 1);
    lawful(&cluster);
}

/// It was let go, and came on before that could be stored.
#[tokio::test(start_paused = true)]
async fn what_came_on_before_the_end_could_be_stored_is_a_breach() {
    let (mut lab, cluster) = lab(933, s(5)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(3)).await;
    lab.store.away(s(3_600));
    until(&cluster, |state| !state.stands).await;
    switched_on(&lab);
    tokio::time::sleep(s(10)).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    tokio::time::sleep(s(10)).await;
    lab.store.clear();
    lab.reach("fencing", s(60)).await;
    assert_eq!(lab.record().breaches, 1);
    lab.reach("released", s(300)).await;
    lawful(&cluster);
}
