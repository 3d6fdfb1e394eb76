//! Sessions whose close is answered late, or not at all: they end as soon as the BMC says so.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::bench::Bench;
use crate::network::{Fate, Network};
use crate::pyghmi::Pyghmi;
use picket_driver::{Effect, PowerDriver};
use serde_json::json;
use tokio::time::Instant;

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
            noted.lock().expect("not poisoned").push(session.to_vec());
        }
        Fate::Pass
    });
    // Too busy for the close itself, and for the first that asks after it.
    bmc.set("answer_06_3c", "c0 2");
    ended(&bench, "asked again").await;
    let sent = sent.lock().expect("not poisoned");
    let (old, rest) = sent.split_first().expect("the close was sent");
    let last = rest.iter().rposition(|session| session == old).map_or(0, |at| at + 1);
    let other = sent.iter().position(|session| session != old).expect("another session was opened");
    assert!(last < other, "a packet in the old session begins its idle limit anew");
}
