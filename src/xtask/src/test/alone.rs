//! Whether a run may begin: one at a time on a machine, as root where machines with kubelets are wanted, with enough room.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::{kubernetes, place};

/// Disk for a build and all peers on a machine that has neither, and for a run on one that has both.
const FRESH: u64 = 24 * GIGA;
const WARM: u64 = 8 * GIGA;
/// Memory for the tests that run beside each other: a Kubernetes and an OpenStack among them.
const MEMORY: u64 = 6 * GIGA;
const GIGA: u64 = 1 << 30;

/// Held as long as a run goes on.
#[derive(Debug)]
pub struct Turn(#[expect(dead_code, reason = "it is unlocked where it is closed")] File);

/// Takes the lock of this machine's tests. It is held until the turn is dropped.
///
/// # Errors
/// Another run holds it.
pub fn turn() -> Result<Turn, Failure> {
    let home = place::cache()?;
    std::fs::create_dir_all(&home).map_err(Failure::of(home.display()))?;
    at(&home.join("tests.lock"))
}

fn at(lock: &Path) -> Result<Turn, Failure> {
    // Read by whoever comes second; so it is not emptied before the lock is ours.
    let open = File::options().read(true).write(true).create(true).truncate(false).open(lock);
    let file = open.map_err(Failure::of(lock.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let who = std::fs::read_to_string(lock).unwrap_or_default();
            return Err(Failure::new(format!(
                "other tests run on this machine (process {}): wait until they end, or end that process",
                who.trim()
            )));
        }
        Err(TryLockError::Error(error)) => return Err(Failure::of(lock.display())(error)),
    }
    std::fs::write(lock, std::process::id().to_string()).map_err(Failure::of(lock.display()))?;
    Ok(Turn(file))
}

/// Looks for root, disk and memory, before anything starts.
///
/// # Errors
/// One of them is missing; the sentence says which, and how much is wanted.
pub fn room() -> Result<(), Failure> {
    kubernetes::may_run().map_err(|Failure(_)| {
        Failure::new(
            "the landing set has machines with kubelets, which want root (mounts, namespaces, cgroups): run it as root, in a virtual machine if you \
             like, or name a part that does not: cargo xtask test picket-core",
        )
    })?;
    let target = place::built()?;
    let to_build = if target.join("picketd").exists() { WARM } else { FRESH };
    let target = target.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    for (folder, wanted) in [(target, to_build), (&*std::env::temp_dir(), WARM)] {
        let free = free(folder)?;
        if free < wanted {
            return Err(Failure::new(format!(
                "{} has {} GB free, and the tests want {}: make room, or set CARGO_TARGET_DIR and TMPDIR to a larger disk",
                folder.display(),
                free / GIGA,
                wanted / GIGA
            )));
        }
    }
    let memory = available(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default());
    match memory {
        Some(memory) if memory < MEMORY => Err(Failure::new(format!(
            "{} GB of memory are free, and the tests want {}: end what takes it",
            memory / GIGA,
            MEMORY / GIGA
        ))),
        _ => Ok(()),
    }
}

/// Bytes that may be written there.
fn free(folder: &Path) -> Result<u64, Failure> {
    let told = Command::new("df").arg("-Pk").arg(folder).output().map_err(Failure::of("df"))?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let kilobytes = told.lines().nth(1).and_then(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok());
    kilobytes
        .map(|kilobytes| kilobytes << 10)
        .ok_or(Failure::new(format!("df says nothing of {}", folder.display())))
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_at_once_are_refused_and_the_second_may_come_after_the_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let lock = folder.path().join("lock");
        let first = at(&lock).expect("free");
        let Err(Failure(why)) = at(&lock) else { panic!("it was taken twice") };
        assert!(why.contains(&format!("process {}", std::process::id())), "{why}");
        drop(first);
        assert!(at(&lock).is_ok());
    }

    #[test]
    fn what_the_machine_has_is_read() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
        assert_eq!(available(""), None);
        assert!(free(Path::new("/")).is_ok());
    }
}
