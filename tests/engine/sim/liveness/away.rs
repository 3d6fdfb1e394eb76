//! K9: what decides about a node and cannot be reached is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::outcome::Outcome;
use picket_driver_sim::Fault;
use picket_driver_sim::{Act, Verb};
use picket_engine::{PlanAction, Planned, Readiness, Until, readiness};
use picket_liveness::{Liveness, Look};
use tokio::time::Instant;

use super::{FENCED, Source, is_as_before, lab_with, no, yes};
use crate::budget::{at_once, name};
use crate::lab::{Lab, NODE, node, person, s};

fn away() -> Option<Look> {
    Some(Look::Away("nobody answers".to_owned()))
}

/// A source that is always away.
pub fn gone() -> Arc<dyn Liveness> {
    Source::new(|_, _| away())
}

/// A source that is away until that moment after it was asked for the `from`th time, and then says so.
fn away_until(from: usize, moment: Duration, then: fn() -> Option<Look>) -> Arc<Source> {
    let since = Mutex::new(None::<Instant>);
    Source::new(move |nth, now| {
        if nth < from {
            return no();
        }
        let since = *since.lock().get_or_insert(now);
        if now.duration_since(since) < moment { away() } else { then() }
    })
}

/// Longer than a fence may take.
const LONG: Duration = Duration::from_secs(3_600);

/// K9: who fences by the word of a cluster waits for it, with nothing sent, however long; its time begins with it.
#[tokio::test(start_paused = true)]
async fn a_source_that_is_away_is_waited_for_before_the_hold_and_before_the_off() {
    for (from, then, expected) in [
        (0, no as fn() -> _, FENCED),
        (0, yes, Outcome::AbortedRecovered),
        (1, no, FENCED),
        (1, yes, Outcome::AbortedRecovered),
    ] {
        let source = away_until(from, LONG, then);
        let mut lab = lab_with(407, &source).await;
        let id = lab.open().await;
        assert_eq!(lab.outcome_within(id, Until::Released, LONG - s(1)).await, None);
        let bmc = lab.received("bmc");
        assert_eq!((bmc.offs, bmc.holds > 0), (0, from > 0));
        let view = lab.view();
        let told = format!("{:?}", view.live.wait);
        assert!(told.contains("whether the node recovered (nobody answers)"), "{told}");
        assert_eq!(lab.outcome_within(id, Until::Released, s(60)).await, Some(expected.clone()));
        match expected {
            FENCED => assert_eq!((lab.is_on(), lab.falls()), (false, 1)),
            _ => is_as_before(&lab).await,
        }
        let most = usize::try_from(LONG.as_secs()).expect("a small number") + 10;
        assert!(source.asked() <= most, "it is not stormed: {}", source.asked());
    }
}

/// What keeps a program's fence from its end makes a device not ready, before anybody fences.
#[tokio::test(start_paused = true)]
async fn a_check_says_that_a_source_is_away_and_what_waits_for_it() {
    let source = Source::new(|_, _| no());
    let lab = lab_with(414, &source).await;
    for (said, ready) in
        [(away(), false), (no(), true), (Some(Look::Unanswered("forbidden".to_owned())), true)]
    {
        *source.to_checks.lock() = said.clone();
        lab.engine.check(&node()).await.expect("checked");
        let view = lab.view();
        let (spec, live) = (
            view.plan.topology.devices().next().expect("one"),
            view.live.devices.values().next().expect("one"),
        );
        let is_ready = readiness(spec, live, &view.stored.record.phase) != Readiness::NotReady;
        let checked = live.checked.as_ref().expect("checked");
        assert_eq!(is_ready, ready, "{said:?}: {checked:?}");
        let told = format!("{checked:?}");
        assert_eq!(told.contains("its liveness source is away (nobody answers)"), !ready, "{told}");
        assert_eq!(told.contains("its liveness source: forbidden"), ready && said != no(), "{told}");
    }
}

