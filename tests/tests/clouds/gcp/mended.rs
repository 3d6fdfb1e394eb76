//! What a whole gateway alone shows: a number that is another machine's, and a start that comes to nothing.

use picket_tests::Result;
use serde_json::json;

use crate::gcp::scene::{Plan, compute};
use crate::scene::IMPATIENT;

#[tokio::test]
async fn a_number_that_is_another_machine_s_is_told_and_neither_is_touched() -> Result<()> {
    let compute = compute().await?;
    let (ours, theirs) = (compute.instance(&["data"]).await?, compute.instance(&["data"]).await?);
    let mut mixed = ours.clone();
    mixed.id = theirs.id.clone();
    let scene = Plan::new().rules(IMPATIENT).over(&mixed).await?;
    let told = scene.fence().await?;
    assert_eq!(
        (told.kind(), &told.result["outcome"]["reason"]),
        ("needs_operator", &json!("identity_mismatch"))
    );
    let said = scene.gateway.picket(&["check", "n1"]).await?;
    assert!(said.out.contains(&ours.id), "whose number the name has: {said:?}");
    for id in [&ours.id, &theirs.id] {
        assert_eq!(compute.state(id).await?, "RUNNING");
        let sent = compute.asked(id).await?;
        assert!(sent.iter().all(|one| one.method == "instances.get"), "{sent:#?}");
    }
    Ok(())
}

/// Whoever waits for the node reads why it does not come, and its start goes on being tried until then.
#[tokio::test]
async fn a_start_for_which_there_is_no_room_is_told_in_the_last_line() -> Result<()> {
    let instance = compute().await?.instance(&[]).await?;
    let scene = Plan::new().rules("on_deadline = \"12s\"\n").over(&instance).await?;
    scene.must_fence().await?;
    let full =
        json!({ "do": "fault", "code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "no room", "status": 503 });
    scene.compute.rule("instances.start", scene.id(), 1_000, full).await?;
    let told = scene.unfence().await?;
    let detail = told.detail();
    assert_eq!(told.kind(), "power_on_failed", "{:#?}", told.result);
    assert!(detail.contains("ZONE_RESOURCE_POOL_EXHAUSTED") && detail.contains("no room"), "{detail}");
    assert_eq!(scene.compute.state(scene.id()).await?, "TERMINATED");
    Ok(())
}

/// Sent again under the old name it would never come.
#[tokio::test]
async fn a_start_that_comes_to_nothing_is_sent_anew_and_comes() -> Result<()> {
    let instance = compute().await?.instance(&[]).await?;
    let scene = Plan::new().over(&instance).await?;
    scene.must_fence().await?;
    let full =
        json!({ "do": "fault", "code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "no room", "status": 503 });
    scene.compute.rule("instances.start", scene.id(), 1, full).await?;
    assert_eq!(scene.unfence().await?.kind(), "unfenced");
    assert_eq!(scene.compute.state(scene.id()).await?, "RUNNING");
    let starts = scene.compute.asked_to("instances.start", scene.id()).await?;
    let taken = starts.iter().filter(|one| one.status == 200).count();
    assert_eq!(taken, 2, "{starts:#?}");
    Ok(())
}
