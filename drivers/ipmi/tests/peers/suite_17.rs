//! The driver against pyghmi's BMC: cipher suite 17, and what BMCs answer that ipmi_sim does not.

use std::time::Duration;

use crate::bench::{Bench, CALL, LONG, password};
use crate::network::{Fate, Network, OF_3, OF_17};
use crate::pyghmi::Pyghmi;
use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind, PowerDriver};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

#[tokio::test]
async fn suite_17_is_taken_where_there_is_one_and_3_only_where_it_is_allowed() {
    let login = async |bmc: &Pyghmi, suites: &[u8]| {
        let network = Network::before(bmc.address()).await;
        let proposed = network.proposed();
        let read = Bench::new(network.address(), json!({ "cipher_suites": suites })).await.read().await;
        (read.map(|reading| reading.power).map_err(|error| error.kind), proposed.now())
    };
    let (both, old) = (Pyghmi::start("3,17"), Pyghmi::start("3"));
    assert_eq!(login(&both, &[17, 3]).await, (Ok(Power::On), vec![OF_17]));
    assert_eq!(login(&old, &[17, 3]).await, (Ok(Power::On), vec![OF_3, OF_17]));
    assert_eq!(login(&old, &[17]).await, (Err(ErrorKind::Unsupported), vec![OF_17]), "it has no 17");
}

#[tokio::test]
async fn the_longest_name_and_password_are_taken() {
    let (user, secret) = ("a-16-byte-user!!", "a-20-byte-password!!");
    let bmc = Pyghmi::with_login("3,17", (user, secret));
    let secret = password(secret);
    for suite in [3, 17] {
        let login = json!({ "username": user, "password_file": secret.path(), "cipher_suites": [suite] });
        let bench = Bench::new(bmc.address(), login).await;
        assert_eq!(bench.read().await.expect("answered").power, Power::On);
    }
}

#[tokio::test]
async fn keys_made_with_the_privilege_of_open_session_are_taken_and_told() {
    for suite in [3, 17] {
        let bmc = Pyghmi::start("3,17");
        bmc.set("opensesspriv", "1");
        let suites = json!({ "cipher_suites": [suite] });
        let bench = Bench::new(bmc.address(), suites.clone()).await;
        bench.read().await.expect("the password is proven");
        bench.off().await.expect("taken");
        assert!(!bmc.is_on());
        let remarks = bench.driver.remarks();
        assert!(remarks.len() == 1 && remarks[0].contains("opensesspriv"), "{remarks:?}");
        let wrong = password("another");
        let mut login = suites;
        login["password_file"] = json!(wrong.path());
        let other = Bench::new(bmc.address(), login).await;
        let error = other.read().await.expect_err("another password");
        assert_eq!(error.kind, ErrorKind::Authentication, "{error}");
        assert_eq!(other.driver.remarks(), [""; 0]);
    }
}

#[tokio::test]
async fn a_busy_bmc_is_asked_again_and_then_believed() {
    let bmc = Pyghmi::start("17");
    let mut bench = Bench::new(bmc.address(), json!({ "cipher_suites": [17] })).await;
    bench.read().await.expect("answered");
    bmc.set("busy", "2");
    bench.off().await.expect("the third time it is taken");
    assert!(!bmc.is_on());
    bmc.set("power", "1");
    bmc.set("busy", "100");
    bench.life = Duration::from_secs(1);
    let error = bench.fails_in_time(Bench::off).await;
    assert_eq!((error.kind, error.effect), (ErrorKind::Throttled, Effect::DidNotHappen));
    assert_eq!(bench.answer().await.power, Power::Unknown);
    let error = bench.fails_in_time(Bench::on).await;
    assert_eq!((error.kind, error.effect), (ErrorKind::Throttled, Effect::DidNotHappen));
}

