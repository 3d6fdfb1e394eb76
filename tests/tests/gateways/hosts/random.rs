//! Random runs.

use std::hash::{BuildHasher, Hasher, RandomState};

use futures::StreamExt;
use picket_tests::{Dice, Result, soak};

use crate::hosts::figures::Sums;
use crate::hosts::plan::Plan;
use crate::hosts::run::{Report, run};

/// Side by side; each mostly waits.
const SIDE_BY_SIDE: usize = 4;

/// A number that the environment gives.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// How many runs go side by side.
pub fn side_by_side() -> usize {
    number("PICKET_SIDE_BY_SIDE").and_then(|n| usize::try_from(n).ok()).unwrap_or(SIDE_BY_SIDE).max(1)
}

/// The run of this seed, and the only one: nothing in it depends on others.
async fn of(seed: u64) -> (u64, Plan, Result<Report>) {
    let mut dice = Dice::by(seed);
    let plan = Plan::by(&mut dice);
    let report = run(&plan, dice).await;
    (seed, plan, report)
}

/// 10 runs, 300 in a soak, or `PICKET_RUNS`; their seeds are `PICKET_SEED` and those after it.
#[tokio::test]
async fn whatever_happens_nothing_is_let_go_of_a_machine_that_writes_and_none_comes_back_unasked() {
    let first = number("PICKET_SEED").unwrap_or_else(|| RandomState::new().build_hasher().finish() >> 32);
    let count = number("PICKET_RUNS").unwrap_or(if soak() { 300 } else { 10 });
    println!("{count} runs from PICKET_SEED={first}");
    let mut running =
        futures::stream::iter((0..count).map(|n| of(first.wrapping_add(n)))).buffer_unordered(side_by_side());
    let (mut sums, mut wrong) = (Sums::default(), Vec::new());
    while let Some((seed, plan, report)) = running.next().await {
        match report {
            Ok(report) => {
                sums.add(&report);
                let met: Vec<&str> = report.met.iter().map(|met| met.what.as_str()).collect();
                let ends: Vec<String> = report
                    .ends
                    .iter()
                    .filter(|(_, end)| *end != crate::hosts::caller::End::Done)
                    .map(|(what, end)| format!("{what}: {end:?}"))
                    .collect();
                println!("seed {seed}: {:.0} s, {met:?} {ends:?}", report.wall.as_secs_f64());
                if !report.faults.is_empty() {
                    let (faults, logs) = (report.faults.join("\n"), report.logs);
                    wrong.push(format!("PICKET_SEED={seed} PICKET_RUNS=1: {plan:?}\n{faults}\n{logs}"));
                }
            }
            Err(error) => wrong.push(format!("PICKET_SEED={seed} PICKET_RUNS=1: {plan:?}\n{error}")),
        }
        if let Some(last) = wrong.last().filter(|_| soak()) {
            // A soak is long: who looks on hears of it at once.
            println!("WRONG: {}", last.lines().take(8).collect::<Vec<_>>().join("\n"));
        }
    }
    println!("{}", sums.told());
    assert!(wrong.is_empty(), "{} of {count} runs were wrong:\n{}", wrong.len(), wrong.join("\n\n"));
}
