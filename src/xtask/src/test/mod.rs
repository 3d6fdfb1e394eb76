//! `cargo xtask test`, `soak` and `flaky`: which tests, with which peers, and what they came to.

mod alone;
mod changed;
pub mod flaky;
mod kept;
mod list;
pub mod measured;
pub mod mutants;
mod nextest;
mod peers;
mod report;
mod result;
mod scratch;
mod select;
mod shared;
mod table;
mod threats;

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

pub use alone::turn;
use list::{List, Test};
pub use peers::{Variables, with_build};
use report::Report;
use select::Selection;
pub use select::What;

use crate::failure::Failure;
use crate::place;

/// How they are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Missing packages are installed without a question.
    pub yes: bool,
    /// With the long counts (`PICKET_SOAK=1`), and long histories of the property tests.
    pub long: bool,
    /// Until the first fails.
    pub first: bool,
}

/// Runs the selected tests, and tells what they came to.
pub fn test(how: How, what: &What) -> Result<(), Failure> {
    let _turn = turn()?;
    with(how, what, |run| {
        if run.selection.tests.is_empty() {
            println!("nothing changed that a test could see");
            return Ok(());
        }
        let began = Instant::now();
        let report = run.once()?;
        report.tell(began.elapsed());
        report.verdict(run.selection.tests.len())
    })
}

/// Tests that are built and have their peers.
struct Run<'a> {
    selection: &'a Selection<'a>,
    list: &'a List,
    variables: Variables,
    how: How,
    /// By which each test is started.
    runner: Vec<String>,
}

/// Looks whether there is room, builds, brings the peers, and selects, all before a test begins.
fn with(how: How, what: &What, then: impl FnOnce(&Run<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
    let rows = table::rows()?;
    let is_whole = matches!(what, What::Landing | What::All);
    if is_whole {
        alone::room()?;
    }
    // A part may do without any peer, and is not kept waiting for them.
    let before = if is_whole { Some(with_build(how.yes)?) } else { peers::build_alone(how.yes)? };
    let list = nextest::list()?;
    let selection = select::select(what, &rows, &list)?;
    threats::known(&list)?;
    let mut variables = match before {
        Some(variables) => variables,
        None if selection.tests.iter().any(|test| peers::wants_some(&test.package)) => with_build(how.yes)?,
        None => vec![("PATH", place::search_path().into()), ("PICKET_BIN_DIR", place::built()?.into())],
    };
    if selection.tests.iter().any(|test| peers::wants_packages(test)) {
        variables.extend(peers::with_packages(how.yes)?);
    }
    // The one that was built with the rest: ours may have been replaced by it, and has no path then.
    let xtask = place::built()?.join("xtask");
    let runner = vec![xtask.display().to_string(), "measured".to_owned()];
    then(&Run { selection: &selection, list: &list, variables, how, runner })
}

impl Run<'_> {
    /// One run of all of them.
    fn once(&self) -> Result<Report, Failure> {
        let folder = scratch::make()?;
        let notes = folder.join("processor");
        let set = |command: &mut Command| {
            command
                .envs(self.variables.iter().map(|(name, value)| (name, value)))
                .env(measured::NOTES, &notes)
                .env("TMPDIR", &folder);
            if self.how.long {
                command.env("PICKET_SOAK", "1");
                if std::env::var_os("PROPTEST_CASES").is_none() {
                    command.env("PROPTEST_CASES", "20000");
                }
            }
        };
        let mut report = Report::default();
        let ran = self.all(&set, &mut report);
        report.note(measured::noted(&notes, &self.list.programs));
        ran.and(scratch::forget(&folder))?;
        Ok(report)
    }

    fn all(&self, set: &impl Fn(&mut Command), report: &mut Report) -> Result<(), Failure> {
        let by_runner = |command: &mut Command| {
            set(command);
            command.env(runner_variable(), self.runner.join(" "));
        };
        nextest::run(&self.selection.filter, self.how.first, by_runner, |outcome| report.add(outcome))?;
        if self.how.first && report.failed().next().is_some() {
            return Ok(());
        }
        for shared in &self.selection.shared {
            eprintln!(
                "\n+ {} {}: {} tests in one process",
                shared.program.binary,
                shared.module,
                shared.tests.len()
            );
            let ended = shared::run(shared.program, &shared.tests, &self.runner, set)?;
            report.add_shared(
                format!("{} {}", shared.program.binary, shared.module),
                ended.outcomes,
                ended.wall,
            );
        }
        Ok(())
    }
}

/// By which cargo and nextest are told of a runner for this kind of machine.
fn runner_variable() -> String {
    format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_RUNNER", std::env::consts::ARCH.to_uppercase())
}

/// Prints which tests are in which set, and why.
pub fn sets() -> Result<(), Failure> {
    peers::build()?;
    let (rows, list) = (table::rows()?, nextest::list()?);
    select::select(&What::All, &rows, &list)?;
    let count = |tests: &mut dyn Iterator<Item = &Test>, by: &dyn Fn(&Test) -> String| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        tests.for_each(|test| *counts.entry(by(test)).or_default() += 1);
        counts
    };
    let tell = |what: &str, counts: &BTreeMap<String, usize>| {
        println!("\n{what}: {}", counts.values().sum::<usize>());
        counts.iter().for_each(|(name, count)| println!("{count:>6}  {name}"));
    };
    let (end_to_end, others): (Vec<&Test>, Vec<&Test>) =
        list.tests.iter().partition(|test| test.is_end_to_end());
    println!("the landing set (cargo xtask test), by the rules of {}", table::PLACE);
    tell("what is not end to end", &count(&mut others.into_iter(), &|test| test.package.clone()));
    let (landing, rest): (Vec<&Test>, Vec<&Test>) =
        end_to_end.into_iter().partition(|test| select::lands(test, &rows));
    println!("\nend to end, by promise: {}", landing.len());
    for row in &rows {
        println!("  {} ({})", row.promise, row.before);
        let of_it = landing.iter().filter(|test| row.has(test));
        of_it.for_each(|test| println!("          {} {}", test.binary, test.name));
    }
    let module = |test: &Test| format!("{} {}", test.binary, test.module());
    tell("besides, with cargo xtask test --all", &count(&mut rest.into_iter(), &module));
    Ok(())
}
