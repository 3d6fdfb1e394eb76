//! One connection: TCP, TLS, and one HTTP/1.1 request after another.
//!
//! # Invariants
//!
//! - It never sends anything by itself, neither again nor elsewhere. Shown by
//!   `an_on_is_sent_once_whatever_becomes_of_it`.
//! - A connection in which an exchange was begun and not ended, by an error, by its time or by a caller who
//!   left, is used no more.
//! - Closed, it throws away what was not sent yet (S8).

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use http::header::CONNECTION;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use picket_driver::{DriverError, Effect, ErrorKind};
use picket_trust::Believed;
use rustls::pki_types::ServerName;
use sha2::{Digest, Sha256};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::answer::{Answer, LARGEST, TruncatedBody};
use crate::encoding;
use crate::settings::Settings;

/// How long what was written may stay unacknowledged before the kernel ends the connection.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
/// The largest head of an answer.
const LARGEST_HEAD: usize = 64 << 10;

/// Why there is no whole answer.
#[derive(Debug)]
pub enum ConnectionError {
    /// The request surely never left this process.
    NotSent(String),
    /// It may have been read.
    Silent(String),
    /// The time was over.
    Late,
}

/// A connection that stands.
pub struct Connection {
    id: u64,
    /// To which address; `None`: the system does not say.
    address: Option<SocketAddr>,
    /// SHA-256 of the certificate for which its far side holds the key, in hexadecimal digits.
    certificate: Option<String>,
    sender: http1::SendRequest<Full<Bytes>>,
    wire: http1::Connection<TokioIo<TlsStream<TcpStream>>, Full<Bytes>>,
    /// The far side closed it, or the wire failed.
    ended: bool,
    /// An exchange was begun.
    busy: bool,
    /// Its place among those that are kept.
    pub place: Option<OwnedSemaphorePermit>,
}

fn failed(kind: ErrorKind, settings: &Settings, why: impl std::fmt::Display) -> DriverError {
    // A connection that did not come to be has carried nothing.
    DriverError::new(kind, Effect::DidNotHappen, format!("{}: {why}", settings.authority()))
}

async fn addresses(settings: &Settings) -> Result<Vec<SocketAddr>, DriverError> {
    let Settings { host, port, .. } = settings;
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, *port)]);
    }
    let unknown = |error| {
        failed(ErrorKind::Unreachable, settings, format_args!("its name cannot be resolved: {error}"))
    };
    Ok(tokio::net::lookup_host((host.as_str(), *port)).await.map_err(unknown)?.collect())
}

/// TCP and TLS to one address.
async fn shake(
    address: SocketAddr,
    settings: &Settings,
    tls: &TlsConnector,
    name: &ServerName<'static>,
) -> Result<TlsStream<TcpStream>, DriverError> {
    let unreachable =
        |error: io::Error| failed(ErrorKind::Unreachable, settings, format_args!("{address}: {error}"));
    let stream = TcpStream::connect(address).await.map_err(unreachable)?;
    stream.set_nodelay(true).and_then(|()| stream.set_zero_linger()).map_err(unreachable)?;
    let millis = UNACKNOWLEDGED.as_millis() as u32;
    let tuned = rustix::net::sockopt::set_tcp_user_timeout(&stream, millis).map_err(io::Error::from);
    tuned.map_err(unreachable)?;
    tls.connect(name.clone(), stream).await.map_err(|error| distrust(&error, settings))
}

/// The first of the addresses at which somebody shakes hands. A silent one leaves room for those after it, and for the
/// request: of `n` addresses that are left each has an (n + 1)th of the time that is left.
async fn reach(
    addresses: &[SocketAddr],
    settings: &Settings,
    tls: &TlsConnector,
    name: &ServerName<'static>,
    until: Instant,
) -> Result<TlsStream<TcpStream>, DriverError> {
    let mut why = failed(ErrorKind::Unreachable, settings, "its name has no address");
    for (index, address) in addresses.iter().enumerate() {
        let left = addresses.len() - index;
        let share = until.saturating_duration_since(Instant::now()) / (left as u32 + 1);
        let end = if left == 1 { until } else { Instant::now() + share };
        let shaken = timeout_at(end, shake(*address, settings, tls, name)).await;
        let error = match shaken {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error,
            Err(_) => failed(ErrorKind::TimedOut, settings, format_args!("{address}: no connection in time")),
        };
        // Whoever answered and is not believed says more than who did not answer.
        if why.kind != ErrorKind::Authentication {
            why = error;
        }
    }
    Err(why)
}

