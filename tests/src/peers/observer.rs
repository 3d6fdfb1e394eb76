//! The witness: a process of its own that reads a machine's disk and nothing else (`tests/peers/observer.py`).

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::{Process, eventually, peer_file};
use crate::error::{PeerError, Result};

/// A heartbeat on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The machine's count since it booted.
    pub count: u32,
    /// When the kernel wrote it to the disk's file; as fine as the kernel's tick (4 ms at most).
    pub written: SystemTime,
    /// When the observer had read it.
    pub seen: SystemTime,
    /// The same on the boot-time clock.
    pub seen_boot: Duration,
}

/// A running observer. It notes every heartbeat from its start until it is dropped.
#[derive(Debug)]
pub struct Observer {
    process: Process,
    directory: TempDir,
}

impl Observer {
    /// Watches that disk; returns when it does.
    pub async fn watch(disk: &Path) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("picket-observer-")
            .tempdir()
            .map_err(PeerError::io("create an observer's directory"))?;
        let mut command = Command::new("python3");
        command.arg(peer_file("observer.py")).arg(disk).arg(directory.path().join("beats"));
        let process = Process::start(command, &directory.path().join("observer.log"), "python3")?;
        let mut observer = Self { process, directory };
        let log = observer.directory.path().join("beats");
        eventually("the observer watches", Duration::from_secs(20), || log.exists()).await?;
        observer.process.still_runs()?;
        Ok(observer)
    }

    /// All heartbeats so far, in order. One that was on the disk already when the observer started is the first.
    pub fn beats(&self) -> Vec<Beat> {
        let text = std::fs::read_to_string(self.directory.path().join("beats")).unwrap_or_default();
        // The last line may be half written.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().filter_map(parse).collect()
    }

    /// The last heartbeat.
    pub fn last(&self) -> Option<Beat> {
        self.beats().pop()
    }

    /// Heartbeats that were written, or at the latest seen, after `moment`.
    pub fn after(&self, moment: SystemTime) -> Vec<Beat> {
        self.beats().into_iter().filter(|beat| beat.written > moment).collect()
    }

    /// Waits until `count` more heartbeats were written from now on.
    pub async fn wait_for(&self, count: usize, within: Duration) -> Result<()> {
        let now = SystemTime::now();
        eventually(&format!("{count} more heartbeats"), within, || self.after(now).len() >= count).await
    }

    /// Watches for `time` and returns what was written meanwhile: nothing, where a machine is off.
    pub async fn listen(&self, time: Duration) -> Vec<Beat> {
        let now = SystemTime::now();
        tokio::time::sleep(time).await;
        self.after(now)
    }
}

fn parse(line: &str) -> Option<Beat> {
    let mut numbers = line.split(' ').map(|word| word.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    let wall = |nanos| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
    Some(Beat {
        count: u32::try_from(next()?).ok()?,
        written: wall(next()?),
        seen: wall(next()?),
        seen_boot: Duration::from_nanos(next()?),
    })
}
