//! Programs run to their end: the daemon where it refuses to start, or only checks its settings; the command line.

use std::path::Path;
use std::process::Stdio;

use crate::error::{PeerError, Result};
use crate::gateway::Said;
use crate::peers::HANGS;
use crate::programs::program;

/// Runs the shipped `picketd` over these settings, with further arguments and variables, until it ends by itself.
pub async fn picketd(settings: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Result<Said> {
    let mut command = tokio::process::Command::new(program("picketd")?);
    command.arg("--config").arg(settings).args(arguments).envs(variables.iter().copied());
    run(command, "picketd refuses to start").await
}

/// Runs the shipped `picket` with these arguments and nothing of this process's settings, until it ends.
pub async fn picket(arguments: &[&str]) -> Result<Said> {
    let mut command = tokio::process::Command::new(program("picket")?);
    for name in ["PICKET_ENDPOINT", "PICKET_CONTEXT", "PICKET_CA_FILE", "PICKET_CERT_FILE", "PICKET_KEY_FILE"]
    {
        command.env_remove(name);
    }
    command.args(arguments);
    run(command, "picket ends").await
}

/// The settings that `picket pki init` told to paste, without the socket: a test's gateway has one of its own.
///
/// # Panics
/// It told of none.
pub fn pasted(said: &Said) -> String {
    let (_, rest) =
        said.out.split_once("(/etc/picket/conf.d/tls.toml):\n").unwrap_or_else(|| panic!("{said:?}"));
    let (settings, _) = rest.split_once("Into a caller's file").unwrap_or_else(|| panic!("{said:?}"));
    assert!(settings.contains("\nunix = \"/run/picket/picket.sock\""), "the socket stays: {settings}");
    settings.lines().filter(|line| !line.starts_with("unix = ")).map(|line| format!("{line}\n")).collect()
}

/// Runs the shipped `fence_picket` with these arguments, until it ends.
pub async fn fence_picket(arguments: &[&str]) -> Result<Said> {
    let mut command = tokio::process::Command::new(program("fence_picket")?);
    for name in ["PICKET_ENDPOINT", "PICKET_CONTEXT"] {
        command.env_remove(name);
    }
    command.args(arguments);
    run(command, "fence_picket ends").await
}

async fn run(mut command: tokio::process::Command, what: &str) -> Result<Said> {
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let ended = tokio::time::timeout(HANGS, output).await.map_err(|_elapsed| PeerError::TimedOut {
        what: what.to_owned(),
        within: HANGS,
        seen: "it runs".to_owned(),
    })?;
    Ok(Said::of(ended.map_err(PeerError::io("run a program"))?))
}
