//! The instance goes in the middle of a fence, and another one comes by its name, as a managed group makes one. That it is gone is no off
//! (S1), and that the name is another's is a mismatch, which stops the fence (S13): at once, whenever it is seen. The other one, and what it
//! has by then, are never touched.

use picket_tests::peers::GceTreatment;
use picket_tests::{Result, Told};
use serde_json::json;

use crate::gcp::scene::{Plan, Scene, compute};
use crate::scene::soon;

/// A person is asked, long before a level's time is over, and is told whose the name is.
async fn is_told(scene: &Scene, told: &Told, heir: &str) -> Result<()> {
    let (outcome, log) = (&told.result["outcome"], scene.gateway.log());
    assert_eq!((told.kind(), &outcome["reason"]), ("needs_operator", &json!("identity_mismatch")), "{log}");
    assert!(outcome["detail"].to_string().contains(heir), "{outcome:#}");
    assert_eq!(outcome["released"], json!(false), "{outcome:#}");
    assert!(told.result["took_s"].as_f64().is_some_and(|took| took < 60.0), "{:#}", told.result);
    let said = scene.gateway.picket(&["check", "n1"]).await?;
    assert!(said.out.contains(heir), "whose the name is now: {said:?}");
    Ok(())
}

/// It runs, has that many disks besides its root, and nobody asked anything of it but who it is.
async fn is_let_be(scene: &Scene, heir: &str, disks: usize) -> Result<()> {
    let heirs = scene.compute.truth(heir).await?;
    assert_eq!((heirs.status.as_str(), heirs.devices.len()), ("RUNNING", 1 + disks));
    let events = scene.compute.events(heir).await?;
    assert!(events.iter().all(|event| event.what == "attached"), "{events:#?}");
    // By its name both are meant: what was done names a number.
    let asked = scene.compute.asked(heir).await?;
    let by_its_number = asked.iter().filter(|one| one.path.contains(heir)).count();
    assert_eq!(by_its_number, 0, "{asked:#?}");
    scene.lawful().await
}

/// A person vouches that it is off; the disk's own word lets it go, and the node is at rest.
async fn vouches(scene: &Scene, words: &str) -> Result<()> {
    let vouched = scene.gateway.picket(&["attest", "n1", "--yes", "--reason", "it was deleted"]).await?;
    assert_eq!(vouched.code, 0, "{vouched:?}\n{}", scene.gateway.log());
    let status = scene.gateway.picket(&["status", "n1", "-o", "json"]).await?;
    assert!(status.out.contains(words), "{status:?}");
    let retired = scene.gateway.picket(&["retire", "n1", "--yes", "--reason", "it was deleted"]).await?;
    assert_eq!(retired.code, 0, "{retired:?}\n{}", scene.gateway.log());
    Ok(())
}

async fn heard(scene: &Scene, method: &str) -> Result<bool> {
    Ok(!scene.compute.asked_to(method, scene.id()).await?.is_empty())
}

#[tokio::test]
async fn replaced_before_a_stop_was_taken() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().over(&instance).await?;
    let away = json!({ "status": 503, "reason": "backendError", "message": "Try again." });
    scene.compute.rule("instances.stop", scene.id(), 1_000_000, away).await?;
    let replaced = async {
        soon("a stop is sent", async || heard(&scene, "instances.stop").await).await?;
        scene.compute.replace(scene.id()).await
    };
    let (told, heir) = tokio::try_join!(scene.fence(), replaced)?;
    is_told(&scene, &told, &heir).await?;
    assert!(scene.stops().await?.iter().all(|stop| stop.status != 200), "none was taken");
    assert!(!heard(&scene, "instances.detachDisk").await?);
    is_let_be(&scene, &heir, 1).await
}

/// What it had is nobody's by then. A person who knows that it was deleted says so, and the disk's own word lets it go: nothing is detached.
#[tokio::test]
async fn replaced_after_the_stop_was_taken_and_before_it_is_off() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().trusting().over(&instance).await?;
    let slow = GceTreatment { stopping: Some(600.0), ..GceTreatment::default() };
    scene.compute.treat(scene.id(), &slow).await?;
    let replaced = async {
        soon("it stops", async || Ok(scene.compute.state(scene.id()).await? == "STOPPING")).await?;
        scene.compute.replace_alone(scene.id()).await
    };
    let (told, heir) = tokio::try_join!(scene.fence(), replaced)?;
    is_told(&scene, &told, &heir).await?;
    assert!(scene.stops().await?.iter().any(|stop| stop.status == 200), "our stop was taken");
    vouches(&scene, "the instance is gone, and nobody uses it").await?;
    assert!(!heard(&scene, "instances.detachDisk").await?);
    is_let_be(&scene, &heir, 0).await
}

/// It was proven off. What has not gone by then is not let go by us any more: nothing reads Off (S4). A person who knows says so.
#[tokio::test]
async fn replaced_after_the_confirmation_and_before_the_release() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().trusting().over(&instance).await?;
    let slow = GceTreatment { detaching: Some(600.0), ..GceTreatment::default() };
    scene.compute.treat(scene.id(), &slow).await?;
    let replaced = async {
        soon("a detach is sent", async || heard(&scene, "instances.detachDisk").await).await?;
        scene.compute.replace(scene.id()).await
    };
    let (told, heir) = tokio::try_join!(scene.fence(), replaced)?;
    is_told(&scene, &told, &heir).await?;
    vouches(&scene, "the instance is gone; in use by 1 other").await?;
    let detaches = scene.compute.asked_to("instances.detachDisk", scene.id()).await?;
    assert_eq!(detaches.len(), 1, "the one of before: {detaches:#?}");
    is_let_be(&scene, &heir, 1).await
}
