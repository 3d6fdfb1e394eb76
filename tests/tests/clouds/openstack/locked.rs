//! S11: a lock that somebody else had put on a server is found, taken off where it bars us, and put back with its reason; one of ours stays.

use picket_tests::Result;
use picket_tests::peers::{OPENSTACK_HOSTS, ServerFault, Who};
use serde_json::{Value, json};

use crate::openstack::driven::Plan;
use crate::openstack::scene::{act, cloud, stop};
use crate::scene::IMPATIENT;

/// Locks it by hand.
async fn lock(who: &Who, server: &str, reason: &str) -> Result<()> {
    let path = format!("/servers/{server}/action");
    let body = json!({ "lock": { "locked_reason": reason } });
    let asked =
        json!({ "service": "compute", "method": "POST", "path": path, "body": body, "version": "2.73" });
    let told = cloud().await?.ask(who, "rest", asked).await?;
    assert_eq!(told["status"], 202, "{told}");
    Ok(())
}

async fn locked(server: &str) -> Result<(Value, Value)> {
    let look = cloud().await?.look(&Who::Admin, server).await?;
    Ok((look["locked"].clone(), look["locked_reason"].clone()))
}

/// With its volume, as a tenant and as an administrator.
async fn comes_back_as_it_was(who: &Who, name: &str) -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server(name, OPENSTACK_HOSTS[0]).await?;
    let volume = cloud.volume(name).await?;
    cloud.attach(&server, &volume).await?;
    lock(&Who::Tenant, &server, "we migrate it on Monday").await?;
    let driven = Plan::over(who, &[&server]).start().await?;
    let told = driven.must_fence().await?;
    driven.detached_once_proven(&told, 1)?;
    cloud.until_volume(&volume, "available").await?;
    let back = driven.unfence().await?;
    assert_eq!(back.kind(), "unfenced", "{back:#?}");
    assert_eq!(locked(&server).await?, (json!(true), json!("we migrate it on Monday")));
    assert_eq!(cloud.runs_on(&server)?, [OPENSTACK_HOSTS[0]]);
    Ok(())
}

#[tokio::test]
async fn a_tenant_s_lock_is_put_back_by_the_tenant() -> Result<()> {
    comes_back_as_it_was(&Who::Tenant, "locked-before").await
}

#[tokio::test]
async fn a_tenant_s_lock_is_put_back_by_an_administrator() -> Result<()> {
    comes_back_as_it_was(&Who::Admin, "locked-before-by-tenant").await
}

/// A tenant may not undo it: nothing is stopped, nothing is let go, and it is told why.
#[tokio::test]
async fn an_administrator_s_lock_bars_a_tenant_s_gateway() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("locked-by-admin", OPENSTACK_HOSTS[1]).await?;
    lock(&Who::Admin, &server, "evidence").await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).rules(IMPATIENT).start().await?;
    driven.fence_in_vain("levels_spent").await?;
    let log = driven.gateway.log();
    assert!(log.contains("an administrator locked it, and this user may not unlock it"), "{log}");
    assert_eq!(driven.did()?, ["spawn"]);
    assert_eq!(locked(&server).await?, (json!(true), json!("evidence")));
    let unlock = act(cloud, &Who::Admin, &server, json!({ "unlock": null })).await?;
    assert_eq!(unlock.0, 202);
    Ok(())
}

/// Nova refuses no administrator for a lock: what it refuses an administrator's stop for is something else, and the lock stays.
#[tokio::test]
async fn an_administrator_s_lock_stays_while_a_member_s_own_stop_is_under_way() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("stopped-by-its-owner", OPENSTACK_HOSTS[0]).await?;
    let driven = Plan::over(&Who::Admin, &[&server]).start().await?;
    cloud.hinder(&server, &ServerFault { power_off_delay: 6.0, ..ServerFault::default() })?;
    assert_eq!(act(cloud, &Who::Tenant, &server, stop()).await?.0, 202);
    let told = driven.must_fence().await?;
    assert_eq!(driven.acted("unlock")?, 0);
    let (is_locked, reason) = locked(&server).await?;
    assert!(is_locked == true && reason.as_str().is_some_and(|reason| reason.starts_with("picket: fenced")));
    assert!(told.result["evidence"].to_string().contains("locked"), "{told:#?}");
    let start = act(cloud, &Who::Tenant, &server, json!({ "os-start": null })).await?;
    assert_eq!(start.0, 409, "{start:?}");
    assert_eq!(driven.did()?, ["spawn", "power_off: begins", "power_off"]);
    Ok(())
}

/// The same of a state in which Nova stops nothing: it is refused for good, with what ends it.
#[tokio::test]
async fn an_administrator_s_lock_stays_on_a_server_that_nova_does_not_stop() -> Result<()> {
    let cloud = cloud().await?;
    for (name, what, status, help) in [
        ("locked-and-paused", json!({ "pause": null }), "PAUSED", "openstack server unpause"),
        ("locked-and-suspended", json!({ "suspend": null }), "SUSPENDED", "openstack server resume"),
    ] {
        let server = cloud.server(name, OPENSTACK_HOSTS[1]).await?;
        let driven = Plan::over(&Who::Admin, &[&server]).rules(IMPATIENT).start().await?;
        assert_eq!(act(cloud, &Who::Tenant, &server, what).await?.0, 202);
        cloud.until_server(&server, status).await?;
        let told = driven.fence_in_vain("levels_spent").await?;
        assert_eq!(driven.acted("unlock")?, 0);
        let stops = driven.acted("os-stop")?;
        assert!(stops >= 1, "{stops}");
        let said = told.result.to_string() + &driven.gateway.log();
        assert!(said.contains(&format!("{help} {server}")), "{said}");
        assert_eq!((locked(&server).await?.0, driven.did()?), (json!(true), vec!["spawn".to_owned()]));
    }
    Ok(())
}
