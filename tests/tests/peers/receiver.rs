//! The receiver of releases answers as it was told, and keeps what it got.

use std::time::Duration;

use picket_tests::{Answer, Result, Webhook};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Posts a body, and returns all that is answered until the connection ends.
async fn post(webhook: &Webhook, path: &str, body: &str) -> Option<String> {
    let address = webhook.url().trim_start_matches("http://").trim_end_matches("/release").to_owned();
    let mut connection = TcpStream::connect(&address).await.expect("it listens");
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nIdempotency-Key: k1\r\nContent-Length: {}",
        body.len()
    );
    connection.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    let end = timeout(Duration::from_millis(500), connection.read_to_string(&mut answer)).await;
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
        let said = post(&webhook, "/release", body).await.expect("the connection ends");
        assert!(said.starts_with(start) && said.contains(word), "{answer:?}: {said}");
    }
    webhook.answer(Answer::Silence);
    assert_eq!(post(&webhook, "/release", body).await, None);
    webhook.answer_status(Answer::Accepted);
    assert!(post(&webhook, "/status", "").await.expect("an answer").contains("accepted"));

    let releases = webhook.wait_for(6, Duration::from_secs(1)).await?;
    assert_eq!((releases.len(), webhook.hooks().len()), (6, 7));
    let first = &releases[0];
    assert_eq!((first.method.as_str(), first.text("node"), first.number("generation")), ("POST", "n1", 3));
    assert_eq!(first.headers["idempotency-key"], "k1");
    Ok(())
}