/// The judge takes the time from there to the yes for one call that the BMC answered, and not for a gap (S2).
#[tokio::test]
async fn a_busy_off_is_asked_for_when_it_was_first_sent() {
    let bmc = Pyghmi::start("17");
    let bench = Bench::new(bmc.address(), json!({ "cipher_suites": [17] })).await;
    for (knob, value) in [("busy", "3"), ("answer_00_02", "ff 3")] {
        bench.read().await.expect("answered");
        bmc.set(knob, value);
        let before = bench.clock.boot();
        let off = bench.off().await.expect("the fourth time it is taken");
        let took = off.answered_at.since(off.asked_at);
        assert!(before <= off.asked_at, "{knob}: {off:?}");
        assert!(
            took >= Duration::from_millis(1_750),
            "{knob}: three pauses of 0.25, 0.5 and 1 s, and {took:?}"
        );
    }
    let reading = bench.read().await.expect("answered");
    bmc.set("busy", "1");
    let later = bench.read().await.expect("the second time it is answered");
    assert!(
        later.asked_at.since(reading.answered_at) >= Duration::from_millis(250),
        "a reading is as new as its answer"
    );
}

/// What it answers to an off of a machine that is off says nothing of that: it is told as the BMC's own refusal, and the judge looks.
#[tokio::test]
async fn a_repeat_that_is_refused_is_told_as_the_bmc_s_own_answer() {
    for (code, is_final) in [("ff", false), ("d4", true), ("c1", true), ("d3", false)] {
        let bmc = Pyghmi::start("17");
        let mut bench = Bench::new(bmc.address(), json!({ "cipher_suites": [17] })).await;
        bench.read().await.expect("answered");
        let taken = bench.off().await.expect("it is on");
        bmc.set("answer_00_02", &format!("{code} 99"));
        bench.life = Duration::from_secs(2);
        let before = bench.clock.boot();
        let mut error = bench.off().await.expect_err("it is refused");
        while error.refusal.is_none() && bench.life < LONG {
            // A busy machine may hear the last refusal after the call's end.
            bench.life *= 2;
            error = bench.off().await.expect_err("it is refused");
        }
        let refusal = error.refusal.expect("an answer to the off itself");
        assert!(before <= refusal.asked_at && refusal.asked_at <= refusal.answered_at, "{refusal:?}");
        assert_eq!((refusal.epoch, error.is_final), (taken.epoch, is_final), "{code}: {error}");
    }
    let bmc = Pyghmi::start("17");
    let mut bench = Bench::new(bmc.address(), json!({ "cipher_suites": [17] })).await;
    bench.read().await.expect("answered");
    bench.life = Duration::from_secs(1);
    bmc.set("busy", "100");
    let error = bench.off().await.expect_err("not now");
    assert_eq!((error.refusal, error.is_final), (None, false), "{error}");
}

#[tokio::test]
async fn an_unspecified_error_leaves_the_effect_open() {
    let bmc = Pyghmi::start("17");
    let mut bench = Bench::new(bmc.address(), json!({ "cipher_suites": [17] })).await;
    bmc.set("fail", "1");
    bench.life = Duration::from_secs(1);
    for error in [bench.off().await.expect_err("it fails"), bench.on().await.expect_err("it fails")] {
        assert_eq!(error.effect, Effect::Unknown, "{error}");
    }
    bmc.clear("fail");
    bench.off().await.expect("taken");
}

#[tokio::test]
async fn an_off_whose_answer_was_lost_is_cured_by_a_copy_though_off_is_refused_then() {
    let bmc = Pyghmi::start("17");
    let bench = Bench::new(bmc.address(), json!({ "cipher_suites": [17] })).await;
    bench.read().await.expect("answered");
    bmc.set("refuse_again", "1");
    bmc.set("drop", "1");
    let off = bench.off().await.expect("taken");
    assert!(off.already, "the copy found it off: whether by us is not known");
    assert!(!bmc.is_on());
}

#[tokio::test]
async fn an_on_is_not_begun_again_in_another_session() {
    let bmc = Pyghmi::start("17");
    bmc.set("power", "0");
    let network = Network::before(bmc.address()).await;
    let mut bench = Bench::new(network.address(), json!({ "cipher_suites": [17] })).await;
    bench.read().await.expect("answered");
    bmc.set("drop", "100");
    bench.life = Duration::from_secs(3);
    let error = bench.on().await.expect_err("its answers are lost");
    assert_eq!((error.kind, error.effect), (ErrorKind::TimedOut, Effect::Unknown));
    let sessions = bmc.commands().into_iter().filter(|what| what.starts_with("session")).count();
    assert_eq!(sessions, 1);
    assert!(bmc.is_on(), "unknown, and it happened");
}

