//! A compute host that stands still.

use picket_tests::Result;
use picket_tests::peers::{OPENSTACK_HOSTS, Who};
use serde_json::json;

use crate::scene::{act, cloud, newest, stop};

#[tokio::test]
async fn a_dead_host_is_told_to_admins_and_hidden_from_tenants() -> Result<()> {
    let cloud = cloud().await?;
    // This test's own.
    let [_, _, host, _] = OPENSTACK_HOSTS;
    let server = cloud.server("on-a-dead-host", host).await?;
    assert_eq!(cloud.look(&Who::Admin, &server).await?["host_status"], "UP");

    cloud.freeze_host(host, true)?;
    // DOWN is what somebody said of it, UNKNOWN what Nova sees.
    let look = cloud.look(&Who::Admin, &server).await?;
    assert_eq!(look["host_status"], "UNKNOWN", "{look}");
    let hidden = cloud.look(&Who::Tenant, &server).await?;
    assert_eq!((&hidden["host_status"], &hidden["status"]), (&json!(null), &json!("ACTIVE")), "{hidden}");

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
    Ok(())
}
