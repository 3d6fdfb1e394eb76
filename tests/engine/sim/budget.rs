//! The budget in the engine: places are taken atomically, also over deaths; what bars says so; what is exempt is not barred.

use std::time::Duration;

use futures::future::join_all;
use picket_core::budget::pause::PauseScope;
use picket_core::budget::{Budget, LimitKind, Limits};
use picket_core::ids::NodeId;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Phase;
use picket_core::store::Store;
use picket_driver_sim::Fault;
use picket_engine::{Admission, EngineError, LetIn, Until, WaitState};

use crate::lab::{Lab, budget_aside, node, person, s};
use crate::setup::{NodeSetup, Setup, named};

pub fn name(index: usize) -> NodeId {
    NodeId::new(&format!("n{index}")).expect("a good name")
}

/// A fleet of so many nodes, `n1` the first, with a budget.
pub fn setup(nodes: usize, budget: Budget) -> Setup {
    let mut setup = Setup { budget, ..Setup::new("n1", &[&["bmc1"]]) };
    setup.nodes.extend((2..=nodes).map(|index| NodeSetup {
        name: name(index).to_string(),
        levels: named(&[&[format!("bmc{index}").as_str()]]),
        own_host: false,
    }));
    setup
}

pub async fn fleet(seed: u64, nodes: usize, budget: Budget) -> Lab {
    Lab::set_up(seed, setup(nodes, budget), |world| {
        for index in 1..=nodes {
            world.add_machine(name(index).as_str()).add_host(name(index).as_str(), &format!("bmc{index}"));
        }
    })
    .await
}

/// At once so many, and nothing else.
pub fn at_once(most: u32) -> Budget {
    let fleet = Limits { at_once: Some(most), min_not_fenced: Some(0), ..Limits::default() };
    Budget { fleet, ..Budget::unlimited() }
}

/// How many fences are open in the store.
pub async fn open(lab: &Lab) -> usize {
    let all = lab.store.load_all().await.expect("a store");
    all.iter().filter(|one| matches!(one.record.phase, Phase::Fencing | Phase::Fenced)).count()
}

