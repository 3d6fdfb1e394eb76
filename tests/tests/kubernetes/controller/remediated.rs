//! NodeHealthCheck gives a Node up, and it is fenced and brought back.

use std::time::Duration;

use picket_proto::v1::Phase;
use picket_tests::Result;
use picket_tests::peers::until;
use serde_json::json;

use crate::controller::held::lasts;
use crate::controller::nhc::Nhc;
use crate::controller::scene::{Controller, Scene};

const STARTED: &str = "RemediationStarted";
const FINISHED: &str = "RemediationFinishedSuccessfully";

#[tokio::test]
async fn a_node_that_is_given_up_is_fenced_once_and_its_remediation_goes_when_it_is_back() -> Result<()> {
    let scene = Scene::open().await?;
    // The least that a template says: it is brought back.
    let nhc = Nhc::new(&scene, &json!({}), false).await?;
    let controller = nhc.controller().await?;
    scene.kubelets.says("n1", false).await?;
    let name = nhc.gives_up("n1").await?;
    assert_eq!(name, "n1");
    scene.event("n1", "Fenced", &controller).await?;
    let words = nhc.says(&name, ("True", "Unknown", STARTED), &controller).await?;
    assert!(!words.is_empty());
    let node = scene.cluster.json(&["get", "node", "n1"]).await?;
    let made = until("it is being brought back", Duration::from_secs(60), async || {
        Ok(nhc.read(&name).await?["status"]["phase"] == "Returning")
    });
    made.await?;
    let made = nhc.read(&name).await?;
    let of = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let (uid, boot) = (of(&node["metadata"]["uid"]), of(&node["status"]["nodeInfo"]["bootID"]));
    assert_eq!(made["status"]["key"], format!("k8s/{uid}/{boot}/{}", of(&made["metadata"]["uid"])));
    assert_eq!(made["metadata"]["finalizers"], json!(["picket.dev/remediation"]));
    assert_eq!(made["spec"], json!({ "then": "PowerOn", "minimumGrade": "Claimed" }));
    let lease = scene.cluster.json(&["-n", "medik8s-leases", "get", "lease", "node-n1"]).await?;
    assert_eq!(lease["spec"]["holderIdentity"], "NodeHealthCheck-workers", "it is not ours to take");

    scene.kubelets.boots("n1").await?;
    nhc.says(&name, ("False", "True", FINISHED), &controller).await?;
    nhc.deletes(&name, "n1").await?;
    nhc.is_gone(&name, &controller).await?;
    until("nothing of ours is left", Duration::from_secs(60), async || {
        let (holds, phase) = nhc.holds("n1").await?;
        Ok(scene.note("n1").await?.is_null() && holds.is_empty() && phase == Phase::Normal)
    })
    .await?;
    assert_eq!(
        (scene.fences().await?, controller.asked()),
        (vec!["n1".to_owned()], 1),
        "{}",
        controller.log()
    );
    Ok(())
}

#[tokio::test]
async fn under_a_name_of_its_own_whoever_else_works_on_the_node_is_waited_for_and_the_hold_goes_with_it()
-> Result<()> {
    let scene = Scene::open().await?;
    let nhc = Nhc::new(&scene, &json!({ "then": "StayOff" }), true).await?;
    let controller = nhc.controller().await?;
    scene.kubelets.says("n4", false).await?;
    nhc.takes("n4", "NodeHealthCheck-others").await?;
    let name = nhc.makes("n4", &json!({})).await?;
    assert!(name.starts_with("n4-"), "{name}");
    let words = nhc.says(&name, ("True", "Unknown", "FenceWaits"), &controller).await?;
    assert!(words.contains("NodeHealthCheck-others"), "{words}");
    assert!(scene.fences().await?.is_empty());
    // Its own.
    nhc.takes("n4", "NodeHealthCheck-workers").await?;
    nhc.says(&name, ("False", "True", FINISHED), &controller).await?;
    let (holds, phase) = nhc.holds("n4").await?;
    assert_eq!((holds.len(), phase), (1, Phase::Released), "{holds:?}");

    scene.kubelets.boots("n4").await?;
    nhc.deletes(&name, "n4").await?;
    nhc.is_gone(&name, &controller).await?;
    assert!(nhc.holds("n4").await?.0.is_empty(), "the hold is dropped before the finalizer goes");
    assert_eq!(scene.fences().await?, ["n4"]);
    Ok(())
}

