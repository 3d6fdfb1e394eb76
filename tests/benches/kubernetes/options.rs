//! What was asked for.

/// What `--help` prints.
pub const USAGE: &str = "\
usage: cargo xtask bench kubernetes [--quick] [--turns=N] [--only=WAY[,WAY]]

  --quick     one turn of each way, and nobody looks for two minutes what becomes of it without
  --turns=N   so many turns of each way, rather than 3
  --only=     picket, by-hand, taint, reboot, nothing: these alone";

/// How a pod is let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Controller and gateway.
    Picket,
    /// Off, proven; the pod deleted by force; the taint.
    ByHand,
    /// Off; the taint alone: the rest is left to pod GC.
    Taint,
    /// Off and on again; then pods and attachments deleted by force.
    Reboot,
}

impl Way {
    const ALL: [Self; 4] = [Self::Picket, Self::ByHand, Self::Taint, Self::Reboot];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Picket => "Picket",
            Self::ByHand => "by hand, in that order",
            Self::Taint => "off, and the taint alone",
            Self::Reboot => "reboot and flush",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Picket => "picket",
            Self::ByHand => "by-hand",
            Self::Taint => "taint",
            Self::Reboot => "reboot",
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
}

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Of each way.
    pub turns: usize,
    /// In turn.
    pub ways: Vec<Way>,
    /// Whether it is looked what becomes of it when nobody does anything.
    pub nothing: bool,
}

/// Reads the command line. `--bench` is what cargo adds.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Task, String> {
    let arguments: Vec<String> = arguments.filter(|word| word != "--bench").collect();
    let quick = arguments.iter().any(|word| word == "--quick");
    let mut options = Options { turns: if quick { 1 } else { 3 }, ways: Way::ALL.to_vec(), nothing: !quick };
    for word in &arguments {
        match word.split_once('=').unwrap_or((word, "")) {
            ("--help" | "-h", "") => return Ok(Task::Help),
            ("--quick", "") => {}
            ("--turns", number) => {
                let number = number.parse().ok().filter(|number| (1..=50).contains(number));
                options.turns = number.ok_or_else(|| format!("{word}: 1 to 50 is expected\n\n{USAGE}"))?;
            }
            ("--only", list) => {
                let words: Vec<&str> = list.split(',').collect();
                let known =
                    |word: &&str| *word == "nothing" || Way::ALL.iter().any(|way| way.word() == *word);
                if let Some(other) = words.iter().find(|word| !known(word)) {
                    return Err(format!("there is no way {other}\n\n{USAGE}"));
                }
                options.ways.retain(|way| words.contains(&way.word()));
                options.nothing = words.contains(&"nothing");
            }
            _ => return Err(format!("there is no option {word}\n\n{USAGE}")),
        }
    }
    Ok(Task::Bench(options))
}
