//! The last look (S15): a node that recovered is let be until the first off, and no source keeps the off waiting.

mod away;
mod outlived;
mod source;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::budget::pause::PauseScope;
use picket_core::outcome::{Outcome, Reason};
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{Admission, Planned, Until};
use picket_liveness::{Liveness, Look};
use tokio::time::Instant;

pub use away::gone;

use crate::lab::{Lab, NODE, lab, node, person, s};
use crate::points::Happens;
use source::Source;

const PATIENCE: Duration = Duration::from_secs(2);

fn yes() -> Option<Look> {
    Some(Look::Recovered("ready again".to_owned()))
}

/// A source that always says so.
pub fn recovered() -> Arc<dyn Liveness> {
    Source::new(|_, _| yes())
}

/// A source that says what it sees now; where it sees nothing it hangs.
pub fn as_seen(says: impl Fn() -> Option<Look> + Send + Sync + 'static) -> Arc<dyn Liveness> {
    Source::new(move |_, _| says())
}

fn no() -> Option<Look> {
    Some(Look::NotRecovered("not ready".to_owned()))
}

fn torn() -> Option<Look> {
    Some(Look::Unanswered("500".to_owned()))
}

async fn lab_with(seed: u64, source: &Arc<Source>) -> Lab {
    let mut lab = lab(seed).await;
    lab.kill().await;
    lab.setup.liveness = Some(source.clone());
    lab.start().await;
    lab
}

const FENCED: Outcome = Outcome::Fenced { released: true };

/// Nothing was done to it that is not undone.
async fn is_as_before(lab: &Lab) {
    lab.reach("normal", s(60)).await;
    assert_eq!((lab.is_on(), lab.falls(), lab.received("bmc").offs), (true, 0, 0));
    let hold = lab.world.lock().hold(NODE);
    assert!(!hold.button_locked, "{hold:?}");
    assert!(lab.record().holds.is_empty());
}

#[tokio::test(start_paused = true)]
async fn recovered_before_the_off_aborts_sends_nothing_and_does_not_bind_the_key() {
    let mut lab = lab_with(37, &Source::new(|_, _| yes())).await;
    let call = lab.call();
    let id = lab.engine.fence(&node(), call.clone()).await.expect("let in").fence();
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::AbortedRecovered);
    is_as_before(&lab).await;
    assert_eq!(lab.received("bmc").holds, 0, "it was asked before the hold");
    // Flapping: whoever finds it dead again asks again, with the same key too, and it is decided anew.
    lab.kill().await;
    lab.setup.liveness = Some(Source::new(|_, _| no()));
    lab.start().await;
    let again = lab.engine.fence(&node(), call).await.expect("let in");
    assert!(matches!(again, Admission::Opened(_)), "{again:?}");
    assert_eq!(lab.outcome(again.fence(), Until::Released).await, FENCED);
}