/// K12: a remediation is no way past the policies. The one of its Node is paused; none names a Node of the control plane.
#[tokio::test]
async fn no_remediation_passes_by_what_policies_say() -> Result<()> {
    let scene = Scene::open().await?;
    let nhc = Nhc::new(&scene, &json!({ "then": "StayOff" }), true).await?;
    let conditions = json!([{ "type": "Ready", "status": "False", "forSeconds": 5 }]);
    scene.policy(&json!({ "unhealthyConditions": conditions, "paused": true })).await?;
    let controller = nhc.controller().await?;
    let mut made = Vec::new();
    for node in ["n1", "m1"] {
        scene.kubelets.says(node, false).await?;
        made.push(nhc.gives_up(node).await?);
    }
    for (name, words) in
        made.iter().zip(["the FencingPolicy workers is paused", "it is of the control plane"])
    {
        until(&format!("{name} says {words:?}"), Duration::from_secs(120), async || {
            Ok(nhc.read(name).await?["status"].to_string().contains(words))
        })
        .await?;
    }
    lasts(15).await?;
    assert_eq!((scene.fences().await?, controller.asked()), (Vec::new(), 0), "{}", controller.log());
    scene.policy(&json!({ "unhealthyConditions": conditions })).await?;
    scene.event("n1", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["n1"], "{}", controller.log());
    Ok(())
}

#[tokio::test]
async fn whose_time_is_over_asks_for_nothing_and_what_was_asked_runs_to_its_end() -> Result<()> {
    let scene = Scene::open().await?;
    let nhc = Nhc::new(&scene, &json!({}), false).await?;
    let controller = nhc.controller().await?;
    for node in ["n1", "n5"] {
        scene.kubelets.says(node, false).await?;
    }
    nhc.takes("n1", "NodeHealthCheck-workers").await?;
    let over = json!({ "remediation.medik8s.io/nhc-timed-out": "2026-01-01T00:00:00Z" });
    let before = nhc.makes("n1", &over).await?;
    nhc.says(&before, ("False", "False", "RemediationInterruptedByNHC"), &controller).await?;
    assert_eq!(nhc.read(&before).await?["metadata"]["finalizers"], json!(null));

    let after = nhc.gives_up("n5").await?;
    scene.event("n5", "FenceAsked", &controller).await?;
    nhc.times_out(&after).await?;
    scene.event("n5", "Fenced", &controller).await?;
    scene.kubelets.boots("n5").await?;
    // What the fence said is true, whoever waits for it.
    nhc.says(&after, ("False", "True", FINISHED), &controller).await?;
    assert_eq!(
        (scene.fences().await?, controller.asked()),
        (vec!["n5".to_owned()], 1),
        "{}",
        controller.log()
    );
    // Nothing hangs on the first one, although its Node is dead.
    nhc.deletes(&before, "n1").await?;
    nhc.is_gone(&before, &controller).await?;
    nhc.deletes(&after, "n5").await?;
    nhc.is_gone(&after, &controller).await
}

