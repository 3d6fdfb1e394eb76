//! The peer's own negative controls: what must not pass does not, and stands in the journal.

use picket_tests::Result;
use picket_tests::peers::{ComputeEngine, GceInstance, GceMake, GceUser};
use serde_json::{Value, json};

/// What every error has: its code, its reason and its message.
pub fn error(answer: &Option<(u16, Value)>) -> (u16, String, String) {
    let (status, body) = answer.clone().expect("an answer");
    let told = &body["error"];
    assert_eq!(told["code"], json!(status), "{body}");
    let word = |key: &str| told["errors"][0][key].as_str().unwrap_or_default().to_owned();
    (status, word("reason"), word("message"))
}

/// The path of an instance, by its number.
pub fn path(instance: &GceInstance) -> String {
    format!("zones/{}/instances/{}", instance.zone, instance.id)
}

#[tokio::test]
async fn what_another_key_signed_is_refused() -> Result<()> {
    let gce = ComputeEngine::start().await?;
    let instance = gce.instance(&[]).await?;
    let (user, other) = (gce.user(&["*"]).await?, gce.user(&["*"]).await?);
    let place = json!({ "zone": instance.zone, "instance": instance.id });
    let told = gce.google(&gce.forged_file(&user, &other)?, &json!([["stop", place]])).await?;
    assert_eq!((&told[0]["code"], &told[0]["reasons"]), (&json!(401), &json!(["authError"])), "{told:?}");
    // A foreign token that nobody signed, and one of somebody who may not be this account.
    let nobodys = user.subject.replace(|sign: char| sign.is_ascii_digit(), "0");
    for subject in [nobodys, other.subject] {
        let foreign = GceUser { subject, ..user.clone() };
        let told = gce.google(&gce.external_account_file(&foreign)?, &json!([["stop", place]])).await?;
        assert_eq!(told[0]["reasons"], json!(["auth"]), "{told:?}");
    }
    assert_eq!(gce.state(&instance.id).await?, "RUNNING");
    Ok(())
}

#[tokio::test]
async fn a_token_that_is_over_is_refused_and_its_age_is_told() -> Result<()> {
    let gce = ComputeEngine::start().await?;
    let instance = gce.instance(&[]).await?;
    let user = gce.user(&["*"]).await?;
    let token = gce.token(&user).await?;
    let stop = format!("{}/stop?noGracefulShutdown=true", path(&instance));
    gce.life(&user, 0.0).await?;
    let over = error(&gce.bare(&token, "POST", &stop, None).await?);
    assert_eq!((over.0, over.1.as_str()), (401, "authError"));
    gce.life(&user, 60.0).await?;
    gce.revoke(&user).await?;
    assert_eq!(error(&gce.bare(&token, "POST", &stop, None).await?).0, 401);
    assert_eq!(error(&gce.bare("nobody's", "POST", &stop, None).await?).0, 401);
    assert_eq!(gce.state(&instance.id).await?, "RUNNING");

    // As Google's client for Rust asks.
    let (next, stop) = (gce.token(&user).await?, format!("{stop}&$alt=json&$apiVersion=2026-09-01"));
    assert_eq!(gce.bare(&next, "POST", &stop, Some(&json!({}))).await?.expect("an answer").0, 200);
    let asked = gce.asked_to("instances.stop", &instance.id).await?;
    let tokens: Vec<Option<u64>> =
        asked.iter().map(|one| one.token.as_ref().map(|token| token.serial)).collect();
    assert_eq!(tokens, [Some(1), Some(1), None, Some(2)]);
    assert!(
        asked.iter().flat_map(|one| &one.token).all(|token| token.age < 60.0 && token.user == user.email)
    );
    Ok(())
}

