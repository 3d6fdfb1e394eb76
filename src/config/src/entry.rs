//! The merged settings as a tree in which everything knows its place.

use std::collections::BTreeMap;

use config::{Value, ValueKind};

use crate::fault::Place;
use crate::layer::{PLACE, place_of};

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    pub(crate) raw: Raw,
}

/// A value as it was written.
#[derive(Clone, Debug)]
pub(crate) enum Raw {
    Nothing,
    Text(String),
    /// The text of a variable of the environment, which may mean a number as well.
    Variable(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    List(Vec<Entry>),
    Table(BTreeMap<String, Entry>),
}

impl Entry {
    /// The tree of what `config` merged. `place` is where it stands if it does not say so itself.
    pub(crate) fn of(value: Value, place: &Place) -> Self {
        let origin = value.origin().and_then(place_of);
        let place = origin.map_or_else(|| place.clone(), |origin| Place { key: place.key.clone(), ..origin });
        let raw = match value.kind {
            ValueKind::Nil => Raw::Nothing,
            ValueKind::Boolean(flag) => Raw::Flag(flag),
            ValueKind::I64(number) => Raw::Integer(number),
            ValueKind::U64(number) => i64::try_from(number).map_or(Raw::Float(number as f64), Raw::Integer),
            ValueKind::I128(number) => i64::try_from(number).map_or(Raw::Float(number as f64), Raw::Integer),
            ValueKind::U128(number) => i64::try_from(number).map_or(Raw::Float(number as f64), Raw::Integer),
            ValueKind::Float(number) => Raw::Float(number),
            // Only a variable has no line.
            ValueKind::String(text) if place.line.is_none() => Raw::Variable(text),
            ValueKind::String(text) => Raw::Text(text),
            ValueKind::Array(items) => {
                Raw::List(items.into_iter().map(|item| Entry::of(item, &place)).collect())
            }
            ValueKind::Table(mut table) => {
                let own = table.remove(PLACE).and_then(|value| value.origin().and_then(place_of));
                let place = own.map_or(place.clone(), |own| Place { key: place.key.clone(), ..own });
                let entries = table.into_iter().map(|(key, value)| {
                    let entry = Entry::of(value, &place.within(&key));
                    (key, entry)
                });
                return Self { raw: Raw::Table(entries.collect()), place };
            }
        };
        Self { place, raw }
    }

    /// What it is, for messages. The value itself may be a secret that was put under a wrong key.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.raw {
            Raw::Nothing => "nothing",
            Raw::Text(text) | Raw::Variable(text) if text.is_empty() => "an empty text",
            Raw::Text(_) | Raw::Variable(_) => "a text",
            Raw::Integer(_) => "a whole number",
            Raw::Float(_) => "a number with a fraction",
            Raw::Flag(_) => "true or false",
            Raw::List(_) => "a list",
            Raw::Table(_) => "a table",
        }
    }

    /// Whether a text in it is another for each node.
    pub(crate) fn has_placeholder(&self) -> bool {
        match &self.raw {
            Raw::Text(text) | Raw::Variable(text) => text.contains('{'),
            Raw::List(items) => items.iter().any(Self::has_placeholder),
            Raw::Table(entries) => entries.values().any(Self::has_placeholder),
            _ => false,
        }
    }

    /// As JSON, for a driver or a releaser. The text of a variable is what TOML would take it for, else a text.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.raw {
            Raw::Nothing => Json::Null,
            Raw::Text(text) => Json::String(text.clone()),
            Raw::Variable(text) => match text.parse::<toml::Value>() {
                Ok(toml::Value::Integer(number)) => number.into(),
                Ok(toml::Value::Boolean(flag)) => flag.into(),
                _ => Json::String(text.clone()),
            },
            Raw::Integer(number) => (*number).into(),
            Raw::Float(number) => (*number).into(),
            Raw::Flag(flag) => (*flag).into(),
            Raw::List(items) => items.iter().map(Entry::to_json).collect(),
            Raw::Table(entries) => {
                Json::Object(entries.iter().map(|(key, entry)| (key.clone(), entry.to_json())).collect())
            }
        }
    }
}
