//! The report of a run: where the time went, which tests failed and why, and the command that runs them again.

use std::collections::BTreeMap;
use std::time::Duration;

use super::result::Outcome;
use crate::failure::Failure;

/// The number of longest tests in the report.
const LONGEST: usize = 15;

/// All that ended.
#[derive(Default)]
pub struct Report {
    outcomes: Vec<Outcome>,
    /// Of what ran in one process: how long that took.
    shared: BTreeMap<String, Duration>,
    processor: BTreeMap<(String, String), Duration>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    tests: u32,
    wall: Duration,
    processor: Duration,
}

impl Report {
    pub fn add(&mut self, outcome: Outcome) {
        self.outcomes.push(outcome);
    }

    /// Those of one process, which took so long.
    pub fn add_shared(&mut self, module: String, outcomes: Vec<Outcome>, wall: Duration) {
        self.shared.insert(module, wall);
        self.outcomes.extend(outcomes);
    }

    /// Takes the processor times, by program and test.
    pub fn note(&mut self, noted: Vec<(String, String, Duration)>) {
        for (program, test, took) in noted {
            *self.processor.entry((program, test)).or_default() += took;
        }
    }

    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// The table, by program, and by module where the program is of the end to end.
    fn rows(&self) -> BTreeMap<String, Row> {
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        for outcome in &self.outcomes {
            let row = rows.entry(program(outcome)).or_default();
            row.tests += 1;
            row.wall += outcome.wall;
            row.processor += self.processor(outcome);
        }
        for (module, wall) in &self.shared {
            rows.entry(module.clone()).or_default().wall += *wall;
        }
        rows
    }

    fn processor(&self, outcome: &Outcome) -> Duration {
        let key = (outcome.program.clone(), outcome.test.clone());
        self.processor.get(&key).copied().unwrap_or_default()
    }

    /// Prints all of it, what failed last; the very last line is for whoever reads no more.
    pub fn tell(&self, took: Duration) {
        let mut rows: Vec<(String, Row)> = self.rows().into_iter().collect();
        rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.wall));
        println!("\n{:<44} {:>6} {:>9} {:>11} {:>9}", "program", "tests", "wall", "processor", "waiting");
        let mut all = Row::default();
        for (name, row) in &rows {
            println!("{}", row.line(name));
            all.tests += row.tests;
            all.wall += row.wall;
            all.processor += row.processor;
        }
        println!("{}", all.line("all"));
        println!(
            "seconds, added up over tests that run beside each other; {:.0} s from begin to end",
            took.as_secs_f64()
        );
        let mut longest: Vec<&Outcome> = self.outcomes.iter().collect();
        longest.sort_by_key(|outcome| std::cmp::Reverse(outcome.wall));
        println!("\nthe longest:");
        for outcome in longest.iter().take(LONGEST).filter(|outcome| outcome.wall > Duration::ZERO) {
            let (wall, processor) = (outcome.wall.as_secs_f64(), self.processor(outcome).as_secs_f64());
            println!(
                "{wall:>8.1} s, of which it computed {processor:>5.1} s  {} {}",
                binary(outcome),
                outcome.test
            );
        }
        let failed: Vec<&Outcome> = self.failed().collect();
        println!();
        for outcome in &failed {
            println!("failed: {} {}\n  why: {}", outcome.program, outcome.test, outcome.why());
            for seed in outcome.seeds() {
                println!("  seed: {seed}");
            }
            println!("  again: cargo xtask test {}", outcome.test);
        }
        println!("{} passed, {} failed", self.outcomes.len() - failed.len(), failed.len());
    }

    pub fn failed(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| !outcome.passed)
    }

    /// # Errors
    /// A test failed, or fewer ended than were `wanted`.
    pub fn verdict(&self, wanted: usize) -> Result<(), Failure> {
        let failed: Vec<&str> = self.failed().map(|outcome| outcome.test.as_str()).collect();
        if !failed.is_empty() {
            return Err(Failure::new(format!("{} failed: {}", failed.len(), failed.join(", "))));
        }
        match self.outcomes.len() {
            0 => Err(Failure::new("no test ran")),
            ended if ended < wanted => Err(Failure::new(format!("of {wanted} tests {ended} ended"))),
            _ => Ok(()),
        }
    }
}

impl Row {
    fn line(&self, name: &str) -> String {
        let (wall, processor) = (self.wall.as_secs_f64(), self.processor.as_secs_f64());
        let waiting = (wall - processor).max(0.0);
        format!("{name:<44} {:>6} {wall:>9.1} {processor:>11.1} {waiting:>9.1}", self.tests)
    }
}

/// `kubernetes` of `picket-tests::kubernetes`.
fn binary(outcome: &Outcome) -> &str {
    outcome.program.rsplit("::").next().unwrap_or_default()
}

fn program(outcome: &Outcome) -> String {
    match (outcome.program.strip_prefix("picket-tests::"), outcome.test.split_once("::")) {
        (Some(program), Some((module, _))) => format!("{program} {module}"),
        _ => outcome.program.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(program: &str, test: &str, passed: bool, wall: u64) -> Outcome {
        let wall = Duration::from_secs(wall);
        Outcome { program: program.to_owned(), test: test.to_owned(), passed, wall, printed: String::new() }
    }

    #[test]
    fn times_are_added_up_by_program_and_by_module() {
        let mut report = Report::default();
        report.add(outcome("picket-tests::power", "bmc::hold::a", true, 3));
        report.add(outcome("picket-tests::power", "bmc::lies::b", true, 4));
        report.add(outcome("picket-core::picket_core", "judge::c", true, 1));
        report.add_shared(
            "clouds aws".to_owned(),
            vec![outcome("picket-tests::clouds", "aws::d", true, 0)],
            Duration::from_secs(9),
        );
        report.note(vec![(
            "picket-tests::power".to_owned(),
            "bmc::hold::a".to_owned(),
            Duration::from_secs(2),
        )]);
        let rows = report.rows();
        let row = |name: &str| (rows[name].tests, rows[name].wall.as_secs(), rows[name].processor.as_secs());
        assert_eq!(row("power bmc"), (2, 7, 2));
        assert_eq!(row("picket-core::picket_core"), (1, 1, 0));
        assert_eq!(row("clouds aws"), (1, 9, 0));
        assert_eq!(report.verdict(4), Ok(()));
    }

    #[test]
    fn what_failed_what_is_missing_and_nothing_at_all_are_failures() {
        let mut report = Report::default();
        assert!(report.verdict(0).is_err());
        report.add(outcome("a::a", "b", true, 1));
        assert!(report.verdict(2).is_err());
        report.add(outcome("a::a", "c", false, 1));
        assert_eq!(report.verdict(2), Err(Failure::new("1 failed: c")));
    }
}
