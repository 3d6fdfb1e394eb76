//! What stands in two places says the same there.

use std::collections::BTreeMap;

use picket_tests::Result;
use picket_tests::peers::{parse_yaml, parse_yaml_documents};
use serde_json::Value;

use crate::variants::{all, chart, given, of, one, rendered, with};

const RELEASE: &str = include_str!("../../../deploy/kubernetes/release.yaml");
const CONTROLLER: &str = include_str!("../../../deploy/kubernetes/controller.yaml");
const REMEDIATION: &str = include_str!("../../../deploy/kubernetes/remediation.yaml");
const DEFINITIONS: &str = include_str!("../../../deploy/kubernetes/crds.yaml");
const ALERTS: &str = include_str!("../../../deploy/prometheus/picket.rules.yaml");

fn file(name: &str) -> String {
    let path = chart().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// helm reads nothing that lies outside of a chart.
#[test]
fn the_chart_s_copies_are_what_lies_in_deploy() {
    assert_eq!(
        file("files/release.yaml"),
        RELEASE,
        "cp deploy/kubernetes/release.yaml deploy/helm/picket/files/"
    );
    assert_eq!(
        file("files/controller.yaml"),
        CONTROLLER,
        "cp deploy/kubernetes/controller.yaml deploy/helm/picket/files/"
    );
    assert_eq!(
        file("files/remediation.yaml"),
        REMEDIATION,
        "cp deploy/kubernetes/remediation.yaml deploy/helm/picket/files/"
    );
    assert_eq!(
        file("crds/crds.yaml"),
        DEFINITIONS,
        "cp deploy/kubernetes/crds.yaml deploy/helm/picket/crds/"
    );
    assert_eq!(
        file("files/picket.rules.yaml"),
        ALERTS,
        "cp deploy/prometheus/picket.rules.yaml deploy/helm/picket/files/"
    );
}

#[tokio::test]
async fn the_chart_is_of_this_version() -> Result<()> {
    let about = parse_yaml(&file("Chart.yaml")).await?;
    assert_eq!(
        (&about["version"], &about["appVersion"]),
        (&env!("CARGO_PKG_VERSION").into(), &env!("CARGO_PKG_VERSION").into())
    );
    Ok(())
}

/// Rules by the namespace of their role, where it has one.
fn rules<'v>(roles: impl IntoIterator<Item = &'v Value>) -> BTreeMap<String, Value> {
    let place = |role: &Value| role["metadata"]["namespace"].as_str().unwrap_or("everywhere").to_owned();
    roles.into_iter().map(|role| (place(role), role["rules"].clone())).collect()
}

/// Nodes of all namespaces, and leases of the kubelets' alone.
#[tokio::test]
async fn gateways_may_do_what_the_shipped_roles_say_and_no_more() -> Result<()> {
    let shipped = rules(&parse_yaml_documents(RELEASE).await?);
    assert_eq!(shipped.keys().collect::<Vec<_>>(), ["everywhere", "kube-node-lease"]);
    let everywhere = shipped["everywhere"].to_string();
    assert!(!everywhere.contains("leases") && shipped["kube-node-lease"].to_string().contains("leases"));
    let given_to_gateways = |objects: &[Value]| {
        let roles = [of("ClusterRole", objects), of("Role", objects)].concat();
        let is_theirs =
            |role: &&Value| role["metadata"]["labels"]["app.kubernetes.io/component"] == "gateway";
        rules(roles.into_iter().filter(is_theirs))
    };
    for (name, values) in all() {
        let there = given_to_gateways(&rendered(&values).await?);
        assert!(there.is_empty() || there == shipped, "{name}: {there:#?}");
    }
    let objects = rendered(&given()).await?;
    assert_eq!(given_to_gateways(&objects), shipped);
    for (kind, bound) in [("ClusterRole", "ClusterRoleBinding"), ("Role", "RoleBinding")] {
        let (role, bound) =
            (one(kind, "fencing-picket-release", &objects), one(bound, "fencing-picket-release", &objects));
        assert_eq!(
            (&bound["roleRef"]["kind"], &bound["roleRef"]["name"], &bound["metadata"]["namespace"]),
            (&kind.into(), &role["metadata"]["name"], &role["metadata"]["namespace"])
        );
        assert_eq!(
            bound["subjects"],
            serde_json::json!([{ "kind": "ServiceAccount", "name": "picket", "namespace": "fencing" }])
        );
    }
    Ok(())
}

