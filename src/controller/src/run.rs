//! The process: its parts, and what ends it.

use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tracing_subscriber::EnvFilter;

use crate::api::Api;
use crate::arguments::{Arguments, Task};
use crate::control::Control;
use crate::event_recorder::EventRecorder;
use crate::fault::Fault;
use crate::fence_request::FenceRequester;
use crate::health::{Health, InitialSync};
use crate::leader_election::LeaderElection;
use crate::medik8s::Medik8sLeases;
use crate::settings::{Faults, Settings};
use crate::{check, crd, gateway, leader_election, measured, watch};

/// So much of what was seen may wait.
const ROOM: usize = 4_096;
/// How long giving up the lease may take.
const RESIGNS: std::time::Duration = std::time::Duration::from_secs(3);

/// Why the controller does not start, or ended. Printed once, at the edge.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the settings are wrong:\n{0}")]
    Settings(#[from] Faults),
    #[error("the API server: {0}")]
    Api(#[from] Fault),
    #[error("this is missing:\n{}", .0.join("\n"))]
    Missing(Vec<String>),
    #[error("gateway: {0}")]
    Certificates(String),
    #[error("controller.listen = {0}: {1}")]
    Listen(SocketAddr, #[source] std::io::Error),
    #[error("cannot start: {0}")]
    Start(#[source] std::io::Error),
    #[error("{0} ended: without it nothing is right any more")]
    Ended(&'static str),
    #[error("cannot be printed: {0}")]
    Print(String),
}

impl Failure {
    /// As in sysexits(3).
    fn code(&self) -> u8 {
        match self {
            Self::Settings(_) => 78,
            Self::Ended(_) | Self::Print(_) => 70,
            Self::Api(_) | Self::Missing(_) | Self::Certificates(_) | Self::Listen(..) | Self::Start(_) => 75,
        }
    }
}

/// The whole program.
pub fn main(arguments: &Arguments) -> ExitCode {
    match begin(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "picket-controller: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

fn begin(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(Task::Crds) = arguments.task {
        let text = crd::yaml().map_err(|error| Failure::Print(error.to_string()))?;
        return std::io::stdout()
            .write_all(text.as_bytes())
            .map_err(|error| Failure::Print(error.to_string()));
    }
    let settings = Settings::read(&arguments.config, |name| std::env::var(name).ok())?;
    log(&settings);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::Start)?;
    runtime.block_on(async {
        let api = Api::new(&settings.login())?;
        match arguments.task {
            Some(_) => match check::check(&settings, &api).await {
                missing if missing.is_empty() => {
                    let _ = writeln!(std::io::stdout(), "everything that is needed is there");
                    Ok(())
                }
                missing => Err(Failure::Missing(missing)),
            },
            None => serve(settings, api).await,
        }
    })
}

/// What is logged. The library that watches warns of what is forbidden, too, in words of its own: each would stand there twice.
fn filter(log: &str) -> EnvFilter {
    EnvFilter::new(format!("kube_runtime=error,{log}"))
}

fn log(settings: &Settings) {
    let filter = filter(&settings.log);
    let builder = tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter);
    // A second one in a process keeps the first one's.
    let _ = match settings.log_json {
        true => builder.json().try_init(),
        false => builder.with_ansi(false).try_init(),
    };
}

async fn serve(settings: Settings, api: Api) -> Result<(), Failure> {
    if let Some(files) = &settings.certificates {
        gateway::tls(files).map_err(Failure::Certificates)?;
    }
    let (mut terminated, mut interrupted) = (
        signal(SignalKind::terminate()).map_err(Failure::Start)?,
        signal(SignalKind::interrupt()).map_err(Failure::Start)?,
    );
    let settings = Arc::new(settings);
    let metrics = measured::metrics();
    let (election, leading) = LeaderElection::new(api.clone(), &settings);
    let synced = Arc::new(InitialSync::default());
    let listener = match settings.listen {
        Some(address) => {
            Some(picket_metrics::http::bind(address).await.map_err(|error| Failure::Listen(address, error))?)
        }
        None => None,
    };
    let others = Arc::new(Medik8sLeases::new(settings.medik8s_leases));
    let (recorder, telling) = EventRecorder::new(
        api.clone(),
        settings.identity.clone(),
        others.clone(),
        leading.clone(),
        metrics.clone(),
        &settings.remediation_namespaces,
    );
    let gateways = gateway::gateways(&settings);
    let requester = FenceRequester {
        api: api.clone(),
        gateways,
        settings: settings.clone(),
        leading: leading.clone(),
        others,
    };
    let control = Control::new(requester, recorder, metrics.clone(), synced.clone());
    let health = Arc::new(Health { metrics, leading, synced });
    let (to_see, seen) = mpsc::channel(ROOM);

    let mut election = tokio::spawn(election.run());
    let telling = tokio::spawn(telling);
    let nodes = tokio::spawn(watch::nodes(api.clone(), to_see.clone()));
    let leases = tokio::spawn(watch::leases(api.clone(), to_see.clone()));
    let policies = tokio::spawn(watch::policies(api.clone(), to_see.clone()));
    let (latest, remediations) = tokio::sync::watch::channel(watch::Remediations::new());
    let wanted = settings.remediation.then(|| settings.remediation_namespaces.clone());
    let remediation_watch = tokio::spawn(watch::remediations(api.clone(), wanted, to_see.clone(), latest));
    let mut control = tokio::spawn(control.run(seen, remediations, to_see));
    let serving = tokio::spawn(async move {
        match listener {
            Some(listener) => picket_metrics::http::serve(listener, health).await,
            None => std::future::pending().await,
        }
    });
    // Whichever ends, of itself or by a defect: half a controller is none.
    let ended = tokio::select! {
        _ = terminated.recv() => None,
        _ = interrupted.recv() => None,
        _ = &mut election => Some("the lease of the leader"),
        _ = telling => Some("telling"),
        _ = nodes => Some("the watch of Nodes"),
        _ = leases => Some("the watch of leases"),
        _ = policies => Some("the watch of FencingPolicies"),
        _ = remediation_watch => Some("the watch of PicketRemediations"),
        _ = &mut control => Some("the control"),
        _ = serving => Some("metrics and health"),
    };
    // Who asks nothing any more gives the lease up.
    control.abort();
    election.abort();
    let resigned = tokio::time::timeout(RESIGNS, leader_election::resign(&api, &settings)).await;
    if let Ok(Err(fault)) = resigned {
        tracing::warn!(%fault, "the lease of the leader is not given up: others wait until it is over");
    }
    ended.map_or(Ok(()), |what| Err(Failure::Ended(what)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_that_watches_tells_nothing_twice_unless_somebody_asks_for_it() {
        let shown = |log| filter(log).to_string();
        assert!(shown("info").contains("kube_runtime=error"), "{}", shown("info"));
        let asked = shown("info,kube_runtime=debug");
        assert!(asked.contains("kube_runtime=debug") && !asked.contains("kube_runtime=error"), "{asked}");
    }
}
