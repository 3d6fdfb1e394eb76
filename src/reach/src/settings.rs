//! Reading a table of the settings: every fault is kept, none ends the reading.

use std::ops::RangeInclusive;
use std::time::Duration;

use picket_core::time::{self, written};
use serde_json::{Map, Value};

/// A fault in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingFault {
    /// The key within its table (`token_file`); empty for the whole table.
    pub key: String,
    /// What is wrong and what would be right. Never a secret.
    pub message: String,
}

/// Why nothing is made of that name. `what`: "driver", "kind of release"; `has`: those of this build; `all`: further ones, which a build may leave out.
pub fn unmade(what: &str, name: &str, has: &[&str], all: &[&str]) -> String {
    let known = has.join(", ");
    match all.contains(&name) {
        true => {
            format!(
                "the {what} {name:?} is not in this build of picketd, which has {known}: take one that was built with it"
            )
        }
        false => format!("there is no {what} {name:?}; known are {known}"),
    }
}

/// The table while it is read.
pub struct Settings<'a> {
    table: &'a Map<String, Value>,
    known: Vec<&'static str>,
    faults: Vec<SettingFault>,
}

impl<'a> Settings<'a> {
    /// To read that table.
    pub fn new(table: &'a Map<String, Value>) -> Self {
        Self { table, known: Vec::new(), faults: Vec::new() }
    }

    /// Notes a fault at `key`.
    pub fn fault(&mut self, key: &str, message: impl Into<String>) {
        self.faults.push(SettingFault { key: key.to_owned(), message: message.into() });
    }

    fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        self.table.get(key)
    }

    /// A text that is not empty.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        match self.get(key)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            // What stands there may be a secret that was put under the wrong key: it is not repeated.
            other => {
                self.fault(key, format!("expected a text that is not empty, found {}", kind(other)));
                None
            }
        }
    }

    /// A text that must be there; `example` shows one.
    pub fn needed(&mut self, key: &'static str, example: &str) -> Option<String> {
        if !self.table.contains_key(key) {
            self.fault(key, format!("is missing, for example {example}"));
        }
        self.text(key)
    }

    /// A list of texts; empty where it is not given.
    pub fn texts(&mut self, key: &'static str) -> Vec<String> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let texts: Option<Vec<String>> = value
            .as_array()
            .and_then(|list| list.iter().map(|one| one.as_str().map(str::to_owned)).collect());
        texts.unwrap_or_else(|| {
            self.fault(key, format!("expected a list of texts, found {}", kind(value)));
            Vec::new()
        })
    }

    /// A table, for whoever knows what is in it.
    pub fn table(&mut self, key: &'static str) -> Option<&'a Map<String, Value>> {
        match self.get(key)? {
            Value::Object(table) => Some(table),
            other => {
                self.fault(key, format!("expected a table, found {}", kind(other)));
                None
            }
        }
    }

    /// One of these words.
    pub fn word(&mut self, key: &'static str, words: &[&'static str]) -> Option<&'static str> {
        let found = self.text(key)?;
        let word = words.iter().find(|word| **word == found).copied();
        if word.is_none() {
            let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            self.fault(key, format!("expected {}, found {found:?}", words.join(" or ")));
        }
        word
    }

    /// `true` or `false`; false where it is not given.
    pub fn flag(&mut self, key: &'static str) -> bool {
        match self.get(key) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.fault(key, format!("expected true or false, found {}", kind(other)));
                false
            }
        }
    }

    /// A whole number within `range`.
    pub fn number(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.get(key)?;
        let read = value.as_u64().filter(|number| range.contains(number));
        if read.is_none() {
            let found = value.as_i64().map_or_else(|| kind(value).to_owned(), |number| number.to_string());
            let message =
                format!("expected a whole number from {} to {}, found {found}", range.start(), range.end());
            self.fault(key, message);
        }
        read
    }

    /// A duration with its unit, within `range`.
    pub fn duration(&mut self, key: &'static str, range: RangeInclusive<Duration>) -> Option<Duration> {
        let value = self.get(key)?;
        let read = value.as_str().and_then(time::duration);
        if read.is_some_and(|read| range.contains(&read)) {
            return read;
        }
        let found = match value {
            Value::String(text) => format!("{text:?}"),
            other => kind(other).to_owned(),
        };
        let message = format!(
            "expected a duration from {:?} to {:?} with its unit (\"500ms\", \"15s\", \"10m\", \"1d\"), found {found}",
            written(*range.start()),
            written(*range.end()),
        );
        self.fault(key, message);
        None
    }

    /// `made`, if nothing was wrong; else everything that was.
    pub fn finish<T>(mut self, made: Option<T>) -> Result<T, Vec<SettingFault>> {
        let unknown: Vec<&String> =
            self.table.keys().filter(|key| !self.known.contains(&key.as_str())).collect();
        for key in unknown {
            let message = format!("unknown key; known are {}", self.known.join(", "));
            self.fault(key, message);
        }
        match made {
            Some(made) if self.faults.is_empty() => Ok(made),
            _ => Err(self.faults),
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(text) if text.is_empty() => "an empty text",
        Value::String(_) => "a text",
        Value::Array(_) => "a list of something else",
        Value::Object(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_duration_has_any_unit_that_the_settings_have() {
        let table = json!({"settle": "1d", "deadline": "2d"});
        let mut settings = Settings::new(table.as_object().expect("a table"));
        let day = Duration::from_secs(86_400);
        assert_eq!(settings.duration("settle", Duration::ZERO..=day), Some(day));
        assert_eq!(settings.duration("deadline", Duration::ZERO..=day), None);
        let faults = settings.finish(Some(())).expect_err("two days are too long");
        assert!(faults[0].message.starts_with("expected a duration from \"0s\" to \"1d\""), "{faults:?}");
    }

    #[test]
    fn what_a_build_leaves_out_is_told_from_what_nobody_has() {
        let told = |name: &str| unmade("driver", name, &["ipmi", "sim"], &["gcp", "ipmi"]);
        let right = "the driver \"gcp\" is not in this build of picketd, which has ipmi, sim: take one that was built with it";
        assert_eq!(told("gcp"), right);
        assert_eq!(told("gpc"), "there is no driver \"gpc\"; known are ipmi, sim");
    }

    #[test]
    fn every_fault_is_told_with_what_would_be_right() {
        let table = json!({"deadline": "1s", "list": 2, "url": "", "colour": "red"});
        let mut settings = Settings::new(table.as_object().expect("a table"));
        let second = Duration::from_secs(1);
        assert_eq!(settings.duration("deadline", 10 * second..=24 * 3600 * second), None);
        assert_eq!((settings.texts("list"), settings.text("url")), (Vec::new(), None));
        let faults = settings.finish(Some(())).expect_err("all of it is wrong");
        let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
        assert_eq!(keys, ["deadline", "list", "url", "colour"]);
        assert!(faults[0].message.contains("\"10s\" to \"1d\""), "{faults:?}");
        assert!(faults[3].message.contains("known are deadline, list, url"), "{faults:?}");
    }
}
