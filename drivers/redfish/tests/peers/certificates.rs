//! Boards with certificates that no CA would make, and boards that speak no TLS of today.

use picket_core::power::Power;
use picket_driver::{Effect, ErrorKind};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::fake::Fake;
use crate::subject::Hand;

/// Where the certificates lie that OpenSSL made.
const MADE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/trust/tests/handshakes/certificates");

/// A board that shows one of them, with `ca` in its CA file.
async fn showing(name: &str, ca: &str) -> Fake {
    let certificate = CertificateDer::from_pem_file(format!("{MADE}/{name}.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(format!("{MADE}/{name}.key")).expect("a key");
    let ca = std::fs::read_to_string(format!("{MADE}/{ca}.pem")).expect("a certificate");
    Fake::showing(certificate, key, &ca).await
}

/// X.509 v1, a negative serial number, `openssl req -x509` with `CA:TRUE` and without names.
#[tokio::test]
async fn a_board_is_believed_by_the_sha256_of_its_odd_certificate() {
    for name in ["v1", "negative", "p384"] {
        let fake = showing(name, "ca").await;
        let pinned = json!({ "ca_file": null, "certificate_sha256": fake.digest() });
        assert_eq!(Hand::of(&fake, pinned).await.power().await, Power::On, "{name}");
        let error = Hand::of(&fake, json!({})).await.read().await.expect_err("that CA did not make it");
        assert_eq!((error.kind, error.effect), (ErrorKind::Authentication, Effect::DidNotHappen), "{error}");
    }
}

#[tokio::test]
async fn a_board_is_believed_by_its_own_certificate_in_the_ca_file() {
    for name in ["v1", "negative", "p384"] {
        let fake = showing(name, name).await;
        let hand = Hand::of(&fake, json!({})).await;
        assert_eq!(hand.power().await, Power::On, "{name}");
        hand.off().await.expect("taken");
    }
}

#[tokio::test]
async fn a_board_that_speaks_no_tls_of_today_is_told_as_one() {
    let fake = Fake::start().await;
    for (answer, kind, came_back) in [
        (&[21, 3, 2, 0, 2, 2, 70][..], ErrorKind::Protocol, "alert protocol_version"),
        (&[21, 3, 3, 0, 2, 2, 40], ErrorKind::Protocol, "alert handshake_failure"),
        (&[], ErrorKind::Unreachable, "ended the connection in the handshake"),
    ] {
        let board = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = board.local_addr().expect("an address").port();
        let settings = json!({ "port": port, "ca_file": null, "certificate_sha256": fake.digest() });
        let answers = tokio::spawn(async move {
            while let Ok((mut stream, _)) = board.accept().await {
                let _hello = stream.read(&mut [0; 4_096]).await;
                let _written = stream.write_all(answer).await;
                let _closed = stream.shutdown().await;
                let _rest = stream.read_to_end(&mut Vec::new()).await;
            }
        });
        let error = Hand::of(&fake, settings).await.read().await.expect_err("no TLS comes to be");
        assert_eq!((error.kind, error.effect), (kind, Effect::DidNotHappen), "{error}");
        let words = error.to_string();
        assert!(words.contains(came_back) && words.contains("TLS 1.2 with ECDHE"), "{words}");
        answers.abort();
    }
}
