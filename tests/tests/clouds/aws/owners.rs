//! Volumes with several owners (io2, multi-attach): the fenced one alone loses them.

use picket_tests::Result;
use picket_tests::peers::Treatment;

use crate::aws::scene::{Scene, ec2};
use crate::scene::soon;

#[tokio::test]
async fn a_volume_of_two_is_let_go_by_the_fenced_one_alone() -> Result<()> {
    let ec2 = ec2().await?;
    let [instance, other] = &ec2.instances(2, &["/dev/sdf"]).await?[..] else { panic!("two") };
    let shared = ec2.volumes(instance).await?["/dev/sdf"].clone();
    let others = ec2.volumes(other).await?["/dev/sdf"].clone();
    ec2.share(other, &shared, "/dev/sdg").await?;
    // The other way round, and at a device of the same name.
    ec2.share(instance, &others, "/dev/sdg").await?;
    assert_eq!(ec2.volume(&shared).await?.at, [instance.clone(), other.clone()]);
    let scene = Scene::of(instance, "").await?;
    let told = scene.must_fence().await?;
    assert_eq!(told.kind(), "fenced");
    for volume in [&shared, &others] {
        let left = ec2.volume(volume).await?;
        assert_eq!((left.state.as_str(), &left.at[..]), ("in-use", std::slice::from_ref(other)), "{volume}");
    }
    assert_eq!(scene.detached().await?.len(), 2, "each once");
    assert!(ec2.asked_to("DetachVolume", other).await?.is_empty());
    assert_eq!(ec2.state(other).await?, "running");
    Ok(())
}

/// While the fenced one is losing it, one owner goes and another one comes.
#[tokio::test]
async fn owners_come_and_go_while_the_fenced_one_loses_it() -> Result<()> {
    let ec2 = ec2().await?;
    let [instance, leaves, comes] = &ec2.instances(3, &[]).await?[..] else { panic!("three") };
    let volume = ec2.volumes(&ec2.instance(&["/dev/sdh"]).await?).await?["/dev/sdh"].clone();
    let first = ec2.volume(&volume).await?.at.remove(0);
    ec2.share(instance, &volume, "/dev/sdf").await?;
    ec2.share(leaves, &volume, "/dev/sdf").await?;
    ec2.treat(instance, &Treatment { detaching: 4.0, ..Treatment::default() }).await?;
    let scene = Scene::of(instance, "").await?;
    let others = async {
        soon("it is going", async || Ok(!ec2.asked_to("DetachVolume", instance).await?.is_empty())).await?;
        ec2.detach(leaves, &volume, "/dev/sdf").await?;
        ec2.share(comes, &volume, "/dev/sdf").await
    };
    let (told, ()) = tokio::try_join!(scene.must_fence(), others)?;
    assert_eq!(told.kind(), "fenced");
    assert_eq!(ec2.volume(&volume).await?.at, [first, comes.clone()]);
    assert_eq!(scene.detached().await?.len(), 1, "once");
    Ok(())
}
