//! An administrator's lock binds the CSI driver too.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::until;

use crate::story::scene::{ATTACHING, Login, scene, stuck};

/// A gateway that is an administrator locks the server before the off, and with that keeps everybody out who is a member of the project,
/// the CSI driver among them. Nothing is let go too early by that, but too late: a person gives the release of the pods up, and the
/// gateway, whom its lock does not bind, detaches. `docs/openstack-volumes.md` says which login is the right one.
#[tokio::test]
async fn an_administrator_s_lock_keeps_the_csi_driver_from_detaching() -> Result<()> {
    let scene = scene().await?;
    let attaching = ATTACHING.lock().await;
    let (here, there, database) = stuck(scene, "locked", ["n7", "n8"]).await?;
    let volume = database.volume();
    let driven = scene.gateway(Login::Administrator, &[here, there]).await?;
    let (_, proven) = driven.fence(here, &["--until", "confirmed"]).await?;
    let refused = async || {
        let asked = scene.detaches(here, volume)?;
        Ok(asked.iter().any(|one| !one.by_us && one.status == 409))
    };
    until("the CSI driver is refused", Duration::from_secs(120), refused).await?;
    driven.says(here, "left: ").await?;
    scene.is_at(volume, here).await?;

    let given_up = ["abandon", here.name(), "pods", "--yes", "--reason", "it is locked out"];
    let given_up = driven.gateway.picket(&given_up).await?;
    assert_eq!(given_up.code, 0, "{given_up:?}\n{}", driven.gateway.log());
    driven.says(here, "released").await?;
    database.runs_on(there.name()).await?;
    drop(attaching);
    let asked = scene.detaches(here, volume)?;
    let taken: Vec<_> = asked.iter().filter(|one| one.status == 202).collect();
    assert!(matches!(taken[..], [one] if one.by_us && one.at > proven), "{asked:#?}");
    let writers = database.writers();
    assert_eq!((writers.nodes(), writers.overlaps()), (vec![here.name(), there.name()], 0));
    Ok(())
}
