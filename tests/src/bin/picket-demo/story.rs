//! The story itself.

use std::process::Stdio;
use std::time::{Duration, SystemTime};

use picket_proto::v1::{Fence, ListFencesRequest};
use picket_tests::peers::{Beat, Observer};
use picket_tests::{Gateway, PeerError, Result};

use crate::stage::{Host, Stage, hosts};
use crate::teller::Teller;

/// More than a dozen heartbeats long.
const LISTEN: Duration = Duration::from_millis(1500);
const BOOT: Duration = Duration::from_secs(60);

/// Tells it from the start to the end.
pub async fn tell(teller: &Teller, keep: bool) -> Result<()> {
    teller.chapter("Two machines, each behind a BMC");
    teller.say("Each is a real virtual machine (qemu) whose only program writes a counter to its disk about nine times a");
    teller.say("second: its heartbeat. Before each stands OpenIPMI's BMC simulator, an IPMI 2.0 BMC that we did not write.");
    let hosts = hosts().await?;
    for host in &hosts {
        let process = host.machine.process().unwrap_or_default();
        teller.say(&format!("{}: process {process}, BMC at {}", host.name, host.bmc.address()));
    }
    heart_beats(teller, "n1", &hosts[0].observer).await?;
    stays_off(teller, &hosts[0])?;

    teller.chapter("A gateway, on its embedded store");
    let stage = Stage::build(hosts).await?;
    let settings = std::fs::read_to_string(stage.gateway.settings_file());
    teller.command(&format!("picketd --config {}", stage.gateway.settings_file().display()));
    teller.say("with these settings:");
    teller.quote(&settings.unwrap_or_default());
    picket(teller, &stage.gateway, &["nodes"]).await?;

    teller.chapter("n1 is to be fenced");
    teller.say("Off by its BMC, held off, read off again and again, and only then its volumes are let go.");
    picket(teller, &stage.gateway, &["fence", "n1", "--yes", "--reason", "demonstration"]).await?;
    let fence = last_fence(&stage.gateway).await?;
    dead_since(teller, &fence, &stage.hosts[0].observer).await?;
    stays_off(teller, &stage.hosts[0])?;
    heart_beats(teller, "n2", &stage.hosts[1].observer).await?;

    teller.chapter("What the storage was told");
    teller.say("A receiver of webhooks (deploy/examples/webhook_receiver.py) printed:");
    teller.quote(&stage.receiver.said());

    teller.chapter("What is kept of it");
    picket(teller, &stage.gateway, &["history", "n1"]).await?;

    teller.chapter("n1 comes back");
    picket(teller, &stage.gateway, &["unfence", "n1", "--yes", "--reason", "the demonstration is over"])
        .await?;
    stage.hosts[0].observer.wait_for(3, BOOT).await?;
    heart_beats(teller, "n1", &stage.hosts[0].observer).await?;
    stays_off(teller, &stage.hosts[0])?;
    picket(teller, &stage.gateway, &["nodes"]).await?;

    teller.chapter("What to try next");
    if keep { kept(teller, stage) } else { ended(teller) }
}

fn ended(teller: &Teller) -> Result<()> {
    teller.say("cargo xtask demo --keep      leaves it running: fence n2 yourself, kill a BMC, kill the gateway in the middle");
    teller.say("cargo xtask test             everything that must hold, against these peers and worse ones");
    teller.say("README.md                    five minutes to a first real node");
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

/// Shows a command of `picket`, and runs it before the reader's eyes.
async fn picket(teller: &Teller, gateway: &Gateway, arguments: &[&str]) -> Result<()> {
    let quoted = |word: &&str| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() };
    teller.command(&format!("picket {}", arguments.iter().map(quoted).collect::<Vec<_>>().join(" ")));
    let mut command = tokio::process::Command::from(gateway.command(arguments)?);
    let status = command
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await
        .map_err(PeerError::io("run picket"))?;
    if status.success() {
        return Ok(());
    }
    let program = format!("picket {}", arguments.join(" "));
    Err(PeerError::Ended { program, status: status.to_string(), output: gateway.log() })
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

/// The observer's word that a machine lives.
async fn heart_beats(teller: &Teller, name: &str, observer: &Observer) -> Result<()> {
    let beats = observer.listen(LISTEN).await;
    match (beats.first(), beats.last()) {
        (Some(first), Some(last)) => {
            let seconds = LISTEN.as_secs_f64();
            let (from, to) = (first.count, last.count);
            teller.seen(&format!("{name} lives: in {seconds} s its heartbeat went from {from} to {to}"));
            Ok(())
        }
        _ => Err(unproven(format!("the heart of {name} beats"), &beats)),
    }
}

/// The observer's word that a machine was dead before it was said to be.
async fn dead_since(teller: &Teller, fence: &Fence, observer: &Observer) -> Result<()> {
    let confirmed = fence.evidence.as_ref().and_then(|evidence| evidence.confirmed_at);
    let confirmed: SystemTime = match confirmed.map(SystemTime::try_from) {
        Some(Ok(time)) => time,
        _ => return Err(unproven("the fence says when it was confirmed".to_owned(), &[])),
    };
    let later = observer.listen(LISTEN).await;
    let after = observer.after(confirmed);
    let last = observer.last().filter(|_| later.is_empty() && after.is_empty());
    let Some(last) = last else {
        return Err(unproven("no heartbeat after the confirmation".to_owned(), &after));
    };
    let before = confirmed.duration_since(last.written).unwrap_or_default().as_millis();
    let quiet = SystemTime::now().duration_since(last.written).unwrap_or_default().as_secs_f64();
    teller.seen(&format!(
        "the last heartbeat of n1, {}, was written {before} ms before the confirmation; none since, for {quiet:.1} s",
        last.count
    ));
    Ok(())
}

/// What a BMC does when the mains come back, in its own words.
fn stays_off(teller: &Teller, host: &Host) -> Result<()> {
    let policy = match host.bmc.hold()?.get("policy") {
        0 => "always-off",
        1 => "previous",
        2 => "always-on",
        _ => "unknown",
    };
    teller.seen(&format!("the BMC of {} has the power restore policy {policy}", host.name));
    Ok(())
}

fn unproven(what: String, beats: &[Beat]) -> PeerError {
    PeerError::TimedOut { what, within: LISTEN, seen: format!("{beats:?}") }
}
