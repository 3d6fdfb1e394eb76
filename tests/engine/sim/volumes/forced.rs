//! Force: late, where the settings allow it, and once.

use std::time::Duration;

use picket_core::outcome::{Outcome, Reason};
use picket_driver_sim::{Moved, Stuck, VolumeMove};
use serde_json::json;

use super::{begun, fence_began, is_attached, lab_of, lawful, moves, stuck};
use crate::crash;
use crate::lab::{Lab, s};

/// How long after the release began detaches of that volume were taken by force.
fn forced(lab: &Lab, volume: &str) -> Vec<Duration> {
    let moves = moves(lab).into_iter().filter(|one| one.volume == volume);
    let forced = moves.filter(|one| one.what == Moved::Begun { forced: true });
    forced.map(|one| one.at.since(fence_began(lab))).collect()
}

#[tokio::test(start_paused = true)]
async fn force_comes_only_where_the_settings_allow_it_and_only_at_last() {
    let mut lab = lab_of(709, json!({"force": "at_last", "deadline": "4m"})).await;
    stuck(&lab, "v1", Some(Stuck::Returns));
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let after = forced(&lab, "v1");
    assert!(after.len() == 1 && after[0] >= s(120) && after[0] < s(200), "{after:?}");
    assert!(begun(&lab, "v1") > 2, "it was tried without before");
    lawful(&lab);
    let mut lab = lab_of(710, json!({"deadline": "4m"})).await;
    stuck(&lab, "v1", Some(Stuck::Returns));
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    assert!(forced(&lab, "v1").is_empty(), "never is what it is without a word in the settings");
}

/// Taken, and at no end: force is what ends it. Nothing is repeated before, and it comes once; also where the looks, which grow rarer, would
/// come too late.
#[tokio::test(start_paused = true)]
async fn a_detach_that_was_taken_and_does_not_end_is_forced_at_last() {
    for (seed, deadline, half) in [(714, "4m", 120), (715, "16s", 8), (716, "64s", 32)] {
        let settings = json!({"force": "at_last", "deadline": deadline, "attempt": "5s"});
        let mut lab = lab_of(seed, settings).await;
        stuck(&lab, "v1", Some(Stuck::Going));
        assert_eq!(lab.fence().await, Outcome::Fenced { released: true }, "{deadline}");
        let after = forced(&lab, "v1");
        assert_eq!((after.len(), begun(&lab, "v1")), (1, 2), "{deadline}: {after:?}");
        assert!(after[0] >= s(half) && after[0] < s(half + 5), "{deadline}: {after:?}");
        lawful(&lab);
    }
    // Without a word in the settings it stays as it is.
    let mut lab = lab_of(717, json!({"deadline": "4m"})).await;
    stuck(&lab, "v1", Some(Stuck::Going));
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    assert_eq!(begun(&lab, "v1"), 1);
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_point_of_it_it_comes_to_the_same_end() {
    let forcing = async || {
        let lab = lab_of(1, json!({"force": "at_last", "deadline": "16s", "attempt": "5s"})).await;
        stuck(&lab, "v1", Some(Stuck::Going));
        lab
    };
    let mut whole = forcing().await;
    crash::round(&mut whole).await;
    let by_force = |one: &VolumeMove| one.what == Moved::Begun { forced: true };
    assert_eq!(moves(&whole).into_iter().filter(by_force).count(), 1);
    let points = whole.points.seen.lock().clone();
    for (index, point) in points.iter().enumerate() {
        let mut lab = forcing().await;
        *lab.points.die_at.lock() = Some(index + 1);
        crash::round(&mut lab).await;
        lawful(&lab);
        assert!(!is_attached(&lab, "v1") && !is_attached(&lab, "v2"), "killed at {point}");
        assert!(lab.record().ledger.open().is_empty(), "killed at {point}: {:?}", lab.record().ledger);
    }
}
