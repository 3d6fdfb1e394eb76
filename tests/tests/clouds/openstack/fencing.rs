//! A server is fenced and comes back, as an administrator and as a tenant who sees no hosts.

use picket_tests::Result;
use picket_tests::peers::{OPENSTACK_HOSTS, RequestRule, ServerFault, Who};
use serde_json::json;

use crate::openstack::driven::Plan;
use crate::openstack::scene::cloud;
use crate::scene::IMPATIENT;

#[tokio::test]
async fn an_administrator_locks_before_the_off_and_nova_sees_its_host() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("fenced-by-admin", OPENSTACK_HOSTS[0]).await?;
    let driven = Plan::over(&Who::Admin, &[&server]).start().await?;
    let told = driven.must_fence().await?;
    assert_eq!(told.result["evidence"]["grade"], "hypervisor", "{told:#?}");
    let look = cloud.look(&Who::Tenant, &server).await?;
    assert_eq!((&look["status"], &look["locked"]), (&json!("SHUTOFF"), &json!(true)), "{look}");
    assert!(
        look["locked_reason"].as_str().is_some_and(|reason| reason.starts_with("picket: fenced")),
        "{look}"
    );
    assert!(cloud.runs_on(&server)?.is_empty());
    // Locked first, and it kept the tenant out.
    let told: Vec<_> = driven.sent("POST", &format!("/servers/{server}/action"))?;
    assert!(told[0].1.get("lock").is_some() && told[1].1.get("os-stop").is_some(), "{told:#?}");

    let back = driven.unfence().await?;
    assert_eq!(back.kind(), "unfenced", "{back:#?}");
    let look = cloud.look(&Who::Tenant, &server).await?;
    assert_eq!((&look["status"], &look["locked"]), (&json!("ACTIVE"), &json!(false)), "{look}");
    assert_eq!(cloud.runs_on(&server)?, [OPENSTACK_HOSTS[0]]);
    assert_eq!(driven.did()?, ["spawn", "power_off", "power_on"]);
    Ok(())
}

#[tokio::test]
async fn a_tenant_is_told_by_its_own_stop_and_locks_once_all_is_released() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("fenced-by-tenant", OPENSTACK_HOSTS[1]).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    driven.must_fence().await?;
    assert!(cloud.runs_on(&server)?.is_empty());
    let locked = async || Ok(cloud.look(&Who::Tenant, &server).await?["locked"] == true);
    crate::scene::soon("the server is locked", locked).await?;
    let acted = driven.sent("POST", &format!("/servers/{server}/action"))?;
    assert!(acted[0].1.get("os-stop").is_some(), "its lock would bar its own stop: {acted:#?}");

    assert_eq!(driven.unfence().await?.kind(), "unfenced");
    let look = cloud.look(&Who::Tenant, &server).await?;
    assert_eq!((&look["status"], &look["locked"]), (&json!("ACTIVE"), &json!(false)), "{look}");
    assert_eq!(driven.did()?, ["spawn", "power_off", "power_on"]);
    Ok(())
}

#[tokio::test]
async fn what_is_off_already_is_proven_to_whoever_sees_its_host() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("off-already", OPENSTACK_HOSTS[0]).await?;
    cloud.ask(&Who::Tenant, "stop", json!({ "server": server })).await?;
    cloud.until_server(&server, "SHUTOFF").await?;
    let driven = Plan::over(&Who::Admin, &[&server]).start().await?;
    let told = driven.must_fence().await?;
    assert!(driven.acted("os-stop")? >= 2, "our own off, and once more at the end of the long window");
    // Nova refused both by its database, which the evidence says.
    let evidence = &told.result["evidence"];
    assert_eq!(evidence["grade"], "claimed", "{told:#?}");
    assert!(evidence["lowered_by"].to_string().contains("sync_power_state_interval"), "{told:#?}");
    Ok(())
}

/// The state is the database's: a host that is dead would show the same, and a guest that runs.
#[tokio::test]
async fn what_is_off_already_is_not_proven_to_a_tenant() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("off-already-of-tenant", OPENSTACK_HOSTS[0]).await?;
    let volume = cloud.volume("stays").await?;
    cloud.attach(&server, &volume).await?;
    cloud.ask(&Who::Tenant, "stop", json!({ "server": server })).await?;
    cloud.until_server(&server, "SHUTOFF").await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).rules(IMPATIENT).start().await?;
    driven.fence_in_vain("levels_spent").await?;
    driven.detached_while_off(0)?;
    Ok(())
}

#[tokio::test]
async fn a_stop_that_takes_long_is_waited_for() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("slow-to-fall", OPENSTACK_HOSTS[1]).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    cloud.hinder(&server, &ServerFault { power_off_delay: 6.0, ..ServerFault::default() })?;
    driven.must_fence().await?;
    assert_eq!(driven.did()?, ["spawn", "power_off: begins", "power_off"]);
    Ok(())
}

#[tokio::test]
async fn a_stop_that_never_ends_is_never_off() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("never-falls", OPENSTACK_HOSTS[0]).await?;
    let volume = cloud.volume("kept").await?;
    cloud.attach(&server, &volume).await?;
    let driven = Plan::over(&Who::Admin, &[&server]).rules(IMPATIENT).start().await?;
    cloud.hinder(&server, &ServerFault { power_off_delay: 600.0, ..ServerFault::default() })?;
    driven.fence_in_vain("levels_spent").await?;
    driven.detached_while_off(0)?;
    cloud.hinder(&server, &ServerFault::default())
}

