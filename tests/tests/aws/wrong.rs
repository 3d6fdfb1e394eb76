//! What cannot be proven is left to a person, and nothing is let go.

use picket_tests::Result;
use picket_tests::peers::Treatment;
use serde_json::json;

use crate::scene::{IMPATIENT, Scene, ec2};

#[tokio::test]
async fn an_instance_that_never_ends_stopping_is_not_off() -> Result<()> {
    let instance = ec2().await?.instance(&["/dev/sdf"]).await?;
    let scene = Scene::of(&instance, IMPATIENT).await?;
    scene.ec2.treat(&instance, &Treatment { stops: Some(1_000), ..Treatment::default() }).await?;
    scene.fence_in_vain().await?;
    assert_eq!(scene.ec2.state(&instance).await?, "stopping");
    Ok(())
}

#[tokio::test]
async fn an_instance_that_is_gone_is_not_off() -> Result<()> {
    let instance = ec2().await?.instance(&["/dev/sdf"]).await?;
    let scene = Scene::of(&instance, IMPATIENT).await?;
    let words = format!("The instance ID '{instance}' does not exist");
    let gone = json!({ "code": "InvalidInstanceID.NotFound", "message": words });
    scene.ec2.rule("*", &instance, 1_000_000, gone).await?;
    scene.fence_in_vain().await?;
    Ok(())
}

#[tokio::test]
async fn who_may_not_stop_it_is_told_which_action_is_missing() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&["/dev/sdf"]).await?;
    let key = ec2.user(&["ec2:DescribeInstances", "ec2:DescribeInstanceAttribute", "ec2:CreateTags"]).await?;
    let scene = Scene::by(&key, &instance, IMPATIENT).await?;
    scene.fence_in_vain().await?;
    assert_eq!(ec2.state(&instance).await?, "running");
    let log = scene.gateway.log();
    assert!(log.contains("ec2:StopInstances is missing in the policy"), "{log}");
    assert!(!log.contains(&key.secret), "{log}");
    Ok(())
}

#[tokio::test]
async fn what_may_not_be_stopped_and_what_a_group_replaces_is_said_before_it_matters() -> Result<()> {
    let instance = ec2().await?.instance(&["/dev/sdf"]).await?;
    ec2().await?.protect(&instance, "web").await?;
    let scene = Scene::of(&instance, IMPATIENT).await?;
    for asked in [["check", "n1"], ["plan", "n1"]] {
        let said = scene.gateway.picket(&asked).await?;
        let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("its disableApiStop is set: EC2 refuses to stop it"), "{asked:?}: {said:?}");
        assert!(words.contains("auto-scaling group \"web\""), "{asked:?}: {said:?}");
    }
    scene.fence_in_vain().await?;
    assert_eq!(scene.ec2.state(&instance).await?, "running");
    Ok(())
}
