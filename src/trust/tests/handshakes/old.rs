//! Services that speak no TLS of today: bytes as they come from them.

use std::io;
use std::sync::Arc;

use picket_trust::Believed;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

/// What a client says of a service that answers its first message so, and closes.
async fn told(answer: &[u8]) -> (bool, String) {
    let client = picket_trust::config(&Believed::Anyone).expect("right settings");
    let (here, mut there) = tokio::io::duplex(1 << 16);
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let connects = TlsConnector::from(Arc::new(client)).connect(name, here);
    let answers = async {
        let _hello = there.read(&mut [0; 4_096]).await?;
        there.write_all(answer).await?;
        there.shutdown().await?;
        // Until the client has gone: what it says meanwhile is read.
        let _rest = there.read_to_end(&mut Vec::new()).await?;
        io::Result::Ok(())
    };
    let (connected, answered) = tokio::join!(async { connects.await.map(drop) }, answers);
    answered.expect("both ends are in memory");
    let error = connected.expect_err("no TLS comes to be");
    let why = picket_trust::failure(&error).expect("a matter of TLS");
    (why.is_distrust(), why.to_string())
}

/// A server's first message: this version, and this cipher suite.
fn hello(version: [u8; 2], suite: [u8; 2]) -> Vec<u8> {
    let body = [&version[..], &[7; 32], &[0], &suite, &[0]].concat();
    let message = [&[2, 0, 0, body.len() as u8], &body[..]].concat();
    [&[22, version[0], version[1], 0, message.len() as u8], &message[..]].concat()
}

#[tokio::test]
async fn a_service_that_speaks_no_tls_of_today_is_told_what_was_offered_and_what_came_back() {
    for (answer, came_back) in [
        (vec![21, 3, 2, 0, 2, 2, 70], "alert protocol_version"),
        (vec![21, 3, 1, 0, 2, 2, 40], "alert handshake_failure"),
        (vec![21, 3, 3, 0, 2, 2, 71], "alert insufficient_security"),
        // TLS 1.1 and 1.0, by TLS_RSA_WITH_AES_128_CBC_SHA.
        (hello([3, 2], [0, 0x2f]), "a version before TLS 1.2"),
        (hello([3, 1], [0, 0x2f]), "a version before TLS 1.2"),
        // TLS 1.2 by TLS_RSA_WITH_AES_128_GCM_SHA256, which nobody offered.
        (hello([3, 3], [0, 0x9c]), "a cipher suite that was not offered"),
        (Vec::new(), "ended the connection"),
    ] {
        let (distrust, why) = told(&answer).await;
        assert!(!distrust && why.contains(came_back), "{answer:?}: {why}");
        assert!(
            why.contains("offered were TLS 1.3, and TLS 1.2 with ECDHE") && why.contains("update"),
            "{why}"
        );
    }
}

#[tokio::test]
async fn a_service_without_tls_is_told_as_one() {
    let (distrust, why) = told(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    assert!(!distrust && why.contains("no TLS") && why.contains("plain http"), "{why}");
}

#[tokio::test]
async fn a_service_that_wants_a_certificate_of_ours_is_told_as_one() {
    let (distrust, why) = told(&[21, 3, 3, 0, 2, 2, 116]).await;
    assert!(!distrust && why.contains("wants a certificate of ours") && !why.contains("offered"), "{why}");
}

#[test]
fn what_is_no_matter_of_tls_is_not_told_as_one() {
    let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    assert!(picket_trust::failure(&refused).is_none());
}
