//! Controllers that start anew, and two beside each other.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::until;
use serde_json::json;

use crate::controller::scene::Scene;

fn quick() -> serde_json::Value {
    json!({
        "unhealthyConditions": [
            { "type": "Ready", "status": "False", "forSeconds": 6 },
            { "type": "Ready", "status": "Unknown", "forSeconds": 6 },
        ],
    })
}

#[tokio::test]
async fn one_that_starts_anew_joins_the_fence_that_it_had_asked_for() -> Result<()> {
    let scene = Scene::open().await?;
    scene.policy(&quick()).await?;
    let mut first = scene.controller("one")?;
    scene.told("workers", "Acting", "Acting").await?;
    scene.kubelets.says("n2", false).await?;
    scene.event("n2", "FenceAsked", &first).await?;
    first.kill();
    let second = scene.controller("one")?;
    scene.logged(&second, "\"Fenced\"").await?;
    drop(second);
    let third = scene.controller("one")?;
    // Also where it is through, the answer is that of the same fence.
    scene.logged(&third, "\"Fenced\"").await?;
    assert_eq!(scene.fences().await?, ["n2"], "{}", third.log());
    let keys = scene.events("FenceAsked").await?;
    assert!(keys.len() >= 3 && keys.windows(2).all(|two| two[0] == two[1]), "{keys:?}");
    Ok(())
}

#[tokio::test]
async fn of_two_one_asks_and_the_other_goes_on_where_it_dies() -> Result<()> {
    let scene = Scene::open().await?;
    scene.policy(&quick()).await?;
    let mut first = scene.controller("one")?;
    scene.logged(&first, "this replica leads").await?;
    let second = scene.controller("two")?;
    scene.told("workers", "Acting", "Acting").await?;
    scene.kubelets.says("n3", false).await?;
    scene.event("n3", "Fenced", &first).await?;
    assert_eq!((first.asked(), second.asked()), (1, 0), "{}", second.log());
    assert!(!second.log().contains("this replica leads"));

    first.kill();
    scene.logged(&second, "this replica leads").await?;
    scene.kubelets.says("n4", false).await?;
    scene.event("n4", "Fenced", &second).await?;
    until("it has looked after n3 too", Duration::from_secs(60), async || Ok(second.asked() == 2)).await?;
    assert_eq!(scene.fences().await?, ["n3", "n4"]);
    Ok(())
}

#[tokio::test]
async fn where_no_gateway_answers_it_is_asked_again_until_one_does() -> Result<()> {
    let mut scene = Scene::open().await?;
    scene.policy(&quick()).await?;
    let controller = scene.controller("one")?;
    scene.told("workers", "Acting", "Acting").await?;
    scene.gateway.kill();
    scene.kubelets.says("n1", false).await?;
    scene.event("n1", "GatewaysUnreachable", &controller).await?;
    // The note is written after the Event, and anew with each time that it is asked for.
    let is_noted = async || Ok(scene.note("n1").await?["phase"] == "Blocked");
    until("the note says that it is blocked", Duration::from_secs(60), is_noted).await?;
    scene.gateway.begin(&[]).await?;
    scene.event("n1", "Fenced", &controller).await?;
    assert_eq!(scene.fences().await?, ["n1"]);
    Ok(())
}
