//! What is in force, key by key, and where each value comes from: for `picketd --print-settings`.
//!
//! **Non-goals.** No secret is read: a settings file that holds one is refused before.
//!
//! # Invariants
//!
//! - The TOML form is loadable, and loaded it is the same settings. A default stands in it as a comment: a
//!   default that is written down is asked for, and is refused where it has no room beside another value.
//!   Shown by `what_is_in_force_is_printed_and_can_be_loaded_again`.
//! - Where a secret is hidden ([`hidden`]) the form is refused, rather than another secret loaded. Shown by
//!   `a_secret_in_a_url_or_an_argument_is_hidden_and_the_copy_is_refused`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use picket_schema::{DefaultValue, Key, SETTINGS, ValueType, Variants};
use serde_json::{Value, json};

use crate::entry::{Entry, Raw};
use crate::fault::{Place, join};
use crate::hidden;
use crate::sections::StoreSettings;
use crate::settings::Settings;

type Entries = BTreeMap<String, Entry>;

/// The settings in force.
#[derive(Clone, Debug)]
pub struct Effective {
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    path: Vec<String>,
    is: Is,
}

#[derive(Clone, Debug)]
enum Is {
    /// The beginning of a table.
    Table,
    /// A value, and where it stands.
    Set(Value, Place),
    /// A default.
    Default(Value),
    /// A default that depends on something that is known later, in words.
    Later(&'static str),
}

/// What is known of a table's keys.
#[derive(Clone, Copy)]
enum Known {
    Keys(&'static [Key]),
    Variant(&'static Variants),
    /// Each key is a name, of a table with these keys.
    NamedKeys(&'static [Key]),
    /// Each key is a name, of such a table.
    NamedVariant(&'static Variants),
    Nothing,
}

impl Effective {
    pub(crate) fn of(merged: &Entry, settings: &Settings) -> Self {
        let mut rows = Vec::new();
        Walk { settings, rows: &mut rows }.table(Some(merged), Known::Keys(SETTINGS), &[]);
        Self { rows }
    }

    /// One document: `settings`, a list of `key`, `value` and `from` (`file`, `environment`, `default`), with `file` and `line`, or
    /// `variable`. A default that depends on something else has `default` in words, and no `value`.
    pub fn to_json(&self) -> Value {
        let rows = self.rows.iter().filter_map(|row| {
            let key = dotted(&row.path);
            Some(match &row.is {
                Is::Table => return None,
                Is::Set(value, Place { file, line: Some(line), .. }) => {
                    json!({ "key": key, "value": value, "from": "file", "file": file, "line": line })
                }
                Is::Set(value, Place { file, .. }) => {
                    json!({ "key": key, "value": value, "from": "environment", "variable": file })
                }
                Is::Default(value) => json!({ "key": key, "value": value, "from": "default" }),
                Is::Later(words) => json!({ "key": key, "from": "default", "default": words }),
            })
        });
        json!({ "settings": rows.collect::<Vec<Value>>() })
    }

    /// TOML, each value with a comment that says where it comes from, defaults as comments.
    pub fn to_toml(&self, file: &Path) -> String {
        let mut out = format!(
            "# What is in force by {}; a line behind a # is a default.\n",
            file.display().to_string().escape_debug()
        );
        for row in &self.rows {
            let key = row.path.last().map(|key| join("", key)).unwrap_or_default();
            out += &match &row.is {
                Is::Table => format!("\n[{}]\n", dotted(&row.path)),
                Is::Set(value, place) => {
                    let place = Place { key: String::new(), ..place.clone() };
                    // A file's name may hold what ends a comment.
                    format!("{key} = {}  # {}\n", toml(value), place.to_string().escape_debug())
                }
                Is::Default(value) => format!("# {key} = {}  # default\n", toml(value)),
                Is::Later(words) => format!("# {key}: {words}  # default\n"),
            };
        }
        out
    }
}

fn dotted(path: &[String]) -> String {
    path.iter().fold(String::new(), |before, key| join(&before, key))
}

fn toml(value: &Value) -> String {
    toml::Value::try_from(value).map_or_else(|_| value.to_string(), |value| value.to_string())
}

struct Walk<'a> {
    settings: &'a Settings,
    rows: &'a mut Vec<Row>,
}

impl Walk<'_> {
    /// A table that is there, or one of those that need not be written down.
    fn table(&mut self, entry: Option<&Entry>, known: Known, path: &[String]) {
        let empty = Entries::new();
        let entries = match entry.map(|entry| &entry.raw) {
            Some(Raw::Table(entries)) => entries,
            _ => &empty,
        };
        let at = |key: &str| [path, &[key.to_owned()]].concat();
        let mut leaves = Vec::new();
        let mut tables: Vec<(Option<&Entry>, Known, Vec<String>)> = Vec::new();
        for (name, entry) in entries {
            match &entry.raw {
                Raw::Table(_) => tables.push((Some(entry), known.below(name, entries), at(name))),
                _ => {
                    let value = hidden::shown(name, typed(entry, known.value(name, entries)));
                    leaves.push(Row { path: at(name), is: Is::Set(value, entry.place.clone()) });
                }
            }
        }
        for key in known.keys(entries).into_iter().filter(|key| !entries.contains_key(key.name)) {
            if matches!(key.value, ValueType::Table(_) | ValueType::Variant(_)) {
                // Below the top a table that is written down, and empty, has a meaning of its own.
                if path.is_empty() && (key.name != "election" || self.is_shared()) {
                    tables.push((None, known.below(key.name, entries), at(key.name)));
                }
            } else if path.first().is_none_or(|first| first != "nodes") {
                leaves.extend(self.default(key, at(key.name), path.len() == 1));
            }
        }
        if !path.is_empty() && (!leaves.is_empty() || tables.is_empty()) {
            self.rows.push(Row { path: path.to_vec(), is: Is::Table });
        }
        self.rows.append(&mut leaves);
        for (entry, known, path) in tables {
            self.table(entry, known, &path);
        }
    }

    fn is_shared(&self) -> bool {
        matches!(self.settings.store, StoreSettings::Etcd(_))
    }

    /// The default of a key; `section`: of one of the tables that are there once.
    fn default(&self, key: &Key, path: Vec<String>, section: bool) -> Option<Row> {
        let is = match key.default {
            DefaultValue::Value(text) => Is::Default(serde_json::from_str(text).ok()?),
            DefaultValue::Computed(words) => match self.computed(&path) {
                Some(value) => Is::Default(value?),
                None if section || path.len() == 1 => Is::Later(words),
                None => return None,
            },
            DefaultValue::Nothing | DefaultValue::Required => return None,
        };
        Some(Row { path, is })
    }

    /// What a default that depends on other settings came to; within that nothing, if it came to nothing.
    fn computed(&self, path: &[String]) -> Option<Option<Value>> {
        let settings = self.settings;
        let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| json!(path));
        let limits = || settings.budget.of_fleet(settings.nodes.len());
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        Some(match path[..] {
            ["gateway", "name"] => Some(json!(settings.gateway.name)),
            ["listen", "unix"] => shown(&settings.listen.unix),
            ["audit", "path"] => shown(&settings.audit.path),
            ["audit", "most"] => Some(json!(format!("{}KiB", settings.audit.most >> 10))),
            ["receipts", "key_file"] => shown(&settings.receipts.key_file),
            ["budget", "at_once"] => limits().at_once.map(|number| json!(number)),
            ["budget", "at_once_percent"] => limits().at_once_percent.map(|number| json!(number)),
            ["budget", "min_not_fenced"] => limits().min_not_fenced.map(|number| json!(number)),
            _ => return None,
        })
    }
}

impl Known {
    /// The keys that a table of these entries may have.
    fn keys(self, entries: &Entries) -> Vec<&'static Key> {
        match self {
            Known::Keys(keys) => keys.iter().collect(),
            Known::Variant(variants) => {
                let said = match entries.get(variants.by).map(|entry| &entry.raw) {
                    Some(Raw::Text(text) | Raw::Variable(text)) => Some(text.clone()),
                    _ => None,
                };
                let usual = variants.common.iter().find(|key| key.name == variants.by).and_then(|key| {
                    let DefaultValue::Value(text) = key.default else { return None };
                    serde_json::from_str::<String>(text).ok()
                });
                let own = said.or(usual).and_then(|name| variants.own(&name));
                variants.common.iter().chain(own.into_iter().flatten()).collect()
            }
            Known::NamedKeys(_) | Known::NamedVariant(_) | Known::Nothing => Vec::new(),
        }
    }

