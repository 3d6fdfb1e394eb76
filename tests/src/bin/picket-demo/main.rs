//! The demonstration behind `cargo xtask demo`: a real machine is fenced, proven off, let go and brought back.
//!
//! **Purpose.** Show a newcomer, within a minute, the whole line with the real programs, and numbers that come from
//! somebody else than Picket: an observer that reads the machines' disks.
//! **Non-goals.** No test: what must hold is asserted in `tests/tests`. Still it fails if the proof fails.
//! **Invariants.** No root, nothing but loopback. Without `--keep` nothing outlives it.

mod stage;
mod story;
mod teller;

use std::process::ExitCode;

use teller::Teller;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let keep = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--keep"] => true,
        _ => {
            eprintln!("usage: picket-demo [--keep]    (or: cargo xtask demo)");
            return ExitCode::from(2);
        }
    };
    let teller = Teller::new();
    // An interrupted one ends as every other does: with its values, and so with its machines.
    let told = tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => {
            eprintln!("\ninterrupted: the machines and the gateway end");
            return ExitCode::from(130);
        }
        told = story::tell(&teller, keep) => told,
    };
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("\nThe demonstration stops here.\n{why}");
            ExitCode::FAILURE
        }
    }
}
