//! The conformance suite, and what is an agent's own, with an agent that is a program: what it says and does is known, its ends are real.

mod replaced;
mod scene;

use std::sync::Arc;
use std::time::{Duration, Instant};

use picket_core::power::Power;
use picket_driver::conformance::{self, Subject};
use picket_driver::{Effect, ErrorKind, Witness};
use serde_json::json;

use scene::{Agent, eventually, runs};

#[tokio::test]
async fn it_conforms() {
    let agent = Agent::new();
    let report = conformance::run(&agent).await.unwrap_or_else(|failure| panic!("{failure}"));
    let left_out = [
        "a restart begins an epoch after loss",
        "after a restart no off is sent before a reading",
        "nothing is sent in another life than that in which it was identified",
        "a quiesce that is not answered is none",
        "after a quiesce no late copy is executed",
        "no session is opened for an on",
        "a question is as old as its first copy",
        "a repeated off that is refused takes nothing back",
        "answers that come late are answers, and nothing is asked twice",
        "an answer that is cut short is never Off, and shuts nobody out",
        "a redirect to the same place is followed, once",
        "no login leaves a session behind",
        "packets that arrive twice change nothing",
        "wrong credentials are said, and have no effect",
    ];
    assert_eq!(report.left_out, left_out, "{report:?}");
    eventually("nothing of a run is left", || !agent.children().into_iter().any(runs)).await;
    assert!(!agent.children().is_empty(), "programs that agents started were killed with them");
}

#[tokio::test]
async fn what_is_killed_has_an_unknown_effect_and_nothing_of_it_is_left() {
    let agent = Agent::new();
    let driver = agent.driver();
    let orders = agent.orders(&driver).await;
    std::fs::write(agent.file("silent"), "").expect("it can be written");
    let order = orders.off().await.expect("an off");
    let life = Duration::from_secs(4);
    let error = driver.power_off(&order, &agent.call(&orders, life)).await.expect_err("it is silent");
    assert_eq!((error.kind, error.effect), (ErrorKind::TimedOut, Effect::Unknown), "{error}");
    eventually("what it started is killed", || {
        let children = agent.children();
        !children.is_empty() && !children.into_iter().any(runs)
    })
    .await;
    agent.mend().await;
    // Another off that ends well does not say what became of the first.
    let again = orders.off().await.expect("an off");
    driver.power_off(&again, &agent.call(&orders, Duration::from_secs(60))).await.expect("it is done");
    let open =
        driver.quiesce(&agent.call(&orders, Duration::from_secs(1))).await.expect_err("nothing bounds it");
    assert!(open.detail.contains("no max_life"), "{open}");
}

#[tokio::test]
async fn what_is_killed_is_over_after_the_life_that_its_operator_vouches_for() {
    let agent = Agent::new();
    let driver = agent.with(json!({ "max_life": "2s" }));
    let orders = agent.orders(&driver).await;
    std::fs::write(agent.file("silent"), "").expect("it can be written");
    let order = orders.off().await.expect("an off");
    let call = agent.call(&orders, Duration::from_secs(2));
    let ends = call.deadline();
    // Its caller leaves in the middle, and the agent dies with that.
    let left = tokio::time::timeout(Duration::from_millis(500), driver.power_off(&order, &call)).await;
    assert!(left.is_err(), "it is silent");
    agent.mend().await;
    let over = ends + Duration::from_secs(2);
    match driver.quiesce(&agent.call(&orders, Duration::from_millis(100))).await {
        Ok(()) => assert!(tokio::time::Instant::now() >= over, "not yet"),
        Err(soon) => assert_eq!(soon.kind, ErrorKind::TimedOut, "{soon}"),
    }
    driver.quiesce(&agent.call(&orders, Duration::from_secs(60))).await.expect("it is over");
    assert!(tokio::time::Instant::now() >= over, "its life counts from its latest end");
    driver.quiesce(&agent.call(&orders, Duration::from_secs(60))).await.expect("it stays over");
}

