//! `cargo xtask bench ha`: three gateways over three members of etcd; how fast one takes over, and what etcd costs.
//!
//! **Purpose.** From the death of a leader in the middle of a fence to the next word to its BMC, beside the bound of the law;
//! the same for a leader that is told to stop, and for one that dies together with etcd's. etcd's writes for each fence, by
//! etcd's own count; fences in a second on etcd beside the embedded store, in the same run.
//! **Non-goals.** No milliseconds that mean something on another machine, but for the bounds of the law, which hold on each.
//!
//! # Invariants
//!
//! - The daemons are the shipped one, each in a process of its own, by the shipped rules but for
//!   `[limits]`, `[budget]` and, where one fence must outlast the run, its deadlines. etcd forces what it
//!   writes to the disk.
//! - The next word is taken where it passes: at a relay before the BMC.
//! - What was started ends with the run.

mod cluster;
#[path = "../server/crowd.rs"]
#[allow(dead_code)]
mod crowd;
mod daemon;
#[path = "../common/edge.rs"]
mod edge;
#[path = "../common/fence.rs"]
mod fence;
mod fences;
mod fleet;
#[path = "../common/race/goals.rs"]
mod goals;
mod options;
mod takeover;

use std::process::ExitCode;
use std::sync::Arc;

use crate::edge::{Wrong, print_load};
use crate::goals::Goals;
use crate::options::{Options, Task};

fn main() -> ExitCode {
    let ended = match options::parse(std::env::args().skip(1)) {
        Ok(Task::Help) => {
            println!("{}", options::USAGE);
            Ok(())
        }
        Ok(Task::Bench(options)) => edge::runtime().and_then(|runtime| runtime.block_on(bench(options))),
        Ok(Task::Daemon(config)) => {
            let arguments = picket_gateway::Arguments::start(config);
            return picket_gateway::main(&arguments, Arc::new(picket_engine::NoHooks));
        }
        Err(wrong) => Err(wrong.into()),
    };
    edge::exit("ha", ended)
}

async fn bench(options: Options) -> Result<(), Wrong> {
    print_surroundings(options);
    let mut goals = Goals::default();
    if options.takeover {
        takeover::measure(options, &mut goals).await?;
    }
    if options.fences {
        fences::beside(options).await?;
    }
    print_load("at the end");
    goals.print();
    Ok(())
}

fn print_surroundings(options: Options) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("picket {}, several gateways over etcd", env!("CARGO_PKG_VERSION"));
    println!("  machine: {cores} cores, which callers, gateways, etcd's members and BMCs share");
    println!("  seed of the moments: {} (--seed={} repeats them)", options.seed, options.seed);
    if cfg!(debug_assertions) {
        println!(
            "  NOT A RELEASE BUILD: only the bounds and the ratios mean something, and those less than in one"
        );
    }
    print_load("at the start");
}
