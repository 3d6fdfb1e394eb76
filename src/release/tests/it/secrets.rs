//! S18: the token is in no log at any level, in no debug print and in no error.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::ids::{FenceId, Generation, NodeId, ReleaseId};
use picket_core::time::WallTime;
use picket_release::{Subject, make};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;

const TOKEN: &str = "correct-horse-battery-staple";

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_token_is_sent_and_never_told() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .init();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let origin = format!("http://{}", listener.local_addr().expect("is bound"));
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("somebody asks");
        let mut bytes = [0; 4096];
        let length = stream.read(&mut bytes).await.expect("asks");
        let heard = String::from_utf8_lossy(&bytes[..length]).into_owned();
        let body = format!("you sent {heard}");
        let answer = format!("HTTP/1.1 400 Bad Request\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.expect("is heard");
        heard
    });
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    writeln!(file, "{TOKEN}").expect("written");
    let table = json!({"url": format!("{origin}/release"), "token_file": file.path()});
    let webhook = make("san", "webhook", table.as_object().expect("a table")).expect("right settings");
    let subject = Subject {
        node: NodeId::new("n1").expect("a name"),
        fence: FenceId::mint(WallTime::default(), [0; 10]),
        generation: Generation(1),
        round: 0,
        release: ReleaseId::new("san").expect("a name"),
        accepted: format!("{origin}/jobs/1"),
        identities: Vec::new(),
        met: None,
    };
    let told = webhook.observe(&subject, Instant::now() + Duration::from_secs(5)).await;
    let heard = server.await.expect("served");
    assert!(heard.contains(TOKEN), "it is sent: {heard}");
    let log = String::from_utf8(log.0.lock().clone()).expect("text");
    assert!(log.contains("hyper"), "the log holds what libraries say: {log}");
    for text in [log, format!("{told:?}"), format!("{webhook:?}")] {
        assert!(!text.contains(TOKEN), "{text}");
    }
}
