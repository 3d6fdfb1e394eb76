//! The process is stopped (SIGSTOP, a virtual machine that is paused) at every point, while time goes on.

use std::time::Duration;

use picket_core::outcome::Outcome;
use picket_core::time::Clock;
use picket_driver_sim::Act;
use picket_engine::Until;

use crate::lab::{Lab, lab, s};
use crate::points::Happens;

/// Fence, release, unfence.
pub async fn round(lab: &mut Lab) {
    let id = lab.open().await;
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
    assert!(!lab.is_on());
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(600)).await;
    assert!(lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn stopped_at_every_point_it_comes_to_the_same_end() {
    let mut whole = lab(1).await;
    round(&mut whole).await;
    let points = whole.points.seen.lock().clone();
    assert!(points.len() >= 20, "{points:?}");
    for time in [Duration::from_millis(2_500), s(7), s(90)] {
        for (index, point) in points.iter().enumerate() {
            let mut lab = lab(1).await;
            *lab.points.stop_at.lock() = Some((index + 1, time));
            round(&mut lab).await;
            assert_eq!(lab.falls(), 1, "stopped for {time:?} at {point}");
            assert_eq!(lab.attempts(), 1, "stopped for {time:?} at {point}");
            let ledger = lab.record().ledger;
            assert!(ledger.open().is_empty(), "stopped for {time:?} at {point}: {ledger:?}");
        }
    }
}

/// A virtual machine may stand still after the store's word and before the on, longer than a successor waits for what may be on
/// its way: neither of its clocks sees that. The device has ended the session by then, and in another one the on is sent only on
/// a new word of the store.
#[tokio::test(start_paused = true)]
async fn an_on_goes_in_no_session_that_is_younger_than_the_stores_word() {
    let mut lab = lab(1).await;
    let (world, clock) = (lab.world.clone(), lab.clock.clone());
    let ends = move || {
        world.lock().happen(clock.boot(), Act::LoseSessions { device: "bmc".to_owned() });
    };
    *lab.points.happens_at.lock() = Some(("sending on", Happens(Box::new(ends))));
    round(&mut lab).await;
    let asked = lab.points.seen.lock().iter().filter(|point| *point == "sending on").count();
    assert_eq!(asked, 2, "the store's word is asked for again");
    assert_eq!(lab.received("bmc").ons, 2, "one copy in the session that is over, and one in the next");
}

/// What was read before a stop says nothing of now: power is read again before the on.
#[tokio::test(start_paused = true)]
async fn an_on_goes_by_no_reading_of_before_a_stop() {
    let mut lab = lab(2).await;
    *lab.points.waits_at.lock() = Some(("sending on", s(30)));
    round(&mut lab).await;
    let asked = lab.points.seen.lock().iter().filter(|point| *point == "sending on").count();
    assert_eq!((asked, lab.received("bmc").ons), (2, 1));
}
