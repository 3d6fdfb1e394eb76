//! A webhook that fails closed on the deletion of pods, and behind which nobody answers.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::until;
use serde_json::{Value, json};

use crate::cluster::fenced::{fence, is_told, no_more, pods, start, unfence, until_clean};
use crate::cluster::odd::spec;
use crate::cluster::scene::{cluster, lend};

/// More than are asked for side by side.
const BARRED: usize = 20;

fn pod(name: &str, app: &str, node: &str) -> Value {
    let meta = json!({ "name": name, "labels": { "app": app } });
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec(&json!({ "nodeName": node })) })
}

/// Its own pod may be among those of the node: all others are asked for, whatever comes of twenty. A check named it, and who looks reads whom
/// the release waits for. Once it bars nothing the release goes on by itself.
#[tokio::test]
async fn pods_that_a_webhook_bars_hold_back_no_other_and_it_is_named() -> Result<()> {
    let cluster = cluster().await?;
    let lent = lend(1).await?;
    let machine = lent.one();
    // A cluster that has just started lets nobody make a pod by hand before that is there.
    let account = ["get", "serviceaccount", "default", "--ignore-not-found", "-o", "name"];
    let is_there = async || Ok(!cluster.kubectl(&account).await?.is_empty());
    until("pods have an account", Duration::from_secs(60), is_there).await?;
    let barred = (0..BARRED).map(|number| pod(&format!("hooked-{number:02}"), "hooked", machine.name()));
    let items: Vec<Value> = barred.chain([pod("hooks", "hooks", machine.name())]).collect();
    cluster.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": items })).await?;
    let run = [
        "get",
        "pods",
        "-l",
        "app in (hooked, hooks)",
        "--field-selector=status.phase=Running",
        "-o",
        "name",
    ];
    let all = async || Ok(cluster.kubectl(&run).await?.lines().count() == BARRED + 1);
    until("they run", Duration::from_secs(180), all).await?;
    let webhook = json!({
        "name": "guard.example.org",
        "admissionReviewVersions": ["v1"],
        "clientConfig": { "url": "https://127.0.0.1:1/" },
        "failurePolicy": "Fail",
        "objectSelector": { "matchLabels": { "app": "hooked" } },
        "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"] }],
        "sideEffects": "None",
        "timeoutSeconds": 2,
    });
    cluster
        .apply(&json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": { "name": "hooked" },
            "webhooks": [webhook],
        }))
        .await?;
    machine.kill_kubelet().await?;
    cluster.until_ready(machine, false).await?;
    let gateway = start(cluster, &[(machine.name(), machine, "pods")], &no_more).await?;
    let checked = gateway.picket(&["check", machine.name()]).await?;
    let named = "webhooks fail closed on the deletion of pods: guard.example.org";
    assert!(checked.out.contains(named), "{checked:?}");

    fence(&gateway, machine.name(), "confirmed").await?;
    until("the other one is deleted", Duration::from_secs(120), async || {
        Ok(pods(cluster, "hooks").await?.is_empty())
    })
    .await?;
    is_told(&gateway, machine.name(), "failed calling webhook \"guard.example.org\"").await?;
    let at_node = format!("involvedObject.name={}", machine.name());
    let events = ["get", "events", "--field-selector", &at_node, "-o", "jsonpath={.items[*].message}"];
    until("it is told at the Node", Duration::from_secs(60), async || {
        Ok(cluster.kubectl(&events).await?.contains("failed calling webhook \"guard.example.org\""))
    })
    .await?;
    assert_eq!(pods(cluster, "hooked").await?.len(), BARRED);
    let status = gateway.picket(&["status", machine.name()]).await?;
    assert!(!status.out.contains("released"), "{status:?}");

    cluster.kubectl(&["delete", "validatingwebhookconfiguration", "hooked"]).await?;
    fence(&gateway, machine.name(), "released").await?;
    assert!(pods(cluster, "hooked").await?.is_empty());
    unfence(&gateway, machine.name()).await?;
    cluster.until_ready(machine, true).await?;
    until_clean(cluster, machine).await?;
    lent.leave().await?;
    Ok(())
}
