//! The BMC on a socket, before a client that reads what comes.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use flate2::bufread::GzDecoder;
use picket_core::time::Clock;
use picket_driver_ipmi::crypto::Suite;
use picket_driver_sim::SimClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::*;
use crate::{Account, BmcOptions, Fleet, RedfishPlace, Role};

const SYSTEM: &str = "GET /redfish/v1/Systems/1";
const RESET: &str = "POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
const LOGIN: &str = "POST /redfish/v1/SessionService/Sessions";
const WHO: &str = r#"{"UserName": "admin", "Password": "secret12"}"#;
/// Longer than any answer takes: it ends a test that hangs.
const LONG: Duration = Duration::from_secs(120);

struct Scene {
    fleet: Fleet,
    bmc: Arc<Bmc>,
}

/// The answer as it came until the connection ended.
struct Came {
    head: String,
    body: Vec<u8>,
}

impl Came {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn says(&self, status: u16) -> bool {
        self.head.starts_with(&format!("HTTP/1.1 {status} "))
    }

    /// Whether all came that the head tells of.
    fn is_whole(&self) -> bool {
        match self.header("content-length") {
            Some(length) => length == self.body.len().to_string(),
            None if self.header("transfer-encoding") == Some("chunked") => self.body.ends_with(b"0\r\n\r\n"),
            None => self.body.is_empty(),
        }
    }
}

impl Scene {
    async fn new() -> Self {
        let account =
            Account { name: "admin".to_owned(), password: "secret12".to_owned(), role: Role::Administrator };
        let options = |host: Ipv4Addr| BmcOptions {
            name: "n1".to_owned(),
            ipmi: SocketAddr::from((host, 10_623)),
            accounts: Arc::new([account.clone()]),
            suites: vec![Suite::Sha256],
            sessions: 4,
            idle: Duration::from_secs(60),
            redfish: Some(RedfishPlace {
                address: SocketAddr::from((host, 10_443)),
                sessions: 4,
                idle: Duration::from_secs(300),
                tasks: false,
            }),
            seed: 1,
        };
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let fleet = crate::tests::start(&clock, options).await;
        let bmc = fleet.bmc("n1").expect("it was asked for").clone();
        Self { fleet, bmc }
    }

    /// One request on a connection of its own.
    async fn say(&self, line: &str, token: &str, body: &str) -> Came {
        timeout(LONG, self.converse(line, token, body)).await.expect("the connection ends")
    }

    async fn converse(&self, line: &str, token: &str, body: &str) -> Came {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.fleet.authority().as_bytes()).expect("PEM");
        roots.add(authority).expect("a certificate");
        let config = ClientConfig::builder_with_provider(default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let address = self.bmc.redfish_address().expect("it speaks Redfish");
        let stream = TcpStream::connect(address).await.expect("it listens");
        let name = ServerName::from(address.ip());
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("TLS");
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nX-Auth-Token: {token}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut came = Vec::new();
        // It may end in the middle.
        let _ = stream.read_to_end(&mut came).await;
        let end = came.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head") + 4;
        let head = String::from_utf8(came[..end].to_vec()).expect("text");
        Came { head, body: came[end..].to_vec() }
    }

    /// A new session: its token, and its place.
    async fn log_in(&self) -> (String, String) {
        let login = self.say(LOGIN, "", WHO).await;
        assert!(login.says(201) && login.is_whole(), "{}", login.head);
        let header = |name| login.header(name).expect("it says so").to_owned();
        (header("x-auth-token"), header("location"))
    }
}

