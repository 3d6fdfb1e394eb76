//! What templates and nodes have in common: labels, levels, devices, releases.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use picket_core::device::Identity;
use picket_core::ids::{DeviceId, ReleaseId};
use picket_core::near::did_you_mean;
use picket_core::rules::Rules;

use crate::device::{DeviceSettings, Places};
use crate::entry::Entry;
use crate::fault::Place;
use crate::substitute::Placeholders;
use crate::table::{Findings, Table};

/// A name and where it stands.
type Placed = (Place, String);

/// A device's table, before it belongs to a node.
#[derive(Clone, Debug)]
struct DeviceTable {
    place: Place,
    entries: BTreeMap<String, Entry>,
    /// Where the keys of the device that was made of it last stand.
    places: RefCell<Option<Arc<Places>>>,
}

/// What a template gives, or a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    place: Place,
    pub(crate) labels: BTreeMap<String, String>,
    levels: Option<(Place, Vec<Vec<Placed>>)>,
    devices: BTreeMap<DeviceId, DeviceTable>,
    releases: Option<Vec<Placed>>,
}

impl Parts {
    pub(crate) fn read(table: &mut Table<'_>) -> Self {
        let labels = labels(table.table("labels"));
        let levels = table.text_lists("levels").map(|levels| (table.place_of("levels"), levels));
        let mut devices = BTreeMap::new();
        for (name, entry) in table.named("devices") {
            match DeviceId::new(&name) {
                Ok(id) => {
                    let device = Table::of(table.log(), entry);
                    devices.insert(
                        id,
                        DeviceTable {
                            place: device.place.clone(),
                            entries: device.rest(),
                            places: RefCell::default(),
                        },
                    );
                }
                Err(error) => table.log().push(entry.place.fault(error.to_string())),
            }
        }
        Self { place: table.place.clone(), labels, levels, devices, releases: table.texts("releases") }
    }

    /// A node's own parts over those of its template: labels and the keys of a device one by one, the rest as a whole.
    /// Where the node has levels of its own, the template's devices that they do not name are not the node's.
    pub(crate) fn over(self, template: &Parts) -> Parts {
        let mut merged = template.clone();
        if let Some((_, levels)) = &self.levels {
            let named = |id: &DeviceId| levels.iter().flatten().any(|(_, name)| name == id.as_str());
            merged.devices.retain(|id, _| named(id) || self.devices.contains_key(id));
        }
        merged.place = self.place;
        merged.labels.extend(self.labels);
        merged.levels = self.levels.or(merged.levels);
        merged.releases = self.releases.or(merged.releases);
        for (id, device) in self.devices {
            match merged.devices.get_mut(&id) {
                Some(under) => under.entries.extend(device.entries),
                None => drop(merged.devices.insert(id, device)),
            }
        }
        merged
    }

    /// The devices, with what is left of their placeholders filled for a node, if it is one.
    pub(crate) fn devices(
        &self,
        node: Option<&Placeholders<'_>>,
        identity: &Identity,
        rules: &Rules,
        log: &Findings,
    ) -> BTreeMap<DeviceId, Box<DeviceSettings>> {
        let mut devices = BTreeMap::new();
        for (id, device) in &self.devices {
            let mut entries = device.entries.clone();
            if let Some(node) = node {
                entries.values_mut().for_each(|entry| node.fill(entry, log));
            }
            let table = Table::new(log, device.place.clone(), entries);
            let Some(mut read) = DeviceSettings::read(id, table, rules, identity) else { continue };
            // Of thousands of nodes that the same lines set up the places are the same.
            let mut places = device.places.borrow_mut();
            match &*places {
                Some(known) if **known == *read.places => read.places = known.clone(),
                _ => *places = Some(read.places.clone()),
            }
            devices.insert(id.clone(), Box::new(read));
        }
        devices
    }

    /// The devices as far as they do not depend on the node: what their drivers can check where no node has them.
    pub(crate) fn samples(&self, rules: &Rules) -> Vec<DeviceSettings> {
        let mut bare = self.clone();
        for device in bare.devices.values_mut() {
            device.entries.retain(|_, entry| !entry.has_placeholder());
        }
        // Their faults are told where they stand.
        bare.devices(None, &Identity::default(), rules, &Findings::default())
            .into_values()
            .map(|device| *device)
            .collect()
    }

