//! Which sources are packed.

use std::process::Command;

use crate::failure::Failure;
use crate::{place, run};

/// The commit that is checked out.
#[derive(Debug, PartialEq, Eq)]
pub struct Commit {
    /// Some of its digits; `-dirty` after them where the tree has changes.
    pub name: String,
    /// When it was made, in seconds since 1970: the only time in a package.
    pub time: String,
}

impl Commit {
    /// Asks git.
    pub fn read() -> Result<Self, Failure> {
        let told = git(&["log", "-1", "--format=%h %ct", "--abbrev=12"])?;
        let changes = git(&["status", "--porcelain"])?;
        Self::of(&told, &changes)
    }

    fn of(told: &str, changes: &str) -> Result<Self, Failure> {
        let (short, time) =
            told.trim().split_once(' ').ok_or(Failure::new(format!("git log tells no commit: {told:?}")))?;
        let dirty = if changes.trim().is_empty() { "" } else { "-dirty" };
        Ok(Self { name: format!("{short}{dirty}"), time: time.to_owned() })
    }
}

fn git(words: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new("git");
    command.args(words).current_dir(place::top());
    Ok(String::from_utf8_lossy(&run::output(command)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_with_changes_is_named_so() {
        let commit = |name: &str| Commit { name: name.to_owned(), time: "1796048231".to_owned() };
        assert_eq!(Commit::of("95d93a91d0c5 1796048231\n", ""), Ok(commit("95d93a91d0c5")));
        assert_eq!(Commit::of("95d93a91d0c5 1796048231\n", " M x\n"), Ok(commit("95d93a91d0c5-dirty")));
        assert!(Commit::of("", "").is_err());
    }
}
