//! Questions to places of the test's own.

use std::sync::Arc;

use picket_trust::fakes::OwnCertificate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

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
