//! `cargo xtask`: what a developer does to the house.
//!
//! **Purpose.** One command each for showing Picket, testing it, measuring it, checking the sources and
//! mending them.
//! **Non-goals.** Nothing that runs in production; no logic of the tests themselves.
//!
//! # Invariants
//!
//! - Nothing is installed unasked: `--yes`, a question on a terminal, or `CI` set.
//! - What a command needs and cannot have ends it with a message that says what to do. Nothing is skipped.
//! - `verify` writes nothing but the target folder.

mod arguments;
mod bench;
mod builds;
mod debian;
mod demo;
mod etcd;
mod failure;
mod fix;
mod go;
mod image;
mod invariants;
mod kubernetes;
mod licences;
mod openstack;
mod package;
mod packages;
mod pages;
mod place;
mod prometheus;
mod python;
mod reference;
mod roots;
mod run;
mod sim;
mod site;
mod soak;
mod spdx;
mod test;
mod tool;
mod verify;
mod words;

use std::process::ExitCode;

use arguments::Task;
use failure::Failure;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments::parse(&arguments).and_then(perform) {
        Ok(code) => code,
        Err(Failure(message)) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn perform(task: Task) -> Result<ExitCode, Failure> {
    match task {
        Task::Help => {
            println!("{}", arguments::USAGE);
            Ok(())
        }
        Task::Measured { words } => return test::measured::measured(&words),
        Task::Busy => {
            test::flaky::busy();
            Ok(())
        }
        Task::Demo { yes, which } => demo::demo(yes, which),
        Task::Test { how, what } => test::test(how, &what),
        Task::Sets => test::sets(),
        Task::Flaky(options) => test::flaky::flaky(&options),
        Task::Mutants(options) => test::mutants::mutants(&options),
        Task::SoakOne { yes, soak, runs, seed } => soak::soak(yes, soak, runs, seed),
        Task::Bench { yes, name, options } => bench::bench(yes, name.as_deref(), &options),
        Task::Sim { options } => sim::sim(&options),
        Task::Image(options) => image::image(&options),
        Task::Package(options) => package::package(&options),
        Task::Verify => verify::verify(),
        Task::Fix => fix::fix(),
        Task::Pages => reference::write(),
        Task::Site { out } => site::site(out),
    }
    .map(|()| ExitCode::SUCCESS)
}
