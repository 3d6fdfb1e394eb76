//! A real machine that shows that it lives: qemu and a boot sector that writes a heartbeat.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::{Observer, Truth, built, peer_file, reaper};
use crate::error::{PeerError, Result};

/// The disk: the boot sector, the heartbeat's sector and some room.
const DISK_BYTES: u64 = 1 << 20;

/// Something that was done to the machine, as its power control noted it.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerEvent {
    /// When.
    pub at: SystemTime,
    /// `on`, `off` (the process is gone), `cycle begins`, `cycle ends`.
    pub what: String,
}

impl PowerEvent {
    /// All of a log; none where it is not there yet.
    pub(super) fn read(log: &Path) -> Vec<Self> {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let event = |line: &str| {
            let (at, what) = line.split_once(' ')?;
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs_f64(at.parse().ok()?);
            Some(Self { at, what: what.to_owned() })
        };
        text.lines().filter_map(event).collect()
    }
}

/// A machine. It starts switched off; a BMC over it ([`super::IpmiSimBuilder::machine`]) switches it on.
/// Dropped, it is off for good, whoever still wants it on.
#[derive(Debug)]
pub struct Machine {
    directory: Option<TempDir>,
    path: PathBuf,
}

impl Machine {
    /// A new machine with an empty disk.
    pub fn new() -> Result<Self> {
        for (program, package) in [("qemu-system-x86_64", "qemu-system-x86"), ("setsid", "util-linux")] {
            super::tools::must_have(program, package)?;
        }
        let directory = tempfile::Builder::new()
            .prefix("picket-machine-")
            .tempdir()
            .map_err(PeerError::io("create a machine's directory"))?;
        let path = directory.path().to_owned();
        let disk = path.join("disk.img");
        std::fs::copy(built::boot_sector()?, &disk)
            .and_then(|_| std::fs::OpenOptions::new().write(true).open(&disk))
            .and_then(|file| file.set_len(DISK_BYTES))
            .map_err(PeerError::io(format!("create {}", disk.display())))?;
        reaper::machine(&path);
        Ok(Self { directory: Some(directory), path })
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.path
    }

    /// Its disk, as a file.
    pub fn disk(&self) -> PathBuf {
        self.path.join("disk.img")
    }

    /// Whether its process lives. What the observer sees on the disk says the same, later.
    pub fn lives(&self) -> bool {
        self.process().is_some()
    }

    /// The same for whoever outlives this borrow: a receiver of releases.
    pub fn truth(&self) -> Truth {
        let path = self.path.clone();
        Arc::new(move || process(&path).is_some())
    }

    /// Its process id while it lives.
    pub fn process(&self) -> Option<u32> {
        process(&self.path)
    }

    /// On or off past every BMC: a hand on the machine itself.
    pub async fn force(&self, on: bool) -> Result<()> {
        control(&self.path, &["force", if on { "1" } else { "0" }]).await
    }

    /// Somebody else's power cycle: off now, and on again after `gap`, whatever is commanded in between.
    /// Returns when it is off.
    pub async fn foreign_cycle(&self, gap: Duration) -> Result<()> {
        control(&self.path, &["cycle", &gap.as_secs_f64().to_string()]).await
    }

    /// What was done to it, in order. A machine that is its BMC's own child has no such log.
    pub fn power_events(&self) -> Vec<PowerEvent> {
        PowerEvent::read(&self.power_log())
    }

    /// Where they stand.
    pub fn power_log(&self) -> PathBuf {
        self.path.join("power.log")
    }

    /// A process of its own that watches the heartbeat from outside, from now on.
    pub async fn observe(&self) -> Result<Observer> {
        Observer::watch(&self.disk()).await
    }

    /// Lets it outlive this run; its directory.
    pub fn leave_running(mut self) -> PathBuf {
        reaper::machine_closed(&self.path);
        self.directory.take().map_or_else(PathBuf::new, TempDir::keep)
    }
}

/// `vmctl.sh` for a machine's directory, past the BMC and its faults.
pub(super) async fn control(machine: &Path, verb: &[&str]) -> Result<()> {
    let status = tokio::process::Command::new(peer_file("vmctl.sh"))
        .args([machine, machine])
        .args(verb)
        .stdin(Stdio::null())
        .status()
        .await
        .map_err(PeerError::io("run vmctl.sh"))?;
    if status.success() {
        return Ok(());
    }
    let program = format!("vmctl.sh {}", verb.join(" "));
    Err(PeerError::Ended { program, status: status.to_string(), output: String::new() })
}

/// The process of a machine's directory; `None` where it has ended, and all that was in its namespaces.
pub(super) fn process(path: &Path) -> Option<u32> {
    let id = std::fs::read_to_string(path.join("vm.pid")).ok()?.trim().parse().ok()?;
    // The id may be somebody else's by now. Who has no arguments any more and is no zombie yet is dying, and what lives in its
    // namespaces dies before it has; the kernel's own threads, children of its process 2, never had any.
    let arguments = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
    let is_dying = || {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let mut words = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
        !matches!(words.next(), None | Some("" | "Z" | "X")) && words.next() != Some("2")
    };
    let is_ours = String::from_utf8_lossy(&arguments).contains(&*path.to_string_lossy());
    (is_ours || arguments.is_empty() && is_dying()).then_some(id)
}

impl Drop for Machine {
    fn drop(&mut self) {
        if self.directory.is_none() {
            return;
        }
        // Before the kill: a delayed on of its BMC, or of a power cycle, finds it closed.
        let _ = std::fs::write(self.path.join("closed"), "");
        let _ =
            Command::new(peer_file("vmctl.sh")).args([&self.path, &self.path]).args(["force", "0"]).status();
        reaper::machine_closed(&self.path);
    }
}
