//! A volume goes from a server that was stopped to another.

use picket_tests::Result;
use picket_tests::peers::{OPENSTACK_HOSTS, Who};
use serde_json::json;

use crate::openstack::scene::{cloud, newest};

#[tokio::test]
async fn a_volume_of_a_stopped_server_is_detached_and_attached_elsewhere() -> Result<()> {
    let cloud = cloud().await?;
    let [here, there, ..] = OPENSTACK_HOSTS;
    let (server, other) = (cloud.server("first", here).await?, cloud.server("second", there).await?);
    let volume = cloud.volume("data").await?;
    cloud.attach(&server, &volume).await?;
    assert_eq!(cloud.runs_on(&server)?, [here]);

    cloud.ask(&Who::Tenant, "stop", json!({ "server": server })).await?;
    cloud.until_server(&server, "SHUTOFF").await?;
    assert!(cloud.runs_on(&server)?.is_empty());
    let look = cloud.look(&Who::Tenant, &server).await?;
    assert_eq!(look["OS-EXT-STS:power_state"], 4, "{look}");
    assert!(look["OS-EXT-STS:task_state"].is_null(), "{look}");

    cloud.ask(&Who::Tenant, "detach", json!({ "server": server, "volume": volume })).await?;
    cloud.until_volume(&volume, "available").await?;
    cloud.attach(&other, &volume).await?;

    let done: Vec<_> = cloud.effects(&server)?.into_iter().map(|effect| effect.did).collect();
    assert_eq!(done, ["spawn", "attach", "power_off", "detach"]);
    let attached = cloud.effects(&other)?.pop().expect("the volume was attached");
    assert_eq!((attached.did.as_str(), attached.host.as_str(), attached.volume), ("attach", there, volume));
    assert_eq!(newest(cloud, &other).await?, ("attach_volume".to_owned(), json!("Success")));
    Ok(())
}

#[tokio::test]
async fn the_volume_from_which_a_server_booted_stays() -> Result<()> {
    let cloud = cloud().await?;
    let volume = cloud.bootable_volume("root").await?;
    let server = cloud.server_from("from-volume", OPENSTACK_HOSTS[1], &volume).await?;
    cloud.ask(&Who::Tenant, "stop", json!({ "server": server })).await?;
    cloud.until_server(&server, "SHUTOFF").await?;
    let path = format!("/servers/{server}/os-volume_attachments/{volume}");
    let asked = json!({ "service": "compute", "method": "DELETE", "path": path });
    let told = cloud.ask(&Who::Tenant, "rest", asked).await?;
    assert_eq!(told["status"], 400, "{told}");
    cloud.until_volume(&volume, "in-use").await
}
