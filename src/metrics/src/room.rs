//! The connections that are open: newer ones never wait for older ones.
//!
//! # Invariants
//!
//! - There are never more than [`ALL`], and never more than [`EACH`] of one network. Shown by
//!   `a_network_with_many_takes_no_place_of_another`.
//! - Nobody is kept out: the oldest connection of the network that has most ends. Shown by
//!   `a_full_room_takes_a_newcomer_at_the_cost_of_the_largest_network`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// So many are open at once.
const ALL: usize = 64;
/// Of these so many of one network.
const EACH: usize = 16;

/// All of them. Cheap to clone; all clones are the same room.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room(Arc<Mutex<Open>>);

/// The open ones, the oldest first.
#[derive(Debug, Default)]
struct Open {
    begun: u64,
    all: Vec<(u64, IpAddr, oneshot::Sender<()>)>,
}

/// A connection's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    room: Room,
    number: u64,
    /// Answers once the connection has to make room.
    pub(crate) out: oneshot::Receiver<()>,
}

impl Room {
    /// A place for one more connection from there.
    pub(crate) fn take(&self, from: IpAddr) -> Place {
        let (from, mut open) = (network(from), self.0.lock());
        if open.all.iter().filter(|(_, of, _)| *of == from).count() >= EACH {
            open.end_oldest(from);
        } else if open.all.len() >= ALL
            && let Some(largest) = open.largest()
        {
            open.end_oldest(largest);
        }
        open.begun += 1;
        let (number, (end, out)) = (open.begun, oneshot::channel());
        open.all.push((number, from, end));
        Place { room: self.clone(), number, out }
    }
}

impl Open {
    /// The network that has most; of several the one that has the oldest.
    fn largest(&self) -> Option<IpAddr> {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        self.all.iter().for_each(|(_, of, _)| *counts.entry(*of).or_default() += 1);
        let most = counts.values().max().copied();
        self.all.iter().map(|(_, of, _)| *of).find(|of| counts.get(of).copied() == most)
    }

    /// Its place is free at once: the connection ends as soon as its task is polled.
    fn end_oldest(&mut self, from: IpAddr) {
        if let Some(at) = self.all.iter().position(|(_, of, _)| *of == from) {
            // Where the connection is over already, nothing has to be ended.
            let _over = self.all.remove(at).2.send(());
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.0.lock().all.retain(|(number, _, _)| *number != self.number);
    }
}

/// The addresses of which whoever has one has all count as one: one of IPv4, 64 bits of IPv6, the whole loopback.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V6(long) => IpAddr::V6(Ipv6Addr::from_bits(long.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn ended(all: &mut [Place]) -> usize {
        all.iter_mut().filter_map(|place| place.out.try_recv().ok()).count()
    }

    #[test]
    fn a_network_with_many_takes_no_place_of_another() {
        let room = Room::default();
        let mut probe = [room.take(from(200))];
        let mut silent: Vec<Place> = (0..EACH + 8).map(|_| room.take(from(1))).collect();
        assert_eq!((ended(&mut silent[..8]), ended(&mut silent[8..])), (8, 0), "the oldest end");
        assert_eq!(ended(&mut probe), 0);
    }

    #[test]
    fn a_full_room_takes_a_newcomer_at_the_cost_of_the_largest_network() {
        let room = Room::default();
        let mut few = [room.take(from(200)), room.take(from(200))];
        let networks = u8::try_from(ALL / EACH).expect("few");
        let mut silent: Vec<Place> =
            (0..networks).flat_map(|one| [one; EACH]).map(|one| room.take(from(one))).collect();
        assert_eq!((ended(&mut silent), room.0.lock().all.len()), (2, ALL));
        let mut newcomer = [room.take(from(201))];
        assert_eq!((ended(&mut few), ended(&mut silent), ended(&mut newcomer)), (0, 1, 0));
    }

    #[test]
    fn a_closed_connection_takes_no_place() {
        let room = Room::default();
        for _ in 0..2 * ALL {
            drop(room.take(from(1)));
        }
        let mut all: Vec<Place> = (0..EACH).map(|_| room.take(from(1))).collect();
        assert_eq!((ended(&mut all), room.0.lock().all.len()), (0, EACH));
    }

    #[test]
    fn a_machine_with_many_addresses_is_one_network() {
        let of = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(of("127.0.0.2"), of("::1"));
        assert_eq!(of("::ffff:192.0.2.7"), of("192.0.2.7"));
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::9"));
        assert_ne!(of("2001:db8:1:2::9"), of("2001:db8:1:3::9"));
    }
}
