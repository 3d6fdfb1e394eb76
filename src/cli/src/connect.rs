//! The way to the gateway.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use picket_proto::client::{Gateways, is_here};
use picket_proto::v1::fencing_service_client::FencingServiceClient;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::certificates::{self, Certificates, Files};
use crate::fault::Fault;

/// The client of the service.
pub type Client = FencingServiceClient<Gateways>;

/// How long a connection may take to stand.
pub(crate) const CONNECT: Duration = Duration::from_secs(5);

/// How often a silent connection is asked whether it still stands, and for how long it may not answer.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(10));

/// How long it may take to find out whether a port speaks TLS.
const PROBE: Duration = Duration::from_secs(2);

/// The largest answer that is taken: a page of a thousand nodes with all their devices is far below.
pub(crate) const MESSAGE: usize = 64 << 20;

/// Where a gateway answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// Host and port, without encryption: a gateway offers that on the loopback only.
    Tcp(String),
    /// Host and port by TLS, with certificates on both sides.
    Tls(String, Files),
}

/// An endpoint that cannot be used, and what would be right.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{got:?} is no endpoint{why}: write unix:/run/picket/picket.sock, https://gateway:7070 or http://127.0.0.1:7070"
)]
pub struct BadEndpoint {
    got: String,
    why: &'static str,
}

impl Endpoint {
    /// Reads `unix:/path`, `unix:///path`, `https://host:port`, or `http://host:port` of this machine.
    pub fn parse(text: &str) -> Result<Self, BadEndpoint> {
        let bad = |why| BadEndpoint { got: text.to_owned(), why };
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            let absolute = path.starts_with('/');
            return if absolute {
                Ok(Self::Unix(path.into()))
            } else {
                Err(bad(" (the path is not absolute)"))
            };
        }
        let (rest, is_tls) = match text.strip_prefix("https://") {
            Some(rest) => (rest, true),
            None => (text.strip_prefix("http://").ok_or_else(|| bad(""))?, false),
        };
        let authority = rest.trim_end_matches('/');
        let (host, port) = authority.rsplit_once(':').ok_or_else(|| bad(" (it has no port)"))?;
        if host.is_empty() || port.parse::<u16>().is_err() || authority.contains(['/', '@', '?']) {
            return Err(bad(""));
        }
        if !is_tls && !is_here(authority) {
            return Err(bad(" (without encryption anybody on the way may say that a node is off)"));
        }
        let authority = authority.to_owned();
        Ok(if is_tls { Self::Tls(authority, Files::default()) } else { Self::Tcp(authority) })
    }

    /// The endpoint with what TLS wants, where it speaks that.
    pub fn with(self, given: &Certificates) -> Result<Self, String> {
        match self {
            Self::Tls(authority, _) => Ok(Self::Tls(authority, Files::of(given)?)),
            other => Ok(other),
        }
    }

    /// The certificates of an endpoint that speaks TLS.
    pub(crate) fn files(&self) -> Option<Files> {
        match self {
            Self::Tls(_, files) => Some(files.clone()),
            Self::Unix(_) | Self::Tcp(_) => None,
        }
    }

    /// The endpoint with these certificates; `None`: it wants some, and there are none.
    pub(crate) fn with_files(self, files: Option<Files>) -> Option<Self> {
        match self {
            Self::Tls(authority, _) => Some(Self::Tls(authority, files?)),
            other => Some(other),
        }
    }

    /// How it is connected to.
    pub(crate) fn way(&self) -> Result<tonic::transport::Endpoint, Fault> {
        let wrong = |error: tonic::transport::Error| Fault::Usage(format!("{self}: {error}"));
        let mut endpoint = tonic::transport::Endpoint::from_shared(self.to_string()).map_err(wrong)?;
        if let Self::Tls(_, files) = self {
            let tls = files.read().map_err(Fault::Usage)?;
            let told = |error| Fault::Usage(format!("{self}: {}", innermost(&error)));
            endpoint = endpoint.tls_config(tls).map_err(told)?;
        }
        Ok(endpoint
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(KEEP_ALIVE.0)
            .keep_alive_timeout(KEEP_ALIVE.1))
    }

    /// The fault of an endpoint that takes a connection and says nothing.
    pub(crate) fn silent(&self) -> Fault {
        Fault::Unreachable {
            endpoint: self.to_string(),
            why: "it does not answer in time".to_owned(),
            check: self.check(Some(io::ErrorKind::TimedOut)),
        }
    }

    /// The fault of an endpoint where nobody answers.
    pub fn unreachable(&self, error: &(dyn Error + 'static)) -> Fault {
        let why = innermost(error);
        if let Some(refused) = self.refused(&why) {
            return refused;
        }
        Fault::Unreachable { endpoint: self.to_string(), why, check: self.check(io_kind(error)) }
    }

    /// The fault of a certificate that one of both sides does not take.
    fn refused(&self, why: &str) -> Option<Fault> {
        let Self::Tls(..) = self else { return None };
        let check = certificates::hint(why)?.to_owned();
        Some(Fault::Refused { endpoint: self.to_string(), why: why.to_owned(), check })
    }

    /// The fault of a gateway that answered before and does not any more.
    pub fn lost(&self, why: &str) -> Fault {
        if let Some(refused) = self.refused(why) {
            return refused;
        }
        Fault::Unreachable { endpoint: self.to_string(), why: why.to_owned(), check: self.check(None) }
    }

    /// The fault, and what to do where the port speaks TLS and was asked without: how that breaks is in no words of its own.
    pub async fn with_hint(&self, fault: Fault) -> Fault {
        match (self, fault) {
            (Self::Tcp(authority), Fault::Unreachable { endpoint, why, check })
                if speaks_tls(authority).await =>
            {
                let check = format!(
                    "that port speaks TLS: write https://{authority}, with your certificates\n{check}"
                );
                Fault::Unreachable { endpoint, why, check }
            }
            (_, fault) => fault,
        }
    }

    /// What to look at, in words.
    fn check(&self, kind: Option<io::ErrorKind>) -> String {
        let what = match (self, kind) {
            (Self::Unix(_), Some(io::ErrorKind::NotFound)) => {
                "there is no such socket: is picketd running on this machine, and is that its socket?"
            }
            (Self::Unix(_), Some(io::ErrorKind::PermissionDenied)) => {
                "you may not open the socket: are you in its group? (ls -l shows it)"
            }
            (Self::Unix(_), Some(io::ErrorKind::ConnectionRefused)) => {
                "the socket is there and nobody listens: picketd is not running any more (its log says why)"
            }
            (Self::Tcp(_) | Self::Tls(..), Some(io::ErrorKind::ConnectionRefused)) => {
                "nobody listens there: is picketd running, and is that its address and port?"
            }
            (_, Some(io::ErrorKind::TimedOut)) => {
                "nothing answers there: is the address right, is a firewall in between, does picketd hang?"
            }
            _ => "is picketd running, and is that where it listens?",
        };
        format!("{what}\nAnother endpoint: --endpoint, PICKET_ENDPOINT, or a context.")
    }
}