#[tokio::test]
async fn no_session_is_opened_for_an_on() {
    let bmc = Pyghmi::start("17");
    bmc.set("power", "0");
    let bench = Bench::new(bmc.address(), json!({ "cipher_suites": [17] })).await;
    // Its order, and with it the store's word, may be of long ago: nothing bounds what a session carries that begins now.
    let error = bench.on().await.expect_err("no session");
    assert_eq!((error.kind, error.effect), (ErrorKind::Unreachable, Effect::DidNotHappen));
    bench.read().await.expect("answered");
    bench.driver.quiesce(&bench.call()).await.expect("closed");
    let error = bench.on().await.expect_err("it was closed");
    assert_eq!((error.kind, error.effect), (ErrorKind::Unreachable, Effect::DidNotHappen));
    assert!(!bmc.is_on());
    let sessions = bmc.commands().into_iter().filter(|what| what.starts_with("session")).count();
    assert_eq!(sessions, 1);
    bench.read().await.expect("answered");
    bench.on().await.expect("taken");
    assert!(bmc.is_on());
}

#[tokio::test]
async fn a_copy_of_an_open_request_that_comes_into_the_session_does_nothing_to_it() {
    let bmc = Pyghmi::start("17");
    let network = Network::before(bmc.address()).await;
    let mut open = None;
    network.rule(move |to_bmc, datagram| match datagram[5] & 0x3F {
        0x10 if to_bmc => {
            open = Some(datagram.to_vec());
            Fate::Pass
        }
        0 if to_bmc => open.take().map_or(Fate::Pass, Fate::After),
        _ => Fate::Pass,
    });
    let bench = Bench::new(network.address(), json!({ "cipher_suites": [17] })).await;
    for _ in 0..2 {
        assert_eq!(bench.read().await.expect("answered").power, Power::On);
        bench.driver.quiesce(&bench.call()).await.expect("closed");
    }
    let sessions = bmc.commands().into_iter().filter(|what| what.starts_with("session")).count();
    assert_eq!(sessions, 2);
}

/// Three logins, one after the other, through three copies of everything and this loss.
async fn three_logins(percent: u64, seed: u64) {
    let bmc = Pyghmi::start("17");
    let network = Network::before(bmc.address()).await;
    network.disordered(percent, seed);
    let mut bench = Bench::new(network.address(), json!({ "cipher_suites": [17] })).await;
    bench.life = CALL;
    let began = Instant::now();
    for login in 0..3 {
        while let Err(error) = bench.read().await {
            println!("{percent} %, seed {seed}, login {login}, {:?}: {error}", began.elapsed());
            sleep(Duration::from_millis(250)).await;
        }
        let _ = bench.driver.quiesce(&bench.call()).await;
    }
    println!("{percent} %, seed {seed}: {:?}", began.elapsed());
}

#[tokio::test]
async fn logins_get_through_disorder() {
    let mut logins = JoinSet::new();
    for percent in [0, 20] {
        for seed in 0..4 {
            logins.spawn(timeout(Duration::from_secs(300), three_logins(percent, seed)));
        }
    }
    assert!(logins.join_all().await.iter().all(Result::is_ok), "a login does not get through");
}

#[tokio::test]
async fn a_lost_rakp_4_and_full_slots_are_survived() {
    let bmc = Pyghmi::start("17");
    let mut bench = Bench::new(bmc.address(), json!({ "cipher_suites": [17] })).await;
    bmc.set("drop_rakp4", "1");
    assert_eq!(bench.read().await.expect("answered").power, Power::On);
    bench.driver.quiesce(&bench.call()).await.expect("closed");
    bmc.set("no_sessions", "1");
    bench.life = Duration::from_millis(900);
    let error = bench.fails_in_time(Bench::off).await;
    assert_eq!((error.kind, error.effect), (ErrorKind::Throttled, Effect::DidNotHappen));
}
