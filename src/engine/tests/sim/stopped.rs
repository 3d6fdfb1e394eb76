//! The process is stopped (SIGSTOP, a virtual machine that is paused) at every point, while time goes on.

use std::time::Duration;

use picket_core::outcome::Outcome;
use picket_engine::Until;

use crate::lab::{Lab, lab, s};

/// Fence, release, unfence.
async fn round(lab: &mut Lab) {
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
    let points = whole.points.seen.lock().expect("whole").clone();
    assert!(points.len() >= 20, "{points:?}");
    for time in [Duration::from_millis(2_500), s(7), s(90)] {
        for (index, point) in points.iter().enumerate() {
            let mut lab = lab(1).await;
            *lab.points.stop_at.lock().expect("whole") = Some((index + 1, time));
            round(&mut lab).await;
            assert_eq!(lab.falls(), 1, "stopped for {time:?} at {point}");
            assert_eq!(lab.attempts(), 1, "stopped for {time:?} at {point}");
            let ledger = lab.record().ledger;
            assert!(ledger.open().is_empty(), "stopped for {time:?} at {point}: {ledger:?}");
        }
    }
}
