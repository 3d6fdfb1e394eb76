//! How who asks comes by a token, and what is said where none is to be had.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use picket_cloud::fakes::header;
use picket_driver::{Effect, ErrorKind};
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

use super::compute::Fault;
use super::{KEY, Scene};

fn form(body: &str) -> std::collections::BTreeMap<String, String> {
    let url = reqwest::Url::parse(&format!("http://x/?{body}")).expect("a form");
    url.query_pairs().into_owned().collect()
}

#[tokio::test]
async fn a_service_account_signs_for_itself() {
    let (scene, driver, orders) = Scene::of_one().await;
    driver.read_power(&scene.call(&orders)).await.expect("read");
    let asked = scene.compute.heard("/token");
    let sent = form(&asked[0].body);
    assert_eq!(
        (asked.len(), sent["grant_type"].as_str()),
        (1, "urn:ietf:params:oauth:grant-type:jwt-bearer")
    );
    let (text, signature) = sent["assertion"].rsplit_once('.').expect("three parts");
    let inner: String = KEY.lines().filter(|line| !line.starts_with("-----")).collect();
    let pair = RsaKeyPair::from_pkcs8(&STANDARD.decode(inner).expect("base64")).expect("a key");
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
    key.verify(text.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).expect("base64"))
        .expect("signed by that key");
    let parts: Vec<Value> = text
        .split('.')
        .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON"))
        .collect();
    assert_eq!((&parts[0]["alg"], &parts[0]["kid"]), (&json!("RS256"), &json!("k1")));
    let claims = &parts[1];
    let place = format!("{}/token", scene.compute.endpoint);
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!("picket@p-1"), &json!(place)));
    assert_eq!(
        claims["exp"].as_u64().zip(claims["iat"].as_u64()).map(|(end, begin)| end - begin),
        Some(3_600)
    );
}

#[tokio::test]
async fn the_metadata_server_a_user_and_an_external_account_are_known_too() {
    let scene = Scene::new(1).await;
    let at = |path: &str| format!("{}{path}", scene.compute.endpoint);
    let token = scene.write("token", "{\"t\": \"subject-hunter2\"}");
    let user = json!({
        "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r", "token_uri": at("/refresh"),
    });
    let source = json!({ "file": token, "format": { "type": "json", "subject_token_field_name": "t" } });
    let external = json!({
        "type": "external_account", "audience": "//iam.googleapis.com/pool", "token_url": at("/exchange"),
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "credential_source": source,
    });
    let mut impersonating = external.clone();
    impersonating["service_account_impersonation_url"] = at("/impersonate").into();
    let by = json!({
        "type": "impersonated_service_account", "source_credentials": user, "delegates": ["d@x"],
        "service_account_impersonation_url": at("/impersonate"),
    });
    for (name, file, places) in [
        ("by.json", Some(by), vec!["/refresh", "/impersonate"]),
        ("user.json", Some(user), vec!["/refresh"]),
        ("external.json", Some(external), vec!["/exchange"]),
        ("impersonating.json", Some(impersonating), vec!["/exchange", "/impersonate"]),
        ("", None, vec!["/computeMetadata/v1/instance/service-accounts/default/token"]),
    ] {
        scene.compute.with(|world| world.log.clear());
        let Some(file) = file else {
            // Without a file of its own, and with none where Google's tools look.
            if std::env::var_os("GOOGLE_APPLICATION_CREDENTIALS").is_none() {
                let driver = scene.driver_with(0, json!({ "credentials_file": null }));
                let orders = scene.orders(&driver).await;
                driver.read_power(&scene.call(&orders)).await.expect("read");
                let asked = scene.compute.heard(places[0]);
                assert_eq!(header(&asked[0].head, "metadata-flavor"), Some("Google"));
            }
            continue;
        };
        let path = scene.write(name, &file.to_string());
        let driver = scene.driver_with(0, json!({ "credentials_file": path }));
        let orders = scene.orders(&driver).await;
        driver.read_power(&scene.call(&orders)).await.expect("read");
        for place in &places {
            assert_eq!(scene.compute.heard(place).len(), 1, "{name}: {place}");
        }
        match name {
            "by.json" => {
                let asked = &scene.compute.heard("/impersonate")[0];
                let bearer = header(&asked.head, "authorization").unwrap_or_default();
                assert!(bearer.starts_with("Bearer hunter2-"), "{asked:?}");
                let sent: Value = serde_json::from_str(&asked.body).expect("JSON");
                assert_eq!((&sent["delegates"], &sent["lifetime"]), (&json!(["d@x"]), &json!("3600s")));
            }
            "user.json" => assert_eq!(form(&scene.compute.heard("/refresh")[0].body)["refresh_token"], "r"),
            "external.json" => {
                let sent = form(&scene.compute.heard("/exchange")[0].body);
                assert_eq!(
                    (sent["subject_token"].as_str(), sent["audience"].as_str()),
                    ("subject-hunter2", "//iam.googleapis.com/pool")
                );
                assert!(sent["scope"].ends_with("/compute"), "{sent:?}");
            }
            _ => {
                let asked = scene.compute.heard("/impersonate");
                assert!(
                    header(&asked[0].head, "authorization")
                        .is_some_and(|value| value.starts_with("Bearer hunter2-"))
                );
                assert!(asked[0].body.contains("3600s"), "{asked:?}");
            }
        }
    }
}

