//! A table while it is read: every fault is kept, none ends the reading, and what was not asked for is unknown.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use picket_core::near::did_you_mean;
use picket_core::time;

use crate::entry::{Entry, Raw};
use crate::fault::{Fault, Place};
use crate::size;

/// What is expected where no duration was found.
const DURATION: &str = "expected a whole number with its unit (\"250ms\", \"5s\", \"10m\", \"2h\", \"90d\")";

/// The faults found so far.
#[derive(Debug, Default)]
pub(crate) struct Findings(RefCell<Vec<Fault>>);

impl Findings {
    pub(crate) fn push(&self, fault: Fault) {
        self.0.borrow_mut().push(fault);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.borrow().len()
    }

    pub(crate) fn into_faults(self) -> Vec<Fault> {
        self.0.into_inner()
    }
}

/// A table of the settings.
#[derive(Debug)]
pub(crate) struct Table<'l> {
    pub(crate) place: Place,
    log: &'l Findings,
    entries: BTreeMap<String, Entry>,
    asked: BTreeSet<&'static str>,
}

impl<'l> Table<'l> {
    pub(crate) fn new(log: &'l Findings, place: Place, entries: BTreeMap<String, Entry>) -> Self {
        Self { place, log, entries, asked: BTreeSet::new() }
    }

    /// The table in `entry`; a fault, and an empty table, if it is none.
    pub(crate) fn of(log: &'l Findings, entry: Entry) -> Self {
        let kind = entry.kind();
        match entry.raw {
            Raw::Table(entries) => Self::new(log, entry.place, entries),
            _ => {
                log.push(entry.place.fault(format!("expected a table, found {kind}")));
                Self::new(log, entry.place, BTreeMap::new())
            }
        }
    }

    pub(crate) fn log(&self) -> &'l Findings {
        self.log
    }

    /// Where `key` stands, or would stand.
    pub(crate) fn place_of(&self, key: &str) -> Place {
        self.entries.get(key).map_or_else(|| self.place.within(key), |entry| entry.place.clone())
    }

    pub(crate) fn fault(&self, key: &str, message: impl Into<String>) {
        self.log.push(self.place_of(key).fault(message));
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// What stands at `key`, which from now on is known.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<Entry> {
        self.asked.insert(key);
        self.entries.get(key).cloned()
    }

    fn read<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&Raw) -> Option<T>,
    ) -> Option<T> {
        let entry = self.get(key)?;
        let value = read(&entry.raw);
        if value.is_none() {
            self.log.push(entry.place.fault(format!("{expected}, found {}", entry.kind())));
        }
        value
    }

    /// A text that is not empty.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, "expected a text that is not empty", |raw| match raw {
            Raw::Text(text) | Raw::Variable(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        })
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.read(key, "expected true or false", |raw| match raw {
            Raw::Flag(flag) => Some(*flag),
            Raw::Variable(text) => text.parse().ok(),
            _ => None,
        })
    }

    /// A whole number that is not negative and fits into 32 bits.
    pub(crate) fn number(&mut self, key: &'static str) -> Option<u32> {
        self.read(key, "expected a whole number", |raw| match raw {
            Raw::Integer(number) => u32::try_from(*number).ok(),
            Raw::Variable(text) => text.parse().ok(),
            _ => None,
        })
    }

    /// A number of bytes with its unit.
    pub(crate) fn size(&mut self, key: &'static str) -> Option<u64> {
        self.read(key, size::EXPECTED, |raw| match raw {
            Raw::Text(text) | Raw::Variable(text) => size::parse(text),
            _ => None,
        })
    }

    /// A duration with its unit.
    pub(crate) fn duration(&mut self, key: &'static str) -> Option<Duration> {
        self.read(key, DURATION, |raw| match raw {
            Raw::Text(text) | Raw::Variable(text) => time::duration(text),
            _ => None,
        })
    }

    /// One of `words`.
    pub(crate) fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let offer = did_you_mean(&text, known.iter().copied());
            self.fault(key, format!("expected {}, found {text:?}{offer}", known.join(" or ")));
        }
        found
    }

    /// A list of texts, each with its place. From a variable: separated by commas.
    pub(crate) fn texts(&mut self, key: &'static str) -> Option<Vec<(Place, String)>> {
        let entry = self.get(key)?;
        texts(&entry).or_else(|| {
            let message = format!("expected a list of texts ([\"a\", \"b\"]), found {}", described(&entry));
            self.log.push(entry.place.fault(message));
            None
        })
    }

    /// A list of lists of texts.
    pub(crate) fn text_lists(&mut self, key: &'static str) -> Option<Vec<Vec<(Place, String)>>> {
        let entry = self.get(key)?;
        let lists = match &entry.raw {
            Raw::List(items) => {
                let nested = items
                    .iter()
                    .map(|item| if matches!(item.raw, Raw::List(_)) { texts(item) } else { None });
                nested.collect::<Option<Vec<_>>>()
            }
            _ => None,
        };
        if lists.is_none() {
            let message = format!(
                "expected a list of lists of texts ([[\"bmc\"], [\"pdu-a\", \"pdu-b\"]]), found {}",
                described(&entry)
            );
            self.log.push(entry.place.fault(message));
        }
        lists
    }

    /// The table at `key`; an empty one where there is none.
    pub(crate) fn table(&mut self, key: &'static str) -> Table<'l> {
        match self.get(key) {
            Some(entry) => Table::of(self.log, entry),
            None => Table::new(self.log, self.place.within(key), BTreeMap::new()),
        }
    }

    /// A table of which the keys are names: what stands under each.
    pub(crate) fn named(&mut self, key: &'static str) -> BTreeMap<String, Entry> {
        self.table(key).entries
    }

    /// What was not asked for, as it stands.
    pub(crate) fn rest(&self) -> BTreeMap<String, Entry> {
        let unasked = self.entries.iter().filter(|(key, _)| !self.asked.contains(key.as_str()));
        unasked.map(|(key, entry)| (key.clone(), entry.clone())).collect()
    }

    /// Everything was asked for: what is left is unknown.
    pub(crate) fn done(self) {
        for (key, entry) in self.rest() {
            let offer = did_you_mean(&key, self.asked.iter().copied());
            let known = self.asked.iter().copied().collect::<Vec<_>>().join(", ");
            self.log.push(
                entry.place.fault(format!("unknown key{offer} Known here: {known}", offer = ended(&offer))),
            );
        }
    }
}

fn ended(offer: &str) -> String {
    if offer.is_empty() { ".".to_owned() } else { offer.to_owned() }
}

fn texts(entry: &Entry) -> Option<Vec<(Place, String)>> {
    match &entry.raw {
        Raw::Variable(text) => {
            let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            Some(words.map(|word| (entry.place.clone(), word.to_owned())).collect())
        }
        Raw::List(items) => {
            let words = items.iter().map(|item| match &item.raw {
                Raw::Text(text) if !text.is_empty() => Some((item.place.clone(), text.clone())),
                _ => None,
            });
            words.collect()
        }
        _ => None,
    }
}

fn described(entry: &Entry) -> &'static str {
    match &entry.raw {
        Raw::List(_) => "a list of something else",
        _ => entry.kind(),
    }
}
