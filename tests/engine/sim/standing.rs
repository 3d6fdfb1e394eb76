//! What a release sets up and what lets volumes go for as long as it stands, as a taint of Kubernetes does (K3): it stands only while the
//! node is proven off, and nothing is switched on while it does, nor soon after.

mod around;
mod barred;
mod beside;
pub mod cluster;
mod deposed;
mod given_up;
mod no_store;
mod orphan;
mod passed_on;
mod replaced;
mod restored;
mod slow;
mod told_again;
mod vouching;

use std::sync::Arc;
use std::time::Duration;

use picket_core::ids::ReleaseId;
use picket_core::ledger::EffectKind;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Verb, World};
use picket_engine::PlanAction;

use self::cluster::{Cluster, State};
use crate::crash;
use crate::lab::{Lab, NODE, node, person, s};
use crate::setup::Setup;

/// What it set up may be acted on for so long after it is gone.
const LINGERS: Duration = Duration::from_secs(30);

/// A node with a taint; what it lets go takes so long.
pub async fn lab(seed: u64, takes: Duration) -> (Lab, Arc<Cluster>) {
    behind_levels(seed, takes, &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await
}

/// The same behind these levels.
async fn behind_levels(
    seed: u64,
    takes: Duration,
    levels: &[&[&str]],
    build: impl FnOnce(&mut World),
) -> (Lab, Arc<Cluster>) {
    lab_of(seed, takes, Setup::new(NODE, levels), build).await
}

/// The same of that setup.
async fn lab_of(
    seed: u64,
    takes: Duration,
    setup: Setup,
    build: impl FnOnce(&mut World),
) -> (Lab, Arc<Cluster>) {
    eprintln!("seed {seed}");
    tokio::time::advance(s(100)).await;
    let mut lab = Lab::dark(seed, setup, build);
    let cluster = Cluster::new(&lab.world, lab.clock.clone());
    cluster.state.lock().takes = takes;
    lab.setup.releases = vec![("taint".to_owned(), cluster.clone())];
    lab.start().await;
    (lab, cluster)
}

fn taint() -> ReleaseId {
    ReleaseId::new("taint").expect("a good name")
}

fn lawful(cluster: &Cluster) {
    let wrong = cluster.seen(|state| state.wrong.clone());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

pub async fn until(cluster: &Cluster, what: impl Fn(&State) -> bool) {
    let work = async {
        while !cluster.seen(&what) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(s(600), work).await.expect("it comes to that");
}

/// The evidence is graded a step lower, as the plan said (K1).
#[tokio::test(start_paused = true)]
async fn who_is_known_by_the_name_alone_lowers_the_grade_as_planned() {
    let (mut lab, cluster) = lab(952, s(1)).await;
    cluster.state.lock().by_name = true;
    let call = lab.call();
    let plan = lab.engine.plan(&node(), call).await.expect("planned");
    let confirm = plan.steps.iter().find(|step| step.action == PlanAction::Confirm).expect("it is told");
    let why = "release taint may know the node by its name alone";
    assert!(confirm.obstacles.iter().any(|obstacle| obstacle == why), "{confirm:?}");
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("it is proven");
    assert_eq!(Some(evidence.grade), confirm.grade);
    assert!(evidence.lowered_by.iter().any(|lowered| lowered == why), "{evidence:?}");
    lawful(&cluster);
}

/// Whose settings were changed within the fence is known by them.
#[tokio::test(start_paused = true)]
async fn who_is_known_by_the_name_alone_is_told_by_the_settings_of_now() {
    let (mut lab, cluster) = lab(954, s(10_000)).await;
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    let lowered = |lab: &Lab| {
        let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("it is proven");
        evidence.lowered_by.iter().any(|why| why.contains("by its name alone"))
    };
    assert!(!lowered(&lab));
    cluster.state.lock().by_name = true;
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("fenced", s(120)).await;
    lab.reach("needs_operator", s(1_200)).await;
    assert!(lowered(&lab), "{:?}", lab.record().fence);
    lawful(&cluster);
}

/// It stands until everything is let go, and not while anybody waits for the next fence; the on waits a while longer.
#[tokio::test(start_paused = true)]
async fn it_is_taken_away_before_the_release_is_complete_and_no_on_comes_soon_after() {
    let (mut lab, cluster) = lab(901, s(3)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let (placed, removed) = cluster.seen(|state| (state.placed.clone(), state.removed.clone()));
    assert_eq!((placed.len(), removed.len(), cluster.seen(|state| state.stands)), (1, 1, false));
    assert!(removed[0].since(placed[0]) < s(6), "{placed:?} {removed:?}");
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(120)).await;
    let on = lab.world.lock().edges(NODE, lab.clock.boot()).last().expect("it is on").at;
    assert!(on.since(removed[0]) >= LINGERS, "on {:?} after it was gone", on.since(removed[0]));
    assert!(on.since(removed[0]) < LINGERS + s(20), "on {:?} after it was gone", on.since(removed[0]));
    lawful(&cluster);
}

/// What has to go first and comes back again and again is not chased without a pause; what came back once is.
#[tokio::test(start_paused = true)]
async fn what_comes_back_again_and_again_is_tried_more_and_more_rarely() {
    let (mut lab, cluster) = lab(912, s(1)).await;
    cluster.state.lock().comes_back = 6;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let (tried, placed) = cluster.seen(|state| (state.in_vain.clone(), state.placed.clone()));
    let pauses: Vec<u64> = tried.windows(2).map(|two| two[1].since(two[0]).as_secs()).collect();
    assert_eq!(pauses, [0, 0, 1, 2, 4], "{tried:?} {placed:?}");
    assert!(placed[0].since(tried[5]) >= s(8), "{tried:?} {placed:?}");
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn power_that_is_back_takes_it_away_within_two_seconds_of_the_reading() {
    let (mut lab, cluster) = lab(902, s(12)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(7)).await;
    let at = lab.clock.boot();
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    until(&cluster, |state| !state.stands).await;
    let after = lab.clock.boot().since(at);
    assert!(after < s(4), "power is read every two seconds: {after:?}");
    assert!(lab.record().breaches > 0 || lab.phase() == "fenced", "it is gone before the breach is stored");
    // Off again, proven again: it is set up anew, and the rest is let go.
    lab.reach("released", s(200)).await;
    assert_eq!(lab.record().breaches, 1);
    assert_eq!(cluster.seen(|state| state.placed.len()), 2);
    lawful(&cluster);
}

/// An outlet that is on again may have run its machine by the next look, whatever that says: own off, and evidence from zero (S3, K3). Also where
/// that is seen in the middle of a question.
#[tokio::test(start_paused = true)]
async fn an_outlet_that_is_on_again_for_a_moment_ends_the_proof() {
    for answers_after in [s(0), s(7)] {
        let (mut lab, cluster) = behind_levels(962, s(16), &[&["pdu-a"]], |world| {
            world.add_machine(NODE).add_supply(NODE, "pdu-a");
        })
        .await;
        lab.open().await;
        until(&cluster, |state| state.stands).await;
        cluster.state.lock().answers_after = answers_after;
        tokio::time::sleep(s(10)).await;
        let offs = lab.received("pdu-a").offs;
        let turn = |verb| Act::ForeignOutlet { outlet: "pdu-a".to_owned(), verb };
        // One look finds it on, and the next one off again.
        lab.happen(turn(Verb::On));
        tokio::time::sleep(Duration::from_millis(2_100)).await;
        lab.happen(turn(Verb::Off));
        lab.reach("released", s(300)).await;
        assert_eq!(cluster.seen(|state| state.placed.len()), 2, "{answers_after:?}");
        assert!(lab.received("pdu-a").offs > offs, "an off of its own comes before the next proof");
        lawful(&cluster);
    }
}

/// What an attempt goes by is read before the look that permits it.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_answers_slowly_is_no_reason_to_let_nothing_go() {
    let (mut lab, cluster) = lab(911, s(1)).await;
    cluster.state.lock().reads_for = s(4);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert_eq!(cluster.seen(|state| state.placed.len()), 1);
    lawful(&cluster);
}

/// An attempt that nobody answered may set it up for as long as it lives: what was seen to be gone before counts for nothing.
#[tokio::test(start_paused = true)]
async fn what_a_late_attempt_sets_up_after_it_was_seen_to_be_gone_is_found() {
    let (mut lab, cluster) = lab(904, s(2)).await;
    cluster.state.lock().late = Some(s(9));
    lab.open().await;
    until(&cluster, |state| state.late.is_none()).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("fencing", s(20)).await;
    until(&cluster, |state| state.lands.is_empty() && state.placed.len() == 1).await;
    until(&cluster, |state| !state.stands).await;
    lab.reach("released", s(300)).await;
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(120)).await;
    assert!(!cluster.seen(|state| state.stands));
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn whoever_leads_next_takes_it_away_first() {
    let (mut lab, cluster) = lab(905, s(12)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    lab.crash().await;
    let at = lab.clock.boot();
    until(&cluster, |state| !state.stands).await;
    assert!(lab.clock.boot().since(at) < s(1), "{:?}", lab.clock.boot().since(at));
    lab.reach("released", s(300)).await;
    lawful(&cluster);
}

/// Nothing is switched on while it stands, however long nobody answers; then a person is told, and in the end it is gone.
#[tokio::test(start_paused = true)]
async fn where_the_cluster_is_away_it_stays_off_and_a_person_is_told() {
    let (mut lab, cluster) = lab(906, s(10)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    cluster.is_away(true);
    lab.reach("needs_operator", s(300)).await;
    assert!(cluster.seen(|state| state.stands), "nobody could take it away");
    let asked = lab.engine.abandon(&node(), taint(), person()).await;
    let why = asked.expect_err("it stands").to_string();
    assert!(why.contains("lets volumes go for as long as it stands"), "{why}");
    tokio::time::sleep(s(3_600)).await;
    assert!(!lab.is_on() && lab.received("bmc").ons == 0);
    cluster.is_away(false);
    until(&cluster, |state| !state.stands).await;
    lab.engine.abandon(&node(), taint(), person()).await.expect("it is gone");
    lab.reach("released", s(60)).await;
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(120)).await;
    lawful(&cluster);
}

/// What only that release can take away is not talked away: the settings that know it are the way out, and the words say so (S16).
#[tokio::test(start_paused = true)]
async fn where_its_release_left_the_settings_it_stays_off_until_it_is_back_in_them() {
    let (mut lab, cluster) = lab(912, s(12)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    lab.kill().await;
    let whole = lab.setup.clone();
    (lab.setup.releases, lab.setup.without_releases) = (Vec::new(), true);
    lab.start().await;
    lab.reach("needs_operator", s(300)).await;
    let why = lab.engine.abandon(&node(), taint(), person()).await.expect_err("it stands").to_string();
    assert!(why.contains("the release of that name in the settings"), "{why}");
    lab.unfence().await.expect_err("a person is needed");
    let way_out = |lab: &Lab| {
        let moments = lab.record().fence.expect("open").moments;
        let words = "start the gateway with that release in its settings";
        assert!(moments.last().is_some_and(|moment| moment.what.contains(words)), "{moments:#?}");
    };
    way_out(&lab);
    lab.engine.stand_down(&node(), person()).await.expect_err("its volumes are not let go");
    lab.engine.retry(&node(), person()).await.expect("taken");
    tokio::time::sleep(s(3_600)).await;
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::ReleaseDeadline));
    way_out(&lab);
    assert!(cluster.seen(|state| state.stands) && !lab.is_on() && lab.received("bmc").ons == 0);
    lab.kill().await;
    lab.setup = whole;
    lab.start().await;
    until(&cluster, |state| !state.stands).await;
    lab.engine.retry(&node(), person()).await.expect("it is gone");
    lab.reach("released", s(600)).await;
    lab.unfence().await.expect("it is let in");
    lab.reach("normal", s(600)).await;
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_runs_out_of_time_takes_it_away_before_a_person_is_asked() {
    let (mut lab, cluster) = lab(907, s(10_000)).await;
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::ReleaseDeadline));
    assert!(!cluster.seen(|state| state.stands));
    let standing = |kind: &EffectKind| matches!(kind, EffectKind::Standing(_));
    let open = lab.record().ledger.open().iter().find(|open| standing(&open.kind)).cloned();
    assert_eq!(open.expect("it is waited out").life, Some(LINGERS));
    lawful(&cluster);
}

/// Its deadline counts from its first turn: whoever leads next does not begin it anew (S16).
#[tokio::test(start_paused = true)]
async fn a_release_runs_out_of_time_also_where_leaders_come_and_go() {
    let (mut lab, cluster) = lab(995, s(10_000)).await;
    lab.open().await;
    lab.reach("fenced", s(60)).await;
    let began = lab.clock.boot();
    while lab.phase() != "needs_operator" {
        let lasts = lab.clock.boot().since(began);
        assert!(lasts < s(240), "its deadline is two minutes, and {lasts:?} are over");
        tokio::time::sleep(s(50)).await;
        if lab.phase() != "needs_operator" {
            lab.crash().await;
        }
    }
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::ReleaseDeadline));
    // A person gives it all of its time again.
    let moments = || lab.record().fence.expect("open").moments.len();
    let before = moments();
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("fenced", s(60)).await;
    tokio::time::sleep(s(60)).await;
    assert_eq!(lab.phase(), "fenced");
    assert!(moments() > before);
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_given_up_takes_it_away_first() {
    let (mut lab, cluster) = lab(908, s(10_000)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    tokio::time::sleep(s(3)).await;
    lab.engine.abandon(&node(), taint(), person()).await.expect("given up");
    assert!(!cluster.seen(|state| state.stands));
    assert_eq!(lab.phase(), "released");
    lawful(&cluster);
}

#[tokio::test(start_paused = true)]
async fn killed_at_every_point_it_comes_to_the_same_end_and_never_on_while_it_stands() {
    let (mut whole, _) = lab(909, s(3)).await;
    crash::round(&mut whole).await;
    let points = whole.points.seen.lock().clone();
    assert!(points.iter().any(|point| point == "saved release_progress"), "{points:?}");
    for (index, point) in points.iter().enumerate() {
        let (mut lab, cluster) = lab(909, s(3)).await;
        *lab.points.die_at.lock() = Some(index + 1);
        crash::round(&mut lab).await;
        let stood = cluster.seen(|state| (state.stands, state.placed.clone(), state.removed.clone()));
        assert!(!stood.0, "killed at {point}");
        for edge in lab.world.lock().edges(NODE, lab.clock.boot()).iter().filter(|edge| edge.on) {
            let near = stood.2.iter().any(|gone| *gone <= edge.at && edge.at.since(*gone) < LINGERS);
            assert!(!near, "killed at {point}: on at {:?}, gone at {:?}", edge.at, stood.2);
        }
        lawful(&cluster);
        assert!(lab.record().ledger.open().is_empty(), "killed at {point}: {:?}", lab.record().ledger);
    }
}

/// A person gives an orphan's release up, thinks better of it, and puts the settings back: what it set up stands still, and nobody answers who
/// could say so.
#[tokio::test(start_paused = true)]
async fn what_an_orphan_s_release_set_up_is_not_forgotten_once_its_settings_are_back() {
    let (mut lab, cluster) = lab(2708, s(10_000)).await;
    lab.open().await;
    until(&cluster, |state| state.stands).await;
    lab.kill().await;
    let whole = lab.setup.clone();
    lab.setup.nodes.clear();
    lab.start().await;
    lab.engine.abandon(&node(), taint(), person()).await.expect("answered for");
    lab.kill().await;
    cluster.is_away(true);
    cluster.state.lock().mute = true;
    lab.setup = whole;
    lab.start().await;
    lab.reach("released", s(60)).await;
    lab.unfence().await.expect("it is let in");
    lab.reach("needs_operator", s(300)).await;
    assert!(cluster.seen(|state| state.stands) && !lab.is_on() && lab.received("bmc").ons == 0);
    cluster.is_away(false);
    until(&cluster, |state| !state.stands).await;
    lab.engine.retry(&node(), person()).await.expect("it is gone");
    lab.reach("normal", s(300)).await;
    lawful(&cluster);
}
