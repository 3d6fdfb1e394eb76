//! Volumes that are let go one by one: what is read when, side by side, stuck, by hand, forced, and what a late detach may not do.

mod forced;
mod lasting;
mod overrun;

use std::time::Duration;

use picket_core::device::Grade;
use picket_core::ids::ReleaseId;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::{Fence, ReleaseStage};
use picket_core::time::{BootTime, Clock};
use picket_driver_sim::{Act, Disk, Fault, Moved, Stuck, Verb, VolumeMove, World};
use picket_engine::{PlanAction, Until};
use serde_json::{Value, json};

use crate::lab::{Lab, NODE, node, person, s};
use crate::setup::Setup;

/// How late a detach may land.
const LIFE: Duration = Duration::from_secs(60);

fn disk(name: &str) -> Disk {
    Disk { name: name.to_owned(), ..Disk::default() }
}

/// A machine with a root volume and two others.
fn world(world: &mut World) {
    world.add_machine(NODE).add_host(NODE, "bmc");
    world.add_volume(NODE, "v0", "/dev/vda", Disk { root: true, ..disk("system") });
    world.add_volume(NODE, "v1", "/dev/vdb", disk("data-1"));
    world.add_volume(NODE, "v2", "/dev/vdc", disk("data-2"));
}

fn setup(settings: Value) -> Setup {
    let settings = settings.as_object().expect("a table").clone();
    let releaser = picket_release::make("volumes", "volumes", &settings).expect("good settings");
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.releases.push(("volumes".to_owned(), releaser));
    setup.volumes = Some(LIFE);
    setup
}

async fn lab_of(seed: u64, settings: Value) -> Lab {
    Lab::set_up(seed, setup(settings), world).await
}

async fn lab(seed: u64) -> Lab {
    lab_of(seed, json!({})).await
}

fn id(name: &str) -> ReleaseId {
    ReleaseId::named(name).expect("a name")
}

fn moves(lab: &Lab) -> Vec<VolumeMove> {
    lab.world.lock().volume_moves(lab.clock.boot()).to_vec()
}

fn begun(lab: &Lab, volume: &str) -> usize {
    moves(lab).iter().filter(|one| one.volume == volume && matches!(one.what, Moved::Begun { .. })).count()
}

fn gone(lab: &Lab, volume: &str) -> Option<BootTime> {
    moves(lab).iter().find(|one| one.volume == volume && one.what == Moved::Gone).map(|one| one.at)
}

fn is_attached(lab: &Lab, volume: &str) -> bool {
    lab.world.lock().is_attached(NODE, volume, lab.clock.boot())
}

fn stuck(lab: &Lab, volume: &str, stuck: Option<Stuck>) {
    lab.world.lock().disk(volume).stuck = stuck;
}

fn by_hand(lab: &Lab, volume: &str) {
    lab.world.lock().detach_by_hand(lab.clock.boot(), NODE, volume);
}

fn attach(lab: &Lab, volume: &str, device: &str) {
    lab.world.lock().attach(lab.clock.boot(), NODE, volume, device);
}

fn fence(lab: &Lab) -> Fence {
    lab.record().fence.expect("a fence is open")
}

fn stage(lab: &Lab, name: &str) -> Option<ReleaseStage> {
    fence(lab).release(&id(name)).map(|release| release.stage)
}

