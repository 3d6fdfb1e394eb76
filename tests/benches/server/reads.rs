//! Status reads in a second, and how long the slowest hundredth waits.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::Wrong;
use crate::child::{Child, status_of};
use crate::crowd::{Dice, Times, millis, ratio};
use crate::options::Options;

const CONNECTIONS: usize = 4;
const AT_ONCE: usize = 8;

struct Round {
    per_second: f64,
    times: Times,
}

/// Ours and the echo in turns.
pub async fn beside(daemon: &Child, echo: &Child, options: Options) -> Result<(), Wrong> {
    println!(
        "\nSTATUS READS: GetNode of one of {} nodes, {CONNECTIONS} connections, {AT_ONCE} questions at once on each",
        options.nodes
    );
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        let seed = options.seed + round as u64;
        theirs.push(ask(echo, options, seed).await?);
        ours.push(ask(daemon, options, seed).await?);
    }
    let (ours, theirs) = (middle(ours)?, middle(theirs)?);
    for (who, round) in [("picket", &ours), ("echo", &theirs)] {
        let (half, most) = (round.times.quantile(0.5), round.times.quantile(0.99));
        println!("  {who:<8}{:>8.0} /s   p50 {}   p99 {}", round.per_second, millis(half), millis(most));
    }
    println!(
        "  ratio: {:.2} of the echo's reads, p99 {:.2} times the echo's",
        ours.per_second / theirs.per_second,
        ratio(ours.times.quantile(0.99), theirs.times.quantile(0.99))
    );
    Ok(())
}

/// The round with the middle rate.
fn middle(mut rounds: Vec<Round>) -> Result<Round, Wrong> {
    rounds.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
    let at = rounds.len() / 2;
    rounds.into_iter().nth(at).ok_or_else(|| "no round".into())
}

async fn ask(whom: &Child, options: Options, seed: u64) -> Result<Round, Wrong> {
    let mut askers = JoinSet::new();
    let began = Instant::now();
    let end = began + Duration::from_secs(options.seconds);
    for connection in 0..CONNECTIONS {
        let client = whom.client().await?;
        for asker in 0..AT_ONCE {
            let mut client = client.clone();
            let mut dice = Dice(seed ^ ((connection * AT_ONCE + asker) as u64) << 32);
            askers.spawn(async move {
                let mut times = Vec::new();
                while Instant::now() < end {
                    let before = Instant::now();
                    client.get_node(status_of(dice.below(options.nodes))).await?;
                    times.push(before.elapsed());
                }
                Ok::<_, tonic::Status>(times)
            });
        }
    }
    let mut times = Vec::new();
    while let Some(ended) = askers.join_next().await {
        times.extend(ended??);
    }
    let per_second = times.len() as f64 / began.elapsed().as_secs_f64();
    Ok(Round { per_second, times: Times::of(times) })
}
