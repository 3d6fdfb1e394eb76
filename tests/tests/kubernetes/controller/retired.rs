//! A machine that is gone for good: its Node is deleted, and its remediation goes once a person says so to the gateway.

use std::time::Duration;

use picket_proto::v1::Phase;
use picket_tests::Result;
use picket_tests::peers::until;
use serde_json::json;

use crate::controller::nhc::Nhc;
use crate::controller::remediated::are_stuck;
use crate::controller::scene::Scene;

#[tokio::test]
async fn a_remediation_whose_node_is_deleted_says_how_it_is_retired_and_goes_by_that() -> Result<()> {
    let scene = Scene::open().await?;
    let nhc = Nhc::new(&scene, &json!({ "then": "StayOff" }), false).await?;
    let controller = nhc.controller().await?;
    scene.kubelets.says("n3", false).await?;
    let name = nhc.gives_up("n3").await?;
    nhc.says(&name, ("False", "True", "RemediationFinishedSuccessfully"), &controller).await?;
    assert_eq!(nhc.read(&name).await?["status"]["gatewayNode"], "n3");

    scene.kubelets.falls_silent("n3");
    scene.cluster.kubectl(&["delete", "node", "n3"]).await?;
    nhc.deletes(&name, "n3").await?;
    are_stuck(&nhc, 1).await?;
    until("its conditions say what is next", Duration::from_secs(60), async || {
        let status = nhc.read(&name).await?["status"].to_string();
        Ok(status.contains("picket retire n3"))
    })
    .await?;
    let stays = nhc.read(&name).await?;
    assert_eq!(stays["metadata"]["finalizers"], json!(["picket.dev/remediation"]));
    let (holds, phase) = nhc.holds("n3").await?;
    assert_eq!((holds.len(), phase), (1, Phase::Released), "{holds:?}");

    let retired = scene.gateway.picket(&["retire", "n3", "--yes", "--reason", "it burned"]).await?;
    assert_eq!(retired.code, 0, "{retired:?}");
    nhc.is_gone(&name, &controller).await?;
    are_stuck(&nhc, 0).await?;
    assert_eq!(scene.fences().await?, ["n3"], "{}", controller.log());
    Ok(())
}
