//! Many BMCs side by side, at addresses that a host list can name.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use picket_tests::peers::fresh_address;

use crate::Wrong;

/// Addresses of one network of 24 bits that are used: 127.x.y.1 to .250.
const PER_NETWORK: usize = 250;

/// BMCs whose truth is known whatever they say. They end with it.
pub trait Farm: Send + Sync {
    /// Where they listen, in the order of [`places`].
    fn addresses(&self) -> &[SocketAddr];

    /// Somebody presses every power button.
    ///
    /// # Errors
    /// The farm is no more.
    fn switch_on(&self) -> Result<(), Wrong>;

    /// How many are on in truth.
    ///
    /// # Errors
    /// The farm is no more.
    fn count_on(&self) -> Result<usize, Wrong>;

    /// Processor time that the BMCs have used, if it can be told apart.
    fn cpu(&self) -> Option<Duration> {
        None
    }

    /// How many.
    fn len(&self) -> usize {
        self.addresses().len()
    }

    /// The port of all of them.
    fn port(&self) -> u16 {
        self.addresses().first().map_or(0, SocketAddr::port)
    }

    /// An error unless all are off in truth, whatever `who` says.
    ///
    /// # Errors
    /// Some are on, or the farm is no more.
    fn must_be_off(&self, who: &str) -> Result<(), Wrong> {
        match self.count_on()? {
            0 => Ok(()),
            on => Err(format!("{who} says that it is done, and {on} of {} are on", self.len()).into()),
        }
    }
}

/// Addresses for so many, of which nobody uses one, all at one port.
pub fn places(count: usize) -> Vec<SocketAddr> {
    loop {
        let fresh = fresh_address();
        let SocketAddr::V4(first) = fresh else { continue };
        let [a, b, c, _] = first.ip().octets();
        if usize::from(c) + count / PER_NETWORK > 255 {
            continue;
        }
        let place = |index: usize| {
            let (network, host) = (c + (index / PER_NETWORK) as u8, 1 + (index % PER_NETWORK) as u8);
            SocketAddr::from((Ipv4Addr::new(a, b, network, host), first.port()))
        };
        let places: Vec<SocketAddr> = (0..count).map(place).collect();
        if places.iter().all(|place| UdpSocket::bind(place).is_ok()) {
            return places;
        }
    }
}

/// A host list of these, as FreeIPMI, powerman and Picket read it; `suffix` follows each name.
pub fn host_list(addresses: &[SocketAddr], suffix: &str) -> String {
    let mut networks: Vec<(String, usize, usize)> = Vec::new();
    for address in addresses {
        let host = address.ip().to_string();
        let Some((network, last)) = host.rsplit_once('.') else { continue };
        let last = last.parse().unwrap_or(0);
        match networks.last_mut().filter(|(known, _, end)| known == network && end + 1 == last) {
            Some((_, _, end)) => *end = last,
            None => networks.push((network.to_owned(), last, last)),
        }
    }
    let ranges = networks.iter().map(|(network, from, to)| match from == to {
        true => format!("{network}.{from}{suffix}"),
        false => format!("{network}.[{from}-{to}]{suffix}"),
    });
    ranges.collect::<Vec<_>>().join(",")
}
