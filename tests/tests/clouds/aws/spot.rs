//! A spot instance: its request says whether EC2 would stop it, and that is told before a fence needs it.

use picket_tests::Result;
use serde_json::json;

use crate::aws::scene::{Scene, ec2};
use crate::scene::IMPATIENT;

/// What a check of it, or a plan, says, in one line.
async fn said(scene: &Scene, asked: &str) -> Result<String> {
    let said = scene.gateway.picket(&[asked, "n1"]).await?;
    Ok((said.out + &said.err).split_whitespace().collect::<Vec<_>>().join(" "))
}

/// EC2 refuses to stop one whose request is one-time, as its User Guide has it; moto stops it, and a rule refuses here.
#[tokio::test]
async fn a_one_time_spot_instance_is_not_ready_and_a_check_says_what_would_be_right() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.spot_instance("one-time").await?;
    let scene = Scene::of(&instance, IMPATIENT).await?;
    for asked in ["check", "plan"] {
        let said = said(&scene, asked).await?;
        for words in [
            "it is a spot instance whose request sir-",
            " is one-time: EC2 refuses to stop it",
            "launch it by a persistent request alone, or set terminate = true",
        ] {
            assert!(said.contains(words), "{asked}: no {words:?} in {said}");
        }
    }
    assert!(said(&scene, "check").await?.contains("0 of 1"));
    let refused = json!({ "code": "UnsupportedOperation", "message": "You can't stop that Spot Instance", "status": 400 });
    ec2.rule("StopInstances", &instance, 1_000_000, refused).await?;
    scene.fence_in_vain().await?;
    assert_eq!(ec2.state(&instance).await?, "running");
    Ok(())
}

#[tokio::test]
async fn a_persistent_spot_instance_is_ready_and_is_fenced() -> Result<()> {
    let instance = ec2().await?.spot_instance("persistent").await?;
    let scene = Scene::of(&instance, "").await?;
    let said = said(&scene, "check").await?;
    assert!(said.contains("1 of 1") && said.contains("starts again by itself"), "{said}");
    assert!(!said.contains("refuses to stop it"), "{said}");
    scene.must_fence().await?;
    Ok(())
}

/// Its settings say what else ends it.
#[tokio::test]
async fn a_one_time_spot_instance_that_is_to_be_terminated_is_ready() -> Result<()> {
    let instance = ec2().await?.spot_instance("one-time").await?;
    let scene = Scene::told(&instance, "terminate = true", "").await?;
    let said = said(&scene, "check").await?;
    assert!(said.contains("1 of 1") && said.contains("its off TERMINATES it"), "{said}");
    assert!(!said.contains("refuses to stop it"), "{said}");
    Ok(())
}
