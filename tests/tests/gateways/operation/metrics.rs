//! Metrics and health: what is exported is what the table and the documentation say, and other people can read it.

use std::collections::{BTreeMap, BTreeSet};

use picket_metrics::{ALL, Kind, Metric};
use picket_tests::peers::{parse_metrics, parse_yaml};
use picket_tests::{Gateway, Result};
use serde_json::Value;

use crate::operation::{does, http, one_node, with_metrics};

const TABLE: &str = include_str!("../../../../docs/reference/metrics.md");
const PAGE: &str = include_str!("../../../../docs/metrics.md");
const RULES: &str = include_str!("../../../../deploy/prometheus/picket.rules.yaml");

fn kind(metric: &Metric) -> &'static str {
    match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram(_) => "histogram",
    }
}

/// The metric to which a sample belongs.
fn of_sample(name: &str) -> &'static Metric {
    let endings = ["", "_bucket", "_count", "_sum"];
    let found = ALL.iter().find(|metric| {
        endings.iter().filter_map(|end| name.strip_suffix(end)).any(|name| name == metric.name)
    });
    found.unwrap_or_else(|| panic!("{name} is not in the table"))
}

fn value(families: &Value, name: &str, labels: &[(&str, &str)]) -> f64 {
    let samples =
        families.as_object().expect("families").values().flat_map(|family| family["samples"].as_array());
    let found = samples
        .flatten()
        .find(|sample| sample[0] == name && labels.iter().all(|(label, value)| sample[1][*label] == *value));
    found
        .and_then(|sample| sample[2].as_f64())
        .unwrap_or_else(|| panic!("no {name} {labels:?} in {families:#}"))
}

#[tokio::test]
async fn a_fence_is_seen_in_the_metrics_and_others_can_read_them() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let (fleet, address) = with_metrics(fleet);
    let gateway = Gateway::start(&fleet).await?;
    gateway.checked().await?;
    let (_, before) = http(address, "GET", "/metrics").await;
    let before = parse_metrics(&before).await?;
    assert_eq!(value(&before, "picket_nodes", &[("phase", "normal")]), 1.0);
    does(&gateway, "fence", "n1").await;
    let (status, text) = http(address, "GET", "/metrics").await;
    assert!(status.contains("200"), "{status}");
    let fenced = parse_metrics(&text).await?;
    for (name, labels, wanted) in [
        ("picket_nodes", &[("phase", "released")][..], 1.0),
        ("picket_holds", &[], 1.0),
        ("picket_leading", &[], 1.0),
        ("picket_standing", &[], 1.0),
        ("picket_following", &[], 0.0),
        ("picket_gateways", &[("part", "leads")], 1.0),
        ("picket_settings_differ", &[], 0.0),
        ("picket_store_away_seconds", &[], 0.0),
        ("picket_fences_opened_total", &[("cause", "asked")], 1.0),
        ("picket_fence_outcomes_total", &[("cause", "asked"), ("outcome", "fenced")], 1.0),
        ("picket_fence_part_seconds_count", &[("part", "off_sent")], 1.0),
        ("picket_fence_part_seconds_count", &[("part", "off_seen")], 1.0),
        ("picket_fence_part_seconds_count", &[("part", "confirmed")], 1.0),
        ("picket_fence_part_seconds_count", &[("part", "released")], 1.0),
        ("picket_device_calls_total", &[("driver", "ipmi"), ("verb", "off"), ("result", "ok")], 1.0),
        ("picket_release_attempts_total", &[("release", "detach"), ("result", "complete")], 1.0),
        ("picket_releases", &[("stage", "complete")], 1.0),
        ("picket_requests_total", &[("call", "Fence"), ("code", "OK")], 1.0),
        ("picket_breaches_total", &[], 0.0),
        ("picket_audit_failing", &[], 0.0),
    ] {
        assert_eq!(value(&fenced, name, labels), wanted, "{name} {labels:?}");
    }
    assert!(value(&fenced, "picket_store_writes_total", &[("result", "ok")]) > 3.0);
    assert!(value(&fenced, "picket_audit_written_total", &[]) > 3.0);
    does(&gateway, "unfence", "n1").await;
    let back = parse_metrics(&http(address, "GET", "/metrics").await.1).await?;
    assert_eq!(value(&back, "picket_fence_part_seconds_count", &[("part", "back")]), 1.0);
    exported_as_the_table_says(&back);
    Ok(())
}

