//! What cannot be proven is left to a person, and nothing is let go.

use picket_tests::peers::{Ec2, Treatment};
use picket_tests::{Daemon, Fleet, Gateway, Result, picketd};
use serde_json::json;

use crate::aws::scene::{Scene, ec2, node};
use crate::scene::{IMPATIENT, QUICK};

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

/// What an auto-scaling group does with an instance that fails: it ends it, and makes another one of that name, with a volume of its own.
#[tokio::test]
async fn an_instance_that_was_replaced_is_off_by_its_id_and_its_successor_is_let_be() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&[]).await?;
    let scene = Scene::of(&instance, "").await?;
    ec2.switch(&instance, "terminated").await?;
    let heir = ec2.instance(&["/dev/sdf"]).await?;
    for one in [&instance, &heir] {
        ec2.label(one, json!({ "Name": "db-1" })).await?;
    }
    scene.must_fence().await?;
    assert!(ec2.asked(&heir).await?.is_empty(), "nobody asked it anything");
    assert_eq!(ec2.state(&heir).await?, "running");
    let volume = ec2.volume(&ec2.volumes(&heir).await?["/dev/sdf"]).await?;
    assert_eq!((volume.state.as_str(), volume.at), ("in-use", vec![heir]));
    Ok(())
}

/// None of these is a word of power, of a stop's end or of what is attached; all of it is asked again.
#[tokio::test]
async fn answers_that_are_cut_off_or_make_no_sense_are_never_off() -> Result<()> {
    for answer in ["cut", "garbled"] {
        let instance = ec2().await?.instance(&["/dev/sdf"]).await?;
        let scene = Scene::of(&instance, IMPATIENT).await?;
        scene.ec2.rule("DescribeInstances", &instance, 1_000_000, json!({ "do": answer })).await?;
        scene.fence_in_vain().await?;
        let instance = ec2().await?.instance(&["/dev/sdf"]).await?;
        let scene = Scene::of(&instance, "").await?;
        scene.ec2.rule("StopInstances", &instance, 1, json!({ "do": answer })).await?;
        scene.ec2.rule("DescribeInstances", &instance, 2, json!({ "do": answer })).await?;
        let told = scene.must_fence().await?;
        assert_eq!(scene.detached_once_proven(&told).await?.len(), 1, "{answer}");
    }
    Ok(())
}

/// Whose silence is everybody's, and who is told where nobody answers.
#[tokio::test]
async fn an_ec2_that_does_not_answer_says_nothing_of_power() -> Result<()> {
    let alone = Ec2::start().await?;
    let instance = alone.instance(&["/dev/sdf"]).await?;
    let files = alone.files("alone", &alone.picket().await?)?;
    let node = node(&alone, files, &format!("aws:///eu-central-1a/{instance}"));
    let rules = "device_call = \"2s\"\n";
    let mut gateway =
        Gateway::of(Daemon::Shipped, &Fleet::new().with(&format!("{QUICK}{IMPATIENT}{rules}{node}")))?;
    gateway.begin(&[]).await?;
    gateway.checked().await?;
    alone.silence(true).await?;
    let told = gateway.tells("fence", "n1").await?;
    let is = (told.kind(), told.reason());
    assert_eq!(is, ("needs_operator", "levels_spent"), "{told:#?}\n{}", gateway.log());
    alone.silence(false).await?;
    assert_eq!(alone.state(&instance).await?, "running");
    assert!(alone.asked_to("DetachVolume", &instance).await?.is_empty());
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

/// A person's login in a browser serves no gateway: that is told before anybody is asked.
#[tokio::test]
async fn a_profile_that_logs_in_by_sso_is_told_by_the_check() -> Result<()> {
    let ec2 = ec2().await?;
    let config = "[default]\nregion = eu-central-1\nsso_session = work\nsso_account_id = 123456789012\nsso_role_name = r\n\
                  [sso-session work]\nsso_region = eu-central-1\nsso_start_url = https://x.awsapps.com/start\n";
    let files = ec2.written("by-sso", config, "")?;
    let home = tempfile::tempdir().expect("a directory");
    let settings = home.path().join("picket.toml");
    let head = "[store]\nkind = \"memory\"\n[listen]\nunix = \"/run/picket-test.sock\"\n";
    let text = format!("{head}{}", node(ec2, files, "aws:///eu-central-1a/i-0123456789abcdef0"));
    std::fs::write(&settings, text).expect("written");
    let checked = picketd(&settings, &["--check"], &[]).await?;
    let words = "the profile \"default\" has sso_session, which is a person's login in a browser";
    assert!(checked.code == 78 && checked.err.contains(words), "{checked:?}");
    Ok(())
}
