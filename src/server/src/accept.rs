//! Taking connections: finding out who is at the other end before a byte of a request is read.
//!
//! The other end is known by its certificate, by the kernel's word about a process, or no better than as
//! the loopback.
//!
//! # Invariants
//!
//! - A handshake has a bound in time and in number. It hinders neither connections that are through nor
//!   newer ones nor the Unix socket. Shown by `a_full_room_takes_a_newcomer_at_the_cost_of_who_has_most`,
//!   `who_never_finishes_a_handshake_keeps_nobody_out`.
//! - A connection that cannot be had costs nobody else theirs.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::admission::Limits;
use crate::connection::{Connection, Transport};
use crate::fault::Fault;
use crate::guard::Guard;
use crate::guard::origin::{Network, Origin};
use crate::guard::peer::Peer;
use crate::guard::rate_limits::{SlotKind, full};
use crate::handshakes::{Handshake, Handshakes};
use crate::tls::{Tls, certificate, refusal};

/// How long a handshake may take: two turns, and a packet that was lost on the way.
const HANDSHAKE: Duration = Duration::from_secs(4);
/// For how long, and for how many reads, who was refused may take the reason.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_READS: usize = 64;
/// After a failed accept (out of files) it is tried again in this time.
const PAUSE: Duration = Duration::from_millis(100);

/// Where connections are handed to, once it is known who is there.
pub(crate) type ConnectionSender = mpsc::Sender<io::Result<Connection>>;

/// Who receives callers.
#[derive(Clone, Debug)]
pub(crate) struct Acceptor {
    guard: Arc<Guard>,
    connections: Arc<Semaphore>,
    /// Of these at most so many over the Unix socket.
    unix: Share,
    /// And so many over TCP.
    tcp: Share,
    most: usize,
    ready: ConnectionSender,
}

/// The slots of one way.
#[derive(Clone, Debug)]
struct Share {
    most: usize,
    all: Arc<Semaphore>,
    /// Of these at most so many for those who have no role, all together: they ask for health alone, and whoever signs certificates
    /// for other ends makes any number of them.
    without_role: Arc<Semaphore>,
}

impl Share {
    fn new(all: usize) -> Self {
        Self { most: all, all: slots(all), without_role: slots(Self::without_role(all)) }
    }

    fn without_role(all: usize) -> usize {
        (all / 12).max(1)
    }
}

fn slots(count: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)))
}

impl Acceptor {
    pub(crate) fn new(guard: Arc<Guard>, limits: &Limits, ready: ConnectionSender) -> Self {
        let most = limits.connections;
        // A quarter is left to those who come the other way.
        let share = most - most / 4;
        let (unix, tcp) = (Share::new(share), Share::new(share));
        Self { guard, connections: slots(most), unix, tcp, most, ready }
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
        match Peer::of(&stream).await {
            Ok(peer) => self.through(peer, Transport::Unix(stream)).await,
            Err(error) => {
                let who = Origin::stranger("a process", "a process");
                self.guard.turned_away(&who, &format!("the kernel does not say who it is: {error}"));
            }
        }
    }