#[tokio::test]
async fn who_gives_tokens_and_cannot_be_reached_is_named() {
    let scene = Scene::new(1).await;
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let nowhere = format!("http://{}", taken.local_addr().expect("an address"));
    drop(taken);
    let user = json!({
        "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r", "token_uri": format!("{nowhere}/t"),
    });
    let path = scene.write("user.json", &user.to_string());
    let driver = scene.driver_with(0, json!({ "credentials_file": path }));
    let orders = scene.orders(&driver).await;
    let error = driver.read_power(&scene.call(&orders)).await.expect_err("nobody is there");
    let words = format!("the token endpoint at {nowhere}: ");
    assert!(error.kind == ErrorKind::Unreachable && error.detail.contains(&words), "{error}");
}

/// S8: what does not say when it ends bounds nothing.
#[tokio::test]
async fn a_token_without_a_word_on_its_life_is_not_used() {
    let scene = Scene::new(1).await;
    scene.compute.with(|world| world.life = None);
    let driver = scene.driver(0);
    let orders = scene.orders(&driver).await;
    let error = driver.read_power(&scene.call(&orders)).await.expect_err("no life");
    assert_eq!(error.kind, ErrorKind::Protocol, "{error}");
    assert!(
        error.detail.contains("how long it lives") && scene.compute.heard("instances.get").is_empty(),
        "{error}"
    );
}

#[tokio::test]
async fn who_is_refused_a_token_does_not_ask_again_and_again() {
    let (scene, driver, orders) = Scene::of_one().await;
    scene.compute.fail("/token", Fault::Refuse(400, "invalid_grant", "Invalid JWT Signature."));
    for _ in 0..3 {
        let error = driver.read_power(&scene.call(&orders)).await.expect_err("refused");
        assert_eq!((error.kind, error.effect), (ErrorKind::Authentication, Effect::DidNotHappen), "{error}");
        assert!(error.detail.contains("Invalid JWT Signature"), "{error}");
    }
    assert_eq!(scene.compute.heard("/token").len(), 1);
    // Who gives tokens may only be starting: a fence waits for no half minute.
    scene.ahead(6);
    driver.read_power(&scene.call(&orders)).await.expect("it is asked for again");
}

#[tokio::test]
async fn a_token_is_renewed_before_its_end_and_where_it_is_refused() {
    let (scene, driver, orders) = Scene::of_one().await;
    let read = async || driver.read_power(&scene.call(&orders)).await.map(|reading| reading.power);
    read().await.expect("read");
    scene.ahead(3_400);
    read().await.expect("read");
    assert_eq!(scene.compute.heard("/token").len(), 1, "it serves");
    scene.ahead(100);
    read().await.expect("read");
    assert_eq!(scene.compute.heard("/token").len(), 2, "its end is near");
    // Revoked: the question is asked again with a new one.
    scene.ahead(60);
    scene.compute.with(|world| world.tokens.clear());
    read().await.expect("read");
    assert_eq!(scene.compute.heard("/token").len(), 3);
    // Where who gives tokens is away, what is left of the old one serves.
    scene.ahead(3_500);
    scene.compute.fail("/token", Fault::Refuse(503, "backendError", "Sorry."));
    read().await.expect("read");
}

/// A key's own words are taken by Google's clock: one that is wrong here keeps no fence back.
#[tokio::test]
async fn where_our_clock_is_wrong_a_token_is_asked_for_by_who_gives_them() {
    let scene = Scene::new(1).await;
    // Two hours behind ours.
    scene.compute.with(|world| world.now -= 7_200);
    let driver = scene.driver(0);
    let orders = scene.orders(&driver).await;
    let invalid = r#"{"error":"invalid_grant","error_description":"Invalid JWT: iat and exp"}"#;
    scene.compute.fail("/token", Fault::Say(400, invalid));
    driver.read_power(&scene.call(&orders)).await.expect("read");
    let issued: Vec<u64> = scene.compute.heard("/token").iter().map(|heard| issued_at(&heard.body)).collect();
    assert_eq!((issued.len(), issued[1]), (2, 2_000_000_000 - 7_200));
    assert!(issued[0] >= 2_000_000_000, "{issued:?}");
    // Where the clocks agree it is no matter of theirs.
    let scene = Scene::new(1).await;
    let driver = scene.driver(0);
    scene.compute.fail("/token", Fault::Say(400, invalid));
    let error = driver.read_power(&scene.call(&orders)).await.expect_err("refused");
    assert_eq!((error.kind, scene.compute.heard("/token").len()), (ErrorKind::Authentication, 1), "{error}");
}

fn issued_at(body: &str) -> u64 {
    let assertion = &form(body)["assertion"];
    let claims = assertion.split('.').nth(1).expect("three parts");
    let text = URL_SAFE_NO_PAD.decode(claims).expect("base64");
    serde_json::from_slice::<Value>(&text).expect("claims")["iat"].as_u64().expect("a time")
}
