//! `cargo xtask sim`: many histories of several gateways, in simulated time.

use crate::failure::Failure;
use crate::programs::Program;
use crate::{place, run};

/// As a program among the tests.
pub const NAME: &str = "picket-sim histories";
const RUN: [&str; 9] =
    ["run", "--locked", "--quiet", "--profile", "sim", "--package", "picket-sim", "--features", "run"];

/// Lives through histories, as `options` say; fails where the law is broken in one of them.
pub fn sim(options: &[String]) -> Result<(), Failure> {
    let mut command = place::cargo();
    command.args(RUN).arg("--").args(options);
    run::shown(command)
}

/// The same among the tests, with so many.
pub fn beside(histories: u32) -> Program {
    let options = ["--".to_owned(), "--histories".to_owned(), histories.to_string()];
    Program::of_cargo(NAME, "the simulation", RUN.into_iter().chain(options.iter().map(String::as_str)))
}
