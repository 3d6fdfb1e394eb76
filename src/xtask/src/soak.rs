//! `cargo xtask soak NAME`: one kind of long run, with its number and seed.

use crate::failure::Failure;
use crate::{place, run, test};

/// A long run of a test that reads `PICKET_RUNS` and `PICKET_SEED`, and adds up what it met.
#[derive(Debug, PartialEq, Eq)]
pub struct Soak {
    /// As it is called.
    pub name: &'static str,
    /// Where its tests are, as cargo wants it.
    place: &'static [&'static str],
    /// Which of them.
    tests: &'static [&'static str],
    /// How many of them run beside each other.
    beside: u8,
}

/// All of them. Another one is a line here, and one in the usage.
const SOAKS: &[Soak] = &[
    Soak {
        name: "ha",
        place: &["--package", "picket-tests", "--test", "gateways"],
        tests: &["hosts::random::", "hosts::steps::"],
        beside: 1,
    },
    Soak {
        name: "kubernetes",
        place: &["--package", "picket-tests", "--test", "kubernetes"],
        tests: &["cluster::seed::"],
        beside: 3,
    },
    Soak {
        name: "story",
        place: &["--package", "picket-tests", "--test", "kubernetes"],
        tests: &["story::asleep::"],
        beside: 1,
    },
    Soak {
        name: "thousand",
        place: &["--package", "picket-tests", "--test", "kubernetes"],
        tests: &["thousand::story::"],
        beside: 1,
    },
];

/// The one of that name.
pub fn named(name: &str) -> Option<&'static Soak> {
    SOAKS.iter().find(|soak| soak.name == name)
}

/// Runs it, and shows what its tests say.
pub fn soak(yes: bool, soak: &Soak, runs: Option<u64>, seed: Option<u64>) -> Result<(), Failure> {
    let _turn = test::turn()?;
    let peers = test::with_build(yes)?;
    let mut command = place::cargo();
    command.args(["test", "--locked"]).args(soak.place);
    command.args(["--", "--nocapture", &format!("--test-threads={}", soak.beside)]).args(soak.tests);
    command.envs(peers).env("PICKET_SOAK", "1");
    for (name, number) in [("PICKET_RUNS", runs), ("PICKET_SEED", seed)] {
        command.env_remove(name);
        if let Some(number) = number {
            command.env(name, number.to_string());
        }
    }
    run::shown(command)
}
