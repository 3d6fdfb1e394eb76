//! The binary `fence_picket`: all of it is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    picket_cli::agent::main()
}
