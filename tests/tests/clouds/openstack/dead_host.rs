//! The compute host is dead: nothing is sent there, its hypervisor is fenced, and the volumes wait for an evacuation.

use picket_tests::peers::{IpmiSim, OPENSTACK_HOSTS, OpenStack, ServerFault, Who};
use picket_tests::{Bmc, Result};
use serde_json::{Value, json};

use crate::openstack::driven::Plan;
use crate::openstack::scene::{act, all_are_needed, cloud, deployed, deployed_for_admins};
use crate::scene::soon;

/// It has this host to itself.
const HOST: &str = OPENSTACK_HOSTS[3];
/// Nova's level is given up rather soon; the hypervisor's must reach its end in as much.
const SHARES: &str = "level_share = \"25s\"\ncloud_level_share = \"25s\"\nfence_deadline = \"50s\"\ncloud_fence_deadline = \"50s\"\n";

#[tokio::test]
async fn the_hypervisor_is_fenced_and_the_volume_goes_once_the_server_is_evacuated() -> Result<()> {
    let cloud = cloud().await?;
    // First, as the host is one, and its service forced down for good once somebody evacuated.
    is_not_off_while_it_moves(cloud).await?;
    for nova_knows in [true, false] {
        stays_where_nobody_evacuates(cloud, nova_knows).await?;
    }
    let there = OPENSTACK_HOSTS[0];
    let bmc = IpmiSim::start().await?;
    let server = cloud.server("on-a-dead-hypervisor", HOST).await?;
    let volume = cloud.volume("on-a-dead-hypervisor").await?;
    cloud.attach(&server, &volume).await?;
    let compute = compute(&hypervisor(cloud, &server).await?, &bmc);
    // What is in `deploy` for an administrator suffices.
    let rules = [deployed(), deployed_for_admins()].concat();
    let who = Who::Application(cloud.credential(&Who::Admin, "over-a-dead-host", &rules).await?);
    let plan = Plan::over(&who, &[&server]).rules(SHARES);
    let driven = plan.then("hypervisor", "driver = \"parent\"").nodes(&compute).start().await?;

    cloud.freeze_host(HOST, true)?;
    let waits = async {
        let forced = async || Ok(cloud.look(&Who::Admin, &server).await?["host_status"] == "DOWN");
        soon("its compute service is forced down", forced).await?;
        assert!(!(bmc.truth())(), "the hypervisor is off by then");
        let sent = driven.sent("DELETE", &format!("{server}/os-volume_attachments"))?;
        assert!(sent.is_empty() && driven.acted("os-stop")? == 0, "a dead host is told nothing: {sent:?}");
        cloud.until_volume(&volume, "in-use").await?;
        // The operator's part, or Masakari's.
        let path = format!("/servers/{server}/action");
        let body = json!({ "evacuate": { "host": there } });
        let evacuate =
            json!({ "service": "compute", "method": "POST", "path": path, "body": body, "version": "2.96" });
        let told = cloud.ask(&Who::Admin, "rest", evacuate).await?;
        assert_eq!(told["status"], 200, "{told}");
        Ok(())
    };
    let (told, ()) = tokio::try_join!(driven.fence(), waits)?;
    driven.is_fenced(&told);
    cloud.until_volume(&volume, "available").await?;
    let effects = cloud.effects(&server)?;
    let detached: Vec<_> = effects.iter().filter(|one| one.did == "detach").collect();
    assert!(detached.iter().all(|one| one.host == there), "{effects:#?}");
    assert!(!cloud.runs_on(&server)?.contains(&there.to_owned()), "{effects:#?}");

    // The hypervisor comes first.
    let back = driven.unfence().await?;
    assert_eq!(back.kind(), "unfenced", "{back:#?}");
    assert!((bmc.truth())(), "the hypervisor is on");
    // Nova lets go of what was forced down only once the host's own service came back and ended the copies that were evacuated.
    let told = driven.sent("PUT", "os-services")?;
    let told: Vec<_> = told.iter().map(|(_, body, status)| (body["forced_down"].clone(), *status)).collect();
    // It is asked again, each time in vain.
    let is_refused = |one: &&(Value, u16)| **one == (json!(false), 400);
    let refused = told.iter().rev().take_while(is_refused).count();
    let before = told.iter().rev().nth(refused);
    assert!(refused >= 1 && before == Some(&(json!(true), 200)), "{told:?}");
    let log = driven.gateway.log();
    assert!(log.contains("was forced down, and is still"), "{log}");
    all_are_needed(cloud, deployed_for_admins())?;
    cloud.thaw_host(HOST)
}

