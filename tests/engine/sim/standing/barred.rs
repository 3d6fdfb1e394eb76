//! What somebody else has set up is theirs to take away: it bars the release, and the way back (K7).

use std::sync::Arc;

use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;
use picket_driver_sim::{Act, Fault, Verb, World};
use picket_engine::Until;

use super::around::waits_for;
use super::{behind_levels, lab, lab_of, lawful, taint};
use crate::lab::{Lab, NODE, node, person, s};
use crate::setup::Setup;

fn is_barred(lab: &Lab) -> bool {
    let fence = lab.record().fence;
    fence.is_some_and(|fence| fence.release(&taint()).is_some_and(|release| release.barred))
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_set_up_bars_the_on_also_once_nobody_answers_any_more() {
    let (mut lab, cluster) = lab(918, s(1)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    cluster.state.lock().foreign = true;
    lab.unfence().await.expect("it is let in");
    waits_for(&lab, "somebody else's stands").await;
    assert!(is_barred(&lab));
    cluster.state.lock().mute = true;
    lab.reach("power_on_failed", s(600)).await;
    assert!(!lab.is_on() && lab.received("bmc").ons == 0);
    assert!(is_barred(&lab), "nobody says otherwise");
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("unfencing", s(60)).await;
    lab.reach("power_on_failed", s(600)).await;
    assert!(!lab.is_on() && lab.received("bmc").ons == 0, "a retry hears nothing new");
    {
        let mut state = cluster.state.lock();
        (state.foreign, state.mute) = (false, false);
    }
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("normal", s(120)).await;
    assert!(!is_barred(&lab));
    lawful(&cluster);
}

/// K7: an alarm of its own, since nobody but them can help.
#[tokio::test(start_paused = true)]
async fn what_somebody_else_set_up_bars_the_release_until_they_take_it_away() {
    let (mut lab, cluster) = lab(931, s(1)).await;
    cluster.state.lock().foreign = true;
    let id = lab.open().await;
    assert_eq!(lab.outcome_within(id, Until::Released, s(30)).await, None);
    assert!(is_barred(&lab) && cluster.seen(|state| state.placed.is_empty()));
    cluster.state.lock().foreign = false;
    assert_eq!(
        lab.outcome_within(id, Until::Released, s(120)).await,
        Some(Outcome::Fenced { released: true })
    );
    assert!(!is_barred(&lab));
    lawful(&cluster);
}

/// Undoing holds takes its time: it is asked again right before the on.
#[tokio::test(start_paused = true)]
async fn what_somebody_sets_up_while_it_is_brought_back_bars_the_on_too() {
    let (mut lab, cluster) = lab(923, s(1)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    cluster.state.lock().foreign_after = Some(1);
    lab.unfence().await.expect("it is let in");
    waits_for(&lab, "somebody else's stands").await;
    lab.reach("power_on_failed", s(600)).await;
    assert!(!lab.is_on() && lab.received("bmc").ons == 0);
    lawful(&cluster);
}

/// What was seen before the release was given up is what is known, where nobody answers before the on.
#[tokio::test(start_paused = true)]
async fn what_barred_a_release_that_was_given_up_bars_the_on_also_where_nobody_answers() {
    let (mut lab, cluster) = lab(981, s(1)).await;
    cluster.state.lock().foreign = true;
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    lab.engine.abandon(&node(), taint(), person()).await.expect("given up");
    cluster.state.lock().mute = true;
    lab.unfence().await.expect("it is let in");
    lab.reach("power_on_failed", s(600)).await;
    assert!(!lab.is_on() && lab.received("bmc").ons == 0);
    {
        let mut state = cluster.state.lock();
        (state.foreign, state.mute) = (false, false);
    }
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("normal", s(120)).await;
    lawful(&cluster);
}

/// Whoever leads by then knows of it.
#[tokio::test(start_paused = true)]
async fn what_barred_a_release_bars_the_on_also_with_the_next_leader() {
    let (mut lab, cluster) = lab(991, s(1)).await;
    cluster.state.lock().foreign = true;
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    lab.engine.abandon(&node(), taint(), person()).await.expect("given up");
    cluster.state.lock().mute = true;
    lab.crash().await;
    lab.unfence().await.expect("it is let in");
    lab.reach("power_on_failed", s(600)).await;
    assert!(!lab.is_on() && lab.received("bmc").ons == 0);
    lawful(&cluster);
}

/// The on goes when its BMC answers, minutes after it was asked for the first time (K7).
#[tokio::test(start_paused = true)]
async fn what_somebody_sets_up_while_the_bmc_is_silent_bars_the_on_too() {
    let (mut lab, cluster) = lab(992, s(1)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.fault("bmc", Fault::Silent);
    lab.unfence().await.expect("it is let in");
    // It is waited for before its hold is undone, too.
    tokio::time::sleep(s(310)).await;
    waits_for(&lab, "On to be seen").await;
    tokio::time::sleep(s(30)).await;
    cluster.state.lock().foreign = true;
    tokio::time::sleep(s(30)).await;
    lab.mend("bmc");
    waits_for(&lab, "somebody else's stands").await;
    lab.reach("power_on_failed", s(600)).await;
    assert!(!lab.is_on() && lab.received("bmc").ons == 0);
    let fence = lab.record().fence.expect("it is kept");
    let last = fence.moments.last().map(|moment| moment.what.clone()).unwrap_or_default();
    assert!(last.contains("somebody else's stands"), "{last}");
    cluster.state.lock().foreign = false;
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("normal", s(120)).await;
    lawful(&cluster);
}

/// And so does what is set up between an on that had no effect and the next one; once it is gone the on goes.
#[tokio::test(start_paused = true)]
async fn what_somebody_sets_up_after_an_on_bars_the_next_one_for_as_long_as_it_stands() {
    let (mut lab, cluster) = lab(993, s(1)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.fault("bmc", Fault::OnDropped { times: 1 });
    lab.unfence().await.expect("it is let in");
    let sent = async {
        while lab.received("bmc").ons == 0 {
            tokio::time::sleep(s(1)).await;
        }
    };
    tokio::time::timeout(s(120), sent).await.expect("an on is sent");
    cluster.state.lock().foreign = true;
    waits_for(&lab, "somebody else's stands").await;
    tokio::time::sleep(s(60)).await;
    assert_eq!((lab.received("bmc").ons, lab.is_on()), (1, false));
    cluster.state.lock().foreign = false;
    lab.reach("normal", s(120)).await;
    lawful(&cluster);
}

/// What was not let on is kept off as before, whoever presses the button: what somebody else set up lets its volumes go (S11).
#[tokio::test(start_paused = true)]
async fn who_was_not_let_on_and_is_on_is_in_breach() {
    let (mut lab, cluster) = lab(994, s(1)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    cluster.state.lock().foreign = true;
    lab.unfence().await.expect("it is let in");
    lab.reach("power_on_failed", s(600)).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    assert!(lab.is_on());
    lab.reach("fencing", s(30)).await;
    assert_eq!(lab.record().breaches, 1);
    cluster.state.lock().foreign = false;
    lab.reach("normal", s(600)).await;
    assert!(lab.received("bmc").offs > 1, "an off of its own comes first");
    lawful(&cluster);
}

/// Somebody mended it, and it is another machine by now: that one is let be (K1).
#[tokio::test(start_paused = true)]
async fn another_machine_that_is_on_after_its_on_failed_is_in_no_breach() {
    let (mut lab, cluster) = lab(995, s(1)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.fault("bmc", Fault::OnDropped { times: 1_000 });
    lab.unfence().await.expect("it is let in");
    lab.reach("power_on_failed", s(600)).await;
    let offs = lab.received("bmc").offs;
    cluster.state.lock().replaced = true;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("needs_operator", s(60)).await;
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::Replaced));
    assert_eq!((lab.received("bmc").offs, lab.is_on()), (offs, true));
    lawful(&cluster);
}

/// A person says that the node was alive: its outlets are its power all the same.
#[tokio::test(start_paused = true)]
async fn what_somebody_else_set_up_bars_the_supplies_of_a_node_that_is_stood_down() {
    let build = |world: &mut World| {
        world.add_machine(NODE).add_supply(NODE, "pdu-a").add_supply(NODE, "pdu-b");
    };
    let (mut lab, cluster) = behind_levels(982, s(1), &[&["pdu-a", "pdu-b"]], build).await;
    lab.fault("pdu-b", Fault::OffRefused);
    let outcome = lab.fence().await;
    assert!(matches!(outcome, Outcome::NeedsOperator(_)), "{outcome:?}");
    assert!(lab.received("pdu-a").offs > 0);
    cluster.state.lock().foreign = true;
    lab.engine.stand_down(&node(), person()).await.expect("stood down");
    waits_for(&lab, "somebody else's stands").await;
    lab.reach("power_on_failed", s(600)).await;
    assert_eq!(lab.received("pdu-a").ons, 0);
    cluster.state.lock().foreign = false;
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("normal", s(300)).await;
    assert!(lab.received("pdu-a").ons > 0);
    lawful(&cluster);
}

/// The question before the on is of a moment ago: whatever comes between the two, and takes its time, it is asked once more (K7). What a slow
/// device was read as is fresh for longer than that.
#[tokio::test(start_paused = true)]
async fn what_somebody_sets_up_between_the_question_and_the_on_bars_it() {
    for (call, answers_after, waits) in [(s(5), s(0), s(30)), (s(20), s(10), s(16))] {
        let setup = Setup { adjust: Arc::new(move |spec| spec.call = call), ..Setup::new(NODE, &[&["bmc"]]) };
        let build = |world: &mut World| {
            world.add_machine(NODE).add_host(NODE, "bmc");
        };
        let (mut lab, cluster) = lab_of(1101, s(1), setup, build).await;
        assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
        lab.fault("bmc", Fault::Slow(answers_after));
        *lab.points.waits_at.lock() = Some(("sending on", waits));
        lab.unfence().await.expect("it is let in");
        while lab.points.waits_at.lock().is_some() {
            tokio::time::sleep(s(1)).await;
        }
        cluster.state.lock().foreign = true;
        waits_for(&lab, "somebody else's stands").await;
        assert!(!lab.is_on() && lab.received("bmc").ons == 0);
        cluster.state.lock().foreign = false;
        lab.mend("bmc");
        lab.reach("normal", s(120)).await;
        lawful(&cluster);
    }
}