async fn until(lab: &Lab, name: &str, wanted: ReleaseStage) {
    let work = async {
        while stage(lab, name) != Some(wanted) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let within = tokio::time::timeout(s(900), work).await;
    assert!(within.is_ok(), "{name} did not become {wanted:?}: {:#?}", fence(lab));
}

/// Nothing was let go of while its machine ran, and what had to stay is there.
fn lawful(lab: &Lab) {
    for one in moves(lab) {
        let ours = matches!(one.what, Moved::Begun { .. });
        assert!(!(ours && one.while_on), "let go of while it is on: {one:?}");
    }
    assert!(is_attached(lab, "v0"), "the root volume stays");
}

fn told(fence: &Fence, wanted: &str) -> usize {
    fence.moments.iter().filter(|moment| moment.what.contains(wanted)).count()
}

fn place(fence: &Fence, wanted: &str) -> usize {
    let place = fence.moments.iter().position(|moment| moment.what.starts_with(wanted));
    place.unwrap_or_else(|| panic!("{wanted:?} was not told: {:#?}", fence.moments))
}

#[tokio::test(start_paused = true)]
async fn what_is_attached_is_read_before_the_off_after_the_proof_and_once_more_at_the_end() {
    let mut lab = lab(700).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let fence = fence(&lab);
    let order = [
        "volumes: attached before the off, and to be let go: v1 (data-1, /dev/vdb), v2 (data-2, /dev/vdc); stays: v0",
        "off: bmc",
        "confirmed off",
        "volumes: attached, and to be let go: v1",
        "release volumes/v1: attempt 1",
        "release volumes/v1 complete: available",
        "volumes: attached, and to be let go: nothing; stays: v0 (system, /dev/vda) (it is the root volume)",
        "release volumes complete: nothing that is to go is attached",
        "released",
    ];
    let places: Vec<usize> = order.iter().map(|wanted| place(&fence, wanted)).collect();
    assert!(places.is_sorted(), "{places:?} {:#?}", fence.moments);
    lawful(&lab);
    assert!(!is_attached(&lab, "v1") && !is_attached(&lab, "v2"));
    assert_eq!((begun(&lab, "v1"), begun(&lab, "v2")), (1, 1), "each once");
    assert!(
        lab.record().ledger.open().iter().all(|open| open.kind.label() != "release"),
        "their ends were seen"
    );
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(120)).await;
}

