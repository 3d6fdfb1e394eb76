//! What is told before the off and asked before the on, what is told while it is waited for, and another machine under the node's name (K1,
//! K2, K7).

use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, Verb, World};
use picket_engine::NodeView;
use tokio::time::Instant;

use super::{behind_levels, lab, lawful, taint, until};
use crate::lab::{Lab, NODE, node, person, s};

pub(super) async fn waits_for(lab: &Lab, why: &str) {
    let told = async {
        let mut view = lab.engine.follow(&node()).expect("known");
        let says = |view: &NodeView| view.live.wait.as_ref().is_some_and(|wait| wait.what.contains(why));
        view.wait_for(says).await.map(|_| ())
    };
    tokio::time::timeout(s(60), told).await.expect("it is told").expect("it runs");
}

/// Who waits sees why, and so does who is asked in the end.
#[tokio::test(start_paused = true)]
async fn what_keeps_it_from_being_tried_is_told_while_it_is_waited_for() {
    let (mut lab, cluster) = lab(912, s(20)).await;
    cluster.state.lock().refuses = Some("it is another cluster");
    lab.open().await;
    waits_for(&lab, "another cluster").await;
    cluster.state.lock().refuses = None;
    waits_for(&lab, "something is left").await;
    lab.reach("released", s(60)).await;
    lawful(&cluster);
    let (mut lab, cluster) = super::lab(913, s(20)).await;
    cluster.state.lock().refuses = Some("it is another cluster");
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    let fence = lab.record().fence.expect("it is open");
    assert!(format!("{fence:?}").contains("it is another cluster"), "{fence:?}");
}

/// Whom the record has for the node.
fn met(lab: &Lab) -> Option<String> {
    lab.record().fence.expect("it is open").release(&taint()).expect("planned").subject.clone()
}

#[tokio::test(start_paused = true)]
async fn that_it_is_being_fenced_is_told_before_it_is_off_and_whom_it_met_is_stored() {
    let (mut lab, cluster) = lab(914, s(1)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let announced = cluster.seen(|state| state.announced.clone());
    let fall = lab.world.lock().edges(NODE, lab.clock.boot()).last().expect("it is off").at;
    assert_eq!(announced.len(), 1);
    assert!(announced[0] <= fall, "{announced:?}, off at {fall:?}");
    assert_eq!(met(&lab).as_deref(), Some("the machine of then"));
    assert!(cluster.seen(|state| state.keeps_pods_away));
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(120)).await;
    until(&cluster, |state| !state.keeps_pods_away).await;
    lawful(&cluster);
}

/// Whoever has the machines may be away for the whole fence and longer: nothing waits for him, and he is asked until he answers.
#[tokio::test(start_paused = true)]
async fn others_are_kept_away_from_its_machine_as_soon_as_that_can_be_done() {
    let (mut lab, cluster) = lab(925, s(1)).await;
    let away = |away| cluster.state.lock().managers_are_away = away;
    away(true);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert_eq!(met(&lab).as_deref(), Some("the machine of then"));
    tokio::time::sleep(s(600)).await;
    let asked = cluster.seen(|state| state.spare_asked);
    assert!(cluster.seen(|state| !state.spared) && (15..=30).contains(&asked), "{asked}");
    away(false);
    until(&cluster, |state| state.spared).await;
    assert_eq!(lab.phase(), "released");
    // It is done, and not done over and over.
    let asked = cluster.seen(|state| state.spare_asked);
    tokio::time::sleep(s(600)).await;
    assert_eq!(cluster.seen(|state| state.spare_asked), asked);
    away(true);
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(120)).await;
    until(&cluster, |state| !state.keeps_pods_away).await;
    tokio::time::sleep(s(3_600)).await;
    assert!(cluster.seen(|state| state.spared));
    away(false);
    until(&cluster, |state| !state.spared).await;
    lawful(&cluster);
}

