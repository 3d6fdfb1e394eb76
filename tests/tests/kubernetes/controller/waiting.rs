//! What a fence waits for, for who has kubectl alone.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::{Knob, until};
use serde_json::json;

use crate::controller::nhc::Nhc;
use crate::controller::scene::Scene;

const WITHIN: Duration = Duration::from_secs(120);

/// A BMC that takes the off, and whose machine falls half a minute later.
#[tokio::test]
async fn what_a_fence_waits_for_is_read_with_kubectl_in_the_words_of_picket_status() -> Result<()> {
    let (scene, bmc) = Scene::behind_a_board().await?;
    bmc.set(Knob::OffDelay(Duration::from_secs(30)))?;
    let nhc = Nhc::new(&scene, &json!({}), false).await?;
    let controller = nhc.controller().await?;
    scene.kubelets.says("n1", false).await?;
    let name = nhc.gives_up("n1").await?;
    let mut words = String::new();
    until("its condition has the words of `picket status`", WITHIN, async || {
        let said = nhc.read(&name).await?["status"]["conditions"][0]["message"].clone();
        let waits = said.as_str().and_then(|said| said.split_once("; it waits for "));
        words = waits.map(|(_, waits)| waits.to_owned()).unwrap_or_default();
        let status = scene.gateway.picket(&["status", "n1"]).await?;
        Ok(!words.is_empty() && status.out.contains(&words))
    })
    .await?;
    let event = scene.event("n1", "Waiting", &controller).await?;
    assert!(event.contains("; it waits for "), "{event}");
    let note = scene.note("n1").await?["text"].clone();
    assert!(note.as_str().is_some_and(|note| note.contains("; it waits for ")), "{note}");
    let told = scene.events("Waiting").await?;
    assert!(told.len() < 20, "none a second: {told:?}");

    scene.event("n1", "Fenced", &controller).await?;
    until("it is on its way back", WITHIN, async || {
        Ok(nhc.read(&name).await?["status"]["phase"] == "Returning")
    })
    .await?;
    scene.kubelets.boots("n1").await?;
    nhc.says(&name, ("False", "True", "RemediationFinishedSuccessfully"), &controller).await?;
    assert_eq!(scene.fences().await?, ["n1"], "{}", controller.log());
    Ok(())
}
