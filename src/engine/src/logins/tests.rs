//! Logins, in paused time.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::join_all;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::*;

const MS: Duration = Duration::from_millis(1);
/// What a living device takes for a login, and how long the dead are asked.
const ALIVE: Duration = Duration::from_millis(50);
const CALL: Duration = Duration::from_secs(5);

/// One login, and when it was done since `began`.
async fn login(logins: Logins, rank: Rank, takes: Duration, began: Instant) -> Duration {
    let turn = logins.take(rank).await;
    turn.within(sleep(takes)).await;
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn no_more_than_so_many_at_once_and_all_come_through() {
    let (logins, began) = (Logins::new(4), Instant::now());
    let done = join_all((0..10).map(|_| login(logins.clone(), Rank::Fence, ALIVE, began))).await;
    let expected: Vec<Duration> = [1, 1, 1, 1, 2, 2, 2, 2, 3, 3].into_iter().map(|n| ALIVE * n).collect();
    assert_eq!(done, expected);
    assert_eq!(logins.0.lock().out, 0);
}

#[tokio::test(start_paused = true)]
async fn the_dead_do_not_keep_the_living_waiting() {
    // Of a thousand fences on eight turns ten are of dead devices, which come first and take all of their calls.
    let (logins, began) = (Logins::new(8), Instant::now());
    let of = async |dead: usize| {
        let took = |index| if index < dead { CALL } else { ALIVE };
        let mut done =
            join_all((0..1_000).map(|index| login(logins.clone(), Rank::Fence, took(index), began))).await;
        done.drain(..dead).for_each(|dead| assert!(dead >= CALL));
        done.sort();
        done
    };
    let with = of(10).await;
    let began = Instant::now();
    let took = |_| login(logins.clone(), Rank::Fence, ALIVE, began);
    let mut without = join_all((0..990).map(took)).await;
    without.sort();
    let p99 = |done: &[Duration]| done[done.len() * 99 / 100];
    assert!(p99(&with) <= p99(&without) * 6 / 5, "{:?} and {:?}", p99(&with), p99(&without));
    assert!(with[989] <= without[989] + PATIENCE * 2, "{:?} and {:?}", with[989], without[989]);
}

#[tokio::test(start_paused = true)]
async fn where_all_are_slow_so_many_a_second_begin_still() {
    let (logins, began) = (Logins::new(8), Instant::now());
    let done = join_all((0..80).map(|_| login(logins.clone(), Rank::Fence, CALL, began))).await;
    let last = done.into_iter().max().expect("some were done");
    assert_eq!(last, PATIENCE * 9 + CALL);
}

#[tokio::test(start_paused = true)]
async fn a_fence_passes_all_others_and_they_are_not_starved() {
    let (logins, order) = (Logins::new(1), Arc::new(Mutex::new(Vec::new())));
    let held = logins.take(Rank::Fence).await;
    let one = |rank: Rank| {
        let (logins, order) = (logins.clone(), order.clone());
        async move {
            let _turn = logins.take(rank).await;
            order.lock().push(rank);
            sleep(MS).await;
        }
    };
    let ranks = [(Rank::Status, 2), (Rank::Check, 2), (Rank::Fence, 20)];
    let all: Vec<Rank> = ranks.into_iter().flat_map(|(rank, count)| vec![rank; count]).collect();
    let work = tokio::spawn(join_all(all.into_iter().map(one)));
    sleep(MS).await;
    drop(held);
    work.await.expect("it ends");
    let order = order.lock().clone();
    let place = |wanted: Rank| {
        let at = order.iter().enumerate().filter(|(_, rank)| **rank == wanted);
        at.map(|(at, _)| at).collect::<Vec<_>>()
    };
    assert_eq!(place(Rank::Check), [7, 15], "one turn of eight, while fences wait");
    assert_eq!(place(Rank::Status), [22, 23], "whoever wants to know comes last");
}

#[tokio::test(start_paused = true)]
async fn a_fence_finds_half_of_the_turns_free_whatever_is_checked() {
    let logins = Logins::new(8);
    let checks: Vec<_> = (0..20).map(|_| Box::pin(logins.take(Rank::Check))).collect();
    let (mut out, mut waiting) = (Vec::new(), Vec::new());
    for mut check in checks {
        match (&mut check).now_or_never() {
            Some(turn) => out.push(turn),
            None => waiting.push(check),
        }
    }
    assert_eq!((out.len(), waiting.len()), (4, 16));
    for _ in 0..4 {
        out.push(logins.take(Rank::Fence).now_or_never().expect("fences have room"));
    }
    assert!(logins.take(Rank::Fence).now_or_never().is_none(), "all eight are out");
}

#[tokio::test(start_paused = true)]
async fn who_leaves_leaves_nothing_behind() {
    let logins = Logins::new(1);
    let held = logins.take(Rank::Fence).await;
    let mut left: Vec<_> = (0..10_000).map(|_| Box::pin(logins.take(Rank::Fence))).collect();
    assert!(left.iter_mut().all(|one| one.now_or_never().is_none()));
    // One has its turn already, and does not know it yet.
    drop(held);
    assert_eq!(logins.0.lock().out, 1);
    drop(left);
    assert_eq!(logins.0.lock().out, 0);
    drop(logins.take(Rank::Status).now_or_never().expect("it is free"));
}

#[tokio::test(start_paused = true)]
async fn more_turns_let_more_go_at_once() {
    let logins = Logins::new(0);
    let held = logins.take(Rank::Status).now_or_never().expect("one at least, whatever is said");
    let mut second = Box::pin(logins.take(Rank::Status));
    assert!((&mut second).now_or_never().is_none());
    logins.change(4);
    drop(second.now_or_never().expect("there is room"));
    drop(held);
}
