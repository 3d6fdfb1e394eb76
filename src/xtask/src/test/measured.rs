//! `xtask measured PROGRAM ARGS`: the runner through which nextest starts each test, to note how much processor time it took.

use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use super::list::Program;
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
        let line = format!("{program}\t{test}\t{}\n", ours().as_secs_f64());
        let _ = file.write_all(line.as_bytes());
    }
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// The processor time of this process, and of the descendants that were waited for.
fn ours() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    Duration::from_secs_f64(ticks(&stat) as f64 / TICKS)
}

/// proc(5): utime, stime, cutime and cstime, the 14th to the 17th field. The second is a name that may have blanks.
fn ticks(stat: &str) -> u64 {
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Reads the notes: package and program, test, processor time.
pub fn noted(file: &Path, programs: &[Program]) -> Vec<(String, String, Duration)> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = |line: &str| {
        let mut fields = line.split('\t');
        let (path, test) = (fields.next()?, fields.next()?.to_owned());
        let program = programs.iter().find(|program| program.path == Path::new(path))?;
        let took = Duration::try_from_secs_f64(fields.next()?.parse().ok()?).ok()?;
        Some((format!("{}::{}", program.package, program.binary), test, took))
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
        std::fs::write(&notes, "/t/it-1\ta::b\t1.5\n/t/other\ta\t1\nhalf a li").expect("written");
        let [id, package, binary] = ["picket-store::it", "picket-store", "it"].map(str::to_owned);
        let program = Program { id, package, binary, path: "/t/it-1".into(), folder: "/".into() };
        let took = Duration::from_millis(1500);
        assert_eq!(noted(&notes, &[program]), [("picket-store::it".to_owned(), "a::b".to_owned(), took)]);
    }
}
