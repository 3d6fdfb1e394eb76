//! All processes of a machine, as the real machine sees them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::peers::HANGS;

/// One of a machine's processes, which its id alone does not name: once it has ended somebody else's may have that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Living {
    id: u32,
    /// In clock ticks since the real machine was booted.
    began: u64,
}

impl Living {
    /// Every process that [`of`] finds.
    pub(super) fn all_of(root: u32) -> Vec<Self> {
        of(root).into_iter().filter_map(Self::with).collect()
    }

    fn with(id: u32) -> Option<Self> {
        Some(Self { id, began: stat(id)?.began })
    }

    /// Whether it lives still; a zombie does not.
    pub fn lives(self) -> bool {
        stat(self.id).is_some_and(|stat| stat.began == self.began && !"ZX".contains(stat.state))
    }
}

/// A process and all that came of it. Who loses its parent within a machine gets one of the machine's: nobody leaves the tree.
pub(super) fn of(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for id in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let id = id.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some((id, stat)) = id.and_then(|id| Some((id, stat(id)?))) {
            children.entry(stat.parent).or_default().push(id);
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

/// What proc_pid_stat(5) tells of a process.
struct Stat {
    state: char,
    parent: u32,
    began: u64,
}

fn stat(id: u32) -> Option<Stat> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // They follow the name, which is in parentheses and may hold anything.
    let mut words = stat.rsplit_once(") ")?.1.split(' ');
    let (state, parent) = (words.next()?.chars().next()?, words.next()?.parse().ok()?);
    // The fields 3 and 4; this is the 22nd.
    let began = words.nth(17)?.parse().ok()?;
    Some(Stat { state, parent, began })
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
        assert!(from.elapsed() < HANGS, "{running:?} of a machine do not stand still");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_id_of_one_that_ended_is_another() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        let living = Living::with(child.id()).expect("it runs");
        assert!(living.lives());
        assert!(Living::all_of(std::process::id()).contains(&living));
        assert!(!Living { began: living.began + 1, ..living }.lives());
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert!(!living.lives());
    }
}
