//! `[groups]`: groups of nodes beside those that their labels make, and the rules of each.

use std::collections::{BTreeMap, BTreeSet};

use picket_core::budget::Limits;
use picket_core::groups::{self, Groups};
use picket_core::hostlist;
use picket_core::near::did_you_mean;

use crate::budget;
use crate::entry::Entry;
use crate::fault::{Fault, Place};
use crate::kinded::Kinded;
use crate::roles::{self, Nodes};
use crate::table::Table;

/// What `[groups]` says of a group. What is left out holds as if the group had no rule for it.
#[derive(Clone, Debug, Default)]
pub struct GroupRules {
    /// `budget`: how much of it may be fenced.
    pub budget: Option<Limits>,
    /// `liveness`: what says whether one of its nodes recovered (S15).
    pub liveness: Option<Kinded>,
    /// `drills`: whether nodes of the group may be drilled. A node may where one of its groups says true, and none false.
    pub drills: Option<bool>,
}

impl GroupRules {
    fn read(table: &mut Table<'_>) -> Self {
        let budget = table.get("budget").map(|_| budget::limits(table.table("budget")));
        let liveness = table.get("liveness").map(|_| {
            Kinded::read(&mut table.table("liveness"), "the kind of liveness source, for example \"command\"")
        });
        Self { budget, liveness, drills: table.flag("drills") }
    }

    /// These rules, and for what they leave out those of every value of the label.
    fn over(self, every: &Self) -> Self {
        Self {
            budget: self.budget.or_else(|| every.budget.clone()),
            liveness: self.liveness.or_else(|| every.liveness.clone()),
            drills: self.drills.or(every.drills),
        }
    }
}

/// A group and its rules.
#[derive(Clone, Debug)]
pub struct GroupSettings {
    /// Its rules.
    pub rules: GroupRules,
    /// Where the rules stand; of a label of which nothing is said, nowhere.
    place: Option<Place>,
}

impl GroupSettings {
    /// A fault of this group at `key` of its table; empty for the group as a whole.
    pub fn fault(&self, key: &str, message: impl Into<String>) -> Fault {
        let place = self.place.clone().unwrap_or_default();
        let place = if key.is_empty() { place } else { place.within(key) };
        place.fault(message)
    }
}

/// All groups: each label of a node is one (`rack=r1`), and each `[groups.NAME]`.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    members: Groups,
    settings: BTreeMap<String, GroupSettings>,
}

impl Grouping {
    /// The groups and their nodes.
    pub fn members(&self) -> &Groups {
        &self.members
    }

    /// Whether a node in these groups may be drilled.
    pub fn allows_drills<'a>(&self, groups: impl IntoIterator<Item = &'a String>) -> bool {
        let words = groups.into_iter().filter_map(|group| self.settings.get(group)?.rules.drills);
        words.fold(None, |so_far: Option<bool>, word| Some(so_far.unwrap_or(true) && word)).unwrap_or(false)
    }

    /// The groups of which `[groups]` says something, by name. What it says of `rack=*` stands here for each rack.
    pub fn settings(&self) -> &BTreeMap<String, GroupSettings> {
        &self.settings
    }
}

pub(crate) fn read(top: &mut Table<'_>, nodes: &Nodes) -> Grouping {
    let mut grouping = Grouping::default();
    for node in nodes.values() {
        for (key, value) in &*node.labels {
            grouping.members.put(&groups::label(key, value), node.id.clone());
        }
    }
    let mut every = Vec::new();
    for (name, entry) in top.named("groups") {
        match name.split_once('=') {
            Some((key, "*")) => every.extend(every_value(key, top, entry, nodes)),
            Some((key, value)) => one_value(&name, (key, value), top, entry, &mut grouping, nodes),
            None => named(&name, top, entry, &mut grouping, nodes),
        }
    }
    for (key, (rules, place)) in every {
        let values: BTreeSet<&String> = nodes.values().filter_map(|node| node.labels.get(&key)).collect();
        for value in values {
            let name = groups::label(&key, value);
            let own = grouping.settings.remove(&name);
            let settings = match own {
                Some(own) => GroupSettings { rules: own.rules.over(&rules), place: own.place },
                None => GroupSettings { rules: rules.clone(), place: Some(place.clone()) },
            };
            grouping.settings.insert(name, settings);
        }
    }
    one_source_a_node(top, &grouping);
    grouping
}

