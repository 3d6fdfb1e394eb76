//! The medians of all turns, beside each other.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::goals::Goals;
use crate::options::Way;
use crate::series::{Series, ratio};
use crate::turn::{ASKED, DETACHED, SETTLED, STEPS, Turn, WRITES};

/// From the end of `settle` until the volume is detached.
const LET_GO: Duration = Duration::from_secs(1);
/// And until the pod writes elsewhere.
const ELSEWHERE: Duration = Duration::from_secs(4);

/// All turns.
#[derive(Debug, Default)]
pub struct Table(BTreeMap<Way, Vec<(Turn, usize)>>);

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut series = Series::default();
    times.for_each(|time| series.push(time));
    series.median()
}

impl Table {
    /// One more, and how often two wrote in it.
    pub fn add(&mut self, way: Way, turn: Turn, torn: usize) {
        self.0.entry(way).or_default().push((turn, torn));
    }

    fn of(&self, way: Way, time: impl Fn(&Turn) -> Duration) -> Option<Duration> {
        let turns = self.0.get(&way)?;
        Some(median(turns.iter().map(|(turn, _)| time(turn))))
    }

    /// Prints it.
    pub fn print(&self) {
        println!("\nSECONDS OF EACH STEP after the one before, medians");
        print!("{:<26}", "");
        STEPS.iter().for_each(|step| print!("{step:>10}"));
        println!("{:>12}{:>12}", "from killed", "from asked");
        for (way, turns) in &self.0 {
            print!("{:<26}", way.name());
            for step in 0..STEPS.len() {
                let took = median(turns.iter().map(|(turn, _)| turn.steps()[step]));
                print!("{:>10.2}", took.as_secs_f64());
            }
            let whole = median(turns.iter().map(|(turn, _)| turn.whole()));
            let asked = median(turns.iter().map(|(turn, _)| turn.between(ASKED, WRITES)));
            println!("{:>12.2}{:>12.2}", whole.as_secs_f64(), asked.as_secs_f64());
        }
        println!();
        let Some(ours) = self.of(Way::Picket, |turn| turn.between(ASKED, WRITES)) else { return };
        for way in self.0.keys().filter(|way| **way != Way::Picket) {
            if let Some(other) = self.of(*way, |turn| turn.between(ASKED, WRITES)) {
                println!(
                    "  {}: {:.1} times Picket's time from the request to the first write after it",
                    way.name(),
                    ratio(other, ours)
                );
            }
        }
        let torn: usize = self.0.values().flatten().map(|(_, torn)| torn).sum();
        println!("  written by two at a time, in all turns: {torn} times");
    }

    /// What was to be reached.
    pub fn goals(&self) -> Goals {
        let mut goals = Goals::default();
        let Some(turns) = self.0.get(&Way::Picket) else { return goals };
        for (end, what, most) in [
            (DETACHED, "pod deleted and volume detached", LET_GO),
            (WRITES, "it writes elsewhere", ELSEWHERE),
        ] {
            let all = || turns.iter().map(|(turn, _)| turn.between(SETTLED, end));
            let (middle, worst) = (median(all()), all().max().unwrap_or_default());
            goals.judge(
                format!(
                    "from the end of settle, {what} within {} s: {:.2} s, {:.2} s at worst",
                    most.as_secs(),
                    middle.as_secs_f64(),
                    worst.as_secs_f64()
                ),
                middle <= most,
            );
        }
        goals.judge("no two writers at a time", turns.iter().all(|(_, torn)| *torn == 0));
        goals
    }
}
