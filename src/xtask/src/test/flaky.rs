//! `cargo xtask flaky`: the same tests many times, to see which fail by chance.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::kept::Kept;
use super::{How, Run, What, turn};
use crate::failure::Failure;
use crate::place;

/// The options of the command.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub yes: bool,
    pub what: What,
    /// In all, with those of earlier calls where `resume` is set.
    pub runs: u64,
    /// The number of processes that compute beside the tests.
    pub busy: u64,
    pub resume: bool,
}

/// Runs them as often as is wanted; each run is kept in a file as soon as it is over.
pub fn flaky(options: &Options) -> Result<(), Failure> {
    let _turn = turn()?;
    let kept = Kept::of("flaky", &format!("-busy-{}", options.busy), options.resume)?;
    let before = read(&kept)?.0.len() as u64;
    if before < options.runs {
        super::with(How { yes: options.yes, ..How::default() }, &options.what, |run| {
            let _busy = Busy::start(options.busy)?;
            (before + 1..=options.runs).try_for_each(|n| {
                println!("\nrun {n} of {}", options.runs);
                kept.add(&once(run, n)?)
            })
        })?;
    }
    let (runs, failures) = read(&kept)?;
    tell(&runs, &failures, kept.file())
}

/// One run, as it is kept: a line of each test that failed, and one of the run.
fn once(run: &Run<'_>, n: u64) -> Result<Vec<Value>, Failure> {
    let began = Instant::now();
    let report = run.once()?;
    report.tell(began.elapsed());
    let failed = report.failed().map(|outcome| {
        json!({ "run": n, "test": format!("{} {}", outcome.program, outcome.test), "why": outcome.why(),
                "seeds": outcome.seeds(), "printed": outcome.printed })
    });
    let (ended, wanted) = (report.outcomes().len(), run.selection.tests.len());
    let whole = json!({ "run": n, "ended": ended, "wanted": wanted, "seconds": began.elapsed().as_secs() });
    Ok(failed.chain([whole]).collect())
}

/// Runs that are over, and what failed in them.
type Ended = (Vec<Value>, Vec<Value>);

fn read(kept: &Kept) -> Result<Ended, Failure> {
    Ok(kept.read()?.into_iter().partition(|line| line["ended"].is_u64()))
}

/// Prints how often each test failed, and the file that has the rest.
fn tell(runs: &[Value], failures: &[Value], file: &Path) -> Result<(), Failure> {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let (seconds, ended): (u64, u64) = (
        runs.iter().map(|run| number(&run["seconds"])).sum(),
        runs.iter().map(|run| number(&run["ended"])).sum(),
    );
    let wanted: u64 = runs.iter().map(|run| number(&run["wanted"])).sum();
    println!("\n{} runs, {ended} tests, {seconds} s; all of it: {}", runs.len(), file.display());
    let mut often: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for failure in failures {
        often.entry(failure["test"].as_str().unwrap_or_default()).or_default().push(failure);
    }
    for (test, times) in &often {
        println!("  {} of {} runs failed: {test}", times.len(), runs.len());
        for one in times {
            println!("    run {}: {} {}", one["run"], one["why"].as_str().unwrap_or_default(), one["seeds"]);
        }
    }
    if ended < wanted {
        return Err(Failure::new(format!("of {wanted} tests {ended} ended")));
    }
    println!("{} passed, {} failed", ended.saturating_sub(failures.len() as u64), failures.len());
    match often.len() {
        0 => Ok(()),
        tests => Err(Failure::new(format!(
            "{tests} tests failed by chance, {} times in {} runs",
            failures.len(),
            runs.len()
        ))),
    }
}

/// Processes that compute until this is dropped, or whoever holds it dies: their standard input ends then.
struct Busy(Vec<Child>);

impl Busy {
    fn start(count: u64) -> Result<Self, Failure> {
        let start = |_| {
            let mut command = Command::new(place::built()?.join("xtask"));
            command.arg("busy").stdin(Stdio::piped()).spawn().map_err(Failure::of("a busy process"))
        };
        (0..count).map(start).collect::<Result<_, _>>().map(Self)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// `xtask busy`: computes until its input ends.
pub fn busy() {
    std::thread::spawn(|| {
        let mut number = 1_u64;
        loop {
            number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    });
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up_over_calls_and_what_failed_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = Kept::at(folder.path().join("runs"));
        assert_eq!(read(&kept), Ok((Vec::new(), Vec::new())));
        kept.add(&[json!({"run": 1, "ended": 7, "wanted": 7, "seconds": 9})]).expect("written");
        let (runs, failures) = read(&kept).expect("read");
        assert_eq!((runs.len(), failures.len(), tell(&runs, &failures, kept.file())), (1, 0, Ok(())));
        let failed = json!({"run": 2, "test": "a::a b", "why": "late", "seeds": ["SEED=1"], "printed": ""});
        kept.add(&[failed, json!({"run": 2, "ended": 7, "wanted": 7, "seconds": 9})]).expect("written");
        let (runs, failures) = read(&kept).expect("read");
        assert_eq!((runs.len(), failures.len()), (2, 1));
        let Err(Failure(why)) = tell(&runs, &failures, kept.file()) else { panic!("none failed") };
        assert_eq!(why, "1 tests failed by chance, 1 times in 2 runs");
    }
}
