//! What a login may not do is told by name before it is needed.

use picket_tests::peers::parse_yaml_documents;
use picket_tests::{Daemon, Gateway, Result};
use serde_json::{Value, json};

use crate::cluster::fenced::{ALLOWED, login, no_more, settings};
use crate::cluster::scene::{cluster, for_everybody};

/// By the shipped roles nothing is missing; by less each verb is named that is.
#[tokio::test]
async fn a_check_names_what_the_login_lacks() -> Result<()> {
    let cluster = cluster().await?;
    let machine = for_everybody(cluster);
    let may_not = |rule: &Value| {
        let resources = rule["resources"].as_array().into_iter().flatten().filter_map(Value::as_str);
        resources.into_iter().any(|one| ["pods", "volumeattachments"].contains(&one))
    };
    let everywhere = parse_yaml_documents(ALLOWED).await?.swap_remove(0)["rules"].clone();
    let some: Vec<Value> =
        everywhere.as_array().into_iter().flatten().filter(|rule| !may_not(rule)).cloned().collect();
    let poor = cluster.account("picket-poor", &json!(some)).await?;
    let lacks = "its login may not list pods, delete pods, list volumeattachments.storage.k8s.io, \
        get leases.coordination.k8s.io in the namespace kube-node-lease: deploy/kubernetes/release.yaml";
    for (login, lacking) in [(login(cluster).await?, false), (poor, true)] {
        let fleet = settings(cluster, &login, &[(machine.name(), machine, "pods")], &no_more).await?;
        let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
        gateway.begin(&[]).await?;
        let checked = gateway.picket(&["check", machine.name()]).await?;
        assert_eq!(checked.out.contains("its login may not"), lacking, "{checked:?}");
        assert_eq!(checked.out.contains(lacks), lacking, "{checked:?}");
    }
    Ok(())
}
