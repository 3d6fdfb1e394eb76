//! The nodes, from host lists and templates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use picket_core::device::Identity;
use picket_core::hostlist;
use picket_core::ids::{DeviceId, NodeId, ReleaseId};
use picket_core::near::did_you_mean;
use picket_core::rules::Rules;

use crate::device::{DeviceSettings, identity};
use crate::entry::Entry;
use crate::fault::{Fault, Place};
use crate::substitute::Placeholders;
use crate::table::{Findings, Table};
use crate::template::Parts;

/// One node.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Its name.
    pub id: NodeId,
    /// `provider_id`: what its cloud is told by in Kubernetes, `spec.providerID` of its Node.
    pub provider_id: Option<String>,
    /// `labels`: `rack`, `zone`, whatever helps to select nodes.
    pub labels: Arc<BTreeMap<String, String>>,
    /// `fenced_for`: nodes that run on it, by whose fences it may be fenced, whoever asks for those (S22).
    pub fenced_for: Arc<BTreeSet<NodeId>>,
    /// `levels`: names of devices, tried in order. At least one level, each with at least one device.
    pub levels: Vec<Vec<DeviceId>>,
    /// `devices`, by name; each stands in one level.
    pub devices: BTreeMap<DeviceId, Box<DeviceSettings>>,
    /// `releases`: what lets its volumes go, in this order.
    pub releases: Vec<ReleaseId>,
    place: Place,
}

impl NodeSettings {
    /// A fault of this node at `key` of its table; empty for the node as a whole. Names the node, which may be one of
    /// many that the same lines set up.
    pub fn fault(&self, key: &str, message: &str) -> Fault {
        let place = if key.is_empty() { self.place.clone() } else { self.place.within(key) };
        place.fault(format!("{}: {message}", self.id))
    }

    /// Where it stands.
    pub fn place(&self) -> &Place {
        &self.place
    }
}

/// The templates, each checked once by itself, so that faults of one that no node uses are told as well.
pub(crate) fn templates(
    top: &mut Table<'_>,
    releases: &BTreeSet<ReleaseId>,
    rules: &Rules,
    samples: &mut Vec<DeviceSettings>,
) -> BTreeMap<String, Parts> {
    let mut templates = BTreeMap::new();
    for (name, entry) in top.named("templates") {
        let mut table = Table::of(top.log(), entry);
        let parts = Parts::read(&mut table);
        parts.devices(None, &Identity::default(), rules, table.log());
        parts.releases(releases, table.log());
        if parts.has_levels() {
            parts.levels(table.log());
        }
        table.done();
        samples.extend(parts.samples(rules));
        templates.insert(name, parts);
    }
    templates
}

/// Reads the nodes.
pub(crate) struct Nodes<'a> {
    pub(crate) templates: &'a BTreeMap<String, Parts>,
    pub(crate) releases: &'a BTreeSet<ReleaseId>,
    pub(crate) rules: &'a Rules,
    pub(crate) log: &'a Findings,
}

