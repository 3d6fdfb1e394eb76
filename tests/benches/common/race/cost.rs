//! What a process used, as the kernel counts it.

use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Processor time of this process.
pub fn own_cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Processor time of the children that have ended, in the kernel's ticks of 10 ms: right only over many of them.
pub fn ended_children_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // proc(5): cutime and cstime are fields 16 and 17; the name, field 2, may have spaces in it.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
    let ticks: u64 = fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

/// Processor time of a process that runs, and of its children that run.
pub fn family_cpu(process: u32) -> Duration {
    family(process)
        .into_iter()
        .map(|id| {
            // Of each thread: the process's own file speaks of the first one alone.
            let threads = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
            threads.map(|thread| first_number(&thread.path().join("schedstat"))).sum()
        })
        .map(Duration::from_nanos)
        .sum()
}

/// A process and its children.
pub fn family(process: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    std::iter::once(process).chain(children.split_whitespace().filter_map(|id| id.parse().ok())).collect()
}

/// Memory that a process has in use, shared libraries included, in bytes.
pub fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    1024 * line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0)
}

fn first_number(path: &Path) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