    /// Takes the callers of a TCP listener, for as long as it is polled; without TLS those of the loopback.
    pub(crate) async fn of_tcp(self, listener: TcpListener, tls: Option<Arc<Tls>>) {
        let underway = Handshakes::default();
        let mut shaking = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = shaking.join_next() => continue,
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
                None => self.through(Peer::Loopback(address.ip()), Transport::Loopback(stream)).await,
                Some(tls) => {
                    let handshake = underway.begin(Network::of(address.ip()));
                    shaking.spawn(self.clone().shake(stream, address, tls.clone(), handshake));
                }
            }
        }
    }

    async fn shake(self, stream: TcpStream, address: SocketAddr, tls: Arc<Tls>, handshake: Handshake) {
        let served = tls.current();
        let shaking = TlsAcceptor::from(served.clone()).accept(stream).into_fallible();
        let shaken = tokio::select! {
            biased;
            () = handshake.out.cancelled() => {
                return self.turn_away(address, "the handshake was not done when newer ones needed its room");
            }
            shaken = tokio::time::timeout(HANDSHAKE, shaking) => shaken,
        };
        let stream = match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err((error, stream))) => {
                self.turn_away(address, &refusal::words(&error));
                let out = handshake.out.clone();
                return out.run_until_cancelled(linger(stream)).await.unwrap_or_default();
            }
            Err(_) => return self.turn_away(address, "the handshake was not done in time"),
        };
        drop(handshake);
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let shown = chain.first().ok_or_else(|| "no certificate was shown".to_owned());
        let shown = shown.and_then(certificate::read);
        let trusted = tls.trusted(chain, &served);
        match shown.and_then(|shown| Ok((shown, trusted?))) {
            Ok((shown, trusted)) => {
                let peer = Peer::Certified { name: shown.name.into(), not_after: shown.not_after };
                self.through(peer, Transport::Tls(Box::new(stream), trusted)).await;
            }
            Err(why) => self.turn_away(address, &why),
        }
    }

    fn turn_away(&self, address: SocketAddr, why: &str) {
        self.guard.turned_away(&Origin::over_tls(address.ip()), why);
    }

    /// Hands a connection on, if there is a slot for it.
    async fn through(&self, peer: Peer, transport: Transport) {
        let origin = peer.origin();
        let share = match transport {
            Transport::Unix(_) => &self.unix,
            Transport::Loopback(_) | Transport::Tls(..) => &self.tcp,
        };
        match self.slots(&peer, &origin, share) {
            Ok(slots) => {
                let connection = Connection::new(transport, peer, slots);
                // Nobody takes it where serving has ended; it is closed then.
                drop(self.ready.send(Ok(connection)).await);
            }
            Err(fault) => drop(self.guard.denied(&origin, "connect", fault)),
        }
    }

    fn slots(&self, peer: &Peer, origin: &Origin, share: &Share) -> Result<Vec<OwnedSemaphorePermit>, Fault> {
        let take = |of: &Arc<Semaphore>, most: usize, whose: &str| {
            let taken = of.clone().try_acquire_owned();
            taken.map_err(|_| full("connections", most, whose, Duration::from_secs(1)))
        };
        let grants = self.guard.grants_anything_to(peer);
        // One certificate without a role does not shut out whoever asks for health: among them, too, the last slots are for others.
        let left = if grants { usize::MAX } else { share.without_role.available_permits() };
        let mut taken = vec![self.guard.rate_limits.slot(&origin.as_one, SlotKind::Connection, left)?];
        if !grants {
            let most = Share::without_role(share.most);
            taken.push(take(&share.without_role, most, " of callers without a role this way")?);
        }
        taken.push(take(&share.all, share.most, " this way")?);
        taken.push(take(&self.connections, self.most, "")?);
        Ok(taken)
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

#[cfg(test)]
mod tests {
    use picket_core::roles::{Grant, Pattern, Role, Roles, Scope};
    use picket_core::time::{BootTime, Clock, WallTime};

    use super::*;
    use crate::guard::AccessRules;

    #[derive(Debug)]
    struct Stands;

    impl Clock for Stands {
        fn boot(&self) -> BootTime {
            BootTime::default()
        }

        fn wall(&self) -> WallTime {
            WallTime::from_millis(0)
        }
    }

    /// S14: every machine of a company may have a certificate of the CA, and no role.
    #[tokio::test]
    async fn callers_without_a_role_take_few_connections_all_together() {
        let roles = Roles::new(vec![Grant {
            name: "controllers".to_owned(),
            role: Role::Controller,
            callers: vec![Pattern::new("db").expect("a good pattern")],
            uids: Vec::new(),
            gids: Vec::new(),
            nodes: Scope::default(),
            holders: Vec::new(),
        }]);
        let limits = Limits { connections: 64, connections_each: 32, ..Limits::default() };
        let rules = AccessRules { roles, limits: limits.clone(), ..AccessRules::default() };
        let guard = Arc::new(Guard::new(rules, Arc::new(Stands)));
        let acceptor = Acceptor::new(guard, &limits, mpsc::channel(1).0);
        let mut open = Vec::new();
        let mut takes = |name: &str, share: &Share| {
            let peer = Peer::Certified { name: name.into(), not_after: 1_000 };
            let before = open.len();
            open.extend((0..64).map_while(|_| acceptor.slots(&peer, &peer.origin(), share).ok()));
            open.len() - before
        };
        assert_eq!(
            ["x", "y", "z"].map(|name| takes(name, &acceptor.tcp)),
            [2, 1, 1],
            "some are left for others"
        );
        assert_eq!(takes("db", &acceptor.tcp), 32, "as many as one may have");
        assert_eq!(takes("z", &acceptor.unix), 2, "and few of the other way's");
    }
}
