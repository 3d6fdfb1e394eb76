//! Instances that are terminated, where their settings say so: only once EC2 was read to keep what is to be kept. And one whose memory
//! is kept.

use picket_tests::Result;
use picket_tests::peers::Ec2Request;
use serde_json::json;

use crate::aws::scene::{Scene, ec2};
use crate::scene::IMPATIENT;

const TERMINATE: &str = "terminate = true";

fn names(asked: &[Ec2Request]) -> Vec<&str> {
    asked.iter().map(|one| one.action.as_str()).collect()
}

/// An instance all of whose volumes EC2 would delete with it: its root's, and the one at `/dev/sdf`.
async fn doomed() -> Result<(String, [String; 2])> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&["/dev/sdf"]).await?;
    ec2.goes_with(&instance, "/dev/sdf", true).await?;
    let volumes = [ec2.root(&instance).await?, ec2.volumes(&instance).await?["/dev/sdf"].clone()];
    Ok((instance, volumes))
}

#[tokio::test]
async fn an_instance_is_terminated_once_every_volume_of_it_is_kept() -> Result<()> {
    let (instance, volumes) = doomed().await?;
    let scene = Scene::told(&instance, TERMINATE, "").await?;
    for asked in [["check", "n1"], ["plan", "n1"]] {
        let said = scene.gateway.picket(&asked).await?;
        let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("its off TERMINATES it") && words.contains("deleted with it: nothing"),
            "{said:?}"
        );
    }
    scene.must_fence().await?;
    assert_eq!(scene.ec2.state(&instance).await?, "terminated");
    for volume in &volumes {
        let kept = scene.ec2.volume(volume).await?;
        assert_eq!((kept.state.as_str(), kept.at.len()), ("available", 0), "{volume}");
    }
    assert_eq!(
        names(&scene.commands().await?)[..3],
        ["CreateTags", "ModifyInstanceAttribute", "TerminateInstances"]
    );
    let asked = scene.ec2.asked(&instance).await?;
    let at = |action: &str| asked.iter().position(|one| one.action == action).expect("it came");
    let between = &asked[at("ModifyInstanceAttribute")..at("TerminateInstances")];
    assert!(names(between).contains(&"DescribeInstances"), "it was read back: {between:#?}");
    for end in asked.iter().filter(|one| one.action == "TerminateInstances") {
        let field = |key: &str| end.fields.get(key).map(String::as_str);
        assert_eq!((field("Force"), field("SkipOsShutdown")), (Some("true"), Some("true")), "{end:?}");
    }
    assert!(scene.stops().await?.is_empty(), "it is not stopped first");
    Ok(())
}

#[tokio::test]
async fn what_the_settings_give_away_goes_with_it_and_nothing_else() -> Result<()> {
    let (instance, [root, data]) = doomed().await?;
    let scene = Scene::told(&instance, "terminate = true\nterminate_deletes = [\"/dev/sda1\"]", "").await?;
    scene.must_fence().await?;
    assert_eq!(scene.ec2.state(&instance).await?, "terminated");
    assert!(scene.ec2.volume(&root).await.is_err(), "there is none any more");
    assert_eq!(scene.ec2.volume(&data).await?.state, "available");
    Ok(())
}

/// EC2 answers well to what keeps the volumes, and does not do it.
#[tokio::test]
async fn an_instance_whose_volumes_are_not_read_to_be_kept_is_not_terminated() -> Result<()> {
    let (instance, volumes) = doomed().await?;
    let scene = Scene::told(&instance, TERMINATE, IMPATIENT).await?;
    scene.ec2.rule("ModifyInstanceAttribute", &instance, 1_000_000, json!({ "do": "unheeded" })).await?;
    scene.fence_in_vain().await?;
    assert_eq!(scene.ec2.state(&instance).await?, "running");
    assert!(scene.ec2.asked_to("TerminateInstances", &instance).await?.is_empty());
    for volume in &volumes {
        assert_eq!(scene.ec2.volume(volume).await?.at, std::slice::from_ref(&instance));
    }
    let log = scene.gateway.log();
    assert!(log.contains("EC2 does not say that the volume at /dev/sda1, /dev/sdf is kept"), "{log}");
    Ok(())
}

/// Its memory is kept: it would go on where it was, with what it had not written yet.
#[tokio::test]
async fn what_was_hibernated_is_not_off_and_loses_nothing() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&["/dev/sdf"]).await?;
    let volume = ec2.volumes(&instance).await?["/dev/sdf"].clone();
    ec2.hibernate(&instance).await?;
    let scene = Scene::of(&instance, IMPATIENT).await?;
    let said = scene.gateway.picket(&["check", "n1"]).await?;
    assert!(said.out.contains("it may be hibernated"), "{said:?}");
    scene.fence_in_vain().await?;
    assert!(scene.stops().await?.iter().all(|stop| !stop.fields.contains_key("Hibernate")));
    assert_eq!(ec2.volume(&volume).await?.at, [instance]);
    Ok(())
}
