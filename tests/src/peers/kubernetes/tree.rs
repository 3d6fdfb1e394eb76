//! All processes of a machine, as the real machine sees them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A process and all that came of it. Who loses its parent within a machine gets one of the machine's: nobody leaves the tree.
pub(super) fn of(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for id in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let id = id.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some((id, parent)) = id.and_then(|id| Some((id, stat(id)?.1))) {
            children.entry(parent).or_default().push(id);
        }
    }
    let mut all = vec![root];
    let mut next = 0;
    while let Some(id) = all.get(next) {
        all.extend(children.remove(id).unwrap_or_default());
        next += 1;
    }
    all
}

/// A process's state and its parent: proc_pid_stat(5).
fn stat(id: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // They follow the name, which is in parentheses and may hold anything.
    let mut words = stat.rsplit_once(") ")?.1.split(' ');
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

/// Those of the tree whose program has that name.
pub(super) fn called(root: u32, name: &str) -> Vec<u32> {
    let is = |id: &u32| {
        std::fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|found| found.trim_end() == name)
    };
    of(root).into_iter().filter(is).collect()
}

pub(super) fn signal(id: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(id.cast_signed()) {
        // It may have ended meanwhile.
        let _ = kill_process(pid, signal);
    }
}

/// Stops all of them where they stand; they do when this returns. While some still run they may start others.
pub(super) fn freeze(root: u32) {
    let from = Instant::now();
    loop {
        let running: Vec<u32> = of(root).into_iter().filter(|id| !stands(*id)).collect();
        if running.is_empty() {
            return;
        }
        assert!(from.elapsed() < Duration::from_secs(20), "{running:?} of a machine do not stand still");
        for id in running {
            signal(id, Signal::STOP);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether none of its threads runs.
fn stands(id: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let mut states = threads.filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    });
    states.all(|state| "TZX".contains(state))
}

/// Lets all of them go on.
pub(super) fn thaw(root: u32) {
    for id in of(root) {
        signal(id, Signal::CONT);
    }
}
