//! Settings change while nodes are fenced, by a reload or while the gateway is down.

use std::sync::Arc;

use picket_core::device::Identity;
use picket_core::ids::{NodeId, ReleaseId};
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;
use picket_core::restore::HOLD;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{Admission, ChangeError, EngineError, Until};

use crate::lab::{Lab, NODE, node, person, s};
use crate::setup::{NodeSetup, Setup, named};

fn other(name: &str) -> NodeSetup {
    NodeSetup { name: name.to_owned(), levels: named(&[&[format!("{name}-bmc").as_str()]]), own_host: false }
}

fn id(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}

/// Nodes `n1`, `n2`, and machines for more; where everything is is known.
async fn lab(seed: u64) -> Lab {
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.nodes.push(other("n2"));
    for name in [NODE, "n2", "n3"] {
        setup.addresses.insert(name.to_owned(), "here".to_owned());
    }
    Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
        for name in ["n2", "n3"] {
            world.add_machine(name).add_host(name, &format!("{name}-bmc"));
        }
    })
    .await
}

async fn fenced(lab: &mut Lab, name: &str) -> Result<Admission, EngineError> {
    let call = lab.call();
    lab.engine.fence(&id(name), call).await
}

#[tokio::test(start_paused = true)]
async fn nodes_come_and_go_while_a_fence_goes_on() {
    let mut lab = lab(300).await;
    lab.fault("bmc", Fault::OffTakes { least: s(20), most: s(20) });
    let fence = lab.open().await;
    tokio::time::sleep(s(5)).await;
    lab.setup.nodes.remove(1);
    lab.setup.nodes.push(other("n3"));
    let changed = lab.reload().await.expect("nothing of it is in the way");
    assert_eq!((changed.added, changed.removed), (vec![id("n3")], vec![id("n2")]));
    assert!(changed.changed.is_empty() && changed.later.is_empty() && !changed.rules);
    assert_eq!(lab.engine.names().collect::<Vec<_>>(), [id(NODE), id("n3")]);
    assert!(matches!(fenced(&mut lab, "n2").await, Err(EngineError::UnknownNode { .. })));
    assert!(matches!(fenced(&mut lab, "n3").await, Ok(Admission::Opened(_))));
    // The same fence, in the same session: no other process took it over.
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
    let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("proven");
    assert_eq!((evidence.devices[0].long_window.as_deref(), lab.falls()), (None, 1));
}

/// A store that answers late bears a reload, and keeps nobody waiting who ends the gateway.
#[tokio::test(start_paused = true)]
async fn a_reload_that_waits_for_the_store_keeps_no_gateway_from_its_end() {
    let mut lab = lab(2_431).await;
    lab.setup.nodes.push(other("n3"));
    lab.store.records_take(s(600));
    let (engine, change) = (lab.engine.clone(), lab.setup.change(&lab.world));
    let reload = tokio::spawn(async move { engine.change(change).await });
    tokio::time::sleep(s(1)).await;
    let began = tokio::time::Instant::now();
    lab.stop().await;
    assert!(began.elapsed() < s(60), "{:?}", began.elapsed());
    let refused = reload.await.expect("it ends");
    assert!(matches!(refused, Err(ChangeError::NoLeader(_))), "{refused:?}");
}

