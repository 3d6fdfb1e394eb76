//! Volumes that do not go: for ever, or as nobody may let them go.

use picket_tests::Result;
use picket_tests::peers::{OPENSTACK_HOSTS, ServerFault, Who};

use crate::openstack::driven::Plan;
use crate::openstack::scene::{cloud, deployed};

/// A person is asked soon.
const SOON: &str = "deadline = \"12s\"\nattempt = \"5s\"\n";

#[tokio::test]
async fn a_volume_that_never_goes_is_left_to_a_person() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("stuck", OPENSTACK_HOSTS[0]).await?;
    let volume = cloud.volume("stuck").await?;
    cloud.attach(&server, &volume).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).releasing(SOON).start().await?;
    cloud.hinder(&server, &ServerFault { detach_delay: 10_000.0, ..ServerFault::default() })?;
    let told = driven.fence_in_vain("release_deadline").await?;
    let detail = told.result["outcome"]["detail"].to_string();
    assert!(detail.contains(&volume) && detail.contains("detaching"), "{detail}");
    assert_ne!(told.release(&volume)["stage"], "complete", "{told:#?}");
    cloud.until_volume(&volume, "detaching").await?;
    driven.detached_while_off(0)?;
    // It is mended: what Nova took comes to its end, and whoever retries finds it free.
    cloud.hinder(&server, &ServerFault::default())?;
    let said = driven.gateway.picket(&["retry", "n1", "--yes", "--reason", "a test"]).await?;
    assert_eq!(said.code, 0, "{said:?}");
    let again = driven.fence().await?;
    assert_eq!(again.result["outcome"]["released"], true, "{again:#?}");
    driven.detached_once_proven(&told, 1)?;
    cloud.until_volume(&volume, "available").await
}

/// Nova takes each detach, and notes in the server's actions that it came to nothing.
#[tokio::test]
async fn a_detach_that_fails_is_told_with_what_nova_says_of_it() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("cannot-detach", OPENSTACK_HOSTS[1]).await?;
    let volume = cloud.volume("cannot-detach").await?;
    cloud.attach(&server, &volume).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).releasing(SOON).start().await?;
    cloud.hinder(&server, &ServerFault { detach_fail: true, ..ServerFault::default() })?;
    let told = driven.fence_in_vain("release_deadline").await?;
    assert_ne!(told.release(&volume)["stage"], "complete", "{told:#?}");
    let log = driven.gateway.log();
    assert!(log.contains("a detach of ours failed") && log.contains("compute_detach_volume"), "{log}");
    driven.detached_while_off(0)?;
    cloud.hinder(&server, &ServerFault::default())?;
    let said = driven.gateway.picket(&["retry", "n1", "--yes", "--reason", "a test"]).await?;
    assert_eq!(said.code, 0, "{said:?}");
    let again = driven.fence().await?;
    assert_eq!(again.result["outcome"]["released"], true, "{again:#?}");
    driven.detached_once_proven(&told, 1)?;
    cloud.until_volume(&volume, "available").await
}

#[tokio::test]
async fn who_may_not_detach_it_is_told_which_request_is_missing() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("may-not-detach", OPENSTACK_HOSTS[1]).await?;
    let volume = cloud.volume("may-not-detach").await?;
    cloud.attach(&server, &volume).await?;
    let rules: Vec<_> = deployed().into_iter().filter(|rule| rule["method"] != "DELETE").collect();
    let who = Who::Application(cloud.credential(&Who::Tenant, "no-detach", &rules).await?);
    let driven = Plan::over(&who, &[&server]).releasing(SOON).start().await?;
    let told = driven.fence_in_vain("release_deadline").await?;
    let detail = told.result["outcome"]["detail"].to_string();
    assert!(detail.contains("access rules") && detail.contains("DELETE /"), "{detail}");
    driven.detached_while_off(0)?;
    cloud.until_volume(&volume, "in-use").await
}