#[tokio::test]
async fn what_the_document_does_not_allow_is_a_violation_and_does_nothing() -> Result<()> {
    let gce = ComputeEngine::start().await?;
    let instance = gce.instance(&["data-0"]).await?;
    let token = gce.token(&gce.user(&["*"]).await?).await?;
    let at = path(&instance);
    let labels = format!("{at}/setLabels");
    let zero = "requestId=00000000-0000-0000-0000-000000000000";
    let wrong: [(&str, String, Option<Value>, u16); 13] = [
        ("POST", format!("{at}/stop?force=true"), None, 400),
        ("POST", format!("{at}/stop?noGracefulShutdown=yes"), None, 400),
        ("POST", format!("{at}/stop?noGracefulShutdown=true&noGracefulShutdown=true"), None, 400),
        ("POST", format!("{at}/stop?{zero}"), None, 400),
        ("POST", format!("{at}/stop?requestId=1"), None, 400),
        ("POST", format!("{at}/stop?$alt=xml"), None, 400),
        ("POST", format!("{at}/stop"), Some(json!({ "force": true })), 400),
        ("POST", format!("{at}/detachDisk"), None, 400),
        ("POST", labels.clone(), Some(json!({ "labels": { "a": "b" }, "colour": "red" })), 400),
        ("POST", labels.clone(), Some(json!({ "labels": { "a": 1 } })), 400),
        ("POST", labels, Some(json!("labels")), 400),
        ("GET", format!("zones/{}/instances/N1", instance.zone), None, 400),
        ("POST", format!("{at}/cycle"), None, 404),
    ];
    for (method, path, body, status) in &wrong {
        let told = error(&gce.bare(&token, method, path, body.as_ref()).await?);
        assert_eq!(told.0, *status, "{method} {path}: {told:?}");
    }
    assert_eq!(gce.violations("").await?.len(), wrong.len());
    // Nobody has seen a method that does nothing here do anything.
    let told = error(&gce.bare(&token, "POST", &format!("{at}/simulateMaintenanceEvent"), None).await?);
    assert_eq!((told.0, told.1.as_str()), (501, "notImplemented"));
    assert_eq!(gce.violations("").await?.len(), wrong.len());
    let truth = gce.truth(&instance.id).await?;
    assert_eq!((truth.status.as_str(), truth.devices.len(), truth.labels.len()), ("RUNNING", 2, 0));
    Ok(())
}

#[tokio::test]
async fn who_may_not_is_told_which_permission_is_missing() -> Result<()> {
    let gce = ComputeEngine::start().await?;
    let instance = gce.instance(&[]).await?;
    let token = gce.token(&gce.user(&["compute.instances.get"]).await?).await?;
    assert_eq!(gce.bare(&token, "GET", &path(&instance), None).await?.expect("an answer").0, 200);
    let told = error(&gce.bare(&token, "POST", &format!("{}/stop", path(&instance)), None).await?);
    let resource = format!("projects/{}/{}", gce.project(), path(&instance));
    let words = format!("Required 'compute.instances.stop' permission for '{resource}'");
    assert_eq!(told, (403, "forbidden".to_owned(), words));
    assert_eq!(gce.state(&instance.id).await?, "RUNNING");
    Ok(())
}

#[tokio::test]
async fn what_is_not_there_is_not_found() -> Result<()> {
    let gce = ComputeEngine::start().await?;
    let instance = gce.instance(&[]).await?;
    let token = gce.token(&gce.user(&["*"]).await?).await?;
    let gone = format!("zones/{}/instances/1234567890123456789", instance.zone);
    let told = error(&gce.bare(&token, "GET", &gone, None).await?);
    let words = format!("The resource 'projects/{}/{gone}' was not found", gce.project());
    assert_eq!(told, (404, "notFound".to_owned(), words));
    let elsewhere = format!("zones/europe-west3-b/instances/{}", instance.id);
    assert_eq!(error(&gce.bare(&token, "POST", &format!("{elsewhere}/stop"), None).await?).0, 404);
    let nowhere = error(&gce.bare(&token, "GET", "zones/atlantis-a/instances/x", None).await?);
    assert_eq!((nowhere.0, nowhere.1.as_str()), (400, "invalid"));
    assert_eq!(gce.state(&instance.id).await?, "RUNNING");
    Ok(())
}

#[tokio::test]
async fn an_answer_of_the_peers_own_that_violates_the_document_fails_whatever_asks() -> Result<()> {
    let gce = ComputeEngine::start().await?;
    let odd = GceMake { scheduling: json!({ "colour": "red" }), ..GceMake::default() };
    let instance = gce.make(&odd).await?;
    let token = gce.token(&gce.user(&["*"]).await?).await?;
    assert_eq!(error(&gce.bare(&token, "GET", &path(&instance), None).await?).0, 500);
    let refused = gce.state(&instance.id).await.expect_err("it is broken").to_string();
    assert!(refused.contains("BROKEN") && refused.contains("colour"), "{refused}");
    Ok(())
}
