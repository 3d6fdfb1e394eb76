//! A node that is to be brought back, and does not come on.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::{Knob, until};
use serde_json::json;

use crate::controller::held::lasts;
use crate::controller::nhc::Nhc;
use crate::controller::scene::Scene;

#[tokio::test]
async fn a_node_that_was_not_seen_on_is_a_failure_and_a_person_s_to_mend() -> Result<()> {
    let (scene, bmc) = Scene::behind_a_board().await?;
    let nhc = Nhc::new(&scene, &json!({}), false).await?;
    let controller = nhc.controller().await?;
    scene.kubelets.says("n1", false).await?;
    let name = nhc.gives_up("n1").await?;
    until("its off is obeyed", Duration::from_secs(120), async || Ok(!bmc.is_on()?)).await?;
    // Off has to hold for a while before it is believed, and only then an on is sent.
    bmc.set(Knob::Fail)?;
    let words = scene.event("n1", "PowerOnFailed", &controller).await?;
    assert!(words.contains("not seen on") && words.contains("picket retry n1"), "{words}");
    let told = nhc.says(&name, ("False", "False", "PowerOnFailed"), &controller).await?;
    assert_eq!(told, words);
    let status = nhc.read(&name).await?["status"].clone();
    assert_eq!((&status["phase"], &status["proven"]), (&json!("Failed"), &json!(true)), "{status}");
    until("it is noted on the Node", Duration::from_secs(60), async || {
        Ok(scene.note("n1").await?["phase"] == "NeedsOperator")
    })
    .await?;
    lasts(25).await?;
    assert_eq!(scene.events("PowerOnFailed").await?.len(), 1, "it is told once");
    assert_eq!(
        (scene.fences().await?, controller.asked()),
        (vec!["n1".to_owned()], 1),
        "{}",
        controller.log()
    );

    // What a person does about it is what its words say.
    bmc.clear(Knob::Fail)?;
    let again = scene.gateway.picket(&["retry", "n1", "--yes", "--reason", "a test"]).await?;
    assert_eq!(again.code, 0, "{again:?}");
    assert!(bmc.is_on()?);
    let words = scene.event("n1", "NodeReturning", &controller).await?;
    assert!(words.contains("somebody saw to it"), "{words}");
    scene.kubelets.boots("n1").await?;
    nhc.says(&name, ("False", "True", "RemediationFinishedSuccessfully"), &controller).await?;
    nhc.deletes(&name, "n1").await?;
    nhc.is_gone(&name, &controller).await?;
    assert_eq!(scene.fences().await?, ["n1"], "{}", controller.log());
    Ok(())
}
