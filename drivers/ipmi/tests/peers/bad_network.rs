//! The driver against OpenIPMI's `ipmi_sim`, over networks that lose, double and forge.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::bench::{Bench, CALL, LONG};
use crate::bmc::Bmc;
use crate::network::{Fate, Network};
use picket_core::power::{Epoch, Power};
use picket_driver::PowerDriver;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

const GUID: &str = "0123456789abcdef0123456789abcde0";

/// Payload types (IPMI 2.0 table 13-16), as they stand in byte 5 of a packet.
const OPENED: u8 = 0x11;
const RAKP2: u8 = 0x13;
const RAKP4: u8 = 0x15;

/// As a caller does it: a look, an off, and readings until one in the same epoch says off; after a loss from the start.
async fn off_and_seen(bench: &Bench) {
    loop {
        let Ok(before) = bench.read().await else { continue };
        let Ok(off) = bench.off().await else { continue };
        if off.epoch != before.epoch {
            continue;
        }
        while let Ok(reading) = bench.read().await {
            if reading.epoch != off.epoch {
                break;
            }
            if reading.power == Power::Off {
                return;
            }
        }
    }
}

/// Many times what an off takes through the worst of these networks.
const HANGS: Duration = Duration::from_secs(300);

/// How many of 12 offs, each at a BMC of its own, are confirmed; `strict`: it drops duplicates.
async fn confirmed_of_12(percent: u64, strict: bool) -> usize {
    let mut offs = JoinSet::new();
    for seed in 0..12 {
        offs.spawn(async move {
            let bmc = Bmc::start(GUID);
            let network = Network::before(bmc.address()).await;
            network.lossy(percent, seed);
            if strict {
                network.drop_duplicates();
            }
            let mut bench = Bench::new(network.address(), json!({})).await;
            bench.life = CALL;
            let began = Instant::now();
            let done = timeout(HANGS, off_and_seen(&bench)).await.is_ok();
            println!("{percent} % lost, strict {strict}, seed {seed}: {done} after {:?}", began.elapsed());
            done
        });
    }
    offs.join_all().await.into_iter().filter(|done| *done).count()
}

#[tokio::test]
async fn loss_delays_and_does_not_prevent() {
    for strict in [false, true] {
        let confirmed = tokio::join!(
            confirmed_of_12(5, strict),
            confirmed_of_12(20, strict),
            confirmed_of_12(40, strict)
        );
        assert!(confirmed.0 == 12 && confirmed.1 == 12 && confirmed.2 >= 11, "{strict}: {confirmed:?}");
    }
}

/// The BMC hangs for so long, then answers everything that came meanwhile: it did not restart, and its epoch is the same.
async fn hangs(strict: bool, secs: u64) {
    let bmc = Bmc::start(GUID);
    let network = Network::before(bmc.address()).await;
    if strict {
        network.drop_duplicates();
    }
    let mut bench = Bench::new(network.address(), json!({})).await;
    let before = bench.read().await.expect("answered").epoch;
    bench.life = CALL;
    bmc.freeze(true);
    let began = Instant::now();
    let thaw = async {
        sleep(Duration::from_secs(secs)).await;
        bmc.freeze(false);
    };
    let reads = async {
        loop {
            match bench.read().await {
                Ok(reading) => break reading.epoch,
                Err(error) => println!("hung for {:?} of {secs} s: {error}", began.elapsed()),
            }
            sleep(Duration::from_millis(250)).await;
        }
    };
    let ((), after) = tokio::join!(thaw, reads);
    assert_eq!(after, before, "it hung for {secs} s and did not restart (strict: {strict})");
}

#[tokio::test]
async fn a_bmc_that_hung_did_not_restart() {
    let mut hung = JoinSet::new();
    for strict in [false, true] {
        for secs in [4, 8, 12] {
            hung.spawn(hangs(strict, secs));
        }
    }
    hung.join_all().await;
}

