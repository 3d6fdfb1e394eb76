//! The table of settings is what the reader does: its keys, its ranges, its defaults.

use std::collections::BTreeSet;

use picket_config::Settings;
use picket_schema::{DefaultValue, Key};
use serde_json::Value;

use crate::common::*;

/// A table that the configuration reads itself: how it is written, and what must stand beside it.
struct Section {
    header: &'static str,
    beside: &'static str,
    keys: Vec<Key>,
}

fn sections() -> Vec<Section> {
    let of = |header, beside, keys: &[&[Key]]| Section { header, beside, keys: keys.concat() };
    let etcd = "kind = \"etcd\"\nendpoints = [\"http://127.0.0.1:2379\"]\nallow_anonymous = true\n";
    vec![
        of("gateway", "", &[picket_schema::GATEWAY]),
        of("listen", "", &[picket_schema::LISTEN]),
        of("listen.tls", "", &[picket_schema::LISTEN_TLS]),
        of("limits", "", &[picket_schema::LIMITS]),
        of("metrics", "", &[picket_schema::METRICS]),
        of("store", "", &[picket_schema::STORES.common, picket_schema::STORE]),
        of("store", etcd, &[picket_schema::STORES.common, picket_schema::ETCD]),
        of("election", "", &[picket_schema::ELECTION]),
        of("audit", "rotate = \"64KiB\"\n", &[picket_schema::AUDIT]),
        of("receipts", "", &[picket_schema::RECEIPTS]),
        of("log", "", &[picket_schema::LOG]),
        of("rules", "", &[picket_schema::RULES]),
        of("budget", "per_window = 1\nwindow = \"1h\"\n", &[picket_schema::BUDGET]),
        of("roles.x", "role = \"operator\"\ncallers = [\"a\"]\n", &[picket_schema::ROLE]),
        of("groups.x", "hosts = \"r1n07\"\n", &[picket_schema::GROUP]),
        of("groups.\"rack=*\".budget", "at_once = 1\n", &[picket_schema::GROUP_BUDGET]),
        of("templates.x", "", &[picket_schema::TEMPLATE]),
        of("nodes.r1n09", "template = \"r1\"\n", &[picket_schema::NODE]),
        of("nodes.r1n09.identity", "", &[picket_schema::IDENTITY]),
    ]
}

impl Section {
    /// The settings with `line` in the section, in the place of what stands there of that key.
    fn text(&self, line: &str) -> String {
        let key = line.split(" = ").next().unwrap_or_default();
        let other = |kept: &&str| !kept.starts_with(&format!("{key} = "));
        let beside: Vec<&str> = self.beside.lines().filter(other).collect();
        let home = if self.header == "election" {
            "[store]\nkind = \"etcd\"\nendpoints = [\"http://127.0.0.1:2379\"]\nallow_anonymous = true\n"
        } else {
            ""
        };
        let rest =
            if self.header.starts_with("nodes.r1n09.") { "[nodes.r1n09]\ntemplate = \"r1\"\n" } else { "" };
        let good = GOOD.replace("levels = [[\"bmc\"]]", "levels = [[\"bmc\"]]\nlabels = { rack = \"r1\" }");
        format!("{good}{home}{rest}[{}]\n{}\n{line}\n", self.header, beside.join("\n"))
    }

    fn faults(&self, line: &str) -> Vec<(String, String)> {
        let faults = Home::with(&self.text(line)).load().err().map(|faults| faults.all().to_vec());
        faults.unwrap_or_default().into_iter().map(|fault| (fault.place.key, fault.message)).collect()
    }
}

fn toml(value: &Value) -> String {
    // Texts, numbers, flags and lists of them are written as in JSON.
    value.to_string()
}

#[test]
fn the_table_has_the_keys_that_the_reader_knows() {
    for section in sections() {
        let faults = section.faults("no_such_key = 1");
        let known = faults.iter().find_map(|(_, message)| message.split_once("Known here: "));
        let (_, known) = known.unwrap_or_else(|| panic!("{}: {faults:?}", section.header));
        let known: BTreeSet<&str> = known.split(", ").collect();
        let mut here: BTreeSet<&str> = section.keys.iter().map(|key| key.name).collect();
        if section.header.contains('*') {
            here.retain(|key| !["hosts", "labels"].contains(key));
        }
        // A store of another kind says of a path that there is none: it is known to the reader, and to the table it is not.
        let known: BTreeSet<&str> =
            known.into_iter().filter(|key| *key != "path" || here.contains(key)).collect();
        assert_eq!(known, here, "[{}]", section.header);
    }
}