impl Nodes<'_> {
    pub(crate) fn read(
        &self,
        top: &mut Table<'_>,
        samples: &mut Vec<DeviceSettings>,
    ) -> BTreeMap<NodeId, NodeSettings> {
        let mut nodes: BTreeMap<NodeId, NodeSettings> = BTreeMap::new();
        let tables = top.named("nodes");
        if tables.is_empty() {
            let right = "add [nodes.\"r1n[01-40]\"] with a template or with devices";
            top.fault("nodes", format!("there is no node, so nothing could be fenced: {right}"));
        }
        let mut tables: Vec<(String, Entry)> = tables.into_iter().collect();
        tables.sort_by(|(_, one), (_, other)| one.place.cmp(&other.place));
        for (list, entry) in tables {
            for node in self.list(&list, entry, samples) {
                match nodes.get(&node.id) {
                    Some(first) => {
                        let message =
                            format!("the node {} is set up twice, first at {}", node.id, first.place);
                        self.log.push(node.place.fault(message));
                    }
                    None => drop(nodes.insert(node.id.clone(), node)),
                }
            }
        }
        self.compare_identities(&nodes);
        self.expect_known(&nodes);
        nodes
    }

    /// The nodes of one host list.
    fn list(&self, list: &str, entry: Entry, samples: &mut Vec<DeviceSettings>) -> Vec<NodeSettings> {
        let mut table = Table::of(self.log, entry);
        let names = hostlist::expand(list).unwrap_or_else(|error| {
            self.log.push(table.place.fault(error.to_string()));
            Vec::new()
        });
        let template = self.template(&mut table);
        let of_node = identity(table.table("identity"));
        if names.len() > 1 && !of_node.is_empty() {
            table.fault(
                "identity",
                format!("{} nodes cannot have one identity: give each node its own table", names.len()),
            );
        }
        let provider_id = provider_id(&mut table, names.len());
        let fenced_for = Arc::new(fenced_for(&mut table));
        let own = Parts::read(&mut table);
        let place = table.place.clone();
        table.done();
        if names.is_empty() || template.is_none() {
            samples.extend(own.samples(self.rules));
        }
        // Without its template, what is missing of a node says nothing.
        let Some(template) = template else { return Vec::new() };
        let parts = own.over(&template);
        let (levels, releases) = (parts.levels(self.log), parts.releases(self.releases, self.log));
        let labels = Arc::new(parts.labels.clone());
        let mut nodes = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let placeholders =
                Placeholders { node: name, index: index + 1, provider_id: provider_id.as_deref() };
            let devices = parts.devices(Some(&placeholders), &of_node, self.rules, self.log);
            match NodeId::new(name) {
                Ok(id) => nodes.push(NodeSettings {
                    id,
                    provider_id: provider_id.clone(),
                    labels: labels.clone(),
                    fenced_for: fenced_for.clone(),
                    levels: levels.clone(),
                    devices,
                    releases: releases.clone(),
                    place: place.clone(),
                }),
                Err(error) => self.log.push(place.fault(error.to_string())),
            }
        }
        nodes
    }

    /// The template that a node names, or an empty one. `None`: there is none of that name.
    fn template(&self, table: &mut Table<'_>) -> Option<Parts> {
        if table.get("template").is_none() {
            return Some(Parts::default());
        }
        let name = table.text("template")?;
        let found = self.templates.get(&name).cloned();
        if found.is_none() {
            let offer = did_you_mean(&name, self.templates.keys().map(String::as_str));
            table.fault(
                "template",
                format!("there is no template {name:?}: define it as [templates.{name}]{offer}"),
            );
        }
        found
    }

    /// Each node that another one is fenced for is one of the settings.
    fn expect_known(&self, nodes: &BTreeMap<NodeId, NodeSettings>) {
        for node in nodes.values() {
            for child in node.fenced_for.iter().filter(|child| !nodes.contains_key(child)) {
                let offer = did_you_mean(child.as_str(), nodes.keys().map(NodeId::as_str));
                self.log.push(
                    node.fault("fenced_for", &format!("there is no node {child} in these settings{offer}")),
                );
            }
        }
    }

    /// Two nodes that must say they are the same machine: one of them would be fenced for the other.
    fn compare_identities(&self, nodes: &BTreeMap<NodeId, NodeSettings>) {
        let mut seen: BTreeMap<(&str, String), &NodeSettings> = BTreeMap::new();
        for node in nodes.values() {
            let identities = node.devices.values().map(|device| &device.identity);
            let uuids = identities.clone().filter_map(|identity| Some(("uuid", identity.uuid.clone()?)));
            let serials = identities.filter_map(|identity| Some(("serial", identity.serial.clone()?)));
            let provided = node.provider_id.iter().map(|id| ("provider_id", id.clone()));
            let own: BTreeSet<(&str, String)> = uuids.chain(serials).chain(provided).collect();
            for (kind, value) in own {
                match seen.get(&(kind, value.clone())) {
                    Some(other) => {
                        let message =
                            format!("it has the same {kind} as {} ({}): {value}", other.id, other.place);
                        let key = if kind == "provider_id" { kind } else { "identity" };
                        self.log.push(node.fault(key, &message));
                    }
                    None => drop(seen.insert((kind, value), node)),
                }
            }
        }
    }
}

/// The nodes of a host list.
fn fenced_for(table: &mut Table<'_>) -> BTreeSet<NodeId> {
    let Some(list) = table.text("fenced_for") else { return BTreeSet::new() };
    let names = hostlist::expand(&list).map_err(|error| error.to_string());
    let nodes = names.and_then(|names| {
        names.iter().map(|name| NodeId::new(name).map_err(|error| error.to_string())).collect()
    });
    nodes.unwrap_or_else(|message| {
        table.fault("fenced_for", message);
        BTreeSet::new()
    })
}

/// The longest, as callers may name one.
const LONGEST: usize = 1_024;

/// What the cloud of so many nodes calls them: of one alone.
fn provider_id(table: &mut Table<'_>, nodes: usize) -> Option<String> {
    table.get("provider_id")?;
    let id = table.text("provider_id")?;
    let wrong = match id.split_once("://") {
        _ if nodes > 1 => format!("{nodes} nodes cannot have one provider id: give each node its own table"),
        Some((cloud, rest))
            if !cloud.is_empty()
                && !rest.is_empty()
                && id.len() <= LONGEST
                && id.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            return Some(id);
        }
        _ => format!(
            "expected a node's spec.providerID, as \"aws:///eu-central-1a/i-0123456789abcdef0\", of {LONGEST} bytes at most and without spaces"
        ),
    };
    table.fault("provider_id", wrong);
    None
}
