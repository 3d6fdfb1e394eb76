//! `cargo xtask test` and `soak`: everything, with the peers that it needs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::failure::Failure;
use crate::programs::{self, Ended};
use crate::{etcd, kubernetes, openstack, packages, place, prometheus, python, run, sim};

/// How many histories are simulated with the tests.
const HISTORIES: u32 = 2_000;
/// And with the long counts.
const LONG_HISTORIES: u32 = 100_000;

/// Tests before machines with kubelets that wait side by side.
const MACHINES: usize = 12;

/// So much of what a test printed that failed is repeated at the end.
const LAST_LINES: usize = 40;
/// And so much of why it failed stands beside its name in the very last line.
const WHY: usize = 600;

/// How long the tests may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// As in CI.
    Short,
    /// Long counts (`PICKET_SOAK=1`), long histories of the property tests.
    Long,
}

/// Builds the programs and brings the peers; the variables by which tests find them.
pub fn peers(yes: bool) -> Result<Vec<(&'static str, OsString)>, Failure> {
    packages::ensure(packages::FOR_TESTS, yes)?;
    // What is fetched leaves cores to what is compiled.
    let (fetched, compiled) = std::thread::scope(|scope| {
        let fetching = scope.spawn(pythons);
        let compiled = compiled();
        (fetching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), compiled)
    });
    let ([python, openstack, aws, gcp], [etcd, old_etcd, kubernetes, promtool]) = (fetched?, compiled?);
    Ok(vec![
        ("PATH", place::search_path().into()),
        ("PICKET_TEST_AWS", aws.into()),
        ("PICKET_TEST_ETCD", etcd.into()),
        ("PICKET_TEST_GCP", gcp.into()),
        ("PICKET_TEST_KUBERNETES", kubernetes.into()),
        ("PICKET_TEST_OLD_ETCD", old_etcd.into()),
        ("PICKET_TEST_OPENSTACK", openstack.into()),
        ("PICKET_TEST_PROMTOOL", promtool.into()),
        ("PICKET_TEST_PYTHON", python.into()),
        ("PICKET_BIN_DIR", place::built()?.into()),
    ])
}

/// The Pythons of the tests, OpenStack's, AWS' and Google's.
fn pythons() -> Result<[PathBuf; 4], Failure> {
    Ok([python::environment()?, openstack::environment()?, python::aws()?, python::gcp()?])
}

/// etcd and an old one, Kubernetes, promtool; and all that is tested.
fn compiled() -> Result<[PathBuf; 4], Failure> {
    let peers = [etcd::present()?, etcd::old()?, kubernetes::programs()?, prometheus::promtool()?];
    let mut build = place::cargo();
    // With the tests, whose features are more: else everything would be built twice.
    build.args(["build", "--workspace", "--bins", "--tests", "--locked"]);
    run::shown(build)?;
    Ok(peers)
}

/// Runs the tests whose name has one of `filters` in it; without filters all of them.
pub fn test(yes: bool, filters: &[String], length: Length) -> Result<(), Failure> {
    let peers = peers(yes)?;
    let histories = if length == Length::Long { LONG_HISTORIES } else { HISTORIES };
    let simulation = filters.is_empty().then(|| sim::beside(histories));
    let programs = programs::built(simulation)?;
    eprintln!("\n+ the tests of {} programs {}", programs.len(), filters.join(" "));
    let mut tally = Tally::default();
    let set = |name: &str, command: &mut Command| {
        command.args(filters).envs(peers.iter().map(|(name, value)| (name, value)));
        // Most of them wait for BMCs and machines rather than for a processor.
        if std::env::var_os("RUST_TEST_THREADS").is_none() {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let least = if name == "kubernetes" { MACHINES } else { 8 };
            command.env("RUST_TEST_THREADS", cores.max(least).to_string());
        }
        if length == Length::Long {
            command.env("PICKET_SOAK", "1");
            if std::env::var_os("PROPTEST_CASES").is_none() {
                command.env("PROPTEST_CASES", "20000");
            }
        }
    };
    programs::run(programs, set, |ended| tally.take(&ended, filters.is_empty()));
    tally.tell();
    tally.verdict(filters.is_empty())
}

