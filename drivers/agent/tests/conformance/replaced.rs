//! Agents whose program is replaced under a gateway that runs.

use std::time::Duration;

use futures::future::join_all;
use picket_core::power::Power;
use picket_driver::conformance::Subject;
use picket_driver::{Effect, ErrorKind};
use serde_json::json;

use crate::scene::{Agent, runs};

/// How many devices there are of one agent.
const DEVICES: usize = 50;
/// What notes that it was asked for its metadata, before it says it.
const NOTES: &str = "echo asked >>\"${0%/*}/asked\"";

/// How often the agent that stands there now was asked what it takes.
fn asked(agent: &Agent) -> usize {
    std::fs::read_to_string(agent.file("asked")).unwrap_or_default().lines().count()
}

/// Threads of this process that wait for this agent to say what it takes.
fn waiting(agent: &str) -> usize {
    let threads = std::fs::read_dir("/proc/self/task").expect("there are some");
    let names = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("comm")));
    names.filter(|name| name.as_ref().is_ok_and(|name| name.trim() == agent)).count()
}

#[tokio::test]
async fn a_replaced_agent_that_hangs_is_asked_once_for_all_and_keeps_no_other_waiting() {
    let agent = Agent::new();
    let other = Agent::new();
    std::os::unix::fs::symlink(agent.file("fence_fake"), agent.file("fence_hangs")).expect("a link");
    let named = json!({ "agent": "fence_hangs", "trust_agent": "fence_hangs" });
    let drivers: Vec<_> = (0..DEVICES).map(|_| agent.with(named.clone())).collect();
    let orders = agent.orders(&drivers[0]).await;
    agent.is_replaced(|text| {
        text.replacen(
            "cat <<",
            &format!("{NOTES}; sleep 600 & echo $! >>\"${{0%/*}}/children\"; wait; cat <<"),
            1,
        )
    });
    for _ in 0..3 {
        let reads = drivers.iter().map(|driver| {
            let call = agent.call(&orders, Duration::from_secs(2));
            async move { driver.read_power(&call).await }
        });
        for read in join_all(reads).await {
            let error = read.expect_err("it says nothing");
            assert_eq!((error.kind, error.effect), (ErrorKind::Settings, Effect::DidNotHappen), "{error}");
            assert!(error.detail.contains("does not say in time"), "{error}");
        }
        assert_eq!(
            (asked(&agent), waiting("fence_hangs")),
            (1, 1),
            "once, by one thread, whoever waits for it"
        );
    }
    // Another agent of the same gateway is asked meanwhile, and answers.
    std::fs::copy(other.file("fence_fake"), agent.file("fence_else")).expect("it can be copied");
    let made = agent.with(json!({ "agent": "fence_else", "trust_agent": "fence_else" }));
    let call = agent.call(&orders, Duration::from_secs(60));
    assert_eq!(made.read_power(&call).await.expect("an answer").power, Power::On);
    assert!(agent.children().into_iter().any(runs), "the first says nothing still");
    // Nor does it keep its own off back.
    let call = agent.call(&orders, Duration::from_secs(60));
    drivers[0].power_off(&orders.off().await.expect("an off"), &call).await.expect("an off");
    assert!(!agent.is_on().await);
}

#[tokio::test]
async fn what_a_replaced_agent_cannot_say_is_not_asked_again_at_once() {
    let agent = Agent::new();
    let drivers: Vec<_> = (0..DEVICES).map(|_| agent.driver()).collect();
    let orders = agent.orders(&drivers[0]).await;
    agent.is_replaced(|text| text.replacen("cat <<", &format!("{NOTES}; exit 1; cat <<"), 1));
    for driver in &drivers {
        let call = agent.call(&orders, Duration::from_secs(60));
        let error = driver.read_power(&call).await.expect_err("it says nothing of use");
        assert!(error.detail.contains("does not say what it takes"), "{error}");
    }
    assert_eq!(asked(&agent), 1);
    // One that was put right is another file.
    agent.is_replaced(str::to_owned);
    let call = agent.call(&orders, Duration::from_secs(60));
    assert_eq!(drivers[0].read_power(&call).await.expect("an answer").power, Power::On);
}

#[tokio::test]
async fn an_agent_that_was_replaced_is_asked_what_it_takes_before_it_is_believed() {
    let agent = Agent::new();
    let driver = agent.driver();
    let orders = agent.orders(&driver).await;
    let call = || agent.call(&orders, Duration::from_secs(60));
    agent.is_replaced(str::to_owned);
    assert_eq!(driver.read_power(&call()).await.expect("it is the same").power, Power::On);
    // A parameter that is gone: told by each look, and no reason to let an off be.
    agent.is_replaced(|text| text.replace("parameter name=\"password\"", "parameter name=\"passphrase\""));
    for _ in 0..2 {
        let error = driver.read_power(&call()).await.expect_err("it does not fit");
        assert_eq!((error.kind, error.effect), (ErrorKind::Settings, Effect::DidNotHappen), "{error}");
        let told = ["was replaced", "password_file", "does not know the parameter password"];
        assert!(told.iter().all(|words| error.detail.contains(words)), "{error}");
    }
    let on = orders.on().await.expect("an on");
    let error = driver.power_on(on, &call()).await.expect_err("it might repeat it by itself");
    assert_eq!((error.kind, error.effect), (ErrorKind::Settings, Effect::DidNotHappen), "{error}");
    assert_eq!(agent.commands().await, Some(0));
    driver.power_off(&orders.off().await.expect("an off"), &call()).await.expect("an off is not held up");
    assert!(!agent.is_on().await);
    // One that says it repeats nothing is told so no more.
    agent.is_replaced(|text| {
        text.replace("parameter name=\"retry_on\"", "parameter name=\"something_else\"")
            .replace("[ \"$retry\" = 0 ]", "[ -z \"$retry\" ]")
    });
    assert_eq!(driver.read_power(&call()).await.expect("it fits").power, Power::Off);
    std::fs::remove_file(agent.file("fence_fake")).expect("it is there");
    let error = driver.read_power(&call()).await.expect_err("it is gone");
    assert!(error.kind == ErrorKind::Settings && error.detail.contains("cannot be found"), "{error}");
}
