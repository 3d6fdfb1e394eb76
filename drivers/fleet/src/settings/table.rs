//! A table of the settings while it is read: every fault is kept, none ends the reading.

use std::cell::RefCell;

use serde::de::DeserializeOwned;
use toml::Value;

/// The faults found so far.
#[derive(Default)]
pub(super) struct Findings(RefCell<Vec<String>>);

impl Findings {
    pub(super) fn push(&self, fault: String) {
        self.0.borrow_mut().push(fault);
    }

    pub(super) fn into_all(self) -> Vec<String> {
        self.0.into_inner()
    }
}

/// A table, and what was asked of it.
pub(super) struct Table<'a> {
    /// What stands before a fault (`[groups.rack1]: `); empty for the whole file.
    place: String,
    entries: toml::Table,
    known: Vec<&'static str>,
    findings: &'a Findings,
}

impl<'a> Table<'a> {
    /// The table at `place`; nothing in it, and a fault, if it is none.
    pub(super) fn new(place: &str, value: Value, findings: &'a Findings) -> Self {
        let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
        let entries = match value {
            Value::Table(entries) => entries,
            other => {
                findings.push(format!("{place}expected a table, found {}", other.type_str()));
                toml::Table::new()
            }
        };
        Self { place, entries, known: Vec::new(), findings }
    }

    /// Notes a fault at `key`.
    pub(super) fn fault(&self, key: &str, what: impl std::fmt::Display) {
        self.findings.push(format!("{}{key}: {what}", self.place));
    }

    fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.entries.remove(key)
    }

    /// What stands at `key`; `right` shows what could.
    pub(super) fn read<T: DeserializeOwned>(&mut self, key: &'static str, right: &str) -> Option<T> {
        let value = self.take(key)?;
        self.value(key, value, right)
    }

    /// The same, of what must be there.
    pub(super) fn needed<T: DeserializeOwned>(&mut self, key: &'static str, right: &str) -> Option<T> {
        if !self.entries.contains_key(key) {
            self.fault(key, format_args!("is missing; write {right}"));
        }
        self.read(key, right)
    }

    fn value<T: DeserializeOwned>(&self, place: &str, value: Value, right: &str) -> Option<T> {
        // Of a sum type the error says where within it, in further lines.
        let said = |error: toml::de::Error| error.to_string().trim().replace('\n', ", ");
        let read = value.try_into().map_err(said);
        read.map_err(|error| self.fault(place, format_args!("{error}; write {right}"))).ok()
    }

    /// Each of the list at `key` by itself, of which `wrong` finds what serde does not.
    pub(super) fn each<T: DeserializeOwned>(
        &mut self,
        key: &'static str,
        right: &str,
        wrong: impl Fn(&T) -> Option<String>,
    ) -> Vec<T> {
        let mut found = Vec::new();
        for (index, value) in self.list(key).into_iter().enumerate() {
            let place = format!("{key}: number {}", index + 1);
            let Some(one) = self.value(&place, value, right) else { continue };
            if let Some(wrong) = wrong(&one) {
                self.fault(&place, wrong);
            }
            found.push(one);
        }
        found
    }

    /// The list at `key`; empty where there is none.
    pub(super) fn list(&mut self, key: &'static str) -> Vec<Value> {
        match self.take(key) {
            None => Vec::new(),
            Some(Value::Array(list)) => list,
            Some(other) => {
                self.fault(key, format_args!("expected a list, found {}", other.type_str()));
                Vec::new()
            }
        }
    }

    /// What has a name of its own each, at `key`. `None`: it is no table.
    pub(super) fn named(&mut self, key: &'static str) -> Option<toml::Table> {
        match self.take(key) {
            None => Some(toml::Table::new()),
            Some(Value::Table(named)) => Some(named),
            Some(other) => {
                self.fault(key, format_args!("expected a table, found {}", other.type_str()));
                None
            }
        }
    }

    /// A fault for each key that nobody asked for.
    pub(super) fn done(self) {
        for key in self.entries.keys() {
            self.fault(key, format_args!("unknown key; known are {}", self.known.join(", ")));
        }
    }
}