/// It is told beforehand to whom it may concern.
#[tokio::test(start_paused = true)]
async fn a_dry_run_says_that_a_fence_would_wait_for_a_source_that_is_away() {
    let mut lab = lab_with(413, &Source::new(|_, _| away())).await;
    for (by_person, waits) in [(false, 1), (true, 0)] {
        let mut call = lab.call();
        call.holder.by_person = by_person;
        let plan = lab.engine.plan(&node(), call).await.expect("planned");
        assert_eq!(plan.planned, Planned::Opens(String::new()));
        let told = plan.steps[0].obstacles.iter().filter(|why| why.contains("(nobody answers)")).count();
        assert_eq!((plan.steps[0].action, told), (PlanAction::LastLook, waits), "{:?}", plan.steps[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_who_joins_waits_for_no_source_that_is_away() {
    let mut lab = lab_with(408, &Source::new(|_, _| away())).await;
    let id = lab.open().await;
    assert_eq!(lab.outcome_within(id, Until::Released, s(600)).await, None);
    assert_eq!(lab.received("bmc").offs, 0);
    let mut call = lab.call();
    call.holder.by_person = true;
    lab.engine.fence(&node(), call).await.expect("joined");
    assert_eq!(lab.outcome_within(id, Until::Released, s(60)).await, Some(FENCED));
}

#[tokio::test(start_paused = true)]
async fn who_takes_over_waits_for_a_source_that_is_away_too() {
    let mut lab = lab_with(409, &Source::new(|_, _| away())).await;
    let id = lab.open().await;
    tokio::time::sleep(s(30)).await;
    lab.kill().await;
    lab.setup.liveness = Some(away_until(0, s(300), no));
    lab.start().await;
    assert_eq!(lab.outcome_within(id, Until::Released, s(290)).await, None);
    assert_eq!(lab.received("bmc").offs, 0);
    assert_eq!(lab.outcome_within(id, Until::Released, s(120)).await, Some(FENCED));
}

/// An API server that hangs answers nothing within the patience: that is no word either, also where it hangs from the hold on alone.
#[tokio::test(start_paused = true)]
async fn a_source_whose_silence_is_no_word_is_waited_for_where_it_hangs() {
    for from in [0, 1] {
        let silence = Look::Away("it hangs".to_owned());
        let source = Source::with_silence(silence, move |nth, _| if nth < from { no() } else { None });
        let mut lab = lab_with(411, &source).await;
        let id = lab.open().await;
        assert_eq!(lab.outcome_within(id, Until::Released, LONG).await, None);
        let bmc = lab.received("bmc");
        assert_eq!((bmc.offs, bmc.holds > 0), (0, from > 0));
        assert!(source.asked() > 1_000, "it is asked again and again");
    }
}

/// A session that would end by its idleness meanwhile, or a silence that is ours, is no restart of the BMC.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_off_already_is_proven_off_once_its_source_is_back() {
    for is_sessionless in [false, true] {
        let mut lab = Lab::with(416, &[&["bmc"]], |world| {
            world.add_machine(NODE).add_host(NODE, "bmc");
            if is_sessionless {
                world.set_sessionless("bmc");
            }
        })
        .await;
        lab.kill().await;
        lab.setup.liveness = Some(away_until(0, s(90), no));
        lab.start().await;
        lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
        assert_eq!(lab.fence().await, FENCED, "sessionless: {is_sessionless}");
        assert_eq!(lab.record().fence.expect("kept").lost.len(), 0);
    }
}

/// Whoever asks for it to be tried again is a person, whoever asked for the fence.
#[tokio::test(start_paused = true)]
async fn a_person_who_tries_it_again_waits_for_no_source_that_is_away() {
    let is_away = Arc::new(AtomicBool::new(false));
    let goes = is_away.clone();
    let source = Source::new(move |_, _| if goes.load(Ordering::SeqCst) { away() } else { no() });
    let mut lab = lab_with(414, &source).await;
    lab.fault("bmc", Fault::Silent);
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    lab.mend("bmc");
    is_away.store(true, Ordering::SeqCst);
    lab.engine.retry(&node(), person()).await.expect("taken");
    lab.reach("released", s(120)).await;
    assert!(!lab.is_on());
}

/// S14: a fence that waits for the word of a source that is away, be it for days, keeps no place from others; and it waits for one once the word is there.
#[tokio::test(start_paused = true)]
async fn a_fence_that_waits_for_a_word_lends_its_place() {
    let mut setup = crate::budget::setup(3, at_once(1));
    let comes = Arc::new(AtomicBool::new(false));
    let seen = comes.clone();
    setup.liveness = Some(Source::new(move |_, _| if seen.load(Ordering::SeqCst) { no() } else { away() }));
    let mut lab = Lab::set_up(2590, setup, |world| {
        for index in 1..=3 {
            world.add_machine(name(index).as_str()).add_host(name(index).as_str(), &format!("bmc{index}"));
        }
    })
    .await;
    let mut call = lab.call();
    call.holder.by_person = false;
    lab.engine.fence(&name(1), call).await.expect("let in");
    tokio::time::sleep(s(30)).await;
    // K9: a person's asks for no word.
    lab.fault("bmc2", Fault::OffRefused);
    let mut call = lab.call();
    call.holder.by_person = true;
    lab.engine.fence(&name(2), call).await.expect("let in: the other one waits, and has sent nothing");
    tokio::time::sleep(s(5)).await;
    comes.store(true, Ordering::SeqCst);
    tokio::time::sleep(s(60)).await;
    assert_eq!((lab.phase(), lab.received("bmc1").offs), ("fencing", 0), "its place is another one's");
    lab.mend("bmc2");
    lab.reach_of(&name(2), "released", s(120)).await;
    lab.reach("released", s(120)).await;
}
