//! The demonstration behind `cargo xtask demo`: a real machine is fenced, proven off, let go and brought back.
//!
//! **Purpose.** Show a newcomer, within a minute, the whole line with the real programs, and numbers that come from
//! somebody else than Picket: an observer that reads the machines' disks. With `--ha` by three gateways over etcd, of which
//! the leader is killed in the middle of the fence. With `--kubernetes` on a real cluster, which wants root.
//! **Non-goals.** No test: what must hold is asserted in `tests/tests`. Still it fails if the proof fails.
//!
//! # Invariants
//!
//! - No root and nothing but loopback, except with `--kubernetes`: that one has network namespaces, mounts
//!   and cgroups of its own, as root, and reaches nothing beyond them.
//! - Without `--keep` nothing outlives it.

mod ha;
mod kubernetes;
mod showing;
mod stage;
mod story;
mod teller;
mod trio;

use std::process::ExitCode;

use teller::Teller;

/// Which story.
#[derive(Clone, Copy, Debug)]
enum Story {
    /// One gateway.
    One { keep: bool },
    /// Three, of which one is killed.
    Three,
    /// A cluster, whose node is fenced; or, without proof, is not.
    Cluster { proof: bool },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let story = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Story::One { keep: false },
        ["--keep"] => Story::One { keep: true },
        ["--ha"] => Story::Three,
        ["--kubernetes"] => Story::Cluster { proof: true },
        ["--kubernetes", "--without-proof"] => Story::Cluster { proof: false },
        _ => {
            eprintln!(
                "usage: picket-demo [--keep | --ha | --kubernetes [--without-proof]]    (or: cargo xtask demo)"
            );
            return ExitCode::from(2);
        }
    };
    let teller = Teller::new();
    // An interrupted one ends as every other does: with its values, and so with its machines.
    let told = tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => {
            eprintln!("\ninterrupted: the machines, the gateways and all else end");
            return ExitCode::from(130);
        }
        told = async {
            match story {
                Story::One { keep } => story::tell(&teller, keep).await,
                Story::Three => ha::tell(&teller).await,
                Story::Cluster { proof } => kubernetes::tell(&teller, proof).await,
            }
        } => told,
    };
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("\nThe demonstration stops here.\n{why}");
            ExitCode::FAILURE
        }
    }
}
