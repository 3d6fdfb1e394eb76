//! A connection before a listener of the test's own.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::Full;
use hyper::body::Bytes;
use picket_driver::ErrorKind;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::{Connection, ConnectionError};
use crate::settings::Settings;

/// No bound of an idle machine: what is slow here is the machine.
const AGES: Duration = Duration::from_secs(30);

/// A service's end, who believes it, and what it is called.
pub(crate) struct ServiceEnd {
    pub(crate) listener: TcpListener,
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) settings: Settings,
    tls: TlsConnector,
    name: ServerName<'static>,
}

pub(crate) async fn service_end() -> ServiceEnd {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("parameters");
    let certificate = certificate.self_signed(&key).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .expect("a certificate with its key");
    let password = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(password.path(), "secret").expect("written");
    let settings = json!({
        "host": "127.0.0.1", "port": address.port(), "username": "u", "password_file": password.path(),
        "accept_any_certificate": true,
    });
    let Value::Object(settings) = settings else { panic!("a table") };
    let settings = Settings::check(&settings).expect("right settings");
    let tls =
        TlsConnector::from(Arc::new(picket_trust::config(&settings.believed).expect("no file is needed")));
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    ServiceEnd { listener, acceptor: TlsAcceptor::from(Arc::new(config)), settings, tls, name }
}

/// Both ends of one.
async fn pair() -> (Connection, TlsStream<TcpStream>) {
    let ServiceEnd { listener, acceptor, settings, tls, name } = service_end().await;
    let until = Instant::now() + AGES;
    let there = async {
        let (stream, _) = listener.accept().await.expect("somebody comes");
        acceptor.accept(stream).await.expect("hands are shaken")
    };
    let (here, there) = tokio::join!(Connection::open(1, None, &settings, &tls, &name, until), there);
    (here.expect("a connection"), there)
}

#[tokio::test]
async fn an_address_at_which_nobody_answers_leaves_room_for_the_next() {
    let ServiceEnd { listener, acceptor, settings, tls, name } = service_end().await;
    // Its kernel takes the connection, and nobody says a word.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    // Bound, so that nobody else comes by the port, and deaf.
    let deaf = tokio::net::TcpSocket::new_v4().expect("a socket");
    deaf.bind(([127, 0, 0, 1], 0).into()).expect("a port");
    let closed = deaf.local_addr().expect("an address");
    let there = listener.local_addr().expect("an address");
    let mute = silent.local_addr().expect("an address");
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            kept.push(acceptor.accept(stream).await);
        }
    });
    let reaches = async |addresses: &[std::net::SocketAddr], time: Duration| {
        let began = Instant::now();
        let reached = super::reach(addresses, &settings, &tls, &name, began + time).await;
        (reached.map(|stream| stream.get_ref().0.peer_addr().expect("connected")), began.elapsed())
    };
    let mut time = Duration::from_secs(8);
    let (mut reached, mut took) = reaches(&[mute, closed, there], time).await;
    while reached.as_ref().is_err_and(|error| error.kind == ErrorKind::TimedOut) && time < AGES {
        // A busy machine had not shaken hands by then.
        time *= 4;
        (reached, took) = reaches(&[mute, closed, there], time).await;
    }
    assert_eq!(reached.expect("the last one answers"), there);
    // The silent one had a quarter, and what was left was enough.
    assert!(took >= time / 4, "{took:?}");
    // The last one has all that is left, and says that nobody was there.
    let (error, took) = reaches(&[closed, mute], Duration::from_secs(1)).await;
    let error = error.expect_err("nobody answers");
    assert_eq!(error.kind, ErrorKind::TimedOut, "{error}");
    assert!(took >= Duration::from_millis(990), "{took:?}");
    let (error, _) = reaches(&[], Duration::from_secs(1)).await;
    assert_eq!(error.expect_err("no address").kind, ErrorKind::Unreachable);
}

fn question() -> Request<Full<Bytes>> {
    Request::builder().uri("/").header("Host", "x").body(Full::default()).expect("a request")
}

#[tokio::test]
async fn what_is_closed_between_the_look_at_it_and_the_request_is_known_at_once() {
    let (mut here, mut there) = pair().await;
    assert!(here.is_usable().await);
    there.shutdown().await.expect("said");
    drop(there);
    // Until its end has come here: nobody looks at it meanwhile.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    let began = Instant::now();
    let broken = here.exchange(question(), began + AGES).await.expect_err("nobody is there");
    assert!(!matches!(broken, ConnectionError::Late), "{broken:?} after {:?}", began.elapsed());
    assert!(!here.is_usable().await);
}

#[tokio::test]
async fn what_a_service_says_unasked_is_no_answer_to_what_is_asked_next() {
    let (mut here, mut there) = pair().await;
    assert!(here.is_usable().await);
    there.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await.expect("written");
    there.flush().await.expect("written");
    // It has been written, and arrives when the machine comes to it.
    let came = async {
        while here.is_usable().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(AGES, came).await.expect("it is seen");
    drop(there);
}

#[tokio::test]
async fn an_answer_is_read_and_the_next_request_goes_the_same_way() {
    let (mut here, mut there) = pair().await;
    let service = async {
        let mut piece = [0; 4_096];
        for _ in 0..2 {
            let asked = there.read(&mut piece).await.expect("a request");
            assert!(piece[..asked].starts_with(b"GET / HTTP/1.1\r\n"));
            there.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await.expect("written");
            there.flush().await.expect("written");
        }
    };
    let client = async {
        for _ in 0..2 {
            let answer = here.exchange(question(), Instant::now() + AGES).await.expect("an answer");
            assert_eq!((answer.status, &answer.body[..]), (200, &b"{}"[..]));
            assert!(here.is_usable().await);
        }
    };
    tokio::join!(service, client);
}
