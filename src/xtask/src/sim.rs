//! `cargo xtask sim`: many histories of several gateways, in simulated time.

use crate::failure::Failure;
use crate::{place, run};

const RUN: [&str; 9] =
    ["run", "--locked", "--quiet", "--profile", "sim", "--package", "picket-sim", "--features", "run"];

/// Lives through histories, as `options` say; fails where the law is broken in one of them.
pub fn sim(options: &[String]) -> Result<(), Failure> {
    let mut command = place::cargo();
    command.args(RUN).arg("--").args(options);
    run::shown(command)
}