    fn value(self, name: &str, entries: &Entries) -> Option<ValueType> {
        self.keys(entries).into_iter().find(|key| key.name == name).map(|key| key.value)
    }

    /// What is known of the table under that key.
    fn below(self, name: &str, entries: &Entries) -> Self {
        match (self, self.value(name, entries)) {
            (Known::NamedKeys(keys), _) | (_, Some(ValueType::Table(keys))) => Known::Keys(keys),
            (Known::NamedVariant(variants), _) | (_, Some(ValueType::Variant(variants))) => {
                Known::Variant(variants)
            }
            (_, Some(ValueType::Named(keys))) => Known::NamedKeys(keys),
            (_, Some(ValueType::NamedVariant(variants))) => Known::NamedVariant(variants),
            _ => Known::Nothing,
        }
    }
}

/// A value as its reader takes it: the text of a variable may be a number, a flag or a list.
fn typed(entry: &Entry, value: Option<ValueType>) -> Value {
    let Raw::Variable(text) = &entry.raw else { return entry.to_json() };
    let words = || text.split(',').map(str::trim).filter(|word| !word.is_empty());
    match value {
        Some(ValueType::Flag | ValueType::FlagOrDuration(..)) if text.parse::<bool>().is_ok() => {
            json!(text == "true")
        }
        Some(ValueType::Integer(..)) => {
            text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number))
        }
        Some(ValueType::Texts) => words().collect(),
        Some(ValueType::Integers) => {
            words().filter_map(|word| word.parse::<i64>().ok()).map(|number| json!(number)).collect()
        }
        Some(_) => json!(text),
        None => entry.to_json(),
    }
}
