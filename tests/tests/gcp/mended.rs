//! What a whole gateway alone shows: a number that is another machine's, a start that comes to nothing, and what is let go of an instance
//! that is not there any more.

use picket_tests::Result;
use serde_json::json;

use crate::scene::{IMPATIENT, Plan, compute, soon};

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

/// A group makes it anew by its name, with the same disk: that one is another's now.
#[tokio::test]
async fn what_an_instance_had_that_is_replaced_meanwhile_is_let_go() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().over(&instance).await?;
    let limited = json!({ "status": 403, "reason": "rateLimitExceeded" });
    scene.compute.rule("instances.detachDisk", scene.id(), 1_000_000, limited).await?;
    let replaced = async {
        soon("a detach", async || {
            Ok(!scene.compute.asked_to("instances.detachDisk", scene.id()).await?.is_empty())
        })
        .await?;
        scene.compute.replace(scene.id()).await
    };
    let (told, heir) = tokio::join!(scene.fence(), replaced);
    let (told, heir) = (told?, heir?);
    assert!(told.result.to_string().contains("the instance is gone; in use by 1 other"), "{}", told.result);
    let disk = scene.compute.disk(&instance.disks["data"]).await?;
    assert!(disk.users.contains_key(&heir), "{disk:?}");
    let sent = scene.compute.asked(&heir).await?;
    assert!(sent.iter().all(|one| one.method == "instances.get"), "{sent:#?}");
    Ok(())
}
