//! A table of the settings: what is taken from it is known, and what is left is not.

use std::path::PathBuf;

use toml::{Table, Value};

/// One table, from which keys are taken.
pub(crate) struct SettingsTable<'a> {
    name: &'static str,
    table: Table,
    faults: &'a mut Vec<String>,
}

impl<'a> SettingsTable<'a> {
    pub(crate) fn of(whole: &mut Table, name: &'static str, faults: &'a mut Vec<String>) -> Self {
        let table = match whole.remove(name) {
            None => Table::new(),
            Some(Value::Table(table)) => table,
            Some(other) => {
                faults.push(format!("{name}: expected a table, found {other}"));
                Table::new()
            }
        };
        Self { name, table, faults }
    }

    pub(crate) fn fault(&mut self, key: &str, message: &str) {
        self.faults.push(format!("{}.{key}: {message}", self.name));
    }

    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        match self.table.remove(key)? {
            Value::String(text) if !text.trim().is_empty() => Some(text),
            other => {
                self.fault(key, &format!("expected a text that is not empty, found {other}"));
                None
            }
        }
    }

    pub(crate) fn path(&mut self, key: &str) -> Option<PathBuf> {
        let path = PathBuf::from(self.text(key)?);
        if !path.is_absolute() {
            self.fault(key, "expected an absolute path");
        }
        Some(path)
    }

    pub(crate) fn texts(&mut self, key: &str) -> Vec<String> {
        let Some(value) = self.table.remove(key) else { return Vec::new() };
        let texts: Option<Vec<String>> = value
            .as_array()
            .and_then(|all| all.iter().map(|one| one.as_str().map(|text| text.trim().to_owned())).collect());
        texts.unwrap_or_else(|| {
            self.fault(key, &format!("expected a list of texts, found {value}"));
            Vec::new()
        })
    }

    pub(crate) fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)], default: T) -> T {
        let Some(text) = self.text(key) else { return default };
        if let Some((_, found)) = words.iter().find(|(word, _)| *word == text) {
            return *found;
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        self.fault(key, &format!("expected one of {}, found {text:?}", known.join(", ")));
        default
    }

    pub(crate) fn flag(&mut self, key: &str, default: bool) -> bool {
        let Some(value) = self.table.remove(key) else { return default };
        value.as_bool().unwrap_or_else(|| {
            self.fault(key, &format!("expected true or false, found {value}"));
            default
        })
    }

    /// A key that nobody took is not known.
    pub(crate) fn finish(self) {
        for key in self.table.keys() {
            self.faults.push(format!("{}.{key}: there is no such key", self.name));
        }
    }
}
