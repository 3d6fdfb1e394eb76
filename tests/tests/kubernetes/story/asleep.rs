//! Who detaches is away: the second release has hands of its own.

use std::time::Duration;

use picket_tests::peers::until;
use picket_tests::{Result, soak};

use crate::story::scene::{ATTACHING, DEADLINE, Login, OUT_OF_SERVICE, WITHIN, scene, stuck, taints, told};

/// The CSI controller sleeps, so that the release of the pods waits, and the volume hangs at a server that is off. Once that release's time is
/// over (in a soak: it is eight minutes at least), or a person gives it up by name (beside the other tests), the next one detaches by itself, once.
/// When the CSI controller wakes it finds nothing to detach, and attaches to the other server.
#[tokio::test]
async fn while_the_csi_controller_sleeps_the_gateway_detaches_once_in_its_place() -> Result<()> {
    let scene = scene().await?;
    let attaching = ATTACHING.lock().await;
    let (here, there, database) = stuck(scene, "asleep", ["n3", "n4"]).await?;
    let (cluster, volume) = (&scene.cluster, database.volume());
    let driven = scene.gateway(Login::Member, &[here, there]).await?;
    let asleep = cluster.stop_csi_controller();

    let (_, proven) = driven.fence(here, &["--until", "confirmed"]).await?;
    driven.says(here, "left: ").await?;
    assert!(taints(&cluster.node(here).await?).contains(&OUT_OF_SERVICE));
    scene.is_at(volume, here).await?;
    assert!(scene.detaches(here, volume)?.is_empty(), "a volume of the CSI driver's is its own");

    if soak() {
        driven.says_within(here, "passed on to volumes", DEADLINE + WITHIN).await?;
    } else {
        let given_up = ["abandon", here.name(), "pods", "--yes", "--reason", "the CSI controller is away"];
        let given_up = driven.gateway.picket(&given_up).await?;
        assert_eq!(given_up.code, 0, "{given_up:?}\n{}", driven.gateway.log());
        driven.says(here, "released").await?;
        assert!(
            !taints(&cluster.node(here).await?).contains(&OUT_OF_SERVICE),
            "it went before the release did"
        );
    }
    scene.cloud.until_volume(volume, "available").await?;
    assert!(!here.runs(), "it is kept off");
    let asked = scene.detaches(here, volume)?;
    let is_one = matches!(asked[..], [ref one] if one.status == 202 && one.by_us && one.at > proven);
    assert!(is_one, "{proven:?}: {asked:#?}");
    assert_eq!(scene.attachments(here).await?, 1, "its object waits for the CSI controller");
    assert!(scene.did(there)?.is_empty(), "and nothing is attached twice");

    drop(asleep);
    until("the object is gone", Duration::from_secs(120), async || Ok(scene.attachments(here).await? == 0))
        .await?;
    database.runs_on(there.name()).await?;
    scene.is_at(volume, there).await?;
    driven.says(here, "released").await?;
    drop(attaching);
    let did: Vec<String> = scene.did(here)?.into_iter().map(|effect| effect.did).collect();
    assert_eq!(did, ["attach", "power_off", "detach"]);
    assert_eq!(scene.detaches(here, volume)?.len(), 1, "there was nothing left to detach");
    let by_csi: Vec<String> = told(&database).into_iter().map(|(what, _)| what).collect();
    assert_eq!(by_csi, ["attach", "mount", "attach", "mount"]);
    let writers = database.writers();
    assert_eq!((writers.nodes(), writers.overlaps()), (vec![here.name(), there.name()], 0));
    assert_eq!(writers.after(proven).of(here.name()).0, []);

    driven.unfence(here).await?;
    assert_eq!(database.writers().changes(), 1, "who is back does not write");
    scene.is_at(volume, there).await
}
