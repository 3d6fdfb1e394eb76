//! How long a fence stands still when its leader goes.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::time::sleep;

use crate::Wrong;
use crate::cluster;
use crate::crowd::{Dice, Times, millis};
use crate::fleet::Trio;
use crate::goals::Goals;
use crate::options::Options;

/// The shipped default (`[election] lease`).
const LEASE: Duration = Duration::from_secs(5);
/// What the law allows (S6; the bounds of taking over).
const KILLED: Duration = Duration::from_millis(LEASE.as_millis() as u64 + 2_500);
const KILLED_WITH_ETCD: Duration = Duration::from_millis(2 * LEASE.as_millis() as u64 + 3_000);
const STOPPED: Duration = Duration::from_millis(500);
const END_WITHIN: Duration = Duration::from_secs(60);

/// How the leader goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// SIGKILL.
    Killed,
    /// SIGKILL, and etcd's leader as well.
    KilledWithEtcd,
    /// SIGTERM.
    Stopped,
}

/// What one takeover took, from before the signal.
struct Takeover {
    /// To the first datagram of the next leader's to the BMC.
    word: Duration,
    /// To when the BMC has taken its off.
    off: Duration,
}

/// All three ways, beside their bounds.
pub async fn measure(options: Options, goals: &mut Goals) -> Result<(), Wrong> {
    println!(
        "\nTAKING OVER: three gateways, three members of etcd, a fence under way, lease {LEASE:?} (the default)"
    );
    let mut trio = Trio::start(options.seed).await?;
    let mut dice = Dice(options.seed);
    let ways = [
        (End::Killed, options.kills, KILLED, "killed (SIGKILL)"),
        (End::KilledWithEtcd, options.double_kills, KILLED_WITH_ETCD, "killed, and etcd's leader too"),
        (End::Stopped, options.stops, STOPPED, "told to stop (SIGTERM)"),
    ];
    for (end, rounds, bound, words) in ways {
        let (mut words_of, mut offs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let took = once(&mut trio, end, &mut dice).await?;
            words_of.push(took.word);
            offs.push(took.off);
        }
        let (word, off) = (Times::of(words_of), Times::of(offs));
        println!("  {words}, {rounds} times");
        for (what, times) in [("to the next word to the BMC", &word), ("to the next off that it took", &off)]
        {
            let [half, most, last] = [0.5, 0.99, 1.0].map(|share| millis(times.quantile(share)));
            println!("    {what:<30} p50 {half:>11}   p99 {most:>11}   most {last:>11}");
        }
        let last = word.quantile(1.0);
        println!(
            "    the law: at most {bound:?}; the longest is {:.2} of it",
            last.as_secs_f64() / bound.as_secs_f64()
        );
        goals.judge(
            format!("{words}: the next word within {bound:?}, the longest {}", millis(last)),
            last <= bound,
        );
    }
    Ok(())
}

async fn once(trio: &mut Trio, end: End, dice: &mut Dice) -> Result<Takeover, Wrong> {
    trio.stand_by().await?;
    let leader = trio.leader().await?;
    // Anywhere between two of its keep-alives.
    sleep(Duration::from_millis(dice.below(LEASE.as_millis() as usize / 3) as u64)).await;
    let etcd = cluster::leader(&trio.etcd).await?;
    let (sessions, offs) = (trio.sessions(), trio.offs());
    let from = Instant::now();
    match end {
        End::Stopped => trio.gateways[leader].process()?.signal(Signal::TERM),
        End::Killed => trio.gateways[leader].process()?.kill(),
        End::KilledWithEtcd => {
            trio.gateways[leader].process()?.kill();
            trio.etcd.member(etcd).process().kill();
        }
    }
    let word = trio.next_word(sessions).await?.saturating_duration_since(from);
    // One that was on its way may have landed after it was counted: it is the old leader's.
    let off = trio.off_after(offs).await?.saturating_duration_since(from).max(word);
    if end == End::KilledWithEtcd {
        trio.etcd.member(etcd).restart().await?;
    }
    let gone = &mut trio.gateways[leader];
    gone.process()?.wait(END_WITHIN).await?;
    gone.start().await?;
    Ok(Takeover { word, off })
}
