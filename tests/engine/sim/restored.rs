//! S21: a gateway over a restored store. Nothing is switched, let go or receipted on a backup's word; what reads Off is kept
//! off for an admin; what may have been under way is waited out; a fence goes through its own off.

use std::sync::Arc;

use picket_core::device::Identity;
use picket_core::ids::FenceId;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;
use picket_core::restore::HOLD;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{Admission, Until};

use crate::lab::{Lab, NODE, lab, node, person, s};
use crate::setup::Setup;

const FENCED: Outcome = Outcome::Fenced { released: true };

fn holders(lab: &Lab) -> Vec<String> {
    lab.record().holds.keys().cloned().collect()
}

/// Somebody else switches the machine.
pub fn by_hand(verb: Verb) -> Act {
    Act::Foreign { machine: NODE.to_owned(), verb }
}

/// Offs, ons and attempts to release so far.
fn sent(lab: &Lab) -> (u64, u64, usize) {
    let received = lab.received("bmc");
    (received.offs, received.ons, lab.attempts())
}

/// Fenced and released; then the store is restored from a backup that was taken at that moment.
pub async fn was_fenced(seed: u64) -> Lab {
    let mut lab = lab(seed).await;
    assert_eq!(lab.fence().await, FENCED);
    let file = lab.backup().await;
    lab.restore(&file).await;
    lab
}

#[tokio::test(start_paused = true)]
async fn a_node_that_reads_off_is_kept_off_for_an_admin_and_nothing_is_sent() {
    let mut lab = was_fenced(3001).await;
    let before = sent(&lab);
    lab.start().await;
    tokio::time::sleep(s(300)).await;
    let record = lab.record();
    assert_eq!((record.phase.label(), record.is_groundless()), ("fenced", true), "{record:?}");
    assert_eq!(holders(&lab), ["db", HOLD]);
    assert!(record.ledger.open().is_empty(), "waited out: {:?}", record.ledger);
    assert!(!lab.view().live.proven && record.fence.expect("it is there").evidence.is_none());
    assert_eq!(sent(&lab), before);
    // A caller drops its own; the other one is no caller's.
    lab.unfence().await.expect("its own");
    let refused = lab.engine.unfence(&node(), HOLD.to_owned(), person()).await.expect_err("it is refused");
    assert!(refused.to_string().contains("only an admin drops it"), "{refused}");
    assert!(!lab.is_on() && sent(&lab) == before);
    lab.engine.drop_restored(&node(), person()).await.expect("an admin may");
    lab.reach("normal", s(300)).await;
    assert!(lab.is_on());
}

/// The backup is of before the outlets were cut: nobody else switches them on.
#[tokio::test(start_paused = true)]
async fn a_machine_of_outlets_alone_comes_back_with_its_outlets() {
    let mut lab = Lab::set_up(3021, Setup::new(NODE, &[&["a", "b"]]), |world| {
        world.add_machine(NODE).add_supply(NODE, "a").add_supply(NODE, "b");
    })
    .await;
    let file = lab.backup().await;
    assert_eq!(lab.fence().await, FENCED);
    lab.restore(&file).await;
    lab.start().await;
    lab.reach("fenced", s(300)).await;
    assert_eq!(holders(&lab), [HOLD]);
    lab.engine.drop_restored(&node(), person()).await.expect("an admin may");
    lab.reach("normal", s(600)).await;
    assert!(lab.is_on(), "it is told as back");
}

#[tokio::test(start_paused = true)]
async fn a_fence_goes_through_its_own_off_and_stays_held() {
    let mut lab = was_fenced(3002).await;
    lab.start().await;
    tokio::time::sleep(s(120)).await;
    let (offs, _, attempts) = sent(&lab);
    let id = lab.open().await;
    assert_eq!(lab.outcome(id, Until::Released).await, FENCED);
    assert!(lab.received("bmc").offs > offs && lab.attempts() > attempts, "proven and let go anew");
    lab.unfence().await.expect("its own");
    assert_eq!((lab.phase(), holders(&lab)), ("released", vec![HOLD.to_owned()]));
    lab.engine.drop_restored(&node(), person()).await.expect("an admin may");
    lab.reach("normal", s(300)).await;
}

