//! Addresses that nobody else has.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// The port of every simulated BMC: above 1024, so that nobody needs root, and below the ports that the kernel hands to
/// clients, so that no client of another test sits on it by chance.
const BMC_PORT: u16 = 10_623;
/// The process that has this port of an address owns the address. No peer listens there.
const OWNERS_PORT: u16 = 10_622;

/// An address of loopback's 127.0.0.0/8 that nobody else uses, with a port that is free.
/// Each peer has a whole address of its own: free ports of one address are a race between tests that run side by side.
///
/// It is owned until this process ends: of two tests that choose the same one at once, in two processes, one does not get it. The peer's own
/// port is not bound to find out: a program that another test starts in that moment would hold the socket until it runs, and the peer would
/// find it in use.
pub fn fresh_address() -> SocketAddr {
    loop {
        let random = RandomState::new().build_hasher().finish().to_le_bytes();
        // Off the beaten 127.0, and not .0 or .255, which some tools take for networks.
        let host = Ipv4Addr::new(127, 64 + random[0] % 128, random[1], 1 + random[2] % 250);
        if !is_used(host) && own(host) {
            return SocketAddr::from((host, BMC_PORT));
        }
    }
}

/// Whether it is ours from now on, and was nobody's before.
fn own(host: Ipv4Addr) -> bool {
    // The kernel gives a port once. It is never closed before this process ends.
    UdpSocket::bind((host, OWNERS_PORT)).map(std::mem::forget).is_ok()
}

/// Whether a socket is bound to it, of whatever port, as the kernel tells in proc(5).
fn is_used(host: Ipv4Addr) -> bool {
    // The address as the machine reads it, then the port.
    let own = format!("{:08X}:", u32::from_ne_bytes(host.octets()));
    ["udp", "tcp"].iter().any(|kind| {
        let table = std::fs::read_to_string(format!("/proc/thread-self/net/{kind}"));
        let table = table.unwrap_or_else(|error| panic!("what is bound cannot be read: /proc: {error}"));
        table.lines().filter_map(|line| line.split_whitespace().nth(1)).any(|local| local.starts_with(&own))
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// One that [`fresh_address`] gives nobody, and that a copy of this test in another process has not.
    fn aside() -> Ipv4Addr {
        let random = RandomState::new().build_hasher().finish().to_le_bytes();
        Ipv4Addr::new(127, 32 + random[0] % 32, random[1], 1 + random[2] % 250)
    }

    #[test]
    fn an_address_has_one_owner() {
        let host = aside();
        assert!(own(host) && !own(host) && is_used(host));
    }

    #[test]
    fn an_address_to_which_a_socket_is_bound_is_used() {
        let [udp, tcp] = [aside(), aside()];
        assert!(!is_used(udp) && !is_used(tcp));
        let _udp = UdpSocket::bind((udp, 0)).expect("bound");
        assert!(is_used(udp) && !is_used(tcp));
        let _tcp = TcpListener::bind((tcp, 0)).expect("bound");
        assert!(is_used(tcp));
    }
}
