//! Devices that are a provider's interface: they give an off up by themselves, and their hold would bar their own node's releases.

mod far;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use picket_core::device::{DeviceSpec, Grade, MaxInFlight};
use picket_core::ledger::EffectKind;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::{Phase, Then};
use picket_core::store::FenceQuery;
use picket_core::time::Clock;
use picket_driver_sim::{Act, Disk, Fault, Verb};
use picket_engine::{EngineError, Until};
use tokio::time::Instant;

pub use self::far::{Cloud, Far};
use crate::lab::{Lab, NODE, node, person, s};
use crate::setup::Setup;

async fn cloud(seed: u64) -> Lab {
    let setup = Setup { clouds: true, ..Setup::new(NODE, &[&["nova"]]) };
    Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "nova");
    })
    .await
}

/// It took the off, gave it up and says so by On alone: it is told again, until it does it.
#[tokio::test(start_paused = true)]
async fn an_off_that_was_given_up_is_sent_again() {
    let mut lab = cloud(761).await;
    lab.fault("nova", Fault::OffIgnored);
    let fence = lab.open().await;
    tokio::time::sleep(s(20)).await;
    let told = lab.received("nova").offs;
    assert!((3..40).contains(&told), "again, and not without a pause: {told}");
    assert!(lab.is_on() && lab.attempts() == 0);
    lab.mend("nova");
    assert_eq!(lab.outcome(fence, picket_engine::Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!(lab.falls(), 1);
}

/// A hold that never goes is tried some times, and keeps the off from nobody.
#[tokio::test(start_paused = true)]
async fn a_device_that_no_hold_reaches_is_switched_off_all_the_same() {
    let mut lab = cloud(769).await;
    lab.setup.far.takes_no_hold.store(true, Ordering::SeqCst);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("evidence");
    assert!(evidence.devices[0].hold.is_empty() && lab.falls() == 1, "{evidence:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_would_bar_the_releases_is_engaged_once_they_are_over() {
    let mut lab = cloud(762).await;
    let free = lab.world.lock().hold(NODE);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("evidence");
    assert!(evidence.devices[0].hold.is_empty(), "until then the evidence says: hold: none");
    tokio::time::sleep(s(30)).await;
    let hold = lab.record().fence.expect("open").holds.into_values().next().expect("a hold");
    assert!(!hold.engaged.is_empty(), "{hold:?}");
    assert_ne!(lab.world.lock().hold(NODE), free);
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(300)).await;
    assert_eq!(lab.world.lock().hold(NODE).restore, free.restore, "put back as found");
}

/// No hold is undone by a retirement: who retires the node is told what is left.
#[tokio::test(start_paused = true)]
async fn a_retirement_names_what_the_fence_leaves_changed_beside_the_machine() {
    let mut lab = cloud(773).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    *lab.setup.far.left.lock() = Some("the service of hv1 is forced down".to_owned());
    lab.engine.retire(&node(), person()).await.expect("retired");
    let history = lab.engine.fences(FenceQuery { node: None, before: None, limit: 4 }).await;
    let told = format!("{history:?}");
    assert!(told.contains("the service of hv1 is forced down"), "{told}");
}

/// What cannot be engaged at first is tried again, and another gateway does it, too.
#[tokio::test(start_paused = true)]
async fn a_late_hold_that_fails_is_tried_again() {
    let mut lab = cloud(763).await;
    lab.fault("nova", Fault::HoldIgnored);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    tokio::time::sleep(s(5)).await;
    lab.mend("nova");
    tokio::time::sleep(s(60)).await;
    let hold = lab.record().fence.expect("open").holds.into_values().next().expect("a hold");
    assert!(!hold.engaged.is_empty(), "{hold:?}");
}

/// A provider's interface beside a machine's own, each as the settings would have it.
async fn cloud_and_bmc(seed: u64) -> Lab {
    let adjust = |spec: &mut DeviceSpec| {
        if spec.id.as_str() == "nova" {
            (spec.grade, spec.dwell) = (Grade::Hypervisor, s(5));
        }
    };
    let setup = Setup { clouds: true, adjust: Arc::new(adjust), ..Setup::new(NODE, &[&["nova", "bmc"]]) };
    Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "nova").add_host(NODE, "bmc");
    })
    .await
}

/// A cloud counts what it is asked, for all its users: who waits for On asks it no faster than it is polled.
#[tokio::test(start_paused = true)]
async fn while_on_is_waited_for_a_cloud_is_asked_at_its_own_interval() {
    let mut lab = cloud_and_bmc(764).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    for device in ["nova", "bmc"] {
        lab.fault(device, Fault::OnTakes { least: s(60), most: s(60) });
    }
    lab.unfence().await.expect("unfenced");
    let on = || lab.received("nova").ons > 0;
    while !on() {
        tokio::time::sleep(s(1)).await;
    }
    let before = ["nova", "bmc"].map(|device| lab.received(device).reads);
    tokio::time::sleep(s(50)).await;
    let after = ["nova", "bmc"].map(|device| lab.received(device).reads);
    // Ten polls, and a look before each on that is sent again, which is every 15 s.
    let (nova, bmc) = (after[0] - before[0], after[1] - before[1]);
    assert!((9..=14).contains(&nova), "a cloud is asked every 5 s: {nova} times in 50");
    assert!((80..=104).contains(&bmc), "a machine's own every half of a second: {bmc} times in 50");
    lab.reach("normal", s(60)).await;
    assert!(lab.is_on());
}

