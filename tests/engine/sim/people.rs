//! Readiness by a schedule, drills that verify wiring, nodes that are retired, and a person's word that is false.

use picket_core::device::Grade;
use picket_core::event::Person;
use picket_core::outcome::{Outcome, Reason};
use picket_core::time::Clock;
use picket_driver_sim::{Act, Fault, RestorePolicy};
use picket_engine::{Admission, ErrorKind, FenceCall, Readiness, Trouble, Until, problems, readiness};

use crate::lab::{Lab, NODE, lab, node, person, s};

fn ready(lab: &Lab, device: &str) -> Readiness {
    let view = lab.view();
    let topology = view.plan.levels_now(&view.stored.record);
    let spec = topology.devices().find(|spec| spec.id.as_str() == device).expect("known");
    let live = view.live.devices.get(&spec.id).cloned().unwrap_or_default();
    readiness(spec, &live, &view.stored.record.phase)
}

#[tokio::test(start_paused = true)]
async fn devices_are_checked_by_themselves_and_a_wrong_password_is_not_hammered() {
    let lab = lab(950).await;
    tokio::time::sleep(s(600)).await;
    assert_eq!(ready(&lab, "bmc"), Readiness::Ready);
    let healthy = lab.received("bmc").opens;
    assert!((1..=2).contains(&healthy), "{healthy} logins in ten minutes");
    assert_eq!((lab.received("bmc").offs, lab.received("bmc").ons), (0, 0));
    lab.fault("bmc", Fault::WrongPassword);
    tokio::time::sleep(s(12 * 3_600)).await;
    assert_eq!(ready(&lab, "bmc"), Readiness::NotReady);
    let view = lab.view();
    let (spec, live) = (view.plan.topology.devices().next().expect("one"), view.live.devices.values().next());
    let first = problems(spec, live.expect("asked")).remove(0);
    assert_eq!(first.trouble, Trouble::Failed(Some(ErrorKind::Authentication)));
    let refused = lab.received("bmc").opens - healthy;
    assert!((10..=20).contains(&refused), "{refused} refused logins in twelve hours");
    lab.mend("bmc");
    tokio::time::sleep(s(2 * 3_600)).await;
    assert_eq!(ready(&lab, "bmc"), Readiness::Ready);
}

/// S2: what restarts under the session of a check is not believed by the fence that comes next; what restarts once we closed
/// that, shortly before its idle limit, had no session that could be lost, and its Off is that of any first look.
#[tokio::test(start_paused = true)]
async fn a_restart_under_a_session_of_a_check_is_a_loss_and_one_after_its_end_is_none() {
    for (wait, outcome) in
        [(s(50), Outcome::NeedsOperator(Reason::BmcRestarted)), (s(55), Outcome::Fenced { released: true })]
    {
        let mut lab = lab(951).await;
        lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: picket_driver_sim::Verb::Off });
        lab.engine.check(&node()).await.expect("checked");
        tokio::time::sleep(wait).await;
        lab.happen(Act::RestartBmc { device: "bmc".to_owned(), down: s(0), estranged: false });
        let id = lab.open().await;
        assert_eq!(lab.outcome(id, Until::Released).await, outcome, "{wait:?} after the check");
    }
}

/// IPMI 2.0 lets a BMC keep its idle limit within five percent: what its settings say is kept, and the session of a check that
/// it ended by itself is no loss within the fence that asks in it first.
#[tokio::test(start_paused = true)]
async fn a_session_of_a_check_that_a_bmc_ended_by_its_idle_limit_is_no_loss() {
    let mut lab = lab(2405).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: picket_driver_sim::Verb::Off });
    // The driver goes by its settings, 60 s.
    lab.world.lock().set_sessions("bmc", 4, s(57));
    lab.engine.check(&node()).await.expect("checked");
    tokio::time::sleep(s(52)).await;
    let now = lab.clock.boot();
    assert_eq!(lab.world.lock().sessions("bmc", now), 0, "its slot is free");
    tokio::time::sleep(s(6)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
}

/// A close that is not answered keeps nobody waiting who asks the device.
#[tokio::test(start_paused = true)]
async fn a_close_that_hangs_keeps_no_drill_and_no_fence_waiting() {
    for drills in [true, false] {
        let mut lab = lab(2409).await;
        lab.engine.check(&node()).await.expect("checked");
        tokio::time::sleep(s(51)).await;
        lab.fault("bmc", Fault::Silent);
        tokio::time::sleep(s(2)).await;
        lab.mend("bmc");
        let (call, from) = (lab.call(), lab.clock.boot());
        match drills {
            true => lab.engine.drill(&node(), call).await.expect("let in"),
            false => lab.engine.fence(&node(), call).await.expect("let in"),
        };
        while lab.is_on() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        let took = lab.clock.boot().since(from);
        assert!(took < s(2), "off after {took:?}");
    }
}