#[tokio::test]
async fn one_that_is_deleted_while_its_node_is_not_ready_stays_with_its_hold_until_a_person_frees_it()
-> Result<()> {
    let scene = Scene::open().await?;
    let nhc = Nhc::new(&scene, &json!({ "then": "StayOff" }), false).await?;
    let controller = nhc.controller().await?;
    scene.kubelets.says("n3", false).await?;
    let name = nhc.gives_up("n3").await?;
    nhc.says(&name, ("False", "True", FINISHED), &controller).await?;
    nhc.deletes(&name, "n3").await?;
    stays_until_it_is_freed(&nhc, &name, "n3", &controller).await?;
    nhc.is_gone(&name, &controller).await?;
    leaves_its_hold(&nhc, "n3").await
}

/// Where all that is in its namespace is deleted, it is as well.
#[tokio::test]
async fn where_its_namespace_is_deleted_it_stays_with_its_hold_until_a_person_frees_it() -> Result<()> {
    goes_with(&["namespace", "ops"], "n2").await
}

/// As when all that is Picket's is uninstalled.
#[tokio::test]
async fn where_its_definition_is_deleted_it_stays_with_its_hold_until_a_person_frees_it() -> Result<()> {
    goes_with(&["crd", "picketremediations.picket.dev"], "n5").await
}

/// What a remediation of a node that is fenced hangs on is deleted (K12): it does not go before the remediation does, and that is freed.
async fn goes_with(what: &[&str; 2], node: &str) -> Result<()> {
    let scene = Scene::open().await?;
    let nhc = Nhc::new(&scene, &json!({ "then": "StayOff" }), false).await?;
    let controller = nhc.controller().await?;
    scene.kubelets.says(node, false).await?;
    let name = nhc.gives_up(node).await?;
    nhc.says(&name, ("False", "True", FINISHED), &controller).await?;
    scene.cluster.kubectl(&["delete", what[0], what[1], "--wait=false"]).await?;
    until("it is deleted with it", Duration::from_secs(120), async || {
        Ok(nhc.read(&name).await?["metadata"]["deletionTimestamp"].is_string())
    })
    .await?;
    stays_until_it_is_freed(&nhc, &name, node, &controller).await?;
    // With it the remediation. Also so that whoever has the cluster next may make it anew.
    until("what it hung on is gone", Duration::from_secs(120), async || {
        let left = ["get", what[0], what[1], "--ignore-not-found", "-o", "name"];
        Ok(scene.cluster.kubectl(&left).await?.trim().is_empty())
    })
    .await?;
    leaves_its_hold(&nhc, node).await
}

/// One that is deleted while its Node is not Ready says so, and keeps the node off, until a person frees it.
async fn stays_until_it_is_freed(
    nhc: &Nhc<'_>,
    name: &str,
    node: &str,
    controller: &Controller,
) -> Result<()> {
    let words = nhc.scene.event(node, "RemediationStuck", controller).await?;
    assert!(words.contains("picket.dev/free-remediation=true"), "{words}");
    are_stuck(nhc, 1).await?;
    let stays = nhc.read(name).await?;
    assert_eq!(stays["metadata"]["finalizers"], json!(["picket.dev/remediation"]));
    let (holds, phase) = nhc.holds(node).await?;
    assert_eq!((holds.len(), phase), (1, Phase::Released), "{holds:?}");
    nhc.annotate(name, "picket.dev/free-remediation=true").await
}

/// It is gone, and its node is off still, and was fenced once.
async fn leaves_its_hold(nhc: &Nhc<'_>, node: &str) -> Result<()> {
    are_stuck(nhc, 0).await?;
    let (holds, phase) = nhc.holds(node).await?;
    assert_eq!((holds.len(), phase), (1, Phase::Released), "the hold is a person's matter");
    assert_eq!(nhc.scene.fences().await?, [node]);
    Ok(())
}

/// Waits until so many are told as stuck in the metrics.
pub async fn are_stuck(nhc: &Nhc<'_>, many: u32) -> Result<()> {
    let line = format!("picket_controller_remediations_stuck {many}");
    until(&format!("the metrics have {line}"), Duration::from_secs(60), async || {
        Ok(nhc.scene.http("/metrics").await?.contains(&line))
    })
    .await
}
