//! The brake over an end of leadership.

use picket_core::budget::pause::PauseScope;
use picket_core::budget::{Budget, LimitKind, Limits};
use picket_engine::{Admission, EngineError};

use crate::budget::{fleet, name, open};
use crate::lab::{person, s};

/// S14: whose complaints were barred is as suspect for the next leader, however the last one ended; what a person said is known, too.
#[tokio::test(start_paused = true)]
async fn the_brake_stays_where_the_leader_dies_until_a_person_says_so() {
    let fleet_limits = Limits { at_once: Some(8), min_not_fenced: Some(0), ..Limits::default() };
    let mut lab = fleet(316, 8, Budget { fleet: fleet_limits, ..Budget::default() }).await;
    for index in 1..=8 {
        let call = lab.call();
        let _ = lab.engine.fence(&name(index), call).await;
    }
    let begun = open(&lab).await;
    assert!((1..4).contains(&begun), "the rest was barred: {begun}");
    tokio::time::sleep(s(3)).await;
    for _ in 0..2 {
        lab.crash().await;
        for index in (1 + begun)..=8 {
            let call = lab.call();
            let refused = lab.engine.fence(&name(index), call).await.expect_err("barred");
            let EngineError::Barred(bar) = refused else { panic!("{refused:?}") };
            assert_eq!(bar.kind, LimitKind::Brake, "n{index}: {bar:?}");
        }
    }
    let resumed = lab.engine.resume(PauseScope::Everything, person()).await.expect("resumed");
    assert!(resumed.brake);
    tokio::time::sleep(s(3)).await;
    lab.crash().await;
    let call = lab.call();
    let admitted = lab.engine.fence(&name(8), call).await;
    assert!(matches!(admitted, Ok(Admission::Opened(_))), "{admitted:?}");
}