/// Of two sources for one node, either could stop a fence or neither: who sets them up says which it is.
fn one_source_a_node(top: &Table<'_>, grouping: &Grouping) {
    let sources: Vec<(&String, &Kinded)> = grouping
        .settings
        .iter()
        .filter_map(|(name, group)| Some((name, group.rules.liveness.as_ref()?)))
        .collect();
    let members = |name: &str| grouping.members.members(name);
    let mut told = BTreeSet::new();
    for (at, (name, source)) in sources.iter().enumerate() {
        for (other, first) in &sources[..at] {
            let (Some(here), Some(there)) = (members(name), members(other)) else { continue };
            let both = here.intersection(there).next();
            if let Some(node) = both.filter(|_| told.insert((source.place(), first.place()))) {
                let message = format!(
                    "{node} is in {name} and in {other}, whose liveness source is at {}: a node has one source",
                    first.place()
                );
                top.log().push(source.fault("", message));
            }
        }
    }
}

/// `[groups."rack=*"]`: the rules of each value of that label.
fn every_value(
    key: &str,
    top: &Table<'_>,
    entry: Entry,
    nodes: &Nodes,
) -> Option<(String, (GroupRules, Place))> {
    let mut table = Table::of(top.log(), entry);
    let known: BTreeSet<&str> =
        nodes.values().flat_map(|node| node.labels.keys()).map(String::as_str).collect();
    if !nodes.is_empty() && !known.contains(key) {
        let offer = did_you_mean(key, known);
        here(&table, format!("no node has the label {key}{offer}"));
    }
    has_its_nodes_by_label(&mut table);
    let (rules, place) = (GroupRules::read(&mut table), table.place.clone());
    table.done();
    Some((key.to_owned(), (rules, place)))
}

/// `[groups."rack=r1"]`: the rules of one value of a label.
fn one_value(
    name: &str,
    (key, value): (&str, &str),
    top: &Table<'_>,
    entry: Entry,
    grouping: &mut Grouping,
    nodes: &Nodes,
) {
    let mut table = Table::of(top.log(), entry);
    if !nodes.is_empty() && grouping.members.members(name).is_none() {
        let offer = did_you_mean(name, grouping.members.iter().map(|(name, _)| name));
        here(&table, format!("no node has the label {key} = {value:?}{offer}"));
    }
    has_its_nodes_by_label(&mut table);
    let (rules, place) = (GroupRules::read(&mut table), Some(table.place.clone()));
    table.done();
    grouping.settings.insert(name.to_owned(), GroupSettings { rules, place });
}

/// A fault of the table as a whole.
fn here(table: &Table<'_>, message: impl Into<String>) {
    table.log().push(table.place.fault(message));
}

/// A label says itself which nodes are in its group.
fn has_its_nodes_by_label(table: &mut Table<'_>) {
    for key in ["hosts", "labels"] {
        if table.has(key) {
            let _ = table.get(key);
            table.fault(
                key,
                "the label says which nodes are in this group: remove it, or give the group a name without =",
            );
        }
    }
}

/// `[groups.NAME]`: the nodes of a host list, those with some labels, or those that fit both.
fn named(name: &str, top: &Table<'_>, entry: Entry, grouping: &mut Grouping, nodes: &Nodes) {
    let mut table = Table::of(top.log(), entry);
    let fits = hostlist::expand(name).is_ok_and(|names| names == [name]);
    if !fits {
        let right = "1 to 253 letters, digits, '-', '_' or '.', the first a letter or digit; or a label (\"rack=r1\", \"rack=*\")";
        here(&table, format!("{name:?} is no name of a group: {right}"));
    }
    if !table.has("hosts") && !table.has("labels") {
        let right = "name them by hosts = \"r1n[01-40]\", by labels = { rack = \"r1\" }, or by both";
        here(&table, format!("does not say which nodes are in it: {right}"));
    }
    let told = table.has("hosts") || table.has("labels");
    let faults = table.log().count();
    let scope = roles::scope(&mut table, "labels", nodes);
    // A label or a node that there is not was told.
    let is_right = table.log().count() == faults;
    let mut is_empty = true;
    for node in nodes.values().filter(|node| told && scope.has(&node.id, &node.labels)) {
        grouping.members.put(name, node.id.clone());
        is_empty = false;
    }
    if is_empty && told && is_right && !nodes.is_empty() {
        here(&table, format!("no node is in this group: none fits {}", scope.words()));
    }
    let (rules, place) = (GroupRules::read(&mut table), Some(table.place.clone()));
    table.done();
    grouping.settings.insert(name.to_owned(), GroupSettings { rules, place });
}