/// What the programs say of their tests, added up.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    programs: u32,
    passed: u32,
    failed: u32,
    ignored: u32,
    /// The names of what failed, each with its program; a program that ended otherwise, by itself.
    failures: Vec<String>,
    /// Why, in a few words each.
    why: Vec<String>,
    /// And the end of what each of them printed.
    ends: Vec<String>,
    /// Which took how long.
    times: Vec<(Duration, String)>,
}

impl Tally {
    /// Shows what a program printed, and reads it. One in which nothing has the name that is looked for has nothing to show.
    fn take(&mut self, ended: &Ended, all: bool) {
        let before = (self.passed, self.failed, self.failures.len());
        for line in ended.printed.lines() {
            if let Some(name) = self.read(line, &ended.source) {
                self.why.push(why(printed_by(name, &ended.printed)));
                self.ends.push(end_of(printed_by(name, &ended.printed)));
            }
        }
        self.programs += 1;
        // One that was ended tells nothing of its tests.
        let is_whole = ended.printed.lines().any(|line| line.starts_with("test result: "));
        if !ended.succeeded && (!is_whole || self.failures.len() == before.2) {
            self.failures.push(ended.source.clone());
            self.why.push(why(ended.printed.lines().rev().take(1)));
            self.ends.push(end_of(ended.printed.lines()));
        }
        if all || !ended.succeeded || (self.passed, self.failed) != (before.0, before.1) {
            println!("\n     Ran {} in {:.0?}\n{}", ended.source, ended.took, ended.printed);
            self.times.push((ended.took, ended.source.clone()));
        }
    }

    /// Reads `test result: ok. 3 passed; 0 failed; 0 ignored; ...` and `test name ... FAILED`, whose name it gives; any other line is none of ours.
    fn read<'a>(&mut self, line: &'a str, source: &str) -> Option<&'a str> {
        let rest = line.strip_prefix("test ")?;
        if let Some(name) = rest.strip_suffix(" ... FAILED") {
            self.failures.push(format!("{source}: {name}"));
            return Some(name);
        }
        let counts = rest.strip_prefix("result: ")?;
        for count in counts.split([';', '.']) {
            let Some((number, what)) = count.trim().split_once(' ') else { continue };
            let Ok(number) = number.parse::<u32>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
        None
    }

    /// The last that is printed: of a long run often nothing else is kept.
    fn tell(&mut self) {
        self.times.sort_by(|a, b| b.cmp(a));
        println!("\nthe longest:");
        for (took, source) in self.times.iter().take(12) {
            println!("{:>8.0?}  {source}", took);
        }
        println!(
            "\nall together: {} passed, {} failed, in {} programs",
            self.passed, self.failed, self.programs
        );
        for (failure, end) in self.failures.iter().zip(&self.ends) {
            println!("  failed: {failure}\n{end}");
        }
    }

    fn verdict(&self, all: bool) -> Result<(), Failure> {
        if !self.failures.is_empty() {
            let each = self.failures.iter().zip(&self.why);
            let told: String = each.map(|(failure, why)| format!("\n  {failure}: {why}")).collect();
            return Err(Failure::new(format!("failed:{told}")));
        }
        if self.ignored > 0 {
            return Err(Failure::new(format!(
                "{} tests are ignored: a test runs, or it is not there",
                self.ignored
            )));
        }
        if self.passed == 0 {
            let why = if all { "no test ran" } else { "no test has such a name" };
            return Err(Failure::new(why));
        }
        Ok(())
    }
}

/// What the harness shows of a test that failed.
fn printed_by<'a>(name: &str, printed: &'a str) -> impl DoubleEndedIterator<Item = &'a str> {
    let begins = format!("---- {name} stdout ----\n");
    let of_it = printed.split_once(&begins).map_or("", |(_, rest)| rest);
    // Another's, or the list of their names; and what called it says less than what it said.
    let end = ["\n---- ", "\nfailures:\n", "\nstack backtrace:\n"]
        .into_iter()
        .filter_map(|next| of_it.find(next))
        .min();
    of_it[..end.unwrap_or(of_it.len())].lines()
}