/// Who was switched on and is not seen to be back wants a person (K2); of whom nothing was heard there is nothing to say.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_back_for_a_quarter_of_an_hour_is_told_until_it_is() {
    let (mut lab, cluster) = lab(927, s(1)).await;
    cluster.is_away(true);
    tokio::time::sleep(s(3_600)).await;
    assert!(lab.view().live.not_back.is_empty(), "it was never fenced");
    cluster.is_away(false);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    cluster.state.lock().not_ready = true;
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(120)).await;
    tokio::time::sleep(s(14 * 60)).await;
    assert!(lab.view().live.not_back.is_empty());
    tokio::time::sleep(s(120)).await;
    assert!(lab.view().live.not_back.contains(&taint()));
    cluster.is_away(true);
    tokio::time::sleep(s(3_600)).await;
    assert!(lab.view().live.not_back.contains(&taint()), "nobody says that it is back");
    {
        let mut state = cluster.state.lock();
        (state.is_away, state.not_ready) = (false, false);
    }
    until(&cluster, |state| !state.keeps_pods_away).await;
    tokio::time::sleep(s(1)).await;
    assert!(lab.view().live.not_back.is_empty());
    lawful(&cluster);
}

/// What appears while the process runs, by a hand or by a process that had stood still, is swept by that process: every ten minutes, and as often as
/// it appears, on a node that was never fenced and on one that is back.
#[tokio::test(start_paused = true)]
async fn what_is_left_there_while_the_process_runs_is_swept_within_ten_minutes() {
    let (mut lab, cluster) = lab(968, s(1)).await;
    for was_fenced in [false, true] {
        if was_fenced {
            assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
            lab.unfence().await.expect("it is let in");
            lab.reach("normal", s(120)).await;
        }
        for _ in 0..3 {
            // What the process looks for at its start, and once more after that, is over by then.
            tokio::time::sleep(s(60)).await;
            {
                let mut state = cluster.state.lock();
                assert!(!state.keeps_pods_away && !state.spared, "it was swept");
                (state.keeps_pods_away, state.spared) = (true, true);
            }
            let left = Instant::now();
            until(&cluster, |state| !state.keeps_pods_away && !state.spared).await;
            let swept = left.elapsed();
            assert!(s(480) < swept && swept < s(600), "on its schedule: {swept:?}");
            assert_eq!(lab.phase(), "normal");
        }
    }
    lawful(&cluster);
}

/// Each round of a fence is announced, also where all is let go already: what was noted of the round before speaks against no machine that was on.
#[tokio::test(start_paused = true)]
async fn each_round_is_announced_also_where_all_is_let_go() {
    let build = |world: &mut World| {
        world.add_machine(NODE).add_supply(NODE, "pdu-a");
    };
    let (mut lab, cluster) = behind_levels(955, s(1), &[&["pdu-a"]], build).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let (of, before) = (lab.record().generation, cluster.seen(|state| state.announced.len()));
    lab.fault("pdu-a", Fault::SaysOn);
    lab.reach("fencing", s(60)).await;
    lab.mend("pdu-a");
    lab.reach("released", s(300)).await;
    assert_eq!(lab.record().generation, of, "it is the same fence");
    assert_eq!(cluster.seen(|state| state.announced.len()), before + 1);
    lawful(&cluster);
}

