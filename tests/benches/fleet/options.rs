//! What was asked for.

use std::path::PathBuf;

use crate::bmcs::Speech;

/// What `--help` prints.
pub const USAGE: &str = "\
usage: cargo xtask bench fleet [--quick] [--seed=N] [--only=PART] [--picture=FILE]

  --quick         few rounds, and no more than 1,000 BMCs: shows that it runs, not how fast
  --seed=N        the order in which the contestants take their turns; printed, so that a run can be repeated
  --only=PART     one of races, shipped, trouble, redfish, drivers, daemon; several with a comma between them
  --picture=FILE  draws how the time grows with the number of BMCs, as SVG";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Task {
    /// Print the usage.
    Help,
    /// Run.
    Bench(Options),
    /// The bench's own children.
    Child(Child),
}

/// A process of the bench, beside it. Those of the first two are told their BMCs by lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Child {
    /// The BMCs.
    Bmcs(Speech),
    /// A driver with a warm session a BMC, to be weighed.
    Drivers,
    /// The daemon, by these settings.
    Daemon(PathBuf),
}

impl Child {
    /// As an argument.
    pub fn word(&self) -> &'static str {
        match self {
            Child::Bmcs(Speech::Ipmi) => "--bmcs",
            Child::Bmcs(Speech::Redfish) => "--bmcs-redfish",
            Child::Drivers => "--weigh-drivers",
            Child::Daemon(_) => "--daemon",
        }
    }
}

/// How to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Few rounds.
    pub quick: bool,
    /// Of the order of turns.
    pub seed: u64,
    /// The parts that are run; none: all.
    pub only: Vec<Part>,
    /// Where the picture goes.
    pub picture: Option<PathBuf>,
}

/// A part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Status and off over IPMI, beside the peers.
    Races,
    /// Fences by the shipped rules.
    Shipped,
    /// Dead BMCs and lost packets.
    Trouble,
    /// Status and off over Redfish.
    Redfish,
    /// What drivers take alone.
    Drivers,
    /// The daemon's start, and what it takes.
    Daemon,
}

const PARTS: [(&str, Part); 6] = [
    ("races", Part::Races),
    ("shipped", Part::Shipped),
    ("trouble", Part::Trouble),
    ("redfish", Part::Redfish),
    ("drivers", Part::Drivers),
    ("daemon", Part::Daemon),
];

/// So many BMCs at once, so many times by each contestant.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// BMCs.
    pub bmcs: usize,
    /// Rounds.
    pub rounds: usize,
}

impl Options {
    /// Whether that part is run.
    pub fn runs(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    /// The races.
    pub fn crowds(&self) -> Vec<Crowd> {
        let all = [(200, 7), (1_000, 3), (10_000, 2)];
        let quick = [(50, 2), (200, 2), (1_000, 1)];
        let chosen: &[_] = if self.quick { &quick } else { &all };
        chosen.iter().map(|&(bmcs, rounds)| Crowd { bmcs, rounds }).collect()
    }

    /// The race over Redfish: an agent is a process for each deed, and takes most of a processor's second.
    pub fn over_redfish(&self) -> Crowd {
        if self.quick { Crowd { bmcs: 20, rounds: 1 } } else { Crowd { bmcs: 50, rounds: 2 } }
    }

    /// The most BMCs at once.
    pub fn most(&self) -> usize {
        if self.quick { 1_000 } else { 10_000 }
    }

    /// BMCs of which some are in trouble.
    pub fn troubled(&self) -> usize {
        if self.quick { 200 } else { 1_000 }
    }
}

/// Reads the command line. `--bench` is what cargo adds.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Task, String> {
    let mut options = Options { quick: false, seed: 1, only: Vec::new(), picture: None };
    let mut arguments = arguments.filter(|word| word != "--bench");
    while let Some(word) = arguments.next() {
        let child = [Child::Bmcs(Speech::Ipmi), Child::Bmcs(Speech::Redfish), Child::Drivers]
            .into_iter()
            .find(|child| child.word() == word);
        match (word.as_str(), child) {
            (_, Some(child)) => return Ok(Task::Child(child)),
            ("--daemon", _) => {
                let settings = arguments.next().ok_or("--daemon is for the bench itself, with settings")?;
                return Ok(Task::Child(Child::Daemon(settings.into())));
            }
            ("--help" | "-h", _) => return Ok(Task::Help),
            ("--quick", _) => options.quick = true,
            (other, _) => match other.split_once('=') {
                Some(("--picture", file)) => options.picture = Some(file.into()),
                Some(("--only", parts)) => {
                    for name in parts.split(',') {
                        let part = PARTS.iter().find(|(known, _)| *known == name);
                        let part = part.ok_or_else(|| format!("there is no part {name}\n\n{USAGE}"))?;
                        options.only.push(part.1);
                    }
                }
                Some(("--seed", seed)) => match seed.parse() {
                    Ok(seed) => options.seed = seed,
                    Err(_) => return Err(format!("{other}: a number is expected\n\n{USAGE}")),
                },
                _ => return Err(format!("there is no option {other}\n\n{USAGE}")),
            },
        }
    }
    Ok(Task::Bench(options))
}