/// What a test says of its failure, as one line: from where it panicked on, or all of it.
fn why<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    let from = lines.iter().position(|line| line.contains(" panicked at ")).map_or(0, |at| at + 1);
    lines[from..].join(" | ").chars().take(WHY).collect()
}

/// The last of the lines, a little to the right.
fn end_of<'a>(lines: impl DoubleEndedIterator<Item = &'a str>) -> String {
    let mut last: Vec<String> = lines.rev().take(LAST_LINES).map(|line| format!("    {line}\n")).collect();
    last.reverse();
    last.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(printed: &str, succeeded: bool) -> Ended {
        let took = Duration::from_secs(1);
        Ended { source: "tests/some.rs".to_owned(), printed: printed.to_owned(), succeeded, took }
    }

    #[test]
    fn result_lines_are_added_up() {
        let mut tally = Tally::default();
        tally.take(
            &ended(
                "test one ... ok\n\
                 test result: ok. 26 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 30.96s",
                true,
            ),
            true,
        );
        tally.take(
            &ended(
                "test a::b ... FAILED\n\
                 test result: FAILED. 4 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s",
                false,
            ),
            true,
        );
        assert_eq!((tally.programs, tally.passed, tally.failed, tally.ignored), (2, 30, 1, 2));
        assert_eq!(tally.failures, ["tests/some.rs: a::b"]);
    }

    #[test]
    fn a_program_that_dies_failed() {
        let mut tally = Tally::default();
        tally.take(&ended("test one ... ok\n", false), true);
        assert_eq!(tally.failures, ["tests/some.rs"]);
        assert!(tally.verdict(true).is_err());
        tally.take(&ended("test one ... FAILED\ntests/some.rs: not over\n", false), true);
        assert_eq!(tally.failures[1..], ["tests/some.rs: one", "tests/some.rs"]);
        assert_eq!(tally.why[2], "tests/some.rs: not over");
    }

    #[test]
    fn what_a_failed_test_printed_is_told_again_at_the_end() {
        let mut tally = Tally::default();
        let printed = "test a::b ... FAILED\ntest c ... FAILED\ntest d ... ok\n\nfailures:\n\n\
             ---- a::b stdout ----\nthread 'a::b' panicked at x.rs:1:2:\nleft: 1\nstack backtrace:\n  0: x\n\n---- c stdout ----\nError: late\n\n\n\
             failures:\n    a::b\n    c\n\ntest result: FAILED. 1 passed; 2 failed\n";
        tally.take(&ended(printed, false), true);
        tally.take(&ended("one\ntwo\n", false), true);
        let ends: Vec<Vec<&str>> = tally.ends.iter().map(|end| end.split_whitespace().collect()).collect();
        let panicked = vec!["thread", "'a::b'", "panicked", "at", "x.rs:1:2:", "left:", "1"];
        assert_eq!(ends, [panicked, vec!["Error:", "late"], vec!["one", "two"]]);
        assert_eq!(tally.why, ["left: 1", "Error: late", "two"]);
        let told = tally.verdict(true).expect_err("they failed").0;
        assert!(
            told.ends_with("a::b: left: 1\n  tests/some.rs: c: Error: late\n  tests/some.rs: two"),
            "{told}"
        );
        let long = "a line\n".repeat(LAST_LINES + 1);
        assert_eq!(end_of(long.lines()).lines().count(), LAST_LINES);
    }

    #[test]
    fn ignored_tests_and_no_tests_are_failures() {
        let passed = || Tally { programs: 1, passed: 1, ..Tally::default() };
        assert_eq!(passed().verdict(true), Ok(()));
        assert!(Tally { failures: vec!["a".to_owned()], ..passed() }.verdict(true).is_err());
        assert!(Tally { ignored: 1, ..passed() }.verdict(true).is_err());
        assert!(Tally::default().verdict(false).is_err());
    }
}
