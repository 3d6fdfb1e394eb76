//! `cargo xtask bench cloud`: what it costs to fence many instances of a cloud at once, in requests and in time.
//!
//! **Purpose.** Requests to the cloud's API for each fenced instance, by what they ask, at 1, 100 and 1,000 instances, and how long
//! until all are proven off, with the limits that the cloud documents applied by its peer; beside the fence agent of that cloud, one
//! instance after the other, in the same run.
//! **Non-goals.** No milliseconds of a real cloud: its peers answer at once, and an instance stops in a second. What counts is how
//! many requests there are, and what limits make of that.
//!
//! # Invariants
//!
//! - The daemon is the shipped one, in a process of its own, by the shipped rules but for `[limits]` and
//!   `[budget]`.
//! - The peer counts.
//! - The truth is asked whether each instance was off when it was said to be.
//! - What was started ends with the run.

mod beside;
#[path = "../ha/daemon.rs"]
#[allow(dead_code)]
mod daemon;
#[path = "../common/edge.rs"]
mod edge;
#[path = "../common/fence.rs"]
mod fence;
mod many;
mod options;
mod parts;
mod places;

use std::process::ExitCode;
use std::sync::Arc;

use crate::edge::{Wrong, print_load};
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
    edge::exit("cloud", ended)
}

async fn bench(options: Options) -> Result<(), Wrong> {
    println!("picket {}, instances of clouds", env!("CARGO_PKG_VERSION"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("  machine: {cores} cores, which the gateway, the cloud and the agents share");
    print_load("at the start");
    for cloud in &options.clouds {
        let place = places::start(*cloud).await?;
        println!("\n{}: {}", cloud.name(), place.about());
        let agent = beside::measure(place.as_ref(), options.beside).await?;
        agent.print(place.agent());
        for nodes in &options.nodes {
            many::measure(place.as_ref(), *nodes, &agent).await?;
        }
    }
    print_load("at the end");
    Ok(())
}
