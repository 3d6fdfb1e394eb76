//! What devices refuse, and what they were never asked.

use std::sync::Arc;
use std::time::Duration;

use picket_core::ids::NodeId;
use picket_core::outcome::{Outcome, Reason};
use picket_driver_sim::{Act, Fault, Verb};
use picket_engine::{EngineError, Readiness, Unit, UnitLimits, readiness};
use tokio::time::Instant;

use crate::lab::{Lab, NODE, lab, node, person, s};
use crate::setup::{NodeSetup, Setup, named};

/// A board that knows no word for "it is off already".
#[tokio::test(start_paused = true)]
async fn an_off_machine_whose_board_refuses_the_repeat_is_proven_off() {
    let mut lab = Lab::with(1601, &[&["bmc"]], |world| {
        // Without epochs the off is sent again at the end of the long window.
        world.add_machine(NODE).add_host(NODE, "bmc").set_sessionless("bmc");
    })
    .await;
    lab.fault("bmc", Fault::AlreadyIsRefused);
    let began = Instant::now();
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    assert!(began.elapsed() < s(25), "{:?}", began.elapsed());
    assert_eq!(lab.received("bmc").offs, 2);
}

/// It takes no off of ours: that it reads Off is somebody else's doing, who may switch it on again.
#[tokio::test(start_paused = true)]
async fn an_off_machine_whose_board_never_took_an_off_is_not_proven_off() {
    let mut lab = lab(1602).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    lab.fault("bmc", Fault::AlreadyIsRefused);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    assert_eq!(lab.attempts(), 0);
}

/// What each of its two levels came to: when the second one began.
async fn second_level_after(lab: &mut Lab) -> Duration {
    let began = Instant::now();
    lab.open().await;
    while lab.record().fence.is_some_and(|fence| fence.level == 0) {
        assert_eq!(lab.phase(), "fencing");
        tokio::time::sleep(s(1) / 10).await;
    }
    began.elapsed()
}

