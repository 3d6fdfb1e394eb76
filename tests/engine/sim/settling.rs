//! Storage settles before anything is let go, and it begins with the first Off of the run that confirmed (S23).

use std::time::Duration;

use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Evidence;
use picket_core::time::{BootTime, Clock};
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::Until;

use crate::lab::{Lab, NODE, lab, node, person, s};

/// Longer than any confirmation here takes.
const SETTLE: Duration = Duration::from_secs(40);

async fn that_settles(seed: u64) -> Lab {
    let lab = lab(seed).await;
    *lab.observer.settle.lock() = SETTLE;
    lab
}

/// When it truly fell for the last time.
fn fell(lab: &Lab) -> BootTime {
    let mut world = lab.world.lock();
    let edges = world.edges(NODE, lab.clock.boot());
    edges.iter().rfind(|edge| !edge.on).expect("it was switched off").at
}

fn evidence(lab: &Lab) -> Evidence {
    lab.record().fence.and_then(|fence| fence.evidence).expect("it is confirmed")
}

/// The first Off of the run that confirmed, by the clock of the attempts.
fn first_off(lab: &Lab) -> BootTime {
    let ago = lab.clock.wall().millis() - evidence(lab).off_since.millis();
    BootTime::from_boot(lab.clock.boot().since_boot().saturating_sub(Duration::from_millis(ago)))
}

/// The attempts that were made so far.
fn attempts(lab: &Lab) -> Vec<BootTime> {
    lab.observer.attempts.lock().clone()
}

/// No earlier than that, but for a part of a millisecond, and soon after.
fn is_settled(first: BootTime, attempt: BootTime) {
    let after = (attempt + Duration::from_millis(1)).since(first);
    assert!(after >= SETTLE && after < SETTLE + s(3), "it was attempted {after:?} after the first Off");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_attempted_until_storage_has_settled_since_the_first_off_and_soon_after_it_is() {
    let mut lab = that_settles(930).await;
    // The off is taken long before the fall.
    lab.fault("bmc", Fault::OffTakes { least: s(10), most: s(10) });
    let id = lab.open().await;
    assert_eq!(lab.outcome(id, Until::Confirmed).await, Outcome::Fenced { released: false });
    let (first, fell) = (first_off(&lab), fell(&lab));
    assert!(first >= fell && first.since(fell) < s(2), "{first:?}, and it fell at {fell:?}");
    assert!(lab.clock.boot().since(first) < SETTLE / 2, "confirmed well before it has settled");
    assert_eq!(attempts(&lab), []);
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!(lab.attempts(), 1);
    is_settled(first, attempts(&lab)[0]);
}

#[tokio::test(start_paused = true)]
async fn power_that_came_back_meanwhile_lets_storage_settle_anew() {
    let mut lab = that_settles(931).await;
    let id = lab.open().await;
    lab.outcome(id, Until::Confirmed).await;
    let before = fell(&lab);
    tokio::time::sleep(SETTLE / 2).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(10)).await;
    lab.reach("released", s(300)).await;
    assert!(fell(&lab).since(before) > SETTLE / 2, "it was switched off once more");
    assert!(first_off(&lab) >= fell(&lab));
    is_settled(first_off(&lab), attempts(&lab)[0]);
}

#[tokio::test(start_paused = true)]
async fn storage_settles_from_a_persons_word_on() {
    let mut lab = that_settles(932).await;
    lab.fault("bmc", Fault::Silent);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    // It has been off for long; nobody but the person says so.
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    tokio::time::sleep(SETTLE * 2).await;
    lab.mend("bmc");
    lab.engine.attest(&node(), person()).await.expect("attested");
    let said = lab.clock.boot();
    lab.reach("released", s(300)).await;
    is_settled(said, attempts(&lab)[0]);
}