/// Who stood it down waits for a machine that is on; it is asked no faster for that.
#[tokio::test(start_paused = true)]
async fn what_was_stood_down_is_asked_at_its_own_interval_too() {
    let mut lab = cloud_and_bmc(765).await;
    for device in ["nova", "bmc"] {
        lab.fault(device, Fault::SaysNothing);
    }
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    lab.engine.stand_down(&node(), person()).await.expect("stood down");
    while lab.phase() != "unfencing" || lab.received("nova").identifies == 0 {
        tokio::time::sleep(s(1)).await;
    }
    // What is open is waited out first.
    while lab.view().live.wait.as_ref().is_none_or(|wait| !wait.what.contains("On to be seen")) {
        tokio::time::sleep(s(1)).await;
    }
    let before = ["nova", "bmc"].map(|device| lab.received(device).reads);
    tokio::time::sleep(s(50)).await;
    let after = ["nova", "bmc"].map(|device| lab.received(device).reads);
    let (nova, bmc) = (after[0] - before[0], after[1] - before[1]);
    assert!((9..=11).contains(&nova), "a cloud is asked every 5 s: {nova} times in 50");
    assert!((45..=51).contains(&bmc), "a machine's own every second: {bmc} times in 50");
    for device in ["nova", "bmc"] {
        lab.mend(device);
    }
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    lab.reach("normal", s(30)).await;
}

/// What does not come back is fenced to stay off, and in no other way.
#[tokio::test(start_paused = true)]
async fn what_its_off_ends_for_good_is_neither_drilled_nor_fenced_to_come_back() {
    let setup = Setup { clouds: true, finals: true, ..Setup::new(NODE, &[&["ec2"]]) };
    let mut lab = Lab::set_up(77, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "ec2");
    })
    .await;
    let words = |error: EngineError| match error {
        EngineError::NotAllowed(why) => why,
        other => panic!("{other}"),
    };
    let call = lab.call();
    let mut back = call.clone();
    back.holder.then = Then::PowerOn;
    for told in [
        words(lab.engine.drill(&node(), back.clone()).await.expect_err("a drill")),
        words(lab.engine.plan_drill(&node(), back.clone()).await.expect_err("a plan of it")),
        words(lab.engine.fence(&node(), back.clone()).await.expect_err("to come back")),
        words(lab.engine.plan(&node(), back).await.expect_err("a plan of it")),
    ] {
        assert!(told.contains("ec2: terminate = true") && told.contains("retire"), "{told}");
    }
    assert!(lab.record().fence.is_none(), "nothing was begun");
    lab.engine.fence(&node(), call).await.expect("to stay off");
    lab.reach("released", s(120)).await;
    // Nothing brings it back, and that is said at once.
    let told = words(lab.unfence().await.expect_err("it is gone"));
    assert!(told.contains("ec2: it was terminated") && told.contains("retire"), "{told}");
    tokio::time::sleep(s(30)).await;
    assert_eq!((lab.phase(), lab.received("ec2").ons), ("released", 0));
    lab.engine.retire(&node(), person()).await.expect("retired");
}

/// Somebody ends it while it is being brought back: nobody waits for it any longer.
#[tokio::test(start_paused = true)]
async fn what_is_gone_in_the_middle_of_an_unfence_is_not_waited_for() {
    let setup = Setup { clouds: true, ..Setup::new(NODE, &[&["ec2"]]) };
    let far = setup.far.clone();
    let mut lab = Lab::set_up(78, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "ec2");
    })
    .await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.fault("ec2", Fault::OnDropped { times: 1_000 });
    lab.unfence().await.expect("it may come back");
    tokio::time::sleep(s(20)).await;
    assert_eq!(lab.phase(), "unfencing");
    far.gone.store(true, Ordering::SeqCst);
    lab.reach("power_on_failed", s(10)).await;
    let why = format!("{:?}", lab.record().fence);
    assert!(why.contains("does not come back") && why.contains("ec2: it was terminated"), "{why}");
}

/// A gateway dies with an on that was not answered. Its successor waits for as long as the far side takes it, also where less is stored;
/// where it has not heard the far side yet, and guesses, what is stored says it.
#[tokio::test(start_paused = true)]
async fn an_on_of_the_dead_is_waited_out_for_as_long_as_it_is_taken_and_for_no_guess() {
    for (guesses, is_long) in [(false, true), (true, false)] {
        let (mut lab, far) = an_on_is_not_answered().await;
        *far.life.lock() = Some(MaxInFlight { off: Some(s(1_000)), on: Some(s(1_000)) });
        far.guesses.store(guesses, Ordering::SeqCst);
        let stored =
            lab.record().ledger.open().iter().filter_map(|open| open.life).max().expect("it is open");
        let died = Instant::now();
        lab.crash().await;
        while lab.received("nova").ons == 1 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let waited = died.elapsed();
        assert!(waited >= stored && stored < s(500), "{waited:?} of {stored:?}");
        assert_eq!(waited >= s(1_000), is_long, "{waited:?}");
    }
}

