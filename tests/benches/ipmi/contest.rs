//! The race: all contestants against the same BMCs, in turns, round by round.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::Wrong;
use crate::farm::Farm;
use crate::floor::Floor;
use crate::goals::Goals;
use crate::options::Crowd;
use crate::ours::{Ours, Start};
use crate::powerman::{Ipmipower, Powerman};
use crate::series::{Dice, Series, millis, ratio};
use crate::subject::Maker;

/// Someone who switches a crowd of BMCs off and says when all are seen off.
#[async_trait]
pub trait Contestant: Send {
    /// Who.
    fn name(&self) -> &'static str;

    /// What is done before its time runs.
    async fn prepare(&mut self) -> Result<(), Wrong> {
        Ok(())
    }

    /// What is timed: from the wish until the last one is confirmed off.
    async fn run(&mut self) -> Result<(), Wrong>;

    /// What is done after its time.
    async fn rest(&mut self) -> Result<(), Wrong> {
        Ok(())
    }

    /// Processor time that its processes have used so far.
    fn cpu(&self) -> Duration;
}

/// What a contestant reached.
struct Score {
    name: &'static str,
    times: Series,
    cpu: Duration,
    /// Rounds in which it complained, or said that it was done while a BMC said on; and why, of the last one.
    failed: usize,
    why: String,
}

impl Score {
    fn new(name: &'static str) -> Self {
        Self { name, times: Series::default(), cpu: Duration::ZERO, failed: 0, why: String::new() }
    }
}

/// Who is compared with the others.
const IPMIPOWER: &str = "ipmipower";
const POWERMAN: &str = "powerman, resident";

async fn compete(
    farm: &Farm,
    contestants: &mut [Box<dyn Contestant>],
    rounds: usize,
    dice: &mut Dice,
) -> Result<Vec<Score>, Wrong> {
    let mut scores: Vec<Score> = contestants.iter().map(|one| Score::new(one.name())).collect();
    // The first round warms caches, and is not counted.
    for round in 0..=rounds {
        for turn in dice.order(contestants.len()) {
            let (one, score) = (&mut contestants[turn], &mut scores[turn]);
            farm.switch_on()?;
            one.prepare().await?;
            let (cpu, start) = (one.cpu(), Instant::now());
            let ran = one.run().await;
            let (took, cpu) = (start.elapsed(), one.cpu().saturating_sub(cpu));
            let held = ran.and_then(|()| farm.must_be_off(score.name));
            one.rest().await?;
            if let Err(wrong) = held {
                score.failed += 1;
                score.why = wrong.to_string();
            } else if round > 0 {
                score.times.push(took);
                score.cpu += cpu;
            }
        }
    }
    Ok(scores)
}

fn print(scores: &[Score], bmcs: usize) {
    let median = |name| scores.iter().find(|score| score.name == name).map(|score| score.times.median());
    let (ipmipower, powerman) = (median(IPMIPOWER).unwrap_or_default(), median(POWERMAN).unwrap_or_default());
    println!(
        "  {:<30} {:>9} {:>9} {:>9} {:>11} {:>11} {:>12}",
        "", "median ms", "p95 ms", "best ms", "x ipmipower", "x powerman", "CPU us each"
    );
    for Score { name, times, cpu, failed, why } in scores {
        let each = cpu.as_secs_f64() * 1e6 / (times.len() * bmcs).max(1) as f64;
        println!(
            "  {name:<30} {:>9} {:>9} {:>9} {:>11.3} {:>11.3} {each:>12.0}",
            millis(times.median()),
            millis(times.quantile(0.95)),
            millis(times.least()),
            ratio(times.median(), ipmipower),
            ratio(times.median(), powerman),
        );
        if *failed > 0 {
            println!("    failed in {failed} further rounds: {why}");
        }
    }
}

fn judge(scores: &[Score], bmcs: usize, goals: &mut Goals) {
    let score = |name: &str| scores.iter().find(|score| score.name == name && score.times.len() > 0);
    let mut against = |ours: &str, theirs: &str, most: f64| {
        let (Some(this), Some(other)) = (score(ours), score(theirs)) else {
            return goals
                .judge(format!("{bmcs} at once: {ours} and {theirs}: one of them never did it"), false);
        };
        let (a, b) = (this.times.median(), other.times.median());
        let times = ratio(a, b);
        let wanted = if most < 1.0 { format!("at most {most} x") } else { "faster than".to_owned() };
        goals.judge(
            format!(
                "{bmcs} at once: {ours} {wanted} {theirs}: {} and {} ms, {times:.2} x",
                millis(a),
                millis(b)
            ),
            this.failed == 0 && a < b && times <= most,
        );
    };
    // What is judged has its close in its time, as the peers have.
    let cold = "picket, cold, with close";
    against(cold, IPMIPOWER, if bmcs >= 512 { 0.6 } else { 1.0 });
    against(cold, POWERMAN, 1.0);
    against("picket, warm", POWERMAN, 1.0);
}

/// One crowd's race.
pub async fn crowd(crowd: Crowd, seed: u64, goals: &mut Goals) -> Result<(), Wrong> {
    let Crowd { bmcs, rounds } = crowd;
    let head = if bmcs == 1 { "ONE".to_owned() } else { format!("{bmcs} AT ONCE") };
    println!("\n{head}: off, confirmed by one reading, no dwell; {rounds} rounds");
    let farm = Farm::start(bmcs, false).await?;
    let (maker, addresses) = (Arc::new(Maker::new()?), farm.addresses());
    let ours = |start| Box::new(Ours::new(start, maker.clone(), addresses.clone()));
    let powerman = Powerman::start(&farm).await?;
    let mut contestants: Vec<Box<dyn Contestant>> = vec![
        ours(Start::Warm),
        ours(Start::Cold),
        ours(Start::ColdAndClosed),
        Box::new(Floor::new(true, addresses.clone())),
        Box::new(Floor::new(false, addresses.clone())),
        Box::new(Ipmipower::new(&farm)),
        Box::new(powerman),
    ];
    let scores = compete(&farm, &mut contestants, rounds, &mut Dice(seed)).await?;
    print(&scores, bmcs);
    judge(&scores, bmcs, goals);
    Ok(())
}
