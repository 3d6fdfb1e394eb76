//! The gateway dies in the middle, and the next one finishes: the same end, and nothing twice.

use picket_tests::peers::{OPENSTACK_HOSTS, ServerFault, Who};
use picket_tests::{Gateway, Result};

use crate::openstack::driven::Plan;
use crate::openstack::scene::cloud;
use crate::scene::soon;

/// A caller who is still there when the gateway dies.
fn fencing(gateway: &Gateway) -> Result<tokio::process::Child> {
    let command = gateway.command(&["fence", "n1", "--yes", "--reason", "a test"])?;
    Ok(tokio::process::Command::from(command).kill_on_drop(true).spawn().expect("picket"))
}

#[tokio::test]
async fn killed_in_the_middle_of_a_stop() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("killed-in-stop", OPENSTACK_HOSTS[0]).await?;
    let volume = cloud.volume("killed-in-stop").await?;
    cloud.attach(&server, &volume).await?;
    let mut driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    cloud.hinder(&server, &ServerFault { power_off_delay: 600.0, ..ServerFault::default() })?;
    let _asked = fencing(&driven.gateway)?;
    let begins = async || Ok(cloud.effects(&server)?.iter().any(|one| one.did == "power_off: begins"));
    soon("the stop is under way", begins).await?;
    driven.gateway.kill();
    driven.gateway.begin(&[]).await?;
    cloud.hinder(&server, &ServerFault::default())?;
    driven.must_fence().await?;
    driven.detached_while_off(1)?;
    cloud.until_volume(&volume, "available").await?;
    Ok(())
}

#[tokio::test]
async fn killed_in_the_middle_of_a_detach() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("killed-in-detach", OPENSTACK_HOSTS[1]).await?;
    let volumes = [cloud.volume("killed-1").await?, cloud.volume("killed-2").await?];
    for volume in &volumes {
        cloud.attach(&server, volume).await?;
    }
    let mut driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    cloud.hinder(&server, &ServerFault { detach_delay: 600.0, ..ServerFault::default() })?;
    let _asked = fencing(&driven.gateway)?;
    let begins = async || Ok(cloud.effects(&server)?.iter().any(|one| one.did == "detach: begins"));
    soon("a detach is under way", begins).await?;
    driven.gateway.kill();
    driven.gateway.begin(&[]).await?;
    cloud.hinder(&server, &ServerFault::default())?;
    driven.must_fence().await?;
    driven.detached_while_off(2)?;
    for volume in &volumes {
        cloud.until_volume(volume, "available").await?;
    }
    Ok(())
}
