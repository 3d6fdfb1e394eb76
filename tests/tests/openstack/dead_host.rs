//! The compute host is dead: nothing is sent there, its hypervisor is fenced, and the volumes wait for an evacuation.

use picket_tests::peers::{IpmiSim, OPENSTACK_HOSTS, Who};
use picket_tests::{Bmc, Result};
use serde_json::json;

use crate::driven::{IMPATIENT, Plan};
use crate::scene::{cloud, soon};

/// It has this host to itself.
const HOST: &str = OPENSTACK_HOSTS[3];

#[tokio::test]
async fn the_hypervisor_is_fenced_and_the_volume_goes_once_the_server_is_evacuated() -> Result<()> {
    let cloud = cloud().await?;
    let there = OPENSTACK_HOSTS[0];
    let bmc = IpmiSim::start().await?;
    let server = cloud.server("on-a-dead-hypervisor", HOST).await?;
    let volume = cloud.volume("on-a-dead-hypervisor").await?;
    cloud.attach(&server, &volume).await?;
    let hypervisor = cloud.look(&Who::Admin, &server).await?["OS-EXT-SRV-ATTR:hypervisor_hostname"].clone();
    let hypervisor = hypervisor.as_str().expect("an administrator sees it").to_owned();
    let compute = format!(
        "[nodes.compute]\nlevels = [[\"bmc\"]]\nreleases = []\nlabels = {{ hypervisor = {hypervisor:?} }}\n{}",
        Bmc::at(bmc.address()).device("compute", "bmc")
    );
    let plan = Plan::over(&Who::Admin, &[&server]).rules(IMPATIENT);
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
    told.is_fenced(&driven);
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
    assert_eq!(told, [(json!(true), 200), (json!(false), 400)]);
    let log = driven.gateway.log();
    assert!(log.contains("was forced down, and is still"), "{log}");
    cloud.thaw_host(HOST)
}
