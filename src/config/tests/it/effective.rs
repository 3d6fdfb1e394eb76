//! What is in force, key by key, with where it comes from.

use picket_config::{Effective, Settings, Sources};
use serde_json::Value;

use crate::common::*;

fn effective(home: &Home, variables: &[(&str, &str)]) -> (Settings, Effective) {
    let environment = variables.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
    let file = home.0.path().join("picket.toml");
    let sources = Sources { directory: home.0.path().join("conf.d"), file, environment };
    let (settings, faults, effective) = Settings::read_effective(&sources).unwrap();
    assert!(faults.is_empty(), "{faults}");
    (settings, effective)
}

fn row<'a>(document: &'a Value, key: &str) -> &'a Value {
    let rows = document["settings"].as_array().unwrap();
    rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key} in {document:#}"))
}

#[test]
fn each_value_says_where_it_comes_from() {
    let home = Home::with(&format!("{GOOD}[rules]\ndwell = \"2s\"\n"));
    home.file("conf.d/10.toml", "[audit]\nkeep = \"30d\"\n");
    let variables = [
        ("PICKET__LIMITS__RATE", "50"),
        ("PICKET__ROLES__A__CALLERS", "a, b"),
        ("PICKET__ROLES__A__ROLE", "viewer"),
    ];
    let (_, effective) = effective(&home, &variables);
    let told = effective.to_json();
    let dwell = row(&told, "rules.dwell");
    assert_eq!((&dwell["value"], &dwell["from"], &dwell["line"]), (&"2s".into(), &"file".into(), &16.into()));
    assert!(dwell["file"].as_str().unwrap().ends_with("/picket.toml"));
    assert!(row(&told, "audit.keep")["file"].as_str().unwrap().ends_with("/conf.d/10.toml"));
    let rate = row(&told, "limits.rate");
    assert_eq!((&rate["value"], &rate["from"]), (&50.into(), &"environment".into()));
    assert_eq!(rate["variable"], "PICKET__LIMITS__RATE");
    assert_eq!(row(&told, "roles.a.callers")["value"], serde_json::json!(["a", "b"]));
    let watch = row(&told, "rules.watch");
    assert_eq!((&watch["value"], &watch["from"]), (&"10s".into(), &"default".into()));
    assert_eq!(row(&told, "budget.at_once")["value"], 1);
    assert_eq!(row(&told, "budget.min_not_fenced")["value"], 1);
    assert_eq!(row(&told, "audit.path")["value"], "/var/lib/picket/picket.audit");
    assert_eq!(row(&told, "gateway.simulated")["default"], "true with devices of the driver sim");
    assert_eq!(row(&told, "templates.r1.devices.bmc.port")["value"], 623);
}

/// The settings that are loaded from what is shown.
#[track_caller]
fn again(home: &Home, variables: &[(&str, &str)]) -> String {
    let (settings, effective) = effective(home, variables);
    let shown = effective.to_toml(&home.0.path().join("picket.toml"));
    let loaded = Home::with(&shown).load().unwrap_or_else(|faults| panic!("{faults}\n{shown}"));
    let meaning = |settings: &Settings| {
        let nodes: Vec<_> = settings
            .nodes
            .values()
            .map(|node| {
                let devices: Vec<_> = node
                    .devices
                    .values()
                    .map(|device| (&device.driver, &device.settings, device.dwell))
                    .collect();
                (
                    &node.id,
                    &node.labels,
                    &node.levels,
                    &node.releases,
                    &node.provider_id,
                    &node.fenced_for,
                    format!("{devices:?}"),
                )
            })
            .map(|node| format!("{node:?}"))
            .collect();
        let releases: Vec<_> =
            settings.releases.values().map(|release| (&release.how.kind, &release.how.settings)).collect();
        let groups: Vec<_> = settings
            .groups
            .settings()
            .iter()
            .map(|(name, group)| (name, &group.rules.budget, &group.rules.drills))
            .collect();
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
                (&settings.metrics, &settings.rules, &settings.budget, nodes, releases, groups),
            )
        )
    };
    assert_eq!(meaning(&settings), meaning(&loaded), "{shown}");
    shown
}

