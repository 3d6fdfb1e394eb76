//! Releases that take their time, fail, or are given up; power that does not stay off meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use picket_core::ids::ReleaseId;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::ReleaseStage;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{EngineError, Until};

use crate::lab::{Answer, Lab, NODE, lab, node, person, s};
use crate::observer::Observer;
use crate::setup::Setup;
use crate::stopping::reached;

fn detach() -> ReleaseId {
    ReleaseId::new("detach").expect("a good name")
}

#[tokio::test(start_paused = true)]
async fn confirmed_is_told_before_released() {
    let mut lab = lab(40).await;
    lab.answers(&[Answer::Accept, Answer::Accept, Answer::Accept, Answer::Complete]);
    let id = lab.open().await;
    assert_eq!(lab.outcome(id, Until::Confirmed).await, Outcome::Fenced { released: false });
    assert_eq!(lab.phase(), "fenced");
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!(lab.attempts(), 1, "what was accepted is followed, not asked for again");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_and_an_unknown_end_are_tried_again_each_with_its_own_entry() {
    let mut lab = lab(41).await;
    lab.answers(&[Answer::Refuse, Answer::Unknown, Answer::Unknown, Answer::Complete]);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert_eq!(lab.attempts(), 4);
    let open = lab.view().stored.record.ledger.clone();
    let releases = open.open().iter().filter(|open| open.kind.label() == "release").count();
    assert_eq!(releases, 2, "the two whose end is not known stay open: {open:?}");
    // The on waits for their longest life.
    lab.unfence().await.expect("unfenced");
    tokio::time::sleep(s(20)).await;
    assert!(!lab.is_on());
    lab.reach("normal", s(120)).await;
}

#[tokio::test(start_paused = true)]
async fn a_release_that_never_completes_needs_an_operator_who_may_give_it_up() {
    let mut lab = lab(42).await;
    lab.answers(&[Answer::Refuse]);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    assert!(matches!(lab.unfence().await, Err(EngineError::Refused(_))));
    let record = lab.engine.abandon(&node(), detach(), person()).await.expect("abandoned");
    assert_eq!(record.fence.expect("open").releases[0].stage, ReleaseStage::Abandoned);
    lab.reach("released", s(1)).await;
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(120)).await;
}

/// Whoever gives a release up says that its attempts have ended.
#[tokio::test(start_paused = true)]
async fn what_was_permitted_is_not_sent_once_its_release_is_given_up() {
    for life in [None, Some(s(60))] {
        let mut lab = Lab::dark(50, Setup::new(NODE, &[&["bmc"]]), |world| {
            world.add_machine(NODE).add_host(NODE, "bmc");
        });
        tokio::time::advance(s(100)).await;
        // One more keeps the node where it is.
        let last = Arc::new(Observer::new(&lab.world, lab.clock.clone()));
        lab.setup.releases.push(("last".to_owned(), last));
        lab.start().await;
        *lab.observer.life.lock() = life;
        *lab.points.waits_at.lock() = Some(("permitted release", s(1)));
        lab.open().await;
        reached(&lab, "permitted release").await;
        lab.engine.abandon(&node(), detach(), person()).await.expect("given up");
        lab.reach("released", s(60)).await;
        assert_eq!(lab.attempts(), 0, "{life:?}");
    }
}

/// A word for one release ends no attempt of another.
#[tokio::test(start_paused = true)]
async fn what_is_given_up_cuts_no_attempt_of_another_release_off() {
    let mut lab = Lab::dark(51, Setup::new(NODE, &[&["bmc"]]), |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    });
    tokio::time::advance(s(100)).await;
    let last = Arc::new(Observer::new(&lab.world, lab.clock.clone()));
    *last.life.lock() = None;
    *last.attempt_takes.lock() = s(10);
    lab.setup.releases.push(("last".to_owned(), last.clone()));
    lab.start().await;
    // The first is complete, and one attempt of it was never answered.
    *lab.observer.life.lock() = None;
    lab.answers(&[Answer::Unknown, Answer::Complete]);
    lab.open().await;
    let attempts = || last.attempts.lock().len();
    while attempts() == 0 {
        tokio::time::sleep(s(1)).await;
    }
    lab.engine.abandon(&node(), detach(), person()).await.expect("its attempt has ended");
    lab.reach("released", s(60)).await;
    assert_eq!(attempts(), 1);
    assert!(lab.record().ledger.open().iter().all(|open| open.life.is_some()), "{:?}", lab.record().ledger);
}

#[tokio::test(start_paused = true)]
async fn power_that_comes_back_while_releasing_stops_the_release() {
    let mut lab = lab(43).await;
    lab.answers(&[Answer::Unknown]);
    let id = lab.open().await;
    lab.outcome(id, Until::Confirmed).await;
    tokio::time::sleep(s(10)).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(10)).await;
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Superseded);
    // The observer panics where an attempt meets a node that is on.
    lab.reach("fenced", s(60)).await;
    lab.answers(&[Answer::Complete]);
    lab.reach("released", s(120)).await;
}

