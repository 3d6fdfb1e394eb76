//! `picketd` with hooks: the same daemon, which does to itself what its environment says ([`picket_tests::SelfHarm`]), and is told there
//! what its peers bound: `PICKET_TRIAL_EC2_TAKES`, for so many seconds EC2 takes a command after the time of its signature.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use picket_gateway::{Arguments, Trial};
use picket_tests::SelfHarm;

fn main() -> ExitCode {
    let seconds = std::env::var("PICKET_TRIAL_EC2_TAKES").ok().and_then(|text| text.parse().ok());
    let trial = Trial { ec2_takes: seconds.map(Duration::from_secs) };
    picket_gateway::main_on_trial(&Arguments::parse(), Arc::new(SelfHarm::from_environment()), trial)
}
