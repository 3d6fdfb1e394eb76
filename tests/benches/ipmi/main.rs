//! `cargo xtask bench ipmi`: a confirmed off over IPMI, counted, timed and weighed beside ipmipower and powerman.
//!
//! **Purpose.** Ratios, taken in the same run, against the same BMCs (`ipmi_sim` with `fastpower`), in turns.
//! **Non-goals.** No milliseconds that mean something on another machine; no gate: a missed goal is told, not failed.
//!
//! # Invariants
//!
//! - The race is run with one reading and no dwell, for the peers know no more; `picketd` refuses both, and
//!   what the shipped defaults take is printed beside.
//! - A contestant's word counts only if every BMC's own state says off.
//! - What belongs to a peer is in its time: its login, its logout.
//! - What was started ends with the run.

mod beside;
mod crowd;
#[path = "../common/edge.rs"]
mod edge;
mod options;
mod packets;
#[path = "../common/race/mod.rs"]
#[allow(dead_code)]
mod race;
mod sims;
mod weigh;

use std::process::ExitCode;

use crate::edge::{Wrong, print_load, runtime};
use crate::options::{Options, Task};
use crate::race::{goals, surroundings};

fn main() -> ExitCode {
    let ended = match options::parse(std::env::args().skip(1)) {
        Ok(Task::Help) => {
            println!("{}", options::USAGE);
            Ok(())
        }
        Ok(Task::Bench(options)) => runtime().and_then(|runtime| runtime.block_on(bench(&options))),
        Ok(Task::Weigh(what, bmcs)) => {
            runtime().and_then(|runtime| runtime.block_on(weigh::child(what, &bmcs)))
        }
        Err(wrong) => Err(wrong.into()),
    };
    edge::exit("ipmi", ended)
}

async fn bench(options: &Options) -> Result<(), Wrong> {
    surroundings::print("driver ipmi, against ipmi_sim", options.seed);
    let mut goals = goals::Goals::default();
    packets::count(&mut goals).await?;
    for crowd in options.crowds() {
        crowd::race(crowd, options.seed, &mut goals).await?;
    }
    beside::the_race(options).await?;
    weigh::nodes(options.most()).await?;
    goals.print();
    print_load("at the end");
    Ok(())
}