#[tokio::test]
async fn a_lost_answer_of_the_handshake_is_cured() {
    let bmc = Bmc::start(GUID);
    for lost in [OPENED, RAKP2, RAKP4, 0xC0] {
        for times in [1, 2] {
            let network = Network::before(bmc.address()).await;
            let left = AtomicU64::new(times);
            network.rule(move |to_bmc, packet| {
                let hit = !to_bmc && packet.get(5) == Some(&lost);
                let lose = hit
                    && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok();
                if lose { Fate::Lose } else { Fate::Pass }
            });
            let bench = Bench::new(network.address(), json!({})).await;
            let reading =
                bench.read().await.unwrap_or_else(|error| panic!("{lost:#x} lost {times} times: {error}"));
            assert_eq!(reading.epoch.expect("it has epochs").loss, None);
        }
    }
}

#[tokio::test]
async fn forged_answers_are_ignored() {
    let bmc = Bmc::start(GUID);
    let network = Network::before(bmc.address()).await;
    let bench = Bench::new(network.address(), json!({})).await;
    let before = bench.read().await.expect("answered");
    network.rule(|to_bmc, _| if to_bmc { Fate::Pass } else { Fate::Forged });
    let off = bench.off().await.expect("taken");
    let reading = bench.read().await.expect("answered");
    assert_eq!((reading.power, reading.epoch), (Power::Off, before.epoch));
    assert!(reading.asked_at >= off.answered_at);
}

#[tokio::test]
async fn a_copy_does_not_renew_when_it_was_asked() {
    let bmc = Bmc::start(GUID);
    // A busy machine may ask late: the best of some counts.
    let mut late = Vec::new();
    while late.len() < 10 && late.last().is_none_or(|late| *late >= Duration::from_millis(500)) {
        let network = Network::before(bmc.address()).await;
        let bench = Bench::new(network.address(), json!({})).await;
        bench.read().await.expect("answered");
        let left = AtomicU64::new(2);
        network.rule(move |_, _| {
            let lose = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok();
            if lose { Fate::Lose } else { Fate::Pass }
        });
        let before = bench.clock.boot();
        let reading = bench.read().await.expect("the third copy is answered");
        late.push(reading.asked_at.since(before));
        // Each copy is as old as the first.
        if late.last().is_some_and(|late| *late < Duration::from_millis(500)) {
            assert!(reading.answered_at.since(reading.asked_at) >= Duration::from_millis(700));
        }
    }
    assert!(late.iter().any(|late| *late < Duration::from_millis(500)), "{late:?}");
}

#[tokio::test]
async fn a_network_that_was_away_costs_no_epoch() {
    let bmc = Bmc::start(GUID);
    let network = Network::before(bmc.address()).await;
    let mut bench = Bench::new(network.address(), json!({})).await;
    let before = bench.read().await.expect("answered").epoch;
    network.cut();
    bench.life = Duration::from_secs(1);
    for _ in 0..6 {
        bench.read().await.expect_err("it is cut");
    }
    network.heal();
    bench.life = LONG;
    assert_eq!(bench.read().await.expect("answered").epoch, before);
}

/// The BMC's id of the session in which a packet to it was sent; 0 in a handshake.
fn session(packet: &[u8]) -> u32 {
    packet.get(6..10).map_or(0, |id| u32::from_le_bytes(id.try_into().expect("four bytes")))
}

/// Loses so many datagrams of the first session that is seen, and none of any other.
fn lose_of_the_first_session(mut left: u32) -> impl FnMut(bool, &[u8]) -> Fate + Send + 'static {
    let mut first = None;
    move |to_bmc, packet| {
        let of_first =
            to_bmc && session(packet) != 0 && session(packet) == *first.get_or_insert(session(packet));
        if of_first && left > 0 {
            left -= 1;
            return Fate::Lose;
        }
        Fate::Pass
    }
}

