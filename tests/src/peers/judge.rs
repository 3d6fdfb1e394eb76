//! Who decides whether a run was right: a process of its own that reads what observers and peers noted (`tests/peers/judge.py`).

use std::path::Path;
use std::process::Stdio;

use serde::Deserialize;

use super::peer_file;
use crate::error::{PeerError, Result};

/// What it found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Verdict {
    /// What must never be, in words; empty: the run was right.
    pub violations: Vec<String>,
    /// How often volumes were let go.
    pub releases: usize,
    /// How often the receiver refused.
    pub refused: usize,
    /// How often it was asked again for what it had let go.
    pub repeated: usize,
    /// How many heartbeats were seen.
    pub beats: usize,
    /// For each release, how many milliseconds before it the last heartbeat was written.
    pub margin_ms: Vec<Option<u64>>,
}

/// A node's logs: its observer's, and that of its machine's power control.
#[derive(Clone, Copy, Debug)]
pub struct Logs<'a> {
    /// The node.
    pub node: &'a str,
    /// [`super::Observer::log`].
    pub beats: &'a Path,
    /// [`super::Machine::power_log`].
    pub power: &'a Path,
}

/// Judges by the receiver's journal, by what the caller noted before it asked, and by each node's logs.
pub async fn judge(releases: &Path, asked: &Path, nodes: &[Logs<'_>]) -> Result<Verdict> {
    let mut command = tokio::process::Command::new("python3");
    command.arg(peer_file("judge.py")).args([releases, asked]).stdin(Stdio::null()).kill_on_drop(true);
    for node in nodes {
        command.arg(format!("{}={}:{}", node.node, node.beats.display(), node.power.display()));
    }
    let output = command.output().await.map_err(PeerError::io("run judge.py"))?;
    serde_json::from_slice(&output.stdout).map_err(|error| PeerError::Ended {
        program: "judge.py".to_owned(),
        status: error.to_string(),
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
