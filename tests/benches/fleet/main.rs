//! `cargo xtask bench fleet`: thousands of BMCs at once, beside ipmipower, powerman and a bare client.
//!
//! **Purpose.** How the time, the processor time and the memory grow with the number of BMCs, from a rack to ten thousand: ratios,
//! taken in the same run, against the same BMCs (`picket-fleet`'s, over IPMI), in turns. What dead BMCs and lost packets do to the
//! others. How soon a gateway of ten thousand nodes is there.
//! **Non-goals.** No milliseconds that mean something on another machine; no gate: a missed goal is told, not failed. Simulated BMCs
//! are quicker than real ones, and share this machine: what they take of it is printed, and the floor shows what is left.
//!
//! # Invariants
//!
//! - The race is run with one reading and no dwell, for the peers know no more; `picketd` refuses both, and
//!   what the shipped defaults take is printed beside.
//! - A contestant's word counts only if every machine's own state says off.
//! - What belongs to a peer is in its time: its login, its logout.
//! - What was started ends with the run.

mod begin;
mod bmcs;
mod child;
mod crowd;
#[path = "../common/edge.rs"]
mod edge;
mod options;
mod picture;
#[path = "../common/race/mod.rs"]
#[allow(dead_code)]
mod race;
mod redfish;
mod trouble;
mod weigh;

use std::process::ExitCode;
use std::sync::Arc;

use crate::bmcs::Speech;
use crate::edge::{Wrong, print_load, runtime};
use crate::options::{Child, Options, Part, Task};
use crate::race::{goals, surroundings};

fn main() -> ExitCode {
    let ended = match options::parse(std::env::args().skip(1)) {
        Ok(Task::Help) => {
            println!("{}", options::USAGE);
            Ok(())
        }
        Ok(Task::Bench(options)) => runtime().and_then(|runtime| runtime.block_on(bench(&options))),
        Ok(Task::Child(Child::Daemon(config))) => {
            let arguments = picket_gateway::Arguments::start(config);
            return picket_gateway::main(&arguments, Arc::new(picket_engine::NoHooks));
        }
        Ok(Task::Child(Child::Bmcs(speech))) => {
            runtime().and_then(|runtime| runtime.block_on(bmcs::serve(speech)))
        }
        Ok(Task::Child(Child::Drivers)) => runtime().and_then(|runtime| runtime.block_on(weigh::serve())),
        Err(wrong) => Err(wrong.into()),
    };
    edge::exit("fleet", ended)
}

async fn bench(options: &Options) -> Result<(), Wrong> {
    surroundings::print("driver ipmi, against picket-fleet's BMCs", options.seed);
    picket_fleet::room_for(options.most())?;
    let mut goals = goals::Goals::default();
    let mut raced = Vec::new();
    if options.runs(Part::Races) {
        for crowd in options.crowds() {
            raced.extend(crowd::race(crowd, options.seed, &mut goals).await?);
            print_load("after it");
        }
    }
    if options.runs(Part::Shipped) {
        crowd::as_shipped(options.troubled()).await?;
    }
    if options.runs(Part::Trouble) {
        trouble::dead(options.troubled(), if options.quick { 1 } else { 3 }, &mut goals).await?;
        trouble::loss(options.troubled(), &mut goals).await?;
    }
    if options.runs(Part::Redfish) {
        redfish::race(options.over_redfish(), options.seed, &mut goals).await?;
    }
    if options.runs(Part::Drivers) {
        weigh::drivers(options.most()).await?;
    }
    if options.runs(Part::Daemon) {
        begin::daemon(options.most(), Speech::Ipmi, &mut goals).await?;
        begin::daemon(options.troubled(), Speech::Redfish, &mut goals).await?;
    }
    goals.print();
    print_load("at the end");
    if let Some(file) = options.picture.as_ref().filter(|_| !raced.is_empty()) {
        std::fs::write(file, picture::draw(&raced))?;
        println!("the picture is in {}", file.display());
    }
    Ok(())
}
