//! A machine that is gone for good: its Node is deleted, and its remediation goes once a person says so to the gateway.

use std::time::Duration;

use picket_proto::v1::Phase;
use picket_tests::Result;
use picket_tests::peers::until;
use serde_json::{Value, json};

use crate::controller::held::lasts;
use crate::controller::nhc::Nhc;
use crate::controller::remediated::are_stuck;
use crate::controller::scene::Scene;
use crate::controller::trio::{NODE, Trio, controller};

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

/// The gateways call the machine otherwise than its Node, which they know by its UUID alone. Between the retirement and the end of the finalizer the
/// gateway that leads dies, and another controller leads: what they go by is stored.
#[tokio::test]
async fn what_was_retired_is_known_to_the_next_leaders_and_new_hardware_finds_nothing_of_it() -> Result<()> {
    let trio = Trio::open().await?;
    let Trio { mut gateways, scene, bmc, _etcd } = trio;
    let nhc = Nhc::new(&scene, &json!({ "then": "StayOff" }), false).await?;
    let mut first = controller(&scene, "one")?;
    scene.logged(&first, "this replica leads").await?;
    scene.kubelets.says("n1", false).await?;
    let name = nhc.gives_up("n1").await?;
    nhc.says(&name, ("False", "True", "RemediationFinishedSuccessfully"), &first).await?;
    assert_eq!(nhc.read(&name).await?["status"]["gatewayNode"], NODE);
    assert!(!bmc.is_on()?);

    scene.kubelets.falls_silent("n1");
    scene.cluster.kubectl(&["delete", "node", "n1"]).await?;
    nhc.deletes(&name, "n1").await?;
    until("its conditions say what is next", Duration::from_secs(60), async || {
        let status = nhc.read(&name).await?["status"].to_string();
        Ok(status.contains(&format!("picket retire {NODE}")))
    })
    .await?;
    first.kill();
    gateways.does(&["retire", NODE, "--yes", "--reason", "it burned"]).await?;
    let leader = gateways.leader().await?;
    gateways[leader].kill();
    let next = gateways.leader().await?;
    assert_ne!(next, leader);
    assert_eq!(nhc.read(&name).await?["metadata"]["finalizers"], json!(["picket.dev/remediation"]));

    let second = controller(&scene, "two")?;
    nhc.is_gone(&name, &second).await?;
    // Another machine under the Node's name.
    scene.kubelets.joins("n1", &json!({ "role": "worker", "topology.kubernetes.io/zone": "a" })).await?;
    lasts(20).await?;
    let node = scene.cluster.json(&["get", "node", "n1"]).await?;
    for what in [&node["spec"]["taints"], &node["metadata"]["annotations"], &node["metadata"]["finalizers"]] {
        let what = what.to_string();
        assert!(!what.contains("picket.dev/") && !what.contains("out-of-service"), "{node:#}");
    }
    let history = gateways[next].picket(&["--output", "json", "history", NODE]).await?;
    let history: Value = serde_json::from_str(&history.out).unwrap_or_default();
    assert_eq!(history["fences"].as_array().map(Vec::len), Some(1), "{history:#}\n{}", gateways.logs());
    assert_eq!(second.asked(), 0, "{}", second.log());
    Ok(())
}