async fn supplied(seed: u64) -> Lab {
    let mut setup = crate::setup::Setup::new(NODE, &[&["bmc"], &["a", "b"]]);
    setup.without_releases = true;
    setup.adjust = std::sync::Arc::new(|spec| spec.verified = false);
    Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "a").add_supply(NODE, "b");
        // Until it is switched on it stays off, and its BMC says so.
        world.set_restore(NODE, RestorePolicy::AlwaysOff);
    })
    .await
}

async fn drilled(lab: &mut Lab) -> Vec<String> {
    let call = lab.call();
    let then = picket_core::record::Then::PowerOn;
    let call = FenceCall { holder: picket_core::event::Holder { then, ..call.holder.clone() }, ..call };
    let Ok(Admission::Opened(id)) = lab.engine.drill(&node(), call).await else { panic!("not let in") };
    lab.reach("normal", s(900)).await;
    let fence = lab.engine.get_fence(id).await.expect("a store").expect("kept");
    fence.findings().map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn a_drill_verifies_the_wiring_of_supplies_until_they_are_elsewhere() {
    let mut lab = supplied(952).await;
    lab.engine.check(&node()).await.expect("checked");
    assert_eq!(ready(&lab, "a"), Readiness::Degraded);
    let findings = drilled(&mut lab).await;
    assert!(findings.iter().any(|one| one.contains("their wiring is verified")), "{findings:?}");
    assert!(lab.is_on());
    assert_eq!(lab.record().wired.len(), 2);
    lab.engine.check(&node()).await.expect("checked");
    assert_eq!(ready(&lab, "a"), Readiness::Ready);
    // It outlives the process, and raises the grade of the next fence that has to cut them.
    lab.crash().await;
    lab.fault("bmc", Fault::OffIgnored);
    let view = lab.view();
    let verified = view.plan.levels_now(&view.stored.record);
    assert_eq!(verified.devices().filter(|spec| spec.verified).count(), 2);
    // An earlier version's drill was content with a silent BMC.
    let mut earlier = lab.record();
    earlier.wired.values_mut().for_each(|wired| *wired = wired.replace(" was seen to feed ", " feeds "));
    assert!(view.plan.levels_now(&earlier).devices().all(|spec| !spec.verified));
}

#[tokio::test(start_paused = true)]
async fn a_drill_in_which_the_gateway_died_verifies_nothing() {
    let mut lab = supplied(953).await;
    let call = lab.call();
    let then = picket_core::record::Then::PowerOn;
    let call = FenceCall { holder: picket_core::event::Holder { then, ..call.holder.clone() }, ..call };
    lab.engine.drill(&node(), call).await.expect("let in");
    tokio::time::sleep(s(2)).await;
    lab.crash().await;
    lab.reach("normal", s(1_200)).await;
    assert!(lab.record().wired.is_empty());
    assert!(lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn an_orphan_is_retired_wherever_its_fence_stands_and_settings_with_another_machine_bring_a_new_one() {
    let mut lab = lab(954).await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.open().await;
    tokio::time::sleep(s(5)).await;
    assert_eq!(lab.phase(), "fencing");
    assert!(lab.engine.retire(&node(), person()).await.is_err(), "it comes to its end by itself");
    lab.kill().await;
    lab.setup.addresses.insert(NODE.to_owned(), "there".to_owned());
    let whole = lab.setup.clone();
    lab.setup.nodes.clear();
    lab.start().await;
    assert!(lab.view().live.orphaned.is_some());
    let gone = Person { name: "ada".to_owned(), reason: "it burned".to_owned() };
    lab.engine.retire(&node(), gone).await.expect("retired");
    tokio::time::sleep(s(5)).await;
    assert!(lab.engine.node(&node()).is_err(), "nothing of it is shown any more");
    lab.mend("bmc");
    lab.kill().await;
    lab.setup = whole;
    lab.start().await;
    lab.reach("normal", s(30)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
}

/// The worst that an operator brings about: nothing but the word tells that the machine is off, and it runs. The word stands there by name.
#[tokio::test(start_paused = true)]
async fn a_false_word_of_a_person_has_a_restarted_bmc_believed_that_lies_and_its_name_is_stored() {
    let lab = crate::restarted::a_lying_bmc(2771).await;
    lab.engine.retry_seen_off(&node(), person()).await.expect("taken");
    lab.reach("released", s(170)).await;
    assert!(lab.is_on());
    let violations = std::mem::take(&mut *lab.observer.violations.lock());
    assert!(violations[0].contains("n1 is released while it is on"), "{violations:?}");
    let fence = lab.record().fence.expect("released");
    assert_eq!(fence.evidence.map(|evidence| evidence.grade), Some(Grade::Claimed));
    let told = fence.moments.iter().any(|moment| moment.what.contains("ada"));
    assert!(told, "{:#?}", fence.moments);
}
