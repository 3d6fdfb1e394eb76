//! Several callers at once, and a gateway that dies in the middle: the same end, and nothing twice.

use picket_tests::Result;
use picket_tests::peers::GceTreatment;

use crate::gcp::scene::{Plan, compute};
use crate::scene::soon;

#[tokio::test]
async fn two_fences_at_once_are_one() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().over(&instance).await?;
    let (one, other) = tokio::try_join!(scene.fence(), scene.fence())?;
    scene.is_fenced(&one).await?;
    scene.is_fenced(&other).await?;
    assert_eq!(scene.stops().await?.len(), 1);
    scene.detached_while_off(1).await
}

/// Whatever comes of the two, it ends, it runs in the end, and nothing was let go of a machine that ran.
#[tokio::test]
async fn a_fence_and_an_unfence_at_once_come_to_an_end() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().over(&instance).await?;
    let slow = GceTreatment { stopping: Some(2.0), starting: Some(2.0), ..GceTreatment::default() };
    scene.compute.treat(scene.id(), &slow).await?;
    let back = async {
        soon("it stops", async || Ok(scene.compute.state(scene.id()).await? == "STOPPING")).await?;
        scene.unfence().await
    };
    let (fenced, unfenced) = tokio::try_join!(scene.fence(), back)?;
    assert!(!fenced.result.is_null() && !unfenced.result.is_null(), "{fenced:#?} {unfenced:#?}");
    // A fence that comes while it is brought back wins.
    let again = async {
        soon("it is on its way back", async || {
            Ok(!scene.compute.asked_to("instances.start", scene.id()).await?.is_empty())
        })
        .await?;
        scene.fence().await
    };
    let (_, again) = tokio::try_join!(scene.unfence(), again)?;
    assert_eq!(again.kind(), "fenced", "{:#?}\n{}", again.result, scene.gateway.log());
    assert_eq!(scene.compute.state(scene.id()).await?, "TERMINATED");
    assert_eq!(scene.unfence().await?.kind(), "unfenced");
    assert_eq!(scene.compute.state(scene.id()).await?, "RUNNING");
    scene.detached_while_off(1).await?;
    scene.lawful().await
}

#[tokio::test]
async fn killed_in_the_middle_of_a_stop() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let mut scene = Plan::new().over(&instance).await?;
    let stuck = GceTreatment { stopping: Some(4.0), ..GceTreatment::default() };
    scene.compute.treat(scene.id(), &stuck).await?;
    let _asked = scene.gateway.asking("fence", "n1")?;
    soon("it stops", async || Ok(scene.compute.state(scene.id()).await? == "STOPPING")).await?;
    scene.gateway.kill();
    scene.gateway.begin(&[]).await?;
    scene.must_fence().await?;
    // The successor's own off is another request: for the old name Compute Engine would do nothing.
    let taken: Vec<_> = scene.stops().await?.into_iter().filter(|stop| stop.status == 200).collect();
    assert!(taken.len() >= 2 && taken[0].field("requestId") != taken[1].field("requestId"), "{taken:#?}");
    scene.detached_while_off(1).await
}

#[tokio::test]
async fn killed_in_the_middle_of_a_detach() -> Result<()> {
    let instance = compute().await?.instance(&["one", "other"]).await?;
    let mut scene = Plan::new().over(&instance).await?;
    let slow = GceTreatment { detaching: Some(4.0), ..GceTreatment::default() };
    scene.compute.treat(scene.id(), &slow).await?;
    let _asked = scene.gateway.asking("fence", "n1")?;
    let begun = async || Ok(!scene.compute.asked_to("instances.detachDisk", scene.id()).await?.is_empty());
    soon("a detach is under way", begun).await?;
    scene.gateway.kill();
    scene.gateway.begin(&[]).await?;
    scene.must_fence().await?;
    scene.detached_while_off(2).await
}