async fn with_outlets(seed: u64) -> Lab {
    Lab::with(seed, &[&["bmc"], &["pdu-a", "pdu-b"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_supply(NODE, "pdu-a").add_supply(NODE, "pdu-b");
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_no_wait_changes_goes_on_to_the_next_level_at_once() {
    let mut lab = with_outlets(1603).await;
    lab.fault("bmc", Fault::OffForbidden);
    let time = second_level_after(&mut lab).await;
    assert!(time < s(5), "{time:?}");
    let moments = lab.record().fence.expect("open").moments;
    let why = "does not permit this to the account";
    assert!(moments.iter().any(|moment| moment.what.contains(why)), "{moments:?}");
    lab.reach("released", s(120)).await;
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_a_reason_has_the_level_s_share() {
    let mut lab = with_outlets(1604).await;
    lab.fault("bmc", Fault::OffRefused);
    let time = second_level_after(&mut lab).await;
    assert!(time >= s(180), "{time:?}");
    lab.reach("released", s(120)).await;
}

/// A person may give the account its right meanwhile.
#[tokio::test(start_paused = true)]
async fn where_no_level_is_left_a_refused_off_is_tried_for_the_whole_share() {
    let mut lab = lab(1605).await;
    lab.fault("bmc", Fault::OffForbidden);
    lab.schedule(s(60), Act::Mend { device: "bmc".to_owned() });
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
}

/// Each off was refused, and none happened: the fence has sent nothing, and none is sent once its deadline is over.
#[tokio::test(start_paused = true)]
async fn an_off_that_was_refused_until_the_deadline_is_not_sent_days_later() {
    let mut lab = lab(1612).await;
    lab.fault("bmc", Fault::OffForbidden);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    assert!(!lab.record().fence.expect("kept").off_sent, "none of them happened");
    tokio::time::sleep(s(3 * 86_400)).await;
    lab.mend("bmc");
    let offs = lab.received("bmc").offs;
    tokio::time::sleep(s(3_600)).await;
    assert_eq!((lab.is_on(), lab.phase(), lab.received("bmc").offs), (true, "needs_operator", offs));
    lab.engine.retry(&node(), person()).await.expect("a person wants it still");
    lab.reach("released", s(120)).await;
}

/// Two nodes whose BMCs share one chassis, which answers one at a time; a call to the other one's may take minutes.
async fn chassis(seed: u64) -> (Lab, NodeId) {
    let limits = UnitLimits { at_once: 1, pause: Duration::ZERO };
    let unit = Arc::new(Unit::new("chassis", limits));
    let mut setup = Setup::new(NODE, &[&["bmc"]]);
    setup.nodes.push(NodeSetup {
        name: "other".to_owned(),
        levels: named(&[&["other-bmc"]]),
        own_host: false,
    });
    setup.shared = Some(unit);
    setup.adjust = Arc::new(|spec| {
        if spec.id.as_str() == "other-bmc" {
            spec.call = s(400);
        }
    });
    let lab = Lab::set_up(seed, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").add_machine("other").add_host("other", "other-bmc");
    })
    .await;
    (lab, NodeId::new("other").expect("a good name"))
}

/// Another node's device keeps what the two share, for longer than a turn is waited for (S4, S12).
#[tokio::test(start_paused = true)]
async fn nobody_vouches_against_a_device_that_was_never_asked() {
    let (mut lab, other) = chassis(1606).await;
    lab.fault("bmc", Fault::OffIgnored);
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    // It is on, and would say so.
    lab.fault("other-bmc", Fault::Slow(s(390)));
    let engine = lab.engine.clone();
    let busy = tokio::spawn(async move { engine.check(&other).await.map(drop) });
    tokio::time::sleep(s(20)).await;
    let refused = lab.engine.attest(&node(), person()).await;
    assert!(
        matches!(&refused, Err(EngineError::Refused(why)) if why.to_string().contains("was not asked")),
        "{refused:?}"
    );
    busy.abort();
}

/// What it shares is kept busy after the word, and somebody switches the machine on: the first attempt waits until it was asked.
#[tokio::test(start_paused = true)]
async fn nothing_is_let_go_on_a_word_while_a_device_is_not_asked() {
    let (mut lab, other) = chassis(1607).await;
    *lab.observer.settle.lock() = s(60);
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::Off });
    lab.fault("bmc", Fault::Silent);
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    lab.engine.attest(&node(), person()).await.expect("it is silent");
    tokio::time::sleep(s(20)).await;
    lab.mend("bmc");
    lab.fault("other-bmc", Fault::Slow(s(390)));
    let engine = lab.engine.clone();
    let busy = tokio::spawn(async move { engine.check(&other).await.map(drop) });
    tokio::time::sleep(s(10)).await;
    lab.happen(Act::Foreign { machine: NODE.to_owned(), verb: Verb::On });
    tokio::time::sleep(s(365)).await;
    assert_eq!(lab.attempts(), 0, "nobody asked it meanwhile");
    busy.abort();
}

/// Each request takes 3.5 s: our repeated off within the long window is no gap in it. What a release needs it cannot give, and its check says so.
#[tokio::test(start_paused = true)]
async fn a_board_that_takes_long_for_each_answer_is_proven_off_and_its_check_says_what_that_costs() {
    let setup = Setup { adjust: Arc::new(|spec| spec.call = s(10)), ..Setup::new(NODE, &[&["bmc"]]) };
    let mut lab = Lab::set_up(1610, setup, |world| {
        world.add_machine(NODE).add_host(NODE, "bmc").set_sessionless("bmc");
    })
    .await;
    lab.fault("bmc", Fault::Slow(Duration::from_millis(3_500)));
    lab.engine.check(&node()).await.expect("checked");
    let view = lab.view();
    let obstacles =
        &view.live.devices.values().next().expect("one").checked.as_ref().expect("checked").obstacles;
    assert!(obstacles.iter().any(|one| one.contains("3.5 s")), "{obstacles:?}");
    let began = Instant::now();
    lab.open().await;
    lab.reach("fenced", s(145)).await;
    assert!(began.elapsed() < s(55), "{:?}", began.elapsed());
}

/// The off alone is answered after 3.5 s: the one at the end of the long window is no gap in it.
#[tokio::test(start_paused = true)]
async fn a_board_that_takes_long_for_an_off_alone_is_proven_off_within_25_seconds() {
    for has_sessions in [false, true] {
        let mut lab = Lab::with(1613, &[&["bmc"]], |world| {
            world.add_machine(NODE).add_host(NODE, "bmc");
            if !has_sessions {
                world.set_sessionless("bmc");
            }
        })
        .await;
        lab.fault("bmc", Fault::LateOff(Duration::from_millis(3_500)));
        let began = Instant::now();
        lab.open().await;
        lab.reach("released", s(60)).await;
        assert!(began.elapsed() < s(25), "{:?}", began.elapsed());
    }
}

/// A call is shorter than its answers: the last line names the setting, and how long an answer took.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_too_short_is_named_with_what_was_measured() {
    let mut lab = lab(1614).await;
    lab.fault("bmc", Fault::Slow(Duration::from_millis(2_200)));
    lab.engine.check(&node()).await.expect("checked");
    lab.mend("bmc");
    lab.fault("bmc", Fault::Slow(s(6)));
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    let asks = lab.record().fence.expect("kept").moments.pop().expect("told").what;
    let measured = "it has 5s for a call, `call` in its settings, and its last reading took 2.2 s";
    assert!(asks.contains(measured), "{asks}");
}

/// It takes each on, and stays off: the last line says how often it was told.
#[tokio::test(start_paused = true)]
async fn an_on_that_comes_to_nothing_is_told_with_how_often_it_was_sent() {
    let mut lab = lab(1615).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.fault("bmc", Fault::OnDropped { times: 1_000 });
    lab.unfence().await.expect("unfenced");
    lab.reach("power_on_failed", s(900)).await;
    let told = format!("{:?}", lab.record());
    assert!(told.contains("not seen on within") && told.contains(" times: bmc off"), "{told}");
}

/// It refuses each on, as a cloud without room for the instance does: the last line says why.
#[tokio::test(start_paused = true)]
async fn an_on_that_is_refused_is_told_with_the_device_s_own_words() {
    let mut lab = lab(1621).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
    lab.fault("bmc", Fault::OnRefused);
    lab.unfence().await.expect("unfenced");
    lab.reach("power_on_failed", s(900)).await;
    let asks = lab.record().fence.expect("kept").moments.pop().expect("told").what;
    assert!(asks.contains("not seen on within") && asks.contains(", the on: bmc: refused"), "{asks}");
}

/// Its power cannot be read: an unknown word, a status of two bytes. It is not ready, and a fence by it ends with its own words.
#[tokio::test(start_paused = true)]
async fn a_board_whose_power_cannot_be_read_is_not_ready_and_the_last_line_says_so() {
    let mut lab = Lab::with(1611, &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await;
    lab.fault("bmc", Fault::SaysNothing);
    lab.engine.check(&node()).await.expect("checked");
    let view = lab.view();
    let live = view.live.devices.values().next().expect("one");
    let spec = view.plan.topology.devices().next().expect("one");
    assert_eq!(readiness(spec, live, &view.stored.record.phase), Readiness::NotReady);
    let obstacles = &live.checked.as_ref().expect("checked").obstacles;
    assert!(obstacles.iter().any(|one| one.contains("neither on nor off")), "{obstacles:?}");
    assert_eq!(lab.fence().await, Outcome::NeedsOperator(Reason::LevelsSpent));
    let asks = lab.record().fence.expect("kept").moments.pop().expect("told").what;
    assert!(asks.contains("not off within 3m: bmc unknown (") && asks.contains("asked "), "{asks}");
    assert!(asks.contains("of its deadline were left"), "{asks}");
}
