//! What long commands found so far, in a file of their commit: a call that is killed loses what it was at, and no more.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::failure::Failure;
use crate::{place, run};

/// A file of JSON, a value a line.
pub struct Kept(PathBuf);

impl Kept {
    /// That of this command, at the commit that is checked out. It begins empty unless an earlier call is resumed.
    pub fn of(command: &str, ends: &str, resume: bool) -> Result<Self, Failure> {
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.args(arguments).current_dir(place::top());
            run::output(command).map(|said| String::from_utf8_lossy(&said).trim().to_owned())
        };
        let changed = if git(&["status", "--porcelain"])?.is_empty() { "" } else { "-changed" };
        let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
        let folder = place::cache()?.join(command);
        std::fs::create_dir_all(&folder).map_err(Failure::of(folder.display()))?;
        let kept = Self(folder.join(format!("{commit}{changed}{ends}.jsonl")));
        if !resume {
            kept.forget()?;
        }
        Ok(kept)
    }

    #[cfg(test)]
    pub const fn at(file: PathBuf) -> Self {
        Self(file)
    }

    pub fn file(&self) -> &Path {
        &self.0
    }

    fn forget(&self) -> Result<(), Failure> {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::of(self.0.display())(error))
            }
            _ => Ok(()),
        }
    }

    /// In one write: a call that is killed leaves all of these values or none.
    pub fn add(&self, values: &[Value]) -> Result<(), Failure> {
        let text: String = values.iter().map(|value| format!("{value}\n")).collect();
        let file = std::fs::OpenOptions::new().append(true).create(true).open(&self.0);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(Failure::of(self.0.display()))
    }

    /// A line that a killed call left half written is passed over.
    pub fn read(&self) -> Result<Vec<Value>, Failure> {
        match std::fs::read_to_string(&self.0) {
            Ok(text) => Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Failure::of(self.0.display())(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_add_up_and_a_half_written_one_is_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = Kept::at(folder.path().join("found"));
        assert_eq!(kept.read(), Ok(Vec::new()));
        kept.add(&[json!({"a": 1}), json!({"a": 2})]).expect("written");
        let mut file = std::fs::OpenOptions::new().append(true).open(kept.file()).expect("opened");
        file.write_all(b"{\"a\":").expect("written");
        assert_eq!(kept.read(), Ok(vec![json!({"a": 1}), json!({"a": 2})]));
        kept.forget().and_then(|()| kept.forget()).expect("gone");
        assert_eq!(kept.read(), Ok(Vec::new()));
    }
}
