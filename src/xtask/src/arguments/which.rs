//! Which tests: `cargo xtask test` and `flaky`.

use super::{Task, USAGE, number};
use crate::failure::Failure;
use crate::test::{How, What, flaky};

/// Which tests, of words that are no options of a command's own.
#[derive(Default)]
struct Which {
    all: bool,
    changed: Option<Option<String>>,
    names: Vec<String>,
}

impl Which {
    /// Whether it is one of ours.
    fn takes(&mut self, word: &str) -> bool {
        match word.split_once('=') {
            Some(("--changed", revision)) => self.changed = Some(Some(revision.to_owned())),
            _ if word == "--changed" => self.changed = Some(None),
            _ if word == "--all" => self.all = true,
            _ if !word.starts_with('-') => self.names.push(word.to_owned()),
            _ => return false,
        }
        true
    }

    fn what(self) -> Result<What, Failure> {
        match (self.all, self.changed, self.names.is_empty()) {
            (false, None, true) => Ok(What::Landing),
            (true, None, true) => Ok(What::All),
            (false, Some(since), true) => Ok(What::Changed(since)),
            (false, None, false) => Ok(What::Named(self.names)),
            _ => Err(Failure::new(format!(
                "--all, --changed and names are three choices: take one\n\n{USAGE}"
            ))),
        }
    }
}

/// `cargo xtask test`.
pub fn test_of(words: &[String]) -> Result<Task, Failure> {
    let (mut how, mut list, mut which) = (How::default(), false, Which::default());
    for word in words {
        match word.as_str() {
            "--yes" => how.yes = true,
            "--first" => how.first = true,
            "--list" => list = true,
            "--help" => return Ok(Task::Help),
            other if which.takes(other) => {}
            other => return Err(Failure::new(format!("test has no option {other}\n\n{USAGE}"))),
        }
    }
    match which.what()? {
        What::Landing if list => Ok(Task::Sets),
        _ if list => {
            Err(Failure::new(format!("--list tells of all sets, and takes nothing beside it\n\n{USAGE}")))
        }
        what => Ok(Task::Test { how, what }),
    }
}

/// `cargo xtask flaky`.
pub fn flaky_of(words: &[String]) -> Result<Task, Failure> {
    let (mut yes, mut resume, mut runs, mut busy) = (false, false, 20, 0);
    let (mut which, mut words) = (Which::default(), words.iter());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--yes" => yes = true,
            "--resume" => resume = true,
            "--runs" => runs = number(word, words.next())?,
            "--busy" => busy = number(word, words.next())?,
            "--help" => return Ok(Task::Help),
            other if which.takes(other) => {}
            other => return Err(Failure::new(format!("flaky has no option {other}\n\n{USAGE}"))),
        }
    }
    Ok(Task::Flaky(flaky::Options { yes, what: which.what()?, runs, busy, resume }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::tests::parsed;

    #[test]
    fn tests_are_the_landing_set_or_all_or_those_of_a_name_or_of_a_change() {
        let test = |what| Ok(Task::Test { how: How::default(), what });
        assert_eq!(parsed("test"), test(What::Landing));
        assert_eq!(parsed("test --all"), test(What::All));
        assert_eq!(parsed("test heartbeat hold"), test(What::Named(vec!["heartbeat".into(), "hold".into()])));
        assert_eq!(parsed("test --changed"), test(What::Changed(None)));
        assert_eq!(parsed("test --changed=HEAD~3"), test(What::Changed(Some("HEAD~3".into()))));
        assert_eq!(parsed("test --list"), Ok(Task::Sets));
        for wrong in ["test --all heartbeat", "test --changed --all", "test --list --all", "test --fast"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_fails_by_chance_is_looked_for_so_often_and_beside_so_much() {
        let options = |what, runs, busy, resume| flaky::Options { yes: false, what, runs, busy, resume };
        assert_eq!(parsed("flaky"), Ok(Task::Flaky(options(What::Landing, 20, 0, false))));
        assert_eq!(
            parsed("flaky --runs 10 --busy 4 --resume power"),
            Ok(Task::Flaky(options(What::Named(vec!["power".into()]), 10, 4, true)))
        );
        assert!(parsed("flaky --runs many").is_err());
    }
}
