//! `picket-controller`: the library does the work.

use std::process::ExitCode;

use clap::Parser;
use picket_controller::Arguments;

fn main() -> ExitCode {
    picket_controller::main(&Arguments::parse())
}
