//! A node that a person is waited for, or that is released, is kept off; what its BMC goes through meanwhile is not forgotten.

use std::sync::Arc;

use picket_core::device::{Grade, Identity};
use picket_core::outcome::{Outcome, Reason};
use picket_driver_sim::{Act, Fault, RestorePolicy, Verb};
use picket_engine::Until;
use tokio::time::Instant;

use crate::lab::{Answer, Lab, NODE, Observer, lab, node, person, s};
use crate::setup::Setup;

fn somebody_switches_on(lab: &Lab) {
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
}

pub fn restart(down: u64) -> Act {
    // It says Off for a live host when it is back.
    Act::RestartBmc { device: "bmc".to_owned(), down: s(down), estranged: true }
}

/// A fence whose off is ignored: it ends with a person.
async fn given_up(lab: &mut Lab) {
    lab.fault("bmc", Fault::OffIgnored);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
}

async fn retried(lab: &Lab) {
    lab.engine.retry(&node(), person()).await.expect("it waits for a person");
    tokio::time::sleep(s(100)).await;
    assert!(lab.is_on());
    assert!(["fencing", "needs_operator"].contains(&lab.phase()), "{} while it is on", lab.phase());
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_restarts_while_a_person_is_waited_for_is_not_believed() {
    for crash in [false, true] {
        let mut lab = lab(901).await;
        given_up(&mut lab).await;
        tokio::time::sleep(s(1_000)).await;
        lab.happen(restart(5));
        tokio::time::sleep(s(300)).await;
        assert!(!lab.record().fence.expect("open").lost.is_empty(), "the loss is stored");
        if crash {
            lab.crash().await;
        }
        retried(&lab).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nor_is_one_that_fell_silent_within_the_fence_and_came_back_later() {
    for back in [45, 190, 250, 400] {
        for crash in [false, true] {
            let mut lab = lab(902).await;
            lab.fault("bmc", Fault::OffIgnored);
            let id = lab.open().await;
            lab.schedule(s(1), restart(back));
            if crash {
                tokio::time::sleep(s(35)).await;
                assert!(!lab.record().fence.expect("open").silent.is_empty(), "the silence is stored");
                lab.crash().await;
            }
            let outcome = lab.outcome(id, Until::Confirmed).await;
            assert!(matches!(outcome, Outcome::NeedsOperator(_)), "back after {back} s: {outcome:?}");
            tokio::time::sleep(s(400)).await;
            retried(&lab).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nor_is_one_that_restarts_while_the_node_is_released() {
    for crash in [false, true] {
        let mut lab = lab(903).await;
        assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
        lab.happen(restart(5));
        somebody_switches_on(&lab);
        tokio::time::sleep(s(60)).await;
        if crash {
            lab.crash().await;
        }
        lab.open_again().await;
        tokio::time::sleep(s(100)).await;
        assert_eq!(lab.phase(), "needs_operator", "on, and the BMC says Off");
    }
}

fn with_outlets(seed: u64, releases: &[&[Answer]]) -> Lab {
    let mut setup = Setup::new(NODE, &[&["bmc"], &["pdu-a"]]);
    setup.releases.clear();
    let mut lab = Lab::dark(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "pdu-a");
        world.set_restore(NODE, RestorePolicy::AlwaysOn);
    });
    for (index, answers) in releases.iter().enumerate() {
        let one = Arc::new(Observer::new(&lab.world, lab.clock.clone()));
        *one.answers.lock() = answers.to_vec();
        lab.setup.releases.push((format!("release-{index}"), one));
    }
    lab
}

#[tokio::test(start_paused = true)]
async fn an_outlet_that_comes_back_is_switched_off_again_while_a_person_is_waited_for() {
    let mut lab = with_outlets(904, &[&[Answer::Complete], &[Answer::Refuse]]);
    tokio::time::advance(s(100)).await;
    lab.start().await;
    lab.fault("bmc", Fault::Silent);
    lab.fence().await;
    assert_eq!(lab.phase(), "needs_operator", "the second release was not taken");
    lab.happen(Act::ForeignOutlet { outlet: "pdu-a".to_owned(), verb: Verb::On });
    assert!(lab.is_on());
    tokio::time::sleep(s(60)).await;
    assert!(!lab.is_on(), "it is kept off");
}

#[tokio::test(start_paused = true)]
async fn a_breach_is_found_as_soon_while_a_person_is_waited_for() {
    let mut lab = lab(905).await;
    lab.answers(&[Answer::Refuse]);
    lab.fence().await;
    tokio::time::sleep(s(1_300)).await;
    lab.answers(&[Answer::Complete]);
    somebody_switches_on(&lab);
    let began = Instant::now();
    lab.reach("fencing", s(1_000)).await;
    assert!(began.elapsed() <= s(12), "{:?}", began.elapsed());
}

/// A session that nobody uses ends, and then a restart shows by nothing (S2).
#[tokio::test(start_paused = true)]
async fn the_other_devices_are_watched_while_one_is_switched_off_again() {
    let mut setup = Setup::new(NODE, &[&["bmc"], &["agent"]]);
    setup.adjust = Arc::new(|spec| {
        if spec.id.as_str() == "agent" {
            spec.call = s(60);
        }
    });
    let mut lab = Lab::set_up(909, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "agent");
    })
    .await;
    for device in ["bmc", "agent"] {
        lab.fault(device, Fault::OffIgnored);
    }
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    lab.fault("bmc", Fault::SaysNothing);
    tokio::time::sleep(s(30)).await;
    lab.fault("agent", Fault::Slow(s(50)));
    tokio::time::sleep(s(400)).await;
    let offs = lab.received("agent").offs;
    while lab.received("agent").offs == offs {
        tokio::time::sleep(s(1)).await;
    }
    let read = lab.received("bmc").reads;
    tokio::time::sleep(s(48)).await;
    assert!(lab.received("bmc").reads >= read + 4, "{} of {read}", lab.received("bmc").reads);
}

/// A device that has a minute for its answer keeps nobody from hearing another one's On.
async fn a_breach_is_found_beside_a_slow_device(answer: Answer, phase: &str) {
    for after in [180, 200, 220] {
        let mut setup = Setup::new(NODE, &[&["bmc", "agent"]]);
        setup.adjust = Arc::new(|spec| {
            if spec.id.as_str() == "agent" {
                spec.call = s(60);
            }
        });
        let mut lab = Lab::set_up(908, setup, |world| {
            world.add_machine(NODE).add_host(NODE, "bmc").add_host(NODE, "agent");
        })
        .await;
        lab.answers(std::slice::from_ref(&answer));
        lab.fence().await;
        assert_eq!(lab.phase(), phase);
        lab.fault("agent", Fault::Silent);
        tokio::time::sleep(s(after)).await;
        somebody_switches_on(&lab);
        let (began, breaches) = (Instant::now(), lab.record().breaches);
        while lab.record().breaches == breaches {
            tokio::time::sleep(s(1)).await;
        }
        assert!(began.elapsed() <= s(12), "{after}: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_breach_waits_for_no_slow_device_while_a_person_is_waited_for() {
    a_breach_is_found_beside_a_slow_device(Answer::Refuse, "needs_operator").await;
}

#[tokio::test(start_paused = true)]
async fn nor_does_that_of_a_released_node() {
    a_breach_is_found_beside_a_slow_device(Answer::Complete, "released").await;
}

fn stranger() -> Identity {
    Identity {
        uuid: Identity::usable_uuid("00112233-4455-6677-8899-aabbccddeeff"),
        serial: Some("x".to_owned()),
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_to_a_device_that_says_it_controls_another_machine() {
    for retry in [true, false] {
        let mut lab = lab(906).await;
        given_up(&mut lab).await;
        lab.fault("bmc", Fault::SaysIdentity(stranger()));
        let before = lab.received("bmc").offs;
        if retry {
            lab.engine.retry(&node(), person()).await.expect("it waits for a person");
        }
        tokio::time::sleep(s(3_600)).await;
        assert_eq!(lab.record().phase.label(), "needs_operator");
        assert_eq!(before, lab.received("bmc").offs, "retried: {retry}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_never_shoots_the_machine_that_it_stands_on_whoever_began() {
    for phase in ["fencing", "needs_operator", "released"] {
        let mut lab = lab(907).await;
        if phase == "released" {
            lab.fence().await;
        } else {
            lab.fault("bmc", Fault::OffIgnored);
            lab.open().await;
            lab.reach(phase, s(400)).await;
        }
        lab.kill().await;
        lab.mend("bmc");
        somebody_switches_on(&lab);
        lab.setup.nodes[0].own_host = true;
        lab.start().await;
        tokio::time::sleep(s(600)).await;
        assert!(lab.is_on(), "from {phase}");
        // What sent no off yet is let be: BLOCKED.
        let expected = if phase == "fencing" { "normal" } else { "needs_operator" };
        assert_eq!(lab.phase(), expected, "from {phase}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_key_is_told_fenced_only_with_a_proof() {
    let mut lab = lab(908).await;
    let call = lab.call();
    let id = lab.engine.fence(&node(), call.clone()).await.expect("let in").fence();
    lab.outcome(id, Until::Released).await;
    lab.kill().await;
    somebody_switches_on(&lab);
    lab.fault("bmc", Fault::Silent);
    lab.start().await;
    let admission = lab.engine.fence(&node(), call).await.expect("let in");
    assert_eq!(lab.outcome_within(admission.fence(), Until::Released, s(1)).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_was_begun_before_a_breach_is_not_stood_down() {
    let mut lab = lab(909).await;
    lab.answers(&[Answer::Accept]);
    lab.open().await;
    lab.reach("fenced", s(60)).await;
    tokio::time::sleep(s(20)).await;
    assert_eq!(lab.attempts(), 1);
    lab.fault("bmc", Fault::OffIgnored);
    somebody_switches_on(&lab);
    lab.reach("needs_operator", s(400)).await;
    assert!(lab.engine.stand_down(&node(), person()).await.is_err());
}

/// S5, S8: an off whose end nobody saw stays open where it was to be sent once more, and was not, as the store took too long.
#[tokio::test(start_paused = true)]
async fn an_off_that_was_sent_stays_open_where_its_next_copy_was_not_sent() {
    let mut lab = lab(916).await;
    given_up(&mut lab).await;
    let open = lab.record().ledger.open().to_vec();
    assert!(!open.is_empty(), "nobody saw the end of its off");
    let offs = lab.received("bmc").offs;
    lab.store.linger(s(7));
    lab.store.reads_take(s(7));
    tokio::time::sleep(s(120)).await;
    assert_eq!(lab.received("bmc").offs, offs, "it is too late each time");
    assert!(open.iter().all(|one| lab.record().ledger.get(one.id).is_some()), "{:#?}", lab.record().ledger);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_does_not_begin_again_with_each_start() {
    let mut lab = lab(911).await;
    lab.fault("bmc", Fault::OffIgnored);
    let mut call = lab.call();
    call.deadline = Some(s(100));
    lab.engine.fence(&node(), call).await.expect("let in");
    for _ in 0..4 {
        tokio::time::sleep(s(60)).await;
        lab.crash().await;
    }
    assert_eq!(lab.phase(), "needs_operator");
}

/// The store is away, or the process stands still, for so long that the BMC's session ends, and the BMC restarts meanwhile.
#[tokio::test(start_paused = true)]
async fn a_bmc_that_restarts_while_nobody_asks_it_anything_is_not_believed() {
    for away in [30, 120] {
        let mut lab = lab(912).await;
        let id = lab.open().await;
        lab.store.away(s(away));
        tokio::time::sleep(s(5)).await;
        lab.happen(restart(1));
        let outcome = lab.outcome_within(id, Until::Released, s(400)).await;
        assert!(matches!(outcome, Some(Outcome::NeedsOperator(_))), "away {away} s: {outcome:?}");
    }
    let mut whole = lab(913).await;
    whole.fence().await;
    let points = whole.points.seen.lock().clone();
    // From where the BMC answered first in this fence to where our off was taken.
    let first = points.iter().position(|point| point == "saving hold_intent").expect("a hold is engaged");
    let last = points.iter().position(|point| point == "sent off").expect("an off is sent");
    for (index, point) in points.iter().enumerate().take(last).skip(first) {
        for time in [30, 90] {
            let mut lab = lab(913).await;
            *lab.points.stop_at.lock() = Some((index + 1, s(time)));
            lab.schedule(s(1), restart(1));
            let id = lab.open().await;
            let outcome = lab.outcome_within(id, Until::Released, s(400)).await;
            let safe = matches!(outcome, Some(Outcome::NeedsOperator(_))) || !lab.is_on();
            assert!(safe, "stopped for {time} s at {point}: {outcome:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_drops_questions_which_it_does_not_know_is_switched_off_all_the_same() {
    let mut lab = lab(915).await;
    lab.fault("bmc", Fault::DropsQuestions);
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    let evidence = lab.record().fence.and_then(|fence| fence.evidence).expect("it is proven");
    assert_eq!(evidence.grade, Grade::Claimed, "lowered: its identity is not known");
    assert!(evidence.devices[0].hold.is_empty(), "{evidence:?}");
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(300)).await;
}
