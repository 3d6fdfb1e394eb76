//! A connected UDP socket that counts its packets and outlives ICMP errors.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

use crate::oddities::{Oddities, Oddity};
use crate::wire::LARGEST;

/// Datagrams of one driver, over all its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// Sent, copies included.
    pub sent: u64,
    /// Received, ignored ones included.
    pub received: u64,
}

/// Where a driver's links count, and note what is odd about their BMC.
#[derive(Debug, Default)]
pub struct Counters {
    /// The oddities of this BMC that were seen so far.
    pub oddities: Oddities,
    /// It lets its power button be locked, and its account may not do that.
    pub button_out_of_reach: AtomicBool,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Counters {
    /// As of now.
    pub fn packets(&self) -> Packets {
        Packets { sent: self.sent.load(Ordering::Relaxed), received: self.received.load(Ordering::Relaxed) }
    }
}

/// A wait that ends so much later than it should was held up by ourselves: the process was stopped, or starved.
const HELD_UP: Duration = Duration::from_millis(50);
/// How long the runtime takes at most to see what has arrived at a socket already.
const GLANCE: Duration = Duration::from_millis(2);

/// The way to one BMC.
#[derive(Debug)]
pub struct Link {
    socket: UdpSocket,
    counters: Arc<Counters>,
    /// The last ICMP or local error since something arrived, in words.
    trouble: Option<String>,
}

impl Link {
    /// A socket of its own for each session: what is left of an old one cannot arrive here.
    pub fn connect(address: SocketAddr, counters: Arc<Counters>) -> io::Result<Self> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        // Connecting binds it: a login of thousands has no call to spare.
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
        connect(&socket, &address)?;
        let socket = UdpSocket::from_std(socket.into())?;
        Ok(Self { socket, counters, trouble: None })
    }

    /// The BMC did that.
    pub fn see(&self, oddity: Oddity) {
        let address =
            || self.socket.peer_addr().map_or_else(|_| String::new(), |address| address.to_string());
        self.counters.oddities.see(oddity, address);
    }

    /// Sends one datagram; whether it left this machine.
    pub async fn send(&mut self, packet: &[u8]) -> bool {
        // An ICMP error of an earlier datagram is told at the next send, which then sends nothing.
        for _ in 0..2 {
            match self.socket.send(packet).await {
                Ok(_) => {
                    self.counters.sent.fetch_add(1, Ordering::Relaxed);
                    return true;
                }
                Err(error) => self.trouble = Some(error.to_string()),
            }
        }
        false
    }

    /// Sends one datagram if that is possible without waiting; for courtesies at the end.
    pub fn send_now(&self, packet: &[u8]) {
        if self.socket.try_send(packet).is_ok() {
            self.counters.sent.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for one datagram, at most until `until`. What arrived while we were held up is taken still: after a stop the
    /// runtime may see its timers before its sockets, and a BMC's answer would be taken for its silence.
    pub async fn receive<'b>(
        &mut self,
        buffer: &'b mut [u8; LARGEST],
        until: Instant,
    ) -> Option<&'b mut [u8]> {
        let mut until = until;
        loop {
            match timeout_at(until, self.socket.recv(buffer)).await {
                Ok(Ok(len)) => {
                    self.counters.received.fetch_add(1, Ordering::Relaxed);
                    self.trouble = None;
                    return buffer.get_mut(..len);
                }
                // "Port unreachable" says that nobody listens now; somebody may in a moment.
                Ok(Err(error)) => self.trouble = Some(error.to_string()),
                Err(_) if Instant::now() > until + HELD_UP => {
                    until = Instant::now() + GLANCE;
                    continue;
                }
                Err(_) => return None,
            }
            if Instant::now() >= until {
                return None;
            }
        }
    }

    /// A datagram that came while nobody waited, if there is one.
    pub fn leftover<'b>(&mut self, buffer: &'b mut [u8; LARGEST]) -> Option<&'b mut [u8]> {
        let len = self.socket.try_recv(buffer).ok()?;
        self.counters.received.fetch_add(1, Ordering::Relaxed);
        self.trouble = None;
        buffer.get_mut(..len)
    }

    /// Why nothing arrives, if the network says so.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn what_came_while_we_were_held_up_is_heard_and_silence_is_silence() {
        let far = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let address = far.local_addr().expect("an address");
        let mut link = Link::connect(address, Arc::default()).expect("a link");
        let near = link.socket.local_addr().expect("an address").port();
        let until = Instant::now();
        far.send_to(b"answer", (Ipv4Addr::LOCALHOST, near)).expect("it is sent");
        // As a stop of the process does it: nothing of the runtime goes on meanwhile.
        std::thread::sleep(HELD_UP * 2);
        let mut buffer = [0; LARGEST];
        let heard = link.receive(&mut buffer, until).await.map(|datagram| datagram.to_vec());
        assert_eq!(heard.as_deref(), Some(&b"answer"[..]));
        assert_eq!(link.receive(&mut buffer, until).await, None);
    }
}
