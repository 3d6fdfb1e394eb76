//! Power that comes back, or goes, by other hands than ours: mains, buttons, watchdogs, foreign hands.

use picket_core::outcome::Outcome;
use picket_core::record::Cause;
use picket_driver_sim::{Act, Fault, RestorePolicy, Verb};
use picket_engine::Until;

use crate::lab::{Answer, Lab, NODE, lab, s};

fn machine() -> String {
    NODE.to_owned()
}

fn mains_fail_and_come_back(lab: &Lab) {
    lab.happen(Act::LoseMains { machine: machine() });
    lab.schedule(s(5), Act::RestoreMains { machine: machine() });
}

/// Fenced, and its releases complete; its machine would come on with its mains.
async fn held(seed: u64) -> Lab {
    let mut lab = Lab::with(seed, &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").set_restore(NODE, RestorePolicy::AlwaysOn);
    })
    .await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab
}

async fn is_a_breach(lab: &Lab) {
    lab.reach("fencing", s(60)).await;
    lab.reach("released", s(300)).await;
    assert!(!lab.is_on());
    let record = lab.record();
    assert_eq!((record.breaches, record.fence.expect("open").cause), (1, Cause::Breach));
}

#[tokio::test(start_paused = true)]
async fn a_held_machine_stays_off_when_its_mains_come_back_and_when_its_button_is_pressed() {
    let lab = held(80).await;
    mains_fail_and_come_back(&lab);
    tokio::time::sleep(s(60)).await;
    lab.happen(Act::PressButton { machine: machine() });
    tokio::time::sleep(s(60)).await;
    assert_eq!((lab.is_on(), lab.phase(), lab.record().breaches), (false, "released", 0));
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(200)).await;
    let hold = lab.world.lock().hold(NODE);
    assert_eq!((hold.restore, hold.button_locked), (RestorePolicy::AlwaysOn, false), "put back as found");
    assert!(!hold.watchdog, "the watchdog is never started");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_forgot_its_hold_and_came_on_with_its_mains_is_fenced_again() {
    let lab = held(81).await;
    // Its hold is read once more after the release, and then for five minutes not.
    tokio::time::sleep(s(30)).await;
    lab.happen(Act::ForgetHold { machine: machine() });
    // It forgot its policy of before, too.
    lab.world.lock().set_restore(NODE, RestorePolicy::AlwaysOn);
    mains_fail_and_come_back(&lab);
    is_a_breach(&lab).await;
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(200)).await;
    assert_eq!(lab.world.lock().hold(NODE).restore, RestorePolicy::AlwaysOn);
}

#[tokio::test(start_paused = true)]
async fn a_button_that_cannot_be_locked_is_a_breach_when_it_is_pressed() {
    let mut lab = lab(82).await;
    lab.fault("bmc", Fault::HoldUnsupported);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("evidence");
    assert!(evidence.devices[0].hold.is_empty(), "the evidence says: hold: none");
    lab.happen(Act::PressButton { machine: machine() });
    is_a_breach(&lab).await;
}

#[tokio::test(start_paused = true)]
async fn a_device_that_only_says_that_it_holds_is_watched_all_the_same() {
    let mut lab = lab(83).await;
    lab.fault("bmc", Fault::HoldIgnored);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.happen(Act::PressButton { machine: machine() });
    is_a_breach(&lab).await;
}

#[tokio::test(start_paused = true)]
async fn the_watchdog_of_the_bmc_is_stopped_before_the_evidence() {
    let mut lab = lab(84).await;
    // It bites while the first off takes its time: the fall that is seen may be its cycle.
    lab.fault("bmc", Fault::OffTakes { least: s(20), most: s(20) });
    let id = lab.open().await;
    tokio::time::sleep(s(3)).await;
    lab.happen(Act::Watchdog { machine: machine(), off_for: s(8) });
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
    assert_eq!((lab.falls(), lab.is_on()), (1, false), "the hold had stopped it");
}

#[tokio::test(start_paused = true)]
async fn it_never_gives_up_a_breach_and_backs_off() {
    let mut lab = lab(85).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    for _ in 0..8 {
        lab.happen(Act::Foreign { machine: machine(), verb: Verb::On });
        lab.reach("fencing", s(60)).await;
        lab.reach("released", s(400)).await;
        assert!(!lab.is_on());
    }
    assert_eq!(lab.record().breaches, 8);
    // Nothing can be done for an hour: it goes on trying.
    lab.fault("bmc", Fault::OffIgnored);
    lab.happen(Act::Foreign { machine: machine(), verb: Verb::On });
    tokio::time::sleep(s(3_600)).await;
    lab.mend("bmc");
    lab.reach("released", s(600)).await;
    assert!(!lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn a_breach_while_a_person_is_waited_for_is_one_too() {
    let mut lab = lab(86).await;
    lab.answers(&[Answer::Refuse]);
    lab.fence().await;
    assert_eq!(lab.phase(), "needs_operator");
    lab.answers(&[Answer::Complete]);
    lab.happen(Act::Foreign { machine: machine(), verb: Verb::On });
    lab.reach("fencing", s(400)).await;
    lab.reach("released", s(120)).await;
    assert!(!lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn what_reads_on_while_a_person_is_waited_for_is_switched_off_again() {
    let mut lab = lab(87).await;
    lab.fault("bmc", Fault::OffIgnored);
    lab.fence().await;
    assert_eq!((lab.phase(), lab.is_on()), ("needs_operator", true));
    lab.mend("bmc");
    tokio::time::sleep(s(60)).await;
    assert_eq!((lab.phase(), lab.is_on(), lab.attempts()), ("needs_operator", false, 0));
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_somebody_switched_on_before_the_unfence_is_brought_back() {
    let mut lab = lab(88).await;
    lab.fault("bmc", Fault::AlreadyIsError);
    lab.fence().await;
    lab.unfence().await.expect("unfenced");
    lab.happen(Act::Foreign { machine: machine(), verb: Verb::On });
    lab.reach("normal", s(120)).await;
    assert!(lab.is_on());
}

#[tokio::test(start_paused = true)]
async fn mains_that_fail_in_the_middle_of_a_fence_prove_nothing() {
    let mut lab = lab(89).await;
    lab.fault("bmc", Fault::OffTakes { least: s(30), most: s(30) });
    let id = lab.open().await;
    tokio::time::sleep(s(2)).await;
    lab.happen(Act::LoseMains { machine: machine() });
    assert_ne!(lab.outcome(id, Until::Confirmed).await, Outcome::Fenced { released: false });
    assert_eq!((lab.phase(), lab.attempts()), ("needs_operator", 0));
}
