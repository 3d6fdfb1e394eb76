//! What both stories show: commands as the reader would type them, and the words of the observer.

use std::process::Stdio;
use std::time::{Duration, SystemTime};

use picket_tests::peers::{Beat, Observer};
use picket_tests::{PeerError, Result, program};

use crate::stage::{Host, hosts};
use crate::teller::Teller;

/// More than a dozen heartbeats long.
const LISTEN: Duration = Duration::from_millis(1500);
/// How long a machine may take until its heart beats.
pub const BOOT: Duration = Duration::from_secs(60);

/// How both stories begin: the two machines come up, and live.
pub async fn two_machines(teller: &Teller) -> Result<[Host; 2]> {
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
    Ok(hosts)
}

/// Shows a command of `picket`, and runs it before the reader's eyes against these endpoints.
pub async fn picket(teller: &Teller, endpoints: &str, arguments: &[&str]) -> Result<()> {
    let quoted = |word: &&str| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() };
    teller.command(&format!("picket {}", arguments.iter().map(quoted).collect::<Vec<_>>().join(" ")));
    let mut command = tokio::process::Command::new(program("picket")?);
    command.arg("--endpoint").arg(endpoints).args(arguments);
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
    Err(PeerError::Ended { program, status: status.to_string(), output: String::new() })
}

/// The observer's word that a machine lives.
pub async fn heart_beats(teller: &Teller, name: &str, observer: &Observer) -> Result<()> {
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

/// The observer's word that n1 was dead before `moment`, which `what` names.
pub async fn dead_before(teller: &Teller, what: &str, moment: SystemTime, observer: &Observer) -> Result<()> {
    let later = observer.listen(LISTEN).await;
    let after = observer.after(moment);
    let last = observer.last().filter(|_| later.is_empty() && after.is_empty());
    let Some(last) = last else {
        return Err(unproven(format!("no heartbeat after {what}"), &after));
    };
    let before = moment.duration_since(last.written).unwrap_or_default().as_millis();
    let quiet = SystemTime::now().duration_since(last.written).unwrap_or_default().as_secs_f64();
    teller.seen(&format!(
        "the last heartbeat of n1, {}, was written {before} ms before {what}; none since, for {quiet:.1} s",
        last.count
    ));
    Ok(())
}

/// What a BMC does when the mains come back, in its own words.
pub fn stays_off(teller: &Teller, host: &Host) -> Result<()> {
    let policy = match host.bmc.hold()?.get("policy") {
        0 => "always-off",
        1 => "previous",
        2 => "always-on",
        _ => "unknown",
    };
    teller.seen(&format!("the BMC of {} has the power restore policy {policy}", host.name));
    Ok(())
}

/// What was to be seen, and was not.
pub fn unproven(what: String, beats: &[Beat]) -> PeerError {
    PeerError::TimedOut { what, within: LISTEN, seen: format!("{beats:?}") }
}
