//! What was asked for.

use std::net::SocketAddr;

/// What `--help` prints.
pub const USAGE: &str = "\
usage: cargo xtask bench ipmi [--quick] [--seed=N]

  --quick     few rounds, and no more than 64 BMCs: shows that it runs, not how fast
  --seed=N    the order in which the contestants take their turns; printed, so that a run can be repeated";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Task {
    /// Print the usage.
    Help,
    /// Run.
    Bench(Options),
    /// The bench's own child: how much memory that much takes, in a process that did nothing before.
    Weigh(Load, Vec<SocketAddr>),
}

/// What is weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A driver with a warm session a BMC.
    Drivers,
    /// The engine over the embedded store, with a node a BMC.
    Engine,
}

impl Load {
    /// As an argument.
    pub fn word(self) -> &'static str {
        match self {
            Load::Drivers => "drivers",
            Load::Engine => "engine",
        }
    }
}

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Few rounds.
    pub quick: bool,
    /// Of the order of turns.
    pub seed: u64,
}

/// So many BMCs switched off at once, so many times by each contestant.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// BMCs.
    pub bmcs: usize,
    /// Rounds.
    pub rounds: usize,
}

impl Options {
    /// The contests.
    pub fn crowds(self) -> Vec<Crowd> {
        let all = [(1, 100), (64, 30), (512, 15)];
        let quick = [(1, 10), (64, 3)];
        let chosen: &[_] = if self.quick { &quick } else { &all };
        chosen.iter().map(|&(bmcs, rounds)| Crowd { bmcs, rounds }).collect()
    }

    /// The most BMCs at once.
    pub fn most(self) -> usize {
        if self.quick { 64 } else { 512 }
    }
}

/// Reads the command line. `--bench` is what cargo adds.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Task, String> {
    let arguments: Vec<String> = arguments.filter(|word| word != "--bench").collect();
    if let Some((word, bmcs)) = arguments.split_first().filter(|(word, _)| word.starts_with("--weigh=")) {
        let load = [Load::Drivers, Load::Engine].into_iter().find(|load| word.ends_with(load.word()));
        let bmcs = bmcs.iter().map(|bmc| bmc.parse()).collect::<Result<_, _>>();
        return match (load, bmcs) {
            (Some(load), Ok(bmcs)) => Ok(Task::Weigh(load, bmcs)),
            _ => Err(format!("{word} is for the bench itself, and not so")),
        };
    }
    let mut options = Options { quick: false, seed: 1 };
    for word in &arguments {
        match word.as_str() {
            "--help" | "-h" => return Ok(Task::Help),
            "--quick" => options.quick = true,
            other => match other.strip_prefix("--seed=").map(str::parse) {
                Some(Ok(seed)) => options.seed = seed,
                Some(Err(_)) => return Err(format!("{other}: a number is expected\n\n{USAGE}")),
                None => return Err(format!("there is no option {other}\n\n{USAGE}")),
            },
        }
    }
    Ok(Task::Bench(options))
}