/// Every sample is of a metric of the table, with its kind and labels; and nearly all metrics are there.
fn exported_as_the_table_says(families: &Value) {
    let mut seen = BTreeSet::new();
    for family in families.as_object().expect("families").values() {
        for sample in family["samples"].as_array().expect("samples") {
            let name = sample[0].as_str().expect("a name");
            let metric = of_sample(name);
            assert_eq!(family["type"], kind(metric), "{name}");
            let labels: BTreeSet<&str> =
                sample[1].as_object().expect("labels").keys().map(String::as_str).collect();
            let wanted = metric.labels.iter().copied().chain(name.ends_with("_bucket").then_some("le"));
            assert_eq!(labels, wanted.collect::<BTreeSet<_>>(), "{name}");
            seen.insert(metric.name);
        }
    }
    // Of these there is nothing to tell in a life without trouble and without TLS.
    let quiet = ["picket_nodes_needing_operator", "picket_node_trouble", "picket_denials_total"];
    // Nor of a lease, where no other gateway shares the store.
    let rare = ["picket_certificate_not_after_seconds", "picket_reloads_total", "picket_permit_seconds"];
    for metric in ALL {
        let may_lack = quiet.contains(&metric.name) || rare.contains(&metric.name);
        assert!(may_lack || seen.contains(metric.name), "{} is not exported", metric.name);
    }
}

#[tokio::test]
async fn health_says_whether_it_lives_and_whether_it_can_be_asked() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let (fleet, address) = with_metrics(fleet);
    let _gateway = Gateway::start(&fleet).await?;
    for (method, path, status, words) in [
        ("GET", "/healthz", "200", "alive"),
        ("GET", "/readyz", "200", "leads, in term 1"),
        ("GET", "/else", "404", "/metrics"),
        ("POST", "/metrics", "405", "only GET"),
    ] {
        let (first, body) = http(address, method, path).await;
        assert!(first.contains(status) && body.contains(words), "{method} {path}: {first} {body}");
    }
    Ok(())
}

#[test]
fn the_documentation_lists_the_metrics_of_the_table() {
    let rows: BTreeMap<&str, (&str, BTreeSet<&str>, &str)> = TABLE
        .lines()
        .filter_map(|line| line.strip_prefix("| `picket_"))
        .map(|line| {
            let cells: Vec<&str> = line.split(" | ").collect();
            let [name, kind, labels, help] = cells[..] else { panic!("four cells: {line}") };
            let labels =
                labels.split(", ").map(|label| label.trim_matches('`')).filter(|label| *label != "–");
            (name.trim_end_matches('`'), (kind, labels.collect(), help.trim_end_matches(" |")))
        })
        .collect();
    let table: BTreeMap<&str, (&str, BTreeSet<&str>, &str)> = ALL
        .iter()
        .map(|metric| {
            let name = metric.name.strip_prefix("picket_").expect("its name");
            (name, (kind(metric), metric.labels.iter().copied().collect(), metric.help))
        })
        .collect();
    assert_eq!(rows, table);
}

/// The values that the documentation gives to each label: code spans, of which one before a colon begins a label.
fn documented() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let (_, values) = PAGE.split_once("## Values of labels").expect("its heading");
    let spans: Vec<&str> = values.split('`').collect();
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut label = "";
    for pair in spans[1..].chunks(2) {
        match pair {
            [name, after] if after.starts_with(':') => label = name,
            [value, ..] => {
                found.entry(label).or_default().insert(value);
            }
            [] => {}
        }
    }
    found
}