/// A person found out that its far side keeps what it was sent for ever, and has it in the settings of the next run.
#[tokio::test(start_paused = true)]
async fn what_nothing_bounds_by_now_is_no_sooner_over_for_what_is_stored_of_it() {
    let (mut lab, far) = an_on_is_not_answered().await;
    *far.life.lock() = Some(MaxInFlight { off: None, on: None });
    lab.crash().await;
    lab.reach("needs_operator", s(3_600)).await;
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::UnboundedEffect));
    assert_eq!(lab.received("nova").ons, 1);
}

/// A node is brought back, its on was sent, and nobody has heard what became of it.
async fn an_on_is_not_answered() -> (Lab, Arc<Far>) {
    let setup = Setup { clouds: true, ..Setup::new(NODE, &[&["nova"]]) };
    let far = setup.far.clone();
    let mut lab = Lab::set_up(79, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "nova");
    })
    .await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.fault("nova", Fault::OnDropped { times: 1 });
    lab.unfence().await.expect("it is let in");
    while lab.received("nova").ons == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    (lab, far)
}

/// What the provider's limits bear only later is neither stored nor permitted before that: then its look is a fresh one.
#[tokio::test(start_paused = true)]
async fn a_detach_waits_for_its_turn_and_nothing_of_it_is_begun_before() {
    let releaser =
        picket_release::make("volumes", "volumes", &serde_json::Map::new()).expect("good settings");
    let mut setup = Setup { clouds: true, volumes: Some(s(60)), ..Setup::new(NODE, &[&["nova"]]) };
    setup.releases.push(("volumes".to_owned(), releaser));
    let far = setup.far.clone();
    let mut lab = Lab::set_up(79, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "nova");
        world.add_volume(NODE, "v1", "/dev/vdb", Disk { name: "data".to_owned(), ..Disk::default() });
    })
    .await;
    let turn = Instant::now() + s(90);
    *far.turn.lock() = Some(turn);
    let fence = lab.open().await;
    tokio::time::sleep(s(80)).await;
    assert_eq!(lab.phase(), "fenced");
    assert!(lab.record().ledger.open().iter().all(|open| !matches!(open.kind, EffectKind::Release(_))));
    assert_eq!(lab.outcome(fence, picket_engine::Until::Released).await, Outcome::Fenced { released: true });
    let waited = turn.elapsed();
    assert!(waited < s(10), "{waited:?} after its turn");
    assert!(!lab.world.lock().is_attached(NODE, "v1", lab.clock.boot()));
}

/// S13: where each answer shows whose it is, another machine in its place is told, however long nothing else is new.
#[tokio::test(start_paused = true)]
async fn whoever_watches_another_machine_in_its_place_says_so_by_the_answers_alone() {
    let mut lab = cloud(770).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.setup.far.exchanged.store(true, Ordering::SeqCst);
    lab.reach("needs_operator", s(60)).await;
    assert_eq!(lab.record().phase, Phase::NeedsOperator(Reason::IdentityMismatch));
    assert_eq!(lab.received("nova").offs, 1, "nothing is sent to it");
}

/// Nova says that a server is off before it has noted that our stop did it: the next level, which may be a hypervisor with all its guests, waits for
/// that for as long as this one has its share.
#[tokio::test(start_paused = true)]
async fn a_grade_that_may_rise_spends_no_level_at_once() {
    for noted_after in [Some(s(8)), None] {
        let setup = Setup { clouds: true, ..Setup::new(NODE, &[&["nova"], &["second"]]) };
        let far = setup.far.clone();
        let mut lab = Lab::set_up(80, setup, |world| {
            world.add_machine(NODE).add_host(NODE, "nova").add_host(NODE, "second");
        })
        .await;
        *far.lowered_by.lock() = Some("no stop of ours ended".to_owned());
        let mut call = lab.call();
        call.min_grade = Some(Grade::Observed);
        let id = lab.engine.fence(&node(), call).await.expect("let in").fence();
        if let Some(after) = noted_after {
            tokio::time::sleep(after).await;
            assert_eq!((lab.phase(), lab.received("second").offs), ("fencing", 0));
            *far.lowered_by.lock() = None;
        }
        let outcome = lab.outcome(id, Until::Released).await;
        let offs = lab.received("second").offs;
        match noted_after {
            Some(_) => assert_eq!((outcome, offs), (Outcome::Fenced { released: true }, 0)),
            None => {
                assert_eq!(outcome, Outcome::NeedsOperator(Reason::GradeTooLow));
                assert!(offs > 0, "the next level had its turn");
            }
        }
    }
}
