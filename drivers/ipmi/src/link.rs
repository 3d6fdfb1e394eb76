//! A connected UDP socket that counts its packets and outlives ICMP errors.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

use crate::wire::LARGEST;

/// Datagrams of one driver, over all its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// Sent, copies included.
    pub sent: u64,
    /// Received, ignored ones included.
    pub received: u64,
}

/// Where a driver's links count.
#[derive(Debug, Default)]
pub struct Counters {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Counters {
    /// As of now.
    pub fn packets(&self) -> Packets {
        Packets { sent: self.sent.load(Ordering::Relaxed), received: self.received.load(Ordering::Relaxed) }
    }
}

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
    pub async fn connect(address: SocketAddr, counters: Arc<Counters>) -> io::Result<Self> {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).await?;
        socket.connect(address).await?;
        Ok(Self { socket, counters, trouble: None })
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

    /// Waits for one datagram, at most until `until`.
    pub async fn receive<'b>(
        &mut self,
        buffer: &'b mut [u8; LARGEST],
        until: Instant,
    ) -> Option<&'b mut [u8]> {
        loop {
            match timeout_at(until, self.socket.recv(buffer)).await {
                Ok(Ok(len)) => {
                    self.counters.received.fetch_add(1, Ordering::Relaxed);
                    self.trouble = None;
                    return buffer.get_mut(..len);
                }
                // "Port unreachable" says that nobody listens now; somebody may in a moment.
                Ok(Err(error)) => self.trouble = Some(error.to_string()),
                Err(_) => return None,
            }
            if Instant::now() >= until {
                return None;
            }
        }
    }

    /// Why nothing arrives, if the network says so.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}
