//! The daemon as a process, through the harness: started, asked, stopped, killed at a point, and started again.

mod audit;
mod budget;
mod demo;
mod liveness;
mod logs;
mod parents;
mod people;
mod ready;
mod receipts;
mod releases;
mod shared_disk;

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use picket_tests::peers::IpmiSim;
use picket_tests::{Answer, Bmc, Daemon, Fleet, Gateway, Result, Webhook};

const SOON: Duration = Duration::from_secs(60);

/// A BMC, a receiver, and a fleet of one node over both.
async fn one_node() -> Result<(IpmiSim, Webhook, Fleet)> {
    let (bmc, webhook) = (IpmiSim::builder().holds().start().await?, Webhook::start().await?);
    // ipmi_sim's own idle limit: so long the next gateway waits for the end of what a killed one may have sent.
    let device = Bmc::simulated(bmc.address());
    let fleet = Fleet::new().node("n1", &device, &["detach"]);
    let fleet = fleet.webhook("detach", &webhook.url(), "settle = \"0s\"");
    Ok((bmc, webhook, fleet))
}

#[tokio::test]
async fn it_answers_and_ends_when_asked() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let mut gateway = Gateway::start(&fleet).await?;
    gateway.checked().await?;
    let nodes = gateway.picket(&["nodes"]).await?;
    assert_eq!(nodes.code, 0, "{nodes:?}");
    // Nothing but the BMC itself has said whose machine it controls.
    assert!(nodes.out.contains("n1") && nodes.out.contains("1/1 degraded"), "{nodes:?}");
    assert!(gateway.stop().await?.success(), "{}", gateway.log());
    assert_eq!(gateway.picket(&["nodes"]).await?.code, 5, "nobody answers any more");
    Ok(())
}

#[tokio::test]
async fn killed_it_still_knows_which_nodes_are_fenced() -> Result<()> {
    let (bmc, webhook, fleet) = one_node().await?;
    let mut gateway = Gateway::start(&fleet).await?;
    let fenced = gateway.picket(&["fence", "n1", "--yes", "--reason", "a test"]).await?;
    assert_eq!((fenced.code, bmc.is_on()?), (0, false), "{fenced:?}");
    assert_eq!(webhook.releases().len(), 1);
    gateway.kill();
    gateway.begin(&[]).await?;
    let status = gateway.picket(&["status", "n1"]).await?;
    assert!(status.out.contains("released"), "{status:?}");
    let back = gateway.picket(&["unfence", "n1", "--yes", "--reason", "a test"]).await?;
    assert_eq!((back.code, bmc.is_on()?), (0, true), "{back:?}");
    assert_eq!(webhook.releases().len(), 1, "released once");
    Ok(())
}

#[tokio::test]
async fn with_hooks_it_kills_itself_and_the_next_one_goes_on() -> Result<()> {
    let (bmc, webhook, fleet) = one_node().await?;
    let mut gateway = Gateway::of(Daemon::Hooked, &fleet)?;
    let points = gateway.directory().join("points").display().to_string();
    gateway.begin(&[("PICKET_KILL_AT", "sent off"), ("PICKET_POINTS", &points)]).await?;
    let arguments = ["fence", "n1", "--yes", "--reason", "a test"];
    let mut caller = tokio::process::Command::from(gateway.command(&arguments)?);
    let mut caller = caller.kill_on_drop(true).spawn().expect("picket runs");
    let ended = gateway.process()?.wait(SOON).await?;
    assert_eq!(ended.signal(), Some(9));
    gateway.begin(&[("PICKET_POINTS", &points)]).await?;
    assert!(
        caller.wait().await.expect("it ends").success(),
        "the caller found the next one\n{}",
        gateway.log()
    );
    assert!(!bmc.is_on()?);
    assert_eq!(webhook.releases().len(), 1);
    let reached = std::fs::read_to_string(&points).unwrap_or_default();
    assert!(reached.lines().filter(|point| *point == "sent off").count() > 1, "its own off again: {reached}");
    Ok(())
}

#[tokio::test]
async fn a_release_that_is_not_answered_keeps_the_node_fenced() -> Result<()> {
    let (bmc, webhook, fleet) = one_node().await?;
    webhook.answer(Answer::Status(503));
    let gateway = Gateway::start(&fleet).await?;
    let arguments = ["fence", "n1", "--yes", "--reason", "a test", "--until", "confirmed"];
    let fenced = gateway.picket(&arguments).await?;
    assert_eq!((fenced.code, bmc.is_on()?), (0, false), "{fenced:?}");
    webhook.wait_for(2, SOON).await?;
    let status = gateway.picket(&["status", "n1"]).await?;
    assert!(status.out.contains("fenced") && !status.out.contains("released"), "{status:?}");
    webhook.answer(Answer::Complete);
    let released = gateway.picket(&["fence", "n1", "--yes", "--reason", "joins"]).await?;
    assert_eq!(released.code, 0, "{released:?}");
    Ok(())
}
