//! Servers, users and clouds that are not what the settings say: told at the check, and never off.

use std::time::{Duration, Instant};

use picket_tests::Result;
use picket_tests::peers::{Credential, OPENSTACK_HOSTS, Request, RequestRule, Who};
use serde_json::json;

use crate::openstack::driven::Plan;
use crate::openstack::scene::{act, all_are_needed, cloud, deployed};
use crate::scene::IMPATIENT;
use crate::scene::soon;

/// What `picket check` says of n1.
async fn checked(driven: &crate::openstack::driven::Driven<'_>) -> Result<String> {
    let said = driven.gateway.picket(&["check", "n1"]).await?;
    Ok(said.out + &said.err)
}

#[tokio::test]
async fn a_server_that_is_not_there_is_never_off() -> Result<()> {
    let nobody = "5a1bd2c8-8f0e-4a6f-9d2b-0d3c5f1e7a90";
    let driven = Plan::over(&Who::Admin, &[nobody]).rules(IMPATIENT).start().await?;
    let said = checked(&driven).await?;
    assert!(said.contains("there is no such server, or it is another project's"), "{said}");
    driven.fence_in_vain("levels_spent").await?;
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
    // The same of a server that was booted from a volume: what its image said stands there.
    let volume = cloud.bootable_volume("told-at-the-check").await?;
    let says = async |timeout: &str| {
        let path = format!("/volumes/{volume}/action");
        let body = json!({ "os-set_image_metadata": { "metadata": { "os_shutdown_timeout": timeout } } });
        let told = cloud
            .ask(
                &Who::Tenant,
                "rest",
                json!({ "service": "volumes", "method": "POST", "path": path, "body": body }),
            )
            .await?;
        assert_eq!(told["status"], 200, "{told}");
        Result::Ok(())
    };
    says("60").await?;
    let server = cloud.server_from("told-at-the-check", OPENSTACK_HOSTS[0], &volume).await?;
    for (timeout, is_told) in [("60", true), ("0", false)] {
        says(timeout).await?;
        let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
        let said = checked(&driven).await?;
        assert_eq!(said.contains("no os_shutdown_timeout=0"), is_told, "{said}");
    }
    Ok(())
}

/// S16: a state in which Nova stops no server keeps each fence from its end. What ends it is told before there is one.
#[tokio::test]
async fn a_server_that_nova_does_not_stop_as_it_is_is_not_ready_and_the_command_that_helps_is_told()
-> Result<()> {
    let cloud = cloud().await?;
    for (what, status, undo) in [
        ("pause", "PAUSED", "unpause"),
        ("suspend", "SUSPENDED", "resume"),
        ("rescue", "RESCUE", "unrescue"),
        ("shelve", "SHELVED_OFFLOADED", "unshelve"),
    ] {
        let server = cloud.server(what, OPENSTACK_HOSTS[0]).await?;
        let driven = Plan::over(&Who::Admin, &[&server]).start().await?;
        let told = act(cloud, &Who::Tenant, &server, json!({ what: null })).await?;
        assert!(matches!(told.0, 200 | 202), "{told:?}");
        cloud.until_server(&server, status).await?;
        let said = driven.gateway.picket(&["check", "n1"]).await?;
        assert!(said.code != 0, "{said:?}");
        let said = said.out + &said.err;
        assert!(said.contains(&format!("openstack server {undo} {server} ends that")), "{said}");
        // It does.
        let told = act(cloud, &Who::Tenant, &server, json!({ undo: null })).await?;
        assert_eq!(told.0, 202, "{told:?}");
        cloud.until_server(&server, "ACTIVE").await?;
        let said = driven.gateway.picket(&["check", "n1"]).await?;
        assert_eq!(said.code, 0, "{said:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_server_of_another_project_is_not_there() -> Result<()> {
    let cloud = cloud().await?;
    // The administrator's own.
    let asked = json!({ "name": "somebody-s", "host": OPENSTACK_HOSTS[0] });
    let made = cloud.ask(&Who::Admin, "create_server", asked).await?;
    let server = made.as_str().expect("its id");
    let driven = Plan::over(&Who::Tenant, &[server]).rules(IMPATIENT).start().await?;
    let said = checked(&driven).await?;
    assert!(said.contains("there is no such server, or it is another project's"), "{said}");
    driven.fence_in_vain("levels_spent").await?;
    assert_eq!((driven.acted("os-stop")?, driven.did()?), (0, vec!["spawn".to_owned()]));
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
    soon("the server is deleted", gone).await?;
    let other = cloud.server("replaced", OPENSTACK_HOSTS[0]).await?;
    driven.must_fence().await?;
    assert_eq!(driven.acted("os-stop")?, 0);
    assert_eq!(cloud.effects(&other)?.len(), 1, "{:?}", cloud.effects(&other)?);
    Ok(())
}

#[tokio::test]
async fn the_access_rules_of_deploy_are_enough_and_nova_s_and_cinder_s_are_all_needed() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("by-access-rules", OPENSTACK_HOSTS[1]).await?;
    let volume = cloud.volume("by-access-rules").await?;
    cloud.attach(&server, &volume).await?;
    let who = Who::Application(cloud.credential(&Who::Tenant, "deployed", &deployed()).await?);
    let driven = Plan::over(&who, &[&server]).start().await?;
    let told = driven.must_fence().await?;
    driven.detached_once_proven(&told, 1)?;
    cloud.until_volume(&volume, "available").await?;
    assert_eq!(driven.unfence().await?.kind(), "unfenced");
    // Glance keeps no journal here; Cinder is there by one of its two names.
    all_are_needed(cloud, deployed().into_iter().filter(|rule| rule["service"] != "image"))
}

#[tokio::test]
async fn a_credential_that_may_not_stop_says_which_request_it_lacks() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("may-not-stop", OPENSTACK_HOSTS[1]).await?;
    let rules: Vec<_> = deployed().into_iter().filter(|rule| rule["method"] != "POST").collect();
    let credential = cloud.credential(&Who::Tenant, "may-not-stop", &rules).await?;
    let who = Who::Application(credential.clone());
    let driven = Plan::over(&who, &[&server]).rules(IMPATIENT).start().await?;
    driven.fence_in_vain("levels_spent").await?;
    let log = driven.gateway.log();
    assert!(
        log.contains("os-stop: 401") && log.contains(&format!("may not have POST /servers/{server}/action")),
        "{log}"
    );
    assert_eq!(driven.did()?, ["spawn"]);
    assert!(!log.contains(&credential.secret), "a secret is in the log");
    Ok(())
}

