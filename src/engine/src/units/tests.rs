use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};

use super::*;

fn unit(at_once: usize, pause_ms: u64) -> Arc<Unit> {
    Arc::new(Unit::new("pdu1", UnitLimits { at_once, pause: Duration::from_millis(pause_ms) }))
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn node(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}

async fn call(unit: &Arc<Unit>, takes: Duration) {
    let turn = unit.turn(Rank::Fence, s(600)).await.expect("a turn");
    sleep(takes).await;
    unit.took(takes, true);
    drop(turn);
}

#[tokio::test(start_paused = true)]
async fn fences_come_first_and_checks_last_whoever_came_before() {
    let unit = unit(1, 0);
    let first = unit.turn(Rank::Check, s(600)).await.expect("free");
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for rank in [Rank::Check, Rank::Watch, Rank::Ground, Rank::Fence, Rank::Fence] {
        let (unit, order) = (unit.clone(), order.clone());
        tasks.push(tokio::spawn(async move {
            let _turn = unit.turn(rank, s(600)).await.expect("a turn");
            order.lock().push(rank);
        }));
        yield_now().await;
    }
    drop(first);
    for task in tasks {
        task.await.expect("ended");
    }
    let came = order.lock().clone();
    assert_eq!(came, [Rank::Fence, Rank::Fence, Rank::Ground, Rank::Watch, Rank::Check]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_waits_long_enough_comes_before_a_fence_that_came_later() {
    let unit = unit(1, 0);
    let held = unit.turn(Rank::Fence, s(600)).await.expect("free");
    let watch = tokio::spawn({
        let unit = unit.clone();
        async move { unit.turn(Rank::Watch, s(600)).await.map(drop) }
    });
    yield_now().await;
    sleep(ms(10_001)).await;
    let fence = tokio::spawn({
        let unit = unit.clone();
        async move { unit.turn(Rank::Fence, s(600)).await.map(std::mem::forget) }
    });
    yield_now().await;
    drop(held);
    watch.await.expect("ended").expect("it came first");
    fence.await.expect("ended").expect("and then the fence");
}

/// Readings that are three dwells apart prove nothing (S2): a crowd of overdue looks would keep each fence there from its proof.
#[tokio::test(start_paused = true)]
async fn an_urgent_call_follows_each_overdue_one_that_is_not() {
    let unit = unit(1, 0);
    let held = unit.turn(Rank::Fence, s(600)).await.expect("free");
    let came = Arc::new(Mutex::new(Vec::new()));
    let ask = |rank, times| {
        let (unit, came) = (unit.clone(), came.clone());
        tokio::spawn(async move {
            for _ in 0..times {
                let turn = unit.turn(rank, s(600)).await.expect("a turn");
                came.lock().push(rank);
                sleep(s(1)).await;
                drop(turn);
            }
        })
    };
    let looks: Vec<_> = (0..20).map(|_| ask(Rank::Check, 1)).collect();
    sleep(s(100)).await;
    let fence = ask(Rank::Fence, 10);
    yield_now().await;
    drop(held);
    fence.await.expect("ended");
    let came: Vec<bool> = came.lock().iter().map(|rank| *rank == Rank::Fence).collect();
    assert!(came.windows(2).all(|two| two[0] != two[1]), "one after the other: {came:?}");
    for look in looks {
        look.await.expect("it came, too");
    }
}

/// It would take its whole time again, and the readings of that level would be too far apart (S2); but what it keeps off is watched (S11).
#[tokio::test(start_paused = true)]
async fn a_look_at_what_did_not_answer_waits_for_a_minute_while_a_level_is_held() {
    let unit = unit(2, 0);
    let level = unit.clone().level(node("n1"), 1, ms(1_000)).await;
    let look = || {
        let unit = unit.clone();
        tokio::spawn(async move { unit.turn(Rank::Unanswered, s(600)).await.map(drop) })
    };
    let first = look();
    sleep(s(50)).await;
    call(&unit, s(1)).await;
    drop(unit.turn(Rank::Watch, s(600)).await.expect("others go on"));
    yield_now().await;
    assert!(!first.is_finished());
    sleep(s(10)).await;
    call(&unit, s(1)).await;
    first.await.expect("ended").expect("its turn came");
    let second = look();
    sleep(s(10)).await;
    assert!(!second.is_finished());
    drop(level);
    second.await.expect("ended").expect("its turn came with the level's end");
}

#[tokio::test(start_paused = true)]
async fn no_more_than_it_bears_and_not_faster_than_it_wants() {
    let unit = unit(2, 100);
    let began = Instant::now();
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let unit = unit.clone();
            tokio::spawn(async move { call(&unit, ms(10)).await })
        })
        .collect();
    for call in calls {
        call.await.expect("ended");
    }
    assert_eq!(began.elapsed(), ms(410), "each begins 100 ms after the one before");
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_while_it_waits_or_works_keeps_nobody_waiting() {
    let unit = unit(1, 0);
    let held = unit.turn(Rank::Watch, s(600)).await.expect("free");
    assert!(timeout(ms(10), unit.turn(Rank::Watch, s(600))).await.is_err());
    let waits = tokio::spawn({
        let unit = unit.clone();
        async move { unit.turn(Rank::Check, s(600)).await.map(drop) }
    });
    yield_now().await;
    drop(held);
    waits.await.expect("ended").expect("its turn came");
    call(&unit, ms(2_000)).await;
    let level = unit.clone().level(node("n1"), 1, ms(1_000)).await;
    assert!(timeout(ms(10), unit.clone().level(node("n2"), 1, ms(1_000))).await.is_err());
    assert_eq!(unit.busy_with(), [node("n1")]);
    drop(level);
    drop(unit.clone().level(node("n3"), 1, ms(1_000)).await);
    assert!(unit.busy_with().is_empty());
}

#[tokio::test(start_paused = true)]
async fn as_many_levels_go_on_as_the_unit_can_answer_within_a_dwell() {
    for (takes, most) in [(ms(120), 4), (ms(240), 2), (ms(900), 1), (ms(5_000), 1)] {
        let unit = unit(1, 0);
        let dwell = ms(1_000);
        let first = unit.clone().level(node("n0"), 1, dwell).await;
        assert!(
            timeout(ms(1), unit.clone().level(node("n1"), 1, dwell)).await.is_err(),
            "nothing is known yet"
        );
        call(&unit, takes).await;
        let mut held = vec![first];
        while let Ok(turn) = timeout(ms(1), unit.clone().level(node("n1"), 1, dwell)).await {
            held.push(turn);
        }
        assert_eq!(held.len(), most, "{takes:?}");
        assert_eq!(unit.least_dwell(2), takes * 3, "offs and readings of two come round within three of it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reading_that_was_not_answered_makes_no_dwell_longer() {
    let unit = unit(1, 0);
    call(&unit, ms(200)).await;
    unit.took(s(60), false);
    assert_eq!((unit.least_dwell(1), unit.round(1)), (ms(300), ms(200)));
    sleep(s(1)).await;
    assert_eq!(unit.silent_for(), s(1), "it is silent all the same");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_never_comes_is_told() {
    let unit = unit(1, 0);
    let _held = unit.turn(Rank::Fence, s(600)).await.expect("free");
    let error = unit.turn(Rank::Fence, s(600)).await.expect_err("it is given up");
    assert!(error.kind == ErrorKind::NoTurn && error.effect == Effect::DidNotHappen, "{error}");
    assert!(error.detail.contains("pdu1"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn whoever_has_a_turn_and_is_not_worked_loses_it() {
    let unit = unit(1, 0);
    let asleep = unit.turn(Rank::Fence, s(5)).await.expect("free");
    let began = Instant::now();
    let next = unit.turn(Rank::Fence, s(5)).await.expect("it comes");
    assert_eq!(began.elapsed(), s(7), "a little after the call must be over");
    drop(asleep);
    assert!(timeout(ms(10), unit.turn(Rank::Fence, s(5))).await.is_err(), "its end ends nobody else's turn");
    drop(next);
    unit.turn(Rank::Fence, s(5)).await.expect("free");
}

#[test]
fn of_many_nodes_the_first_are_named() {
    let nodes: Vec<NodeId> = (1..=10).map(|index| node(&format!("n{index}"))).collect();
    assert_eq!(named(&nodes[..2]), "n1, n2");
    assert_eq!(named(&nodes), "n1, n2, n3, n4, n5, n6, n7, n8 and 2 more");
}

#[tokio::test(start_paused = true)]
async fn the_dead_do_not_slow_the_programs_of_the_living() {
    let programs = Arc::new(Unit::of_programs(8));
    let mut levels = Vec::new();
    let mut fill = async |programs: &Arc<Unit>| {
        while let Ok(level) = timeout(ms(1), programs.clone().level(node("n1"), 1, s(1))).await {
            levels.push(level);
        }
        levels.len()
    };
    assert_eq!(fill(&programs).await, 4, "before any has run each is reckoned to take a second");
    for takes in [s(60), ms(250), ms(250), s(20), ms(250)] {
        programs.took(takes, true);
    }
    assert_eq!(fill(&programs).await, 16, "as fast as most of them were");
}

#[tokio::test(start_paused = true)]
async fn more_programs_run_side_by_side_once_the_settings_say_so() {
    let programs = Arc::new(Unit::of_programs(1));
    let first = programs.turn(Rank::Watch, s(600)).await.expect("free");
    let waits = tokio::spawn({
        let programs = programs.clone();
        async move { programs.turn(Rank::Watch, s(600)).await }
    });
    yield_now().await;
    assert!(!waits.is_finished());
    programs.change_programs(2);
    let second = waits.await.expect("ended").expect("there is room");
    programs.change_programs(1);
    drop(second);
    assert!(timeout(ms(1), programs.turn(Rank::Fence, s(600))).await.is_err(), "the first is still there");
    drop(first);
    drop(programs.turn(Rank::Fence, s(600)).await.expect("it is over"));
}

#[tokio::test(start_paused = true)]
async fn checks_have_half_of_the_places_however_many_wait() {
    let unit = unit(4, 0);
    let mut checks = Vec::new();
    while let Ok(turn) = timeout(ms(1), unit.turn(Rank::Check, s(600))).await {
        checks.push(turn);
    }
    assert_eq!(checks.len(), 2);
    let waits = tokio::spawn({
        let unit = unit.clone();
        async move { unit.turn(Rank::Check, s(600)).await.map(drop) }
    });
    sleep(s(120)).await;
    let fences = [unit.turn(Rank::Fence, s(600)).await, unit.turn(Rank::Fence, s(600)).await];
    assert!(fences.iter().all(Result::is_ok) && !waits.is_finished(), "also after those that are overdue");
    drop(fences);
    drop(checks.pop());
    waits.await.expect("ended").expect("its turn came");
}

#[tokio::test(start_paused = true)]
async fn a_slow_unit_with_places_for_all_of_them_bears_half_as_many_levels() {
    let unit = unit(8, 0);
    call(&unit, ms(30_000)).await;
    let mut held = Vec::new();
    while let Ok(turn) = timeout(ms(1), unit.clone().level(node("n1"), 1, ms(1_000))).await {
        held.push(turn);
    }
    assert_eq!(held.len(), 4);
}

/// Each of its answers is of another machine.
#[tokio::test(start_paused = true)]
async fn one_slow_answer_of_a_cloud_holds_nobody() {
    let limits = UnitLimits { at_once: 8, pause: Duration::ZERO };
    for (unit, most) in [(Unit::of_cloud("nova", limits), 16), (Unit::new("pdu1", limits), 4)] {
        let unit = Arc::new(unit);
        for takes in [ms(250), s(20), ms(250), ms(250)] {
            unit.took(takes, true);
        }
        let mut levels = Vec::new();
        while let Ok(level) = timeout(ms(1), unit.clone().level(node("n1"), 1, s(1))).await {
            levels.push(level);
        }
        assert_eq!(levels.len(), most, "{}", unit.name());
    }
}
