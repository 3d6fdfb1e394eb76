//! The receiver of releases that Picket ships as an example (`deploy/examples/webhook_receiver.py`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::error::{PeerError, Result};
use crate::peers::{Place, Process, eventually, peer_file};

/// A running example receiver on loopback.
#[derive(Debug)]
pub struct ExampleReceiver {
    process: Process,
    // Removed after the process has ended.
    directory: TempDir,
    url: String,
}

impl ExampleReceiver {
    /// Starts it on a free port, and waits until it listens.
    pub async fn start() -> Result<Self> {
        let mut command = Command::new("python3");
        command.arg(script());
        Self::begin(command, directory()?, "127.0.0.1:0").await
    }

    /// Starts it on a host of a [`crate::peers::Network`], on that port, with a journal.
    pub async fn within(place: &Place, port: u16) -> Result<Self> {
        let directory = directory()?;
        let mut command = place.command("python3");
        command.arg(peer_file("receiver_journal.py")).arg(script()).arg(journal(&directory));
        Self::begin(command, directory, &format!("{}:{port}", place.address())).await
    }

    async fn begin(mut command: Command, directory: TempDir, listen: &str) -> Result<Self> {
        command
            .args(["--without-token", "--listen", listen, "--state"])
            .arg(directory.path().join("state.json"));
        let mut process = Process::start(command, &directory.path().join("receiver.log"), "python3")?;
        let mut place = None;
        eventually("the example receiver listens", Duration::from_secs(20), || {
            let log = process.log();
            place = log.lines().find_map(|line| line.strip_prefix("listening on ")).map(str::to_owned);
            place.is_some() || process.ended().is_some()
        })
        .await?;
        process.still_runs()?;
        let url = format!("http://{}/release", place.unwrap_or_default());
        Ok(Self { process, directory, url })
    }

    /// Where releases are to be posted.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its process, to be frozen.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// What it printed of the requests that it got.
    pub fn said(&self) -> String {
        self.process
            .log()
            .lines()
            .filter(|line| !line.starts_with("listening on "))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// What it did with each request and when, where it keeps a journal (`tests/peers/receiver_journal.py`).
    pub fn journal(&self) -> PathBuf {
        journal(&self.directory)
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/examples/webhook_receiver.py")
}

fn journal(directory: &TempDir) -> PathBuf {
    directory.path().join("journal")
}

fn directory() -> Result<TempDir> {
    let made = tempfile::Builder::new().prefix("picket-receiver-").tempdir();
    made.map_err(PeerError::io("create a receiver's directory"))
}
