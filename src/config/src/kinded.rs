//! A table whose `kind` says who checks the rest of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::device::json;
use crate::fault::{Fault, Place};
use crate::secret;
use crate::table::Table;

/// A kind, and the table that the kind checks.
#[derive(Clone, Debug)]
pub struct Kinded {
    /// `kind`.
    pub kind: String,
    /// What is left of its table, for the kind: everything but `kind`. Holds no secret.
    pub settings: Map<String, Value>,
    place: Place,
    places: BTreeMap<String, Place>,
}

impl Kinded {
    /// Reads it; `example`: what it is, and one, for people. Which there are is known to whoever makes something of it: a build leaves some out.
    pub(crate) fn read(table: &mut Table<'_>, example: &str) -> Self {
        if !table.has("kind") {
            table.fault("kind", format!("is missing: {example}"));
        }
        let kind = table.text("kind").unwrap_or_default();
        let rest = table.rest();
        rest.iter().for_each(|(key, entry)| secret::refuse(key, entry, table.log()));
        let places = rest.iter().map(|(key, entry)| (key.clone(), entry.place.clone()));
        let places = places.chain([("kind".to_owned(), table.place_of("kind"))]).collect();
        Self { kind, settings: json(rest), place: table.place.clone(), places }
    }

    /// Where it stands.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// A fault at `key` of this table, as its kind names it; empty for the table as a whole.
    pub fn fault(&self, key: &str, message: impl Into<String>) -> Fault {
        let first = key.split(['.', '[']).next().unwrap_or_default();
        let place = match self.places.get(first) {
            Some(place) => place.clone(),
            None if key.is_empty() => self.place.clone(),
            None => self.place.within(first),
        };
        place.fault(message)
    }
}
