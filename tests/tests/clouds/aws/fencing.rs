//! An instance is fenced, and comes back.

use picket_tests::Result;
use picket_tests::peers::Treatment;
use serde_json::json;

use crate::aws::scene::{Scene, ec2};

#[tokio::test]
async fn an_instance_is_tagged_stopped_by_force_and_started_again() -> Result<()> {
    let instance = ec2().await?.instance(&[]).await?;
    let scene = Scene::of(&instance, "").await?;
    scene.ec2.treat(&instance, &Treatment { stopping: 1.5, pending: 1.0, ..Treatment::default() }).await?;
    scene.must_fence().await?;
    assert_eq!(scene.ec2.state(&instance).await?, "stopped");
    let tag = ("picket-fenced".to_owned(), "picket".to_owned());
    assert_eq!(scene.ec2.tags(&instance).await?, [tag].into());
    assert_eq!(scene.stops().await?.len(), 1);

    let back = scene.unfence().await?;
    assert_eq!(back.kind(), "unfenced", "{:#?}\n{}", back.result, scene.gateway.log());
    assert_eq!(scene.ec2.state(&instance).await?, "running");
    assert!(scene.ec2.tags(&instance).await?.is_empty());
    let asked = scene.ec2.asked(&instance).await?;
    let commands: Vec<&str> = asked
        .iter()
        .map(|one| one.action.as_str())
        .filter(|action| !action.starts_with("Describe"))
        .collect();
    assert_eq!(commands, ["CreateTags", "StopInstances", "DeleteTags", "StartInstances"]);
    Ok(())
}

#[tokio::test]
async fn what_is_stopped_already_is_told_all_the_same_and_proven_by_the_long_window() -> Result<()> {
    let instance = ec2().await?.instance(&[]).await?;
    let scene = Scene::of(&instance, "").await?;
    scene.ec2.switch(&instance, "stopped").await?;
    scene.must_fence().await?;
    assert!(scene.stops().await?.len() >= 2, "the window is sealed by another one");
    Ok(())
}

#[tokio::test]
async fn a_stop_that_lasts_is_sent_again_after_half_a_minute() -> Result<()> {
    let instance = ec2().await?.instance(&[]).await?;
    let scene = Scene::of(&instance, "").await?;
    scene.ec2.treat(&instance, &Treatment { stops: Some(2), ..Treatment::default() }).await?;
    scene.must_fence().await?;
    let stops = scene.stops().await?;
    assert!(stops.len() >= 2 && stops[1].at - stops[0].at >= 30.0, "{stops:#?}");
    Ok(())
}

#[tokio::test]
async fn a_stop_whose_answer_is_lost_is_sent_again() -> Result<()> {
    let instance = ec2().await?.instance(&[]).await?;
    let scene = Scene::of(&instance, "").await?;
    scene.ec2.rule("StopInstances", &instance, 1, json!({ "do": "lost" })).await?;
    scene.must_fence().await?;
    assert!(scene.stops().await?.len() >= 2);
    Ok(())
}

#[tokio::test]
async fn what_is_refused_by_limits_is_sent_again() -> Result<()> {
    let instance = ec2().await?.instance(&[]).await?;
    let scene = Scene::of(&instance, "").await?;
    let limited = json!({ "code": "RequestLimitExceeded", "status": 503 });
    scene.ec2.rule("StopInstances", &instance, 2, limited.clone()).await?;
    scene.ec2.rule("DescribeInstances", &instance, 2, limited).await?;
    scene.must_fence().await?;
    let stops = scene.stops().await?;
    assert_eq!(stops.iter().map(|stop| stop.status).collect::<Vec<_>>(), [503, 503, 200]);
    Ok(())
}

/// The policy that is shipped denies a start while the tag is there, and IAM sees late that it is gone.
#[tokio::test]
async fn a_start_that_is_denied_right_after_the_untagging_is_sent_again() -> Result<()> {
    let instance = ec2().await?.instance(&[]).await?;
    let scene = Scene::of(&instance, "").await?;
    scene.ec2.keep_off(&instance, 4).await?;
    scene.must_fence().await?;
    let back = scene.unfence().await?;
    assert_eq!(back.kind(), "unfenced", "{:#?}\n{}", back.result, scene.gateway.log());
    assert_eq!(scene.ec2.state(&instance).await?, "running");
    let starts = scene.ec2.asked_to("StartInstances", &instance).await?;
    let (last, denied) = starts.split_last().expect("it was started");
    assert_eq!(last.status, 200);
    assert!(!denied.is_empty() && denied.iter().all(|one| one.status == 403), "{starts:#?}");
    assert!(scene.gateway.log().contains("which IAM may not have seen yet"), "{}", scene.gateway.log());
    Ok(())
}
