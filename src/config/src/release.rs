//! The releases that nodes may name.

use std::collections::BTreeMap;

use picket_core::ids::ReleaseId;
use serde_json::{Map, Value};

use crate::device::json;
use crate::fault::{Fault, Place};
use crate::secret;
use crate::table::Table;

/// One release: its kind, and the table that the kind checks.
#[derive(Clone, Debug)]
pub struct ReleaseSettings {
    /// Its name.
    pub id: ReleaseId,
    /// `kind`: `webhook`, `command` or `none`.
    pub kind: String,
    /// What is left of its table, for the kind: everything but `kind`. Holds no secret.
    pub settings: Map<String, Value>,
    place: Place,
    places: BTreeMap<String, Place>,
}

impl ReleaseSettings {
    /// A fault at `key` of this release's table, as its kind names it; empty for the table as a whole.
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

pub(crate) fn releases(top: &mut Table<'_>) -> BTreeMap<ReleaseId, ReleaseSettings> {
    let mut releases = BTreeMap::new();
    for (name, entry) in top.named("releases") {
        let id = match ReleaseId::new(&name) {
            Ok(id) => id,
            Err(error) => {
                top.log().push(entry.place.fault(error.to_string()));
                continue;
            }
        };
        let mut table = Table::of(top.log(), entry);
        if !table.has("kind") {
            table.fault("kind", "is missing: \"webhook\", \"command\" or \"none\"");
        }
        let kind = table.text("kind").unwrap_or_default();
        let rest = table.rest();
        rest.iter().for_each(|(key, entry)| secret::refuse(key, entry, top.log()));
        let places = rest.iter().map(|(key, entry)| (key.clone(), entry.place.clone()));
        let places = places.chain([("kind".to_owned(), table.place_of("kind"))]).collect();
        let place = table.place.clone();
        releases.insert(id.clone(), ReleaseSettings { id, kind, settings: json(rest), place, places });
    }
    releases
}
