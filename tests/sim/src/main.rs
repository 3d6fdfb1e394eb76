//! `picket-sim`: lives through many histories, or replays one. `cargo xtask sim` calls it.

use std::process::ExitCode;
use std::time::Instant;

use picket_sim::{Weakness, live, many};
use tokio::runtime::Runtime;

/// A history is made of small things that live shortly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "\
usage: cargo xtask sim [--histories N] [--seed S] [--threads T] [--log]

  --histories N   so many histories (10000), from seed S on (0)
  --seed S        without --histories: the one history of that seed, with its diary where it fails
  --threads T     in so many threads (one for each core)
  --weak W        in worlds that break the law themselves, so that a history ought to fail: LeasesEndEarly,
                  StaleWritersAreHeard, SessionsNeverEnd, EndedSessionsLiveOn, ReleasesHeedNoEnd, DetachesHeedNoEnd,
                  EverybodyLies or NobodyKnowsItsHost
  --log           with the diary in any case, and the engine's log";

struct Wanted {
    from: u64,
    count: Option<u64>,
    threads: Option<u64>,
    weakness: Weakness,
    log: bool,
}

fn main() -> ExitCode {
    match wanted(std::env::args().skip(1)) {
        Err(words) => {
            eprintln!("{words}");
            ExitCode::FAILURE
        }
        Ok(wanted) => run(&wanted),
    }
}

fn wanted(mut words: impl Iterator<Item = String>) -> Result<Wanted, String> {
    let mut wanted = Wanted { from: 0, count: None, threads: None, weakness: Weakness::None, log: false };
    let mut one = false;
    while let Some(word) = words.next() {
        let mut number = |option: &str| {
            let value = words.next().ok_or_else(|| format!("{option} wants a number\n\n{USAGE}"))?;
            value.parse::<u64>().map_err(|_| format!("{option} wants a number, not {value:?}\n\n{USAGE}"))
        };
        match word.as_str() {
            "--histories" => wanted.count = Some(number("--histories")?),
            "--seed" => (wanted.from, one) = (number("--seed")?, true),
            "--threads" => wanted.threads = Some(number("--threads")?.max(1)),
            "--weak" => {
                let word = words.next().unwrap_or_default();
                let named = |weakness: &&Weakness| format!("{weakness:?}") == word;
                let weakness = Weakness::ALL.iter().find(named);
                wanted.weakness =
                    *weakness.ok_or_else(|| format!("no such weakness: {word:?}\n\n{USAGE}"))?;
            }
            "--log" => wanted.log = true,
            _ => return Err(format!("no such option: {word}\n\n{USAGE}")),
        }
    }
    if !one {
        wanted.count = wanted.count.or(Some(10_000));
    }
    Ok(wanted)
}

fn runtime() -> Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime")
}

fn run(wanted: &Wanted) -> ExitCode {
    if wanted.log {
        let level = tracing_subscriber::filter::LevelFilter::DEBUG;
        let log = tracing_subscriber::fmt().with_max_level(level).with_ansi(false).without_time();
        log.with_writer(std::io::stderr).init();
    }
    let Some(count) = wanted.count else { return replay(wanted) };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = wanted.threads.and_then(|threads| usize::try_from(threads).ok()).unwrap_or(cores);
    let began = Instant::now();
    let lived = many(wanted.from..wanted.from.saturating_add(count), threads, wanted.weakness, runtime);
    let took = began.elapsed().as_secs_f64();
    lived.words().iter().for_each(|words| eprintln!("{words}"));
    println!(
        "{count} histories from seed {}: {} failed; {:.1} days of their time, in {took:.1} s: {:.0} a second, in {threads} threads",
        wanted.from,
        lived.failed.len(),
        lived.time.as_secs_f64() / 86_400.0,
        count as f64 / took,
    );
    let words: Vec<String> =
        lived.tally.fields().iter().map(|(name, count)| format!("{name} {count}")).collect();
    println!("{}", words.join(", "));
    if lived.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn replay(wanted: &Wanted) -> ExitCode {
    let seed = wanted.from;
    match live(runtime(), seed, wanted.weakness, true) {
        Ok(lived) => {
            if wanted.log {
                println!("{}", lived.diary);
            }
            let (events, time, hash) = (lived.tally.events, lived.time, lived.hash);
            println!("seed {seed}: the law holds; {events} events in {time:?}, hash {hash:016x}");
            ExitCode::SUCCESS
        }
        Err(broken) => {
            println!("{}\n\nseed {seed} is broken:", broken.diary);
            broken.what.iter().for_each(|what| println!("{what}"));
            ExitCode::FAILURE
        }
    }
}
