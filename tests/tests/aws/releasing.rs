//! Volumes of an instance that is proven off are let go, each named with the instance and its device, and the root stays.

use picket_tests::Result;
use picket_tests::peers::Treatment;
use serde_json::json;

use crate::scene::{Scene, ec2};

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
    scene.must_fence().await?;
    for volume in volumes.values() {
        let told = scene.ec2.volume(volume).await?;
        assert_eq!((told.state.as_str(), told.at.len()), ("available", 0), "{volume}");
    }
    let stopped_at = scene.stops().await?[0].at;
    let detached = scene.ec2.asked_to("DetachVolume", &instance).await?;
    for one in &detached {
        let field = |key: &str| one.fields.get(key).cloned().unwrap_or_default();
        assert_eq!(volumes.get(&field("Device")), Some(&field("VolumeId")), "{one:?}");
        assert!(
            one.at > stopped_at && field("InstanceId") == instance && field("Force").is_empty(),
            "{one:?}"
        );
    }
    let taken = detached.iter().filter(|one| one.status == 200).count();
    assert_eq!((taken, detached.len()), (2, 3), "each was taken once: {detached:#?}");
    Ok(())
}