#[tokio::test]
async fn half_of_a_body_comes_of_all_that_its_head_tells() {
    let scene = Scene::new().await;
    let (token, _) = scene.log_in().await;
    let whole = scene.say(SYSTEM, &token, "").await;
    scene.bmc.fault(Fault::CutsAnswers);
    let half = scene.say(SYSTEM, &token, "").await;
    assert!(half.says(200) && !half.is_whole(), "{}", half.head);
    assert_eq!(half.header("content-length"), whole.header("content-length"));
    assert_eq!(half.body, whole.body[..whole.body.len() / 2]);
    // An answer without a body cannot be cut, and its request is carried out.
    let off = scene.say(RESET, &token, r#"{"ResetType": "ForceOff"}"#).await;
    assert!(off.says(204) && off.body.is_empty() && !scene.bmc.is_on(), "{}", off.head);
}

#[tokio::test]
async fn a_refusal_is_cut_before_its_last_chunk_and_a_login_is_whole() {
    let scene = Scene::new().await;
    let (token, _) = scene.log_in().await;
    scene.bmc.fault(Fault::CutsRefusals);
    scene.bmc.lose_sessions();
    let refused = scene.say(SYSTEM, &token, "").await;
    assert!(refused.says(401) && !refused.is_whole(), "{}", refused.head);
    assert_eq!(refused.header("transfer-encoding"), Some("chunked"));
    assert!(!refused.body.is_empty(), "half of it comes");
    let (token, _) = scene.log_in().await;
    let system = scene.say(SYSTEM, &token, "").await;
    assert!(system.says(200) && system.is_whole(), "{}", system.head);
    scene.bmc.fault(Fault::Starting);
    let busy = scene.say(SYSTEM, &token, "").await;
    assert!(busy.says(503) && !busy.is_whole() && busy.header("retry-after").is_some(), "{}", busy.head);
    scene.bmc.mend();
    assert!(scene.say(SYSTEM, "none", "").await.is_whole(), "nothing is wrong any more");
}

#[tokio::test]
async fn answers_come_packed_though_nobody_asked_for_that() {
    let scene = Scene::new().await;
    let (token, place) = scene.log_in().await;
    let plain = scene.say(SYSTEM, &token, "").await;
    assert_eq!(plain.header("content-encoding"), None);
    scene.bmc.fault(Fault::PacksAnswers);
    let packed = scene.say(SYSTEM, &token, "").await;
    assert!(packed.says(200) && packed.is_whole(), "{}", packed.head);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut body = Vec::new();
    GzDecoder::new(&packed.body[..]).read_to_end(&mut body).expect("gzip");
    assert_eq!(body, plain.body);
    let ended = scene.say(&format!("DELETE {place}"), &token, "").await;
    assert!(ended.says(204) && ended.header("content-encoding").is_none(), "there is nothing to pack");
}

/// The hello is longer than one segment.
#[tokio::test]
async fn a_board_without_tls_of_today_hears_what_is_offered_and_ends_by_an_alert() {
    for (fault, alert) in
        [(Fault::OldTls, [21, 3, 2, 0, 2, 2, 70]), (Fault::OldCiphers, [21, 3, 3, 0, 2, 2, 40])]
    {
        let scene = Scene::new().await;
        scene.bmc.fault(fault.clone());
        let address = scene.bmc.redfish_address().expect("it speaks Redfish");
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let hello = [&[22, 3, 1, 0x10, 0][..], &[1; 0x1000]].concat();
        stream.write_all(&hello).await.expect("sent");
        let mut came = Vec::new();
        timeout(LONG, stream.read_to_end(&mut came)).await.expect("it ends").expect("read");
        assert_eq!(came, alert, "{fault:?}");
        assert_eq!(scene.bmc.handshakes(), 0);
        scene.bmc.mend();
        scene.log_in().await;
    }
}

#[tokio::test]
async fn the_end_of_a_session_is_answered_late() {
    let (scene, late) = (Scene::new().await, Duration::from_millis(700));
    let (token, place) = scene.log_in().await;
    scene.bmc.fault(Fault::LateEnd(late));
    let began = Instant::now();
    assert!(scene.say(&format!("DELETE {place}"), &token, "").await.says(204));
    assert!(began.elapsed() >= late, "{:?}", began.elapsed());
    assert!(scene.say(SYSTEM, &token, "").await.says(401));
}
