//! `picket`: the operator's command.
//!
//! **Purpose.** Asks a gateway, tells people and scripts what it answers.
//! **Non-goals.** No rule and no knowledge of devices: it sees only the proto, and the audit's files where
//! they are verified and exported. It decides nothing that the gateway does. `quickstart` and `init` run
//! the other programs, and link none of them: what a device says reaches `init` by `picketd probe`.
//!
//! # Invariants
//!
//! - Every request that sets a node in motion carries an idempotency key of its own for each node. A broken
//!   stream is opened again with the same key, and follows the same fence (S20). Shown by
//!   `a_cut_stream_is_joined_again_with_the_same_key`.
//! - Nothing absent or unknown in an answer is good news: no outcome, no exit code 0. Shown by
//!   `no_outcome_and_an_unknown_one_are_never_good`.
//! - What stands on standard output with `-o json` is one document (`watch`: one a line), and its keys are
//!   stable. A command that fails as a whole tells `{"error": …, "exit_code": …}` there, beside its words
//!   on standard error. Shown by `with_json_and_yaml_standard_output_is_one_document`,
//!   `a_node_that_is_not_there_is_a_document_too`.
//! - Text from the gateway is shown without control characters. Shown by
//!   `what_a_device_says_cannot_command_the_terminal`.
//!
//! # Exit codes
//!
//! They are stable, and stand in [`exit::Exit`]; with several nodes the worst one counts.

pub mod agent;
pub mod args;
mod certificates;
mod command;
mod complete;
mod connect;
mod console;
mod context;
mod dispatch;
mod duration;
mod endpoints;
pub mod exit;
mod fault;
mod follow;
mod gateway_error;
mod global;
mod help;
mod hosts;
mod motion;
mod no_echo;
mod pki;
mod private_folder;
mod programs;
mod progress;
mod question;
mod session;
mod style;
mod table;
mod view;

use std::process::ExitCode;

use crate::args::Cli;
use crate::console::{Console, Stream};
use crate::global::Format;

/// Runs the command with the arguments, the environment and the streams of this process.
pub fn main() -> ExitCode {
    if let Some(answered) = complete::answer() {
        return answered;
    }
    let words: Vec<_> = std::env::args_os().collect();
    if let Some(failed) = programs::become_one(&words) {
        return failed;
    }
    let page = Console::of_process(Format::Table).page(Stream::Out);
    let cli = Cli::read_on(&words, page).unwrap_or_else(|error| error.exit());
    let mut console = Console::of_process(cli.global.output);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            console.error(&format!("cannot start: {error}"));
            return exit::Exit::Failed.into();
        }
    };
    let is_stream = cli.command.tells_records();
    let done = runtime.block_on(dispatch::run(cli, &mut console));
    // A question on the terminal may still wait in a thread of its own; nobody is to wait for it.
    runtime.shutdown_background();
    match done {
        Ok(exit) => exit.into(),
        Err(fault) => {
            console.failure(&fault, is_stream);
            fault.exit().into()
        }
    }
}
