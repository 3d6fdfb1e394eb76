//! `cargo xtask bench server`: the service over ten thousand simulated nodes, beside a plain echo and a bare store.
//!
//! **Purpose.** Status reads in a second, the delay of a change to the last of a hundred watchers, memory, fences in a second
//! on the embedded store; each beside a peer in the same run: a tonic service that answers an equal message and does nothing
//! else, and redb's bare commits.
//! **Non-goals.** No milliseconds that mean something on another machine; no gate.
//!
//! # Invariants
//!
//! - The daemon is the shipped one, in a process of its own, by its shipped rules but for `[limits]`; the
//!   echo stands in a process of its own as well, behind the same kind of socket.
//! - What was started ends with the run.

mod child;
#[path = "../common/race/cost.rs"]
#[allow(dead_code)]
mod cost;
mod crowd;
mod echo;
#[path = "../common/edge.rs"]
mod edge;
#[path = "../common/fence.rs"]
mod fence;
mod fences;
mod options;
mod reads;
mod watchers;

use std::process::ExitCode;
use std::sync::Arc;

use crate::child::Child;
use crate::edge::{Wrong, print_load, runtime};
use crate::options::{Options, Task};

fn main() -> ExitCode {
    let ended = match options::parse(std::env::args().skip(1)) {
        Ok(Task::Help) => {
            println!("{}", options::USAGE);
            Ok(())
        }
        Ok(Task::Bench(options)) => runtime().and_then(|runtime| runtime.block_on(bench(options))),
        Ok(Task::Daemon(config)) => {
            let arguments = picket_gateway::Arguments::start(config);
            return picket_gateway::main(&arguments, Arc::new(picket_engine::NoHooks));
        }
        Ok(Task::Echo(socket, message)) => {
            runtime().and_then(|runtime| runtime.block_on(echo::serve(&socket, &message)))
        }
        Err(wrong) => Err(wrong.into()),
    };
    edge::exit("server", ended)
}

async fn bench(options: Options) -> Result<(), Wrong> {
    print_surroundings(options);
    let home = tempfile::tempdir()?;
    let daemon = Child::daemon(home.path(), options.nodes).await?;
    let idle = cost::resident(daemon.id());
    let echo = Child::echo(home.path(), &daemon).await?;
    reads::beside(&daemon, &echo, options).await?;
    let watched = watchers::beside(&daemon, &echo, options).await?;
    println!("\nMEMORY of the daemon, resident");
    let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
    let each = idle as f64 / 1024.0 / options.nodes as f64;
    println!("  {} nodes, looked at once   {:>8.1} MiB, {each:.1} KiB a node", options.nodes, mib(idle));
    println!("  with {} watchers            {:>8.1} MiB", options.watchers, mib(watched));
    fences::beside(&daemon, home.path(), options).await?;
    println!("  resident at the end            {:>8.1} MiB", mib(cost::resident(daemon.id())));
    print_load("at the end");
    Ok(())
}

fn print_surroundings(options: Options) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("picket {}, the service over {} simulated nodes", env!("CARGO_PKG_VERSION"), options.nodes);
    println!("  machine: {cores} cores, which the callers share with the daemon and its peers");
    println!("  seed of the questions: {} (--seed={} repeats them)", options.seed, options.seed);
    if cfg!(debug_assertions) {
        println!("  NOT A RELEASE BUILD: only the ratios mean something, and those less than in one");
    }
    print_load("at the start");
}
