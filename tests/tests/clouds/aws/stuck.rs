//! Volumes that do not go: for ever, or by force alone, or as nobody may let them go.

use picket_tests::peers::{Ec2Request, Treatment};
use picket_tests::{Result, Told};
use serde_json::json;

use crate::aws::scene::{Scene, ec2};

/// A person is asked soon.
const SOON: &str = "deadline = \"12s\"\nattempt = \"5s\"";

/// It is proven off, and a person is told that a volume is left: which, and why.
fn is_left(told: &Told, volume: &str, why: &str) {
    let reason = &told.result["outcome"]["reason"];
    assert_eq!((told.kind(), reason), ("needs_operator", &json!("release_deadline")), "{:#?}", told.result);
    let detail = told.result["outcome"]["detail"].as_str().unwrap_or_default();
    assert!(detail.contains(volume) && detail.contains(why), "{detail}");
    assert_ne!(told.release(volume)["stage"], "complete", "{:#?}", told.result);
}

#[tokio::test]
async fn a_volume_that_never_goes_is_left_to_a_person_and_no_other_waits_for_it() -> Result<()> {
    let instance = ec2().await?.instance(&["/dev/sdf", "/dev/sdg"]).await?;
    let scene = Scene::releasing(&instance, SOON).await?;
    let volumes = scene.ec2.volumes(&instance).await?;
    let (stuck, goes) = (&volumes["/dev/sdf"], &volumes["/dev/sdg"]);
    scene.ec2.rule("DetachVolume", stuck, 1_000_000, json!({ "do": "unheeded" })).await?;
    let told = scene.fence().await?;
    is_left(&told, stuck, "attached");
    assert_eq!(told.release(goes)["stage"], "complete", "{:#?}", told.result);
    assert_eq!(scene.ec2.volume(goes).await?.state, "available");
    assert_eq!(scene.ec2.volume(stuck).await?.at, std::slice::from_ref(&instance));
    // Who mends it has it tried again.
    scene.ec2.mend(stuck).await?;
    scene.gateway.retry("n1").await?;
    let again = scene.fence().await?;
    assert_eq!(again.result["outcome"]["released"], true, "{:#?}", again.result);
    assert_eq!(scene.ec2.volume(stuck).await?.state, "available");
    scene.detached_once_proven(&told).await?;
    Ok(())
}

#[tokio::test]
async fn force_comes_at_last_and_only_where_the_settings_allow_it() -> Result<()> {
    let ec2 = ec2().await?;
    let made = ec2.instances(2, &["/dev/sdf"]).await?;
    let by_force = Treatment { detaching: 1_000.0, ..Treatment::default() };
    let fenced = async |instance: &String, force: &str| {
        let scene = Scene::releasing(instance, &format!("{force}{SOON}")).await?;
        ec2.treat(instance, &by_force).await?;
        Result::Ok((scene.fence().await?, scene))
    };
    let ((forced, _), (left, never)) =
        tokio::try_join!(fenced(&made[0], "force = \"at_last\"\n"), fenced(&made[1], ""))?;

    let volumes = ec2.volumes(&made[1]).await?;
    is_left(&left, &volumes["/dev/sdf"], "detaching");
    // None of them by force, which that looks at, too.
    assert_eq!(never.detached().await?.len(), 1);

    assert_eq!(
        (forced.kind(), &forced.result["outcome"]["released"]),
        ("fenced", &json!(true)),
        "{forced:#?}"
    );
    assert!(ec2.volumes(&made[0]).await?.is_empty());
    let is_forced = |one: &Ec2Request| one.fields.get("Force").is_some_and(|force| force == "true");
    let asked = ec2.asked_to("DetachVolume", &made[0]).await?;
    let first = asked.iter().position(is_forced).unwrap_or_else(|| panic!("by force: {asked:#?}"));
    assert_eq!(asked.iter().filter(|one| is_forced(one)).count(), 1, "once: {asked:#?}");
    let proven = forced.proven_at_seconds().expect("it was proven off");
    assert!(first > 0 && asked[0].at > proven, "{proven}: {asked:#?}");
    assert!(asked[first].at - asked[0].at >= 4.0, "half of the deadline passed before that: {asked:#?}");
    Ok(())
}

#[tokio::test]
async fn who_may_not_detach_it_is_told_which_action_is_missing() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&["/dev/sdf"]).await?;
    let volume = ec2.volumes(&instance).await?["/dev/sdf"].clone();
    let may: Vec<String> = picket_tests::peers::Ec2::policy();
    let may: Vec<&str> = may.iter().map(String::as_str).filter(|one| *one != "ec2:DetachVolume").collect();
    let key = ec2.user(&may).await?;
    let scene = Scene::releasing_by(&key, &instance, SOON).await?;
    let told = scene.fence().await?;
    is_left(&told, &volume, "ec2:DetachVolume is missing in the policy");
    assert_eq!(ec2.volume(&volume).await?.at, std::slice::from_ref(&instance));
    Ok(())
}
