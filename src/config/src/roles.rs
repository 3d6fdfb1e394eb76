//! `[roles]`: who may do what to which nodes.

use std::collections::{BTreeMap, BTreeSet};

use picket_core::hostlist;
use picket_core::ids::NodeId;
use picket_core::near::did_you_mean;
use picket_core::roles::{Grant, Pattern, Role, Roles, Scope};

use crate::entry::Raw;
use crate::listen::Listen;
use crate::node::NodeSettings;
use crate::table::Table;

pub(crate) type Nodes = BTreeMap<NodeId, NodeSettings>;

pub(crate) fn read(top: &mut Table<'_>, listen: &Listen, nodes: &Nodes) -> Roles {
    let given = top.has("roles");
    let tables = top.named("roles");
    if tables.is_empty() {
        if listen.tls.is_some() {
            top.fault(
                "roles",
                "with [listen.tls] nobody may do anything until a role says so: add \
                 [roles.operators] with role = \"operator\" and callers = [\"alice@example.org\"]",
            );
        }
        return if given { Roles::new(Vec::new()) } else { Roles::of_this_machine() };
    }
    Roles::new(
        tables
            .into_iter()
            .filter_map(|(name, entry)| grant(name, Table::of(top.log(), entry), nodes))
            .collect(),
    )
}

fn grant(name: String, mut table: Table<'_>, nodes: &Nodes) -> Option<Grant> {
    if !table.has("role") {
        let words: Vec<&str> = Role::WORDS.iter().map(|(word, _)| *word).collect();
        table.fault("role", format!("is missing: {}", words.join(" or ")));
    }
    let role = table.word("role", &Role::WORDS);
    let callers = patterns(&mut table, "callers");
    let uids = numbers(&mut table, "uids");
    let gids = numbers(&mut table, "gids");
    let has_nobody = ["callers", "uids", "gids"].iter().all(|key| !table.has(key));
    if has_nobody {
        table.fault("callers", "nobody has this role: name them in callers, uids or gids");
    }
    let holders = patterns(&mut table, "holders");
    if role.is_some_and(|role| !role.does(Role::Controller)) && table.has("holders") {
        table.fault("holders", "this role acts for nobody, not even for itself: remove it");
    }
    let nodes = scope(&mut table, "nodes", nodes);
    table.done();
    Some(Grant { name, role: role?, callers, uids, gids, nodes, holders })
}

fn patterns(table: &mut Table<'_>, key: &'static str) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for (place, text) in table.texts(key).unwrap_or_default() {
        match Pattern::new(&text) {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => table.log().push(place.fault(error.to_string())),
        }
    }
    patterns
}

fn numbers(table: &mut Table<'_>, key: &'static str) -> Vec<u32> {
    let Some(entry) = table.get(key) else { return Vec::new() };
    let read = match &entry.raw {
        Raw::List(items) => items
            .iter()
            .map(|item| match item.raw {
                Raw::Integer(number) => u32::try_from(number).ok(),
                _ => None,
            })
            .collect(),
        Raw::Variable(text) => text.split(',').map(|number| number.trim().parse().ok()).collect(),
        _ => None,
    };
    read.unwrap_or_else(|| {
        let message = "expected a list of numbers ([1000, 1001]), as id -u and id -g tell them";
        table.log().push(entry.place.fault(message));
        Vec::new()
    })
}

/// The nodes that a role is limited to, or that are in a group, by the labels under the key `labelled` and by `hosts`. What
/// fits no node would be a role that is never granted, or a rule that never holds, in silence.
pub(crate) fn scope(table: &mut Table<'_>, labelled: &'static str, nodes: &Nodes) -> Scope {
    let mut labels = BTreeMap::new();
    let wanted = table.table(labelled);
    for (key, entry) in wanted.rest() {
        match &entry.raw {
            Raw::Text(text) | Raw::Variable(text) if !text.is_empty() => {
                let value = |node: &NodeSettings| node.labels.get(&key) == Some(text);
                if !nodes.is_empty() && !nodes.values().any(value) {
                    let known: BTreeSet<&str> =
                        nodes.values().filter_map(|node| Some(node.labels.get(&key)?.as_str())).collect();
                    let offer = did_you_mean(text, known);
                    table
                        .log()
                        .push(entry.place.fault(format!("no node has the label {key} = {text:?}{offer}")));
                }
                labels.insert(key, text.clone());
            }
            _ => table.log().push(entry.place.fault(format!("expected a text, found {}", entry.kind()))),
        }
    }
    let hosts = table.text("hosts").map(|list| {
        let names = hostlist::expand(&list).unwrap_or_else(|error| {
            table.fault("hosts", error.to_string());
            Vec::new()
        });
        let mut ids = BTreeSet::new();
        for name in names {
            match NodeId::new(&name).ok().filter(|node| nodes.contains_key(node)) {
                Some(node) => drop(ids.insert(node)),
                None if nodes.is_empty() => {}
                None => {
                    let offer = did_you_mean(&name, nodes.keys().map(NodeId::as_str));
                    table.fault("hosts", format!("there is no node {name} in these settings{offer}"));
                }
            }
        }
        (list, ids)
    });
    Scope { labels, hosts }
}
