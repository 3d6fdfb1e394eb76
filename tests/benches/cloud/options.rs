//! What was asked for.

use std::path::PathBuf;

/// What `--help` prints.
pub const USAGE: &str = "\
usage: cargo xtask bench cloud [--quick] [--only=aws|gcp|openstack] [--nodes=N,N] [--beside=N]

  --quick       few instances: shows that it runs
  --only=       one cloud alone
  --nodes=N,N   so many are fenced at once, rather than 1, 100 and 1000
  --beside=N    so many are fenced by the cloud's agent, one after the other, rather than 10";

/// Whose instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    /// EC2, as moto has it.
    Aws,
    /// Compute Engine, by Google's own discovery document.
    Gcp,
    /// A real Nova.
    Openstack,
}

impl Cloud {
    const ALL: [Self; 3] = [Self::Aws, Self::Gcp, Self::Openstack];

    /// As `--only=` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Gcp => "gcp",
            Self::Openstack => "openstack",
        }
    }
}

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
#[derive(Clone, Debug)]
pub struct Options {
    /// One after the other.
    pub clouds: Vec<Cloud>,
    /// How many instances are fenced at once, one round each.
    pub nodes: Vec<usize>,
    /// How many the agent fences.
    pub beside: usize,
}

/// Reads the command line. `--bench` is what cargo adds.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Task, String> {
    let arguments: Vec<String> = arguments.filter(|word| word != "--bench").collect();
    if let ["--daemon", config] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return Ok(Task::Daemon(config.into()));
    }
    let quick = arguments.iter().any(|word| word == "--quick");
    let (nodes, beside) = if quick { (vec![1, 10], 2) } else { (vec![1, 100, 1_000], 10) };
    let mut options = Options { clouds: Cloud::ALL.to_vec(), nodes, beside };
    for word in &arguments {
        let number = |text: &str| {
            let number = text.parse().ok().filter(|number| (1..=10_000).contains(number));
            number.ok_or_else(|| format!("{word}: 1 to 10000 is expected\n\n{USAGE}"))
        };
        match word.split_once('=').unwrap_or((word, "")) {
            ("--help" | "-h", "") => return Ok(Task::Help),
            ("--quick", "") => {}
            ("--only", name) => {
                let cloud = Cloud::ALL.into_iter().find(|cloud| cloud.name() == name);
                options.clouds = vec![cloud.ok_or_else(|| format!("there is no cloud {name}\n\n{USAGE}"))?];
            }
            ("--nodes", list) => options.nodes = list.split(',').map(number).collect::<Result<_, _>>()?,
            ("--beside", count) => options.beside = number(count)?,
            _ => return Err(format!("there is no option {word}\n\n{USAGE}")),
        }
    }
    Ok(Task::Bench(options))
}
