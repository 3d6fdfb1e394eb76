//! What was asked for.

use crate::demo::Demo;
use crate::failure::Failure;
use crate::image;
use crate::package;
use crate::soak::{self, Soak};
use crate::test::mutants::{self, Which};
use crate::test::{How, What, flaky};

mod made;
mod usage;
mod which;

use made::{image_of, package_of};
pub use usage::USAGE;
use which::{flaky_of, test_of};

/// A command with its options.
#[derive(Debug, PartialEq, Eq)]
pub enum Task {
    /// Print the usage.
    Help,
    /// Show Picket.
    Demo {
        /// Install without asking.
        yes: bool,
        /// Which.
        which: Demo,
    },
    /// Run tests.
    Test {
        /// How.
        how: How,
        /// Which.
        what: What,
    },
    /// Say which tests are in which set.
    Sets,
    /// Run tests many times.
    Flaky(flaky::Options),
    /// Weaken the law, and look who sees it.
    Mutants(mutants::Options),
    /// Run a test, and note what it takes: nextest asks for it.
    Measured {
        /// The program and its arguments.
        words: Vec<String>,
    },
    /// Compute until the input ends.
    Busy,
    /// Run one soak.
    SoakOne {
        /// Install without asking.
        yes: bool,
        /// Which.
        soak: &'static Soak,
        /// How many runs; none: as many as it makes by itself.
        runs: Option<u64>,
        /// From which seed; none: by chance.
        seed: Option<u64>,
    },
    /// Live through simulated histories.
    Sim {
        /// What the simulation itself is told.
        options: Vec<String>,
    },
    /// Run a bench.
    Bench {
        /// Install without asking.
        yes: bool,
        /// Its name; none: list them.
        name: Option<String>,
        /// What the bench itself is told.
        options: Vec<String>,
    },
    /// Make images.
    Image(image::Options),
    /// Make packages.
    Package(package::Options),
    /// Check the sources.
    Verify,
    /// Mend the sources.
    Fix,
    /// Write the pages that are made from the sources.
    Pages,
    /// Make the pages a site.
    Site {
        /// Where to; none: in the target folder.
        out: Option<std::path::PathBuf>,
    },
}

/// Reads the command line. A word that is not known is an error with the usage.
pub fn parse(arguments: &[String]) -> Result<Task, Failure> {
    let Some((command, rest)) = arguments.split_first() else { return Ok(Task::Help) };
    if command == "bench" {
        return Ok(bench(rest));
    }
    if command == "soak"
        && let Some(soak) = rest.iter().find_map(|word| soak::named(word))
    {
        return soak_one(soak, rest);
    }
    match command.as_str() {
        "site" => return site_of(rest),
        "flaky" => return flaky_of(rest),
        "image" => return image_of(rest),
        "package" => return package_of(rest),
        "measured" => return Ok(Task::Measured { words: rest.to_vec() }),
        "busy" => return Ok(Task::Busy),
        "test" => return test_of(rest),
        _ => {}
    }
    if command == "sim" {
        // It knows its options itself.
        return Ok(Task::Sim { options: rest.to_vec() });
    }
    let (options, filters): (Vec<&String>, Vec<&String>) =
        rest.iter().partition(|word| word.starts_with('-'));
    let has = |name: &str| options.iter().any(|option| *option == name);
    let filters: Vec<String> = filters.into_iter().cloned().collect();
    let (task, known, takes_names): (_, &[&str], _) = match command.as_str() {
        "help" | "--help" | "-h" => (Task::Help, &[], false),
        "demo" => (
            Task::Demo { yes: has("--yes"), which: which_demo(&has)? },
            &["--yes", "--ha", "--keep", "--kubernetes", "--without-proof"],
            false,
        ),
        "soak" => {
            let what = if filters.is_empty() { What::All } else { What::Named(filters.clone()) };
            let how = How { yes: has("--yes"), long: true, first: false };
            (Task::Test { how, what }, &["--yes"], true)
        }
        "mutants" => {
            let which = match (has("--all"), filters.is_empty()) {
                (true, _) => Which::All,
                (false, true) => Which::One,
                (false, false) => Which::Of(filters.clone()),
            };
            let options = mutants::Options { yes: has("--yes"), which, resume: has("--resume") };
            (Task::Mutants(options), &["--yes", "--all", "--resume"], !has("--all"))
        }
        "verify" => (Task::Verify, &[], false),
        "fix" => (Task::Fix, &[], false),
        "pages" => (Task::Pages, &[], false),
        _ => return Err(Failure::new(format!("no such command: {command}\n\n{USAGE}"))),
    };
    if has("--help") {
        return Ok(Task::Help);
    }
    if let Some(unknown) = options.iter().find(|option| !known.contains(&option.as_str())) {
        return Err(Failure::new(format!("{command} has no option {unknown}\n\n{USAGE}")));
    }
    match filters.first() {
        Some(name) if !takes_names => Err(Failure::new(format!("{command} takes no {name}\n\n{USAGE}"))),
        _ => Ok(task),
    }
}

fn number(option: &str, given: Option<&String>) -> Result<u64, Failure> {
    let number = given.and_then(|text| text.parse().ok());
    number
        .ok_or_else(|| Failure::new(format!("{option} takes a whole number, as in {option} 300\n\n{USAGE}")))
}

fn which_demo(has: &impl Fn(&str) -> bool) -> Result<Demo, Failure> {
    match (has("--ha"), has("--kubernetes"), has("--keep"), has("--without-proof")) {
        (false, false, keep, false) => Ok(Demo::One { keep }),
        (true, false, false, false) => Ok(Demo::Ha),
        (false, true, false, without) => Ok(Demo::Kubernetes { proof: !without }),
        (.., true, _) => Err(Failure::new(
            "--keep is for the demonstration without --ha and --kubernetes, which end what they started",
        )),
        (true, true, ..) => {
            Err(Failure::new("--ha and --kubernetes are two demonstrations: name one of them"))
        }
        (.., true) => Err(Failure::new("--without-proof is for demo --kubernetes")),
    }
}