#[tokio::test]
async fn a_stop_that_fails_is_sent_again_and_never_believed() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("fails-to-fall", OPENSTACK_HOSTS[1]).await?;
    // Long enough for a Nova that others ask too to end two stops.
    let rules = IMPATIENT.replace("12s", "40s").replace("30s", "75s");
    let driven = Plan::over(&Who::Tenant, &[&server]).rules(&rules).start().await?;
    cloud.hinder(&server, &ServerFault { power_off_fail: true, ..ServerFault::default() })?;
    driven.fence_in_vain("levels_spent").await?;
    let log = driven.gateway.log();
    assert!(log.contains("a stop of ours failed") && log.contains("compute_stop_instance"), "{log}");
    assert!(driven.acted("os-stop")? >= 2);
    assert_eq!(cloud.runs_on(&server)?, [OPENSTACK_HOSTS[1]]);
    Ok(())
}

#[tokio::test]
async fn a_stop_whose_answer_is_lost_is_neither_failure_nor_success() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("answer-lost", OPENSTACK_HOSTS[0]).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    let rules = cloud.rules(&[RequestRule::new("POST", format!("{server}/action"), "unanswered")])?;
    driven.must_fence().await?;
    drop(rules);
    assert_eq!(driven.did()?, ["spawn", "power_off"]);
    Ok(())
}

#[tokio::test]
async fn a_busy_cloud_is_asked_again() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("throttled", OPENSTACK_HOSTS[1]).await?;
    let driven = Plan::over(&Who::Admin, &[&server]).start().await?;
    let busy =
        |what: u16| RequestRule { times: 2, ..RequestRule::new("POST", format!("{server}/action"), what) };
    let slow = RequestRule { times: 2, ..RequestRule::new("GET", format!("/servers/{server}"), 503) };
    let cut = RequestRule { times: 2, ..RequestRule::new("GET", format!("/servers/{server}"), "cut") };
    let rules = cloud.rules(&[busy(429), busy(503), slow, cut])?;
    driven.must_fence().await?;
    drop(rules);
    assert_eq!(driven.did()?, ["spawn", "power_off"]);
    Ok(())
}

#[tokio::test]
async fn two_fences_at_once_are_one() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("fenced-twice", OPENSTACK_HOSTS[0]).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    let (one, other) = tokio::try_join!(driven.fence(), driven.fence())?;
    driven.is_fenced(&one);
    driven.is_fenced(&other);
    assert_eq!(driven.did()?, ["spawn", "power_off"]);
    Ok(())
}

/// What is on its way is waited for until it is answered, and not until its token ends.
#[tokio::test]
async fn an_unfence_waits_for_the_answer_to_a_lock_and_no_longer() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("locked-late", OPENSTACK_HOSTS[0]).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    let lock = RequestRule::new("POST", format!("{server}/action"), "late");
    let rules = cloud.rules(&[RequestRule { body: "\"lock\"".to_owned(), after: 8.0, ..lock }])?;
    driven.must_fence().await?;
    crate::scene::soon("the lock is sent", async || Ok(driven.acted("lock")? == 1)).await?;
    assert_eq!(driven.unfence().await?.kind(), "unfenced");
    drop(rules);
    let look = cloud.look(&Who::Tenant, &server).await?;
    assert_eq!((&look["status"], &look["locked"]), (&json!("ACTIVE"), &json!(false)), "{look}");
    Ok(())
}

/// A fence that comes while the start is under way has the last word.
#[tokio::test]
async fn a_fence_that_comes_into_an_unfence_ends_in_off() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("fenced-while-unfenced", OPENSTACK_HOSTS[1]).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    driven.must_fence().await?;
    cloud.hinder(&server, &ServerFault { power_on_delay: 4.0, ..ServerFault::default() })?;
    let (back, again) = tokio::try_join!(driven.unfence(), async {
        crate::scene::soon("the start is sent", async || Ok(driven.acted("os-start")? == 1)).await?;
        driven.fence().await
    })?;
    driven.is_fenced(&again);
    assert_eq!(back.kind(), "superseded", "{back:#?}");
    assert!(cloud.runs_on(&server)?.is_empty());
    let did: Vec<String> = driven.did()?.into_iter().filter(|one| !one.ends_with(": begins")).collect();
    assert_eq!(did, ["spawn", "power_off", "power_on", "power_off"]);
    Ok(())
}

/// An unfence is for what is fenced: while that is under way it is refused, and changes nothing.
#[tokio::test]
async fn an_unfence_that_comes_into_a_fence_is_refused() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("unfenced-while-fenced", OPENSTACK_HOSTS[0]).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    cloud.hinder(&server, &ServerFault { power_off_delay: 4.0, ..ServerFault::default() })?;
    let (told, back) = tokio::try_join!(driven.fence(), async {
        crate::scene::soon("the stop is sent", async || Ok(driven.acted("os-stop")? == 1)).await?;
        driven.gateway.picket(&["unfence", "n1", "--yes", "--reason", "a test", "-o", "json"]).await
    })?;
    driven.is_fenced(&told);
    assert!(back.code != 0, "{back:?}");
    assert!(cloud.runs_on(&server)?.is_empty() && driven.acted("os-start")? == 0, "{back:?}");
    Ok(())
}
