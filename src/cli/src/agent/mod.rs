//! `fence_picket`: the gateway as a fence agent of ClusterLabs, for Pacemaker and other callers of fence
//! agents.
//!
//! **Purpose.** Speaks the fence agents' interface: options on the command line, or `key=value` lines on
//! standard input; metadata as XML; and an exit code.
//! **Non-goals.** No device is known here: what is switched off, how, and what proves it, is the gateway's.
//!
//! # Invariants
//!
//! - `off` and `reboot` end with 0 only when the gateway told that the node is proven off. Unless it is
//!   wished otherwise, its volumes are released as well. Whatever is not understood is a failure: a caller
//!   who believes an agent starts a second writer. Shown by
//!   `what_the_gateway_refuses_is_a_failure_to_pacemaker`,
//!   `pacemakers_time_limit_ends_no_fence_and_who_asks_again_joins`.
//! - `status` says off only of a node that the gateway read off just now. Shown by
//!   `only_an_explicit_off_of_now_is_off`.
//! - Whoever ends this process (Pacemaker does, when its time is over) ends no fence. The gateway goes on,
//!   and a caller who asks again joins. Shown by
//!   `pacemakers_time_limit_ends_no_fence_and_who_asks_again_joins`.
//!
//! # Exit codes
//!
//! As the Fence Agent API has them (ClusterLabs, fence-agents, `doc/FenceAgentAPI.md`): 0 done, 1 failed;
//! of `status` besides 2 for off. Nothing else ends with 2, so that no failure is taken for an off.

mod act;
mod metadata;
mod options;

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use options::{Action, Options};

use crate::console::{Console, Stream};
use crate::global::Format;

/// How it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// Done; of `status`: on.
    Done,
    /// Of `status` alone: off.
    Off,
    /// Anything else.
    Failed,
}

impl From<Ended> for ExitCode {
    fn from(ended: Ended) -> Self {
        ExitCode::from(match ended {
            Ended::Done => 0,
            Ended::Failed => 1,
            Ended::Off => 2,
        })
    }
}

/// The most that is read of standard input: options are short.
const MOST: u64 = 1 << 20;

/// Runs the agent with the arguments, the environment and the streams of this process.
pub fn main() -> ExitCode {
    let mut console = Console::of_process(Format::Table);
    match told().and_then(|options| perform(&options, &mut console)) {
        Ok(ended) => ended.into(),
        Err(words) => {
            console.error(&words);
            Ended::Failed.into()
        }
    }
}

/// The options: of the command line if there are any, else of standard input.
fn told() -> Result<Options, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.is_empty() {
        return Options::of_arguments(&arguments);
    }
    let mut input = std::io::stdin();
    if input.is_terminal() {
        return Err("options are read from standard input, a key=value a line; --help tells them".to_owned());
    }
    let mut text = String::new();
    input
        .by_ref()
        .take(MOST)
        .read_to_string(&mut text)
        .map_err(|error| format!("standard input: {error}"))?;
    let (options, ignored) = Options::of_lines(&text)?;
    for name in ignored {
        eprintln!("fence_picket: the option {name:?} is not known and left out");
    }
    Ok(options)
}

/// The text of `--help`.
pub fn help() -> String {
    options::help()
}

fn perform(options: &Options, console: &mut Console) -> Result<Ended, String> {
    let alone = match options.action {
        Action::Metadata => Some(metadata::xml()),
        Action::Help => Some(help()),
        Action::Version => Some(format!("fence_picket {}\n", picket_version::long(&[]))),
        _ => None,
    };
    if let Some(text) = alone {
        console.write(Stream::Out, &text).map_err(|error| error.to_string())?;
        return Ok(Ended::Done);
    }
    options.complete()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start: {error}"))?;
    let ended = runtime.block_on(act::act(options, console));
    runtime.shutdown_background();
    ended.map_err(|fault| fault.to_string())
}
