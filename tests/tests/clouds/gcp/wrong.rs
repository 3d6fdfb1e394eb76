//! What cannot be proven is left to a person, and nothing is let go.

use picket_tests::peers::{GceInstance, GceTreatment};
use picket_tests::{Result, picketd};
use serde_json::json;

use crate::gcp::scene::{Plan, compute, private, role};
use crate::scene::IMPATIENT;

#[tokio::test]
async fn an_instance_that_never_ends_stopping_is_not_off() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().rules(IMPATIENT).over(&instance).await?;
    let stuck = GceTreatment { stuck: Some("stopping"), ..GceTreatment::default() };
    scene.compute.treat(scene.id(), &stuck).await?;
    let told = scene.fence_in_vain("levels_spent").await?;
    let detail = told.detail();
    assert!(detail.contains("STOPPING") && detail.contains("under way: stop"), "{detail}");
    assert_eq!(scene.compute.state(scene.id()).await?, "STOPPING");
    Ok(())
}

#[tokio::test]
async fn words_that_are_not_off_are_not_off() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().rules(IMPATIENT).over(&instance).await?;
    for word in ["SUSPENDED", "REPAIRING", "DEPROVISIONING"] {
        scene
            .compute
            .treat(scene.id(), &GceTreatment { word: Some(word), ..GceTreatment::default() })
            .await?;
        let said = scene.gateway.picket(&["check", "n1", "-o", "json"]).await?;
        assert!(!said.out.contains("\"power\": \"off\"") && said.out.contains(word), "{said:?}");
    }
    scene.fence_in_vain("levels_spent").await?;
    Ok(())
}

#[tokio::test]
async fn an_instance_that_is_gone_is_not_off() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().rules(IMPATIENT).over(&instance).await?;
    let gone = json!({ "status": 404, "reason": "notFound", "message": "The resource was not found" });
    scene.compute.rule("*", scene.id(), 1_000_000, gone).await?;
    scene.fence_in_vain("levels_spent").await?;
    assert_eq!(scene.compute.state(scene.id()).await?, "RUNNING");
    Ok(())
}

#[tokio::test]
async fn an_instance_of_another_zone_is_not_found_and_never_off() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let elsewhere = GceInstance { zone: "europe-west3-b".to_owned(), ..instance.clone() };
    assert_ne!(elsewhere.zone, instance.zone);
    let scene = Plan::new().rules(IMPATIENT).over(&elsewhere).await?;
    scene.compute.switch(scene.id(), "TERMINATED").await?;
    scene.fence_in_vain("levels_spent").await?;
    let said = scene.gateway.picket(&["check", "n1"]).await?;
    assert!(said.out.contains("europe-west3-b"), "where it was looked for: {said:?}");
    Ok(())
}

#[tokio::test]
async fn an_instance_that_took_the_name_over_is_told_and_never_touched() -> Result<()> {
    let instance = compute().await?.instance(&["data"]).await?;
    let scene = Plan::new().rules(IMPATIENT).over(&instance).await?;
    let heir = scene.compute.replace(scene.id()).await?;
    let told = scene.fence().await?;
    assert_eq!(
        (told.kind(), &told.result["outcome"]["reason"]),
        ("needs_operator", &json!("identity_mismatch"))
    );
    let said = scene.gateway.picket(&["check", "n1"]).await?;
    assert!(said.out.contains(&heir), "whose the name is now: {said:?}");
    assert_eq!(scene.compute.state(&heir).await?, "RUNNING");
    let sent = scene.compute.asked(&heir).await?;
    assert!(sent.iter().all(|one| one.method == "instances.get"), "{sent:#?}");
    let disk = scene.compute.disk(&instance.disks["data"]).await?;
    assert!(disk.users.contains_key(&heir), "{disk:?}");
    Ok(())
}

#[tokio::test]
async fn who_may_not_stop_it_is_told_which_permission_is_missing() -> Result<()> {
    let compute = compute().await?;
    let instance = compute.instance(&["data"]).await?;
    let some: Vec<&str> = role().into_iter().filter(|one| *one != "compute.instances.stop").collect();
    let user = compute.user(&some).await?;
    let scene = Plan::new().rules(IMPATIENT).by(&user, &instance).await?;
    scene.fence_in_vain("levels_spent").await?;
    assert_eq!(compute.state(scene.id()).await?, "RUNNING");
    let log = scene.gateway.log();
    assert!(log.contains("compute.instances.stop is missing in the roles"), "{log}");
    assert!(!log.contains("PRIVATE KEY") && !log.contains("ya29"), "{log}");
    Ok(())
}

#[tokio::test]
async fn whose_key_is_not_its_own_does_nothing() -> Result<()> {
    let compute = compute().await?;
    let instance = compute.instance(&["data"]).await?;
    let (user, other) = (compute.user(&role()).await?, compute.user(&role()).await?);
    let key = compute.forged_file(&user, &other)?;
    private(&key)?;
    let scene = Plan::new().rules(IMPATIENT).with(&key, &[], &instance).await?;
    scene.fence_in_vain("levels_spent").await?;
    assert_eq!(compute.state(scene.id()).await?, "RUNNING");
    assert!(compute.asked(scene.id()).await?.is_empty(), "nobody gave it a token");
    Ok(())
}

#[tokio::test]
async fn a_compute_engine_that_does_not_answer_is_not_off() -> Result<()> {
    let compute = picket_tests::peers::ComputeEngine::start().await?;
    let instance = compute.instance(&[]).await?;
    let user = compute.user(&role()).await?;
    let key = compute.service_account_file(&user)?;
    private(&key)?;
    let scene = Plan::new().rules(IMPATIENT).elsewhere(compute.endpoint()).with(&key, &[], &instance).await?;
    compute.silence(true).await?;
    let told = scene.fence().await?;
    assert_eq!(told.kind(), "needs_operator", "{:#?}", told.result);
    compute.silence(false).await?;
    assert_eq!(compute.state(&instance.id).await?, "RUNNING");
    Ok(())
}

/// What stands where Google's own tools look is looked at before anybody is asked.
#[tokio::test]
async fn a_file_of_credentials_that_cannot_serve_is_told_by_the_check() -> Result<()> {
    let home = tempfile::tempdir().expect("a directory");
    let (settings, file) = (home.path().join("picket.toml"), home.path().join("adc.json"));
    let text = "[store]\nkind = \"memory\"\n[listen]\nunix = \"/run/picket-test.sock\"\n\
                [nodes.n1.devices.gce]\ndriver = \"gcp\"\ninstance = \"gce://p-1/europe-west1-b/17\"\n";
    std::fs::write(&settings, text).expect("written");
    let source = json!({
        "environment_id": "aws1", "url": "http://169.254.169.254/latest/meta-data/iam/security-credentials",
        "regional_cred_verification_url": "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15",
    });
    let external = json!({
        "type": "external_account", "audience": "//iam.googleapis.com/x", "token_url": "https://sts.googleapis.com/v1/token",
        "subject_token_type": "urn:ietf:params:aws:token-type:aws4_request", "credential_source": source,
    });
    std::fs::write(&file, external.to_string()).expect("written");
    let named = file.display().to_string();
    let checked = picketd(&settings, &["--check"], &[("GOOGLE_APPLICATION_CREDENTIALS", &named)]).await?;
    let words = format!("{named} (GOOGLE_APPLICATION_CREDENTIALS names it): its credential_source is AWS's");
    assert!(checked.code == 78 && checked.err.contains(&words), "{checked:?}");
    Ok(())
}