#[tokio::test]
async fn a_wrong_password_is_not_tried_again_and_again() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("wrong-password", OPENSTACK_HOSTS[1]).await?;
    let nobody = Credential { id: "0".repeat(32), secret: "wrong-hunter3".to_owned() };
    let before = driven_logins(cloud)?;
    let driven = Plan::over(&Who::Application(nobody), &[&server]).rules(IMPATIENT).start().await?;
    driven.fence_in_vain("levels_spent").await?;
    let tried = driven_logins(cloud)? - before;
    assert!(tried <= 3, "{tried} logins");
    let log = driven.gateway.log();
    assert!(log.contains("who logs in, or the password, is wrong") && !log.contains("hunter3"), "{log}");
    assert_eq!(driven.did()?, ["spawn"]);
    Ok(())
}

/// As it is after Keystone's keys were exchanged, or its user logged out elsewhere.
#[tokio::test]
async fn a_token_that_nova_knows_no_more_is_replaced_in_the_middle_of_a_fence() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("forgotten-token", OPENSTACK_HOSTS[0]).await?;
    let volume = cloud.volume("forgotten-token").await?;
    cloud.attach(&server, &volume).await?;
    let driven = Plan::over(&Who::Tenant, &[&server]).start().await?;
    // What Keystone gave a moment ago is known everywhere.
    let began = Instant::now();
    soon("its token is old enough", async || Ok(began.elapsed() > Duration::from_secs(11))).await?;
    let rule = RequestRule { agent: "picket/".to_owned(), ..RequestRule::new("GET", &server, 401) };
    let rules = cloud.rules(&[rule])?;
    let told = driven.fence().await?;
    drop(rules);
    driven.is_fenced(&told);
    driven.detached_once_proven(&told, 1)?;
    cloud.until_volume(&volume, "available").await?;
    let refused = driven.sent("GET", &server)?.iter().filter(|(_, _, status)| *status == 401).count();
    assert_eq!(refused, 1, "it is asked again with a new one, and once");
    assert_eq!(driven.unfence().await?.kind(), "unfenced");
    Ok(())
}