#[tokio::test]
async fn a_session_is_not_given_up_because_the_network_swallowed_its_last_word() {
    is_not_given_up(async |bmc| {
        let network = Network::before(bmc.address()).await;
        let mut bench = Bench::new(network.address(), json!({})).await;
        let before = bench.read().await.expect("answered").epoch;
        network.rule(lose_of_the_first_session(10));
        bench.life = Duration::from_millis(200);
        bench.read().await.expect_err("lost");
        bench.life = LONG;
        (before, bench.read().await.expect("a copy gets through").epoch)
    })
    .await;
}

/// An answer that is too late on a busy machine is lost, and rightly: the best of some tries counts.
async fn is_not_given_up(epochs: impl AsyncFn(&Bmc) -> (Option<Epoch>, Option<Epoch>)) {
    let bmc = Bmc::start(GUID);
    let mut seen = Vec::new();
    while seen.len() < 5 && seen.last().is_none_or(|(before, after)| before != after) {
        seen.push(epochs(&bmc).await);
    }
    assert!(seen.iter().any(|(before, after)| before == after), "{seen:?}");
}

#[tokio::test]
async fn a_session_is_not_given_up_before_it_had_a_last_word() {
    is_not_given_up(async |bmc| {
        let network = Network::before(bmc.address()).await;
        let mut bench = Bench::new(network.address(), json!({})).await;
        let before = bench.read().await.expect("answered").epoch;
        let mut lose = lose_of_the_first_session(8);
        network.rule(move |to_bmc, packet| {
            // The handshake takes nearly all of the call's time.
            let slow = !to_bmc && packet.get(5) == Some(&OPENED);
            if slow { Fate::Later(Duration::from_millis(1_100)) } else { lose(to_bmc, packet) }
        });
        bench.life = Duration::from_millis(200);
        bench.read().await.expect_err("lost");
        bench.life = Duration::from_secs(2);
        bench.read().await.expect_err("no time is left for the last word");
        bench.life = LONG;
        (before, bench.read().await.expect("a copy gets through").epoch)
    })
    .await;
}

#[tokio::test]
async fn a_close_whose_caller_left_is_no_loss() {
    let bmc = Bmc::start(GUID);
    let network = Network::before(bmc.address()).await;
    let bench = Bench::new(network.address(), json!({})).await;
    let before = bench.read().await.expect("answered").epoch.expect("it has epochs");
    bench.off().await.expect("taken");
    let old = Arc::new(AtomicU32::new(0));
    let noted = old.clone();
    network.rule(move |to_bmc, packet| {
        if to_bmc {
            noted.store(session(packet), Ordering::Relaxed);
            return Fate::Pass;
        }
        Fate::Later(Duration::from_millis(100))
    });
    let call = bench.call();
    timeout(Duration::from_millis(50), bench.driver.quiesce(&call)).await.expect_err("the answer is late");
    let old = old.load(Ordering::Relaxed);
    assert_ne!(old, 0, "the close was sent");
    let (asked, noted) = (Arc::new(AtomicU64::new(0)), old);
    let counted = asked.clone();
    network.rule(move |to_bmc, packet| {
        counted.fetch_add(u64::from(to_bmc && session(packet) == noted), Ordering::Relaxed);
        Fate::Pass
    });
    let after = bench.read().await.expect("in a new session").epoch.expect("it has epochs");
    assert!(after.id > before.id && !after.begins_after_loss(), "{before:?}, {after:?}");
    assert_eq!(asked.load(Ordering::Relaxed), 0, "the old session was not asked any more");
    bench.driver.quiesce(&bench.call()).await.expect("the old session's end is seen from outside");
}

#[tokio::test]
async fn a_close_whose_caller_left_hides_no_silence() {
    let mut bmc = Bmc::start(GUID);
    let mut bench = Bench::new(bmc.address(), json!({})).await;
    bench.off().await.expect("taken");
    bmc.restart();
    bench.life = Duration::from_millis(500);
    bench.read().await.expect_err("the old session is gone");
    bench.life = LONG;
    let call = bench.call();
    timeout(Duration::from_millis(50), bench.driver.quiesce(&call)).await.expect_err("nothing is answered");
    let after = bench.read().await.expect("in a new session").epoch.expect("it has epochs");
    assert!(after.begins_after_loss());
}

