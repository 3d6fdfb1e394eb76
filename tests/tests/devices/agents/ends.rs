//! An agent does not outlive the gateway that runs it, nor does what it started.

use std::time::Duration;

use picket_tests::peers::eventually;
use picket_tests::{Gateway, Result, Webhook};

use crate::agents::scene::{Fake, fleet, runs};

const SOON: Duration = Duration::from_secs(60);

/// A gateway whose agent hangs, with a child of its own.
async fn hanging(fake: &Fake) -> Result<(Gateway, Webhook)> {
    let webhook = Webhook::start().await?;
    let gateway = Gateway::start(&fleet(&fake.node(), &webhook)).await?;
    gateway.checked().await?;
    fake.fall_silent();
    let mut caller =
        gateway.command(&["fence", "n1", "--yes", "--reason", "a test"])?.spawn().expect("picket runs");
    let started = eventually("the agent hangs", SOON, || fake.children().into_iter().any(runs)).await;
    let _ = caller.kill();
    let _ = caller.wait();
    started?;
    Ok((gateway, webhook))
}

#[tokio::test]
async fn a_gateway_that_is_killed_takes_its_agents_and_what_they_started_with_it() -> Result<()> {
    let fake = Fake::new();
    let (mut gateway, _webhook) = hanging(&fake).await?;
    gateway.kill();
    eventually("all of it is dead", SOON, || !fake.children().into_iter().any(runs)).await
}

#[tokio::test]
async fn a_gateway_that_stands_still_lets_no_agent_run_past_its_call() -> Result<()> {
    let fake = Fake::new();
    let (mut gateway, _webhook) = hanging(&fake).await?;
    gateway.process()?.freeze();
    eventually("all of it is dead", SOON, || !fake.children().into_iter().any(runs)).await?;
    assert!(gateway.process()?.is_frozen(), "it killed nobody itself");
    gateway.process()?.thaw();
    Ok(())
}

#[tokio::test]
async fn an_off_stays_open_for_the_run_and_for_what_its_operator_vouches_for_after_it() -> Result<()> {
    let (fake, webhook) = (Fake::new(), Webhook::start().await?);
    let gateway = Gateway::start(&fleet(&fake.node(), &webhook)).await?;
    gateway.checked().await?;
    fake.fall_silent_when_told("off");
    let mut caller =
        gateway.command(&["fence", "n1", "--yes", "--reason", "a test"])?.spawn().expect("picket runs");
    let started = eventually("the off hangs", SOON, || !fake.children().is_empty()).await;
    let status = gateway.picket(&["status", "n1", "-o", "json"]).await;
    let _ = caller.kill();
    let _ = caller.wait();
    started?;
    let status = status?;
    // Another gateway that takes over now must not count on less: the run goes on for its call (8 s), and its keeper is late (2 s).
    let lives: Vec<&str> = status.out.split("\"life_s\":").skip(1).collect();
    assert!(!lives.is_empty() && lives.iter().all(|life| life.trim_start().starts_with("17")), "{status:?}");
    assert!(webhook.releases().is_empty());
    Ok(())
}

#[tokio::test]
async fn an_agent_that_was_replaced_and_does_not_fit_any_more_is_told_by_the_next_check() -> Result<()> {
    let (fake, webhook) = (Fake::new(), Webhook::start().await?);
    let gateway = Gateway::start(&fleet(&fake.node(), &webhook)).await?;
    gateway.checked().await?;
    let before = gateway.picket(&["check", "n1"]).await?;
    assert!(!before.out.contains("was replaced"), "{before:?}");
    fake.is_replaced();
    let check = gateway.picket(&["check", "n1"]).await?;
    let told =
        check.out.contains("was replaced") && check.out.contains("does not know the parameter password");
    assert!(told && check.code != 0, "{check:?}");
    let nodes = gateway.picket(&["nodes"]).await?;
    assert!(nodes.out.contains("0/1 not ready"), "{nodes:?}");
    assert!(webhook.releases().is_empty());
    Ok(())
}
