//! Pauses: at admission, at the last look, over deaths, and not in a breach.

use std::collections::BTreeMap;

use picket_core::budget::Budget;
use picket_core::budget::pause::PauseScope;
use picket_core::outcome::{Outcome, Reason};
use picket_core::store::Store;
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{Admission, EngineError, Resumed, Until};

use crate::budget::{at_once, fleet, is_held, is_let_be, name};
use crate::lab::{Lab, lab, node, person, s};

#[tokio::test(start_paused = true)]
async fn nothing_new_begins_in_a_pause_and_it_survives_a_death() {
    let mut lab = fleet(320, 3, Budget::unlimited()).await;
    let pause = lab.engine.pause(PauseScope::Node(node()), person(), s(3_600)).await.expect("paused");
    assert_eq!(pause.by, "ada");
    lab.crash().await;
    let call = lab.call();
    match lab.engine.fence(&node(), call.clone()).await {
        Err(EngineError::Barred(bar)) => {
            assert_eq!(bar.reason(), Reason::Paused);
            assert!(
                bar.text.contains("node n1 is paused by ada") && bar.text.contains("a test"),
                "{}",
                bar.text
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(lab.is_on());
    let other = lab.call();
    assert!(lab.engine.fence(&name(2), other).await.is_ok(), "another node is not paused");
    assert_eq!(lab.engine.pauses_of(&node()).len(), 1);
    tokio::time::sleep(s(3_601)).await;
    assert!(lab.engine.fence(&node(), call).await.is_ok(), "the key was not bound, and the pause is over");
    assert_eq!(
        lab.store.notes("pause/").await.expect("a store"),
        [],
        "what is over is taken out of the store"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_comes_before_the_first_off_undoes_the_hold_and_resuming_lets_it_begin() {
    let mut lab = lab(321).await;
    // The hold is engaged, and the device is slow enough for a pause to come in between.
    lab.fault("bmc", Fault::Slow(s(2)));
    let call = lab.call();
    let id = lab.engine.fence(&node(), call.clone()).await.expect("let in").fence();
    tokio::time::sleep(s(3)).await;
    assert_eq!((lab.phase(), lab.record().fence.expect("open").off_sent), ("fencing", false));
    lab.engine.pause(PauseScope::Everything, person(), s(600)).await.expect("paused");
    lab.mend("bmc");
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Blocked(Reason::Paused));
    lab.reach("normal", s(120)).await;
    assert!(lab.is_on() && lab.falls() == 0);
    assert!(lab.record().holds.is_empty() && lab.record().back_since.is_none());
    let barred = lab.engine.fence(&node(), call.clone()).await;
    assert!(matches!(barred, Err(EngineError::Barred(_))), "decided again: {barred:?}");
    let ended = lab.engine.resume(PauseScope::Everything, person()).await.expect("resumed");
    assert_eq!(ended, Resumed { pause: true, brake: false });
    assert!(matches!(lab.engine.fence(&node(), call).await, Ok(Admission::Opened(_))));
}

#[tokio::test(start_paused = true)]
async fn a_fence_whose_off_was_sent_and_a_breach_go_on_in_a_pause() {
    let mut lab = lab(322).await;
    let id = lab.open().await;
    while !lab.record().fence.is_some_and(|fence| fence.off_sent) {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    lab.engine.pause(PauseScope::Everything, person(), s(3_600)).await.expect("paused");
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
    lab.happen(Act::Foreign { machine: "n1".to_owned(), verb: Verb::On });
    lab.reach("fencing", s(30)).await;
    lab.reach("released", s(120)).await;
    assert!(!lab.is_on());
}

/// S11: a node that was let go on a person's word took no off. Found on, it is switched off in a pause all the same.
#[tokio::test(start_paused = true)]
async fn a_breach_sends_its_first_off_in_a_pause_where_no_off_went_before_it() {
    let mut lab = lab(2409).await;
    lab.happen(Act::Foreign { machine: "n1".to_owned(), verb: Verb::Off });
    lab.fault("bmc", Fault::Silent);
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    lab.engine.attest(&node(), person()).await.expect("nobody says On");
    lab.reach("released", s(300)).await;
    assert!(!lab.record().fence.expect("open").off_sent);
    lab.engine.pause(PauseScope::Everything, person(), s(86_400)).await.expect("paused");
    lab.mend("bmc");
    lab.happen(Act::Foreign { machine: "n1".to_owned(), verb: Verb::On });
    lab.reach("fencing", s(60)).await;
    lab.reach("released", s(300)).await;
    assert!(!lab.is_on() && lab.record().breaches == 1);
}

#[tokio::test(start_paused = true)]
async fn the_brake_holds_until_a_person_resumes_everything() {
    let budget = Budget { brake_percent: 50, brake_least: 3, ..at_once(9) };
    let mut lab = fleet(323, 6, budget).await;
    let mut barred = 0;
    for index in 1..=6 {
        let call = lab.call();
        match lab.engine.fence(&name(index), call).await {
            Ok(_) => {}
            Err(EngineError::Barred(bar)) => {
                assert_eq!(bar.reason(), Reason::Brake, "{bar:?}");
                barred += 1;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(barred, 4, "with the third the brake holds");
    assert!(lab.engine.braked().is_some() && lab.engine.office_numbers().braked);
    let nothing = lab.engine.resume(PauseScope::Node(node()), person()).await.expect("asked");
    assert_eq!(nothing, Resumed { pause: false, brake: false });
    let ended = lab.engine.resume(PauseScope::Everything, person()).await.expect("resumed");
    assert_eq!(ended, Resumed { pause: false, brake: true });
    let call = lab.call();
    assert!(lab.engine.fence(&name(6), call).await.is_ok());
}

/// S15: whoever began before the brake held is looked at once more before its first off; an off that was sent is gone.
#[tokio::test(start_paused = true)]
async fn a_brake_that_comes_before_the_first_off_lets_none_go() {
    let budget = Budget { brake_percent: 50, brake_least: 3, ..at_once(9) };
    let mut lab = fleet(324, 6, budget).await;
    lab.fault("bmc1", Fault::Slow(s(2)));
    let id = lab.open().await;
    let call = lab.call();
    let other = lab.engine.fence(&name(2), call).await.expect("the brake is free").fence();
    is_held(&lab).await;
    let fence = lab.engine.get_fence(other).await.expect("a store").expect("kept");
    assert!(fence.off_sent, "of a node whose device is not slow");
    let call = lab.call();
    let barred = lab.engine.fence(&name(3), call).await;
    assert!(matches!(&barred, Err(EngineError::Barred(bar)) if bar.reason() == Reason::Brake), "{barred:?}");
    lab.mend("bmc1");
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Blocked(Reason::Brake));
    lab.reach_of(&name(2), "released", s(60)).await;
    is_let_be(&lab).await;
}

/// S15: the pause is looked at before the hold and before the first off, whoever began the fence again; nobody sets it aside.
/// (What was let go on a person's word is another matter: that is switched off in any case.)
#[tokio::test(start_paused = true)]
async fn a_retry_sends_no_first_off_in_a_pause() {
    let mut lab = lab(2407).await;
    lab.fault("bmc", Fault::Silent);
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    assert!(!lab.record().fence.expect("open").off_sent);
    lab.engine.pause(PauseScope::Everything, person(), s(86_400)).await.expect("paused");
    lab.mend("bmc");
    lab.engine.retry(&node(), person()).await.expect("taken");
    tokio::time::sleep(s(300)).await;
    assert!(lab.is_on() && lab.falls() == 0, "the first off was sent in a pause, in phase {}", lab.phase());
}

/// A fence that comes while a node is brought back, and that a pause stops before its first off, leaves it on its way back: who
/// unfenced it is told that it is back, and nobody looks at a node in Normal.
#[tokio::test(start_paused = true)]
async fn a_fence_that_a_pause_stops_in_the_middle_of_an_unfence_does_not_leave_the_node_off() {
    let mut lab = lab(2408).await;
    lab.fault("bmc", Fault::Silent);
    lab.happen(Act::Foreign { machine: "n1".to_owned(), verb: Verb::Off });
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    lab.engine.attest(&node(), person()).await.expect("attested");
    lab.reach("released", s(120)).await;
    lab.unfence().await.expect("unfenced");
    tokio::time::sleep(s(5)).await;
    assert_eq!(lab.phase(), "unfencing");
    lab.open_again().await;
    lab.engine.pause(PauseScope::Everything, person(), s(600)).await.expect("paused");
    lab.mend("bmc");
    tokio::time::sleep(s(900)).await;
    let record = lab.record();
    assert!(lab.is_on() || record.phase.label() != "normal", "off, and in normal: {:?}", record.bringing);
}

/// S7: whoever holds the node by a call of their own was told that it stays off until they drop that hold. A pause sends no off, and does
/// not end the fence.
#[tokio::test(start_paused = true)]
async fn a_fence_that_somebody_holds_waits_for_the_end_of_a_pause() {
    let mut lab = lab(2703).await;
    lab.fault("bmc", Fault::Slow(s(2)));
    let id = lab.open().await;
    tokio::time::sleep(s(3)).await;
    lab.engine.hold(&node(), "hands".to_owned(), person()).await.expect("held");
    lab.engine.pause(PauseScope::Everything, person(), s(3_600)).await.expect("paused");
    lab.mend("bmc");
    tokio::time::sleep(s(60)).await;
    assert_eq!((lab.phase(), lab.record().fence.expect("open").off_sent), ("fencing", false));
    let wait = lab.view().live.wait.clone().expect("it is said what for");
    assert!(wait.what.contains("paused by ada"), "{wait:?}");
    lab.engine.resume(PauseScope::Everything, person()).await.expect("resumed");
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Fenced { released: true });
    assert!(lab.record().holds.contains_key("hands"));
}

/// Its deadline passes in the pause all the same: a person is asked, and the node stays held.
#[tokio::test(start_paused = true)]
async fn a_fence_that_somebody_holds_asks_a_person_at_its_deadline_in_a_pause() {
    let mut lab = lab(2704).await;
    lab.fault("bmc", Fault::Slow(s(2)));
    let call = lab.call();
    let id = lab.engine.fence(&node(), call).await.expect("let in").fence();
    tokio::time::sleep(s(3)).await;
    lab.engine.hold(&node(), "hands".to_owned(), person()).await.expect("held");
    lab.engine.pause(PauseScope::Everything, person(), s(86_400)).await.expect("paused");
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::NeedsOperator(Reason::Deadline));
    assert!(lab.is_on() && lab.record().holds.contains_key("hands"));
    lab.mend("bmc");
    lab.engine.resume(PauseScope::Everything, person()).await.expect("resumed");
    lab.engine.retry(&node(), person()).await.expect("taken");
    lab.reach("released", s(300)).await;
}

/// Whoever asks and hangs up, as the store is slow, has paused it, or has not: never in the store alone.
#[tokio::test(start_paused = true)]
async fn whoever_hangs_up_has_asked_all_the_same() {
    let lab = lab(1102).await;
    lab.store.notes_take(s(5));
    let scope = PauseScope::Node(node());
    let asked = lab.engine.pause(scope.clone(), person(), s(3_600));
    assert!(tokio::time::timeout(s(1), asked).await.is_err(), "it hung up");
    tokio::time::sleep(s(30)).await;
    lab.store.notes_take(s(0));
    let stored = async || lab.store.notes("pause/").await.expect("a store").len();
    assert_eq!((stored().await, lab.engine.pauses().len()), (1, 1));
    lab.store.notes_take(s(5));
    let asked = lab.engine.resume(scope, person());
    assert!(tokio::time::timeout(s(1), asked).await.is_err(), "it hung up");
    tokio::time::sleep(s(30)).await;
    lab.store.notes_take(s(0));
    assert_eq!((stored().await, lab.engine.pauses().len()), (0, 0));
}

fn rack(name: &str) -> BTreeMap<String, String> {
    [("rack".to_owned(), name.to_owned())].into()
}

fn group(name: &str) -> PauseScope {
    PauseScope::Group(format!("rack={name}"))
}

async fn in_rack(seed: u64, name: &str) -> Lab {
    let mut lab = lab(seed).await;
    lab.setup.labels = rack(name);
    lab.reload().await.expect("it is at rest");
    lab
}

/// S15: a node that is not at rest is worked by the settings that it had, and paused by the groups that it is in now.
#[tokio::test(start_paused = true)]
async fn a_pause_of_a_group_covers_whichever_nodes_the_settings_put_there_now() {
    let mut lab = in_rack(2451, "r1").await;
    lab.fault("bmc", Fault::Slow(s(2)));
    let id = lab.open().await;
    tokio::time::sleep(s(3)).await;
    assert_eq!((lab.phase(), lab.record().fence.expect("open").off_sent), ("fencing", false));
    lab.setup.labels = rack("r2");
    assert_eq!(lab.reload().await.expect("taken").later, [node()]);
    lab.engine.pause(group("r1"), person(), s(600)).await.expect("paused");
    assert_eq!(lab.engine.pauses_of(&node()), []);
    lab.engine.resume(group("r1"), person()).await.expect("resumed");
    lab.engine.pause(group("r2"), person(), s(600)).await.expect("paused");
    assert_eq!(lab.engine.pauses_of(&node()).len(), 1);
    lab.mend("bmc");
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Blocked(Reason::Paused));
}

/// S14: the same where it is fenced again while it is brought back.
#[tokio::test(start_paused = true)]
async fn nothing_begins_in_a_pause_of_a_group_that_a_node_came_to_before_it_was_at_rest() {
    let mut lab = in_rack(2452, "r1").await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.setup.labels = rack("r3");
    assert_eq!(lab.reload().await.expect("taken").later, [node()]);
    lab.fault("bmc", Fault::OnTakes { least: s(60), most: s(60) });
    lab.unfence().await.expect("taken");
    lab.reach("unfencing", s(10)).await;
    lab.engine.pause(group("r3"), person(), s(600)).await.expect("paused");
    let call = lab.call();
    match lab.engine.fence(&node(), call).await {
        Err(EngineError::Barred(bar)) => assert_eq!(bar.reason(), Reason::Paused),
        other => panic!("{other:?}"),
    }
}
