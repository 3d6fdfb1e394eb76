//! Addresses that nobody else has.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// The port of every simulated BMC: above 1024, so that nobody needs root, and below the ports that the kernel hands to
/// clients, so that no client of another test sits on it by chance.
const BMC_PORT: u16 = 10_623;

/// An address of loopback's 127.0.0.0/8 that nobody else uses, with a port that is free in UDP.
/// Each peer has a whole address of its own: free ports of one address are a race between tests that run side by side.
pub fn fresh_address() -> SocketAddr {
    loop {
        let random = RandomState::new().build_hasher().finish().to_le_bytes();
        // Off the beaten 127.0, and not .0 or .255, which some tools take for networks.
        let host = Ipv4Addr::new(127, 64 + random[0] % 128, random[1], 1 + random[2] % 250);
        let address = SocketAddr::from((host, BMC_PORT));
        if UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
}
