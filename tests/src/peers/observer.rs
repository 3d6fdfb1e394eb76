//! The witness: a process of its own that reads a machine's disk and nothing else (`tests/peers/observer.py`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::{Process, eventually, peer_file};
use crate::error::{PeerError, Result};

/// The kernel stamps a file with the time of its last tick: a write is up to so much later than its stamp.
const TICK: Duration = Duration::from_millis(4);

/// A heartbeat on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The machine's count since it booted.
    pub count: u32,
    /// When the kernel wrote it to the disk's file; up to a tick (4 ms) before the true moment.
    pub written: SystemTime,
    /// When the observer had read it.
    pub seen: SystemTime,
    /// The same on the boot-time clock.
    pub seen_boot: Duration,
}

impl Beat {
    /// Whether its write can have been after `moment`: its stamp is up to a tick too early, and it was written before it
    /// was seen.
    pub fn may_be_after(&self, moment: SystemTime) -> bool {
        self.written + TICK > moment && self.seen > moment
    }
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

    /// Where they stand.
    pub fn log(&self) -> PathBuf {
        self.directory.path().join("beats")
    }

    /// All heartbeats so far, in order. One that was on the disk already when the observer started is the first.
    pub fn beats(&self) -> Vec<Beat> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        // The last line may be half written.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().filter_map(parse).collect()
    }

    /// The last heartbeat.
    pub fn last(&self) -> Option<Beat> {
        self.beats().pop()
    }

    /// Heartbeats that may have been written after `moment`: none that was is left out, one or two from up to a tick
    /// before it may be among them.
    pub fn after(&self, moment: SystemTime) -> Vec<Beat> {
        self.beats().into_iter().filter(|beat| beat.may_be_after(moment)).collect()
    }

    /// Waits until `count` more heartbeats were surely written from now on.
    pub async fn wait_for(&self, count: usize, within: Duration) -> Result<()> {
        let now = SystemTime::now();
        let more = || self.beats().iter().filter(|beat| beat.written > now).count();
        eventually(&format!("{count} more heartbeats"), within, || more() >= count).await
    }

    /// Watches for `time` and returns what may have been written meanwhile: nothing, where a machine is off.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_can_have_been_after_the_moment_counts() {
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let beat = |written, seen| Beat {
            count: 1,
            written: at(written),
            seen: at(seen),
            seen_boot: Duration::ZERO,
        };
        for (written, seen, after) in [
            (1_001, 1_002, true),
            (999, 1_002, true),
            (997, 1_001, true),
            (996, 1_002, false),
            (998, 1_000, false),
        ] {
            assert_eq!(beat(written, seen).may_be_after(at(1_000)), after, "written {written}, seen {seen}");
        }
    }
}
