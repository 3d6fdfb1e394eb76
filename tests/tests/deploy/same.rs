//! What stands in two places says the same there.

use picket_tests::Result;
use picket_tests::peers::parse_yaml;
use serde_json::Value;

use crate::variants::{all, chart, given, of, one, rendered, with};

const RELEASE: &str = include_str!("../../../deploy/kubernetes/release.yaml");
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

#[tokio::test]
async fn gateways_may_do_what_the_shipped_role_says_and_no_more() -> Result<()> {
    let shipped = parse_yaml(RELEASE).await?;
    for (name, values) in all() {
        let objects = rendered(&values).await?;
        for role in of("ClusterRole", &objects) {
            assert_eq!(role["rules"], shipped["rules"], "{name}");
        }
        assert_eq!(of("Role", &objects), Vec::<&Value>::new(), "{name}");
    }
    let objects = rendered(&given()).await?;
    let bound = one("ClusterRoleBinding", "fencing-picket-release", &objects);
    assert_eq!(
        bound["roleRef"]["name"],
        one("ClusterRole", "fencing-picket-release", &objects)["metadata"]["name"]
    );
    assert_eq!(
        (&bound["subjects"][0]["name"], &bound["subjects"][0]["namespace"]),
        (&"picket".into(), &"fencing".into())
    );
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