#[tokio::test]
async fn a_credential_that_has_expired_is_told_and_nothing_is_off_by_it() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("expired", OPENSTACK_HOSTS[0]).await?;
    let arguments = json!({ "name": "expired", "ends_in": 1 });
    let made = cloud.ask(&Who::Tenant, "application_credential", arguments).await?;
    let word = |key: &str| made[key].as_str().unwrap_or_default().to_owned();
    let credential = Credential { id: word("id"), secret: word("secret") };
    let began = Instant::now();
    soon("it has expired", async || Ok(began.elapsed() > Duration::from_secs(2))).await?;
    let driven =
        Plan::over(&Who::Application(credential.clone()), &[&server]).rules(IMPATIENT).start().await?;
    let said = checked(&driven).await?;
    assert!(said.contains("expired") || said.contains("who logs in, or the password, is wrong"), "{said}");
    driven.fence_in_vain("levels_spent").await?;
    assert_eq!(driven.did()?, ["spawn"]);
    assert!(!driven.gateway.log().contains(&credential.secret), "a secret is in the log");
    Ok(())
}

#[tokio::test]
async fn a_region_that_the_cloud_does_not_have_is_told_with_those_that_it_has() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("nowhere", OPENSTACK_HOSTS[0]).await?;
    let driven =
        Plan::over(&Who::Tenant, &[&server]).device("region = \"Nowhere\"").rules(IMPATIENT).start().await?;
    let said = checked(&driven).await?;
    assert!(said.contains("in the region \"Nowhere\" (there is RegionOne)"), "{said}");
    driven.fence_in_vain("levels_spent").await?;
    assert_eq!(driven.did()?, ["spawn"]);
    Ok(())
}

/// Answers that Nova's policy, or something before it, gives: none of them is off.
#[tokio::test]
async fn what_nova_forbids_and_what_makes_no_sense_is_never_off() -> Result<()> {
    let cloud = cloud().await?;
    for (name, method, what, told) in [
        ("forbidden", "POST", json!(403), "os-stop: 403"),
        ("of-another-shape", "GET", json!("nonsense"), "the answer makes no sense"),
    ] {
        let server = cloud.server(name, OPENSTACK_HOSTS[1]).await?;
        let driven = Plan::over(&Who::Admin, &[&server]).rules(IMPATIENT).start().await?;
        let rule = RequestRule {
            times: 10_000,
            agent: "picket/".to_owned(),
            ..RequestRule::new(method, &server, what)
        };
        let rules = cloud.rules(&[rule])?;
        driven.fence_in_vain("levels_spent").await?;
        drop(rules);
        let log = driven.gateway.log();
        assert!(log.contains(told), "{name}: {log}");
        assert_eq!(driven.did()?, ["spawn"], "{name}");
    }
    Ok(())
}

/// Who cannot log in cannot ask, and is told where.
#[tokio::test]
async fn a_keystone_that_is_away_or_elsewhere_is_told_by_its_place() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("no-keystone", OPENSTACK_HOSTS[0]).await?;
    let who = cloud.credential(&Who::Tenant, "no-keystone", &[]).await?;
    // Of everybody else's logins none has this one in it.
    let away = RequestRule {
        service: "identity",
        body: who.id.clone(),
        times: 10_000,
        ..RequestRule::new("POST", "/auth/tokens", "dropped")
    };
    let rules = cloud.rules(&[away])?;
    let driven = Plan::over(&Who::Application(who), &[&server]).rules(IMPATIENT).start().await?;
    driven.fence_in_vain("levels_spent").await?;
    drop(rules);
    let (log, place) = (driven.gateway.log(), format!("{}/auth/tokens", cloud.auth_url()));
    assert!(log.contains(&place), "{log}");
    assert_eq!(driven.did()?, ["spawn"]);
    // Somebody's web server, and no Keystone: that is no wrong password.
    let driven = Plan::over(&Who::Tenant, &[&server]).keystone("/elsewhere").start().await?;
    let said = checked(&driven).await?;
    assert!(said.contains("/elsewhere/v3/auth/tokens: auth_url names no Keystone: 404"), "{said}");
    Ok(())
}

/// How often our own daemons' logins by that wrong credential were refused.
fn driven_logins(cloud: &picket_tests::peers::OpenStack) -> Result<usize> {
    let refused = |one: &Request| {
        one.service == "identity"
            && one.agent.starts_with("picket/")
            && one.answer.as_ref().is_some_and(|answer| answer.status == 401)
    };
    Ok(cloud.requests()?.iter().filter(|one| refused(one)).count())
}