#[test]
fn what_is_shown_is_loadable_and_the_same() {
    let shown = again(&Home::with(GOOD), &[("PICKET__LOG__LEVEL", "debug"), ("PICKET__GATEWAY__NAME", "7")]);
    assert!(shown.contains("\nlevel = \"debug\"  # PICKET__LOG__LEVEL\n"), "{shown}");
    assert!(shown.contains("\nname = \"7\"  # PICKET__GATEWAY__NAME\n"), "{shown}");
    assert!(shown.contains("\n# dwell = \"1s\"  # default\n"), "{shown}");
    // A default that has no room beside what is set would be refused if it were set.
    again(&Home::with(&format!("{GOOD}[rules]\nlevel_share = \"19s\"\n[audit]\nrotate = \"2GiB\"\n")), &[]);
    // An empty table grants nobody anything, and none at all is everybody's.
    let closed = again(&Home::with(&format!("{GOOD}[roles]\n")), &[]);
    assert!(closed.contains("\n[roles]\n") && !closed.contains("everybody"), "{closed}");
}

#[test]
fn the_example_is_shown_and_the_same() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/picket.example.toml");
    let text = std::fs::read_to_string(path).unwrap();
    // The path of a URL is hidden, and its copy would be refused.
    again(&Home::with(&text.replace("storage.example.org/picket", "storage.example.org")), &[]);
}

#[test]
fn what_could_end_a_line_or_a_text_stays_within() {
    let text = GOOD.replace("username = \"picket\"", "username = 'a\"b\\c'\nsystem = \"x\\ny # z\"");
    let shown = again(&Home::with(&text), &[("PICKET__LOG__LEVEL", "info")]);
    assert!(shown.contains(r#"'a"b\c'"#) || shown.contains(r#""a\"b\\c""#), "{shown}");
}

/// Nothing is shown by settings that hold a secret.
#[test]
fn a_secret_in_the_settings_is_a_fault_that_does_not_repeat_it() {
    let home = Home::with(&GOOD.replace("username = \"picket\"", "password = \"hidden\""));
    let sources = Sources::at(&home.0.path().join("picket.toml"));
    let (_, faults, _) = Settings::read_effective(&sources).unwrap();
    assert!(!faults.is_empty() && !faults.to_string().contains("hidden"), "{faults}");
}

/// A copy that could not say what was hidden is refused rather than taken for other settings.
#[test]
fn a_secret_in_a_url_or_an_argument_is_hidden_and_the_copy_is_refused() {
    let more = "[releases.w]\nkind = \"webhook\"\nurl = \"https://hooks.example:8443/services/sesame\"\n\
        [releases.c]\nkind = \"command\"\nprogram = \"/usr/bin/true\"\nargs = [\"--password\", \"sesame\", \"x\"]\n";
    let home = Home::with(&format!("{GOOD}{more}"));
    let variables = [("PICKET__STORE__PATH", "/x"), ("PICKET__RELEASES__V__KIND", "webhook")];
    let url = ("PICKET__RELEASES__V__URL", "https://h/x?k=sesame");
    let (_, effective) = effective(&home, &[&variables[..], &[url]].concat());
    let document = effective.to_json();
    assert_eq!(row(&document, "releases.w.url")["value"], "https://hooks.example:8443/***/***");
    assert_eq!(row(&document, "releases.v.url")["value"], "https://h/***?k=***");
    assert_eq!(row(&document, "releases.c.args")["value"], serde_json::json!(["***", "***", "***"]));
    let shown = effective.to_toml(&home.0.path().join("picket.toml"));
    assert!(!shown.contains("sesame") && !document.to_string().contains("sesame"), "{shown}");
    let said = Home::with(&shown).load().expect_err("what was hidden is missing").to_string();
    for key in ["releases.w.url", "releases.v.url", "releases.c.args"] {
        assert!(said.contains(key), "{key}: {said}");
    }
    assert!(said.contains("where picketd --print-settings hid a secret"), "{said}");
}
