//! Ranges of addresses, as a NetworkFence of csi-addons names them.

use std::net::IpAddr;

/// Whether the range holds the address. What cannot be read may hold any.
pub(crate) fn may_hold(range: &str, address: IpAddr) -> bool {
    let Some((network, length)) = read(range) else { return true };
    let (network, address) = (bits(network), bits(address.to_canonical()));
    // A family of addresses holds none of the other.
    network.1 == address.1
        && network.0.checked_shr(network.1 - length) == address.0.checked_shr(address.1 - length)
}

/// The range of one address.
pub(crate) fn of_one(address: IpAddr) -> String {
    format!("{address}/{}", bits(address).1)
}

/// Its network, and how many bits of that count.
fn read(range: &str) -> Option<(IpAddr, u32)> {
    let (network, length) = match range.split_once('/') {
        Some((network, length)) => (network, Some(length.parse::<u32>().ok()?)),
        None => (range, None),
    };
    let network: IpAddr = network.trim().parse().ok()?;
    let all = bits(network).1;
    let length = length.unwrap_or(all);
    let canonical = network.to_canonical();
    // An IPv4 network in the words of IPv6 (::ffff:10.0.0.0/104).
    match (length > all, all - bits(canonical).1) {
        (true, _) => None,
        (false, fewer) => Some((canonical, length.checked_sub(fewer)?)),
    }
}

/// Its bits, and how many there are.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_what_begins_like_it_and_an_unreadable_one_may_hold_anything() {
        for (range, address, holds) in [
            ("10.0.0.7/32", "10.0.0.7", true),
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7/32", "10.0.0.8", false),
            ("10.0.0.9/29", "10.0.0.15", true),
            ("10.0.0.8/29", "10.0.0.16", false),
            ("0.0.0.0/0", "10.0.0.7", true),
            ("::/0", "fd00::7", true),
            ("::/0", "10.0.0.7", false),
            ("0.0.0.0/0", "fd00::7", false),
            ("fd00::/64", "fd00::7", true),
            ("fd00::/64", "fd00:0:0:1::7", false),
            ("::ffff:10.0.0.0/104", "10.200.0.7", true),
            ("10.0.0.0/8", "::ffff:10.0.0.7", true),
            // As an older Rook wrote it.
            ("100.64.0.6:0/32", "10.0.0.7", true),
            ("10.0.0.7/33", "10.0.0.8", true),
            ("10.0.0.7/x", "10.0.0.8", true),
            ("", "10.0.0.8", true),
        ] {
            assert_eq!(may_hold(range, address.parse().expect("an address")), holds, "{range} {address}");
        }
    }

    #[test]
    fn one_address_is_a_range_of_itself_alone() {
        for (address, range) in [("10.0.0.7", "10.0.0.7/32"), ("fd00::7", "fd00::7/128")] {
            let address = address.parse().expect("an address");
            assert_eq!(of_one(address), range);
            assert!(may_hold(range, address));
        }
    }
}
