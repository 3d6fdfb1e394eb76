//! Volumes of an instance that is proven off are let go, each named with the instance and its device, and the root stays.

use picket_tests::Result;
use picket_tests::peers::Treatment;
use serde_json::json;

use crate::aws::scene::{Scene, ec2};
use crate::scene::soon;

#[tokio::test]
async fn the_volumes_of_a_fenced_instance_are_free_and_its_root_is_not() -> Result<()> {
    let instance = ec2().await?.instance(&["/dev/sdf", "/dev/sdg"]).await?;
    let scene = Scene::of(&instance, "").await?;
    let volumes = scene.ec2.volumes(&instance).await?;
    assert_eq!(volumes.len(), 2, "{volumes:?}");
    scene.ec2.treat(&instance, &Treatment { detaching: 1.5, ..Treatment::default() }).await?;
    // One of them is refused the first time.
    let limited = json!({ "code": "RequestLimitExceeded", "status": 503 });
    scene.ec2.rule("DetachVolume", &volumes["/dev/sdg"], 1, limited).await?;
    let fenced = scene.must_fence().await?;
    for volume in volumes.values() {
        let told = scene.ec2.volume(volume).await?;
        assert_eq!((told.state.as_str(), told.at.len()), ("available", 0), "{volume}");
    }
    let detached = scene.detached_once_proven(&fenced).await?;
    for one in &detached {
        let field = |key: &str| one.fields.get(key).cloned().unwrap_or_default();
        assert_eq!(volumes.get(&field("Device")), Some(&field("VolumeId")), "{one:?}");
    }
    let root = scene.ec2.volume(&scene.ec2.root(&instance).await?).await?;
    assert_eq!((root.state.as_str(), root.at), ("in-use", vec![instance]), "its root");
    let taken = detached.iter().filter(|one| one.status == 200).count();
    assert_eq!((taken, detached.len()), (2, 3), "each was taken once: {detached:#?}");
    Ok(())
}

#[tokio::test]
async fn what_the_settings_exclude_by_tag_name_or_id_stays() -> Result<()> {
    let ec2 = ec2().await?;
    let devices = ["/dev/sdf", "/dev/sdg", "/dev/sdh", "/dev/sdi"];
    let instance = ec2.instance(&devices).await?;
    let volumes = ec2.volumes(&instance).await?;
    let [by_tag, by_name, by_id, goes] = devices.map(|device| volumes[device].clone());
    ec2.label(&by_tag, json!({ "picket": "stay" })).await?;
    ec2.label(&by_name, json!({ "Name": "scratch-1" })).await?;
    ec2.label(&goes, json!({ "Name": "pvc-1", "picket": "go" })).await?;
    let exclude =
        format!("exclude = {{ tag = [\"picket=stay\"], name = [\"scratch-*\"], id = [{by_id:?}] }}");
    let scene = Scene::releasing(&instance, &exclude).await?;
    let fenced = scene.must_fence().await?;
    let detached = scene.detached_once_proven(&fenced).await?;
    let named: Vec<_> = detached.iter().map(|one| one.fields["VolumeId"].clone()).collect();
    assert_eq!(named, std::slice::from_ref(&goes));
    assert_eq!(ec2.volume(&goes).await?.state, "available");
    for stays in [by_tag, by_name, by_id] {
        assert_eq!(ec2.volume(&stays).await?.at, std::slice::from_ref(&instance));
    }
    Ok(())
}

/// Somebody detaches one of them by hand while it is being stopped, and attaches it elsewhere: it is theirs.
#[tokio::test]
async fn a_volume_that_is_attached_elsewhere_meanwhile_stays_there() -> Result<()> {
    let ec2 = ec2().await?;
    let [instance, other] = &ec2.instances(2, &["/dev/sdf", "/dev/sdg"]).await?[..] else { panic!("two") };
    let scene = Scene::of(instance, "").await?;
    let volumes = ec2.volumes(instance).await?;
    ec2.treat(instance, &Treatment { stopping: 6.0, ..Treatment::default() }).await?;
    let moved = async {
        soon("it is stopping", async || Ok(ec2.state(instance).await? == "stopping")).await?;
        ec2.detach(instance, &volumes["/dev/sdf"], "/dev/sdf").await?;
        ec2.attach(other, &volumes["/dev/sdf"], "/dev/sdh").await
    };
    let (told, ()) = tokio::try_join!(scene.must_fence(), moved)?;
    assert_eq!(told.kind(), "fenced");
    assert_eq!(
        ec2.volume(&volumes["/dev/sdf"]).await?.at,
        std::slice::from_ref(other),
        "its new owner has it"
    );
    assert_eq!(ec2.volume(&volumes["/dev/sdg"]).await?.state, "available");
    let named: Vec<_> = scene.detached().await?.iter().map(|one| one.fields["VolumeId"].clone()).collect();
    assert_eq!(named, [volumes["/dev/sdg"].clone()], "nobody was asked to let the other go");
    Ok(())
}

/// One that goes by hand in the middle of its own detach is gone, too.
#[tokio::test]
async fn a_volume_that_is_detached_by_hand_meanwhile_is_let_go() -> Result<()> {
    let ec2 = ec2().await?;
    let instance = ec2.instance(&["/dev/sdf"]).await?;
    let scene = Scene::of(&instance, "").await?;
    let volume = ec2.volumes(&instance).await?["/dev/sdf"].clone();
    // None of ours is taken before that; and after it EC2 says that it is not there.
    let busy = json!({ "code": "RequestLimitExceeded", "status": 503 });
    ec2.rule("DetachVolume", &volume, 2, busy).await?;
    let by_hand = async {
        soon("it is asked for", async || Ok(!ec2.asked_to("DetachVolume", &volume).await?.is_empty()))
            .await?;
        ec2.detach(&instance, &volume, "/dev/sdf").await
    };
    tokio::try_join!(scene.must_fence(), by_hand)?;
    assert_eq!(ec2.volume(&volume).await?.state, "available");
    assert!(scene.detached().await?.iter().all(|one| one.status != 200), "none of ours was taken");
    Ok(())
}
