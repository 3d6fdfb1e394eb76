//! `cargo xtask test` and `soak`: everything, with the peers that it needs.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::failure::Failure;
use crate::{etcd, kubernetes, openstack, packages, place, python, run, sim};

/// How many histories are simulated with the tests.
const HISTORIES: u32 = 2_000;
/// And with the long counts.
const LONG_HISTORIES: u32 = 100_000;

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
    let (python, openstack) = (python::environment()?, openstack::environment()?);
    let (aws, gcp) = (python::aws()?, python::gcp()?);
    let (etcd, old_etcd) = (etcd::present()?, etcd::old()?);
    let kubernetes = kubernetes::programs()?;
    let mut build = place::cargo();
    // With the tests, whose features are more: else everything would be built twice.
    build.args(["build", "--workspace", "--bins", "--tests", "--locked"]);
    run::shown(build)?;
    Ok(vec![
        ("PATH", place::search_path().into()),
        ("PICKET_TEST_AWS", aws.into()),
        ("PICKET_TEST_ETCD", etcd.into()),
        ("PICKET_TEST_GCP", gcp.into()),
        ("PICKET_TEST_KUBERNETES", kubernetes.into()),
        ("PICKET_TEST_OLD_ETCD", old_etcd.into()),
        ("PICKET_TEST_OPENSTACK", openstack.into()),
        ("PICKET_TEST_PYTHON", python.into()),
        ("PICKET_BIN_DIR", place::built()?.into()),
    ])
}

/// Runs the tests whose name has one of `filters` in it; without filters all of them.
pub fn test(yes: bool, filters: &[String], length: Length) -> Result<(), Failure> {
    let peers = peers(yes)?;
    // Before the tests, whose results close the output; whatever becomes of it they run.
    let histories = if length == Length::Long { LONG_HISTORIES } else { HISTORIES };
    let options = ["--histories".to_owned(), histories.to_string()];
    let lived = if filters.is_empty() { sim::sim(&options) } else { Ok(()) };

    let mut command = place::cargo();
    command.args(["test", "--workspace", "--locked", "--no-fail-fast", "--"]).args(filters);
    command.envs(peers);
    // Most of them wait for BMCs and machines rather than for a processor.
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        command.env("RUST_TEST_THREADS", cores.max(8).to_string());
    }
    if length == Length::Long {
        command.env("PICKET_SOAK", "1");
        if std::env::var_os("PROPTEST_CASES").is_none() {
            command.env("PROPTEST_CASES", "20000");
        }
    }
    eprintln!("\n+ cargo test --workspace {}", filters.join(" "));
    let mut cargo =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(Failure::of("cargo test"))?;
    let mut tally = Tally::default();
    if let Some(lines) = cargo.stdout.take() {
        for line in BufReader::new(lines).lines() {
            let line = line.map_err(Failure::of("what cargo test prints"))?;
            println!("{line}");
            tally.take(&line);
        }
    }
    let status = cargo.wait().map_err(Failure::of("cargo test"))?;
    println!(
        "\nall together: {} passed, {} failed, in {} programs",
        tally.passed, tally.failed, tally.programs
    );
    tally.verdict(status.success(), filters.is_empty()).and(lived)
}

/// What cargo's result lines say, added up.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    programs: u32,
    passed: u32,
    failed: u32,
    ignored: u32,
}

impl Tally {
    /// Reads `test result: ok. 3 passed; 0 failed; 0 ignored; ...`; any other line is none of ours.
    fn take(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        self.programs += 1;
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
    }

    fn verdict(&self, cargo_succeeded: bool, all: bool) -> Result<(), Failure> {
        if !cargo_succeeded {
            return Err(Failure::new("cargo test failed"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_added_up() {
        let mut tally = Tally::default();
        for line in [
            "test result: ok. 26 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 30.96s",
            "test something ... ok",
            "test result: FAILED. 4 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        ] {
            tally.take(line);
        }
        assert_eq!(tally, Tally { programs: 2, passed: 30, failed: 1, ignored: 2 });
    }

    #[test]
    fn ignored_tests_and_no_tests_are_failures() {
        let passed = Tally { programs: 1, passed: 1, ..Tally::default() };
        assert_eq!(passed.verdict(true, true), Ok(()));
        assert!(passed.verdict(false, true).is_err());
        assert!(Tally { ignored: 1, ..passed }.verdict(true, true).is_err());
        assert!(Tally::default().verdict(true, false).is_err());
    }
}