/// The words in quotes of a source, from where it `begins` to where it `ends`; of a match, what it comes to.
fn words(source: &'static str, begins: &str, ends: &str) -> BTreeSet<&'static str> {
    let piece = source.split_once(begins).and_then(|(_, rest)| rest.split_once(ends)).map(|(piece, _)| piece);
    let piece = piece.unwrap_or_else(|| panic!("there is no {begins:?}"));
    let said = piece.lines().filter_map(|line| line.rsplit("=> ").next());
    said.flat_map(|line| line.split('"').skip(1).step_by(2)).collect()
}

#[test]
fn the_documentation_lists_the_values_that_labels_have() {
    let observer = include_str!("../../../../src/gateway/src/observe.rs");
    let measuring = include_str!("../../../../src/engine/src/node/measuring.rs");
    let telling = include_str!("../../../../src/engine/src/node/telling.rs");
    let releasing = include_str!("../../../../src/engine/src/node/releasing/sending.rs");
    let outcome = include_str!("../../../../src/core/src/outcome.rs");
    let documented = documented();
    let troubles = observer.split("push(\"").skip(1).filter_map(|rest| rest.split('"').next());
    for (label, values) in [
        ("phase", words(observer, "const PHASES", ";\n")),
        ("kind", words(observer, "const EFFECTS", ";\n")),
        ("stage", words(observer, "const STAGES", ";\n")),
        ("picket_gateways", words(observer, "const PARTS", ";\n")),
        ("readiness", words(observer, "const READINESS", ";\n")),
        ("trouble", troubles.collect()),
        ("cause", words(measuring, "fn cause(", "\n}\n")),
        ("verb", words(telling, "fn verb(", "\n}\n")),
    ] {
        assert_eq!(documented[label], values, "{label}");
    }
    let results = words(releasing, "fn how(", "\n}\n");
    assert!(results.is_subset(&documented["result"]), "{results:?}");
    let outcomes = words(outcome, "match self {\n            Outcome::", "\n    }\n");
    assert!(documented["outcome"].is_subset(&outcomes), "{outcomes:?}");
}

/// The metrics that an expression names, each with the labels that it asks for.
fn named(expression: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for (at, _) in expression.match_indices("picket_") {
        let rest = &expression[at..];
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let inside =
            rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map_or("", |(inside, _)| inside);
        let labels = inside.split(',').filter(|part| !part.is_empty());
        let labels = labels.map(|part| part.split(['=', '!']).next().unwrap_or_default().trim().to_owned());
        found.push((name.to_owned(), labels.collect()));
    }
    found
}

#[tokio::test]
async fn every_metric_and_label_that_an_alert_names_is_in_the_table() -> Result<()> {
    let document = parse_yaml(RULES).await?;
    let rules = document["groups"][0]["rules"].as_array().expect("rules").clone();
    let mut alerts = BTreeSet::new();
    for rule in &rules {
        let alert = rule["alert"].as_str().expect("a name").to_owned();
        let expression = rule["expr"].as_str().expect("an expression");
        for (name, labels) in named(expression) {
            let metric = of_sample(&name);
            for label in labels {
                assert!(metric.labels.contains(&label.as_str()), "{alert}: {name} has no label {label}");
            }
        }
        let summed: BTreeSet<&str> = expression
            .split_once("by (")
            .and_then(|(_, rest)| rest.split_once(')'))
            .map(|(labels, _)| {
                labels.split(", ").filter(|label| !["instance", "job"].contains(label)).collect()
            })
            .unwrap_or_default();
        for label in summed {
            assert!(
                named(expression).iter().all(|(name, _)| of_sample(name).labels.contains(&label)),
                "{alert}"
            );
        }
        let words = &rule["annotations"];
        assert!(words["summary"].is_string() && words["description"].is_string(), "{alert} says what to do");
        let severity = rule["labels"]["severity"].as_str();
        assert!(matches!(severity, Some("critical" | "warning")), "{alert}");
        alerts.insert(alert);
    }
    assert_eq!(alerts.len(), rules.len(), "each has a name of its own");
    for wanted in [
        "PicketBreach",
        "PicketNodeNeedsOperator",
        "PicketDeviceNotReady",
        "PicketEffectOverdue",
        "PicketReleaseStuck",
        "PicketAuditFailing",
        "PicketNoLeader",
        "PicketCertificateExpires",
        "PicketNodeOrphaned",
        "PicketNodeNotBack",
        "PicketNodeBarred",
        "PicketTwoLeaders",
        "PicketNoSuccessor",
        "PicketSettingsDiffer",
        "PicketStoreAway",
    ] {
        assert!(alerts.contains(wanted), "{wanted}");
    }
    Ok(())
}
