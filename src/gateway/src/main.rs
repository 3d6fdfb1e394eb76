//! `picketd`: the daemon. The library does the work, so that a test can run the same daemon with hooks.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use picket_engine::NoHooks;
use picket_gateway::Arguments;

fn main() -> ExitCode {
    picket_gateway::main(&Arguments::parse(), Arc::new(NoHooks))
}
