//! The table of settings is what drivers, releases and liveness sources read: their keys, their ranges.

use std::collections::BTreeSet;
use std::sync::Arc;

use picket_driver::Context;
use picket_engine::clock::SystemClock;
use picket_schema::{DefaultValue, Key, Variants};
use serde_json::{Map, Value, json};

use super::{Trial, kinds, releaser, source};

/// No kind has this key.
const UNKNOWN: &str = "no-such-key";

type Faults = Vec<(String, String)>;

fn read(table: &Map<String, Value>, what: &str, name: &str) -> Faults {
    let context = Context { clock: Arc::new(SystemClock), random: Arc::new(|_: &mut [u8]| {}) };
    let faults = match (what, name) {
        ("driver", "parent") => crate::parent::read(table).err(),
        ("driver", name) => {
            let kinds = kinds(Trial::default());
            let kind = kinds.iter().find(|kind| kind.name() == name).expect("it is in this build");
            kind.make(table, &context).err()
        }
        ("release", name) => {
            return of(releaser("x", name, table).err().unwrap_or_default(), |fault| {
                (fault.key, fault.message)
            });
        }
        (_, name) => {
            return of(source(name, table).err().unwrap_or_default(), |fault| (fault.key, fault.message));
        }
    };
    of(faults.unwrap_or_default(), |fault| (fault.key, fault.message))
}

fn of<T>(faults: Vec<T>, parts: impl Fn(T) -> (String, String)) -> Faults {
    faults.into_iter().map(parts).collect()
}

/// The variants of this build.
fn variants() -> Vec<(&'static str, &'static str, Vec<Key>)> {
    let built: Vec<&str> = kinds(Trial::default()).iter().map(|kind| kind.name()).chain(["parent"]).collect();
    let kubernetes = cfg!(feature = "kubernetes");
    // What every device has the configuration reads; what every release and every source has they read themselves.
    let own = |what: &'static str, of: &Variants, common: &'static [Key]| {
        let common: Vec<Key> = common.iter().filter(|key| key.name != of.by).copied().collect();
        let mut all = Vec::new();
        for (name, keys) in of.of {
            all.push((what, *name, [common.clone(), keys.to_vec()].concat()));
        }
        all
    };
    let mut all = own("driver", &picket_schema::DRIVERS, &[]);
    all.retain(|(_, name, _)| built.contains(name));
    let more = [
        own("release", &picket_schema::RELEASES, picket_schema::RELEASE),
        own("liveness source", &picket_schema::SOURCES, picket_schema::LIVENESS),
    ];
    all.extend(more.concat().into_iter().filter(|(_, name, _)| kubernetes || *name != "kubernetes"));
    all
}

#[test]
fn the_table_has_the_variants_of_this_build() {
    let here: BTreeSet<&str> =
        variants().into_iter().filter(|(what, ..)| *what == "driver").map(|(_, name, _)| name).collect();
    let built: BTreeSet<&str> =
        kinds(Trial::default()).iter().map(|kind| kind.name()).chain(["parent"]).collect();
    assert_eq!(here, built);
    let words = |variants: &Variants| variants.of.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>();
    let known = |own: &[&'static str]| own.iter().copied().chain(["kubernetes"]).collect::<BTreeSet<_>>();
    assert_eq!(words(&picket_schema::RELEASES), known(&picket_release::KINDS));
    assert_eq!(words(&picket_schema::SOURCES), known(&picket_liveness::KINDS));
}

#[test]
fn the_table_has_the_keys_that_each_kind_knows() {
    for (what, name, keys) in variants() {
        let faults = read(&Map::from_iter([(UNKNOWN.to_owned(), Value::Null)]), what, name);
        let (_, told) = faults.iter().find(|(key, _)| key == UNKNOWN).expect("an unknown key is a fault");
        let (_, known) = told.split_once("known are ").expect("it says which are known");
        let known: BTreeSet<&str> = known.split(", ").collect();
        let here: BTreeSet<&str> = keys.iter().map(|key| key.name).collect();
        assert_eq!(known, here, "{what} {name}");
    }
}

#[test]
fn each_kind_takes_what_lies_within_a_range_and_nothing_else() {
    let mut wrong = Vec::new();
    for (what, name, keys) in variants() {
        for key in keys {
            let faults = |value: &Value| {
                let mut table = Map::from_iter([(key.name.to_owned(), value.clone())]);
                // An attempt is no longer than the whole release, and a look has room for its answers.
                match key.name {
                    "attempt" => drop(table.insert("deadline".to_owned(), json!("1h"))),
                    "deadline" => drop(table.insert("attempt".to_owned(), json!("1s"))),
                    "interval" => drop(table.insert("consecutive".to_owned(), json!(1))),
                    "timeout" => drop(table.insert("consecutive".to_owned(), json!(1))),
                    "consecutive" => drop(table.insert("interval".to_owned(), json!("50ms"))),
                    "max_life" if name == "redfish" => {
                        drop(table.insert("authentication".to_owned(), json!("basic")));
                    }
                    "trust_agent" => drop(table.insert("agent".to_owned(), json!("fence_of_ours"))),
                    "terminate_deletes" => drop(table.insert("terminate".to_owned(), json!(true))),
                    _ => {}
                }
                let faults = read(&table, what, name).into_iter().filter(|(at, _)| at == key.name);
                faults.map(|(_, message)| message).collect::<Vec<_>>()
            };
            let probes = key.probes();
            let default = match key.default {
                DefaultValue::Value(text) => serde_json::from_str(text).ok(),
                _ => None,
            };
            for value in probes.right.iter().chain(&default) {
                let found = faults(value);
                if found.is_empty() == narrower(what, name, key.name, value) {
                    wrong.push(format!("{what} {name}: {} = {value}: {found:?}", key.name));
                }
            }
            for value in probes.wrong.iter().filter(|value| faults(value).is_empty()) {
                wrong.push(format!("{what} {name}: {} = {value} is taken", key.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where one kind takes less than the table says of all of them, which its words tell.
fn narrower(what: &str, name: &str, key: &str, value: &Value) -> bool {
    match (what, key) {
        ("release", "attempt") => name != "command" && value == "5m",
        ("release", "deadline") => name == "kubernetes" && value == "10s",
        _ => false,
    }
}

/// Editors and the pages read it.
#[test]
fn the_shipped_schema_is_that_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/picket.schema.json");
    if std::env::var_os("PICKET_BLESS").is_some() {
        std::fs::write(path, picket_schema::shipped()).expect("it can be written");
    }
    let shipped = std::fs::read_to_string(path).unwrap_or_default();
    assert!(shipped == picket_schema::shipped(), "{path} differs: cargo xtask pages writes it");
}