/// Who does not answer says nothing of the machine.
#[tokio::test(start_paused = true)]
async fn a_far_side_that_is_away_is_no_node_that_is_not_back() {
    let (mut lab, cluster) = lab(949, s(1)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    cluster.state.lock().not_ready = true;
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(120)).await;
    tokio::time::sleep(s(120)).await;
    cluster.is_away(true);
    tokio::time::sleep(s(3_600)).await;
    assert!(lab.view().live.not_back.is_empty(), "nobody says that it is not back");
    cluster.is_away(false);
    tokio::time::sleep(s(120)).await;
    assert!(lab.view().live.not_back.contains(&taint()), "and now somebody does");
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn what_keeps_others_away_from_a_machine_goes_with_the_fence() {
    let (mut lab, cluster) = lab(926, s(1)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert!(cluster.seen(|state| state.spared && state.spare_asked == 1));
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(120)).await;
    until(&cluster, |state| !state.spared).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert!(cluster.seen(|state| state.spared && state.spare_asked == 2), "each fence asks for its own");
    lawful(&cluster);
}

/// Before it is needed; and who does not answer is told, too.
#[tokio::test(start_paused = true)]
async fn a_check_tells_what_is_wrong_with_a_release() {
    let (lab, cluster) = lab(921, s(1)).await;
    let remarks = async || {
        let view = lab.engine.check(&node()).await.expect("it is at rest");
        let (_, live) = view.live.devices.iter().next().expect("a device");
        live.checked.as_ref().expect("checked").remarks.clone()
    };
    assert!(remarks().await.is_empty());
    cluster.state.lock().refuses = Some("it is another cluster");
    assert_eq!(remarks().await, ["release taint: it is another cluster"]);
    cluster.state.lock().deaf = true;
    assert_eq!(remarks().await, ["release taint: no answer within 5s"]);
    {
        let mut state = cluster.state.lock();
        (state.refuses, state.deaf) = (None, false);
    }
    assert!(remarks().await.is_empty());
}

/// Whatever became of its release: what keeps others away from a node that was off goes only once it was seen to be back (K2).
#[tokio::test(start_paused = true)]
async fn whoever_tidies_up_hears_whether_the_node_was_switched_off() {
    let (mut lab, cluster) = lab(922, s(1)).await;
    until(&cluster, |state| state.tidied_off == Some(false)).await;
    cluster.state.lock().refuses = Some("it is another cluster");
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    assert!(cluster.seen(|state| state.placed.is_empty()), "no attempt was made");
    lab.engine.abandon(&node(), taint(), person()).await.expect("given up");
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(300)).await;
    until(&cluster, |state| state.tidied_off == Some(true)).await;
}

/// It is no condition of the off.
#[tokio::test(start_paused = true)]
async fn who_does_not_hear_that_it_is_being_fenced_keeps_no_off_back() {
    let (mut whole, _) = lab(915, s(1)).await;
    let asked_at = whole.clock.boot();
    whole.fence().await;
    let takes = whole.clock.boot().since(asked_at);
    let (mut lab, cluster) = lab(915, s(1)).await;
    cluster.state.lock().deaf = true;
    let asked_at = lab.clock.boot();
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert_eq!(lab.clock.boot().since(asked_at), takes);
    assert_eq!(met(&lab).as_deref(), Some("the machine of then"), "it is met where it lets go");
    assert!(lab.view().live.unannounced.is_empty(), "nobody tells it any more");
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn another_machine_under_the_node_s_name_is_left_alone_and_a_person_is_asked_at_once() {
    let (mut lab, cluster) = lab(916, s(1)).await;
    lab.open().await;
    until(&cluster, |state| !state.announced.is_empty()).await;
    cluster.state.lock().replaced = true;
    let at = lab.clock.boot();
    lab.reach("needs_operator", s(60)).await;
    assert!(lab.clock.boot().since(at) < s(30), "{:?}", lab.clock.boot().since(at));
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::Replaced));
    assert!(cluster.seen(|state| state.placed.is_empty()));
    assert!(!lab.is_on());
    // A person says that this one is meant.
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("released", s(120)).await;
    assert_eq!(met(&lab).as_deref(), Some("another machine"));
    lawful(&cluster);
}

/// A fence that waits for a person without a proof may be of a machine that lives: it is told as soon as somebody hears it.
#[tokio::test(start_paused = true)]
async fn what_waits_for_a_person_unproven_is_announced_too() {
    let (mut lab, cluster) = lab(922, s(1)).await;
    cluster.state.lock().hard_of_hearing = true;
    lab.fault("bmc", Fault::Silent);
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    assert!(cluster.seen(|state| state.announced.is_empty()));
    assert_eq!(lab.view().live.unannounced.get(&taint()).map(String::as_str), Some("not now"));
    cluster.state.lock().hard_of_hearing = false;
    until(&cluster, |state| !state.announced.is_empty()).await;
    tokio::time::sleep(s(1)).await;
    assert!(lab.view().live.unannounced.is_empty());
    assert_eq!(lab.phase(), "needs_operator");
}

