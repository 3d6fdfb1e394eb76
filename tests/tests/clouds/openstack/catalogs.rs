//! Catalogs and clouds.yaml as keystoneauth and openstacksdk read them.

use std::path::Path;
use std::process::Command;

use picket_tests::Result;
use picket_tests::peers::{OPENSTACK_HOSTS, OpenStack, Who};
use serde_json::{Value, json};

use crate::openstack::driven::Plan;

/// The driver's own tables (`drivers/openstack/src/cloud/cases`), which its units are held to.
#[test]
fn keystoneauth_and_openstacksdk_read_what_the_driver_s_tables_say() -> Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cases = here.join("../drivers/openstack/src/cloud/cases");
    let mut command = Command::new(OpenStack::python()?);
    command.args(["-W", "ignore"]).arg(here.join("peers/openstack/referee.py"));
    command.args([cases.join("catalog.json"), cases.join("clouds.json")]);
    let told = command.output().expect("python is there");
    let said = String::from_utf8_lossy(&told.stdout).into_owned() + &String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{said}");
    let agreed = said.split(' ').next().and_then(|count| count.trim().parse::<usize>().ok());
    assert!(agreed.is_some_and(|agreed| agreed > 50), "{said}");
    Ok(())
}

/// What the administrator asks of Keystone.
async fn keystone(cloud: &OpenStack, method: &str, path: &str, body: Value) -> Result<Value> {
    let asked = json!({ "service": "identity", "method": method, "path": path, "body": body });
    let told = cloud.ask(&Who::Admin, "rest", asked).await?;
    assert!(told["status"].as_u64().is_some_and(|status| status < 300), "{method} {path}: {told}");
    Ok(told["body"].clone())
}

/// Another region, in which the same services are told once more: each by an entry of its own, and Cinder by its older name.
async fn second_region(cloud: &OpenStack) -> Result<()> {
    let services = keystone(cloud, "GET", "/services", Value::Null).await?;
    let endpoints = keystone(cloud, "GET", "/endpoints", Value::Null).await?;
    keystone(cloud, "POST", "/regions", json!({ "region": { "id": "RegionTwo" } })).await?;
    let all = |list: &Value, key: &str| list[key].as_array().cloned().unwrap_or_default();
    let services = all(&services, "services");
    for endpoint in all(&endpoints, "endpoints") {
        let service = services.iter().find(|one| one["id"] == endpoint["service_id"]);
        let kind = service.and_then(|service| service["type"].as_str()).unwrap_or_default();
        let (kind, is_used) = match kind {
            "block-storage" => ("volumev3", true),
            kind => (kind, ["compute", "image"].contains(&kind)),
        };
        if !is_used || endpoint["interface"] != "internal" {
            continue;
        }
        let made =
            keystone(cloud, "POST", "/services", json!({ "service": { "type": kind, "name": "second" } }))
                .await?;
        let endpoint = json!({
            "interface": "internal", "region_id": "RegionTwo", "url": endpoint["url"], "service_id": made["service"]["id"],
        });
        keystone(cloud, "POST", "/endpoints", json!({ "endpoint": endpoint })).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_service_that_has_an_entry_for_each_region_is_found_in_each() -> Result<()> {
    let cloud = OpenStack::start().await?;
    second_region(&cloud).await?;
    let server = cloud.server("in-the-second-region", OPENSTACK_HOSTS[0]).await?;
    let volume = cloud.volume("in-the-second-region").await?;
    cloud.attach(&server, &volume).await?;
    let there = |plan: Plan| plan.device("region = \"RegionTwo\"");
    // The interfaces that RegionTwo has are internal alone.
    let driven = there(Plan::over(&Who::Tenant, &[&server])).start_on(&cloud).await?;
    let said = driven.gateway.picket(&["check", "n1"]).await?;
    assert!(said.code != 0, "{said:?}");
    let said = said.out + &said.err;
    let words =
        "no public endpoint of compute in the region \"RegionTwo\"; it has compute admin in RegionOne";
    assert!(said.contains(words) && said.contains("compute internal in RegionTwo"), "{said}");
    drop(driven);
    let plan = there(Plan::over(&Who::Tenant, &[&server])).login("interface: [internal, public]");
    let driven = plan.start_on(&cloud).await?;
    let told = driven.must_fence().await?;
    driven.detached_once_proven(&told, 1)?;
    cloud.until_volume(&volume, "available").await
}