#[tokio::test]
async fn an_agent_of_a_gateway_that_stands_still_may_run_on_until_its_call_ends() {
    let agent = Agent::new();
    let call = Duration::from_secs(90);
    let bounded = agent.with(json!({ "max_life": "2s" }));
    let life = bounded.max_in_flight(call);
    // Whoever leads now counts from what stood in the store before the agent was begun.
    assert!(life.on.is_some_and(|life| life > call + Duration::from_secs(3)), "{life:?}");
    assert_eq!(life.on, life.off);
    assert_eq!(agent.driver().max_in_flight(call).on, None, "nobody vouches");
}

#[tokio::test]
async fn an_agent_of_a_gateway_that_was_deposed_is_killed_at_once() {
    let agent = Agent::new();
    let driver = agent.with(json!({ "max_life": "2s" }));
    let orders = agent.orders(&driver).await;
    std::fs::write(agent.file("silent"), "").expect("it can be written");
    let order = orders.off().await.expect("an off");
    let call = agent.call(&orders, Duration::from_secs(600));
    let ends = call.deadline();
    let deposed = async {
        eventually("it runs", || agent.children().into_iter().any(runs)).await;
        orders.permit().end();
    };
    let (off, ()) = tokio::join!(driver.power_off(&order, &call), deposed);
    let error = off.expect_err("nobody leads any more");
    assert_eq!((error.kind, error.effect), (ErrorKind::NotLeader, Effect::Unknown), "{error}");
    eventually("all of it is dead", || !agent.children().into_iter().any(runs)).await;
    assert!(tokio::time::Instant::now() < ends, "long before its call would have ended");
    // What it had sent may be on its way for as long as if it had run to the end: nobody saw how far it came.
    let open = driver.quiesce(&agent.call(&orders, Duration::from_secs(1))).await.expect_err("its life");
    assert_eq!((open.kind, open.effect), (ErrorKind::TimedOut, Effect::Unknown), "{open}");
}

/// Stops the process until long after its call, between the permit and the agent's start.
#[derive(Debug)]
struct Stopped(Instant);

impl Witness for Stopped {
    fn permitted(&self) {
        while Instant::now() < self.0 {
            std::thread::yield_now();
        }
    }
}

#[tokio::test]
async fn a_gateway_that_was_stopped_between_permit_and_start_sends_nothing_late() {
    let agent = Agent::new();
    let driver = agent.driver();
    let orders = agent.orders(&driver).await;
    let order = orders.off().await.expect("an off");
    let call = agent.call(&orders, Duration::from_millis(200));
    let call = call.before(Arc::new(Stopped(Instant::now() + Duration::from_secs(2))));
    let error = driver.power_off(&order, &call).await.expect_err("its time is over");
    assert_eq!((error.kind, error.effect), (ErrorKind::TimedOut, Effect::DidNotHappen), "{error}");
    assert_eq!(agent.commands().await, Some(0), "nothing was sent");
    assert!(agent.is_on().await);
    driver.quiesce(&agent.call(&orders, Duration::from_secs(1))).await.expect("nothing is open");
}

#[tokio::test]
async fn already_off_is_told_and_the_password_is_what_it_is() {
    let agent = Agent::new();
    let driver = agent.driver();
    let orders = agent.orders(&driver).await;
    agent.set_power(false).await;
    let order = orders.off().await.expect("an off");
    let call = agent.call(&orders, Duration::from_secs(60));
    assert!(driver.power_off(&order, &call).await.expect("it is done").already);
    let reading = driver.read_power(&call).await.expect("an answer");
    assert_eq!((reading.power, reading.epoch), (Power::Off, None));
    std::fs::write(agent.file("password"), "s3cret-Other\n").expect("it can be written");
    let other = agent.driver();
    let error =
        other.read_power(&agent.call(&orders, Duration::from_secs(60))).await.expect_err("it is wrong");
    assert_eq!(error.kind, ErrorKind::Unreachable, "{error}");
    assert!(error.detail.contains("[secret]") && !error.detail.contains("s3cret"), "{error}");
}
