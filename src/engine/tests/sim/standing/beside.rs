//! What comes beside that which stands: others may act upon it, until they have forgotten what stood (K4).

use std::time::Duration;

use picket_core::outcome::Outcome;
use picket_driver_sim::{Act, Verb};

use super::{LINGERS, lab, lawful, until};
use crate::lab::{NODE, s};

/// What comes beside it others may act upon by it: it is taken away first, and nothing is done before nobody acts on it any more (K4).
#[tokio::test(start_paused = true)]
async fn what_comes_beside_it_is_dealt_with_once_it_is_gone_and_forgotten() {
    let (mut lab, cluster) = lab(948, s(1)).await;
    {
        let mut state = cluster.state.lock().expect("whole");
        (state.comes_back, state.comes_beside) = (2, 2);
    }
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let (placed, removed) = cluster.seen(|state| (state.placed.clone(), state.removed.clone()));
    assert_eq!((placed.len(), removed.len()), (3, 3), "{placed:?} {removed:?}");
    for (gone, again) in removed.iter().zip(&placed[1..]) {
        assert!(again.since(*gone) >= LINGERS, "{placed:?} {removed:?}");
    }
    assert!(removed[0].since(placed[0]) <= s(3), "{placed:?} {removed:?}");
    lawful(&cluster);
}

/// Nobody heard that it stands, and what came beside it is seen before the next attempt: the same.
#[tokio::test(start_paused = true)]
async fn what_came_beside_what_nobody_answered_for_is_dealt_with_once_that_is_forgotten() {
    let (mut lab, cluster) = lab(955, s(1)).await;
    cluster.state.lock().expect("whole").late = Some(Duration::ZERO);
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    cluster.state.lock().expect("whole").beside = true;
    until(&cluster, |state| !state.taken.is_empty()).await;
    let (placed, removed, taken) =
        cluster.seen(|state| (state.placed.clone(), state.removed.clone(), state.taken.clone()));
    assert!(removed[0].since(placed[0]) <= s(3), "{placed:?} {removed:?}");
    assert!(taken[0].since(removed[0]) <= LINGERS + s(3), "{removed:?} {taken:?}");
    lab.reach("released", s(60)).await;
    lawful(&cluster);
}

/// What stands without any attempt is taken away like what an attempt set up, and there is nothing to be told of one.
#[tokio::test(start_paused = true)]
async fn what_stands_there_by_no_attempt_goes_first_too() {
    let (mut lab, cluster) = lab(961, s(1)).await;
    {
        let mut state = cluster.state.lock().expect("whole");
        (state.stands, state.beside) = (true, true);
    }
    lab.open().await;
    until(&cluster, |state| !state.removed.is_empty()).await;
    assert_eq!(lab.phase(), "fenced");
    until(&cluster, |state| !state.taken.is_empty()).await;
    let (removed, taken) = cluster.seen(|state| (state.removed.clone(), state.taken.clone()));
    assert!((LINGERS..=LINGERS + s(3)).contains(&taken[0].since(removed[0])), "{removed:?} {taken:?}");
    lab.reach("released", s(60)).await;
    lawful(&cluster);
}

/// What stood on another confirmation is gone, and not forgotten yet: what is found on this one waits for that.
#[tokio::test(start_paused = true)]
async fn what_is_found_soon_after_it_was_taken_away_waits_until_that_is_forgotten() {
    let (mut lab, cluster) = lab(956, s(12)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    until(&cluster, |state| !state.stands).await;
    cluster.state.lock().expect("whole").beside = true;
    until(&cluster, |state| !state.taken.is_empty()).await;
    let (removed, taken) = cluster.seen(|state| (state.removed.clone(), state.taken.clone()));
    assert!(taken[0].since(removed[0]) <= LINGERS + s(3), "{removed:?} {taken:?}");
    lab.reach("released", s(120)).await;
    lawful(&cluster);
}
