//! Sessions whose close is answered late, or not at all: they end as soon as the BMC says so.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::bench::{Bench, LONG};
use crate::bmc::Bmc;
use crate::network::{Fate, Network};
use crate::pyghmi::Pyghmi;
use picket_driver::{Effect, ErrorKind, PowerDriver};
use serde_json::json;
use tokio::time::Instant;

const GUID: &str = "0123456789abcdef0123456789abcde0";
const OTHER: &str = "0123456789abcdef0123456789abcde1";
const ZEROS: &str = "00000000000000000000000000000000";

/// Less than the idle limit of a minute, which is waited out where the BMC says nothing.
const LIFE: Duration = Duration::from_secs(30);

/// A session that has carried an off.
async fn carried(network: &Network) -> Bench {
    let mut bench = Bench::new(network.address(), json!({ "cipher_suites": [17] })).await;
    bench.read().await.expect("answered");
    bench.off().await.expect("taken");
    bench.life = LIFE;
    bench
}

async fn ended(bench: &Bench, what: &str) {
    let began = Instant::now();
    bench.driver.quiesce(&bench.call()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    println!("{what}: over after {:?}", began.elapsed());
    let after = bench.read().await.expect("in a new session").epoch.expect("it has epochs");
    assert!(after.id > 1, "{what}");
}

#[tokio::test]
async fn a_close_that_is_answered_after_a_second_ends_the_session_then() {
    for knob in ["late_06_3c", "slow_all"] {
        let bmc = Pyghmi::start("17");
        let network = Network::before(bmc.address()).await;
        let bench = carried(&network).await;
        bmc.set(knob, "1.2");
        bench.driver.quiesce(&bench.call()).await.expect("it says that it closed");
        bmc.clear(knob);
        let after = bench.read().await.expect("in a new session").epoch.expect("it has epochs");
        assert_eq!(after.loss, None, "{knob}: the old one answered");
    }
}

#[tokio::test]
async fn an_operator_sees_the_end_of_a_close_that_was_not_answered() {
    let bmc = Pyghmi::start("17");
    let network = Network::before(bmc.address()).await;
    let bench = carried(&network).await;
    bmc.set("close_own_only", "1");
    bmc.set("session_info", "all");
    bmc.set("mute_06_3c", "1");
    ended(&bench, "told of all").await;
}

/// What its user may not close may be open, unless the BMC says of that very session that it is over: how many it counts says nothing.
#[tokio::test]
async fn a_session_that_an_operator_may_not_close_may_be_open() {
    for told in ["own", "all"] {
        let bmc = Pyghmi::start("17");
        let network = Network::before(bmc.address()).await;
        let mut bench = carried(&network).await;
        bmc.set("close_own_only", "1");
        bmc.set("session_info", told);
        // Not carried out: it stays open.
        bmc.set("answer_06_3c", "c0 1");
        bench.life = Duration::from_secs(4);
        let error = bench.driver.quiesce(&bench.call()).await.expect_err("it may be open");
        assert_eq!(error.effect, Effect::Unknown, "{told}: {error}");
    }
}

#[tokio::test]
async fn a_bmc_that_comes_back_while_its_idle_limit_is_waited_out_is_asked_again() {
    let bmc = Pyghmi::start("17");
    let network = Network::before(bmc.address()).await;
    let bench = carried(&network).await;
    // To which session each packet goes.
    let sent: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let noted = sent.clone();
    network.rule(move |to_bmc, packet| {
        if let Some(session) = packet.get(6..10).filter(|session| to_bmc && **session != [0; 4]) {
            noted.lock().push(session.to_vec());
        }
        Fate::Pass
    });
    // Too busy for the close itself, and for the first that asks after it.
    bmc.set("answer_06_3c", "c0 2");
    ended(&bench, "asked again").await;
    let sent = sent.lock();
    let (old, rest) = sent.split_first().expect("the close was sent");
    let last = rest.iter().rposition(|session| session == old).map_or(0, |at| at + 1);
    let other = sent.iter().position(|session| session != old).expect("another session was opened");
    assert!(last < other, "a packet in the old session begins its idle limit anew");
}

/// What a session's end may take to be known, once it was said: what the operator was promised. It is a hundredth of that.
const PROMISED: Duration = Duration::from_secs(3);

/// Whether the end is told within what was promised since its answer, which comes so long after the BMC closed the session.
async fn ends_with_its_answer(bench: &Bench, bmc: &Pyghmi, late: Duration, what: &str) -> bool {
    bench.driver.quiesce(&bench.call()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let now = std::time::SystemTime::now();
    let said = bmc.did_at("closed").expect("it was closed") + late;
    let since = now.duration_since(said).unwrap_or_default();
    println!("{what}: known {since:?} after it was said");
    since < PROMISED
}

/// A busy machine is late with anything: the best of some counts.
async fn at_best(what: &str, ends: impl AsyncFn() -> bool) {
    for _ in 0..5 {
        if ends().await {
            return;
        }
    }
    panic!("{what}: known more than {PROMISED:?} after the BMC had said so, each time");
}

/// It does one thing after another: while it has not answered the close it takes no other login either, nor says anything of the session there.
#[tokio::test]
async fn a_close_that_is_answered_late_ends_the_session_then() {
    for (each, late) in [("0", 2_500), ("0.6", 2_500), ("0", 9_000)] {
        let late = Duration::from_millis(late);
        let what = format!("{each} s each, the close {late:?} late");
        at_best(&what, async || {
            let bmc = Pyghmi::start("17");
            let network = Network::before(bmc.address()).await;
            let mut bench = Bench::new(network.address(), json!({ "cipher_suites": [17] })).await;
            bench.life = LIFE;
            bmc.set("slow_all", each);
            bench.read().await.expect("answered");
            bench.off().await.expect("taken");
            bmc.set("late_06_3c", &late.as_secs_f64().to_string());
            ends_with_its_answer(&bench, &bmc, late, &what).await
        })
        .await;
    }
}

/// Its last session is the one that closes, or its network loses what begins one: nobody can ask after it, and nobody has to.
#[tokio::test]
async fn a_close_that_is_answered_late_ends_the_session_where_no_other_can_be_opened() {
    at_best("no other session", async || {
        let bmc = Pyghmi::start("17");
        let network = Network::before(bmc.address()).await;
        let bench = carried(&network).await;
        bmc.set("late_06_3c", "2.5");
        // Of the handshake all packets are outside of any session.
        network.rule(|to_bmc, packet| match packet.get(6..10) {
            Some([0, 0, 0, 0]) if to_bmc => Fate::Lose,
            _ => Fate::Pass,
        });
        ends_with_its_answer(&bench, &bmc, Duration::from_millis(2_500), "no other session").await
    })
    .await;
}

/// Nobody waits for the answer to that question any more, and the BMC goes on with it: the close has its turn after that.
#[tokio::test]
async fn a_bmc_that_is_busy_with_a_question_that_was_left_ends_its_session_after_that() {
    for busy in ["1.3", "3"] {
        let what = format!("busy for {busy} s");
        at_best(&what, async || {
            let bmc = Pyghmi::start("17");
            let network = Network::before(bmc.address()).await;
            let bench = carried(&network).await;
            bmc.set("late_00_01", busy);
            let call = bench.call();
            let left = tokio::time::timeout(Duration::from_millis(100), bench.driver.read_power(&call)).await;
            assert!(left.is_err(), "it is busy with that: {left:?}");
            bmc.clear("late_00_01");
            let is_prompt = ends_with_its_answer(&bench, &bmc, Duration::ZERO, &what).await;
            let after = bench.read().await.expect("in a new session").epoch.expect("it has epochs");
            assert_eq!(after.loss, None, "{busy} s: the old one answered");
            is_prompt
        })
        .await;
    }
}

/// Whoever waits for it reads for what, how long it is, what was tried, and which setting says so.
#[tokio::test]
async fn an_end_that_was_not_seen_names_the_idle_limit() {
    for (idle_limit, says) in [("60s", r#"idle_limit = "60s""#), ("10m", r#"idle_limit = "600s""#)] {
        let bmc = Pyghmi::start("17");
        let settings = json!({ "cipher_suites": [17], "idle_limit": idle_limit });
        let mut bench = Bench::new(bmc.address(), settings).await;
        bench.read().await.expect("answered");
        bench.off().await.expect("taken");
        bmc.set("answer_06_3c", "c0 99");
        bench.life = Duration::from_secs(4);
        let error = bench.driver.quiesce(&bench.call()).await.expect_err("it may be open");
        assert_eq!((error.kind, error.effect), (ErrorKind::TimedOut, Effect::Unknown), "{error}");
        let is_whole = [says, "times in", " s more"].iter().all(|words| error.detail.contains(words));
        assert!(is_whole, "{error}");
    }
}

/// A BMC that is at the address of ours by now, or that says of no system that it is its own, says nothing of our sessions.
#[tokio::test]
async fn a_session_that_another_bmc_does_not_know_is_waited_out() {
    for (ours, theirs) in [(GUID, OTHER), (ZEROS, ZEROS)] {
        let (ours, theirs) = (Bmc::start(ours), Bmc::start(theirs));
        let network = Network::before(ours.address()).await;
        let mut bench = Bench::new(network.address(), json!({ "idle_limit": "3s" })).await;
        bench.read().await.expect("answered");
        bench.on().await.expect("taken");
        network.lead_to(theirs.address());
        let asked = Instant::now();
        // On a busy machine its time may be over before it is asked after.
        for life in [Duration::from_secs(2), LONG] {
            bench.life = life;
            match bench.driver.quiesce(&bench.call()).await {
                Ok(()) => break,
                Err(error) => assert!(life < LONG && error.effect == Effect::Unknown, "{error}"),
            }
        }
        assert!(asked.elapsed() >= Duration::from_millis(3_100), "{:?}", asked.elapsed());
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_closed_is_waited_out() {
    let mut bmc = Bmc::start(GUID);
    let mut bench = Bench::new(bmc.address(), json!({ "idle_limit": "2s" })).await;
    bench.off().await.expect("taken");
    let asked = Instant::now();
    bmc.kill();
    // On a busy machine its time may be over before it is asked after.
    for life in [Duration::from_millis(1_500), LONG] {
        bench.life = life;
        match bench.driver.quiesce(&bench.call()).await {
            Ok(()) => break,
            Err(error) => assert!(life < LONG && error.effect == Effect::Unknown, "{error}"),
        }
    }
    assert!(asked.elapsed() >= Duration::from_millis(2_100), "{:?}", asked.elapsed());
}