/// Whether somebody hears of the fence, or at last does, renews no wait for the end of what was sent before it.
#[tokio::test(start_paused = true)]
async fn a_far_side_that_hears_nothing_prolongs_no_wait_for_an_on() {
    let mut waited = Vec::new();
    for deaf in [s(0), s(40), s(10_000)] {
        let (mut lab, cluster) = lab(923, s(1)).await;
        assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
        lab.unfence().await.expect("it is let in");
        while lab.received("bmc").ons == 0 {
            tokio::time::sleep(s(1) / 100).await;
        }
        // Its session cannot be closed, and ends by its idle limit.
        lab.fault("bmc", Fault::Silent);
        cluster.state.lock().hard_of_hearing = !deaf.is_zero();
        let from = Instant::now();
        lab.open_again().await;
        tokio::time::sleep(deaf.min(s(40))).await;
        assert_eq!(lab.view().live.unannounced.len(), usize::from(!deaf.is_zero()));
        cluster.state.lock().hard_of_hearing = deaf > s(40);
        lab.reach("needs_operator", s(1_200)).await;
        waited.push(from.elapsed());
    }
    assert!(waited.iter().all(|time| *time == waited[0]), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_takes_the_name_while_it_stands_takes_it_away_at_once() {
    let (mut lab, cluster) = lab(917, s(60)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    cluster.state.lock().booted = true;
    lab.reach("needs_operator", s(10)).await;
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::Replaced));
    assert!(cluster.seen(|state| !state.stands && state.removed.len() == 1));
    tokio::time::sleep(s(600)).await;
    assert!(!lab.is_on() && lab.received("bmc").ons == 0);
    lawful(&cluster);
}

/// The node may be what would answer.
#[tokio::test(start_paused = true)]
async fn where_nobody_answers_the_on_goes_after_a_while() {
    let (mut lab, cluster) = lab(919, s(1)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    cluster.state.lock().mute = true;
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(120)).await;
    assert!(cluster.seen(|state| state.asked_for_on) > 3);
    lawful(&cluster);
}

/// Power that comes back while it is to be met makes a new fence of it, which is about the same machine.
#[tokio::test(start_paused = true)]
async fn a_breach_is_told_anew_and_is_about_the_same_machine() {
    let (mut lab, cluster) = lab(920, s(12)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("released", s(200)).await;
    assert_eq!(cluster.seen(|state| state.announced.len()), 2);
    assert_eq!(met(&lab).as_deref(), Some("the machine of then"));
    lawful(&cluster);
}

/// Who manages machines takes it away, and switches it on for that (K8): it is not fought over, and a person decides.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_taken_away_and_comes_on_is_not_switched_off_again_and_again() {
    for (seed, takes) in [(923, s(1)), (924, s(600))] {
        let (mut lab, cluster) = lab(seed, takes).await;
        lab.open().await;
        until(&cluster, |state| state.stands).await;
        if takes == s(1) {
            lab.reach("released", s(60)).await;
        }
        cluster.state.lock().going = Some("its Machine is being deleted");
        // Once it is fenced again, as any that is found on.
        lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
        lab.reach("fencing", s(60)).await;
        until(&cluster, |state| state.stands).await;
        assert!(!lab.is_on());
        let offs = lab.received("bmc").offs;
        lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
        lab.reach("needs_operator", s(60)).await;
        assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::BeingDeleted));
        tokio::time::sleep(s(3_600)).await;
        assert!(lab.is_on() && lab.received("bmc").offs == offs, "nothing more is sent");
        assert!(cluster.seen(|state| !state.stands), "and nothing is let go");
        assert_eq!((lab.phase(), lab.record().breaches), ("needs_operator", 2));
        // A person wants it off all the same.
        cluster.state.lock().going = None;
        lab.engine.retry(&node(), person()).await.expect("let in");
        until(&cluster, |state| state.stands).await;
        assert!(!lab.is_on());
        lawful(&cluster);
    }
}
