//! An API server in trouble: no Node is fenced for what nobody could look at, and what is dead is fenced once it can be seen.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::until;
use serde_json::json;
use tokio::time::Instant;

use crate::controller::faulty::FaultyApi;
use crate::controller::scene::Scene;

async fn passes(seconds: u64) -> Result<()> {
    let from = Instant::now();
    let over = async || Ok(from.elapsed() > Duration::from_secs(seconds));
    until("a while passes", Duration::from_secs(seconds + 60), over).await
}

fn unhealthy() -> serde_json::Value {
    json!({ "unhealthyConditions": [{ "type": "Ready", "status": "False", "forSeconds": 8 }], "quietSeconds": 0 })
}

/// One Node is suspect when the trouble begins, and well when it is over, which nobody saw: for each kind of trouble.
#[tokio::test]
async fn an_api_server_that_refuses_or_dawdles_costs_nobody_a_fence() -> Result<()> {
    let scene = Scene::open().await?;
    scene.policy(&unhealthy()).await?;
    let api = FaultyApi::start(&scene).await?;
    let controller = scene.controller_by("one", &api.login(&scene)?)?;
    scene.told("workers", "Acting", "Acting").await?;
    for (node, trouble) in [
        ("n1", json!({ "do": "refuse", "status": 429 })),
        ("n2", json!({ "do": "refuse", "status": 503 })),
        ("n4", json!({ "do": "dawdle", "seconds": 30 })),
    ] {
        scene.kubelets.says(node, false).await?;
        passes(3).await?;
        api.does(&trouble)?;
        passes(20).await?;
        assert_eq!(controller.asked(), 0, "{trouble}: {}", controller.log());
        scene.kubelets.says(node, true).await?;
        api.does(&json!({ "do": "pass" }))?;
        passes(15).await?;
        assert_eq!(controller.asked(), 0, "{trouble}: {}", controller.log());
    }
    let log = controller.log();
    assert!(log.contains("429") && log.contains("503"), "what was said is told: {log}");
    scene.kubelets.says("n5", false).await?;
    scene.event("n5", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["n5"]);
    Ok(())
}

/// 410 Gone, again and again: what is there is listed anew, and a Node that fails meanwhile is seen.
#[tokio::test]
async fn a_watch_that_expires_is_begun_again_and_nothing_is_missed() -> Result<()> {
    let scene = Scene::open().await?;
    scene.policy(&unhealthy()).await?;
    let api = FaultyApi::start(&scene).await?;
    let controller = scene.controller_by("one", &api.login(&scene)?)?;
    scene.told("workers", "Acting", "Acting").await?;
    api.does(&json!({ "do": "expire" }))?;
    scene.logged(&controller, "too old resource version").await?;
    scene.kubelets.says("n3", false).await?;
    scene.event("n3", "Fenced", &controller).await?;
    api.does(&json!({ "do": "pass" }))?;
    scene.kubelets.says("n4", false).await?;
    scene.event("n4", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["n3", "n4"], "{}", controller.log());
    Ok(())
}
