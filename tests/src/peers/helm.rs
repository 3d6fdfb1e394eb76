//! helm, the real one, which is built beside the tests' Kubernetes.

use std::process::{Command, Stdio};

use super::HANGS;
use super::kubernetes::helm_program;
use crate::error::{PeerError, Result};
use crate::gateway::Said;

/// Runs it without a cluster, to its end.
pub async fn helm(arguments: &[&str]) -> Result<Said> {
    run(Command::new(helm_program()?), arguments).await
}

/// Runs it, as far as it is told already, with these arguments.
pub(super) async fn run(command: Command, arguments: &[&str]) -> Result<Said> {
    // What it keeps for its user is nobody's here.
    let home = tempfile::tempdir().map_err(PeerError::io("create helm's directory"))?;
    let mut command = tokio::process::Command::from(command);
    for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(name, home.path());
    }
    command.args(arguments).env_remove("KUBECONFIG").stdin(Stdio::null()).kill_on_drop(true);
    let what = format!("helm {}", arguments.join(" "));
    let output = tokio::time::timeout(HANGS, command.output())
        .await
        .map_err(|_elapsed| PeerError::TimedOut { what: what.clone(), within: HANGS, seen: String::new() })?;
    output.map(Said::of).map_err(PeerError::io(&what))
}
