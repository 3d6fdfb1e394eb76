//! The orderly end: what was sent ends, nothing begins, and the next start goes on by the crash table.

use picket_core::outcome::Outcome;
use picket_driver_sim::Fault;
use picket_engine::Until;
use tokio::time::Instant;

use crate::followers;
use crate::lab::{Answer, Lab, lab, s};
use crate::standing;

/// Until the engine has reached that point.
pub async fn reached(lab: &Lab, point: &str) {
    let seen = || lab.points.seen.lock().iter().any(|seen| seen == point);
    let wait = async {
        while !seen() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(s(60), wait).await.unwrap_or_else(|_| panic!("{point} was not reached"));
}

fn seen(lab: &Lab) -> Vec<String> {
    lab.points.seen.lock().clone()
}

#[tokio::test(start_paused = true)]
async fn an_off_that_was_sent_ends_and_the_next_start_confirms_it() {
    let mut lab = lab(310).await;
    lab.fault("bmc", Fault::Slow(s(2)));
    let fence = lab.open().await;
    reached(&lab, "sending off").await;
    let began = Instant::now();
    lab.stop().await;
    assert!(began.elapsed() < s(16), "{:?}", began.elapsed());
    let points = seen(&lab);
    assert!(points.iter().any(|point| point == "sent off"), "{points:?}");
    assert_eq!((lab.phase(), lab.received("bmc").offs), ("fencing", 1));
    lab.mend("bmc");
    lab.start().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!(lab.falls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_was_sent_ends_and_its_end_is_stored() {
    let mut lab = lab(311).await;
    *lab.observer.attempt_takes.lock() = s(4);
    let fence = lab.open().await;
    reached(&lab, "sending release").await;
    lab.stop().await;
    assert_eq!(lab.attempts(), 1);
    let record = lab.record();
    let release = &record.fence.as_ref().expect("open").releases[0];
    assert!(
        release.stage.is_over() && record.ledger.get(picket_core::ids::EffectId(0)).is_none(),
        "{release:?}"
    );
    lab.start().await;
    lab.reach("released", s(60)).await;
    assert_eq!(
        (lab.outcome(fence, Until::Released).await, lab.attempts()),
        (Outcome::Fenced { released: true }, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_begun_at_the_end() {
    let mut lab = lab(312).await;
    lab.fault("bmc", Fault::Slow(s(2)));
    lab.open().await;
    // Identity and hold are being asked for: no off was sent, and none will be.
    reached(&lab, "saved fence").await;
    lab.stop().await;
    tokio::time::sleep(s(60)).await;
    assert_eq!((lab.received("bmc").offs, lab.is_on()), (0, true));
}

#[tokio::test(start_paused = true)]
async fn told_twice_it_does_not_wait() {
    let mut lab = lab(313).await;
    *lab.observer.attempt_takes.lock() = s(8);
    lab.answers(&[Answer::Complete]);
    let fence = lab.open().await;
    reached(&lab, "sending release").await;
    lab.stops.1.cancel();
    let began = Instant::now();
    lab.stop().await;
    assert!(began.elapsed() < s(1), "{:?}", began.elapsed());
    lab.start().await;
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
}

/// A long history takes its time to be looked through: neither the end of a gateway nor a jump of its clocks waits for that.
#[tokio::test(start_paused = true)]
async fn what_is_being_forgotten_keeps_nothing_waiting() {
    let mut lab = lab(314).await;
    lab.stop().await;
    lab.store.forgets_for(s(600));
    lab.start().await;
    let term = lab.engine.leading().expect("it leads");
    tokio::time::sleep(s(3)).await;
    lab.clock.jump_wall(60_000);
    tokio::time::sleep(s(3)).await;
    assert!(lab.engine.leading().expect("it leads anew") > term, "a jump ends a leadership");
    tokio::time::sleep(s(3)).await;
    let began = Instant::now();
    lab.stop().await;
    assert!(began.elapsed() < s(16), "{:?}", began.elapsed());
}

/// K3: nobody reads power once the only gateway has ended.
#[tokio::test(start_paused = true)]
async fn what_lets_volumes_go_does_not_stand_after_an_orderly_end() {
    let (mut lab, cluster) = standing::lab(2707, s(600)).await;
    lab.open().await;
    standing::until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(5)).await;
    lab.stop().await;
    assert!(cluster.seen(|state| !state.stands));
    cluster.state.lock().takes = s(1);
    lab.start().await;
    lab.reach("released", s(300)).await;
}

/// K3: the whole fleet is stopped. The last gateway still sees the one that stopped before it, and leaves its nodes to nobody.
#[tokio::test(start_paused = true)]
async fn what_lets_volumes_go_does_not_stand_after_the_end_of_the_last_gateway() {
    let (mut lab, cluster) = standing::lab(2713, s(600)).await;
    lab.stop().await;
    lab.setup.election = Some(followers::after_the_end_of_b(lab.store.clone()));
    lab.start().await;
    assert_eq!(lab.engine.others().len(), 1);
    lab.open().await;
    standing::until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(5)).await;
    let began = Instant::now();
    lab.stop().await;
    assert!(cluster.seen(|state| !state.stands), "nobody reads power from now on");
    assert!(began.elapsed() < s(2), "a successor would wait for it: {:?}", began.elapsed());
    cluster.state.lock().takes = s(1);
    lab.start().await;
    lab.reach("released", s(300)).await;
}

/// One that does not answer keeps no gateway from its end.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_answer_keeps_no_gateway_from_its_end() {
    let (mut lab, cluster) = standing::lab(2711, s(600)).await;
    lab.open().await;
    standing::until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(5)).await;
    cluster.is_away(true);
    let began = Instant::now();
    lab.stop().await;
    assert!(began.elapsed() < s(6), "{:?}", began.elapsed());
    assert!(cluster.seen(|state| state.stands));
}
