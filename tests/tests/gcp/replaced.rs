//! The instance goes in the middle of a fence, and another one comes by its name, as a managed group makes one.

use picket_tests::Result;
use picket_tests::peers::GceTreatment;
use serde_json::json;

use crate::scene::{Plan, compute, soon};

#[tokio::test]
async fn before() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().over(&instance).await?;
    // the stop is throttled until it is replaced
    let limited = json!({ "status": 503, "reason": "backendError" });
    scene.compute.rule("instances.stop", scene.id(), 1_000_000, limited).await?;
    let replacing = async {
        soon("stop", async || Ok(!scene.compute.asked_to("instances.stop", scene.id()).await?.is_empty())).await?;
        scene.compute.replace(scene.id()).await
    };
    let began = std::time::Instant::now();
    let (told, heir) = tokio::try_join!(scene.fence(), replacing)?;
    println!("{:?} {heir} {:#?}\n{}", began.elapsed(), told.result, scene.gateway.log());
    Ok(())
}

#[tokio::test]
async fn between() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().over(&instance).await?;
    scene.compute.treat(scene.id(), &GceTreatment { stopping: Some(600.0), ..GceTreatment::default() }).await?;
    let replacing = async {
        soon("stop", async || Ok(scene.compute.state(scene.id()).await? == "STOPPING")).await?;
        scene.compute.replace(scene.id()).await
    };
    let began = std::time::Instant::now();
    let (told, heir) = tokio::try_join!(scene.fence(), replacing)?;
    println!("{:?} {heir} {:#?}\n{}", began.elapsed(), told.result, scene.gateway.log());
    Ok(())
}

#[tokio::test]
async fn after() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().over(&instance).await?;
    scene.compute.treat(scene.id(), &GceTreatment { detaching: Some(600.0), ..GceTreatment::default() }).await?;
    let replacing = async {
        soon("detach", async || Ok(!scene.compute.asked_to("instances.detachDisk", scene.id()).await?.is_empty())).await?;
        scene.compute.replace(scene.id()).await
    };
    let began = std::time::Instant::now();
    let (told, heir) = tokio::try_join!(scene.fence(), replacing)?;
    println!("{:?} {heir} {:#?}\n{}", began.elapsed(), told.result, scene.gateway.log());
    Ok(())
}
