//! The chart, as it is installed in several ways, and what comes of it.

use std::path::PathBuf;

use picket_tests::peers::{helm, parse_yaml_documents};
use picket_tests::{Result, Said};
use serde_json::{Value, json};

/// A fleet of one node.
pub const FLEET: &str = "[roles.operators]\nrole = \"operator\"\ncallers = [\"alice@example.org\"]\n\
    [nodes.n1.devices.bmc]\ndriver = \"ipmi\"\nhost = \"192.0.2.7\"\nusername = \"operator\"\n\
    password_file = \"/run/secrets/bmc/password\"\n\
    [nodes.n1]\nreleases = [\"pods\"]\n\
    [releases.pods]\nkind = \"kubernetes\"\ncluster_uid = \"3f0c6d4e-0000-4000-8000-000000000000\"\n";

/// The chart's folder.
pub fn chart() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../deploy/helm/picket"].iter().collect()
}

/// The least that must be said: an etcd that is there.
pub fn given() -> Value {
    json!({
        "settings": { "toml": FLEET, "secrets": ["bmc", "storage"] },
        "gateways": { "tls": { "secretName": "picket-tls" } },
        "etcd": { "endpoints": ["https://e1:2379", "https://e2:2379"], "tls": { "secretName": "picket-etcd" } },
    })
}

/// With an etcd of its own.
pub fn bundled() -> Value {
    let node = |name: &str, fleet: bool| json!({ "name": name, "inFleet": fleet });
    let bundled = json!({
        "enabled": true,
        "image": { "repository": "localhost/etcd", "tag": "3.6.16" },
        "nodes": [node("n1", true), node("m2", false), node("m3", false)],
        "tls": { "secretName": "etcd-members" },
    });
    with(given(), &[("/etcd/endpoints", json!([])), ("/etcd/bundled", bundled)])
}

/// All ways that are looked at, by name.
pub fn all() -> Vec<(&'static str, Value)> {
    let everything = with(
        bundled(),
        &[
            ("/gateways/hostNetwork", json!(true)),
            ("/gateways/runOn", json!("anywhere")),
            ("/gateways/nodeSelector", json!({ "rack": "r1" })),
            ("/gateways/tolerations", json!([{ "key": "mine", "operator": "Exists" }])),
            ("/gateways/storage", json!({ "kind": "emptyDir" })),
            ("/gateways/env", json!({ "PICKET__LOG__LEVEL": "debug" })),
            ("/gateways/podAnnotations", json!({ "mine": "yes" })),
            ("/gateways/service", json!({ "type": "LoadBalancer", "annotations": { "mine": "yes" } })),
            ("/etcd/bundled/storage", json!({ "kind": "emptyDir" })),
            (
                "/image",
                json!({ "repository": "registry.example.org/picket", "tag": "x", "pullSecrets": ["pull"] }),
            ),
        ],
    );
    let watched = with(
        given(),
        &[(
            "/monitoring",
            json!({ "serviceMonitor": { "enabled": true, "labels": { "release": "prometheus" } }, "prometheusRule": { "enabled": true } }),
        )],
    );
    let watching = with(
        given(),
        &[
            (
                "/controller",
                json!({ "enabled": true, "medik8sLeases": true, "tls": { "secretName": "controller-tls" } }),
            ),
            ("/networkPolicy/callers", json!([{ "namespaceSelector": {} }])),
        ],
    );
    let elsewhere = with(
        given(),
        &[
            ("/gateways/fenceThisCluster", json!(false)),
            ("/settings/toml", json!("[nodes.n1.devices.sim]\ndriver = \"sim\"\nmachine = \"n1\"\n")),
            ("/networkPolicy", json!({ "callers": [{ "namespaceSelector": {} }], "egress": [{}] })),
        ],
    );
    vec![
        ("given", given()),
        ("bundled", bundled()),
        ("everything", everything),
        ("watched", watched),
        ("watching", watching),
        ("elsewhere", elsewhere),
    ]
}

/// The controller alone, whose gateways are elsewhere; with what monitoring wants.
pub fn alone() -> Value {
    json!({
        "gateways": { "enabled": false },
        "controller": {
            "enabled": true, "tls": { "secretName": "controller-tls" }, "endpoints": ["https://g1.example.org:7070"],
            "runOn": "anywhere", "nodeSelector": { "rack": "r1" }, "tolerations": [{ "key": "mine", "operator": "Exists" }],
            "env": { "NO_COLOR": "1" },
        },
        "monitoring": { "serviceMonitor": { "enabled": true }, "prometheusRule": { "enabled": true } },
    })
}

/// Other values at these places, whose tables are made where they are not there.
pub fn with(mut values: Value, changes: &[(&str, Value)]) -> Value {
    for (place, value) in changes {
        let mut at = &mut values;
        for key in place.trim_start_matches('/').split('/') {
            at = &mut at[key];
        }
        *at = value.clone();
    }
    values
}

/// What helm says that is told to do this with the chart and these values, as release `picket` in `fencing`.
pub async fn told(command: &[&str], values: &Value) -> Result<Said> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), values.to_string()).expect("written");
    let (chart, file) = (chart().display().to_string(), file.path().display().to_string());
    helm(&[command, &[&chart, "--namespace", "fencing", "--values", &file]].concat()).await
}

/// What would be installed.
pub async fn rendered(values: &Value) -> Result<Vec<Value>> {
    let said = told(&["template", "picket"], values).await?;
    assert_eq!(said.code, 0, "{}", said.err);
    parse_yaml_documents(&said.out).await
}

/// Those of a kind.
pub fn of<'a>(kind: &str, all: &'a [Value]) -> Vec<&'a Value> {
    all.iter().filter(|object| object["kind"] == kind).collect()
}

/// The one of that kind and name.
pub fn one<'a>(kind: &str, name: &str, all: &'a [Value]) -> &'a Value {
    let found = of(kind, all).into_iter().find(|object| object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("there is no {kind} {name}"))
}
