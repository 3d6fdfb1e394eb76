//! A kubelet falls silent, and its Node is fenced and brought back.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::{parse_metrics, until};
use serde_json::{Value, json};

use crate::controller::scene::Scene;

#[tokio::test]
async fn a_node_whose_kubelet_is_silent_is_fenced_once_by_that_key_and_comes_back_clean() -> Result<()> {
    let scene = Scene::open().await?;
    scene.policy(&json!({ "then": "PowerOn" })).await?;
    let controller = scene.controller("one")?;
    scene.told("workers", "Acting", "Acting").await?;
    let before = scene.cluster.json(&["get", "node", "n1"]).await?;

    scene.kubelets.falls_silent("n1");
    let words = scene.event("n1", "FenceAsked", &controller).await?;
    let node = scene.cluster.json(&["get", "node", "n1"]).await?;
    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|one| one["type"] == "Ready").cloned().unwrap_or_default();
    assert_eq!(ready["status"], "Unknown", "{ready}");
    let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (uid, boot) = (of(&node["metadata"]["uid"]), of(&node["status"]["nodeInfo"]["bootID"]));
    let key = format!("k8s/{uid}/{boot}/Ready={}", of(&ready["lastTransitionTime"]));
    assert!(words.contains(&key), "{words}");

    scene.event("n1", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["n1"]);
    // The Event is told first, then what the Node bears.
    until("the Node says that it is returning", Duration::from_secs(60), async || {
        let note = scene.note("n1").await?;
        assert_eq!(note["key"], json!(key), "{note}");
        Ok(note["phase"] == "Returning")
    })
    .await?;
    let lease = scene.cluster.json(&["-n", "medik8s-leases", "get", "lease", "node-n1"]).await?;
    assert_eq!(lease["spec"]["holderIdentity"], "picket-controller");

    scene.kubelets.boots("n1").await?;
    scene.event("n1", "NodeBack", &controller).await?;
    until("nothing of ours is left on it", Duration::from_secs(60), async || {
        let leases = scene.cluster.kubectl(&["-n", "medik8s-leases", "get", "leases", "-o", "name"]).await?;
        Ok(scene.note("n1").await?.is_null() && leases.trim().is_empty())
    })
    .await?;
    let after = scene.cluster.json(&["get", "node", "n1"]).await?;
    assert_eq!(after["metadata"]["labels"], before["metadata"]["labels"]);
    assert_eq!(after["metadata"]["finalizers"], Value::Null);
    assert_eq!((scene.fences().await?.len(), controller.asked()), (1, 1), "{}", controller.log());
    let metrics = parse_metrics(&scene.http("/metrics").await?).await?;
    assert!(metrics.to_string().contains("picket_controller_fences_asked"), "{metrics}");
    assert_eq!(scene.http("/readyz").await?, "leads\n");
    let policy = scene.cluster.kubectl(&["get", "fencingpolicies"]).await?;
    assert!(policy.contains("SELECTED") && policy.contains("PowerOn"), "{policy}");
    Ok(())
}
