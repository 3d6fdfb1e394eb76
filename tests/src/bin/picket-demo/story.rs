//! The story itself.

use std::time::SystemTime;

use picket_proto::v1::{Fence, ListFencesRequest};
use picket_tests::{Gateway, PeerError, Result};

use crate::showing::{BOOT, dead_before, heart_beats, picket, stays_off, two_machines, unproven};
use crate::stage::Stage;
use crate::teller::Teller;

/// Tells it from the start to the end.
pub async fn tell(teller: &Teller, keep: bool) -> Result<()> {
    let hosts = two_machines(teller).await?;

    teller.chapter("A gateway, on its embedded store");
    let stage = Stage::build(hosts).await?;
    let endpoint = stage.gateway.endpoint();
    let settings = std::fs::read_to_string(stage.gateway.settings_file());
    teller.command(&format!("picketd --config {}", stage.gateway.settings_file().display()));
    teller.say("with these settings. They say that the BMCs are simulated, so it lets no real volume go, and says so in every answer:");
    teller.quote(&settings.unwrap_or_default());
    picket(teller, &endpoint, &["nodes"]).await?;

    teller.chapter("n1 is to be fenced");
    teller.say("Off by its BMC, held off, read off again and again, and only then its volumes are let go.");
    picket(teller, &endpoint, &["fence", "n1", "--yes", "--reason", "demonstration"]).await?;
    let fence = last_fence(&stage.gateway).await?;
    dead_before(teller, "the confirmation", confirmed_at(&fence)?, &stage.hosts[0].observer).await?;
    stays_off(teller, &stage.hosts[0])?;
    heart_beats(teller, "n2", &stage.hosts[1].observer).await?;

    teller.chapter("What is kept of it");
    picket(teller, &endpoint, &["history", "n1"]).await?;

    teller.chapter("n1 comes back");
    picket(teller, &endpoint, &["unfence", "n1", "--yes", "--reason", "the demonstration is over"]).await?;
    stage.hosts[0].observer.wait_for(3, BOOT).await?;
    heart_beats(teller, "n1", &stage.hosts[0].observer).await?;
    stays_off(teller, &stage.hosts[0])?;
    picket(teller, &endpoint, &["nodes"]).await?;

    teller.chapter("What to try next");
    if keep { kept(teller, stage) } else { ended(teller) }
}

fn ended(teller: &Teller) -> Result<()> {
    teller.say("cargo xtask demo --keep      leaves it running: fence n2 yourself, kill a BMC, kill the gateway in the middle");
    teller.say("cargo xtask demo --ha        three gateways, a webhook, and the one that leads is killed in the middle of a fence");
    teller.say("cargo xtask test             everything that must hold, against these peers and worse ones");
    teller.say("docs/bare-metal.md           five minutes to a first real node");
    Ok(())
}

fn kept(teller: &Teller, stage: Stage) -> Result<()> {
    let programs = std::env::var("PICKET_BIN_DIR").unwrap_or_else(|_| "target/debug".to_owned());
    let exports = format!("export PATH={programs}:$PATH PICKET_ENDPOINT={}", stage.gateway.endpoint());
    let bmc = stage.hosts[1].bmc.address();
    let disk = stage.hosts[1].machine.disk();
    let stop = stage.leave_running()?;
    teller.say("It runs on. Copy this first, here or in another shell:");
    teller.copy(&exports);
    teller.say("Then, for example:");
    teller.copy("picket fence n2 --reason 'my turn'");
    teller.copy("picket status n2");
    teller.copy("picket history n2 --output json");
    teller.copy("picket unfence n2 --reason 'and back'");
    teller.say("The heartbeat of n2, on its disk, and what its BMC says to another client:");
    teller.copy(&format!("hexdump -C -s 512 -n 8 {}", disk.display()));
    let (host, port) = (bmc.ip(), bmc.port());
    teller.copy(&format!("ipmitool -I lanplus -C 3 -H {host} -p {port} -U admin -P secret12 chassis status"));
    teller.say("To end it all:");
    teller.copy(&format!("sh {}", stop.display()));
    Ok(())
}

/// The newest fence, from the gateway.
async fn last_fence(gateway: &Gateway) -> Result<Fence> {
    let failed = |output: String| PeerError::Ended {
        program: "ListFences".to_owned(),
        status: "no fence with evidence".to_owned(),
        output,
    };
    let answer = gateway.client().await?.list_fences(ListFencesRequest::default()).await;
    let fences = answer.map_err(|status| failed(status.to_string()))?.into_inner().fences;
    fences.into_iter().find(|fence| fence.evidence.is_some()).ok_or_else(|| failed(String::new()))
}

/// When a fence was confirmed.
fn confirmed_at(fence: &Fence) -> Result<SystemTime> {
    let confirmed = fence.evidence.as_ref().and_then(|evidence| evidence.confirmed_at);
    match confirmed.map(SystemTime::try_from) {
        Some(Ok(time)) => Ok(time),
        _ => Err(unproven("the fence says when it was confirmed".to_owned(), &[])),
    }
}