#[tokio::test]
async fn a_session_that_answers_its_close_in_the_end_was_not_lost() {
    let bmc = Bmc::start(GUID);
    let network = Network::before(bmc.address()).await;
    let mut bench = Bench::new(network.address(), json!({})).await;
    let before = bench.read().await.expect("answered").epoch.expect("it has epochs");
    bench.off().await.expect("taken");
    network.rule(|_, _| Fate::Lose);
    bench.life = Duration::from_millis(500);
    bench.read().await.expect_err("nothing gets through");
    bench.life = LONG;
    let call = bench.call();
    timeout(Duration::from_millis(50), bench.driver.quiesce(&call)).await.expect_err("nothing is answered");
    network.heal();
    bench.driver.quiesce(&bench.call()).await.expect("the old session closes itself");
    let after = bench.read().await.expect("in a new session").epoch.expect("it has epochs");
    assert!(after.id > before.id && after.loss.is_none(), "{before:?}, {after:?}");
}

/// The sender leaves before the first copy is due: the question is as unanswered as any other.
#[tokio::test]
async fn a_question_whose_caller_left_at_once_is_unanswered_and_its_session_no_idle_one() {
    let mut bmc = Bmc::start(GUID);
    let network = Network::before(bmc.address()).await;
    let bench = Bench::new(network.address(), json!({ "idle_limit": "2s" })).await;
    for closes in [false, true] {
        bench.read().await.expect("answered");
        network.cut();
        let call = bench.call();
        timeout(Duration::from_millis(50), bench.driver.read_power(&call)).await.expect_err("not answered");
        bmc.restart();
        if closes {
            let call = bench.call();
            timeout(Duration::from_millis(50), bench.driver.quiesce(&call)).await.expect_err("not answered");
        } else {
            sleep(Duration::from_millis(2_500)).await;
        }
        network.heal();
        let after = bench.read().await.expect("in a new session").epoch.expect("it has epochs");
        assert!(after.begins_after_loss(), "it restarted under a question that was asked: {after:?}");
    }
}

/// The session after the loss is closed before anything is read in it: the next one tells of the loss.
#[tokio::test]
async fn a_loss_that_no_reading_told_is_told_after_a_close() {
    let mut bmc = Bmc::start(GUID);
    let mut bench = Bench::new(bmc.address(), json!({})).await;
    let before = bench.read().await.expect("answered").epoch.expect("it has epochs");
    bmc.restart();
    bench.life = CALL;
    for _ in 0..2 {
        bench.off().await.expect_err("the old session is gone, and nothing was read in the new one");
    }
    bench.life = LONG;
    bench.driver.quiesce(&bench.call()).await.expect("closed");
    bench.off().await.expect_err("nor in the one after that");
    let after = bench.read().await.expect("answered").epoch.expect("it has epochs");
    assert!(after.was_lost_after(before.id) && !before.was_lost_after(0), "{before:?}, {after:?}");
    bench.off().await.expect("now it may be sent");
}

#[tokio::test]
async fn an_off_whose_session_was_lost_is_waited_for_or_its_end_is_seen_from_outside() {
    let mut bmc = Bmc::start(GUID);
    let mut bench = Bench::new(bmc.address(), json!({})).await;
    bench.off().await.expect("taken");
    bmc.restart();
    bench.life = CALL;
    let epoch = loop {
        if let Ok(reading) = bench.read().await {
            break reading.epoch.expect("it has epochs");
        }
    };
    assert!(epoch.begins_after_loss());
    // Less than the idle limit of a minute, which would else be waited out.
    bench.life = LONG;
    bench.driver.quiesce(&bench.call()).await.expect("the BMC says that there is no such session");
}