/// S22: what may be about to run elsewhere is not off by the machine on which it runs.
async fn is_not_off_while_it_moves(cloud: &OpenStack) -> Result<()> {
    let bmc = IpmiSim::start().await?;
    let server = cloud.server("moves", HOST).await?;
    let volume = cloud.volume("moves").await?;
    cloud.attach(&server, &volume).await?;
    let compute = compute(&hypervisor(cloud, &server).await?, &bmc);
    let plan = Plan::over(&Who::Admin, &[&server]).rules(SHARES);
    let driven = plan.then("hypervisor", "driver = \"parent\"").nodes(&compute).start().await?;
    cloud.hinder(&server, &ServerFault { migrate_delay: 600.0, ..ServerFault::default() })?;
    let path = format!("/servers/{server}/action");
    let body = json!({ "os-migrateLive": { "host": null, "block_migration": "auto" } });
    let migrate =
        json!({ "service": "compute", "method": "POST", "path": path, "body": body, "version": "2.96" });
    let told = cloud.ask(&Who::Admin, "rest", migrate).await?;
    assert_eq!(told["status"], 202, "{told}");
    // Nova shows MIGRATING from the request on, and gives up what it finds with a dead host before the hypervisor has it.
    let path = format!("/os-migrations?instance_uuid={server}");
    let listed = json!({ "service": "compute", "method": "GET", "path": path, "version": "2.59" });
    let moves = async || {
        let told = cloud.ask(&Who::Admin, "rest", listed.clone()).await?;
        Ok(told["body"]["migrations"][0]["status"] == "running")
    };
    soon("its hypervisor moves it", moves).await?;
    cloud.freeze_host(HOST, true)?;
    driven.fence_in_vain("levels_spent").await?;
    assert!((bmc.truth())(), "it would prove nothing, and is let be");
    let log = driven.gateway.log();
    assert!(log.contains("a live-migration"), "{log}");
    assert_eq!(driven.sent("DELETE", &format!("{server}/os-volume_attachments"))?, []);
    cloud.until_volume(&volume, "in-use").await?;
    cloud.hinder(&server, &ServerFault::default())?;
    cloud.thaw_host(HOST)?;
    let moved = async || {
        let look = cloud.look(&Who::Admin, &server).await?;
        Ok(look["status"] == "ACTIVE" && look["OS-EXT-SRV-ATTR:host"] != HOST)
    };
    soon("it runs elsewhere", moved).await
}

/// Nobody evacuates: the volumes stay, a person is told why, and what was forced down is put back. Where Nova does not know yet that the
/// host is off it would take a detach, and hand it over when the host is back; a server that is paused is the one that it does not stop first.
async fn stays_where_nobody_evacuates(cloud: &OpenStack, nova_knows: bool) -> Result<()> {
    let up = json!({ "service": "compute", "method": "GET", "path": "/os-services", "version": "2.53" });
    let service = async || {
        let listed = cloud.ask(&Who::Admin, "rest", up.clone()).await?;
        let all = listed["body"]["services"].as_array().cloned().unwrap_or_default();
        Result::Ok(all.into_iter().find(|one| one["host"] == HOST).unwrap_or_default())
    };
    let bmc = IpmiSim::start().await?;
    let server = cloud.server("nobody-evacuates", HOST).await?;
    let volume = cloud.volume("nobody-evacuates").await?;
    cloud.attach(&server, &volume).await?;
    let plan = Plan::over(&Who::Admin, &[&server]).rules(SHARES).releasing("deadline = \"20s\"\n");
    let compute = compute(&hypervisor(cloud, &server).await?, &bmc);
    let driven = plan.then("hypervisor", "driver = \"parent\"").nodes(&compute).start().await?;
    if !nova_knows {
        assert_eq!(act(cloud, &Who::Tenant, &server, json!({ "pause": null })).await?.0, 202);
        cloud.until_server(&server, "PAUSED").await?;
    }
    cloud.freeze_host(HOST, nova_knows)?;
    let told = driven.fence_in_vain("release_deadline").await?;
    let release = told.release(&volume).to_string();
    assert!(release.contains("Nova detaches there alone") && release.contains("its service"), "{release}");
    let sent = driven.sent("DELETE", &format!("{server}/os-volume_attachments"))?;
    assert!(sent.is_empty(), "a dead host is told nothing: {sent:?}");
    assert!(!nova_knows || driven.acted("os-stop")? == 0, "a dead host is told nothing");
    assert_eq!(service().await?["forced_down"], true);
    cloud.until_volume(&volume, "in-use").await?;

    // The hypervisor was mended: the volume is given up, and all of it comes back.
    cloud.thaw_host(HOST)?;
    if !nova_knows {
        // Our lock stands, and bars its tenant.
        assert_eq!(act(cloud, &Who::Tenant, &server, json!({ "unpause": null })).await?.0, 409);
        assert_eq!(act(cloud, &Who::Admin, &server, json!({ "unpause": null })).await?.0, 202);
        cloud.until_server(&server, "ACTIVE").await?;
    }
    let abandon = ["abandon", "n1", &format!("volumes/{volume}"), "--yes", "--reason", "a test"];
    let said = driven.gateway.picket(&abandon).await?;
    assert_eq!(said.code, 0, "{said:?}");
    // By the host itself, which is told now.
    driven.must_fence().await?;
    let back = driven.unfence().await?;
    assert_eq!(back.kind(), "unfenced", "{back:#?}\n{}", driven.gateway.log());
    assert_eq!(service().await?["forced_down"], false, "{}", driven.gateway.log());
    cloud.until_volume(&volume, "in-use").await?;
    soon("its service is up", async || Ok(service().await?["state"] == "up")).await
}

/// What Nova calls the machine on which the host is.
async fn hypervisor(cloud: &OpenStack, server: &str) -> Result<String> {
    let look = cloud.look(&Who::Admin, server).await?;
    let name = look["OS-EXT-SRV-ATTR:hypervisor_hostname"].as_str();
    Ok(name.expect("an administrator sees it").to_owned())
}

/// The machine on which the host is, a node of its own.
fn compute(hypervisor: &str, bmc: &IpmiSim) -> String {
    format!(
        "[nodes.compute]\nlevels = [[\"bmc\"]]\nreleases = []\nlabels = {{ hypervisor = {hypervisor:?} }}\n{}",
        // What a child wants of its parent is more than a BMC's own word of whose it is.
        Bmc::at(bmc.address())
            .with(&format!("identity = {{ uuid = \"{}\" }}", bmc.guid()))
            .device("compute", "bmc")
    )
}
