//! The race: all contestants against the same BMCs, in turns, round by round.

use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::farm::Farm;
use super::goals::Goals;
use super::series::{Dice, Series, millis, ratio};
use crate::Wrong;

/// What is done to a whole farm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Ask whether each is on; all are.
    Status,
    /// Switch each off, and see it off.
    Off,
}

/// Someone who does something to a crowd of BMCs and says when all of it is done.
#[async_trait]
pub trait Contestant: Send {
    /// Who.
    fn name(&self) -> &'static str;

    /// What is done before its time runs.
    async fn prepare(&mut self) -> Result<(), Wrong> {
        Ok(())
    }

    /// What is timed: from the wish until the last one is known to be on, or confirmed off.
    async fn run(&mut self, deed: Deed) -> Result<(), Wrong>;

    /// What is done after its time. It leaves no open socket to a BMC behind.
    async fn rest(&mut self) -> Result<(), Wrong> {
        Ok(())
    }

    /// Processor time that its processes have used so far.
    fn cpu(&self) -> Duration;
}

/// What a contestant reached.
pub struct Score {
    /// Who.
    pub name: &'static str,
    /// Of the rounds in which it did it.
    pub times: Series,
    cpu: Duration,
    bmcs: Option<Duration>,
    /// Rounds in which it complained, or said that it was done while a BMC said on; and why, of the last one.
    pub failed: usize,
    why: String,
}

impl Score {
    fn new(name: &'static str) -> Self {
        let (times, cpu, bmcs) = (Series::default(), Duration::ZERO, None);
        Self { name, times, cpu, bmcs, failed: 0, why: String::new() }
    }

    fn each(&self, cpu: Duration, bmcs: usize) -> f64 {
        cpu.as_secs_f64() * 1e6 / (self.times.len() * bmcs).max(1) as f64
    }

    /// Processor time for one BMC, in microseconds.
    pub fn cpu_each(&self, bmcs: usize) -> f64 {
        self.each(self.cpu, bmcs)
    }
}

/// How often, and whether a first round that is not counted warms caches.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// That count.
    pub counted: usize,
    /// One more before them.
    pub warm_up: bool,
}

/// One deed by all of them, in an order that the dice give anew each round.
///
/// # Errors
/// The farm is no more. What a contestant fails in stands in its score.
pub async fn compete(
    farm: &dyn Farm,
    contestants: &mut [Box<dyn Contestant>],
    deed: Deed,
    rounds: Rounds,
    dice: &mut Dice,
) -> Result<Vec<Score>, Wrong> {
    let mut scores: Vec<Score> = contestants.iter().map(|one| Score::new(one.name())).collect();
    let uncounted = usize::from(rounds.warm_up);
    for round in 0..rounds.counted + uncounted {
        for turn in dice.order(contestants.len()) {
            let (one, score) = (&mut contestants[turn], &mut scores[turn]);
            farm.switch_on()?;
            let ready = one.prepare().await;
            let (bmcs, cpu, start) = (farm.cpu(), one.cpu(), Instant::now());
            let ran = match ready {
                Ok(()) => one.run(deed).await,
                Err(wrong) => Err(wrong),
            };
            let (took, cpu) = (start.elapsed(), one.cpu().saturating_sub(cpu));
            let bmcs = farm.cpu().zip(bmcs).map(|(after, before)| after.saturating_sub(before));
            let held = match deed {
                Deed::Status => ran,
                Deed::Off => ran.and_then(|()| farm.must_be_off(score.name)),
            };
            let held = one.rest().await.and(held);
            if let Err(wrong) = held {
                score.failed += 1;
                score.why = wrong.to_string();
            } else if round >= uncounted {
                score.times.push(took);
                score.cpu += cpu;
                score.bmcs = bmcs.map(|bmcs| score.bmcs.unwrap_or_default() + bmcs);
            }
        }
    }
    Ok(scores)
}

/// A column of the table: how many times the median of another.
pub struct Beside {
    /// Its head.
    pub head: &'static str,
    /// With whom a contestant is compared.
    pub whom: fn(&str) -> &'static str,
}

/// The median of that contestant, if it has done it.
pub fn median(scores: &[Score], name: &str) -> Option<Duration> {
    scores.iter().find(|score| score.name == name && score.times.len() > 0).map(|score| score.times.median())
}

/// The table.
pub fn print(scores: &[Score], bmcs: usize, columns: &[Beside]) {
    let heads: String = columns.iter().map(|column| format!(" {:>11}", column.head)).collect();
    let bmcs_head = if scores.iter().any(|score| score.bmcs.is_some()) { "  BMC us each" } else { "" };
    println!(
        "  {:<30} {:>9} {:>9} {:>9}{heads} {:>12}{bmcs_head}",
        "", "median ms", "p95 ms", "best ms", "CPU us each"
    );
    for score in scores {
        let Score { name, times, failed, why, .. } = score;
        if times.len() > 0 {
            let beside = |column: &Beside| match median(scores, (column.whom)(name)) {
                Some(other) => format!(" {:>11.3}", ratio(times.median(), other)),
                None => format!(" {:>11}", "-"),
            };
            let beside: String = columns.iter().map(beside).collect();
            let far = score.bmcs.map_or(String::new(), |cpu| format!(" {:>12.0}", score.each(cpu, bmcs)));
            println!(
                "  {name:<30} {:>9} {:>9} {:>9}{beside} {:>12.0}{far}",
                millis(times.median()),
                millis(times.quantile(0.95)),
                millis(times.least()),
                score.cpu_each(bmcs),
            );
        } else {
            println!("  {name:<30} never did it");
        }
        if *failed > 0 {
            let short: String = why.chars().take(160).collect();
            println!("    failed in {failed} further rounds: {}", short.replace('\n', " "));
        }
    }
}

/// A goal: `ours` takes at most `most` times as long as `theirs`, and is always done.
pub fn against(
    scores: &[Score],
    what: &str,
    (ours, theirs): (&'static str, &'static str),
    most: f64,
    goals: &mut Goals,
) {
    let score = |name: &str| scores.iter().find(|score| score.name == name);
    let done = |name: &str| score(name).filter(|score| score.times.len() > 0);
    let (Some(this), Some(other)) = (done(ours), done(theirs)) else {
        return goals.judge(format!("{what}: {ours} and {theirs}: one of them never did it"), false);
    };
    let (a, b) = (this.times.median(), other.times.median());
    let times = ratio(a, b);
    let wanted = if most == 1.0 { "faster than".to_owned() } else { format!("at most {most:.2} x") };
    goals.judge(
        format!("{what}: {ours} {wanted} {theirs}: {} and {} ms, {times:.2} x", millis(a), millis(b)),
        this.failed == 0 && times <= most,
    );
}
