//! Tests that share a peer, run in one process by their own harness.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::list::Program;
use super::result::Outcome;
use crate::failure::Failure;
use crate::run;

/// After so long they hang: they are ended, and what they printed is shown.
const HANGS: &str = "90m";
/// Most of these tests wait for a machine or a cloud, so that many run beside each other.
const BESIDE: usize = 10;
/// So much of what a program printed that died is repeated.
const LAST_LINES: usize = 40;

/// How all of them ended.
pub struct Ended {
    pub outcomes: Vec<Outcome>,
    pub wall: Duration,
}

/// Runs these tests of that program; `set` adds variables and what it is started by.
pub fn run(
    program: &Program,
    names: &[&str],
    runner: &[String],
    set: impl FnOnce(&mut Command),
) -> Result<Ended, Failure> {
    let mut command = run::with_us("timeout");
    command.args(["--kill-after=60", HANGS]).args(runner).arg(&program.path).arg("--exact").args(names);
    command.arg(format!("--test-threads={BESIDE}"));
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder).stdin(Stdio::null());
    set(&mut command);
    let began = Instant::now();
    let output = command.output().map_err(Failure::of(program.path.display()))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    print!("{printed}");
    eprint!("{complained}");
    let binary = format!("{}::{}", program.package, program.binary);
    let outcomes = names.iter().map(|name| outcome(&binary, name, &printed, &complained)).collect();
    Ok(Ended { outcomes, wall: began.elapsed() })
}

fn outcome(program: &str, name: &str, printed: &str, complained: &str) -> Outcome {
    let line = |word: &str| printed.lines().any(|line| line == format!("test {name} ... {word}"));
    let passed = line("ok");
    let said = match (passed, line("FAILED")) {
        (true, _) => String::new(),
        (false, true) => printed_by(name, printed).to_owned(),
        (false, false) => {
            let lines: Vec<&str> = printed.lines().chain(complained.lines()).collect();
            let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
            format!("it did not end; its program printed at last:\n{}", last.join("\n"))
        }
    };
    Outcome {
        program: program.to_owned(),
        test: name.to_owned(),
        passed,
        wall: Duration::ZERO,
        printed: said,
    }
}

/// The output of a failed test, as the harness shows it.
fn printed_by<'a>(name: &str, printed: &'a str) -> &'a str {
    let begins = format!("---- {name} stdout ----\n");
    let of_it = printed.split_once(&begins).map_or("", |(_, rest)| rest);
    let end = ["\n---- ", "\nfailures:\n"].into_iter().filter_map(|next| of_it.find(next)).min();
    &of_it[..end.unwrap_or(of_it.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_of_a_program_has_its_end_and_what_it_printed() {
        let printed = "test a::b ... FAILED\ntest c ... ok\n\nfailures:\n\n---- a::b stdout ----\n\
             thread 'a::b' panicked at x.rs:1:2:\nleft: 1\n\n\nfailures:\n    a::b\n\ntest result: FAILED\n";
        let ended = |name| outcome("picket-tests::clouds", name, printed, "");
        assert!(ended("c").passed);
        assert_eq!((ended("a::b").passed, ended("a::b").why().as_str()), (false, "left: 1"));
        let died = ended("d");
        assert!(!died.passed && died.printed.contains("it did not end"), "{died:?}");
    }
}
