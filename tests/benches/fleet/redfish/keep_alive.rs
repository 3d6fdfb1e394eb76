//! Contestant: a client that logs in once and keeps its connections. A request, an answer, and nothing that a client needs besides.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::try_join_all;
use picket_tests::peers::{ADMIN, PASSWORD};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Wrong;
use crate::race::contest::{Contestant, Deed};
use crate::race::cost;

/// Its name.
pub const KEEP_ALIVE: &str = "client, connections kept";
const SYSTEM: &str = "/redfish/v1/Systems/1";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// One connection with its session.
struct Kept {
    host: String,
    stream: TlsStream<TcpStream>,
    token: String,
    place: String,
}

/// An answer: its head, and its body.
struct Answer {
    head: String,
    body: Value,
}

impl Answer {
    fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    }
}

impl Kept {
    async fn open(tls: TlsConnector, bmc: SocketAddr) -> Result<Self, Wrong> {
        let stream = TcpStream::connect(bmc).await?;
        stream.set_nodelay(true)?;
        let stream = tls.connect(bmc.ip().into(), stream).await?;
        let mut kept = Self { host: bmc.to_string(), stream, token: String::new(), place: String::new() };
        let login = json!({ "UserName": ADMIN, "Password": PASSWORD });
        let answer = kept.ask("POST", SESSIONS, Some(&login)).await?;
        let (token, place) = (answer.header("x-auth-token"), answer.header("location"));
        (kept.token, kept.place) = token.zip(place).ok_or("a login without a session")?;
        Ok(kept)
    }

    async fn ask(&mut self, verb: &str, path: &str, body: Option<&Value>) -> Result<Answer, Wrong> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let text = format!(
            "{verb} {path} HTTP/1.1\r\nhost: {}\r\nx-auth-token: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        );
        self.stream.write_all(text.as_bytes()).await?;
        self.stream.flush().await?;
        let (mut heard, mut some) = (Vec::new(), [0; 4096]);
        loop {
            let read = self.stream.read(&mut some).await?;
            if read == 0 {
                return Err("the BMC hung up".into());
            }
            heard.extend_from_slice(&some[..read]);
            let Some(end) = heard.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
            let mut answer =
                Answer { head: String::from_utf8_lossy(&heard[..end]).into_owned(), body: Value::Null };
            let length: usize = answer.header("content-length").map_or(Ok(0), |text| text.parse())?;
            let body = &heard[end + 4..];
            if body.len() < length {
                continue;
            }
            if length > 0 {
                answer.body = serde_json::from_slice(&body[..length])?;
            }
            let code = answer.head.split(' ').nth(1).unwrap_or_default();
            if !code.starts_with('2') {
                return Err(
                    format!("{verb} {path}: {}", answer.head.lines().next().unwrap_or_default()).into()
                );
            }
            return Ok(answer);
        }
    }

    async fn run(&mut self, deed: Deed) -> Result<(), Wrong> {
        let wanted = match deed {
            Deed::Status => "On",
            Deed::Off => {
                let order = json!({ "ResetType": "ForceOff" });
                self.ask("POST", &format!("{SYSTEM}/Actions/ComputerSystem.Reset"), Some(&order)).await?;
                "Off"
            }
        };
        let said = self.ask("GET", SYSTEM, None).await?.body["PowerState"].clone();
        if said == wanted { Ok(()) } else { Err(format!("{wanted} was wanted, and {said} said").into()) }
    }
}

/// One connection a BMC, open while others race as well: what it does before its time is not timed.
pub struct KeepAlive {
    tls: TlsConnector,
    bmcs: Vec<SocketAddr>,
    kept: Vec<Kept>,
}

impl KeepAlive {
    /// For these, whose certificates that authority has signed.
    pub fn new(authority: &str, bmcs: &[SocketAddr]) -> Result<Self, Wrong> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes())?)?;
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Self { tls: TlsConnector::from(Arc::new(config)), bmcs: bmcs.to_vec(), kept: Vec::new() })
    }
}

#[async_trait]
impl Contestant for KeepAlive {
    fn name(&self) -> &'static str {
        KEEP_ALIVE
    }

    async fn prepare(&mut self) -> Result<(), Wrong> {
        let opening = self.bmcs.iter().map(|bmc| Kept::open(self.tls.clone(), *bmc));
        self.kept = try_join_all(opening).await?;
        Ok(())
    }

    async fn run(&mut self, deed: Deed) -> Result<(), Wrong> {
        // A task each, as the others have.
        let mut tasks = tokio::task::JoinSet::new();
        for mut kept in std::mem::take(&mut self.kept) {
            tasks.spawn(async move { kept.run(deed).await.map(|()| kept) });
        }
        while let Some(ended) = tasks.join_next().await {
            self.kept.push(ended??);
        }
        Ok(())
    }

    async fn rest(&mut self) -> Result<(), Wrong> {
        for mut kept in std::mem::take(&mut self.kept) {
            let place = kept.place.clone();
            kept.ask("DELETE", &place, None).await?;
        }
        Ok(())
    }

    fn cpu(&self) -> Duration {
        cost::own_cpu()
    }
}