#[tokio::test(start_paused = true)]
async fn recovered_between_the_hold_and_the_off_aborts_and_puts_the_hold_back() {
    let source = Source::new(|nth, _| if nth == 0 { no() } else { yes() });
    let mut lab = lab_with(393, &source).await;
    let before = lab.world.lock().hold(NODE);
    assert_eq!(lab.fence().await, Outcome::AbortedRecovered);
    assert!(lab.received("bmc").holds > 0, "the hold had been engaged");
    is_as_before(&lab).await;
    let after = lab.world.lock().hold(NODE);
    assert_eq!((after.restore, after.button_locked), (before.restore, before.button_locked));
    assert_eq!(source.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn it_is_asked_before_the_hold_and_before_the_off_and_then_no_more() {
    let source = Source::new(|nth, _| if nth < 2 { no() } else { yes() });
    let mut lab = lab_with(394, &source).await;
    assert_eq!(lab.fence().await, FENCED);
    assert_eq!((source.asked(), lab.is_on(), lab.falls()), (2, false, 1));
}

/// A fence of a node behind a slow BMC, whose source says from that moment on that it recovered: the outcome, and when the
/// first off was there.
async fn recovering_at(moment: Option<Duration>) -> (Outcome, Option<Duration>) {
    let began = Arc::new(Mutex::new(None::<Instant>));
    let since = began.clone();
    let source = Source::new(move |_, now| {
        let began = *since.lock().get_or_insert(now);
        if moment.is_some_and(|moment| now.duration_since(began) >= moment) { yes() } else { no() }
    });
    let mut lab = lab_with(395, &source).await;
    lab.fault("bmc", Fault::Slow(s(1)));
    let id = lab.open().await;
    let mut off = None;
    loop {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let first = began.lock().expect("it was asked");
        if off.is_none() && lab.received("bmc").offs > 0 {
            off = Some(first.elapsed());
        }
        if let Some(outcome) = lab.outcome_within(id, Until::Released, Duration::from_millis(5)).await {
            assert_eq!(lab.received("bmc").offs == 0, off.is_none());
            return (outcome, off);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn recovered_a_second_before_the_off_aborts_and_after_it_completes() {
    let (outcome, off) = recovering_at(None).await;
    assert_eq!(outcome, FENCED);
    let off = off.expect("sent");
    assert!(off > s(2), "{off:?}");
    assert_eq!(recovering_at(Some(off - s(1))).await, (Outcome::AbortedRecovered, None));
    let (outcome, sent) = recovering_at(Some(off + Duration::from_millis(1))).await;
    assert_eq!((outcome, sent), (FENCED, Some(off)), "what recovers too late is fenced to the end");
}

/// How long the fence takes with such a source.
async fn takes(says: fn(usize) -> Option<Look>) -> Duration {
    let mut lab = lab_with(396, &Source::new(move |nth, _| says(nth))).await;
    let began = Instant::now();
    let id = lab.open().await;
    let mut off = None;
    while lab.outcome_within(id, Until::Confirmed, Duration::from_millis(10)).await.is_none() {
        if lab.received("bmc").offs > 0 {
            off.get_or_insert(began.elapsed());
        }
    }
    assert!(!lab.is_on());
    let judged = began.elapsed() - off.expect("sent");
    assert!(judged < s(5), "the judge waits for nobody: {judged:?}");
    off.expect("sent")
}

#[tokio::test(start_paused = true)]
async fn a_source_that_hangs_or_fails_never_stops_a_fence_nor_keeps_it_longer_than_its_patience() {
    let quick = takes(|_| no()).await;
    assert!(quick < s(1), "{quick:?}");
    assert!(takes(|_| torn()).await <= quick + Duration::from_millis(50));
    let hanging = takes(|_| None).await;
    assert!(hanging <= quick + PATIENCE * 2, "once for the hold and once for the off: {hanging:?}");
    assert!(hanging >= PATIENCE * 2, "it might have answered: {hanging:?}");
}

#[tokio::test(start_paused = true)]
async fn a_breach_is_fenced_again_whatever_a_source_says() {
    let source = Source::new(|nth, _| if nth < 2 { no() } else { yes() });
    let mut lab = lab_with(397, &source).await;
    assert_eq!(lab.fence().await, FENCED);
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(60)).await;
    lab.reach("released", s(120)).await;
    assert_eq!((lab.is_on(), source.asked()), (false, 2));
    let _ = lab.clock.boot();
}

#[tokio::test(start_paused = true)]
async fn who_finds_a_fence_without_an_off_asks_again_and_who_finds_one_with_an_off_does_not() {
    // Killed while the source is asked: the next gateway asks before it does anything.
    let mut lab = lab_with(398, &Source::new(|_, _| None)).await;
    let id = lab.open().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    lab.kill().await;
    lab.setup.liveness = Some(Source::new(|_, _| yes()));
    lab.start().await;
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::AbortedRecovered);
    is_as_before(&lab).await;

    let source = Source::new(|nth, _| if nth < 2 { no() } else { yes() });
    let mut lab = lab_with(399, &source).await;
    let id = lab.open().await;
    while lab.received("bmc").offs == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    lab.crash().await;
    assert_eq!(lab.outcome(id, Until::Released).await, FENCED);
    assert_eq!(source.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_before_the_off_makes_no_look_older_than_the_off() {
    let mut setup = crate::setup::Setup::new(NODE, &[&["bmc"]]);
    let store: Arc<Mutex<Option<Arc<crate::weather::Weather>>>> = Arc::default();
    let weather = store.clone();
    let source = Source::new(move |nth, _| {
        if nth == 1
            && let Some(store) = weather.lock().as_ref()
        {
            store.away(s(60));
        }
        if nth >= 2 { yes() } else { Some(Look::NotRecovered("dead".to_owned())) }
    });
    setup.liveness = Some(source.clone());
    let mut lab = Lab::set_up(2100, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await;
    *store.lock() = Some(lab.store.clone());
    let id = lab.open().await;
    let out = lab.outcome(id, Until::Released).await;
    assert_eq!(
        out,
        Outcome::AbortedRecovered,
        "{:#?}",
        lab.engine.get_fence(id).await.expect("asked").map(|fence| fence.moments)
    );
}

#[tokio::test(start_paused = true)]
async fn a_source_that_hangs_keeps_plans_waiting_and_no_fence() {
    let mut setup = crate::setup::Setup::new(NODE, &[&["bmc"]]);
    setup.liveness = Some(Source::new(|_, _| None));
    let mut lab = Lab::set_up(2101, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await;
    for _ in 0..60 {
        let (engine, call) = (lab.engine.clone(), lab.call());
        tokio::spawn(async move { drop(engine.plan(&node(), call).await) });
    }
    tokio::task::yield_now().await;
    let before = Instant::now();
    lab.open().await;
    assert!(before.elapsed() < s(5), "let in after {:?}", before.elapsed());
}

/// While the store keeps the first off waiting, that is what is told.
#[tokio::test(start_paused = true)]
async fn an_off_that_waits_for_the_store_is_told_as_that() {
    let mut lab = lab(2404).await;
    lab.fault("bmc", Fault::Slow(s(1)));
    lab.open().await;
    while lab.received("bmc").holds == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    lab.reach("fencing", s(1)).await;
    while !lab.record().fence.expect("open").holds.values().any(|hold| !hold.engaged.is_empty()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    lab.store.away(s(60));
    tokio::time::sleep(s(20)).await;
    assert!(!lab.record().fence.expect("open").off_sent);
    let wait = lab.view().live.wait.clone().expect("it waits");
    assert!(wait.what.contains("the store"), "{wait:?}");
}

/// Whoever decides by himself knows why, and is not asked back (K9): nor is his fence by whoever takes it over.
#[tokio::test(start_paused = true)]
async fn a_person_s_fence_asks_nobody_whether_it_recovered() {
    for crashes in [false, true] {
        let source = Source::new(|_, _| yes());
        let mut lab = lab_with(395, &source).await;
        let mut call = lab.call();
        call.holder.by_person = true;
        let plan = lab.engine.plan(&node(), call.clone()).await.expect("planned");
        assert!(matches!(plan.planned, Planned::Opens(_)), "{plan:?}");
        let id = lab.engine.fence(&node(), call).await.expect("let in").fence();
        if crashes {
            lab.crash().await;
        }
        assert_eq!(lab.outcome(id, Until::Released).await, FENCED);
        assert_eq!(source.asked(), 0, "crashes: {crashes}");
    }
}

/// A person who joins a controller's fence wants it off in any case: nobody is waited for any more.
#[tokio::test(start_paused = true)]
async fn a_person_who_joins_ends_the_look() {
    let source = Source::new(|_, _| None);
    let mut lab = lab_with(396, &source).await;
    lab.open().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!((source.asked(), lab.received("bmc").holds), (1, 0), "the hold waits for it");
    let at = lab.clock.boot();
    let mut call = lab.call();
    call.holder.by_person = true;
    let joined = lab.engine.fence(&node(), call).await.expect("let in");
    assert!(matches!(joined, Admission::Joined(_)), "{joined:?}");
    while lab.received("bmc").offs == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(lab.clock.boot().since(at) < s(1), "{:?}", lab.clock.boot().since(at));
    assert_eq!(lab.outcome(joined.fence(), Until::Released).await, FENCED);
    assert_eq!(source.asked(), 1);
}

/// The first off is stored, and its gateway hears of that only ten seconds later: what was true before is asked again before the off (S15).
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_over_the_first_off_makes_no_look_older_than_the_off() {
    let hung = Arc::new(AtomicBool::new(false));
    let sees = hung.clone();
    let source = Source::new(move |_, _| if sees.load(Ordering::SeqCst) { yes() } else { no() });
    let mut lab = lab_with(2706, &source).await;
    hang_over_the_first_off(&lab, move || hung.store(true, Ordering::SeqCst));
    assert_eq!(lab.fence().await, Outcome::AbortedRecovered);
    is_as_before(&lab).await;
}

/// One that says nothing new keeps a fence no longer than its patience, however long the store takes.
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_over_the_first_off_keeps_no_fence_for_good() {
    for says in [|| Some(Look::NotRecovered("dead".to_owned())), || None] {
        let mut lab = lab_with(2709, &Source::new(move |_, _| says())).await;
        hang_over_the_first_off(&lab, || {});
        assert_eq!(lab.fence().await, FENCED);
        assert_eq!(lab.falls(), 1);
    }
}

/// A pause that comes while the first off is being stored bars it (S15).
#[tokio::test(start_paused = true)]
async fn a_pause_that_comes_while_the_first_off_is_stored_bars_it() {
    let mut lab = lab(2710).await;
    let engine = lab.engine.clone();
    hang_over_the_first_off(&lab, move || {
        let pausing = async move { engine.pause(PauseScope::Everything, person(), s(600)).await };
        drop(tokio::spawn(pausing));
    });
    assert_eq!(lab.fence().await, Outcome::Blocked(Reason::Paused));
    is_as_before(&lab).await;
}

/// The store has it at once, and says so ten seconds later; meanwhile that happens.
fn hang_over_the_first_off(lab: &Lab, happens: impl FnOnce() + Send + 'static) {
    let store = lab.store.clone();
    let happens = Happens(Box::new(move || {
        store.linger(s(10));
        happens();
        drop(tokio::spawn(async move {
            tokio::time::sleep(s(1)).await;
            store.linger(Duration::ZERO);
        }));
    }));
    *lab.points.happens_at.lock() = Some(("saving off_intent", happens));
}