fn soak_one(soak: &'static Soak, words: &[String]) -> Result<Task, Failure> {
    let (mut yes, mut runs, mut seed) = (false, None, None);
    let mut words = words.iter().filter(|word| *word != soak.name);
    while let Some(word) = words.next() {
        let wanted = match word.as_str() {
            "--yes" => {
                yes = true;
                continue;
            }
            "--help" => return Ok(Task::Help),
            "--runs" => &mut runs,
            "--seed" => &mut seed,
            _ => return Err(Failure::new(format!("soak {} takes no {word}\n\n{USAGE}", soak.name))),
        };
        *wanted = Some(number(word, words.next())?);
    }
    Ok(Task::SoakOne { yes, soak, runs, seed })
}

fn site_of(words: &[String]) -> Result<Task, Failure> {
    match words {
        [] => Ok(Task::Site { out: None }),
        [option, out] if option == "--out" => Ok(Task::Site { out: Some(out.into()) }),
        [help] if help == "--help" => Ok(Task::Help),
        _ => Err(Failure::new(format!("site takes --out DIR, and nothing else\n\n{USAGE}"))),
    }
}

/// A bench knows its options itself.
fn bench(words: &[String]) -> Task {
    let yes = words.iter().any(|word| word == "--yes");
    let mut words = words.iter().filter(|word| *word != "--yes").cloned().peekable();
    let name = words.next_if(|word| !word.starts_with('-'));
    let options: Vec<String> = words.collect();
    match name {
        None if !options.is_empty() => Task::Help,
        name => Task::Bench { yes, name, options },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn parsed(line: &str) -> Result<Task, Failure> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn commands_and_options() {
        assert_eq!(parsed(""), Ok(Task::Help));
        assert_eq!(parsed("demo --keep"), Ok(Task::Demo { yes: false, which: Demo::One { keep: true } }));
        assert_eq!(parsed("demo --ha --yes"), Ok(Task::Demo { yes: true, which: Demo::Ha }));
        for (line, proof) in [("demo --kubernetes", true), ("demo --kubernetes --without-proof", false)] {
            let which = Demo::Kubernetes { proof };
            assert_eq!(parsed(line), Ok(Task::Demo { yes: false, which }));
        }
        for wrong in ["demo --ha --keep", "demo --ha --kubernetes", "demo --without-proof"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parsed("demo --help"), Ok(Task::Help));
    }

    #[test]
    fn a_bench_has_options_of_its_own() {
        let bench = |yes, name: Option<&str>, options: &[&str]| Task::Bench {
            yes,
            name: name.map(str::to_owned),
            options: options.iter().map(|word| (*word).to_owned()).collect(),
        };
        assert_eq!(parsed("bench"), Ok(bench(false, None, &[])));
        assert_eq!(
            parsed("bench ipmi --quick --yes --seed=7"),
            Ok(bench(true, Some("ipmi"), &["--quick", "--seed=7"]))
        );
        assert_eq!(parsed("bench --help"), Ok(Task::Help));
    }

    #[test]
    fn a_soak_has_a_name_a_number_of_runs_and_a_seed() {
        let Ok(Task::SoakOne { yes, soak, runs, seed }) = parsed("soak ha --runs 12 --seed 7 --yes") else {
            panic!("it was not taken")
        };
        assert_eq!((yes, soak.name, runs, seed), (true, "ha", Some(12), Some(7)));
        let Ok(Task::SoakOne { soak, runs, .. }) = parsed("soak kubernetes") else {
            panic!("it was not taken")
        };
        assert_eq!((soak.name, runs), ("kubernetes", None));
        assert_eq!(
            parsed("soak heartbeat"),
            Ok(Task::Test {
                how: How { long: true, ..How::default() },
                what: What::Named(vec!["heartbeat".into()])
            })
        );
        for (line, word) in
            [("soak ha --runs many", "--runs"), ("soak ha sim", "sim"), ("soak --runs 3", "--runs")]
        {
            let Err(Failure(message)) = parsed(line) else { panic!("{line} was taken") };
            assert!(message.contains(word) && message.contains("usage:"), "{message}");
        }
    }

    #[test]
    fn mutants_are_one_of_each_rule_or_all_of_some_or_all() {
        let mutants = |yes, which, resume| Ok(Task::Mutants(mutants::Options { yes, which, resume }));
        assert_eq!(parsed("mutants"), mutants(false, Which::One, false));
        let of = Which::Of(vec!["S1".to_owned(), "K2".to_owned()]);
        assert_eq!(parsed("mutants --resume S1 K2"), mutants(false, of, true));
        assert_eq!(parsed("mutants --all --yes"), mutants(true, Which::All, false));
        assert!(parsed("mutants --all S1").is_err(), "both");
    }

    #[test]
    fn the_simulation_has_options_of_its_own() {
        let options = vec!["--histories".to_owned(), "7".to_owned()];
        assert_eq!(parsed("sim --histories 7"), Ok(Task::Sim { options }));
    }

    #[test]
    fn what_is_not_known_is_an_error_that_names_it() {
        for (line, word) in
            [("tset", "tset"), ("verify --yes", "--yes"), ("demo now", "now"), ("test --keep", "--keep")]
        {
            let Err(Failure(message)) = parsed(line) else { panic!("{line} was taken") };
            assert!(message.contains(word) && message.contains("usage:"), "{message}");
        }
    }
}