/// In each namespace what the shipped manifest says there; its own lease stands where the chart is installed.
#[tokio::test]
async fn the_controller_may_do_what_the_shipped_roles_say_and_no_more() -> Result<()> {
    let its_rules = |roles: Vec<&Value>, own: &str| -> BTreeMap<String, Value> {
        let place = |role: &Value| match role["metadata"]["namespace"].as_str() {
            Some(name) if name == own => "its own".to_owned(),
            name => name.unwrap_or("everywhere").to_owned(),
        };
        roles.into_iter().map(|role| (place(role), role["rules"].clone())).collect()
    };
    let both = |objects: &[Value], own: &str| {
        let roles = [of("ClusterRole", objects), of("Role", objects)].concat();
        let is_its = |role: &&Value| {
            let name = role["metadata"]["name"].as_str().unwrap_or_default();
            name.trim_end_matches("-lease").trim_end_matches("-kured").ends_with("picket-controller")
        };
        its_rules(roles.into_iter().filter(is_its).collect(), own)
    };
    let shipped = both(&parse_yaml_documents(CONTROLLER).await?, "picket");
    assert!(shipped.len() >= 6, "{shipped:#?}");
    let (_, values) = all().into_iter().find(|(name, _)| *name == "watching").expect("it is there");
    let objects = rendered(&values).await?;
    assert_eq!(both(&objects, "fencing"), shipped);
    for binding in [of("ClusterRoleBinding", &objects), of("RoleBinding", &objects)].concat() {
        let name = binding["metadata"]["name"].as_str().expect("a name");
        let whose = if name.contains("controller") { "picket-controller" } else { "picket" };
        assert_eq!(
            binding["subjects"],
            serde_json::json!([{ "kind": "ServiceAccount", "name": whose, "namespace": "fencing" }])
        );
        assert_eq!(binding["roleRef"]["name"], name);
    }
    // Also where the release stands in one of those namespaces.
    let names = of("Role", &objects).into_iter().map(|role| role["metadata"]["name"].to_string());
    let mut named: Vec<_> = names.filter(|name| name.contains("controller")).collect();
    named.sort();
    named.dedup();
    assert_eq!(named.len(), 3, "its own lease's, and kured's, are called otherwise: {named:?}");
    let without = rendered(&with(values.clone(), &[("/controller/medik8sLeases", false.into())])).await?;
    assert_eq!(both(&without, "fencing").len(), shipped.len() - 1);
    // Where it stands in a namespace in which the controller has something else to do, too, no Role is another one's.
    let beside = rendered(&with(values.clone(), &[("/controller/kured", "default/kured".into())])).await?;
    let is_there = |role: &&&Value| role["metadata"]["namespace"] == "default";
    let roles = of("Role", &beside);
    let names: Vec<&Value> = roles.iter().filter(is_there).map(|role| &role["metadata"]["name"]).collect();
    assert!(names.len() == 2 && names[0] != names[1], "{names:?}");
    let elsewhere = rendered(&with(values, &[("/controller/kured", "reboots/weekly".into())])).await?;
    let of_kured: Vec<Value> = of("Role", &elsewhere)
        .into_iter()
        .filter(|role| role["rules"][0]["resources"] == serde_json::json!(["daemonsets"]))
        .map(|role| serde_json::json!([role["metadata"]["namespace"], role["rules"][0]["resourceNames"]]))
        .collect();
    assert_eq!(of_kured, [serde_json::json!(["reboots", ["weekly"]])]);
    assert!(serde_json::json!(elsewhere).to_string().contains("kured = \\\"reboots/weekly\\\""));
    Ok(())
}