/// What a failed handshake says: a certificate that is not believed is not the network's matter.
fn distrust(error: &io::Error, settings: &Settings) -> DriverError {
    match picket_trust::failure(error) {
        Some(why) if why.is_distrust() => {
            let more = match settings.believed {
                Believed::Pinned(_) => "",
                _ => "; certificate_sha256 names one certificate alone",
            };
            failed(ErrorKind::Authentication, settings, format_args!("{why}{more}"))
        }
        Some(why) if !why.is_cut() => failed(ErrorKind::Protocol, settings, why),
        Some(why) => failed(ErrorKind::Unreachable, settings, why),
        None => failed(ErrorKind::Unreachable, settings, format_args!("TLS: {error}")),
    }
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Connection {
    /// Opens one, until `until`: to that address and no other, or to one to which the name leads now.
    pub async fn open(
        id: u64,
        to: Option<SocketAddr>,
        settings: &Settings,
        tls: &TlsConnector,
        name: &ServerName<'static>,
        until: Instant,
    ) -> Result<Self, DriverError> {
        let opened = timeout_at(until, async {
            let addresses = match to {
                Some(address) => vec![address],
                None => addresses(settings).await?,
            };
            let stream = reach(&addresses, settings, tls, name, until).await?;
            let address = stream.get_ref().0.peer_addr().ok();
            let leaf = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            let certificate = leaf.map(|leaf| hexadecimal(&Sha256::digest(leaf)));
            let mut builder = http1::Builder::new();
            builder.max_buf_size(LARGEST_HEAD);
            let shaken = builder.handshake(TokioIo::new(stream)).await;
            let (sender, wire) = shaken.map_err(|error| failed(ErrorKind::Protocol, settings, error))?;
            Ok(Self { id, address, certificate, sender, wire, ended: false, busy: false, place: None })
        });
        opened.await.unwrap_or_else(|_| Err(failed(ErrorKind::TimedOut, settings, "no connection in time")))
    }

    /// Which one it is.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// To which address it leads.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The digest of the certificate that the far side showed; `None`: it showed none.
    pub fn certificate(&self) -> Option<&str> {
        self.certificate.as_deref()
    }

    /// Whether nothing is under way on it.
    pub fn is_at_rest(&self) -> bool {
        !self.busy && !self.ended
    }

    /// Whether it is at rest, and open as far as can be known here.
    pub async fn is_usable(&mut self) -> bool {
        if self.busy || self.ended {
            return false;
        }
        // So that the runtime has seen what has arrived; more than once, as TLS may first take in what is for itself alone.
        for _ in 0..3 {
            tokio::task::yield_now().await;
            self.glance().await;
        }
        !self.ended && self.sender.is_ready()
    }

    /// Lets the wire take in what has arrived, without waiting.
    async fn glance(&mut self) {
        if !self.ended {
            let wire = &mut self.wire;
            self.ended = poll_fn(|context| Poll::Ready(Pin::new(&mut *wire).poll(context).is_ready())).await;
        }
    }

    /// One request and its answer, at most until `until`: its head at the least.
    pub async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        until: Instant,
    ) -> Result<Answer, ConnectionError> {
        self.busy = true;
        let (answer, closes) = self.talk(request, until).await?;
        // The rest of a body that was cut would be taken for the next answer.
        self.busy = answer.cut.is_some() || closes;
        self.glance().await;
        Ok(answer)
    }

    async fn talk(
        &mut self,
        request: Request<Full<Bytes>>,
        until: Instant,
    ) -> Result<(Answer, bool), ConnectionError> {
        let Self { sender, wire, ended, .. } = self;
        let told = async {
            // One for the whole exchange: making a timer costs more than looking at it.
            let mut late = pin!(sleep_until(until));
            let response = tokio::select! {
                biased;
                begun = sender.send_request(request) => begun.map_err(broken)?,
                () = &mut late => return Err(ConnectionError::Late),
            };
            Ok(listen(response, late).await)
        };
        tokio::pin!(told);
        loop {
            tokio::select! {
                biased;
                told = &mut told => return told,
                _ = &mut *wire, if !*ended => *ended = true,
            }
        }
    }
}

/// Reads an answer, and whether the service closes after it. Once its status was read there is one, however its body ends.
async fn listen(mut response: Response<Incoming>, mut late: Pin<&mut Sleep>) -> (Answer, bool) {
    let mut answer = Answer::begun(response.status().as_u16(), response.headers());
    let coding = encoding::coding(response.headers());
    let says_close = response.headers().get_all(CONNECTION).iter().any(|value| {
        value.to_str().is_ok_and(|text| text.split(',').any(|word| word.trim().eq_ignore_ascii_case("close")))
    });
    let closes = says_close || response.version() < Version::HTTP_11;
    let body = response.body_mut();
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = &mut late => {
                answer.cut = Some(TruncatedBody::Late);
                break;
            }
        };
        let frame = match frame {
            None => break,
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                answer.cut = Some(TruncatedBody::Broken(words(&error)));
                break;
            }
        };
        let Ok(piece) = frame.into_data() else { continue };
        let room = LARGEST - answer.body.len();
        answer.body.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            answer.cut = Some(TruncatedBody::Long);
            break;
        }
    }
    if let Some(coding) = coding.filter(|_| answer.cut.is_none() && !answer.body.is_empty()) {
        match encoding::unpack(&coding, &answer.body) {
            Ok(plain) => (answer.body, answer.packed) = (plain, true),
            Err(cut) => answer.cut = Some(cut),
        }
    }
    (answer, closes)
}

fn words(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || has_ended(error) {
        // Of an end without a farewell rustls says where in its manual that stands.
        return "the service ended the connection before its answer was whole".to_owned();
    }
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn has_ended(error: &(dyn std::error::Error + 'static)) -> bool {
    let own = error.downcast_ref::<std::io::Error>();
    own.is_some_and(|error| error.kind() == std::io::ErrorKind::UnexpectedEof)
        || error.source().is_some_and(has_ended)
}

fn broken(error: hyper::Error) -> ConnectionError {
    let why = words(&error);
    // Canceled: the wire ended before it took the request from us.
    if error.is_canceled() { ConnectionError::NotSent(why) } else { ConnectionError::Silent(why) }
}

#[cfg(test)]
pub(crate) mod tests;
