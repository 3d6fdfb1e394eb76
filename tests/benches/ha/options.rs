//! What was asked for.

use std::path::PathBuf;

/// What `--help` prints.
pub const USAGE: &str = "\
usage: cargo xtask bench ha [--quick] [--seed=N] [--only=takeover|fences] [--nodes=N]

  --quick     few rounds and few nodes: shows that it runs, not how fast
  --seed=N    when within a keep-alive the leader dies; printed, so that a run can be repeated
  --only=     one of the two parts alone
  --nodes=N   so many nodes are fenced at once, rather than 1,000";

/// What to do.
#[derive(Debug)]
pub enum Task {
    /// Print the usage.
    Help,
    /// Run.
    Bench(Options),
    /// The bench's own child: the daemon over these settings.
    Daemon(PathBuf),
}

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Leaders that are killed.
    pub kills: usize,
    /// Leaders that are told to stop.
    pub stops: usize,
    /// Leaders that are killed together with etcd's.
    pub double_kills: usize,
    /// Nodes that are fenced at once.
    pub nodes: usize,
    /// Nodes that are fenced one after the other.
    pub singly: usize,
    /// Rounds of fences, on either store in turn.
    pub rounds: usize,
    /// Whether leaders are killed.
    pub takeover: bool,
    /// Whether fences are counted.
    pub fences: bool,
    /// Of the moments.
    pub seed: u64,
}

const WHOLE: Options = Options {
    kills: 20,
    stops: 20,
    double_kills: 10,
    nodes: 1_000,
    singly: 100,
    rounds: 3,
    takeover: true,
    fences: true,
    seed: 1,
};
const QUICK: Options =
    Options { kills: 2, stops: 2, double_kills: 1, nodes: 60, singly: 10, rounds: 1, ..WHOLE };

/// Reads the command line. `--bench` is what cargo adds.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Task, String> {
    let arguments: Vec<String> = arguments.filter(|word| word != "--bench").collect();
    if let ["--daemon", config] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return Ok(Task::Daemon(config.into()));
    }
    let quick = arguments.iter().any(|word| word == "--quick");
    let mut options = if quick { QUICK } else { WHOLE };
    for word in &arguments {
        if let Some(nodes) = word.strip_prefix("--nodes=") {
            let nodes = nodes.parse().ok().filter(|nodes| (1..=50_000).contains(nodes));
            options.nodes = nodes.ok_or_else(|| format!("{word}: 1 to 50000 is expected\n\n{USAGE}"))?;
            continue;
        }
        match (word.as_str(), word.strip_prefix("--seed=").map(str::parse)) {
            ("--help" | "-h", _) => return Ok(Task::Help),
            ("--quick", _) => {}
            ("--only=takeover", _) => options.fences = false,
            ("--only=fences", _) => options.takeover = false,
            (_, Some(Ok(seed))) => options.seed = seed,
            (other, Some(Err(_))) => return Err(format!("{other}: a number is expected\n\n{USAGE}")),
            (other, None) => return Err(format!("there is no option {other}\n\n{USAGE}")),
        }
    }
    if !options.takeover && !options.fences {
        return Err(format!("--only= names one part, and was given for both\n\n{USAGE}"));
    }
    Ok(Task::Bench(options))
}
