//! A compute host that stands still.

use picket_tests::Result;
use picket_tests::peers::{OPENSTACK_HOSTS, Who};
use serde_json::json;

use crate::openstack::driven::Plan;
use crate::openstack::scene::{act, cloud, newest, stop};
use crate::scene::IMPATIENT;

#[tokio::test]
async fn a_dead_host_is_told_to_admins_and_hidden_from_tenants() -> Result<()> {
    let cloud = cloud().await?;
    // This test's own.
    let [_, _, host, _] = OPENSTACK_HOSTS;
    let server = cloud.server("on-a-dead-host", host).await?;
    let of_admin = cloud.server("on-a-dead-host-of-admin", host).await?;
    let of_tenant = cloud.server("on-a-dead-host-of-tenant", host).await?;
    let volume = cloud.volume("on-a-dead-host").await?;
    cloud.attach(&of_tenant, &volume).await?;
    assert_eq!(cloud.look(&Who::Admin, &server).await?["host_status"], "UP");

    cloud.freeze_host(host, true)?;
    // DOWN is what somebody said of it, UNKNOWN what Nova sees.
    let look = cloud.look(&Who::Admin, &server).await?;
    assert_eq!(look["host_status"], "UNKNOWN", "{look}");
    let hidden = cloud.look(&Who::Tenant, &server).await?;
    assert_eq!((&hidden["host_status"], &hidden["status"]), (&json!(null), &json!("ACTIVE")), "{hidden}");

    // Without a hypervisor to fence a person is asked: an administrator's gateway sends nothing there; a tenant's is not told that the
    // host is dead, and what it sends proves nothing.
    let (admins, tenants) = tokio::try_join!(
        Plan::over(&Who::Admin, &[&of_admin]).rules(IMPATIENT).start(),
        Plan::over(&Who::Tenant, &[&of_tenant]).rules(IMPATIENT).start(),
    )?;
    let (by_admin, by_tenant) = tokio::try_join!(admins.fence(), tenants.fence())?;
    admins.needs_operator(&by_admin, "levels_spent");
    tenants.needs_operator(&by_tenant, "levels_spent");
    assert!(
        admins
            .gateway
            .log()
            .contains("its compute host is unknown: it would do what it is told when it is back")
    );
    assert_eq!((admins.acted("os-stop")?, tenants.acted("os-stop")? >= 1), (0, true));
    for driven in [&admins, &tenants] {
        driven.detached_while_off(0)?;
        assert_eq!(cloud.runs_on(driven.server())?, [host]);
    }
    cloud.until_volume(&volume, "in-use").await?;
    drop((admins, tenants));

    // A stop is taken, and nothing comes of it.
    assert_eq!(act(cloud, &Who::Tenant, &server, stop()).await?.0, 202);
    assert_eq!(cloud.look(&Who::Tenant, &server).await?["OS-EXT-STS:task_state"], "powering-off");
    assert_eq!(newest(cloud, &server).await?, ("stop".to_owned(), json!(null)));
    assert_eq!(cloud.runs_on(&server)?, [host]);

    let services =
        json!({ "service": "compute", "method": "GET", "path": "/os-services", "version": "2.53" });
    let services = cloud.ask(&Who::Admin, "rest", services).await?;
    let listed = services["body"]["services"].as_array().cloned().unwrap_or_default();
    let of_it = listed.iter().find(|service| service["host"] == host).expect("the host's service");
    assert_eq!(of_it["state"], "down", "{of_it}");
    let path = format!("/os-services/{}", of_it["id"].as_str().unwrap_or_default());
    let force = json!({ "service": "compute", "method": "PUT", "path": path, "body": { "forced_down": true }, "version": "2.53" });
    assert_eq!(cloud.ask(&Who::Admin, "rest", force).await?["status"], 200);
    assert_eq!(cloud.look(&Who::Admin, &server).await?["host_status"], "DOWN");

    // What was sent is done when it wakes up, however late.
    cloud.thaw_host(host)?;
    cloud.until_server(&server, "SHUTOFF").await?;
    assert!(cloud.runs_on(&server)?.is_empty());
    cloud.until_server(&of_tenant, "SHUTOFF").await?;
    assert_eq!(cloud.runs_on(&of_admin)?, [host], "nobody told it to");
    Ok(())
}
