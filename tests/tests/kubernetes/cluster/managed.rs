//! A Node whose machine is managed by Cluster API: by its definition of a Machine, as far as a fence sees it.

use std::collections::BTreeSet;
use std::time::Duration;

use picket_tests::peers::until;
use picket_tests::{Daemon, Gateway, Result};
use serde_json::{Value, json};

use crate::cluster::fenced::{ALLOWED, done, fence, is_told, power, settings, unfence, until_clean};
use crate::cluster::scene::{cluster, lend};

const MANAGED: &str = include_str!("../../../../deploy/kubernetes/machines.yaml");
const SKIP: &str = "cluster.x-k8s.io/skip-remediation";
const LONG: Duration = Duration::from_secs(120);

/// Nobody else remediates it while it is fenced. One that is deleted is switched on by whoever takes it away: that is not fought over.
#[tokio::test]
async fn its_machine_is_left_alone_while_it_is_fenced_and_one_that_is_deleted_is_not_fought_over()
-> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    let name = machine.name();
    let before = power(machine).len();
    cluster.define(("Machine", "machines"), "cluster.x-k8s.io", "v1beta2", "Namespaced").await?;
    // A name alone may be that of another cluster's Node.
    let uid = cluster.json(&["get", "node", name]).await?["metadata"]["uid"].clone();
    let managed = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": { "name": name, "namespace": "default", "finalizers": ["machine.test/takes-it-away"] },
        "spec": { "clusterName": "test" },
        "status": { "nodeRef": { "name": name, "uid": uid } },
    });
    cluster.apply(&managed).await?;
    let its = ["get", "machines.cluster.x-k8s.io", name];
    let skips =
        async || -> Result<Value> { Ok(cluster.json(&its).await?["metadata"]["annotations"][SKIP].clone()) };
    let (of, within) =
        (format!("cluster.x-k8s.io/machine={name}"), "cluster.x-k8s.io/cluster-namespace=default");
    cluster.kubectl(&["annotate", "node", name, &of, within]).await?;

    // Of Machines it may do nothing yet.
    let login = cluster.account_by("picket-managed", &[ALLOWED]).await?;
    let more = |uid: &str, login: &str| {
        format!(
            "[releases.managed]\nkind = \"kubernetes\"\nsettle = \"0s\"\ncluster_uid = {uid:?}\n{login}machines = \"here\"\n"
        )
    };
    let fleet = settings(cluster, &login, &[(name, machine, "managed")], &more).await?;
    let mut gateway = Gateway::within(cluster.place(), Daemon::Shipped, &fleet)?;
    gateway.begin(&[]).await?;
    let checked = gateway.picket(&["check", name]).await?;
    let lacks = "its login may not get machines.cluster.x-k8s.io, list machines.cluster.x-k8s.io, \
        patch machines.cluster.x-k8s.io: deploy/kubernetes/machines.yaml";
    assert!(checked.out.contains(lacks), "{checked:?}");

    fence(&gateway, name, "released").await?;
    assert!(skips().await?.is_null());
    cluster.account_by("picket-managed", &[ALLOWED, MANAGED]).await?;
    until("nobody else remediates it, late as it is", LONG, async || Ok(!skips().await?.is_null())).await?;
    is_told(&gateway, name, "released").await?;
    let skip = skips().await?;
    assert!(skip.as_str().is_some_and(|mark| mark.contains(&format!("\"node\":\"{name}\""))), "{skip}");
    unfence(&gateway, name).await?;
    until_clean(cluster, machine).await?;
    until("a MachineHealthCheck may have it again", LONG, async || Ok(skips().await?.is_null())).await?;
    until("nothing is found wrong with its Machine", LONG, async || {
        let told = gateway.picket(&["check", name]).await?.out;
        Ok(!told.contains("the Machine ") && !told.contains("no Machine") && !told.contains("may not"))
    })
    .await?;

    fence(&gateway, name, "released").await?;
    cluster.kubectl(&["delete", "machines.cluster.x-k8s.io", name, "--wait=false"]).await?;
    machine.force(true).await?;
    let again = async || Ok(power(machine)[before..] == ["off", "on", "off", "on", "off"]);
    until("it is fenced again, once", LONG, again).await?;
    is_told(&gateway, name, "released").await?;
    machine.force(true).await?;
    is_told(&gateway, name, "being deleted").await?;
    let mut looks = BTreeSet::new();
    until("it is looked at several times more", LONG, async || {
        let told = gateway.picket(&["--output", "json", "status", name]).await?;
        let told: Value = serde_json::from_str(&told.out).unwrap_or_else(|error| panic!("{error}: {told:?}"));
        looks.insert(told["nodes"][0]["power"]["asked_at"].to_string());
        Ok(looks.len() > 3)
    })
    .await?;
    assert_eq!(power(machine)[before..], ["off", "on", "off", "on", "off", "on"], "{}", gateway.log());
    assert!(machine.runs());
    done(&gateway, &["stand-down", name, "--yes", "--reason", "it is taken away"]).await?;
    until_clean(cluster, machine).await?;

    let free = [
        "patch",
        "machines.cluster.x-k8s.io",
        name,
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ];
    cluster.kubectl(&free).await?;
    cluster
        .kubectl(&[
            "annotate",
            "node",
            name,
            "cluster.x-k8s.io/machine-",
            "cluster.x-k8s.io/cluster-namespace-",
        ])
        .await?;
    cluster.until_ready(machine, true).await?;
    lent.leave().await?;
    Ok(())
}
