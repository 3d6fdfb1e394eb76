//! What somebody else has set up is theirs to take away: it bars the release, and the way back (K7).

use picket_core::outcome::{Outcome, Reason};
use picket_driver_sim::{Fault, World};
use picket_engine::Until;

use super::around::waits_for;
use super::{behind_levels, lab, lawful, taint};
use crate::lab::{NODE, node, person, s};

#[tokio::test(start_paused = true)]
async fn what_somebody_else_set_up_bars_the_on_also_once_nobody_answers_any_more() {
    let (mut lab, cluster) = lab(918, s(1)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    cluster.state.lock().expect("whole").foreign = true;
    lab.unfence().await.expect("it is let in");
    waits_for(&lab, "somebody else's stands").await;
    assert!(lab.view().live.barred.contains(&taint()));
    cluster.state.lock().expect("whole").mute = true;
    lab.reach("power_on_failed", s(600)).await;
    assert!(!lab.is_on() && lab.received("bmc").ons == 0);
    assert!(lab.view().live.barred.contains(&taint()), "nobody says otherwise");
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("unfencing", s(60)).await;
    lab.reach("power_on_failed", s(600)).await;
    assert!(!lab.is_on() && lab.received("bmc").ons == 0, "a retry hears nothing new");
    {
        let mut state = cluster.state.lock().expect("whole");
        (state.foreign, state.mute) = (false, false);
    }
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("normal", s(120)).await;
    assert!(lab.view().live.barred.is_empty());
    lawful(&cluster);
}

/// K7: an alarm of its own, since nobody but them can help.
#[tokio::test(start_paused = true)]
async fn what_somebody_else_set_up_bars_the_release_until_they_take_it_away() {
    let (mut lab, cluster) = lab(931, s(1)).await;
    cluster.state.lock().expect("whole").foreign = true;
    let id = lab.open().await;
    assert_eq!(lab.outcome_within(id, Until::Released, s(30)).await, None);
    assert!(lab.view().live.barred.contains(&taint()) && cluster.seen(|state| state.placed.is_empty()));
    cluster.state.lock().expect("whole").foreign = false;
    assert_eq!(
        lab.outcome_within(id, Until::Released, s(120)).await,
        Some(Outcome::Fenced { released: true })
    );
    assert!(lab.view().live.barred.is_empty());
    lawful(&cluster);
}

/// Undoing holds takes its time: it is asked again right before the on.
#[tokio::test(start_paused = true)]
async fn what_somebody_sets_up_while_it_is_brought_back_bars_the_on_too() {
    let (mut lab, cluster) = lab(923, s(1)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    cluster.state.lock().expect("whole").foreign_after = Some(1);
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
    cluster.state.lock().expect("whole").foreign = true;
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    lab.engine.abandon(&node(), taint(), person()).await.expect("given up");
    cluster.state.lock().expect("whole").mute = true;
    lab.unfence().await.expect("it is let in");
    lab.reach("power_on_failed", s(600)).await;
    assert!(!lab.is_on() && lab.received("bmc").ons == 0);
    {
        let mut state = cluster.state.lock().expect("whole");
        (state.foreign, state.mute) = (false, false);
    }
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("normal", s(120)).await;
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
    cluster.state.lock().expect("whole").foreign = true;
    lab.engine.stand_down(&node(), person()).await.expect("stood down");
    waits_for(&lab, "somebody else's stands").await;
    lab.reach("power_on_failed", s(600)).await;
    assert_eq!(lab.received("pdu-a").ons, 0);
    cluster.state.lock().expect("whole").foreign = false;
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("normal", s(300)).await;
    assert!(lab.received("pdu-a").ons > 0);
    lawful(&cluster);
}
