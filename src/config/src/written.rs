//! What the settings say key by key, so that a reload can tell which of them are others now.
//!
//! **Non-goals.** Not of nodes, templates and releases: those are told by node.
//!
//! # Invariants
//!
//! - No value of a source of liveness is kept: where it asks is told to nobody. Shown by
//!   `tables_within_have_their_keys_and_what_liveness_asks_is_not_told`.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::entry::Entry;
use crate::fault::join;

/// The tables whose keys are told.
const TABLES: [&str; 5] = ["budget", "groups", "limits", "roles", "rules"];
/// Below this key only that something changed is told.
const CLOSED: &str = "liveness";
/// At most so many characters of a value are told.
const LONGEST: usize = 80;

/// The keys that were set, by table, each with its value as people read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written(BTreeMap<&'static str, BTreeMap<String, Told>>);

/// A value, to be compared whole and told in short.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    value: Value,
    is_closed: bool,
}

/// A key that is set otherwise, or no more, or now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    key: String,
    was: Option<Told>,
    is: Option<Told>,
}

impl Written {
    pub(crate) fn of(merged: &Entry) -> Self {
        Self::of_json(&merged.to_json())
    }

    fn of_json(settings: &Value) -> Self {
        let of_table = |name: &&'static str| {
            let mut keys = BTreeMap::new();
            flatten("", settings.get(*name)?, false, &mut keys);
            Some((*name, keys))
        };
        Self(TABLES.iter().filter_map(of_table).collect())
    }

    /// The keys of `table` that are others in `new`, in their order.
    pub fn changes(&self, new: &Self, table: &str) -> Vec<Change> {
        let none = BTreeMap::new();
        let (old, new) = (self.0.get(table).unwrap_or(&none), new.0.get(table).unwrap_or(&none));
        let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
        keys.sort();
        keys.dedup();
        let differs = keys.into_iter().filter(|key| old.get(*key) != new.get(*key));
        differs
            .map(|key| Change { key: key.clone(), was: old.get(key).cloned(), is: new.get(key).cloned() })
            .collect()
    }
}

fn flatten(key: &str, value: &Value, is_closed: bool, keys: &mut BTreeMap<String, Told>) {
    match value {
        Value::Object(table) => {
            for (name, value) in table {
                flatten(&join(key, name), value, is_closed || name == CLOSED, keys);
            }
        }
        value => {
            keys.insert(key.to_owned(), Told { value: value.clone(), is_closed });
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match &self.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if text.chars().count() <= LONGEST {
            return f.write_str(&text);
        }
        let short: String = text.chars().take(LONGEST).collect();
        write!(f, "{short}…")
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match (&self.was, &self.is) {
            (Some(told), _) | (_, Some(told)) if told.is_closed => write!(f, "{key} changed"),
            (Some(was), Some(is)) => write!(f, "{key} {was} to {is}"),
            (None, Some(is)) => write!(f, "{key} set to {is}"),
            (Some(was), None) => write!(f, "{key} taken out, was {was}"),
            (None, None) => write!(f, "{key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changes(old: &Value, new: &Value, table: &str) -> Vec<String> {
        Written::of_json(old).changes(&Written::of_json(new), table).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_key_is_told_with_what_it_was_and_is() {
        let old =
            json!({ "rules": { "dwell": "1s", "watch": "10s", "readings": 2 }, "limits": { "rate": 50 } });
        let new =
            json!({ "rules": { "dwell": "2s", "readings": 2, "lease": "5s" }, "limits": { "rate": 50 } });
        let told = changes(&old, &new, "rules");
        assert_eq!(told, ["dwell 1s to 2s", "lease set to 5s", "watch taken out, was 10s"]);
        assert_eq!(changes(&old, &new, "limits"), [""; 0]);
        assert_eq!(changes(&old, &json!({}), "limits"), ["rate taken out, was 50"]);
    }

    #[test]
    fn tables_within_have_their_keys_and_what_liveness_asks_is_not_told() {
        let of = |url: &str, most: u32| json!({ "groups": { "rack=*": { "budget": { "at_once": most }, "liveness": { "url": url } } } });
        let told = changes(&of("http://a", 1), &of("http://b", 2), "groups");
        assert_eq!(told, ["\"rack=*\".budget.at_once 1 to 2", "\"rack=*\".liveness.url changed"]);
        let long = |end: &str| json!({ "roles": { "ops": { "callers": ["a".repeat(200) + end] } } });
        let told = changes(&long("x"), &long("y"), "roles");
        assert!(told.len() == 1 && told[0].contains("…") && told[0].chars().count() < 200, "{told:?}");
    }
}
