//! What comes beside that which stands: others may act upon it, until they have forgotten what stood (K4).

use std::time::Duration;

use picket_core::outcome::Outcome;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Verb};

use super::{LINGERS, lab, lawful, taint, until};
use crate::lab::{NODE, node, person, s};

/// What comes beside it others may act upon by it: it is taken away first, and nothing is done before nobody acts on it any more (K4).
#[tokio::test(start_paused = true)]
async fn what_comes_beside_it_is_dealt_with_once_it_is_gone_and_forgotten() {
    let (mut lab, cluster) = lab(948, s(1)).await;
    {
        let mut state = cluster.state.lock();
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
    cluster.state.lock().late = Some(Duration::ZERO);
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    cluster.state.lock().beside = true;
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
        let mut state = cluster.state.lock();
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

/// Whoever leads next, and whoever brings the node back, knows of it.
#[tokio::test(start_paused = true)]
async fn what_stood_there_by_no_attempt_is_waited_out_whoever_comes_next() {
    for gives_up in [false, true] {
        let (mut lab, cluster) = lab(963, s(1)).await;
        {
            let mut state = cluster.state.lock();
            (state.stands, state.beside) = (true, true);
        }
        lab.open().await;
        until(&cluster, |state| !state.removed.is_empty()).await;
        if gives_up {
            lab.engine.abandon(&node(), taint(), person()).await.expect("given up");
            lab.unfence().await.expect("it is let in");
            lab.reach("normal", s(120)).await;
            let on = lab.world.lock().edges(NODE, lab.clock.boot()).last().expect("on").at;
            let removed = cluster.seen(|state| state.removed.clone());
            assert!(on.since(removed[0]) >= LINGERS, "on {:?} after it was gone", on.since(removed[0]));
        } else {
            lab.crash().await;
            until(&cluster, |state| !state.taken.is_empty()).await;
            lab.reach("released", s(120)).await;
        }
        lawful(&cluster);
    }
}

/// It goes before the on, and is waited out, also where whoever took it away is gone by then.
#[tokio::test(start_paused = true)]
async fn what_is_found_before_an_on_goes_first_and_is_waited_out_by_whoever_leads() {
    for dies in [false, true] {
        let (mut lab, cluster) = lab(964, s(1)).await;
        assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
        // What the fence set up is forgotten by now.
        tokio::time::sleep(s(60)).await;
        cluster.state.lock().stands = true;
        lab.unfence().await.expect("it is let in");
        until(&cluster, |state| state.removed.len() == 2).await;
        if dies {
            lab.crash().await;
        }
        lab.reach("normal", s(120)).await;
        let removed = cluster.seen(|state| state.removed.clone());
        let on = lab.world.lock().edges(NODE, lab.clock.boot()).last().expect("on").at;
        let after = on.since(removed[1]);
        assert!((LINGERS..LINGERS + s(25)).contains(&after), "on {after:?} after it was gone, dies: {dies}");
        lawful(&cluster);
    }
}

/// Somebody sets it up again and again: a person is asked, and nothing is switched on meanwhile.
#[tokio::test(start_paused = true)]
async fn what_is_set_up_again_and_again_before_an_on_is_told_to_a_person() {
    let (mut lab, cluster) = lab(969, s(1)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.unfence().await.expect("it is let in");
    let sets_up = async {
        loop {
            cluster.state.lock().stands = true;
            tokio::time::sleep(s(10)).await;
        }
    };
    tokio::select! {
        () = sets_up => {}
        () = lab.reach("power_on_failed", s(600)) => {}
    }
    assert!(!lab.is_on());
    let fence = lab.record().fence.expect("it is kept");
    assert!(format!("{fence:?}").contains("again and again"), "{fence:?}");
    cluster.state.lock().stands = false;
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("normal", s(120)).await;
    lawful(&cluster);
}

/// An attempt that takes away what is beside sets nothing up: whoever leads next goes on with it at once.
#[tokio::test(start_paused = true)]
async fn what_sets_nothing_up_leaves_nothing_to_be_waited_out() {
    let first = async || {
        let (lab, cluster) = lab(965, s(1)).await;
        cluster.state.lock().beside = true;
        (lab, cluster)
    };
    let (mut whole, _) = first().await;
    assert_eq!(whole.fence().await, Outcome::Fenced { released: true });
    let points = whole.points.seen.lock().clone();
    let sent = points.iter().position(|point| point == "sent release").expect("it is attempted");
    let (mut lab, cluster) = first().await;
    *lab.points.die_at.lock() = Some(sent + 1);
    lab.open().await;
    assert!(lab.died(s(60)).await);
    assert_eq!(cluster.seen(|state| state.taken.len()), 1);
    // Not all of it is gone.
    cluster.state.lock().beside = true;
    lab.crash().await;
    let from = lab.clock.boot();
    lab.reach("released", s(120)).await;
    let (taken, placed) = cluster.seen(|state| (state.taken.clone(), state.placed.clone()));
    assert_eq!((taken.len(), placed.len()), (2, 1));
    assert!(taken[1].since(from) < s(20), "{from:?} {taken:?}");
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
    cluster.state.lock().beside = true;
    until(&cluster, |state| !state.taken.is_empty()).await;
    let (removed, taken) = cluster.seen(|state| (state.removed.clone(), state.taken.clone()));
    assert!(taken[0].since(removed[0]) <= LINGERS + s(3), "{removed:?} {taken:?}");
    lab.reach("released", s(120)).await;
    lawful(&cluster);
}

/// What takes away what is beside may come late where nobody answered: whoever finds the node on, leads next, or gives the release up takes it back
/// (S8), and nothing is switched on before.
#[tokio::test(start_paused = true)]
async fn what_an_attempt_asked_for_and_nobody_answered_is_taken_back() {
    for (seed, ends) in [(986, "breach"), (987, "takeover"), (988, "abandon")] {
        let (mut lab, cluster) = lab(seed, s(1)).await;
        {
            let mut state = cluster.state.lock();
            (state.beside, state.unanswered) = (true, true);
        }
        lab.open().await;
        until(&cluster, |state| state.may_come).await;
        // No attempt of ours comes after it.
        cluster.state.lock().refuses = Some("it is another cluster");
        let at = lab.clock.boot();
        match ends {
            "breach" => lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On }),
            "takeover" => lab.crash().await,
            _ => lab.reach("needs_operator", s(300)).await,
        }
        let asked = lab.clock.boot().max(at);
        until(&cluster, |state| !state.may_come).await;
        let after = lab.clock.boot().since(asked);
        assert!(after < s(5), "{ends}: {after:?}");
        if ends == "abandon" {
            lab.engine.abandon(&node(), taint(), person()).await.expect("given up");
            lab.unfence().await.expect("it is let in");
            lab.reach("normal", s(120)).await;
        } else {
            cluster.state.lock().refuses = None;
            lab.reach("released", s(300)).await;
        }
        lawful(&cluster);
    }
}

/// Who is to be asked does not answer: nothing is switched on before he did.
#[tokio::test(start_paused = true)]
async fn nothing_is_switched_on_before_what_was_asked_for_is_taken_back() {
    let (mut lab, cluster) = lab(989, s(1)).await;
    {
        let mut state = cluster.state.lock();
        (state.beside, state.unanswered) = (true, true);
    }
    lab.open().await;
    until(&cluster, |state| state.may_come).await;
    {
        let mut state = cluster.state.lock();
        (state.is_away, state.refuses) = (true, Some("nobody answers"));
    }
    lab.reach("needs_operator", s(300)).await;
    let asked = lab.engine.abandon(&node(), taint(), person()).await;
    let why = asked.expect_err("it may come late").to_string();
    assert!(why.contains("may happen late"), "{why}");
    cluster.is_away(false);
    until(&cluster, |state| !state.may_come).await;
    lab.engine.abandon(&node(), taint(), person()).await.expect("it is taken back");
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(120)).await;
    lawful(&cluster);
}
