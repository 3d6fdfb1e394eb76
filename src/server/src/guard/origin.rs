//! Where somebody comes from, as far as it bounds what they may take.
//!
//! # Invariants
//!
//! - Whoever can have many addresses or names for nothing counts as one. Shown by
//!   `one_machine_has_one_address_or_sixty_four_bits_of_them`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// Somebody who was refused something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// As they are told of.
    pub(crate) name: String,
    /// As whom they count, where one can have many such names for nothing.
    pub(crate) as_one: String,
    /// Whether a certificate or the kernel vouches for the name.
    pub(crate) is_known: bool,
    /// Who that is, for people, where more than the name is known.
    pub(crate) shown: Option<Arc<str>>,
}

impl Origin {
    /// Somebody whose name is vouched for.
    pub(crate) fn known(name: &str) -> Self {
        Self { name: name.to_owned(), as_one: name.to_owned(), is_known: true, shown: None }
    }

    /// Somebody who is not known, and goes by that name.
    pub(crate) fn stranger(name: &str, as_one: &str) -> Self {
        Self { name: name.to_owned(), as_one: as_one.to_owned(), is_known: false, shown: None }
    }

    /// Somebody who did not come through the handshake.
    pub(crate) fn over_tls(address: IpAddr) -> Self {
        let name = format!("tls:{}", Network::of(address));
        Self::stranger(&name, &name)
    }
}

/// The addresses of which whoever has one has all: one of IPv4, 64 bits of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Network(IpAddr);

impl Network {
    /// The one that has that address.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(long) if !long.is_loopback() => {
                Self(IpAddr::V6(Ipv6Addr::from_bits(long.to_bits() >> 64 << 64)))
            }
            address => Self(address),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V6(long) if !long.is_loopback() => write!(f, "{long}/64"),
            address => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &str) -> String {
        Network::of(address.parse().expect("an address")).to_string()
    }

    #[test]
    fn one_machine_has_one_address_or_sixty_four_bits_of_them() {
        assert_eq!(network("192.0.2.7"), "192.0.2.7");
        assert_eq!(network("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(network("::1"), "::1");
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
        assert_eq!(network("2001:db8:1:2::9"), network("2001:db8:1:2:ffff::"));
        assert_ne!(network("2001:db8:1:2::9"), network("2001:db8:1:3::9"));
    }
}
