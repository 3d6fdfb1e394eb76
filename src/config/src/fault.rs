//! What is wrong, and where.

use std::fmt;

/// Where a setting stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, or the variable of the environment.
    pub file: String,
    /// The line in it.
    pub line: Option<usize>,
    /// The key, from the top (`templates.r1.devices.bmc.host`); empty for the file as a whole.
    pub key: String,
}

impl Place {
    /// The place of a file as a whole.
    pub(crate) fn file(file: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, key: String::new() }
    }

    /// The place of `key` within this one, which has no line of its own.
    pub(crate) fn within(&self, key: &str) -> Self {
        Self { key: join(&self.key, key), ..self.clone() }
    }

    /// A fault here.
    pub fn fault(&self, message: impl Into<String>) -> Fault {
        Fault { place: self.clone(), message: message.into() }
    }
}

/// `prefix.key`, the key in quotes where TOML wants them.
pub(crate) fn join(prefix: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let key = if bare { key.to_owned() } else { format!("{key:?}") };
    if prefix.is_empty() { key } else { format!("{prefix}.{key}") }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        Ok(())
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// What is wrong there and what would be right. Never a secret.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Everything that is wrong, in the order of the files; each once. Displayed a line each.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// Sorts them, and keeps each once: the devices of one template have the same faults on each of its nodes.
    pub fn new(mut faults: Vec<Fault>) -> Self {
        faults.sort();
        faults.dedup();
        Self(faults)
    }

    /// The faults.
    pub fn all(&self) -> &[Fault] {
        &self.0
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<Fault>> for Faults {
    fn from(faults: Vec<Fault>) -> Self {
        Self::new(faults)
    }
}

impl IntoIterator for Faults {
    type Item = Fault;
    type IntoIter = std::vec::IntoIter<Fault>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, fault) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { "\n" };
            write!(f, "{separator}{fault}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_reads_as_file_line_key_and_what_is_wrong() {
        let place = Place { file: "picket.toml".to_owned(), line: Some(12), key: "rules".to_owned() };
        assert_eq!(
            place.within("dwell").fault("too short").to_string(),
            "picket.toml:12: rules.dwell: too short"
        );
        let node = Place::file("PICKET__X").within("nodes").within("r1n[01-40]");
        assert_eq!(node.to_string(), "PICKET__X: nodes.\"r1n[01-40]\"");
    }

    #[test]
    fn each_fault_is_told_once_and_in_order() {
        let place = |line| Place { file: "a".to_owned(), line: Some(line), key: "k".to_owned() };
        let faults = Faults::new(vec![place(10).fault("x"), place(9).fault("y"), place(10).fault("x")]);
        assert_eq!(faults.to_string(), "a:9: k: y\na:10: k: x");
    }
}
