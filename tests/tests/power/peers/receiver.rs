//! The receiver of releases answers as it was told, and keeps what it got.

use std::time::{Duration, SystemTime};

use picket_tests::peers::HANGS;
use picket_tests::{Answer, ExampleReceiver, Result, Webhook};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Posts a request for release under a key, and returns all that is answered.
async fn post_as(url: &str, key: &str, body: &str) -> String {
    post_to(url, "/release", key, body).await.expect("the connection ends")
}

/// Posts a body, and returns all that is answered until the connection ends; `None` if it does not.
async fn post(url: &str, path: &str, body: &str) -> Option<String> {
    post_to(url, path, "k1", body).await
}

async fn post_to(url: &str, path: &str, key: &str, body: &str) -> Option<String> {
    let address = url.trim_start_matches("http://").trim_end_matches("/release").to_owned();
    let mut connection = TcpStream::connect(&address).await.expect("it listens");
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nIdempotency-Key: {key}\r\nContent-Length: {}",
        body.len()
    );
    connection.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    let end = timeout(HANGS, connection.read_to_string(&mut answer)).await;
    end.ok().map(|read| read.map(|_| answer).unwrap_or_default())
}

#[tokio::test]
async fn it_answers_and_remembers() -> Result<()> {
    let webhook = Webhook::start().await?;
    let body = r#"{"node": "n1", "generation": 3}"#;
    for (answer, start, word) in [
        (Answer::Complete, "HTTP/1.1 200", "complete"),
        (Answer::Accepted, "HTTP/1.1 202", "/status"),
        (Answer::Unknown, "HTTP/1.1 200", "unknown"),
        (Answer::Status(503), "HTTP/1.1 503", ""),
        (Answer::HangUp, "", ""),
    ] {
        webhook.answer(answer);
        let said = post(&webhook.url(), "/release", body).await.expect("the connection ends");
        assert!(said.starts_with(start) && said.contains(word), "{answer:?}: {said}");
    }
    webhook.answer(Answer::Silence);
    let silent = timeout(Duration::from_secs(2), post(&webhook.url(), "/release", body)).await;
    assert!(silent.is_err(), "{silent:?}");
    webhook.answer_status(Answer::Accepted);
    assert!(post(&webhook.url(), "/status", "").await.expect("an answer").contains("accepted"));

    let releases = webhook.wait_for(6, HANGS).await?;
    assert_eq!((releases.len(), webhook.hooks().len()), (6, 7));
    let first = &releases[0];
    assert_eq!((first.method.as_str(), first.text("node"), first.number("generation")), ("POST", "n1", 3));
    assert_eq!(first.headers["idempotency-key"], "k1");
    Ok(())
}

/// S4: whoever begins from it does not begin with a receiver that lets go for anybody.
#[test]
fn the_example_does_not_start_without_a_token() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/examples/webhook_receiver.py");
    // Where it started all the same it could not listen there, and ended with another code.
    let ended = std::process::Command::new("python3").args([script, "--listen", "127.0.0.1:-1"]).output();
    let ended = ended.expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(
        ended.status.code() == Some(2) && said.contains("a --token-file with a token is needed"),
        "{said}"
    );
}

#[tokio::test]
async fn the_example_does_its_duties() -> Result<()> {
    let receiver = ExampleReceiver::start().await?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let in_a_minute = u64::try_from(now.as_millis()).expect("a while yet") + 60_000;
    for (generation, not_after, code, word) in [
        (3, in_a_minute, "200", "complete"),
        (3, in_a_minute, "200", "complete"),
        (2, in_a_minute, "409", "generation 3"),
        (4, in_a_minute - 120_000, "410", "too late"),
        (4, in_a_minute, "200", "complete"),
    ] {
        let request = json!({
            "node": "n1", "generation": generation, "key": "without a header",
            "not_after": "soon", "not_after_unix_ms": not_after,
        });
        // Its key is in the header: one for each generation.
        let said = post_as(receiver.url(), &format!("k{generation}"), &request.to_string()).await;
        assert!(said.split(' ').nth(1) == Some(code) && said.contains(word), "{generation}: {said}");
    }
    assert!(post_as(receiver.url(), "k", "nonsense").await.contains(" 400 "));
    assert!(receiver.said().contains("release of n1, generation 3"));
    Ok(())
}
