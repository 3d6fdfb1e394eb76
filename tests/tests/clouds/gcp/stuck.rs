//! Disks that do not go: for ever, or as nobody may let them go.

use picket_tests::peers::GceTreatment;
use picket_tests::{Result, Told};
use serde_json::json;

use crate::gcp::scene::{Plan, compute, role};

/// A person is asked soon.
const SOON: &str = "deadline = \"12s\"\nattempt = \"5s\"\n";

/// It is proven off, and a person is told that a disk is left: which, and why.
fn is_left(told: &Told, disk: &str, why: &str) {
    let reason = &told.result["outcome"]["reason"];
    assert_eq!((told.kind(), reason), ("needs_operator", &json!("release_deadline")), "{:#?}", told.result);
    let detail = told.detail();
    assert!(detail.contains(disk) && detail.contains(why), "{detail}");
    assert_ne!(told.release(disk)["stage"], "complete", "{:#?}", told.result);
}

#[tokio::test]
async fn a_disk_that_never_goes_is_left_to_a_person() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().releasing(SOON).over(&instance).await?;
    let stuck = GceTreatment { stuck: Some("detaching"), ..GceTreatment::default() };
    scene.compute.treat(scene.id(), &stuck).await?;
    let told = scene.fence().await?;
    is_left(&told, &instance.disks["data"], "under way: detachDisk");
    let disk = scene.compute.disk(&instance.disks["data"]).await?;
    assert!(disk.users.contains_key(scene.id()), "{disk:?}");
    // Who mends it has it tried again.
    scene.compute.mend(scene.id()).await?;
    scene.gateway.retry("n1").await?;
    let again = scene.fence().await?;
    assert_eq!(again.result["outcome"]["released"], true, "{:#?}", again.result);
    assert!(scene.compute.disk(&instance.disks["data"]).await?.users.is_empty());
    scene.detached_once_proven(&told, 1).await
}

/// That a detach was taken says little: how its operation ended is told.
#[tokio::test]
async fn a_detach_that_always_comes_to_nothing_is_told_with_how_it_ended() -> Result<()> {
    let instance = compute().await?.instance(&["fails"]).await?;
    let scene = Plan::new().releasing(SOON).over(&instance).await?;
    let fails = json!({
        "do": "fault", "code": "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "message": "somebody has it", "status": 400,
    });
    scene.compute.rule("instances.detachDisk", "fails", 1_000, fails).await?;
    let told = scene.fence().await?;
    is_left(&told, &instance.disks["fails"], "came to nothing: RESOURCE_IN_USE_BY_ANOTHER_RESOURCE");
    assert!(told.detail().contains("somebody has it"), "{}", told.detail());
    Ok(())
}

#[tokio::test]
async fn who_may_not_detach_it_is_told_which_permission_is_missing() -> Result<()> {
    let compute = compute().await?;
    let instance = compute.instance(&["data"]).await?;
    let some: Vec<&str> = role().into_iter().filter(|one| *one != "compute.instances.detachDisk").collect();
    let user = compute.user(&some).await?;
    let scene = Plan::new().releasing(SOON).by(&user, &instance).await?;
    let told = scene.fence().await?;
    is_left(&told, &instance.disks["data"], "compute.instances.detachDisk is missing in the roles");
    let disk = compute.disk(&instance.disks["data"]).await?;
    assert!(disk.users.contains_key(scene.id()), "{disk:?}");
    Ok(())
}
