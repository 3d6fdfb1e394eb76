//! `xtask measured PROGRAM ARGS`: the runner through which nextest starts each test, to note how much processor time it took.

use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::failure::Failure;

/// Names the file to which each test adds its line.
pub const NOTES: &str = "PICKET_TEST_PROCESSOR";
/// `sysconf(_SC_CLK_TCK)`, which is 100 on every Linux.
const TICKS: f64 = 100.0;

/// Runs it, and notes what it took. Where nothing is to be noted it takes our place.
pub fn measured(words: &[String]) -> Result<ExitCode, Failure> {
    let (program, arguments) = words.split_first().ok_or(Failure::new("measured: which program?"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    let test = arguments.iter().position(|word| word == "--exact").and_then(|at| arguments.get(at + 1));
    let (Some(notes), Some(test)) = (std::env::var_os(NOTES), test) else {
        return Err(Failure::of(program)(command.exec()));
    };
    let status = command.status().map_err(Failure::of(program))?;
    // A line that cannot be written is missing in the table, and no reason to fail a test.
    if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(notes) {
        let line = format!("{}\t{test}\t{}\n", name(Path::new(program)), ours().as_secs_f64());
        let _ = file.write_all(line.as_bytes());
    }
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// `kubernetes-0f3a` is of the program `kubernetes`.
fn name(program: &Path) -> String {
    let file = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    file.rsplit_once('-').map_or(file.clone(), |(name, _)| name.to_owned())
}

/// What this process and all that it waited for, and those in turn, have computed.
fn ours() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    Duration::from_secs_f64(ticks(&stat) as f64 / TICKS)
}

/// proc(5): utime, stime, cutime and cstime, the 14th to the 17th field. The second is a name that may have blanks.
fn ticks(stat: &str) -> u64 {
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// What was noted, by the program and the test.
pub fn noted(file: &PathBuf) -> Vec<(String, String, Duration)> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = |line: &str| {
        let mut fields = line.split('\t');
        let (program, test) = (fields.next()?.to_owned(), fields.next()?.to_owned());
        Some((program, test, Duration::try_from_secs_f64(fields.next()?.parse().ok()?).ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_time_of_a_process_and_its_children_is_read() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 9 8 0 0 11 22 300 4000 20 0 1 0 77 1 2 3";
        assert_eq!(ticks(stat), 4333);
        assert_eq!(ticks(""), 0);
    }

    #[test]
    fn what_is_noted_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let notes = folder.path().join("notes");
        std::fs::write(&notes, "power\ta::b\t1.5\nhalf a li").expect("written");
        assert_eq!(noted(&notes), [("power".to_owned(), "a::b".to_owned(), Duration::from_millis(1500))]);
        assert_eq!(name(Path::new("/target/debug/deps/picket_core-0f3a")), "picket_core");
    }
}
