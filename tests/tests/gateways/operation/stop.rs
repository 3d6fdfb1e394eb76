//! SIGTERM in the middle of things: what was sent ends, and the next start goes on by the crash table.

use std::time::Duration;

use picket_tests::peers::eventually;
use picket_tests::{Answer, Daemon, Gateway, Result};
use tokio::time::Instant;

use crate::operation::{SOON, one_node};

/// Fences n1 with a daemon that waits at `point`, tells it to end there, and lets it go on; the next start ends the fence.
async fn told_to_end_at(point: &str) -> Result<(String, usize)> {
    let (bmc, webhook, fleet) = one_node().await?;
    let mut gateway = Gateway::of(Daemon::Hooked, &fleet)?;
    let pause = gateway.directory().join("pause");
    let points = gateway.directory().join("points");
    let (at, file) = (pause.display().to_string(), points.display().to_string());
    gateway
        .begin(&[("PICKET_PAUSE_AT", point), ("PICKET_PAUSE_FILE", &at), ("PICKET_POINTS", &file)])
        .await?;
    let arguments = ["fence", "n1", "--yes", "--reason", "a test", "--key", "k1"];
    let mut caller = tokio::process::Command::from(gateway.command(&arguments)?);
    let mut caller = caller.kill_on_drop(true).spawn().expect("picket runs");
    eventually("the point is reached", SOON, || pause.exists()).await?;
    gateway.process()?.signal(rustix::process::Signal::TERM);
    eventually("it is told", SOON, || gateway.log().contains("stopping")).await?;
    std::fs::remove_file(&pause).expect("it is there");
    let ended = gateway.process()?.wait(SOON).await?;
    assert!(ended.success(), "{ended}\n{}", gateway.log());
    let reached = std::fs::read_to_string(&points).unwrap_or_default();
    let sent = webhook.releases().len();
    gateway.begin(&[]).await?;
    let _ = caller.wait().await;
    let again = gateway.picket(&arguments).await?;
    assert_eq!((again.code, bmc.is_on()?), (0, false), "{again:?}\n{}", gateway.log());
    let status = gateway.picket(&["status", "n1"]).await?;
    assert!(status.out.contains("released"), "{status:?}");
    Ok((reached, sent))
}

#[tokio::test]
async fn an_off_that_is_being_sent_ends() -> Result<()> {
    let (reached, _) = told_to_end_at("sending off").await?;
    assert!(reached.lines().any(|point| point == "sent off"), "{reached}");
    assert!(!reached.lines().any(|point| point == "sending release"), "nothing was begun: {reached}");
    Ok(())
}

#[tokio::test]
async fn a_release_that_is_being_sent_ends_and_is_stored() -> Result<()> {
    let (reached, sent) = told_to_end_at("sending release").await?;
    assert_eq!(sent, 1);
    let points: Vec<&str> = reached.lines().collect();
    assert!(points.contains(&"sent release") && points.contains(&"saved release_progress"), "{reached}");
    Ok(())
}

#[tokio::test]
async fn told_twice_it_ends_at_once() -> Result<()> {
    let (_bmc, webhook, fleet) = one_node().await?;
    webhook.answer(Answer::Silence);
    let mut gateway = Gateway::start(&fleet).await?;
    let mut caller = gateway.command(&["fence", "n1", "--yes", "--reason", "a test"])?;
    let _caller =
        tokio::process::Command::from(std::mem::replace(&mut caller, std::process::Command::new("true")))
            .kill_on_drop(true)
            .spawn()
            .expect("picket runs");
    webhook.wait_for(1, SOON).await?;
    gateway.process()?.signal(rustix::process::Signal::TERM);
    eventually("it is told", SOON, || gateway.log().contains("what was sent is let end")).await?;
    let told = Instant::now();
    gateway.process()?.signal(rustix::process::Signal::TERM);
    let ended = gateway.process()?.wait(SOON).await?;
    assert!(ended.success() && told.elapsed() < Duration::from_secs(6), "{ended} {:?}", told.elapsed());
    assert!(gateway.log().contains("told twice to stop"), "{}", gateway.log());
    Ok(())
}
