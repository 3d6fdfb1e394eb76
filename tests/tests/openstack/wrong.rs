//! Servers, users and clouds that are not what the settings say: told at the check, and never off.

use picket_tests::Result;
use picket_tests::peers::{AccessRule, OPENSTACK_HOSTS, Who};
use serde_json::json;

use crate::driven::{IMPATIENT, Plan};
use crate::scene::cloud;

/// What `picket check` says of n1.
async fn checked(driven: &crate::driven::Driven<'_>) -> Result<String> {
    let said = driven.gateway.picket(&["check", "n1"]).await?;
    Ok(said.out + &said.err)
}

#[tokio::test]
async fn a_server_that_is_not_there_is_never_off() -> Result<()> {
    let nobody = "5a1bd2c8-8f0e-4a6f-9d2b-0d3c5f1e7a90";
    let driven = Plan::over(&Who::Admin, &[nobody]).rules(IMPATIENT).start().await?;
    let said = checked(&driven).await?;
    assert!(said.contains("there is no such server, or it is another project's"), "{said}");
    driven.fence().await?.needs_operator("levels_spent", &driven);
    assert_eq!(driven.acted("os-stop")?, 0);
    Ok(())
}

/// What makes a stop slow, or a proof weaker, is told before it is needed.
#[tokio::test]
async fn a_check_tells_of_a_stop_that_will_wait_for_a_dead_guest() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("told-at-the-check", OPENSTACK_HOSTS[0]).await?;
    for (who, hidden) in [(Who::Tenant, true), (Who::Admin, false)] {
        let driven = Plan::over(&who, &[&server]).start().await?;
        let said = checked(&driven).await?;
        assert!(said.contains("its image has no os_shutdown_timeout=0"), "{said}");
        assert_eq!(said.contains("host_status is an administrator's"), hidden, "{said}");
    }
    Ok(())
}

#[tokio::test]
async fn a_server_of_another_project_is_not_there() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("somebody-s", OPENSTACK_HOSTS[0]).await?;
    let rules: &[AccessRule] = &[];
    let stranger = cloud.credential(&Who::Owner, "of-the-owner", rules).await?;
    let driven = Plan::over(&Who::Application(stranger), &[&server]).start().await?;
    // The owner's own project has it: a credential without rules may do what its user may.
    driven.fence().await?.is_fenced(&driven);
    Ok(())
}

/// What its own host ended is off; the one that has its name by now is never touched.
#[tokio::test]
async fn a_server_that_was_deleted_is_off_and_its_successor_is_let_be() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("replaced", OPENSTACK_HOSTS[0]).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    let path = format!("/servers/{server}");
    let delete = json!({ "service": "compute", "method": "DELETE", "path": path });
    assert_eq!(cloud.ask(&Who::Tenant, "rest", delete).await?["status"], 204);
    let gone = async || Ok(cloud.look(&Who::Tenant, &server).await?.is_null());
    crate::scene::soon("the server is deleted", gone).await?;
    let other = cloud.server("replaced", OPENSTACK_HOSTS[0]).await?;
    driven.fence().await?.is_fenced(&driven);
    assert_eq!(driven.acted("os-stop")?, 0);
    assert_eq!(cloud.effects(&other)?.len(), 1, "{:?}", cloud.effects(&other)?);
    Ok(())
}

/// The rules of an application credential that are in `deploy`, as it is written there.
fn deployed() -> Vec<serde_json::Value> {
    let text = include_str!("../../../deploy/openstack/access-rules.json");
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test]
async fn the_access_rules_of_deploy_are_enough_and_none_is_too_many() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("by-access-rules", OPENSTACK_HOSTS[1]).await?;
    let volume = cloud.volume("by-access-rules").await?;
    cloud.attach(&server, &volume).await?;
    let made = cloud
        .ask(&Who::Tenant, "application_credential", json!({ "name": "deployed", "rules": deployed() }))
        .await?;
    let word = |key: &str| made[key].as_str().unwrap_or_default().to_owned();
    let who = Who::Application(picket_tests::peers::Credential { id: word("id"), secret: word("secret") });
    let driven = Plan::over(&who, &[&server]).start().await?;
    driven.fence().await?.is_fenced(&driven);
    driven.detached_while_off(1)?;
    cloud.until_volume(&volume, "available").await?;
    assert_eq!(driven.unfence().await?.kind(), "unfenced");
    Ok(())
}

#[tokio::test]
async fn a_credential_that_may_not_stop_says_which_request_it_lacks() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("may-not-stop", OPENSTACK_HOSTS[1]).await?;
    let rules: Vec<_> = deployed().into_iter().filter(|rule| rule["method"] != "POST").collect();
    let made = cloud
        .ask(&Who::Tenant, "application_credential", json!({ "name": "may-not-stop", "rules": rules }))
        .await?;
    let word = |key: &str| made[key].as_str().unwrap_or_default().to_owned();
    let who = Who::Application(picket_tests::peers::Credential { id: word("id"), secret: word("secret") });
    let driven = Plan::over(&who, &[&server]).rules(IMPATIENT).start().await?;
    driven.fence().await?.needs_operator("levels_spent", &driven);
    let log = driven.gateway.log();
    assert!(
        log.contains("os-stop: 401") && log.contains("its access rules may not have this request"),
        "{log}"
    );
    assert_eq!(driven.did()?, ["spawn"]);
    assert!(!log.contains(&word("secret")), "a secret is in the log");
    Ok(())
}

#[tokio::test]
async fn a_wrong_password_is_not_tried_again_and_again() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("wrong-password", OPENSTACK_HOSTS[1]).await?;
    let nobody = picket_tests::peers::Credential { id: "0".repeat(32), secret: "wrong-hunter3".to_owned() };
    let before = driven_logins(cloud)?;
    let driven = Plan::over(&Who::Application(nobody), &[&server]).rules(IMPATIENT).start().await?;
    driven.fence().await?.needs_operator("levels_spent", &driven);
    let tried = driven_logins(cloud)? - before;
    assert!(tried <= 3, "{tried} logins");
    let log = driven.gateway.log();
    assert!(log.contains("who logs in, or the password, is wrong") && !log.contains("hunter3"), "{log}");
    assert_eq!(driven.did()?, ["spawn"]);
    Ok(())
}

/// How often our own daemons' logins by that wrong credential were refused.
fn driven_logins(cloud: &picket_tests::peers::OpenStack) -> Result<usize> {
    let refused = |one: &picket_tests::peers::Request| {
        one.service == "identity"
            && one.agent.starts_with("picket/")
            && one.answer.as_ref().is_some_and(|answer| answer.status == 401)
    };
    Ok(cloud.requests()?.iter().filter(|one| refused(one)).count())
}
