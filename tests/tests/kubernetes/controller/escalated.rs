//! NodeHealthCheck goes on from one template to the next: a second remediation stands beside the first, and the Node is fenced once.

use std::time::Duration;

use picket_proto::v1::Phase;
use picket_tests::Result;
use picket_tests::peers::{Knob, until};
use serde_json::json;

use crate::controller::held::lasts;
use crate::controller::nhc::Nhc;
use crate::controller::scene::Scene;

const WITHIN: Duration = Duration::from_secs(120);
const FINISHED: &str = "RemediationFinishedSuccessfully";

/// What was asked by the first runs to its end, and brings the Node back; the second has nothing to ask for.
#[tokio::test]
async fn where_the_first_one_s_time_is_over_the_next_one_waits_for_what_runs() -> Result<()> {
    let scene = Scene::open().await?;
    let first = Nhc::new(&scene, &json!({}), true).await?;
    let next = first.next("next", &json!({})).await?;
    let controller = first.controller().await?;
    scene.kubelets.says("n2", false).await?;
    let one = first.gives_up("n2").await?;
    scene.event("n2", "FenceAsked", &controller).await?;
    first.times_out(&one).await?;
    let other = next.makes("n2", &json!({})).await?;
    assert!(one != other && other.starts_with("n2-"), "{one} {other}");
    until("it is being brought back", WITHIN, async || {
        Ok(first.read(&one).await?["status"]["phase"] == "Returning")
    })
    .await?;
    scene.kubelets.boots("n2").await?;
    first.says(&one, ("False", "True", FINISHED), &controller).await?;
    next.says(&other, ("True", "Unknown", "RemediationStarted"), &controller).await?;
    assert!(next.read(&other).await?["status"]["key"].is_null(), "it asked for nothing");
    for name in [&one, &other] {
        first.deletes(name, "n2").await?;
        first.is_gone(name, &controller).await?;
    }
    until("nothing keeps it off", WITHIN, async || {
        let (holds, phase) = first.holds("n2").await?;
        Ok(holds.is_empty() && phase == Phase::Normal)
    })
    .await?;
    assert_eq!(
        (scene.fences().await?, controller.asked()),
        (vec!["n2".to_owned()], 1),
        "{}",
        controller.log()
    );
    Ok(())
}

/// Of one that stays off both say what the one fence said.
#[tokio::test]
async fn where_a_node_stays_off_the_next_one_joins_its_fence() -> Result<()> {
    let scene = Scene::open().await?;
    let stays = json!({ "then": "StayOff" });
    let first = Nhc::new(&scene, &stays, true).await?;
    let next = first.next("next", &stays).await?;
    let controller = first.controller().await?;
    scene.kubelets.says("n4", false).await?;
    let one = first.gives_up("n4").await?;
    scene.event("n4", "FenceAsked", &controller).await?;
    first.times_out(&one).await?;
    let other = next.makes("n4", &json!({})).await?;
    for name in [&one, &other] {
        first.says(name, ("False", "True", FINISHED), &controller).await?;
    }
    let (holds, phase) = first.holds("n4").await?;
    assert!(!holds.is_empty() && phase == Phase::Released, "{holds:?} {phase:?}");
    assert_eq!(scene.fences().await?, ["n4"], "{}", controller.log());
    scene.kubelets.boots("n4").await?;
    for name in [&one, &other] {
        first.deletes(name, "n4").await?;
        first.is_gone(name, &controller).await?;
    }
    assert!(first.holds("n4").await?.0.is_empty(), "no hold is left behind");
    assert_eq!(scene.fences().await?, ["n4"], "{}", controller.log());
    Ok(())
}

/// The machine was not seen on: neither the next template nor the next leader has it fenced again, and once a person has seen to it the first one
/// has come true.
#[tokio::test]
async fn where_the_first_one_failed_neither_the_next_one_nor_the_next_leader_fences_again() -> Result<()> {
    let (scene, bmc) = Scene::behind_a_board().await?;
    let first = Nhc::new(&scene, &json!({}), true).await?;
    let next = first.next("next", &json!({})).await?;
    let mut controller = first.controller().await?;
    scene.kubelets.says("n1", false).await?;
    let one = first.gives_up("n1").await?;
    until("its off is obeyed", WITHIN, async || Ok(!bmc.is_on()?)).await?;
    // Off has to hold for a while before it is believed, and only then an on is sent.
    bmc.set(Knob::Fail)?;
    first.says(&one, ("False", "False", "PowerOnFailed"), &controller).await?;
    first.times_out(&one).await?;
    let other = next.makes("n1", &json!({})).await?;
    next.says(&other, ("False", "False", "NeedsOperator"), &controller).await?;
    controller.kill();
    let controller = first.controller().await?;
    let words = next.says(&other, ("False", "False", "PowerOnFailed"), &controller).await?;
    assert!(words.contains("picket retry n1"), "{words}");
    lasts(40).await?;
    assert_eq!(scene.fences().await?, ["n1"], "{}", controller.log());
    // That its time was over is no news of one that had failed before.
    first.says(&one, ("False", "False", "PowerOnFailed"), &controller).await?;

    bmc.clear(Knob::Fail)?;
    let again = scene.gateway.picket(&["retry", "n1", "--yes", "--reason", "a test"]).await?;
    assert_eq!(again.code, 0, "{again:?}");
    scene.kubelets.boots("n1").await?;
    first.says(&one, ("False", "True", FINISHED), &controller).await?;
    for name in [&one, &other] {
        first.deletes(name, "n1").await?;
        first.is_gone(name, &controller).await?;
    }
    assert_eq!(scene.fences().await?, ["n1"], "{}", controller.log());
    Ok(())
}
