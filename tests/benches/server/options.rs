//! What was asked for.

use std::path::PathBuf;

/// What `--help` prints.
pub const USAGE: &str = "\
usage: cargo xtask bench server [--quick] [--seed=N]

  --quick     few nodes and short rounds: shows that it runs, not how fast
  --seed=N    which nodes are asked for; printed, so that a run can be repeated";

/// What to do.
#[derive(Debug)]
pub enum Task {
    /// Print the usage.
    Help,
    /// Run.
    Bench(Options),
    /// The bench's own child: the daemon over these settings.
    Daemon(PathBuf),
    /// The bench's own child: the echo at this socket, with the message that stands in this file.
    Echo(PathBuf, PathBuf),
}

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Nodes of the daemon.
    pub nodes: usize,
    /// Rounds of reads, ours and the echo's in turn.
    pub rounds: usize,
    /// How long a round takes, in seconds.
    pub seconds: u64,
    /// Watchers.
    pub watchers: usize,
    /// Changes that they are told.
    pub changes: usize,
    /// Nodes that are fenced at once.
    pub fences: usize,
    /// Of the questions.
    pub seed: u64,
}

const WHOLE: Options =
    Options { nodes: 10_000, rounds: 3, seconds: 5, watchers: 100, changes: 20, fences: 500, seed: 1 };
const QUICK: Options =
    Options { nodes: 500, rounds: 1, seconds: 1, watchers: 20, changes: 3, fences: 20, seed: 1 };

/// Reads the command line. `--bench` is what cargo adds.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Task, String> {
    let arguments: Vec<String> = arguments.filter(|word| word != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--daemon", config] => return Ok(Task::Daemon(config.into())),
        ["--echo", socket, message] => return Ok(Task::Echo(socket.into(), message.into())),
        _ => {}
    }
    let quick = arguments.iter().any(|word| word == "--quick");
    let mut options = if quick { QUICK } else { WHOLE };
    for word in &arguments {
        match word.as_str() {
            "--help" | "-h" => return Ok(Task::Help),
            "--quick" => {}
            other => match other.strip_prefix("--seed=").map(str::parse) {
                Some(Ok(seed)) => options.seed = seed,
                Some(Err(_)) => return Err(format!("{other}: a number is expected\n\n{USAGE}")),
                None => return Err(format!("there is no option {other}\n\n{USAGE}")),
            },
        }
    }
    Ok(Task::Bench(options))
}
