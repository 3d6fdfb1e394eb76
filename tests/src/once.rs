//! The daemon run to its end: where it refuses to start, or only checks its settings.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::error::{PeerError, Result};
use crate::gateway::Said;
use crate::programs::program;

/// One that ought to end by itself and does not is killed after this.
const LONGEST: Duration = Duration::from_secs(30);

/// Runs the shipped `picketd` over these settings, with further arguments and variables, until it ends by itself.
pub async fn picketd(settings: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Result<Said> {
    let mut command = tokio::process::Command::new(program("picketd")?);
    command.arg("--config").arg(settings).args(arguments).envs(variables.iter().copied());
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let ended = tokio::time::timeout(LONGEST, output).await.map_err(|_elapsed| PeerError::TimedOut {
        what: "picketd refuses to start".to_owned(),
        within: LONGEST,
        seen: "it runs".to_owned(),
    })?;
    let output = ended.map_err(PeerError::io("run picketd"))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) })
}
