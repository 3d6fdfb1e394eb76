//! What a test asks to go wrong does, and is seen.

use std::time::Duration;

use picket_tests::Result;
use picket_tests::peers::{OpenStack, RequestRule, ServerFault, Who};
use serde_json::json;

use crate::openstack::scene::{act, cloud, newest, stop};
use crate::scene::soon;

#[tokio::test]
async fn a_stop_that_fails_is_seen_in_the_actions_alone() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("does-not-stop", "host-a").await?;
    cloud.hinder(&server, &ServerFault { power_off_fail: true, ..ServerFault::default() })?;
    assert_eq!(act(cloud, &Who::Tenant, &server, stop()).await?.0, 202);
    let failed = async || Ok(newest(cloud, &server).await? == ("stop".to_owned(), json!("Error")));
    soon("the stop fails", failed).await?;
    let look = cloud.look(&Who::Tenant, &server).await?;
    assert_eq!((&look["status"], &look["fault"]), (&json!("ACTIVE"), &json!(null)), "{look}");
    assert_eq!(cloud.runs_on(&server)?, ["host-a"]);

    cloud.hinder(&server, &ServerFault { power_off_lies: true, ..ServerFault::default() })?;
    assert_eq!(act(cloud, &Who::Tenant, &server, stop()).await?.0, 202);
    soon("the stop is told done", async || Ok(newest(cloud, &server).await?.1 == "Success")).await?;
    assert_eq!(cloud.runs_on(&server)?, ["host-a"]);
    Ok(())
}

#[tokio::test]
async fn a_delay_ends_when_it_is_taken_back() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("slow", "host-b").await?;
    cloud.hinder(&server, &ServerFault { power_off_delay: 600.0, ..ServerFault::default() })?;
    assert_eq!(act(cloud, &Who::Tenant, &server, stop()).await?.0, 202);
    let (again, _) = act(cloud, &Who::Tenant, &server, stop()).await?;
    assert_eq!(again, 409);
    assert_eq!(cloud.look(&Who::Tenant, &server).await?["OS-EXT-STS:task_state"], "powering-off");
    cloud.hinder(&server, &ServerFault::default())?;
    cloud.until_server(&server, "SHUTOFF").await
}

#[tokio::test]
async fn an_answer_that_is_lost_was_carried_out() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("unheard", "host-b").await?;
    let path = format!("{server}/action");
    let rules = cloud.rules(&[RequestRule::new("POST", &path, "unanswered")])?;
    let asked = act(cloud, &Who::Tenant, &server, stop()).await;
    assert!(asked.is_err(), "the answer is lost: {asked:?}");
    cloud.until_server(&server, "SHUTOFF").await?;
    assert!(cloud.runs_on(&server)?.is_empty());
    let sent: Vec<_> = cloud.requests()?.into_iter().filter(|one| one.path.contains(&path)).collect();
    let [one] = &sent[..] else { panic!("it was sent once: {sent:?}") };
    let answer = one.answer.as_ref().expect("it was answered");
    assert_eq!((&one.body, answer.status, &answer.did), (&stop(), 202, &json!("unanswered")));
    let off = cloud.effects(&server)?.pop().expect("it was switched off");
    assert!(off.did == "power_off" && one.at <= off.at, "{one:?} {off:?}");
    drop(rules);

    // The same, without its being carried out; and a plain refusal.
    cloud.ask(&Who::Tenant, "start", json!({ "server": server })).await?;
    cloud.until_server(&server, "ACTIVE").await?;
    let mut busy = RequestRule::new("POST", &path, 503);
    busy.body = "os-stop".to_owned();
    let _rules = cloud.rules(&[RequestRule::new("POST", &path, "dropped"), busy])?;
    assert!(act(cloud, &Who::Tenant, &server, stop()).await.is_err());
    assert_eq!(act(cloud, &Who::Tenant, &server, stop()).await?.0, 503);
    assert_eq!(cloud.look(&Who::Tenant, &server).await?["status"], "ACTIVE");
    assert_eq!(cloud.runs_on(&server)?, ["host-b"]);
    assert_eq!(act(cloud, &Who::Tenant, &server, stop()).await?.0, 202);
    cloud.until_server(&server, "SHUTOFF").await
}

#[tokio::test]
async fn an_application_credential_may_do_what_its_rules_say() -> Result<()> {
    let cloud = cloud().await?;
    let server = cloud.server("guarded", "host-a").await?;
    let rules = [
        json!({ "service": "compute", "method": "GET", "path": "/v2.1/servers/*" }),
        json!({ "service": "compute", "method": "POST", "path": "/v2.1/servers/*/action" }),
    ];
    let who = Who::Application(cloud.credential(&Who::Tenant, "guard", &rules).await?);
    assert_eq!(cloud.look(&who, &server).await?["status"], "ACTIVE");
    assert_eq!(act(cloud, &who, &server, stop()).await?.0, 202);
    let path = format!("/servers/{server}/os-instance-actions");
    let asked = json!({ "service": "compute", "method": "GET", "path": path });
    // As if it were nobody: a wrong token is refused with the same word.
    assert_eq!(cloud.ask(&who, "rest", asked).await?["status"], 401);
    assert!(cloud.clouds_yaml(&who).contains("application_credential_secret"));
    cloud.until_server(&server, "SHUTOFF").await
}

#[tokio::test]
async fn a_token_that_is_over_is_refused_at_once() -> Result<()> {
    let cloud = OpenStack::bare(Duration::from_secs(10)).await?;
    let told = cloud.ask(&Who::Tenant, "until_refused", json!({})).await?;
    let after = told.as_f64().expect("seconds from the end of the token to its first refusal");
    assert!((0.0..2.0).contains(&after), "{after} s after its end");
    Ok(())
}
