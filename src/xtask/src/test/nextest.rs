//! cargo-nextest: a process a test, groups, time limits. It is installed once, beside the other tools.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::list::List;
use super::result::Outcome;
use crate::failure::Failure;
use crate::tool::Tool;
use crate::{place, run};

/// Its lines of JSON are an experiment of nextest's, so the version is exact. It is built in a minute and a half on two cores.
const NEXTEST: Tool = Tool {
    name: "cargo-nextest",
    version: "0.9.128",
    options: &["--debug", "--no-default-features", "--features", "default-no-update"],
};

/// The program, built on first use.
pub fn program() -> Result<PathBuf, Failure> {
    NEXTEST.program()
}

/// All tests of the workspace.
pub fn list() -> Result<List, Failure> {
    let mut command = nextest("list")?;
    command.args(["--message-format", "json"]);
    let told: Value =
        serde_json::from_slice(&run::output(command)?).map_err(Failure::of("cargo nextest list"))?;
    Ok(List::read(&told))
}

/// Runs what `filter` selects, or until the `first` of them fails; `set` adds variables. `each` hears how each test ended, as soon as it did.
pub fn run(
    filter: &str,
    first: bool,
    set: impl FnOnce(&mut Command),
    mut each: impl FnMut(Outcome),
) -> Result<(), Failure> {
    let mut command = nextest("run")?;
    command.arg(if first { "--fail-fast" } else { "--no-fail-fast" });
    command.args(["--message-format", "libtest-json-plus", "--filterset", filter]);
    command.env("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1").stdin(Stdio::null()).stdout(Stdio::piped());
    set(&mut command);
    let mut child = command.spawn().map_err(Failure::of("cargo nextest run"))?;
    let lines = child.stdout.take().map(BufReader::new).into_iter().flat_map(BufReader::lines);
    lines.map_while(Result::ok).filter_map(|line| Outcome::read(&line)).for_each(&mut each);
    let status = child.wait().map_err(Failure::of("cargo nextest run"))?;
    // 100: tests failed, which `each` has heard; 4: none is selected.
    match status.code() {
        Some(0 | 4 | 100) => Ok(()),
        _ => Err(Failure::new(format!("cargo nextest run: {status}"))),
    }
}

fn nextest(what: &str) -> Result<Command, Failure> {
    let mut command = place::cargo();
    let cargo = command.get_program().to_owned();
    // Started as cargo would start it, with the environment that `place::cargo` has cleaned.
    let mut nextest = run::with_us(program()?);
    nextest.args(["nextest", what, "--workspace", "--locked", "--cargo-quiet"]).current_dir(place::top());
    for (name, value) in command.env("CARGO", cargo).get_envs() {
        match value {
            Some(value) => nextest.env(name, value),
            None => nextest.env_remove(name),
        };
    }
    Ok(nextest)
}
