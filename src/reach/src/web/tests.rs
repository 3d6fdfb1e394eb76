//! Questions to places of the test's own.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use picket_trust::fakes::OwnCertificate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower_layer::Layer;
use tower_service::Service;

use super::*;

/// A server of TLS with that certificate, which answers one question, or what answers the handshake so instead.
async fn served(shown: Shown) -> String {
    let place = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let origin = format!("https://{}/", place.local_addr().expect("an address"));
    tokio::spawn(async move {
        let (mut stream, _) = place.accept().await.expect("a caller");
        match shown {
            Shown::Bytes(bytes) => {
                let _hello = stream.read(&mut [0; 4_096]).await;
                stream.write_all(bytes).await.expect("written");
                let _rest = stream.read_to_end(&mut Vec::new()).await;
            }
            Shown::Certificate(acceptor) => {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let _request = stream.read(&mut [0; 4_096]).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.expect("written");
                let _closed = stream.shutdown().await;
            }
        }
    });
    origin
}

enum Shown {
    Certificate(TlsAcceptor),
    Bytes(&'static [u8]),
}

fn own() -> (tempfile::NamedTempFile, Shown) {
    let made = OwnCertificate::new();
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), made.pem).expect("written");
    (file, Shown::Certificate(TlsAcceptor::from(Arc::new(made.server))))
}

async fn asked(ca_file: &Path, shown: Shown) -> Result<Answer, NoAnswer> {
    let client = client(true, Some(ca_file)).expect("a client");
    exchange(client.get(served(shown).await), None, Instant::now() + Duration::from_secs(30)).await
}

#[tokio::test]
async fn a_place_is_believed_by_its_own_certificate_in_the_ca_file() {
    let (file, shown) = own();
    assert_eq!(asked(file.path(), shown).await.expect("an answer").code, StatusCode::OK);
    let (_, another) = own();
    let told = asked(file.path(), another).await;
    let Err(NoAnswer::NeverSent(why)) = told else { panic!("{told:?}") };
    assert!(why.starts_with("its certificate is not believed"), "{why}");
}

#[tokio::test]
async fn a_place_that_speaks_no_tls_of_today_is_told_as_one() {
    let (file, _) = own();
    for (bytes, came_back) in [
        (&[21, 3, 2, 0, 2, 2, 70][..], "alert protocol_version"),
        (&[21, 3, 3, 0, 2, 2, 40], "alert handshake_failure"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "no TLS"),
    ] {
        let told = asked(file.path(), Shown::Bytes(bytes)).await;
        let Err(NoAnswer::NeverSent(why)) = told else { panic!("{told:?}") };
        assert!(why.contains(came_back), "{why}");
    }
}

/// A network in which each connection is reset before it stands.
#[derive(Clone, Copy)]
struct Resets;

#[derive(Clone)]
struct Reset<S>(S);

impl<S> Layer<S> for Resets {
    type Service = Reset<S>;

    fn layer(&self, connects: S) -> Reset<S> {
        Reset(connects)
    }
}

impl<R, S: Service<R>> Service<R> for Reset<S> {
    type Response = S::Response;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = std::future::Ready<Result<S::Response, Self::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: R) -> Self::Future {
        std::future::ready(Err(io::Error::from(io::ErrorKind::ConnectionReset).into()))
    }
}

#[tokio::test]
async fn a_reset_without_tls_is_not_told_as_a_handshake() {
    for https in [false, true] {
        let client =
            built(builder(0, https, None).expect("settings").connector_layer(Resets)).expect("a client");
        let scheme = if https { "https" } else { "http" };
        let request = client.get(format!("{scheme}://127.0.0.1:1/"));
        let told = exchange(request, None, Instant::now() + Duration::from_secs(30)).await;
        let Err(NoAnswer::NeverSent(why)) = told else { panic!("{told:?}") };
        assert!(why.contains("reset") && why.contains("in the handshake") == https, "{why}");
    }
}

/// What is heard of a server that says this, and closes.
async fn heard(said: &'static str) -> Result<Answer, NoAnswer> {
    let place = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = place.local_addr().expect("an address");
    tokio::spawn(async move {
        let (mut stream, _) = place.accept().await.expect("a caller");
        let _request = stream.read(&mut [0; 4_096]).await;
        stream.write_all(said.as_bytes()).await.expect("written");
    });
    let client = client(false, None).expect("a client");
    let end = Instant::now() + Duration::from_secs(30);
    exchange(client.get(format!("http://{address}/")), None, end).await
}

#[tokio::test]
async fn a_refusal_that_breaks_off_is_one_and_a_yes_is_none() {
    let cut = |status: &str| {
        format!("HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwhat\r\n").leak() as &str
    };
    for status in ["401 Unauthorized", "503 Busy"] {
        let answer = heard(cut(status)).await.expect("its status was read");
        assert!(answer.cut && answer.body == b"what" && status.starts_with(answer.code.as_str()));
    }
    // What it says stands in its body.
    let half = heard(cut("200 OK")).await;
    assert!(matches!(half, Err(NoAnswer::Broken(_))), "{half:?}");
}
