//! The reference of the settings.

use picket_schema::{DefaultValue, Key, ValueType, Variants};

use super::{cell, made_of};

/// A page: its name, its title, its tables.
type Page = (&'static str, &'static str, Vec<(String, &'static [Key])>);

fn tables(of: &[(&str, &'static [Key])]) -> Vec<(String, &'static [Key])> {
    of.iter().map(|(title, keys)| (format!("`[{title}]`"), *keys)).collect()
}

fn variants(title: &str, of: &'static Variants, only: &[&str]) -> Vec<(String, &'static [Key])> {
    let chosen = of.of.iter().filter(|(name, keys)| only.contains(name) && !keys.is_empty());
    chosen.map(|(name, keys)| (format!("`[{title}]` with `{} = \"{name}\"`", of.by), *keys)).collect()
}

fn described() -> Vec<Page> {
    use picket_schema as schema;
    let device = "templates.NAME.devices.NAME";
    let mut releases = tables(&[("releases.NAME", schema::RELEASE)]);
    releases.extend(variants(
        "releases.NAME",
        &schema::RELEASES,
        &["webhook", "command", "volumes", "kubernetes"],
    ));
    let mut roles = tables(&[
        ("roles.NAME", schema::ROLE),
        ("groups.NAME", schema::GROUP),
        ("groups.NAME.budget", schema::GROUP_BUDGET),
        ("groups.NAME.liveness", schema::LIVENESS),
    ]);
    roles.extend(variants("groups.NAME.liveness", &schema::SOURCES, &["http", "command", "kubernetes"]));
    let mut store = tables(&[("store", schema::STORES.common)]);
    store.extend(variants("store", &schema::STORES, &["embedded", "etcd"]));
    store.extend(tables(&[
        ("election", schema::ELECTION),
        ("audit", schema::AUDIT),
        ("receipts", schema::RECEIPTS),
    ]));
    vec![
        (
            "gateway",
            "Settings: the gateway and its doors",
            tables(&[
                ("gateway", schema::GATEWAY),
                ("listen", schema::LISTEN),
                ("listen.tls", schema::LISTEN_TLS),
                ("limits", schema::LIMITS),
                ("metrics", schema::METRICS),
                ("log", schema::LOG),
            ]),
        ),
        ("store", "Settings: what is kept", store),
        (
            "rules",
            "Settings: rules and budget",
            tables(&[("rules", schema::RULES), ("budget", schema::BUDGET)]),
        ),
        ("roles", "Settings: roles and groups", roles),
        (
            "nodes",
            "Settings: templates, nodes and devices",
            tables(&[
                ("templates.NAME", schema::TEMPLATE),
                ("nodes.HOSTS", schema::NODE),
                ("nodes.HOSTS.identity", schema::IDENTITY),
                (device, schema::DEVICE),
            ]),
        ),
        (
            "drivers",
            "Settings: drivers of machines, outlets and programs",
            variants(device, &schema::DRIVERS, &["ipmi", "redfish", "agent", "sim", "parent"]),
        ),
        (
            "clouds",
            "Settings: drivers of clouds",
            variants(device, &schema::DRIVERS, &["openstack", "aws", "gcp"]),
        ),
        ("releases", "Settings: releases", releases),
    ]
}

/// All pages of the settings.
pub fn pages() -> Vec<(String, String)> {
    let described = described();
    let mut first = made_of("src/schema");
    first += "# Settings\n\n\
        A key that is left out has its default. Durations are a whole number with `ms`, `s`, `m`, `h` or `d`, sizes one with `KiB`, `MiB` or \
        `GiB`. [The example](../../deploy/picket.example.toml) shows every key; \
        [the schema](../../deploy/picket.schema.json) lets an editor complete and check them.\n\n\
        ```\n\
        picketd --check             # every fault at once\n\
        picketd --print-settings    # what is in force, and where each value comes from\n\
        picketd --print-schema      # the schema of this version\n\
        ```\n\n\
        What is printed has `***` for a secret in a URL, an argument or a parameter: \
        [what is hidden](../operation.md#what-is-in-force).\n\n";
    for (name, title, tables) in &described {
        let tables: Vec<&str> = tables.iter().map(|(title, _)| &**title).collect();
        let mut named: Vec<&str> = Vec::new();
        for table in tables {
            let table = table.split(" with ").next().unwrap_or(table);
            if !named.contains(&table) {
                named.push(table);
            }
        }
        let short = title.trim_start_matches("Settings: ");
        first += &format!("- [{short}](settings-{name}.md): {}\n", named.join(", "));
    }
    let mut pages = vec![("docs/reference/settings.md".to_owned(), first)];
    for (name, title, tables) in described {
        let mut text = made_of("src/schema") + &format!("# {title}\n");
        for (title, keys) in tables {
            text += &format!(
                "\n## {title}\n\n| key | takes | default | what it is |\n| --- | --- | --- | --- |\n"
            );
            text.extend(keys.iter().map(row));
        }
        pages.push((format!("docs/reference/settings-{name}.md"), text));
    }
    pages
}

fn row(key: &Key) -> String {
    let takes = match key.value {
        ValueType::Word(words) => {
            words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
        }
        ValueType::IntegerLists(lists) => {
            lists.iter().map(|list| format!("`{list:?}`")).collect::<Vec<_>>().join(", ")
        }
        other => other.range().unwrap_or_else(|| other.word().to_owned()),
    };
    let default = match key.default {
        DefaultValue::Required => "required".to_owned(),
        DefaultValue::Nothing => "–".to_owned(),
        DefaultValue::Value(text) => format!("`{text}`"),
        DefaultValue::Computed(words) => words.to_owned(),
    };
    format!("| `{}` | {} | {} | {} |\n", key.name, cell(&takes), cell(&default), cell(key.about))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(keys: &[Key], into: &mut BTreeSet<String>) {
        for key in keys {
            into.insert(key.name.to_owned());
            match key.value {
                ValueType::Table(keys) | ValueType::Named(keys) => names(keys, into),
                ValueType::Variant(of) | ValueType::NamedVariant(of) => {
                    names(of.common, into);
                    of.of.iter().for_each(|(_, keys)| names(keys, into));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn every_key_stands_on_a_page() {
        let text: String = pages().into_iter().map(|(_, text)| text).collect();
        let mut all = BTreeSet::new();
        names(picket_schema::SETTINGS, &mut all);
        // These tables have a page or a heading of their own, and the lists of a choice stand in its sentence.
        let lists = ["id", "name", "tag"];
        for name in all.iter().filter(|name| !lists.contains(&name.as_str())) {
            assert!(text.contains(&format!("| `{name}` |")) || text.contains(&format!("`[{name}")), "{name}");
        }
    }

    #[test]
    fn no_cell_is_long() {
        for (path, text) in pages() {
            for cell in text.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('|')) {
                assert!(cell.split_whitespace().count() <= 25, "{path}: {cell}");
            }
        }
    }
}
