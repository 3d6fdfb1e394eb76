//! S18: no secret is logged, however much is to be logged.

use picket_cloud::fakes::Log;

use super::compute::Fault;
use super::{KEY, Scene};

#[tokio::test]
async fn no_secret_is_logged_where_everything_is() {
    let log = Log::of_everything();
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    driver.read_power(&call).await.expect("read");
    driver.power_off(&orders.off().await.expect("an order"), &call).await.expect("taken");
    driver.power_on(orders.on().await.expect("an order"), &call).await.expect("taken");
    let text = log.text();
    for secret in ["hunter2", "assertion", KEY.lines().nth(1).expect("a line")] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
}

/// Whoever stands in between may repeat what was asked: what is secret in it is not shown.
#[tokio::test]
async fn no_secret_is_shown_that_an_answer_repeats() {
    let (scene, driver, orders) = Scene::of_one().await;
    let call = scene.call(&orders);
    driver.read_power(&call).await.expect("read");
    let heard = scene.compute.heard("instances.get").remove(0).head;
    let bearer =
        heard.lines().find_map(|line| line.split_once("Bearer ")).expect("it bears a token").1.trim();
    let page: &'static str = format!("<html>You sent: {heard}</html>").leak();
    let json: &'static str = format!("You sent {bearer}, which may not").leak();
    for fault in [Fault::Say(502, page), Fault::Refuse(403, "forbidden", json)] {
        scene.compute.fail("instances.get", fault.clone());
        let error = driver.read_power(&call).await.expect_err("refused").to_string();
        assert!(error.contains("You sent") && !error.contains(bearer), "{fault:?}: {error}");
        scene.compute.fail("instances.start", fault.clone());
        let on = orders.on().await.expect("an order");
        let error = driver.power_on(on, &call).await.expect_err("refused").to_string();
        assert!(error.contains("You sent") && !error.contains(bearer), "{fault:?}: {error}");
    }
    // The same of a place of tokens, which is told what is signed with the key.
    let other = scene.elsewhere(0);
    scene.compute.fail("/token", Fault::Echo);
    let error = other.read_power(&call).await.expect_err("no token").to_string();
    assert!(error.contains("assertion=[struck out]"), "{error}");
}