/// A fault because of the value itself, rather than of what stands beside it.
fn is_of_the_value(message: &str) -> bool {
    ["out of range", "expected ", "proves nothing"].iter().any(|words| message.contains(words))
}

#[test]
fn the_reader_takes_what_lies_within_a_range_and_nothing_else() {
    let mut looked_at = 0;
    for section in sections() {
        for key in &section.keys {
            let place = format!("{}.{}", section.header, key.name);
            let of_key = |value: &Value| {
                let faults = section.faults(&format!("{} = {}", key.name, toml(value)));
                faults.into_iter().filter(|(at, _)| at.starts_with(&place)).collect::<Vec<_>>()
            };
            let probes = key.probes();
            for value in &probes.right {
                let faults = of_key(value);
                assert!(
                    !faults.iter().any(|(_, what)| is_of_the_value(what)),
                    "{place} = {value}: {faults:?}"
                );
            }
            for value in &probes.wrong {
                let faults = of_key(value);
                assert!(
                    faults.iter().any(|(_, what)| is_of_the_value(what)),
                    "{place} = {value}: {faults:?}"
                );
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 150, "{looked_at}");
}

/// What a gateway does by its settings, without how they were written.
fn meaning(settings: &Settings) -> String {
    let nodes: Vec<_> = settings.nodes.values().map(|node| (&node.id, &node.labels, &node.levels)).collect();
    format!(
        "{:?}",
        (
            (
                &settings.gateway,
                &settings.listen.unix,
                &settings.listen.tcp,
                &settings.limits,
                &settings.roles
            ),
            (&settings.store, &settings.election, &settings.audit, &settings.receipts, &settings.log),
            (&settings.metrics, &settings.rules, &settings.budget, nodes),
        )
    )
}

#[test]
fn a_default_that_is_written_down_changes_nothing() {
    let mut looked_at = 0;
    for section in sections() {
        for key in &section.keys {
            let DefaultValue::Value(text) = key.default else { continue };
            let without = Section { beside: section.beside, header: section.header, keys: Vec::new() };
            // What stands beside it may be that key.
            if section.beside.contains(&format!("{} = ", key.name)) {
                continue;
            }
            let load = |line: &str| {
                Home::with(&without.text(line)).load().unwrap_or_else(|faults| panic!("{faults}"))
            };
            let (with, without) = (load(&format!("{} = {text}", key.name)), load(""));
            assert_eq!(meaning(&with), meaning(&without), "{}.{} = {text}", section.header, key.name);
            looked_at += 1;
        }
    }
    assert!(looked_at > 45, "{looked_at}");
}

/// What of a device is not its driver's.
#[test]
fn the_keys_of_every_device_are_held_to_the_reader_as_well() {
    let device =
        Section { header: "nodes.r1n09.devices.bmc", beside: "", keys: picket_schema::DEVICE.to_vec() };
    for key in &device.keys {
        if key.name == "driver" {
            continue;
        }
        let place = format!("{}.{}", device.header, key.name);
        let of_key = |value: &Value| {
            let faults = device.faults(&format!("{} = {}", key.name, toml(value)));
            faults.into_iter().filter(|(at, _)| at.starts_with(&place)).collect::<Vec<_>>()
        };
        let probes = key.probes();
        for value in &probes.right {
            let faults = of_key(value);
            assert!(!faults.iter().any(|(_, what)| is_of_the_value(what)), "{place} = {value}: {faults:?}");
            // What the reader knows it does not hand on to the driver.
            if let Ok(settings) = Home::with(&device.text(&format!("{} = {}", key.name, toml(value)))).load()
            {
                let bmc = &settings.nodes[&node("r1n09")].devices[&self::device("bmc")];
                assert!(!bmc.settings.contains_key(key.name), "{place}");
            }
        }
        for value in &probes.wrong {
            let faults = of_key(value);
            assert!(!faults.is_empty(), "{place} = {value}");
        }
    }
}