/// Only where they are wanted: the controller's own, bound to it, and NodeHealthCheck's, by the label by which its role takes it in.
#[tokio::test]
async fn remediations_have_the_shipped_roles_where_they_are_wanted() -> Result<()> {
    let (_, values) = all().into_iter().find(|(name, _)| *name == "watching").expect("it is there");
    let remediating = |objects: &[Value]| -> BTreeMap<String, Value> {
        let name = |role: &Value| role["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let all = of("ClusterRole", objects).into_iter().filter(|role| name(role).ends_with("remediation"));
        all.map(|role| (name(role).trim_start_matches("fencing-").to_owned(), role.clone())).collect()
    };
    assert!(remediating(&rendered(&values).await?).is_empty(), "not without a word");
    let wanted = [
        ("/controller/remediation", true.into()),
        ("/controller/remediationNamespaces", serde_json::json!(["medik8s"])),
    ];
    let objects = rendered(&with(values, &wanted)).await?;
    let (found, shipped) = (remediating(&objects), remediating(&parse_yaml_documents(REMEDIATION).await?));
    let rules = |all: &BTreeMap<String, Value>| -> Vec<(String, Value)> {
        all.iter().map(|(name, role)| (name.clone(), role["rules"].clone())).collect()
    };
    assert_eq!((rules(&found).len(), rules(&found)), (2, rules(&shipped)));
    let label = "rbac.ext-remediation/aggregate-to-ext-remediation";
    assert_eq!(found["picket-ext-remediation"]["metadata"]["labels"][label], "true");
    let bound = one("ClusterRoleBinding", "fencing-picket-controller-remediation", &objects);
    assert_eq!(bound["roleRef"]["name"], "fencing-picket-controller-remediation");
    assert_eq!(bound["subjects"][0]["name"], "picket-controller");
    let settings = one("ConfigMap", "picket-controller", &objects);
    let toml = settings["data"]["controller.toml"].as_str().unwrap_or_default();
    assert!(toml.contains("remediation = true\nremediation_namespaces = [\"medik8s\"]"), "{toml}");
    Ok(())
}

#[tokio::test]
async fn the_alerts_are_those_that_are_shipped() -> Result<()> {
    let watched = with(given(), &[("/monitoring/prometheusRule", serde_json::json!({ "enabled": true }))]);
    let objects = rendered(&watched).await?;
    assert_eq!(one("PrometheusRule", "picket", &objects)["spec"], parse_yaml(ALERTS).await?);
    Ok(())
}

/// The job is called as the alerts want it, and what it reads is there.
#[tokio::test]
async fn what_is_read_is_what_the_alerts_ask_for() -> Result<()> {
    let watched = with(given(), &[("/monitoring/serviceMonitor", serde_json::json!({ "enabled": true }))]);
    let objects = rendered(&watched).await?;
    let spec = &one("ServiceMonitor", "picket", &objects)["spec"];
    let services: Vec<&Value> = of("Service", &objects)
        .into_iter()
        .filter(|service| {
            let labels = spec["selector"]["matchLabels"].as_object().expect("labels");
            labels.iter().all(|(key, value)| service["metadata"]["labels"][key] == *value)
        })
        .collect();
    assert_eq!(services.len(), 1, "each gateway is read once");
    let job = spec["jobLabel"].as_str().expect("a label");
    assert_eq!(services[0]["metadata"]["labels"][job], "picket");
    let ports = services[0]["spec"]["ports"].as_array().expect("ports");
    assert!(ports.iter().any(|port| port["name"] == spec["endpoints"][0]["port"]));
    Ok(())
}

/// Each key that the schema knows has its place, and its default, in values.yaml, and the other way round.
#[tokio::test]
async fn the_schema_knows_what_the_values_have() -> Result<()> {
    let values = parse_yaml(&file("values.yaml")).await?;
    let schema: Value = serde_json::from_str(&file("values.schema.json")).expect("JSON");
    let mut wrong = Vec::new();
    compare("", &schema, &values, &mut wrong);
    assert_eq!(wrong, Vec::<String>::new());
    Ok(())
}

/// What a table without `properties` takes is whoever installs it's to say.
fn compare(place: &str, schema: &Value, values: &Value, wrong: &mut Vec<String>) {
    let (Some(known), Some(values)) = (schema["properties"].as_object(), values.as_object()) else { return };
    assert_eq!(schema["additionalProperties"], false, "{place}");
    // Those of subcharts, and what a container may ask for besides.
    let unsaid = ["global", "limits", "claims", "ephemeral-storage"];
    for key in known.keys().filter(|key| !values.contains_key(*key) && !unsaid.contains(&key.as_str())) {
        wrong.push(format!("{place}/{key} has no default"));
    }
    for (key, value) in values {
        match known.get(key) {
            Some(known) => compare(&format!("{place}/{key}"), known, value, wrong),
            None => wrong.push(format!("{place}/{key} is in no schema")),
        }
    }
}
