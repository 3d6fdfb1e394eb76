//! Two at once, and one against the other.

use picket_tests::Result;
use picket_tests::peers::Treatment;

use crate::aws::scene::{Scene, ec2};
use crate::scene::soon;

#[tokio::test]
async fn two_fences_at_once_are_one() -> Result<()> {
    let instance = ec2().await?.instance(&["/dev/sdf"]).await?;
    let scene = Scene::of(&instance, "").await?;
    let (one, other) = tokio::try_join!(scene.must_fence(), scene.must_fence())?;
    assert_eq!((one.kind(), other.kind()), ("fenced", "fenced"));
    let asked = scene.commands().await?;
    let actions: Vec<&str> = asked.iter().map(|one| one.action.as_str()).collect();
    assert_eq!(actions, ["CreateTags", "StopInstances", "DetachVolume"]);
    Ok(())
}

/// An unfence while the stop is under way waits for it, and then switches on: what was stopped late stays on.
#[tokio::test]
async fn an_unfence_in_the_middle_of_a_fence_comes_after_its_stop() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&["/dev/sdf"]).await?;
    let scene = Scene::of(&instance, "").await?;
    ec2.treat(&instance, &Treatment { stopping: 4.0, ..Treatment::default() }).await?;
    let mut asked = scene.gateway.asking("fence", "n1")?;
    soon("it is stopping", async || Ok(ec2.state(&instance).await? == "stopping")).await?;
    // Refused while nothing is proven, it is asked again until it is done.
    let unfence = ["unfence", "n1", "--yes", "--reason", "a test", "-o", "json", "--timeout", "60s"];
    soon("it comes back", async || Ok(scene.gateway.picket(&unfence).await?.out.contains("\"unfenced\"")))
        .await?;
    assert_eq!(ec2.state(&instance).await?, "running");
    let became: Vec<_> = ec2.became(&instance).await?.into_iter().map(|one| one.state).collect();
    let end = became.iter().rposition(|state| state == "stopped").expect("it was stopped");
    assert_eq!(became[end..], ["stopped", "pending", "running"], "nothing stopped it after that: {became:?}");
    let commands = scene.commands().await?;
    let at = |action: &str| commands.iter().rposition(|one| one.action == action).expect("it came");
    assert!(
        at("StopInstances") < at("DeleteTags") && at("DeleteTags") < at("StartInstances"),
        "{commands:?}"
    );
    scene.detached().await?;
    asked.start_kill().expect("it may have ended");
    Ok(())
}

/// A fence that comes while it is being brought back wins, with an off of its own.
#[tokio::test]
async fn a_fence_in_the_middle_of_an_unfence_wins() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&[]).await?;
    let scene = Scene::of(&instance, "").await?;
    scene.must_fence().await?;
    ec2.treat(&instance, &Treatment { pending: 4.0, ..Treatment::default() }).await?;
    let command = scene.gateway.command(&["unfence", "n1", "--yes", "--reason", "a test"])?;
    let mut unfencing = tokio::process::Command::from(command).kill_on_drop(true).spawn().expect("picket");
    soon("it is pending", async || Ok(ec2.state(&instance).await? == "pending")).await?;
    scene.must_fence().await?;
    assert_eq!(ec2.state(&instance).await?, "stopped");
    let commands = scene.commands().await?;
    let last = commands.iter().rfind(|one| !one.action.ends_with("Tags")).map(|one| one.action.as_str());
    assert_eq!(last, Some("StopInstances"), "{commands:?}");
    unfencing.start_kill().expect("it may have ended");
    Ok(())
}