#[tokio::test(start_paused = true)]
async fn a_fence_at_once_waits_out_what_the_old_life_may_have_sent() {
    let mut lab = lab(3003).await;
    let file = lab.backup().await;
    lab.restore(&file).await;
    lab.start().await;
    let longest = lab
        .view()
        .plan
        .topology
        .devices()
        .filter_map(|spec| spec.max_in_flight.on)
        .max()
        .expect("it is there");
    let began = tokio::time::Instant::now();
    // An on of the old life arrives as late as it may, after an off of ours would have been confirmed.
    lab.schedule(longest - s(5), by_hand(Verb::On));
    let id = lab.open().await;
    assert_eq!(lab.outcome(id, Until::Released).await, FENCED);
    assert!(began.elapsed() > longest, "{:?}", began.elapsed());
    assert!(!lab.is_on());
    assert_eq!(lab.record().breaches, 0, "nothing was let go before it");
}

/// S19: a receipt of the old life may hold for 60 s, and 5 s more by its holder's clock; no on is sent meanwhile.
#[tokio::test(start_paused = true)]
async fn a_receipt_of_the_old_life_is_waited_out_to_its_margin() {
    let mut lab = was_fenced(3012).await;
    lab.start().await;
    lab.reach("fenced", s(10)).await;
    let receipts = || lab.record().ledger.open().iter().filter(|open| open.kind.is_receipt()).count();
    tokio::time::sleep(s(50)).await;
    assert_eq!(receipts(), 1);
    tokio::time::sleep(s(30)).await;
    assert_eq!(receipts(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_on_and_was_not_fenced_is_normal_again() {
    let mut lab = lab(3004).await;
    let file = lab.backup().await;
    // Fenced after the backup was taken, and brought back.
    assert_eq!(lab.fence().await, FENCED);
    lab.unfence().await.expect("its own");
    lab.reach("normal", s(300)).await;
    let old = lab.record().generation;
    lab.restore(&file).await;
    let before = sent(&lab);
    lab.start().await;
    tokio::time::sleep(s(300)).await;
    let record = lab.record();
    assert_eq!((record.phase.label(), &record.restored), ("normal", &None));
    assert!(record.generation > old, "beyond what the backup did not know");
    assert!(lab.is_on() && record.ledger.open().is_empty() && sent(&lab) == before);
}

#[tokio::test(start_paused = true)]
async fn fenced_after_the_backup_it_is_kept_off_though_the_backup_says_normal() {
    let mut lab = lab(3005).await;
    let file = lab.backup().await;
    assert_eq!(lab.fence().await, FENCED);
    lab.restore(&file).await;
    let before = sent(&lab);
    lab.start().await;
    tokio::time::sleep(s(300)).await;
    assert_eq!((lab.phase(), holders(&lab)), ("fenced", vec![HOLD.to_owned()]));
    assert_eq!(sent(&lab), before);
}

/// The machine that has the name by now may have been fenced, and its volumes used elsewhere, after the backup was taken.
#[tokio::test(start_paused = true)]
async fn another_machine_under_the_name_of_a_retired_one_is_kept_off_too() {
    let mut lab = lab(3015).await;
    assert_eq!(lab.fence().await, FENCED);
    lab.engine.retire(&node(), person()).await.expect("retired");
    let file = lab.backup().await;
    lab.restore(&file).await;
    lab.setup.adjust = Arc::new(|spec| spec.identity = Identity::default());
    let before = sent(&lab);
    lab.start().await;
    lab.reach("fenced", s(300)).await;
    assert_eq!((holders(&lab), sent(&lab)), (vec![HOLD.to_owned()], before));
}

#[tokio::test(start_paused = true)]
async fn on_though_the_backup_says_fenced_it_waits_for_a_person_and_is_not_switched_off() {
    let mut lab = was_fenced(3006).await;
    lab.happen(by_hand(Verb::On));
    tokio::time::sleep(s(30)).await;
    let before = sent(&lab);
    lab.start().await;
    tokio::time::sleep(s(900)).await;
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::Restored));
    assert!(lab.is_on() && sent(&lab) == before);
    lab.engine.retry(&node(), person()).await.expect_err("it is refused");
    lab.engine.stand_down(&node(), person()).await.expect("it was brought back");
    lab.reach("normal", s(300)).await;
    assert!(lab.is_on() && sent(&lab).0 == before.0);
}

#[tokio::test(start_paused = true)]
async fn on_though_the_backup_says_fenced_it_is_fenced_by_whoever_asks() {
    let mut lab = was_fenced(3007).await;
    lab.happen(by_hand(Verb::On));
    tokio::time::sleep(s(30)).await;
    lab.start().await;
    tokio::time::sleep(s(60)).await;
    assert_eq!(lab.phase(), "needs_operator");
    let id = lab.open().await;
    assert_eq!(lab.outcome(id, Until::Released).await, FENCED);
    assert!(!lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_answer_stays_marked_until_it_does() {
    let mut lab = lab(3008).await;
    let file = lab.backup().await;
    assert_eq!(lab.fence().await, FENCED);
    lab.restore(&file).await;
    lab.fault("bmc", Fault::Silent);
    lab.start().await;
    tokio::time::sleep(s(600)).await;
    assert!(lab.phase() == "normal" && lab.record().restored.is_some());
    assert!(lab.view().live.wait.clone().is_some_and(|wait| wait.what.contains("the store was restored")));
    lab.mend("bmc");
    lab.reach("fenced", s(60)).await;
    assert_eq!(holders(&lab), [HOLD]);
}

#[tokio::test(start_paused = true)]
async fn a_key_of_the_old_life_is_superseded_and_never_fences_again() {
    let mut lab = lab(3009).await;
    let call = lab.call();
    let Admission::Opened(id) = lab.engine.fence(&node(), call.clone()).await.expect("let in") else {
        panic!("opened")
    };
    assert_eq!(lab.outcome(id, Until::Released).await, FENCED);
    let file = lab.backup().await;
    lab.restore(&file).await;
    let before = sent(&lab);
    lab.start().await;
    for _ in 0..2 {
        match lab.engine.fence(&node(), call.clone()).await.expect("answered") {
            Admission::Superseded(fence) => {
                assert!(fence.id == id && fence.ended_at.is_some() && fence.outcome == Some(FENCED));
            }
            other => panic!("{other:?}"),
        }
        tokio::time::sleep(s(120)).await;
    }
    assert_eq!((lab.phase(), sent(&lab)), ("fenced", before));
}

#[tokio::test(start_paused = true)]
async fn on_again_while_a_restore_keeps_it_off_is_a_person_s_matter_and_no_breach() {
    let mut lab = was_fenced(3010).await;
    lab.start().await;
    tokio::time::sleep(s(60)).await;
    assert_eq!(lab.phase(), "fenced");
    let before = sent(&lab);
    lab.happen(by_hand(Verb::On));
    tokio::time::sleep(s(60)).await;
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::Restored));
    assert_eq!((lab.record().breaches, sent(&lab)), (0, before));
    lab.happen(by_hand(Verb::Off));
    lab.reach("fenced", s(60)).await;
}

/// From a restored store to a fence and back: the same end over a death at every point.
async fn round(lab: &mut Lab) {
    let mut fence: Option<FenceId> = None;
    let call = lab.call();
    for step in ["fenced", "released", "normal"] {
        loop {
            let engine = lab.engine.clone();
            let asked = call.clone();
            let work = async move {
                let mut found = fence;
                if step == "released" {
                    found = Some(engine.fence(&node(), asked).await.expect("let in").fence());
                }
                if step == "normal" {
                    let _ = engine.unfence(&node(), "db".to_owned(), person()).await;
                    let _ = engine.drop_restored(&node(), person()).await;
                }
                let mut view = engine.follow(&node()).expect("known");
                view.wait_for(|view| view.stored.record.phase.label() == step)
                    .await
                    .map(|_| ())
                    .expect("lives");
                found
            };
            tokio::select! {
                biased;
                dead = lab.died(s(7_200)) => { assert!(dead, "stuck in {} before {step}", lab.phase()); lab.crash().await; }
                found = work => { fence = found; break; }
            }
        }
    }
    assert!(lab.is_on() && fence.is_some());
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_point_after_a_restore_it_comes_to_the_same_end() {
    let mut whole = was_fenced(3011).await;
    let first = whole.points.count();
    whole.start().await;
    round(&mut whole).await;
    let points = whole.points.seen.lock().clone();
    assert!(points[first..].iter().any(|point| point == "saved read_restored"), "{points:?}");
    for (index, point) in points.iter().enumerate().skip(first) {
        let mut lab = was_fenced(3011).await;
        assert_eq!(lab.points.count(), first);
        *lab.points.die_at.lock() = Some(index + 1);
        let points_of = lab.points.clone();
        let died = tokio::select! {
            biased;
            () = points_of.death() => true,
            () = lab.start() => false,
        };
        if died {
            lab.crash().await;
        }
        round(&mut lab).await;
        assert!(lab.record().ledger.open().is_empty(), "killed at {}: {:?}", point, lab.record().ledger);
        assert!(lab.record().holds.is_empty() && lab.record().restored.is_none());
    }
}

/// Brought back since the backup was taken, it runs: a program's fence goes by the last look, as that of any other node (S15).
#[tokio::test(start_paused = true)]
async fn a_hold_of_the_backup_switches_nothing_off_that_runs() {
    let mut lab = lab(3031).await;
    lab.fault("bmc", Fault::Silent);
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    let file = lab.backup().await;
    lab.restore(&file).await;
    lab.mend("bmc");
    lab.setup.liveness = Some(crate::liveness::recovered());
    lab.start().await;
    lab.reach("needs_operator", s(300)).await;
    let before = sent(&lab);
    let id = lab.open().await;
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::AbortedRecovered);
    lab.reach("normal", s(60)).await;
    assert!(lab.is_on() && sent(&lab) == before && holders(&lab).is_empty());
}

/// However seldom the settings want it watched, no session ends by idleness (S2).
#[tokio::test(start_paused = true)]
async fn a_node_that_a_restore_keeps_off_is_watched_as_often_as_its_session_needs() {
    let mut lab = was_fenced(3032).await;
    lab.setup.rules.watch = s(60);
    lab.start().await;
    lab.reach("fenced", s(300)).await;
    let opens = lab.received("bmc").opens;
    tokio::time::sleep(s(600)).await;
    assert_eq!(lab.received("bmc").opens, opens, "one session all the time");
}

/// A reload was told that the node is at rest: what a look says that goes on still is stored by the settings that come, and not by those that go.
#[tokio::test(start_paused = true)]
async fn a_look_that_a_reload_finds_under_way_stores_nothing_by_settings_that_go() {
    let mut lab = Lab::with(2812, &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "second");
    })
    .await;
    let file = lab.backup().await;
    lab.restore(&file).await;
    lab.happen(by_hand(Verb::Off));
    lab.fault("bmc", Fault::Silent);
    lab.start().await;
    // What the old life may have sent is waited out, and no device says where the node stands.
    tokio::time::sleep(s(300)).await;
    assert!(lab.record().ledger.open().is_empty() && lab.record().restored.is_some());
    let reads = lab.received("bmc").reads;
    lab.mend("bmc");
    lab.fault("bmc", Fault::Slow(s(1)));
    while lab.received("bmc").reads == reads {
        tokio::time::sleep(s(1) / 10).await;
    }
    lab.setup.nodes[0].levels = crate::setup::named(&[&["bmc"], &["second"]]);
    lab.reload().await.expect("it is at rest");
    lab.reach("fenced", s(60)).await;
    let topology = lab.record().fence.expect("it stands for the restore").topology;
    assert_eq!(topology.devices().count(), 2, "by the settings that came");
}
