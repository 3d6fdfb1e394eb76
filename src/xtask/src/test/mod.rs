//! `cargo xtask test`, `soak` and `flaky`: which tests, with which peers, and what they came to.

mod alone;
mod changed;
pub mod flaky;
mod list;
pub mod measured;
mod nextest;
mod peers;
mod report;
mod result;
mod select;
mod shared;
mod table;

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

pub use alone::turn;
use list::List;
pub use peers::{Variables, with_build};
use report::Report;
pub use select::What;
use select::{END_TO_END, Selection};

use crate::failure::Failure;
use crate::place;

/// How long the tests may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// As in CI.
    Short,
    /// Long counts (`PICKET_SOAK=1`), long histories of the property tests.
    Long,
}

/// What is run, built and with its peers.
struct Run {
    selection: Selection,
    list: List,
    variables: Variables,
    length: Length,
    /// By which each test is started.
    runner: Vec<String>,
}

/// Runs the selected tests, and tells what they came to.
pub fn test(yes: bool, what: &What, length: Length) -> Result<(), Failure> {
    let _turn = turn()?;
    let run = Run::prepare(yes, what, length)?;
    let began = Instant::now();
    let report = run.once()?;
    report.tell(began.elapsed());
    report.verdict(run.wanted())
}

/// Prints which tests are in which set, and why.
pub fn sets() -> Result<(), Failure> {
    peers::build()?;
    let rows = table::rows()?;
    let list = List::read(&nextest::list(&select::filter(&What::Landing, &rows)?)?);
    select::unknown(&rows, &list)?;
    let is_end_to_end = |test: &&list::Test| test.package == "picket-tests" && !test.binary.starts_with("picket");
    let mut packages: BTreeMap<&str, usize> = BTreeMap::new();
    for test in list.tests.iter().filter(|test| !is_end_to_end(test)) {
        *packages.entry(&test.package).or_default() += 1;
    }
    println!("landing set (cargo xtask test), by {}:\n", table::PLACE);
    println!("every test that is not end to end: {}", packages.values().sum::<usize>());
    packages.iter().for_each(|(package, count)| println!("{count:>6}  {package}"));
    println!("\nend to end, by promise: {}", list.selected().filter(is_end_to_end).count());
    for row in &rows {
        println!("  {} ({})", row.promise, row.before);
        let of_it = list.tests.iter().filter(|test| row.has(&test.binary, &test.name));
        of_it.for_each(|test| println!("          {} {}", test.binary, test.name));
    }
    println!("\nthe rest of the end to end (cargo xtask test --all): {}", list.tests.iter().filter(|test| !test.selected).count());
    let mut rest: BTreeMap<String, usize> = BTreeMap::new();
    for test in list.tests.iter().filter(|test| !test.selected) {
        let module = test.name.split("::").next().unwrap_or_default();
        *rest.entry(format!("{} {module}", test.binary)).or_default() += 1;
    }
    rest.iter().for_each(|(module, count)| println!("{count:>6}  {module}"));
    Ok(())
}

impl Run {
    /// Looks whether there is room, builds, brings the peers, and selects. Whatever is wrong is told before a test begins.
    fn prepare(yes: bool, what: &What, length: Length) -> Result<Self, Failure> {
        let rows = table::rows()?;
        let filter = select::filter(what, &rows)?;
        let is_whole = matches!(what, What::Landing | What::All);
        if is_whole {
            alone::room()?;
        }
        // A part may do without any peer, and is not kept waiting for them.
        let before = if is_whole { Some(with_build(yes)?) } else { peers::build_alone(yes)? };
        let list = List::read(&nextest::list(&filter)?);
        select::unknown(&rows, &list)?;
        let ignored: Vec<&str> = list.tests.iter().filter(|test| test.ignored).map(|test| &*test.name).collect();
        if !ignored.is_empty() {
            return Err(Failure::new(format!("a test runs, or it is not there: ignored are {}", ignored.join(", "))));
        }
        if list.selected().next().is_none() {
            return Err(nothing(what, &list));
        }
        let variables = match before {
            Some(variables) => variables,
            None if list.selected().any(|test| peers::wants_some(&test.package)) => with_build(yes)?,
            None => vec![("PATH", place::search_path().into()), ("PICKET_BIN_DIR", place::built()?.into())],
        };
        // The one that was built with the rest: ours may have been replaced by it, and has no path then.
        let xtask = place::built()?.join("xtask");
        let runner = vec![xtask.display().to_string(), "measured".to_owned()];
        Ok(Self { selection: select::divide(what, filter, &list), list, variables, length, runner })
    }

    fn wanted(&self) -> usize {
        self.list.selected().count()
    }

    /// One run of all of them.
    fn once(&self) -> Result<Report, Failure> {
        let folder = std::env::temp_dir().join(format!("picket-tests-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(Failure::of(folder.display()))?;
        let notes = folder.join("processor");
        let set = |command: &mut Command| {
            command.envs(self.variables.iter().map(|(name, value)| (name, value))).env(measured::NOTES, &notes);
            if self.length == Length::Long {
                command.env("PICKET_SOAK", "1");
                if std::env::var_os("PROPTEST_CASES").is_none() {
                    command.env("PROPTEST_CASES", "20000");
                }
            }
        };
        let mut report = Report::default();
        let ran = self.all(&set, &mut report);
        report.note(measured::noted(&notes));
        let removed = std::fs::remove_dir_all(&folder).map_err(Failure::of(folder.display()));
        ran.and(removed)?;
        Ok(report)
    }

    fn all(&self, set: &impl Fn(&mut Command), report: &mut Report) -> Result<(), Failure> {
        let by_runner = |command: &mut Command| {
            set(command);
            command.env(runner_variable(), self.runner.join(" "));
        };
        nextest::run(&self.selection.filter, by_runner, |outcome| report.add(outcome))?;
        for (program, module, names) in &self.selection.shared {
            let is_it = |known: &&list::Program| known.package == "picket-tests" && known.binary == *program;
            let known = self.list.programs.iter().find(is_it).ok_or(Failure::new(format!("no program {program}")))?;
            eprintln!("\n+ {program} {module}: {} tests in one process", names.len());
            let ended = shared::run(known, names, &self.runner, set)?;
            report.add_shared(format!("{program} {module}"), ended.outcomes, ended.wall);
        }
        Ok(())
    }
}

/// By which cargo and nextest are told of a runner for this kind of machine.
fn runner_variable() -> String {
    format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_RUNNER", std::env::consts::ARCH.to_uppercase())
}

fn nothing(what: &What, list: &List) -> Failure {
    Failure::new(match what {
        What::Named(words) => {
            let near: Vec<String> = words.iter().map(|word| format!("{word}{}", list.near(word))).collect();
            format!("no test has such a name: {}", near.join("; "))
        }
        What::Changed(_) => "nothing changed that a test could see".to_owned(),
        What::Landing | What::All => format!("there are no tests, not even {END_TO_END}"),
    })
}
