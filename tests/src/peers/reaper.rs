//! Ends what a killed test run would leave behind (`tests/peers/reaper.sh`).

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::LazyLock;

use parking_lot::Mutex;

use super::peer_file;

/// The only writer to the reaper's pipe; it closes when this process ends, however it does.
static REAPER: LazyLock<Mutex<Option<ChildStdin>>> = LazyLock::new(|| {
    let started = Command::new("sh")
        .arg(peer_file("reaper.sh"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    // Without a reaper the tests are as right as with one; only a killed run leaves processes behind.
    Mutex::new(started.ok().and_then(|mut reaper| reaper.stdin.take()))
});

fn tell(line: std::fmt::Arguments<'_>) {
    let mut pipe = REAPER.lock();
    if let Some(pipe) = pipe.as_mut() {
        // One write a line: it is shorter than a pipe's atomic size.
        let _ = pipe.write_all(format!("{line}\n").as_bytes());
    }
}

/// A process group that lives.
pub(super) fn group(id: u32) {
    tell(format_args!("group {id}"));
}

/// It has ended, or shall outlive us.
pub(super) fn group_ended(id: u32) {
    tell(format_args!("ended {id}"));
}

/// A machine's directory, whose `vm.pid` may live.
pub(super) fn machine(directory: &Path) {
    tell(format_args!("machine {}", directory.display()));
}

/// It is off for good, or shall outlive us.
pub(super) fn machine_closed(directory: &Path) {
    tell(format_args!("closed {}", directory.display()));
}

/// A directory that goes with this process.
pub(super) fn folder(directory: &Path) {
    tell(format_args!("folder {}", directory.display()));
}

/// It goes now.
pub(super) fn folder_removed(directory: &Path) {
    tell(format_args!("removed {}", directory.display()));
}