#[tokio::test(start_paused = true)]
async fn silence_while_releasing_goes_back_to_fencing() {
    let mut lab = lab(44).await;
    lab.answers(&[Answer::Refuse]);
    let id = lab.open().await;
    lab.outcome(id, Until::Confirmed).await;
    tokio::time::sleep(s(5)).await;
    lab.fault("bmc", Fault::Silent);
    lab.reach("fencing", s(60)).await;
    let before = lab.attempts();
    tokio::time::sleep(s(10)).await;
    assert_eq!(lab.attempts(), before, "nothing is released without an Off");
}

#[tokio::test(start_paused = true)]
async fn a_stale_attempt_of_a_dead_gateway_is_waited_out_before_the_on() {
    let mut lab = lab(45).await;
    let id = lab.open().await;
    lab.outcome(id, Until::Confirmed).await;
    // Dies with the attempt in the ledger, after it was sent.
    lab.answers(&[Answer::Unknown]);
    tokio::time::sleep(s(3)).await;
    lab.answers(&[Answer::Complete]);
    lab.crash().await;
    lab.reach("released", s(120)).await;
    let open: Vec<_> = lab.view().stored.record.ledger.open().iter().map(|open| open.kind.label()).collect();
    assert!(open.contains(&"release"), "{open:?}");
    lab.unfence().await.expect("unfenced");
    tokio::time::sleep(s(15)).await;
    assert!(!lab.is_on(), "the on waits for what the dead gateway may still do");
    lab.reach("normal", s(120)).await;
}

#[tokio::test(start_paused = true)]
async fn power_is_watched_and_callers_are_answered_while_an_accepted_release_is_looked_at() {
    let mut lab = lab(46).await;
    lab.answers(&[Answer::Accept]);
    *lab.observer.look_takes.lock() = s(25);
    lab.open().await;
    while !lab.observer.looking.load(Ordering::SeqCst) {
        tokio::time::sleep(s(1)).await;
    }
    let call = lab.call();
    let joined = tokio::time::timeout(s(5), lab.engine.fence(&node(), call)).await;
    assert!(joined.is_ok(), "callers do not wait for the far side");
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_host_device_that_says_on_voids_a_persons_word() {
    let mut lab = lab(47).await;
    lab.fault("bmc", Fault::Silent);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    lab.answers(&[Answer::Refuse]);
    lab.engine.attest(&node(), person()).await.expect("attested");
    lab.mend("bmc");
    lab.fault("bmc", Fault::Slow(s(2)));
    // Right after an attempt: the next one waits for a while.
    let before = lab.attempts() + 4;
    while lab.attempts() < before {
        tokio::time::sleep(s(1)).await;
    }
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(15)).await;
    assert_eq!(lab.record().breaches, 1);
}

#[tokio::test(start_paused = true)]
async fn a_far_side_that_never_answers_does_not_hold_the_node() {
    let mut lab = lab(49).await;
    lab.answers(&[Answer::Accept]);
    *lab.observer.look_takes.lock() = s(100_000);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
}

#[tokio::test(start_paused = true)]
async fn a_slow_host_device_is_watched_by_a_gateway_that_found_it_released() {
    let mut lab = lab(48).await;
    lab.fence().await;
    lab.fault("bmc", Fault::Slow(s(2)));
    lab.crash().await;
    tokio::time::sleep(s(60)).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(30)).await;
    assert_eq!(lab.record().breaches, 1);
}

/// S5: an attempt whose end nobody told has ended once its life is over, and that is stored while the release goes on: what it may have done is
/// known before anything more is let go.
#[tokio::test(start_paused = true)]
async fn an_attempt_whose_life_is_over_is_closed_before_the_release_goes_on() {
    let mut lab = lab(2810).await;
    *lab.observer.life.lock() = Some(s(10));
    lab.answers(&[Answer::Unknown, Answer::Accept]);
    lab.open().await;
    lab.reach("fenced", s(60)).await;
    let attempts =
        |lab: &Lab| lab.record().ledger.open().iter().filter(|open| open.kind.label() == "release").count();
    while attempts(&lab) == 0 {
        tokio::time::sleep(s(1) / 10).await;
    }
    tokio::time::sleep(s(90)).await;
    assert_eq!((lab.phase(), attempts(&lab)), ("fenced", 0));
    let moments = lab.record().fence.expect("open").moments;
    let closed = |what: &str| {
        what.starts_with("closed release detach") && what.ends_with("its longest life has passed")
    };
    assert!(moments.iter().any(|moment| closed(&moment.what)), "{moments:?}");
}
