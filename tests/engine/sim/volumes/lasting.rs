//! What outlives who sent it: a leader that dies or is stopped, and a detach that is late.

use super::*;
use crate::{crash, stopped};

#[tokio::test(start_paused = true)]
async fn killed_at_every_point_it_comes_to_the_same_end() {
    let mut whole = lab(1).await;
    crash::round(&mut whole).await;
    let points = whole.points.seen.lock().clone();
    assert!(points.len() >= 40, "{points:?}");
    for (index, point) in points.iter().enumerate() {
        let mut lab = lab(1).await;
        *lab.points.die_at.lock() = Some(index + 1);
        crash::round(&mut lab).await;
        lawful(&lab);
        assert!(!is_attached(&lab, "v1") && !is_attached(&lab, "v2"), "killed at {point}");
        assert!(lab.record().ledger.open().is_empty(), "killed at {point}: {:?}", lab.record().ledger);
    }
}

#[tokio::test(start_paused = true)]
async fn stopped_at_every_point_it_comes_to_the_same_end() {
    let mut whole = lab(1).await;
    stopped::round(&mut whole).await;
    let points = whole.points.seen.lock().clone();
    for time in [Duration::from_millis(2_500), s(90)] {
        for (index, point) in points.iter().enumerate() {
            let mut lab = lab(1).await;
            *lab.points.stop_at.lock() = Some((index + 1, time));
            eprintln!("stopped for {time:?} at {index} {point}");
            stopped::round(&mut lab).await;
            lawful(&lab);
            assert!(!is_attached(&lab, "v1") && !is_attached(&lab, "v2"), "stopped for {time:?} at {point}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_leads_next_finds_the_parts_and_finishes_them() {
    let mut lab = lab(720).await;
    lab.world.lock().disk("v2").takes = s(20);
    lab.open().await;
    until(&lab, "volumes/v2", ReleaseStage::Accepted).await;
    lab.crash().await;
    let names: Vec<String> = fence(&lab).releases.iter().map(|release| release.id.to_string()).collect();
    assert_eq!(names, ["volumes/v1", "volumes/v2", "volumes"]);
    lab.reach("released", s(300)).await;
    assert!(begun(&lab, "v1") <= 2 && begun(&lab, "v2") == 1, "what was taken is followed");
    lawful(&lab);
}

#[tokio::test(start_paused = true)]
async fn a_detach_that_was_not_answered_bars_the_on_for_all_of_its_life_also_where_its_volume_is_free() {
    let mut lab = lab(721).await;
    // It arrives half a minute later; meanwhile somebody detaches the volume by hand.
    stuck(&lab, "v1", Some(Stuck::Late(s(25))));
    lab.open().await;
    until(&lab, "volumes/v1", ReleaseStage::Requested).await;
    by_hand(&lab, "v1");
    lab.reach("released", s(60)).await;
    let open: Vec<_> = lab.record().ledger.open().iter().map(|open| open.kind.label()).collect();
    assert!(open.contains(&"release"), "{open:?}");
    lab.unfence().await.expect("let in");
    // The volume is attached again before the machine is on: the late detach must find it off.
    attach(&lab, "v1", "/dev/vdb");
    lab.reach("normal", s(120)).await;
    assert!(lab.is_on());
    lawful(&lab);
    assert_eq!(begun(&lab, "v1"), 1, "it came, while the machine was off");
}

#[tokio::test(start_paused = true)]
async fn a_detach_that_comes_after_its_life_is_refused_by_the_far_side() {
    let mut lab = lab(722).await;
    stuck(&lab, "v1", Some(Stuck::Late(s(300))));
    lab.open().await;
    lab.reach("released", s(120)).await;
    lab.unfence().await.expect("let in");
    lab.reach("normal", s(120)).await;
    attach(&lab, "v1", "/dev/vdb");
    tokio::time::sleep(s(400)).await;
    lawful(&lab);
    assert!(is_attached(&lab, "v1"), "the node has it again, and keeps it");
    assert_eq!(moves(&lab).iter().filter(|one| one.volume == "v1" && one.what == Moved::Refused).count(), 1);
}