/// Whether what listens there answers HTTP with an alert of TLS.
async fn speaks_tls(authority: &str) -> bool {
    const ALERT: u8 = 0x15;
    let answer = async {
        let mut stream = TcpStream::connect(authority).await?;
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await?;
        stream.read_u8().await
    };
    matches!(tokio::time::timeout(PROBE, answer).await, Ok(Ok(ALERT)))
}

/// The words at the bottom of an error.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// The kind of the input/output error behind an error, if there is one.
fn io_kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    let mut next = Some(error);
    while let Some(one) = next {
        if let Some(io) = one.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        next = one.source();
    }
    None
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(authority) => write!(f, "http://{authority}"),
            Self::Tls(authority, _) => write!(f, "https://{authority}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_in_their_usual_spellings() {
        for (text, shown) in [
            ("unix:/run/p.sock", "unix:/run/p.sock"),
            ("unix:///run/p.sock", "unix:/run/p.sock"),
            ("http://127.0.0.1:7070", "http://127.0.0.1:7070"),
            ("http://[::1]:7070/", "http://[::1]:7070"),
            ("https://gw.example.org:7070/", "https://gw.example.org:7070"),
        ] {
            assert_eq!(Endpoint::parse(text).map(|e| e.to_string()), Ok(shown.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_bad_endpoint_is_told_with_what_would_be_right() {
        for text in [
            "",
            "picket",
            "unix:rel",
            "http://host",
            "http://:1",
            "http://h:99999",
            "http://u@h:1",
            "http://gateway:7070",
            "http://127.evil.example:7070",
            "http://localhost:1@evil.example:2",
            "https://h",
            "https:h:1",
        ] {
            let error = Endpoint::parse(text).expect_err(text).to_string();
            assert!(error.contains("write unix:/run"), "{error}");
        }
    }
}
