//! Taking connections: finding out who is at the other end before a byte of a request is read.
//!
//! **Invariants.** A handshake has a bound in time and in number, and hinders neither those that are through nor the
//! Unix socket. A connection that cannot be had costs nobody else theirs.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::connection::{Connection, Way};
use crate::door::Limits;
use crate::guard::Guard;
use crate::guard::peer::Peer;
use crate::guard::visitors::{Taken, full};
use crate::tls::{Tls, certificate, refusal};

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// So many handshakes are under way at once.
const HANDSHAKES: usize = 256;
/// Of these one address's: who never finishes any does not keep others out.
const HANDSHAKES_EACH: usize = 32;
/// For how long, and for how many reads, who was refused may take the reason.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_READS: usize = 64;
/// After a failed accept (out of files) it is tried again in this time.
const PAUSE: Duration = Duration::from_millis(100);

/// Where connections are handed to, once it is known who is there.
pub(crate) type Ready = mpsc::Sender<io::Result<Connection>>;

/// Who receives callers.
#[derive(Clone, Debug)]
pub(crate) struct Reception {
    guard: Arc<Guard>,
    connections: Arc<Semaphore>,
    most: usize,
    ready: Ready,
}

impl Reception {
    pub(crate) fn new(guard: Arc<Guard>, limits: &Limits, ready: Ready) -> Self {
        let connections = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
        Self { guard, connections, most: limits.connections, ready }
    }

    /// Takes the callers of a Unix socket, for as long as it is polled.
    pub(crate) async fn of_unix(self, listener: UnixListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => self.process(stream).await,
                Err(error) => failed("the Unix socket", &error).await,
            }
        }
    }

    async fn process(&self, stream: UnixStream) {
        match Peer::of(&stream) {
            Ok(peer) => self.through(peer, Way::Unix(stream)).await,
            Err(error) => {
                self.guard.turned_away("a process", &format!("the kernel does not say who it is: {error}"))
            }
        }
    }

    /// Takes the callers of a TCP listener, for as long as it is polled; without TLS those of the loopback.
    pub(crate) async fn of_tcp(self, listener: TcpListener, tls: Option<Arc<Tls>>) {
        let room = Arc::new(Semaphore::new(HANDSHAKES));
        let mut shaking = JoinSet::new();
        let mut of: HashMap<IpAddr, usize> = HashMap::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(ended) = shaking.join_next() => {
                    // What a panic leaves counted is forgotten once nobody shakes hands.
                    if let Ok(address) = ended && let Some(count) = of.get_mut(&address) {
                        *count = count.saturating_sub(1);
                    }
                    of.retain(|_, count| *count > 0 && !shaking.is_empty());
                    continue;
                }
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    failed("TCP", &error).await;
                    continue;
                }
            };
            // Answers are small and waited for.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%address, %error, "a connection cannot be set to send at once");
            }
            match &tls {
                None => self.through(Peer::Loopback(address.ip()), Way::Loopback(stream)).await,
                Some(_) if of.get(&address.ip()).is_some_and(|count| *count >= HANDSHAKES_EACH) => {
                    self.turn_away(address, "too many of this address are shaking hands already");
                }
                Some(tls) => match room.clone().try_acquire_owned() {
                    Ok(place) => {
                        *of.entry(address.ip()).or_default() += 1;
                        let shake = self.clone().shake(stream, address, tls.clone(), place);
                        shaking.spawn(async move {
                            shake.await;
                            address.ip()
                        });
                    }
                    Err(_) => self.turn_away(address, "too many are shaking hands already"),
                },
            }
        }
    }

    async fn shake(self, stream: TcpStream, address: SocketAddr, tls: Arc<Tls>, place: OwnedSemaphorePermit) {
        let shaking = TlsAcceptor::from(tls.current()).accept(stream).into_fallible();
        let shaken = tokio::time::timeout(HANDSHAKE, shaking).await;
        let stream = match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err((error, stream))) => {
                self.turn_away(address, &refusal::words(&error));
                return linger(stream).await;
            }
            Err(_) => return self.turn_away(address, "the handshake was not done in time"),
        };
        drop(place);
        let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let shown = shown.ok_or_else(|| "no certificate was shown".to_owned()).and_then(certificate::read);
        match shown {
            Ok(shown) => {
                let peer = Peer::Certified { name: shown.name.into(), not_after: shown.not_after };
                self.through(peer, Way::Tls(Box::new(stream))).await;
            }
            Err(why) => self.turn_away(address, &why),
        }
    }

    fn turn_away(&self, address: SocketAddr, why: &str) {
        self.guard.turned_away(&format!("tls:{}", address.ip()), why);
    }

    /// Hands a connection on, if there is a place for it.
    async fn through(&self, peer: Peer, way: Way) {
        let name = peer.name();
        let all = self.connections.clone().try_acquire_owned();
        let all = all.map_err(|_| full("connections", self.most, "", Duration::from_secs(1)));
        let places = all.and_then(|all| Ok([all, self.guard.visitors.place(&name, Taken::Connection)?]));
        match places {
            Ok(places) => {
                let connection = Connection { way, peer: Arc::new(peer), _places: places };
                // Nobody takes it where serving has ended; it is closed then.
                drop(self.ready.send(Ok(connection)).await);
            }
            Err(fault) => drop(self.guard.denied(&name, "connect", fault)),
        }
    }
}

/// Waits a moment for the other end to read why it was refused: closing with something unread would take that back.
async fn linger(mut stream: TcpStream) {
    let read = async {
        let mut rest = [0; 1_024];
        for _ in 0..LINGER_READS {
            if matches!(stream.read(&mut rest).await, Ok(0) | Err(_)) {
                break;
            }
        }
    };
    // The time being over is as good an end as any.
    drop(tokio::time::timeout(LINGER, read).await);
}

async fn failed(what: &str, error: &io::Error) {
    tracing::warn!(%error, "a connection to {what} cannot be taken; it is tried again");
    tokio::time::sleep(PAUSE).await;
}