/// It may have been fenced in the old life, after the backup was taken (S21).
#[tokio::test(start_paused = true)]
async fn a_node_that_comes_after_a_restore_is_kept_off_until_an_admin_says_otherwise() {
    for is_on in [true, false] {
        let mut lab = lab(2411).await;
        let file = lab.backup().await;
        lab.restore(&file).await;
        lab.start().await;
        tokio::time::sleep(s(300)).await;
        if !is_on {
            lab.happen(Act::Foreign { machine: "n3".to_owned(), verb: Verb::Off });
        }
        lab.setup.nodes.push(other("n3"));
        lab.reload().await.expect("nothing is in the way");
        tokio::time::sleep(s(300)).await;
        let record = lab.engine.node(&id("n3")).expect("it is there").stored.record.clone();
        let held: Vec<&str> = record.holds.keys().map(String::as_str).collect();
        let wanted = if is_on { ("normal", vec![]) } else { ("fenced", vec![HOLD]) };
        assert_eq!((record.phase.label(), held), wanted);
        assert_eq!(lab.received("n3-bmc").offs, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_would_take_a_fenced_node_away_is_refused_as_a_whole() {
    let mut lab = lab(301).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let before = lab.setup.clone();
    for move_it in [false, true] {
        // The node that is at rest would go as well, and a third would come.
        lab.setup = before.clone();
        lab.setup.nodes.remove(1);
        lab.setup.nodes.push(other("n3"));
        if move_it {
            lab.setup.addresses.insert(NODE.to_owned(), "there".to_owned());
        } else {
            lab.setup.nodes.remove(0);
        }
        let Err(ChangeError::Busy(why)) = lab.reload().await else { panic!("it was taken") };
        assert_eq!(why.len(), 1, "{why:?}");
        assert!(
            why[0].contains("n1") && why[0].contains("released") && why[0].contains("held by db"),
            "{why:?}"
        );
        assert_eq!(lab.engine.names().collect::<Vec<_>>(), [id(NODE), id("n2")]);
    }
    // Everything goes on as before: also the node whose task had made room.
    lab.setup = before;
    tokio::time::sleep(s(30)).await;
    assert_eq!((lab.phase(), lab.falls()), ("released", 1));
    assert!(matches!(fenced(&mut lab, "n2").await, Ok(Admission::Opened(_))));
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(600)).await;
    lab.setup.nodes.remove(0);
    lab.reload().await.expect("it is back, so it may go");
    assert!(lab.engine.node(&node()).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_at_rest_takes_other_rules_and_releases_once_it_is_back() {
    let mut lab = lab(302).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.setup.rules.watch = s(77);
    let observer = lab.observer.clone();
    lab.setup.releases.push(("more".to_owned(), observer));
    let changed = lab.reload().await.expect("nothing leaves");
    assert!(changed.rules && changed.later == [node()] && changed.changed == [id("n2")], "{changed:?}");
    assert_eq!(lab.view().plan.releases.len(), 1, "what is open stays with the old plan");
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(600)).await;
    tokio::time::sleep(s(10)).await;
    assert_eq!(lab.view().plan.releases.len(), 2);
    let outcome = lab.fence().await;
    let done = lab.record().fence.expect("open").releases.len();
    assert_eq!((outcome, done), (Outcome::Fenced { released: true }, 2));
}

#[tokio::test(start_paused = true)]
async fn an_orphan_is_shown_and_left_alone_until_its_settings_are_back() {
    let mut lab = lab(303).await;
    lab.fault("bmc", Fault::OffTakes { least: s(60), most: s(60) });
    let fence = lab.open().await;
    tokio::time::sleep(s(5)).await;
    lab.kill().await;
    let whole = lab.setup.clone();
    lab.setup.nodes.remove(0);
    lab.start().await;
    let sent = lab.received("bmc").offs;
    tokio::time::sleep(s(600)).await;
    let view = lab.view();
    assert!(view.live.orphaned.as_ref().is_some_and(|why| why.contains("not in the settings")), "{view:?}");
    assert_eq!((view.stored.record.phase.label(), view.stored.record.holds.len()), ("fencing", 1));
    assert_eq!(lab.received("bmc").offs, sent, "nothing is sent to it");
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::NeedsOperator(Reason::Orphaned));
    let refused = |error| matches!(error, EngineError::Blocked { reason: Reason::Orphaned, .. });
    assert!(refused(fenced(&mut lab, NODE).await.expect_err("an orphan")));
    assert!(refused(lab.unfence().await.expect_err("an orphan")));
    assert!(refused(lab.engine.attest(&node(), person()).await.expect_err("an orphan")));
    assert_eq!(lab.engine.check(&node()).await.expect("it is shown").live.devices.len(), 0);
    // A reload that leaves it out changes nothing for it; one that has it back lets it go on.
    lab.reload().await.expect("it left already");
    assert!(lab.view().live.orphaned.is_some());
    lab.setup = whole;
    lab.reload().await.expect("it is back in the settings");
    assert_eq!(lab.outcome(fence, Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!((lab.view().live.orphaned.clone(), lab.is_on()), (None, false));
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(600)).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_device_is_elsewhere_since_is_an_orphan_and_one_that_is_at_rest_is_not() {
    let mut lab = lab(304).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.kill().await;
    for name in [NODE, "n2"] {
        lab.setup.addresses.insert(name.to_owned(), "there".to_owned());
    }
    lab.start().await;
    let why = lab.view().live.orphaned.clone().expect("an orphan");
    assert!(why.contains("here/bmc") && why.contains("there/bmc"), "{why}");
    assert_eq!(lab.view().stored.record.holds.len(), 1);
    assert!(lab.engine.node(&id("n2")).expect("known").live.orphaned.is_none());
    assert!(matches!(fenced(&mut lab, "n2").await, Ok(Admission::Opened(_))));
}

#[tokio::test(start_paused = true)]
async fn what_keeps_an_orphan_off_is_nobody_elses_under_another_name() {
    let mut lab = lab(306).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.kill().await;
    let whole = lab.setup.clone();
    // The same BMC, of a node with another name: to fence and unfence it would switch the orphan's machine on.
    lab.setup.nodes[0].name = "n9".to_owned();
    lab.setup.addresses.insert("n9".to_owned(), "here".to_owned());
    lab.world.lock().add_machine("n9");
    lab.start().await;
    let refused = fenced(&mut lab, "n9").await.expect_err("it is the orphan's");
    assert!(refused.to_string().contains("orphan n1"), "{refused}");
    assert!(lab.view().live.orphaned.is_some());
    lab.setup = whole;
    lab.reload().await.expect("it has its name back");
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(600)).await;
    assert!(lab.engine.node(&id("n9")).is_err() && lab.is_on());
}

/// Node `n1` is fenced, and the settings know its machine as `n9` now, at another address and with this identity of its device.
async fn renamed(seed: u64, identity: fn(&Lab) -> Identity) -> (Lab, Setup) {
    let mut lab = lab(seed).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.kill().await;
    let whole = lab.setup.clone();
    lab.setup.nodes[0].name = "n9".to_owned();
    lab.setup.addresses.insert("n9".to_owned(), "by another driver".to_owned());
    lab.world.lock().add_machine("n9");
    let identity = identity(&lab);
    lab.setup.adjust = Arc::new(move |spec| {
        if spec.id.as_str() == "bmc" {
            spec.identity = identity.clone();
        }
    });
    lab.start().await;
    assert!(lab.view().live.orphaned.is_some());
    (lab, whole)
}

async fn is_let_be(mut lab: Lab, whole: Setup) {
    let received = lab.received("bmc");
    assert_eq!((received.offs, received.ons), (1, 0), "nothing is sent to the orphan's machine");
    lab.setup = whole;
    lab.kill().await;
    lab.start().await;
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(600)).await;
}

#[tokio::test(start_paused = true)]
async fn an_orphan_s_machine_is_known_by_its_identity_under_another_name_and_address() {
    let of_n1 = |lab: &Lab| lab.world.lock().identity(NODE).clone();
    let (mut lab, whole) = renamed(307, of_n1).await;
    let refused = fenced(&mut lab, "n9").await.expect_err("it is the orphan's");
    assert!(refused.to_string().contains("orphan n1") && refused.to_string().contains("uuid"), "{refused}");
    is_let_be(lab, whole).await;
}

#[tokio::test(start_paused = true)]
async fn a_device_that_says_it_controls_an_orphan_s_machine_gets_neither_off_nor_on() {
    let (mut lab, whole) = renamed(308, |_| Identity::default()).await;
    let view = lab.engine.check(&id("n9")).await.expect("checked");
    let learned = &view.stored.record.learned;
    assert!(learned.is_empty(), "what an orphan has is not learned: {learned:?}");
    let Ok(Admission::Opened(_)) = fenced(&mut lab, "n9").await else {
        panic!("nobody knows yet whose it is")
    };
    lab.reach_of(&id("n9"), "needs_operator", s(60)).await;
    let record = lab.engine.node(&id("n9")).expect("known").stored.record.clone();
    assert_eq!(record.phase, Phase::NeedsOperator(Reason::IdentityMismatch));
    let story = format!("{:?}", record.fence.expect("open"));
    assert!(story.contains("orphan n1"), "{story}");
    let detach = ReleaseId::new("detach").expect("a good name");
    lab.engine.abandon(&id("n9"), detach, person()).await.expect("given up");
    lab.engine.retire(&id("n9"), person()).await.expect("retired");
    is_let_be(lab, whole).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_keeps_the_old_settings() {
    let mut lab = lab(305).await;
    lab.setup.nodes.push(other("n3"));
    lab.store.away(s(20));
    assert!(lab.reload().await.is_err());
    assert_eq!(lab.engine.names().count(), 2);
    tokio::time::sleep(s(30)).await;
    lab.reload().await.expect("it is back");
    assert_eq!(lab.engine.names().count(), 3);
}

/// What was wrong in the settings is mended while a person is asked: the retry goes by the new ones, in sessions of their own, and what was sent in
/// the old ones is waited out before an on.
#[tokio::test(start_paused = true)]
async fn a_node_that_waits_for_a_person_takes_other_settings_at_once() {
    for (seed, unheard) in [(320, false), (321, true)] {
        let mut lab = lab(seed).await;
        lab.fault("bmc", if unheard { Fault::OffIgnored } else { Fault::WrongPassword });
        assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
        lab.fault("bmc", Fault::EndsNoOther);
        let observer = lab.observer.clone();
        lab.setup.releases.push(("more".to_owned(), observer));
        let changed = lab.reload().await.expect("taken");
        assert_eq!((changed.changed, changed.later), (vec![node(), id("n2")], vec![]));
        tokio::time::sleep(s(1)).await;
        assert_eq!((lab.phase(), lab.view().plan.releases.len()), ("needs_operator", 2));
        lab.mend("bmc");
        lab.engine.retry(&node(), person()).await.expect("let in");
        lab.reach("released", s(120)).await;
        lab.unfence().await.expect("unfenced");
        lab.reach("normal", s(600)).await;
        assert_eq!((lab.is_on(), lab.falls()), (true, 1), "nothing of before lands after the on");
    }
}

/// A person mended the settings, and they were refused: whoever tries again is told that those of before are in force.
#[tokio::test(start_paused = true)]
async fn a_retry_after_settings_that_were_refused_says_by_which_it_goes() {
    let mut lab = lab(323).await;
    lab.fault("bmc", Fault::WrongPassword);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    lab.engine.note_reload(Some("rn1 cannot leave the settings\nn1 cannot have its devices elsewhere"));
    let of = |name: &str| lab.engine.refused_settings_of(&id(name));
    assert_eq!(of("n1").as_deref(), Some("n1 cannot have its devices elsewhere"));
    assert_eq!((of("rn1").as_deref(), of("n2")), (Some("rn1 cannot leave the settings"), None));
    lab.engine.retry(&node(), person()).await.expect("let in");
    let told = |lab: &Lab| {
        let fence = lab.record().fence.expect("open");
        fence.moments.iter().filter(|one| one.what.contains("cannot have its devices elsewhere")).count()
    };
    assert_eq!(told(&lab), 1, "{:#?}", lab.record().fence);
    lab.reach("needs_operator", s(700)).await;
    lab.engine.note_reload(None);
    assert_eq!(lab.engine.refused_settings_of(&node()), None);
    lab.mend("bmc");
    lab.engine.retry(&node(), person()).await.expect("let in");
    lab.reach("released", s(120)).await;
    assert_eq!(told(&lab), 1);
}

/// S2: the settings change while a BMC restarts under a fence that waits for a person: the new driver counts its lives anew.
#[tokio::test(start_paused = true)]
async fn a_restart_is_not_forgotten_with_the_driver_that_saw_the_silence() {
    for early in [true, false] {
        let mut lab = lab(324).await;
        lab.fault("bmc", Fault::OffIgnored);
        assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
        // After it the BMC says Off of a machine that runs.
        lab.happen(Act::RestartBmc { device: "bmc".to_owned(), down: s(60), estranged: true });
        tokio::time::sleep(s(if early { 1 } else { 30 })).await;
        let observer = lab.observer.clone();
        lab.setup.releases.push(("more".to_owned(), observer));
        lab.reload().await.expect("taken");
        tokio::time::sleep(s(100)).await;
        lab.engine.retry(&node(), person()).await.expect("let in");
        tokio::time::sleep(s(700)).await;
        assert_eq!((lab.is_on(), lab.attempts()), (true, 0), "early: {early}, {:#?}", lab.record().fence);
    }
}

/// What its devices did by the settings before says nothing of these.
#[tokio::test(start_paused = true)]
async fn devices_with_other_settings_are_checked_at_once() {
    let mut lab = lab(322).await;
    lab.kill().await;
    lab.setup.check_at_start = true;
    lab.start().await;
    tokio::time::sleep(s(5)).await;
    let at =
        |lab: &Lab| lab.view().live.devices.values().next().and_then(|live| Some(live.checked.as_ref()?.at));
    let before = at(&lab).expect("checked at the start");
    tokio::time::sleep(s(5)).await;
    assert_eq!(at(&lab), Some(before));
    let observer = lab.observer.clone();
    lab.setup.releases.push(("more".to_owned(), observer));
    assert_eq!(lab.reload().await.expect("taken").changed, [node(), id("n2")]);
    tokio::time::sleep(s(5)).await;
    assert!(at(&lab).is_some_and(|at| at > before));
}