    /// The levels: each has a device, each device is defined and stands in one of them.
    pub(crate) fn levels(&self, log: &Findings) -> Vec<Vec<DeviceId>> {
        let Some((place, levels)) = &self.levels else { return self.only_level(log) };
        if levels.is_empty() {
            log.push(place.fault("a node needs at least one level: no device proves nothing"));
        }
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        for (number, level) in levels.iter().enumerate() {
            if level.is_empty() {
                log.push(
                    place.fault(format!("level {} has no device: no device proves nothing", number + 1)),
                );
            }
            let mut ids = Vec::new();
            for (place, name) in level {
                let known = self.devices.keys().find(|id| id.as_str() == name);
                let fault = match known {
                    None => {
                        let offer = did_you_mean(name, self.devices.keys().map(DeviceId::as_str));
                        Some(format!(
                            "level {} names the device {name:?}, which is not defined{offer}",
                            number + 1
                        ))
                    }
                    Some(id) if !seen.insert(id) => {
                        Some(format!("the device {name:?} stands in the levels twice"))
                    }
                    Some(id) => {
                        ids.push(id.clone());
                        None
                    }
                };
                if let Some(fault) = fault {
                    log.push(place.fault(fault));
                }
            }
            found.push(ids);
        }
        for (id, device) in self.devices.iter().filter(|(id, _)| !seen.contains(id)) {
            log.push(device.place.fault(format!(
                "the device {:?} stands in no level, so it would never be used: put it into one ({place}), or remove it",
                id.as_str()
            )));
        }
        found
    }

    /// Where no levels are given, one device is the only level.
    fn only_level(&self, log: &Findings) -> Vec<Vec<DeviceId>> {
        let mut ids = self.devices.keys();
        match (ids.next(), ids.next()) {
            (Some(only), None) => vec![vec![only.clone()]],
            (None, _) => {
                let right =
                    "give it devices ([...devices.bmc] with driver = \"ipmi\"), or a template that has some";
                log.push(self.place.fault(format!("has no device: no device proves nothing; {right}")));
                Vec::new()
            }
            (Some(_), Some(_)) => {
                let all: Vec<String> = self.devices.keys().map(|id| format!("[{:?}]", id.as_str())).collect();
                let right = format!(
                    "say in which order they are tried, and what must hold together: levels = [{}]",
                    all.join(", ")
                );
                log.push(
                    self.place.within("levels").fault(format!("is missing: it has several devices; {right}")),
                );
                Vec::new()
            }
        }
    }

    /// The releases, in their order; each is defined.
    pub(crate) fn releases(&self, known: &BTreeSet<ReleaseId>, log: &Findings) -> Vec<ReleaseId> {
        let mut found: Vec<ReleaseId> = Vec::new();
        for (place, name) in self.releases.iter().flatten() {
            match known.iter().find(|id| id.as_str() == name) {
                Some(id) if found.contains(id) => {
                    log.push(place.fault(format!("the release {name:?} stands here twice")))
                }
                Some(id) => found.push(id.clone()),
                None => {
                    let offer = did_you_mean(name, known.iter().map(ReleaseId::as_str));
                    log.push(place.fault(format!(
                        "there is no release {name:?}: define it as [releases.{name}]{offer}"
                    )));
                }
            }
        }
        found
    }

    /// Whether its levels can be checked without a node: it has some, and the devices for them.
    pub(crate) fn has_levels(&self) -> bool {
        self.levels.is_some() && !self.devices.is_empty()
    }
}

fn labels(table: Table<'_>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for (key, entry) in table.rest() {
        match entry.to_json() {
            serde_json::Value::String(text) if text == "*" => {
                let why =
                    "\"*\" stands for every value of a label in the name of a group: no label can have it";
                table.log().push(entry.place.fault(why));
            }
            _ if key.contains('=') => {
                let why =
                    "a label's key has no =, which divides key and value in the name of its group (rack=r1)";
                table.log().push(entry.place.fault(why));
            }
            serde_json::Value::String(text) => drop(labels.insert(key, text)),
            _ => table.log().push(entry.place.fault(format!("expected a text, found {}", entry.kind()))),
        }
    }
    labels
}
