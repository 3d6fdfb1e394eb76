//! The webhook against a receiver that answers what it is told to.

mod receiver;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use picket_reach::SettingFault;
use receiver::{Receiver, Then, answer};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::message::tests::{sample, subject};

fn webhook(table: Value) -> Result<Webhook, Vec<SettingFault>> {
    let mut settings = Settings::new(table.as_object().expect("a table"));
    let made = Webhook::read("san", &mut settings);
    settings.finish(made)
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn permitted() -> Result<(), String> {
    Ok(())
}

async fn attempt(then: Then) -> Result<Progress, ReleaseError> {
    let receiver = Receiver::start(vec![then], None).await;
    let webhook = webhook(json!({"url": format!("{}/release", receiver.origin)})).expect("right settings");
    webhook.post(&sample(), soon(), permitted).await
}

/// S4: a receiver that cannot tell who asks lets go for anybody.
#[test]
fn a_webhook_without_a_token_is_told() {
    let mut token = tempfile::NamedTempFile::new().expect("a file");
    writeln!(token, "hunter2.hunter2").expect("written");
    let url = "https://storage.example/release";
    let without = webhook(json!({ "url": url })).expect("right settings").remarks();
    assert!(without.len() == 1 && without[0].contains("has no token"), "{without:?}");
    let with = webhook(json!({ "url": url, "token_file": token.path() })).expect("right settings");
    assert_eq!(with.remarks(), [""; 0]);
}

#[tokio::test]
async fn the_request_is_the_document_with_its_key_and_token() {
    let mut token = tempfile::NamedTempFile::new().expect("a file");
    writeln!(token, "hunter2.hunter2").expect("written");
    let receiver = Receiver::start(vec![answer("200 OK", r#"{"status":"complete"}"#)], None).await;
    let webhook = webhook(json!({
        "url": format!("{}/v1/release?array=7", receiver.origin), "token_file": token.path(),
    }))
    .expect("right settings");
    assert!(!format!("{webhook:?}").contains("hunter2"));
    assert_eq!(
        webhook.post(&sample(), soon(), permitted).await,
        Ok(Progress::Complete("complete".to_owned()))
    );
    let heard = receiver.heard();
    let (head, body) = heard[0].split_once("\r\n\r\n").expect("a request");
    let head = head.to_lowercase();
    assert!(head.starts_with("post /v1/release?array=7 http/1.1\r\n"), "{head}");
    for line in [
        "authorization: bearer hunter2.hunter2",
        "content-type: application/json",
        "idempotency-key: 019aa7c8-4a0a-7000-8000-000000000001/7/san",
    ] {
        assert!(head.lines().any(|have| have == line), "{line} in {head}");
    }
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body, serde_json::to_value(sample()).expect("JSON"));
}

#[tokio::test]
async fn only_the_agreed_words_are_complete_or_accepted() {
    assert_eq!(
        attempt(answer("200 OK", r#"{"status": "complete", "detail": "3 LUNs\nunmapped"}"#)).await,
        Ok(Progress::Complete("3 LUNs unmapped".to_owned()))
    );
    let accepted =
        attempt(answer("202 Accepted", r#"{"status":"accepted","status_url":"jobs/12?x=1"}"#)).await;
    assert!(
        matches!(&accepted, Ok(Progress::Accepted(url)) if url.ends_with("/jobs/12?x=1")),
        "{accepted:?}"
    );
    let header = "HTTP/1.1 202 Accepted\r\nLocation: /jobs/13\r\nContent-Length: 0\r\n\r\n".to_owned();
    let accepted = attempt(Then::Answer(header)).await;
    assert!(matches!(&accepted, Ok(Progress::Accepted(url)) if url.ends_with("/jobs/13")), "{accepted:?}");
    for unclear in [
        answer("200 OK", "OK"),
        answer("200 OK", ""),
        answer("204 No Content", ""),
        answer("200 OK", r#"{"status":"completed"}"#),
        answer("200 OK", r#"{"status":"unknown"}"#),
        answer("202 Accepted", ""),
        answer("202 Accepted", r#"{"status":"complete"}"#),
        answer("200 OK", &format!("{{\"status\":\"complete\",\"detail\":\"{}\"}}", "x".repeat(KEPT))),
        Then::Answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"status\":\"complete\"}".to_owned()),
        Then::Answer("SSH-2.0-OpenSSH_9.2\r\n".to_owned()),
    ] {
        let told = attempt(unclear).await;
        assert!(matches!(told, Err(ReleaseError::Unknown(_))), "{told:?}");
    }
}

#[tokio::test]
async fn a_refusal_did_not_happen_and_everything_else_is_unknown() {
    for (code, happened) in [
        ("400 Bad Request", false),
        ("401 Unauthorized", false),
        ("404 Not Found", false),
        ("409 Conflict", false),
        ("410 Gone", false),
        ("422 Unprocessable Entity", false),
        ("408 Request Timeout", true),
        ("425 Too Early", true),
        ("429 Too Many Requests", true),
        ("301 Moved Permanently", true),
        ("500 Internal Server Error", true),
        ("503 Service Unavailable", true),
    ] {
        let told = attempt(answer(code, r#"{"status":"complete"}"#)).await;
        match told {
            Err(ReleaseError::Unknown(why)) if happened => assert!(why.contains(code), "{why}"),
            Err(ReleaseError::DidNotHappen(why)) if !happened => assert!(why.contains(code), "{why}"),
            other => panic!("{code}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn what_was_sent_and_not_answered_is_unknown() {
    assert!(matches!(attempt(Then::HangUp).await, Err(ReleaseError::Unknown(_))));
    let receiver = Receiver::start(vec![Then::Silence], None).await;
    let webhook = webhook(json!({"url": receiver.origin})).expect("right settings");
    // On a busy machine the time may be over before it is sent: then there is more of it.
    let mut told = webhook.post(&sample(), Instant::now() + Duration::from_millis(300), permitted).await;
    if matches!(told, Err(ReleaseError::DidNotHappen(_))) {
        told = webhook.post(&sample(), Instant::now() + Duration::from_secs(10), permitted).await;
    }
    assert!(matches!(&told, Err(ReleaseError::Unknown(why)) if why.contains("in time")), "{told:?}");
    assert_eq!(receiver.heard().len(), 1, "nothing is repeated below");
}

/// As of a process that was stopped between the permit and the request.
#[tokio::test]
async fn nothing_is_sent_when_the_time_is_over() {
    let receiver = Receiver::start(vec![Then::Silence], None).await;
    let webhook = webhook(json!({"url": receiver.origin})).expect("right settings");
    let late = Message { not_after_unix_ms: Some(1_795_250_433_100), ..sample() };
    for (message, until) in [(&sample(), Instant::now()), (&late, soon())] {
        let told = webhook.post(message, until, permitted).await;
        assert!(matches!(&told, Err(ReleaseError::DidNotHappen(why)) if why.contains("over")), "{told:?}");
    }
    assert!(receiver.heard().is_empty());
}

#[tokio::test]
async fn what_was_never_connected_did_not_happen() {
    // Bound, so that nobody else comes by the port, and deaf.
    let deaf = tokio::net::TcpSocket::new_v4().expect("a socket");
    deaf.bind(([127, 0, 0, 1], 0).into()).expect("a port");
    let url = format!("http://{}/", deaf.local_addr().expect("is bound"));
    let webhook = webhook(json!({"url": url})).expect("right settings");
    let told = webhook.post(&sample(), soon(), permitted).await;
    assert!(matches!(&told, Err(ReleaseError::DidNotHappen(why)) if why.contains("refused")), "{told:?}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Receiver::start(vec![answer("200 OK", r#"{"status":"complete"}"#)], None).await;
    let redirect = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: {}/\r\nContent-Length: 0\r\n\r\n",
        elsewhere.origin
    );
    assert!(matches!(attempt(Then::Answer(redirect)).await, Err(ReleaseError::Unknown(_))));
    assert!(elsewhere.heard().is_empty());
}

#[tokio::test]
async fn a_token_that_comes_back_is_not_shown() {
    let mut token = tempfile::NamedTempFile::new().expect("a file");
    write!(token, "hunter2").expect("written");
    let cut = format!("{}hunter2", "x".repeat(196));
    for (code, body) in [
        ("400 Bad Request", "you sent Bearer hunter2"),
        ("500 Oh", "hunter2"),
        ("200 OK", r#"{"status":"complete","detail":"you sent Bearer hunter2"}"#),
        ("200 OK", r#"{"status":"hunter2"}"#),
        ("202 Accepted", r#"{"status":"accepted","status_url":"/jobs/hunter2"}"#),
        ("400 Bad Request", cut.as_str()),
    ] {
        let echo = answer(code, body);
        let receiver = Receiver::start(vec![echo], None).await;
        let webhook =
            webhook(json!({"url": receiver.origin, "token_file": token.path()})).expect("right settings");
        let told = format!("{:?}", webhook.post(&sample(), soon(), permitted).await);
        assert!(told.contains("[tok") && !told.contains("hunt"), "{told}");
    }
}

#[tokio::test]
async fn the_status_url_is_followed_at_the_receiver_alone() {
    let receiver = Receiver::start(
        vec![
            answer("200 OK", r#"{"status":"accepted"}"#),
            answer("200 OK", r#"{"status":"complete","detail":"done"}"#),
            answer("200 OK", r#"{"status":"unknown"}"#),
            answer("404 Not Found", "no such job"),
            answer("403 Forbidden", ""),
            answer("503 Busy", ""),
            answer("200 OK", "fine"),
        ],
        None,
    )
    .await;
    let webhook = webhook(json!({"url": format!("{}/a/release", receiver.origin)})).expect("right settings");
    let job = format!("{}/jobs/1", receiver.origin);
    let look = async || webhook.look(&job, soon()).await;
    assert_eq!(look().await, Ok(Progress::Accepted(job.clone())));
    assert_eq!(look().await, Ok(Progress::Complete("done".to_owned())));
    for _ in ["unknown", "404"] {
        assert!(matches!(look().await, Ok(Progress::NotThere(_))));
    }
    for _ in ["403", "503", "nonsense"] {
        let told = look().await;
        assert!(matches!(told, Err(ReleaseError::Unknown(_))), "{told:?}");
    }
    assert!(receiver.heard().iter().all(|request| request.starts_with("GET /jobs/1 ")));
    for elsewhere in [
        "http://127.0.0.1:1/jobs/1",
        "https://127.0.0.1/",
        "http://localhost/",
        "file:///etc/shadow",
        "http://user@",
        "//evil",
    ] {
        let told = webhook.look(elsewhere, soon()).await;
        assert!(matches!(told, Err(ReleaseError::Unknown(_))), "{elsewhere}: {told:?}");
    }
    let with_user = job.replace("http://", "http://user:secret@");
    assert!(matches!(webhook.look(&with_user, soon()).await, Err(ReleaseError::Unknown(_))));
    assert_eq!(receiver.heard().len(), 7);
}

#[tokio::test]
async fn an_acceptance_that_leads_elsewhere_is_unknown() {
    let told = attempt(answer(
        "202 Accepted",
        r#"{"status":"accepted","status_url":"http://169.254.169.254/latest"}"#,
    ))
    .await;
    assert!(matches!(&told, Err(ReleaseError::Unknown(why)) if why.contains("169.254.169.254")), "{told:?}");
}

/// A CA of a test, and a server certificate of it for 127.0.0.1.
fn certificates() -> (tempfile::NamedTempFile, TlsAcceptor) {
    let ca_key = rcgen::KeyPair::generate().expect("a key");
    let mut ca = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    ca.distinguished_name.push(rcgen::DnType::CommonName, "a CA of a test");
    let ca = rcgen::CertifiedIssuer::self_signed(ca, ca_key).expect("a CA");
    let key = rcgen::KeyPair::generate().expect("a key");
    let leaf = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    let leaf = leaf.signed_by(&key, &ca).expect("a certificate");
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(ca.pem().as_bytes()).expect("written");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .expect("a server's settings");
    (file, TlsAcceptor::from(Arc::new(config)))
}

#[tokio::test]
async fn a_receiver_is_believed_by_its_own_ca_alone() {
    let (ca, acceptor) = certificates();
    let (other_ca, _) = certificates();
    let receiver = Receiver::start(vec![answer("200 OK", r#"{"status":"complete"}"#)], Some(acceptor)).await;
    let right = webhook(json!({"url": receiver.origin, "ca_file": ca.path()})).expect("right settings");
    assert_eq!(right.post(&sample(), soon(), permitted).await, Ok(Progress::Complete("complete".to_owned())));
    let wrong = webhook(json!({"url": receiver.origin, "ca_file": other_ca.path()})).expect("right settings");
    let told = wrong.post(&sample(), soon(), permitted).await;
    assert!(
        matches!(&told, Err(ReleaseError::DidNotHappen(why)) if why.contains("certificate")),
        "the request was never sent, and it says why: {told:?}"
    );
    let name =
        webhook(json!({"url": receiver.origin.replace("127.0.0.1", "localhost"), "ca_file": ca.path()}))
            .expect("right settings");
    let told = name.post(&sample(), soon(), permitted).await;
    assert!(matches!(told, Err(ReleaseError::DidNotHappen(_))), "another name: {told:?}");
    let requests = receiver.heard().iter().filter(|heard| heard.starts_with("POST")).count();
    assert_eq!(requests, 1);
}

/// As of a look that grew old while the receiver's TLS began.
#[tokio::test]
async fn what_is_permitted_no_more_once_the_receiver_is_connected_is_not_sent() {
    let (ca, acceptor) = certificates();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://{}/", listener.local_addr().expect("is bound"));
    let is_old = Arc::new(AtomicBool::new(false));
    let grows_old = is_old.clone();
    let hears = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        grows_old.store(true, Ordering::SeqCst);
        let mut stream = acceptor.accept(stream).await.expect("a handshake");
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard).await;
        heard
    });
    let webhook = webhook(json!({"url": url, "ca_file": ca.path()})).expect("right settings");
    let may_send = move || match is_old.load(Ordering::SeqCst) {
        true => Err("it was seen off long ago".to_owned()),
        false => Ok(()),
    };
    let told = webhook.post(&sample(), soon(), may_send).await;
    assert!(
        matches!(&told, Err(ReleaseError::DidNotHappen(why)) if why.contains("was not begun: it was seen off long ago")),
        "{told:?}"
    );
    assert!(hears.await.expect("it ends").is_empty());
}

#[test]
fn all_faults_are_told_at_once_and_none_tells_a_secret() {
    let faults = webhook(json!({
        "token_file": "/nowhere", "token_env": "HIDDEN", "ca_file": 7, "plain_http": "HIDDEN", "attempt": "61s", "tokn": "HIDDEN",
    }))
    .expect_err("nothing of it is right");
    let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
    assert_eq!(keys, ["url", "plain_http", "token_env", "ca_file", "attempt", "tokn"]);
    assert!(!format!("{faults:?}").contains("HIDDEN"));
    let mut token = tempfile::NamedTempFile::new().expect("a file");
    write!(token, "hunter 2").expect("written");
    for (table, key) in [
        (json!({"url": "http://storage.example/", "plain_http": true, "token_env": "PATH"}), "url"),
        (json!({"url": "https://127.0.0.1/", "token_file": token.path()}), "token_file"),
        (json!({"url": "https://127.0.0.1/", "token_env": "hunter2"}), "token_env"),
        (json!({"url": "https://127.0.0.1/", "token_env": "PICKET_NO_SUCH"}), "token_env"),
        (json!({"url": "https://127.0.0.1/", "token_credential": "../x"}), "token_credential"),
        (json!({"url": "https://127.0.0.1/", "ca_file": "/nowhere"}), "ca_file"),
        (json!({"url": "https://127.0.0.1/", "ca_file": token.path()}), "ca_file"),
        (json!({"url": "http://127.0.0.1/", "ca_file": token.path()}), "ca_file"),
    ] {
        let faults = webhook(table).expect_err(key);
        assert_eq!(faults[0].key, key, "{faults:?}");
        assert!(!faults[0].message.contains("hunter"), "{faults:?}");
    }
}

#[test]
fn an_attempt_lives_as_long_as_its_not_after_and_the_clocks_differ() {
    let webhook =
        webhook(json!({"url": "http://127.0.0.1/", "deadline": "9m", "settle": "0s"})).expect("right");
    assert_eq!(webhook.max_in_flight(), Some(Duration::from_secs(65)));
    assert_eq!((webhook.deadline(), webhook.settle()), (Duration::from_secs(540), Duration::ZERO));
    assert_eq!(webhook.attempt_time(), Duration::from_secs(15));
}

#[tokio::test]
async fn a_look_needs_what_was_accepted() {
    let webhook = webhook(json!({"url": "http://127.0.0.1:1/"})).expect("right settings");
    let told = webhook.observe(&subject("http://127.0.0.1:2/job"), soon()).await;
    assert!(matches!(told, Err(ReleaseError::Unknown(_))), "{told:?}");
}