#[tokio::test(start_paused = true)]
async fn the_parts_go_side_by_side_and_the_next_release_waits_for_all_of_them() {
    let mut setup = setup(json!({}));
    let nothing = picket_release::make("last", "none", &json!({}).as_object().expect("a table").clone());
    setup.releases.push(("last".to_owned(), nothing.expect("good settings")));
    let mut lab = Lab::set_up(701, setup, world).await;
    for volume in ["v1", "v2"] {
        lab.world.lock().disk(volume).takes = s(60);
    }
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let (first, second) = (gone(&lab, "v1").expect("gone"), gone(&lab, "v2").expect("gone"));
    assert!(second.since(first) < s(5), "both were under way at once: {first:?} {second:?}");
    let fence = fence(&lab);
    assert!(place(&fence, "release last: attempt 1") > place(&fence, "release volumes complete"));
    lawful(&lab);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_stuck_keeps_no_other_and_at_its_end_a_person_is_told_which_and_why() {
    for how in [Stuck::Refused, Stuck::Going, Stuck::Returns, Stuck::Unanswered] {
        let mut lab = lab(702).await;
        stuck(&lab, "v1", Some(how));
        if how == Stuck::Unanswered {
            lab.world.lock().disk("v1").takes = s(100_000);
        }
        let id = lab.open().await;
        until(&lab, "volumes/v2", ReleaseStage::Complete).await;
        assert_eq!(
            lab.outcome(id, Until::Released).await,
            Outcome::NeedsOperator(Reason::ReleaseDeadline),
            "{how:?}"
        );
        let fence = fence(&lab);
        assert_eq!(
            told(&fence, "of release volumes 1 did not complete in 10m: volumes/v1: "),
            1,
            "{:#?}",
            fence.moments
        );
        let why = match how {
            Stuck::Refused => "refused: bmc refused",
            Stuck::Going | Stuck::Unanswered | Stuck::Late(_) => "detaching",
            Stuck::Returns => "the detach was taken; the attempt before came to nothing: in use",
        };
        let last_line = &fence.moments.last().expect("told").what;
        assert!(last_line.ends_with(&format!("volumes/v1: {why}")), "{how:?}: {last_line}");
        let last = gone(&lab, "v2").expect("gone");
        assert!(last.since(fence_began(&lab)) < s(30), "{how:?}: the other one did not wait: {last:?}");
        lawful(&lab);
        // A person detaches it, and has it tried again: what is free is seen to be.
        stuck(&lab, "v1", None);
        by_hand(&lab, "v1");
        lab.engine.retry(&node(), person()).await.expect("let in");
        lab.reach("released", s(120)).await;
        assert_eq!(stage(&lab, "volumes/v1"), Some(ReleaseStage::Complete));
    }
}

fn fence_began(lab: &Lab) -> BootTime {
    let off = lab.world.lock().edges(NODE, lab.clock.boot()).iter().find(|edge| !edge.on).map(|edge| edge.at);
    off.expect("it was switched off")
}

#[tokio::test(start_paused = true)]
async fn one_that_is_stuck_may_be_given_up_by_its_name() {
    let mut lab = lab(703).await;
    stuck(&lab, "v1", Some(Stuck::Refused));
    let fence_id = lab.open().await;
    until(&lab, "volumes/v2", ReleaseStage::Complete).await;
    lab.engine.abandon(&node(), id("volumes/v1"), person()).await.expect("let in");
    assert_eq!(lab.outcome(fence_id, Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!(stage(&lab, "volumes/v1"), Some(ReleaseStage::Abandoned));
    assert_eq!(stage(&lab, "volumes"), Some(ReleaseStage::Complete));
    assert!(is_attached(&lab, "v1"));
    // The same after the deadline: the rest goes on by itself, from a new proof.
    let mut lab = lab_of(704, json!({"deadline": "30s"})).await;
    stuck(&lab, "v1", Some(Stuck::Refused));
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    lab.engine.abandon(&node(), id("volumes/v1"), person()).await.expect("let in");
    lab.reach("released", s(120)).await;
    lawful(&lab);
}

/// A person's word stands until a host device says On, also where the last part that waited for a person is given up (S12).
#[tokio::test(start_paused = true)]
async fn a_person_s_word_outlives_the_part_that_was_given_up() {
    let lab = &mut lab(727).await;
    lab.fault("bmc", Fault::SaysNothing);
    stuck(lab, "v1", Some(Stuck::Refused));
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    lab.engine.attest(&node(), person()).await.expect("attested");
    lab.reach("needs_operator", s(900)).await;
    let offs = lab.received("bmc").offs;
    lab.engine.abandon(&node(), id("volumes/v1"), person()).await.expect("given up");
    lab.reach("released", s(60)).await;
    let evidence = fence(lab).evidence.expect("attested");
    assert_eq!((evidence.grade, lab.received("bmc").offs), (Grade::Attested, offs));
    lawful(lab);
}

#[tokio::test(start_paused = true)]
async fn what_somebody_detaches_by_hand_is_complete_and_nothing_is_sent_for_it() {
    let mut lab = lab(705).await;
    lab.open().await;
    until(&lab, "volumes/v1", ReleaseStage::Pending).await;
    // Between the reading before the off and the proof.
    by_hand(&lab, "v1");
    lab.reach("released", s(120)).await;
    assert_eq!((begun(&lab, "v1"), begun(&lab, "v2")), (0, 1));
    let part = fence(&lab).release(&id("volumes/v1")).expect("it stands in the record").clone();
    assert_eq!((part.stage, part.attempts, part.detail.as_str()), (ReleaseStage::Complete, 0, "available"));
    lawful(&lab);
}

#[tokio::test(start_paused = true)]
async fn what_is_attached_anew_meanwhile_is_found_at_the_end() {
    let mut lab = lab(706).await;
    lab.world.lock().disk("v2").takes = s(60);
    lab.open().await;
    until(&lab, "volumes/v1", ReleaseStage::Complete).await;
    attach(&lab, "v1", "/dev/vdx");
    lab.world.lock().add_volume(NODE, "v3", "/dev/vdd", disk("new"));
    lab.reach("released", s(300)).await;
    assert_eq!((begun(&lab, "v1"), begun(&lab, "v3")), (2, 1));
    assert!(!is_attached(&lab, "v1") && !is_attached(&lab, "v3"));
    lawful(&lab);
}

#[tokio::test(start_paused = true)]
async fn a_volume_of_several_machines_loses_only_this_one() {
    let mut lab = lab(707).await;
    {
        let mut world = lab.world.lock();
        world.add_machine("n2").attach(lab.clock.boot(), "n2", "v1", "/dev/vdb");
    }
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let mut world = lab.world.lock();
    assert!(
        world.is_attached("n2", "v1", lab.clock.boot()) && !world.is_attached(NODE, "v1", lab.clock.boot())
    );
    drop(world);
    let part = fence(&lab).release(&id("volumes/v1")).expect("there").detail.clone();
    assert_eq!(part, "in use by 1 other machine(s)");
}

#[tokio::test(start_paused = true)]
async fn the_settings_choose_what_goes() {
    let mut lab = lab_of(708, json!({"include": {"name": ["data-*"]}, "exclude": {"id": ["v2"]}})).await;
    lab.world.lock().add_volume(NODE, "v3", "/dev/vdd", disk("scratch"));
    let call = lab.call();
    let plan = lab.engine.plan(&node(), call).await.expect("planned");
    let step = plan.steps.iter().find(|step| step.action == PlanAction::Release).expect("it lets go");
    assert!(step.text.contains("that bmc finds attached (with name data-*, without id v2)"), "{}", step.text);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert!(!is_attached(&lab, "v1") && is_attached(&lab, "v2") && is_attached(&lab, "v3"));
    let fence = fence(&lab);
    assert!(
        told(
            &fence,
            "v2 (data-2, /dev/vdc) (the settings exclude it), v3 (scratch, /dev/vdd) (the settings do not include it)"
        ) > 0
    );
    assert_eq!(fence.releases.len(), 2, "one part, and the whole");
    lawful(&lab);
}

#[tokio::test(start_paused = true)]
async fn a_survey_that_fails_before_the_off_stops_no_fence_and_after_it_is_tried_again() {
    let mut lab = lab_of(711, json!({"deadline": "1m"})).await;
    lab.fault("bmc", Fault::VolumesUntold);
    let began = lab.clock.boot();
    let id = lab.open().await;
    assert_eq!(lab.outcome(id, Until::Confirmed).await, Outcome::Fenced { released: false });
    assert!(fence_began(&lab).since(began) < s(2), "an error keeps nobody waiting");
    assert_eq!(told(&fence(&lab), "what volumes would let go cannot be told"), 1);
    tokio::time::sleep(s(20)).await;
    assert_eq!((lab.phase(), begun(&lab, "v1")), ("fenced", 0));
    lab.mend("bmc");
    lab.reach("released", s(60)).await;
    lawful(&lab);
    // And if it is never told, a person is.
    let mut lab = lab_of(712, json!({"deadline": "1m"})).await;
    lab.fault("bmc", Fault::VolumesUntold);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    assert_eq!(
        told(&fence(&lab), "what volumes has to let go could not be told in 1m: throttled: bmc is busy"),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn there_may_be_only_so_many_and_whoever_has_more_is_told() {
    let mut lab = lab(713).await;
    for number in 0..Fence::PARTS {
        let (name, device) = (format!("many{number}"), format!("/dev/d{number}"));
        lab.world.lock().add_volume(NODE, &name, &device, disk("many"));
    }
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    assert!(told(&fence(&lab), "release volumes would have 257 parts, and no more than 256 may be") >= 1);
    assert!(moves(&lab).iter().all(|one| one.what == Moved::Attached), "nothing was let go");
}

#[tokio::test(start_paused = true)]
async fn power_that_comes_back_in_the_middle_stops_it_and_all_is_asked_anew() {
    let mut lab = lab(714).await;
    stuck(&lab, "v2", Some(Stuck::Going));
    let fence_id = lab.open().await;
    until(&lab, "volumes/v1", ReleaseStage::Complete).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(10)).await;
    assert_eq!(lab.outcome(fence_id, Until::Released).await, Outcome::Superseded);
    let unfinished = fence(&lab).release(&id("volumes/v2")).expect("there").unfinished;
    assert!(unfinished, "an attempt was never seen to end");
    // Whoever switched it on attached its volume again.
    attach(&lab, "v1", "/dev/vdb");
    stuck(&lab, "v2", None);
    by_hand(&lab, "v2");
    lab.reach("released", s(300)).await;
    assert_eq!(stage(&lab, "volumes/v1"), Some(ReleaseStage::Complete));
    assert_eq!(begun(&lab, "v1"), 2);
    lawful(&lab);
}