#[tokio::test(start_paused = true)]
async fn of_fifty_requests_at_once_three_begin() {
    let mut lab = fleet(310, 50, at_once(3)).await;
    let calls: Vec<_> = (1..=50).map(|index| (name(index), lab.call())).collect();
    let answers = join_all(calls.iter().map(|(node, call)| lab.engine.fence(node, call.clone()))).await;
    let begun = answers.iter().filter(|answer| matches!(answer, Ok(Admission::Opened(_)))).count();
    assert_eq!((begun, open(&lab).await), (3, 3));
    for refused in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        let EngineError::Barred(bar) = refused else { panic!("{refused:?}") };
        assert_eq!((bar.kind, bar.reason()), (LimitKind::AtOnce, Reason::Budget));
        assert!(bar.text.contains("the fleet may have 3 of its 50 nodes"), "{}", bar.text);
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_that_wait_go_three_by_three_in_their_order_also_over_deaths() {
    let mut lab = fleet(311, 50, at_once(3)).await;
    for index in 1..=50 {
        let call = lab.call();
        lab.engine.fence_or_wait(&name(index), call, None).await.expect("let in");
    }
    let mut most = 0;
    for round in 0..600 {
        most = most.max(open(&lab).await);
        assert!(most <= 3, "{most} at once");
        if round % 40 == 17 {
            lab.crash().await;
            assert!(open(&lab).await <= 3);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let all = lab.store.load_all().await.expect("a store");
    let done = all.iter().filter(|one| one.record.phase == Phase::Released).count();
    assert_eq!((done, most), (50, 3));
    assert_eq!(lab.store.notes("queue/").await.expect("a store"), []);
    let mut opened: Vec<_> = all.iter().filter_map(|one| one.record.fence.as_ref()).collect();
    opened.sort_by_key(|fence| (fence.opened_at, fence.id));
    // Those of one moment have no order among themselves.
    let order: Vec<usize> =
        opened.iter().map(|fence| fence.node.as_str()[1..].parse().expect("a number")).collect();
    assert!(order.iter().enumerate().all(|(at, node)| node.abs_diff(at + 1) <= 3), "{order:?}");
}

#[tokio::test(start_paused = true)]
async fn a_limit_is_set_aside_by_name_and_that_stands_in_the_fence() {
    let mut lab = fleet(312, 3, at_once(1)).await;
    lab.open().await;
    let mut call = lab.call();
    call.set_aside = Some(budget_aside("both are on fire"));
    let Ok(Admission::Opened(second)) = lab.engine.fence(&name(2), call).await else { panic!("not let in") };
    let fence = lab.engine.get_fence(second).await.expect("a store").expect("kept");
    assert_eq!(fence.budget_override.as_ref().map(|aside| aside.by.as_str()), Some("ada"));
    let told = |fence: &picket_core::record::Fence, words: &str| {
        fence.moments.iter().any(|one| one.what.contains(words))
    };
    assert!(told(&fence, "set aside by ada: both are on fire (the fleet may have 1"), "{:?}", fence.moments);
    // Over a death the override still holds, and the other node is barred by both.
    lab.crash().await;
    let call = lab.call();
    assert!(
        matches!(lab.engine.fence(&name(3), call).await, Err(EngineError::Barred(bar)) if bar.found == 2)
    );
    tokio::time::sleep(s(120)).await;
    assert_eq!(open(&lab).await, 0);
    let mut call = lab.call();
    call.set_aside = Some(budget_aside("to be sure"));
    let third = lab.engine.fence(&name(3), call).await.expect("let in").fence();
    let fence = lab.engine.get_fence(third).await.expect("a store").expect("kept");
    assert!(told(&fence, "no limit would have barred it"), "{:?}", fence.moments);
}

#[tokio::test(start_paused = true)]
async fn the_books_are_counted_from_the_store_after_a_death() {
    let fleet_limits = Limits {
        at_once: Some(9),
        per_window: Some((2, s(3_600))),
        min_not_fenced: None,
        ..Limits::default()
    };
    let budget = Budget { fleet: fleet_limits, cool_down: s(600), ..Budget::unlimited() };
    let mut lab = fleet(313, 4, budget).await;
    lab.fence().await;
    lab.unfence().await.expect("unfenced");
    lab.reach("normal", s(60)).await;
    lab.crash().await;
    let call = lab.call();
    match lab.engine.fence(&node(), call).await {
        Err(EngineError::Barred(bar)) => {
            assert_eq!((bar.kind, bar.reason()), (LimitKind::CoolDown, Reason::CoolDown));
            assert!(bar.retry_after.is_some_and(|time| time > s(590) && time <= s(600)), "{bar:?}");
        }
        other => panic!("{other:?}"),
    }
    let call = lab.call();
    lab.engine.fence(&name(2), call).await.expect("let in");
    lab.crash().await;
    let call = lab.call();
    match lab.engine.fence(&name(3), call).await {
        Err(EngineError::Barred(bar)) => assert_eq!((bar.kind, bar.found), (LimitKind::PerWindow, 2)),
        other => panic!("{other:?}"),
    }
}

/// S14: a caller who asks for one after the other, and waits as he is told, does not have the whole fleet; nor does he after a takeover.
#[tokio::test(start_paused = true)]
async fn whoever_does_as_he_is_told_has_less_than_half_of_the_fleet() {
    let mut lab = fleet(2501, 6, Budget::default()).await;
    for round in 0..40 {
        for index in 1..=6 {
            let call = lab.call();
            match lab.engine.fence(&name(index), call).await {
                Ok(_) => tokio::time::sleep(s(60)).await,
                Err(EngineError::Barred(bar)) => tokio::time::sleep(bar.retry_after.unwrap_or(s(60))).await,
                Err(error) => panic!("{error:?}"),
            }
        }
        if round == 20 {
            lab.crash().await;
        }
    }
    let fenced =
        (1..=6).filter(|index| crate::families::phase(&lab, name(*index).as_str()) != "normal").count();
    assert_eq!(fenced, 2, "with the third that he wants off it is he who is suspect");
    let call = lab.call();
    let barred = lab.engine.fence(&name(3), call).await;
    assert!(matches!(&barred, Err(EngineError::Barred(bar)) if bar.reason() == Reason::Brake), "{barred:?}");
}

#[tokio::test(start_paused = true)]
async fn joins_and_a_breach_are_exempt() {
    let mut lab = fleet(314, 4, Budget::default()).await;
    lab.fence().await;
    let call = lab.call();
    lab.engine.fence(&name(2), call).await.expect("the first is released, and its place is free");
    for index in [1, 2] {
        let call = lab.call();
        lab.engine.fence(&name(index), call).await.expect("who joins is not barred");
    }
    lab.world.lock().happen(
        picket_core::time::Clock::boot(&*lab.clock),
        picket_driver_sim::Act::Foreign { machine: "n1".to_owned(), verb: picket_driver_sim::Verb::On },
    );
    lab.reach("fencing", s(30)).await;
    assert_eq!(lab.record().breaches, 1, "found on, and fenced again at once");
    assert_eq!(lab.engine.office_numbers().open, 2, "what is exempt counts for others");
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_asks_no_more_than_the_budget_of_a_fleet_is_the_default() {
    let mut lab = fleet(315, 12, Budget { brake_least: 100, ..Budget::default() }).await;
    lab.open().await;
    let call = lab.call();
    let barred = lab.engine.fence(&name(2), call).await;
    assert!(matches!(barred, Err(EngineError::Barred(bar)) if (bar.allowed, bar.found) == (1, 1)));
    let call = lab.call();
    let waits = match lab.engine.fence_or_wait(&name(2), call, None).await.expect("let in") {
        LetIn::Waits(waits) => waits,
        LetIn::In(admission) => panic!("{admission:?}"),
    };
    assert!(matches!(&*waits.state.borrow(), WaitState::Barred(_)));
    lab.reach("released", s(60)).await;
    tokio::time::sleep(s(30)).await;
    let state = waits.state.borrow().clone();
    let WaitState::Over(end) = state else { panic!("{state:?}") };
    let id = end.expect("let in").fence();
    let fence = lab.engine.get_fence(id).await.expect("a store").expect("kept");
    assert_eq!(fence.outcome, Some(Outcome::Fenced { released: true }));
}

/// Until the hold of `n1` was sent, and no off.
pub async fn is_held(lab: &Lab) {
    while lab.received("bmc1").holds == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!((lab.phase(), lab.record().fence.expect("open").off_sent), ("fencing", false));
}

/// No off was sent to `n1`, and its hold is undone.
pub async fn is_let_be(lab: &Lab) {
    lab.reach("normal", s(120)).await;
    assert_eq!((lab.is_on(), lab.falls(), lab.received("bmc1").offs), (true, 0, 0));
    assert!(!lab.world.lock().hold("n1").button_locked);
}

/// S15: settings that became tighter after the intent bar the first off.
#[tokio::test(start_paused = true)]
async fn a_limit_that_comes_before_the_first_off_lets_none_go() {
    let mut lab = fleet(318, 3, at_once(9)).await;
    lab.fault("bmc1", Fault::Slow(s(2)));
    let id = lab.open().await;
    is_held(&lab).await;
    lab.setup.budget.fleet.min_not_fenced = Some(3);
    lab.reload().await.expect("changed");
    lab.mend("bmc1");
    assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Blocked(Reason::Budget));
    is_let_be(&lab).await;
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_ended_before_its_off_takes_no_place_in_the_window_also_after_a_death() {
    for (seed, dies) in [(316, false), (317, true)] {
        let limits = Limits { at_once: Some(9), per_window: Some((1, s(3_600))), ..Limits::default() };
        let mut lab = fleet(seed, 3, Budget { fleet: limits, ..Budget::unlimited() }).await;
        lab.fault("bmc1", Fault::Slow(s(2)));
        let call = lab.call();
        let id = lab.engine.fence(&node(), call).await.expect("let in").fence();
        lab.engine.pause(PauseScope::Node(node()), person(), s(60)).await.expect("paused");
        assert_eq!(lab.outcome(id, Until::Released).await, Outcome::Blocked(Reason::Paused));
        lab.reach("normal", s(60)).await;
        assert_eq!((lab.falls(), lab.received("bmc1").offs), (0, 0));
        if dies {
            lab.crash().await;
        }
        let call = lab.call();
        lab.engine.fence(&name(2), call).await.expect("nothing was switched off");
        let call = lab.call();
        match lab.engine.fence(&name(3), call).await {
            Err(EngineError::Barred(bar)) => assert_eq!((bar.kind, bar.found), (LimitKind::PerWindow, 1)),
            other => panic!("{other:?}"),
        }
    }
}

/// What is not reached takes no place from others, and goes behind them once it is.
#[tokio::test(start_paused = true)]
async fn a_node_of_which_nothing_answers_keeps_nobody_from_being_fenced() {
    let mut lab = fleet(341, 3, at_once(1)).await;
    lab.fault("bmc1", Fault::Silent);
    let first = lab.open().await;
    let call = lab.call();
    assert!(matches!(lab.engine.fence(&name(2), call).await, Err(EngineError::Barred(_))), "its first round");
    tokio::time::sleep(s(25)).await;
    lab.fault("bmc2", Fault::OffTakes { least: s(60), most: s(60) });
    let call = lab.call();
    assert!(matches!(lab.engine.fence(&name(2), call).await, Ok(Admission::Opened(_))));
    lab.mend("bmc1");
    let outcome = lab.outcome_within(first, Until::Released, s(30)).await;
    assert_eq!(outcome, Some(Outcome::Blocked(Reason::Budget)));
    assert_eq!(lab.received("bmc1").offs, 0);
    lab.reach_of(&name(2), "released", s(120)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
}

/// The next gateway does not know who gave a place away: what no limit holds back has it.
#[tokio::test(start_paused = true)]
async fn after_a_death_it_goes_behind_what_was_set_aside_meanwhile() {
    let mut lab = fleet(342, 3, at_once(1)).await;
    lab.fault("bmc1", Fault::Silent);
    let first = lab.open().await;
    tokio::time::sleep(s(25)).await;
    lab.fault("bmc2", Fault::OffTakes { least: s(60), most: s(60) });
    let mut call = lab.call();
    call.set_aside = Some(budget_aside("it burns"));
    assert!(matches!(lab.engine.fence(&name(2), call).await, Ok(Admission::Opened(_))));
    lab.mend("bmc1");
    lab.crash().await;
    let outcome = lab.outcome_within(first, Until::Released, s(30)).await;
    assert_eq!((outcome, lab.received("bmc1").offs), (Some(Outcome::Blocked(Reason::Budget)), 0));
    lab.reach_of(&name(2), "released", s(120)).await;
    assert_eq!(lab.fence().await, Outcome::Fenced { released: true });
}

/// S14, S16: a limit that keeps a new round from its off is set aside by whoever joins the fence, and nothing else lets it go.
#[tokio::test(start_paused = true)]
async fn a_limit_is_set_aside_for_a_fence_that_waits_behind_it() {
    let mut lab = fleet(319, 3, at_once(9)).await;
    lab.fault("bmc1", Fault::Silent);
    assert!(matches!(lab.fence().await, Outcome::NeedsOperator(_)));
    lab.mend("bmc1");
    lab.setup.budget.fleet.min_not_fenced = Some(3);
    lab.reload().await.expect("changed");
    lab.engine.retry(&node(), person()).await.expect("taken");
    tokio::time::sleep(s(60)).await;
    assert_eq!((lab.phase(), lab.received("bmc1").offs), ("fencing", 0));
    let mut call = lab.call();
    call.set_aside = Some(budget_aside("it is dead, I stand before it"));
    lab.engine.fence(&node(), call).await.expect("joined");
    lab.reach("released", s(60)).await;
    let fence = lab.record().fence.expect("open");
    assert_eq!(fence.budget_override.map(|aside| aside.by).as_deref(), Some("ada"));
    let told = "the budget was set aside by ada: it is dead, I stand before it (the fleet must keep 3";
    assert!(fence.moments.iter().any(|one| one.what.starts_with(told)), "{:?}", fence.moments);
}
