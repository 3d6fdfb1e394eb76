//! What a remediation has asked for is not in its metadata: a version before noted it in the status, or somebody has lost the annotation.

use std::time::Duration;

use picket_proto::v1::Phase;
use picket_tests::Result;
use picket_tests::peers::until;
use serde_json::json;

use crate::controller::nhc::Nhc;
use crate::controller::remediated::are_stuck;
use crate::controller::scene::Scene;

const FINISHED: &str = "RemediationFinishedSuccessfully";

/// Its Node names it and its key: the next leader notes that, and it goes with its hold.
#[tokio::test]
async fn what_a_version_before_has_asked_for_is_taken_over_and_goes_with_its_hold() -> Result<()> {
    let scene = Scene::open().await?;
    let nhc = Nhc::new(&scene, &json!({ "then": "StayOff" }), false).await?;
    let mut first = nhc.controller().await?;
    scene.kubelets.says("n3", false).await?;
    let name = nhc.gives_up("n3").await?;
    nhc.says(&name, ("False", "True", FINISHED), &first).await?;
    first.kill();
    let key = nhc.read(&name).await?["status"]["key"].clone();
    nhc.annotate(&name, "picket.dev/asked-").await?;
    let second = nhc.controller().await?;
    until("what was asked for is noted", Duration::from_secs(60), async || {
        let asked = nhc.read(&name).await?["metadata"]["annotations"]["picket.dev/asked"].clone();
        Ok(asked.as_str().is_some_and(|asked| asked.contains(key.as_str().unwrap_or("none"))))
    })
    .await?;
    nhc.says(&name, ("False", "True", FINISHED), &second).await?;
    nhc.deletes(&name, "n3").await?;
    are_stuck(&nhc, 1).await?;
    let (holds, phase) = nhc.holds("n3").await?;
    assert_eq!((holds.len(), phase), (1, Phase::Released), "{holds:?}");
    scene.kubelets.boots("n3").await?;
    nhc.is_gone(&name, &second).await?;
    assert!(nhc.holds("n3").await?.0.is_empty(), "the hold goes before the finalizer");
    assert_eq!(scene.fences().await?, ["n3"], "{}", second.log());
    Ok(())
}

/// Nothing but its status names a key: the finalizer stays, a person is told, and a retirement leads out.
#[tokio::test]
async fn what_nothing_but_a_status_says_is_told_to_a_person_and_goes_once_its_machine_is_retired()
-> Result<()> {
    let scene = Scene::open().await?;
    let nhc = Nhc::new(&scene, &json!({ "then": "StayOff" }), false).await?;
    let mut first = nhc.controller().await?;
    scene.kubelets.says("n3", false).await?;
    let name = nhc.gives_up("n3").await?;
    nhc.says(&name, ("False", "True", FINISHED), &first).await?;
    first.kill();
    nhc.annotate(&name, "picket.dev/asked-").await?;
    scene.cluster.kubectl(&["annotate", "node", "n3", "picket.dev/status-"]).await?;
    nhc.deletes(&name, "n3").await?;
    let second = nhc.controller().await?;
    let words = scene.event("n3", "RemediationStuck", &second).await?;
    assert!(words.contains("nothing but its status says") && words.contains("`picket retire n3 "), "{words}");
    are_stuck(&nhc, 1).await?;
    let stays = nhc.read(&name).await?;
    assert_eq!(stays["metadata"]["finalizers"], json!(["picket.dev/remediation"]));
    assert!(stays["status"]["key"].is_string(), "it is not taken from it: {stays:#}");
    let (holds, phase) = nhc.holds("n3").await?;
    assert_eq!((holds.len(), phase), (1, Phase::Released), "{holds:?}");

    scene.kubelets.falls_silent("n3");
    scene.cluster.kubectl(&["delete", "node", "n3"]).await?;
    let retired = scene.gateway.picket(&["retire", "n3", "--yes", "--reason", "it burned"]).await?;
    assert_eq!(retired.code, 0, "{retired:?}");
    nhc.is_gone(&name, &second).await?;
    are_stuck(&nhc, 0).await?;
    assert_eq!((scene.fences().await?, second.asked()), (vec!["n3".to_owned()], 0), "{}", second.log());
    Ok(())
}
