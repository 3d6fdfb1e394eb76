//! `picket-sim`: lives through many histories, or replays one. `cargo xtask sim` calls it.

use std::process::ExitCode;
use std::time::Instant;

use picket_sim::{Broken, Lived, Tally, Weakness, live};

const USAGE: &str = "\
usage: cargo xtask sim [--histories N] [--seed S] [--log]

  --histories N   so many histories (10000), from seed S on (0)
  --seed S        without --histories: the one history of that seed, with its diary where it fails
  --log           with the diary in any case, and the engine's log";

struct Wanted {
    from: u64,
    count: Option<u64>,
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
    let mut wanted = Wanted { from: 0, count: None, log: false };
    let mut one = false;
    while let Some(word) = words.next() {
        let mut number = |option: &str| {
            let value = words.next().ok_or_else(|| format!("{option} wants a number\n\n{USAGE}"))?;
            value.parse::<u64>().map_err(|_| format!("{option} wants a number, not {value:?}\n\n{USAGE}"))
        };
        match word.as_str() {
            "--histories" => wanted.count = Some(number("--histories")?),
            "--seed" => (wanted.from, one) = (number("--seed")?, true),
            "--log" => wanted.log = true,
            _ => return Err(format!("no such option: {word}\n\n{USAGE}")),
        }
    }
    if !one {
        wanted.count = wanted.count.or(Some(10_000));
    }
    Ok(wanted)
}

fn once(seed: u64, loud: bool) -> Result<Lived, Box<Broken>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    live(runtime.expect("a runtime"), seed, Weakness::None, loud)
}

fn run(wanted: &Wanted) -> ExitCode {
    if wanted.log {
        let level = tracing_subscriber::filter::LevelFilter::DEBUG;
        let log = tracing_subscriber::fmt().with_max_level(level).with_ansi(false).without_time();
        log.with_writer(std::io::stderr).init();
    }
    let Some(count) = wanted.count else { return replay(wanted.from, wanted.log) };
    let began = Instant::now();
    let (mut failed, mut tally, mut time) = (Vec::new(), Tally::default(), 0.0);
    for seed in wanted.from..wanted.from + count {
        match once(seed, false) {
            Ok(lived) => {
                tally = tally.and(lived.tally);
                time += lived.time.as_secs_f64();
            }
            Err(broken) => {
                let reason = broken.what.first().and_then(|what| what.lines().next()).unwrap_or_default();
                eprintln!("seed {seed}: {}", reason.chars().take(300).collect::<String>());
                eprintln!("  replay: cargo xtask sim --seed {seed}");
                failed.push(seed);
            }
        }
    }
    let took = began.elapsed().as_secs_f64();
    println!(
        "{count} histories from seed {}: {} failed; {:.1} days of their time, in {took:.1} s: {:.0} a second",
        wanted.from,
        failed.len(),
        time / 86_400.0,
        count as f64 / took,
    );
    let words: Vec<String> = tally.fields().iter().map(|(name, count)| format!("{name} {count}")).collect();
    println!("{}", words.join(", "));
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn replay(seed: u64, log: bool) -> ExitCode {
    match once(seed, true) {
        Ok(lived) => {
            if log {
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
