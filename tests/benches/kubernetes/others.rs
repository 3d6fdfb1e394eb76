//! As people do it without Picket.

use std::time::{Duration, SystemTime};

use picket_tests::peers::{Kubernetes, KubernetesMachine, OPERATOR, PASSWORD, PowerWord, until};

use crate::edge::Wrong;
use crate::options::Way;
use crate::stage::{Did, OUT_OF_SERVICE, Stage};
use crate::turn::Turn;

/// For how long a Node must have been not Ready: what a policy of Picket's says by default.
const PATIENCE: Duration = Duration::from_secs(20);
/// For how long it is looked what becomes of it when nobody does anything.
const NOTHING: Duration = Duration::from_secs(120);
const WITHIN: Duration = Duration::from_secs(120);

/// In one of the other ways.
pub async fn let_go(way: Way, stage: &Stage<'_>) -> Result<Turn, Wrong> {
    let since = stage.not_ready().await?;
    // kube-fencing asks at once, by default.
    let patience = if way == Way::Reboot { Duration::ZERO } else { PATIENCE };
    until("it is not Ready for long enough", WITHIN, async || {
        Ok(since.elapsed().unwrap_or_default() >= patience)
    })
    .await?;
    let asked = SystemTime::now();
    match way {
        Way::Reboot => reboot(stage.here, stage.cluster).await?,
        _ => off(stage.here).await?,
    }
    let proven = SystemTime::now();
    match way {
        Way::Picket => return Err("Picket has a way of its own".into()),
        Way::ByHand => {
            delete_by_force(stage.cluster, &["pod", &stage.database.pod()]).await?;
            taint(stage).await?;
        }
        Way::Taint => taint(stage).await?,
        Way::Reboot => flush(stage.cluster, stage.here).await?,
    }
    stage.seen(Did { asked, proven, settled: proven }).await
}

async fn off(machine: &KubernetesMachine) -> Result<(), Wrong> {
    machine.ipmitool().run("chassis power off").await?;
    let is_off = async || Ok(machine.ipmitool().power().await? == PowerWord::Off);
    Ok(until("its BMC says off", WITHIN, is_off).await?)
}

async fn taint(stage: &Stage<'_>) -> Result<(), Wrong> {
    let taint = format!("{OUT_OF_SERVICE}=nodeshutdown:NoExecute");
    stage.cluster.kubectl(&["taint", "node", stage.here.name(), &taint]).await?;
    Ok(())
}

async fn delete_by_force(cluster: &Kubernetes, what: &[&str]) -> Result<(), Wrong> {
    cluster.kubectl(&[&["delete", "--grace-period=0", "--force", "--wait=false"], what].concat()).await?;
    Ok(())
}

/// The agent that kube-fencing is told to run for a BMC, with what it does where nothing else is said: off, seen, and on again.
async fn reboot(machine: &KubernetesMachine, cluster: &Kubernetes) -> Result<(), Wrong> {
    let address = machine.bmc().address();
    let mut agent = tokio::process::Command::from(cluster.place().command("fence_ipmilan"));
    agent.args(["--lanplus", "--username", OPERATOR, "--password", PASSWORD, "--action", "reboot"]);
    agent.args(["--privlvl", "operator", "--cipher", "3", "--ip", &address.ip().to_string()]);
    agent.args(["--ipport", &address.port().to_string()]);
    let ended = agent.kill_on_drop(true).output().await?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(format!("fence_ipmilan: {}", String::from_utf8_lossy(&ended.stderr)).into()),
    }
}

/// What kube-fencing does after its agent has succeeded (`fencing/mode: flush`, the default), but for the Job in which it runs the agent:
/// pods by force, VolumeAttachments, and what the Node's status says of volumes.
async fn flush(cluster: &Kubernetes, machine: &KubernetesMachine) -> Result<(), Wrong> {
    let of = format!("--field-selector=spec.nodeName={}", machine.name());
    delete_by_force(cluster, &["pods", "--all-namespaces", &of]).await?;
    let attached = format!(
        "jsonpath={{range .items[?(@.spec.nodeName==\"{}\")]}}{{.metadata.name}} {{end}}",
        machine.name()
    );
    let attached = cluster.kubectl(&["get", "volumeattachments", "-o", &attached]).await?;
    for one in attached.split_whitespace() {
        cluster.kubectl(&["delete", "volumeattachment", one, "--wait=false", "--ignore-not-found"]).await?;
    }
    let patch = r#"{"status":{"volumesAttached":null,"volumesInUse":null}}"#;
    let patch = ["--subresource=status", "--type=merge", "-p", patch];
    cluster.kubectl(&[&["patch", "node", machine.name()], &patch[..]].concat()).await?;
    Ok(())
}

/// Nobody does anything: the pod stays where it is, and nobody else has its volume.
///
/// # Errors
/// The volume was detached, or the pod ran elsewhere: what the others are compared with is not so.
pub async fn nothing(cluster: &Kubernetes) -> Result<(), Wrong> {
    let stage = Stage::set(cluster, "left-alone").await?;
    let not_ready = stage.not_ready().await?;
    stage.database.is_terminating().await?;
    let (here, killed) = (stage.here.name(), stage.killed);
    let mut moved = None;
    until("nothing happens", NOTHING * 2, async || {
        moved = moved_by_itself(&stage);
        Ok(moved.is_some() || killed.elapsed().unwrap_or_default() >= NOTHING)
    })
    .await?;
    let from = not_ready.duration_since(killed).unwrap_or_default().as_secs_f64();
    if let Some(moved) = moved {
        return Err(format!(
            "without anybody: not Ready after {from:.1} s, and {moved}, which was not to be"
        )
        .into());
    }
    stage.database.still_writes(here).await?;
    println!(
        "  without anybody: not Ready after {from:.1} s, Terminating, and so it was after {} s: it writes on {here}, and nobody else \
         has its volume (kube-controller-manager never lets it go)",
        NOTHING.as_secs()
    );
    Ok(())
}

/// What became of the volume or the pod since the kubelet was killed; `None`: both are where they were.
fn moved_by_itself(stage: &Stage<'_>) -> Option<String> {
    let (here, killed) = (stage.here.name(), stage.killed);
    let calls = stage.database.csi_calls();
    let detached = calls.iter().any(|call| call.at > killed && call.what == "detach");
    if detached {
        return Some(format!("its volume WAS DETACHED from {here}"));
    }
    let writers = stage.database.writers().after(killed);
    let elsewhere = writers.0.iter().find(|write| write.node != here)?;
    Some(format!("its pod RAN ELSEWHERE, on {}", elsewhere.node))
}
