//! `cargo xtask bench kubernetes`: from a kubelet's death until its pod runs elsewhere with its volume, step by step.
//!
//! **Purpose.** The same case by Picket (controller and gateway) and by what people do without it, in the same run: in that order by hand,
//! the taint alone after the off, a reboot and a flush as kube-fencing does it, and nothing.
//! **Non-goals.** No milliseconds of real BMCs or disks: simulated BMCs, and volumes that are folders. What counts is who waits for whom,
//! and for how long.
//!
//! # Invariants
//!
//! - The cluster is real, with real kubelets.
//! - What is told by others is taken as others tell it: power by the machine's own log, volumes by the CSI
//!   driver's, writes by what stands on the volume.
//! - What was started ends with the run.

#[path = "../common/edge.rs"]
mod edge;
#[path = "../common/race/goals.rs"]
mod goals;
mod options;
mod others;
mod ours;
#[path = "../common/race/series.rs"]
#[allow(dead_code)]
mod series;
mod stage;
mod table;
mod turn;
mod watch;

use std::process::ExitCode;

use picket_tests::peers::Kubernetes;

use crate::edge::{Wrong, print_load};
use crate::options::{Options, Task, Way};
use crate::ours::Ours;
use crate::stage::Stage;
use crate::table::Table;

fn main() -> ExitCode {
    let ended = match options::parse(std::env::args().skip(1)) {
        Ok(Task::Help) => {
            println!("{}", options::USAGE);
            Ok(())
        }
        Ok(Task::Bench(options)) => edge::runtime().and_then(|runtime| runtime.block_on(bench(&options))),
        Err(wrong) => Err(wrong.into()),
    };
    edge::exit("kubernetes", ended)
}

async fn bench(options: &Options) -> Result<(), Wrong> {
    print_surroundings(options);
    let cluster = Kubernetes::start(2).await?;
    let ours = Ours::start(&cluster).await?;
    let mut table = Table::default();
    let mut number = 0;
    // One of each in turn, so that what else the machine does meets all of them.
    for round in 1..=options.turns {
        for way in &options.ways {
            number += 1;
            let stage = Stage::set(&cluster, &format!("turn-{number}")).await?;
            let turn = match way {
                Way::Picket => ours.fence(&stage).await?,
                other => others::let_go(*other, &stage).await?,
            };
            let torn = stage.torn();
            println!("  {round}. {}: {}", way.name(), turn.words());
            table.add(*way, turn, torn);
            stage.clear(&ours).await?;
        }
    }
    if options.nothing {
        others::nothing(&cluster).await?;
    }
    table.print();
    print_load("at the end");
    table.goals().print();
    Ok(())
}

fn print_surroundings(options: &Options) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("picket {}, a pod and its volume from one machine to another", env!("CARGO_PKG_VERSION"));
    println!(
        "  machine: {cores} cores, which the control plane, two kubelets, the gateway and the controller share"
    );
    println!(
        "  a kubelet's lease is 8 s and the grace period 8 s here (by default 40 s and 50 s), a pod's toleration 3 s (300 s)"
    );
    println!("  turns of each way: {}, in turn; medians", options.turns);
    if cfg!(debug_assertions) {
        println!("  not optimised, as the tests: what is waited for is the same");
    }
    print_load("at the start");
    println!();
}
