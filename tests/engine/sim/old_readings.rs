//! S1: what was read before the store answered says nothing of now where the store took its time. Power is read once more before it is told.

use picket_core::outcome::{Outcome, Reason};
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::Until;

use crate::lab::{Lab, NODE, lab, node, person, s};
use crate::points::Happens;

/// How long the store takes for the step.
const HANGS: u64 = 10;

/// The store hangs over the step that is stored at that point. Meanwhile the node is switched on, or not.
fn hang_at(lab: &Lab, point: &'static str, comes_on: bool) {
    let (store, world) = (lab.store.clone(), lab.world.clone());
    let clock: std::sync::Arc<dyn picket_core::time::Clock> = lab.clock.clone();
    let hang = move || {
        store.linger(s(HANGS));
        if comes_on {
            let act = Act::Foreign { machine: NODE.to_owned(), verb: Verb::On };
            world.lock().schedule(clock.boot() + s(4), act);
        }
    };
    *lab.points.happens_at.lock() = Some((point, Happens(Box::new(hang))));
}

/// Waits until the store hangs over a step at that point, and lets the steps after it be stored at once.
async fn until_it_hangs(lab: &Lab, point: &str) {
    while !lab.points.seen.lock().iter().any(|seen| seen == point) {
        tokio::time::sleep(s(1) / 20).await;
    }
    tokio::time::sleep(s(1)).await;
    lab.store.linger(s(0));
}

/// The phase that is shown next, and how often the node was found on.
async fn shown_after(lab: &Lab, phases: &[&str]) -> (&'static str, u32) {
    let mut view = lab.engine.follow(&node()).expect("known");
    let is_next = |view: &picket_engine::NodeView| {
        !phases.contains(&view.stored.record.phase.label()) || view.stored.record.breaches > 0
    };
    let shown = view.wait_for(is_next).await.expect("the engine lives").clone();
    // A record that says Fenced would have been told to every caller with this.
    assert_eq!(shown.stored.record.breaches > 0, lab.is_on(), "what is shown is so");
    (shown.stored.record.phase.label(), shown.stored.record.breaches)
}

#[tokio::test(start_paused = true)]
async fn fenced_is_told_by_a_reading_that_is_newer_than_the_store_s_answer() {
    for comes_on in [false, true] {
        let mut lab = lab(2800).await;
        hang_at(&lab, "saving confirmed", comes_on);
        let id = lab.open().await;
        until_it_hangs(&lab, "saving confirmed").await;
        let reads = lab.received("bmc").reads;
        assert!(!lab.view().live.proven);
        let shown = shown_after(&lab, &["fencing"]).await;
        assert_eq!(shown, if comes_on { ("fencing", 1) } else { ("fenced", 0) });
        assert!(lab.received("bmc").reads > reads, "it is read once more");
        if !comes_on {
            assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
        }
        lab.reach("released", s(120)).await;
    }
}

/// A device that does not answer any more is no Off either: the proof begins anew.
#[tokio::test(start_paused = true)]
async fn fenced_is_not_told_of_a_device_that_fell_silent_while_the_store_hung() {
    let mut lab = lab(2801).await;
    hang_at(&lab, "saving confirmed", false);
    lab.open().await;
    until_it_hangs(&lab, "saving confirmed").await;
    lab.fault("bmc", Fault::Silent);
    let mut view = lab.engine.follow(&node()).expect("known");
    let is_news = |view: &picket_engine::NodeView| {
        let record = &view.stored.record;
        record.phase.label() != "fencing" || record.fence.as_ref().is_some_and(|fence| fence.round > 0)
    };
    let shown = view.wait_for(is_news);
    let shown = shown.await.expect("the engine lives").stored.record.phase.label();
    assert_eq!(shown, "fencing");
    lab.mend("bmc");
    lab.reach("released", s(300)).await;
}

#[tokio::test(start_paused = true)]
async fn a_word_is_told_by_what_host_devices_say_once_the_store_has_answered() {
    for comes_on in [false, true] {
        let mut lab = lab(2802).await;
        lab.fault("bmc", Fault::OffIgnored);
        assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
        lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
        lab.mend("bmc");
        hang_at(&lab, "saving attest", comes_on);
        let engine = lab.engine.clone();
        let asked = tokio::spawn(async move { engine.attest(&node(), person()).await });
        until_it_hangs(&lab, "saving attest").await;
        let shown = shown_after(&lab, &["needs_operator"]).await;
        assert_eq!(shown, if comes_on { ("fencing", 1) } else { ("fenced", 0) });
        let taken = asked.await.expect("answered").expect("no host device said On");
        let picket_engine::Taken::Now(record) = taken else { panic!("{taken:?}") };
        assert_eq!((record.phase.label(), record.breaches), shown, "whoever vouches is told so");
        lab.reach("released", s(120)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn released_is_told_by_a_reading_that_is_newer_than_the_store_s_answer() {
    for comes_on in [false, true] {
        let mut lab = lab(2803).await;
        hang_at(&lab, "saving release_progress", comes_on);
        lab.open().await;
        until_it_hangs(&lab, "saving release_progress").await;
        let shown = shown_after(&lab, &["fencing", "fenced"]).await;
        assert_eq!(shown, if comes_on { ("fencing", 1) } else { ("released", 0) });
        lab.reach("released", s(120)).await;
    }
}
