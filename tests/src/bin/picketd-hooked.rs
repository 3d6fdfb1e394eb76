//! `picketd` with hooks: the same daemon, which does to itself what its environment says ([`picket_tests::SelfHarm`]).

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use picket_gateway::Arguments;
use picket_tests::SelfHarm;

fn main() -> ExitCode {
    picket_gateway::main(&Arguments::parse(), Arc::new(SelfHarm::from_environment()))
}
