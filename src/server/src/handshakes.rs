//! The handshakes that are under way: those that come to nothing make room for newer ones.
//!
//! # Invariants
//!
//! - There are never more than [`ALL`], and never more than [`EACH`] of one network. Shown by
//!   `a_full_room_takes_a_newcomer_at_the_cost_of_who_has_most`.
//! - Nobody is kept out: the oldest handshake of the network that has most goes. Shown by
//!   `whoever_has_many_waits_for_none_but_their_own`,
//!   `a_full_room_takes_a_newcomer_at_the_cost_of_who_has_most`.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::guard::origin::Network;

/// So many are under way at once.
const ALL: usize = 256;
/// Of these so many of one network.
const EACH: usize = 32;

/// All of them, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handshakes(Arc<Mutex<Underway>>);

#[derive(Debug, Default)]
struct Underway {
    begun: u64,
    all: Vec<(u64, Network, CancellationToken)>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Handshake {
    of: Handshakes,
    number: u64,
    /// Ends when it has to make room.
    pub(crate) out: CancellationToken,
}

impl Handshakes {
    /// One more, from there.
    pub(crate) fn begin(&self, from: Network) -> Handshake {
        let mut underway = self.0.lock();
        if underway.count(from) >= EACH {
            underway.end_oldest(from);
        } else if underway.all.len() >= ALL
            && let Some(largest) = underway.largest()
        {
            underway.end_oldest(largest);
        }
        underway.begun += 1;
        let (number, out) = (underway.begun, CancellationToken::new());
        underway.all.push((number, from, out.clone()));
        Handshake { of: self.clone(), number, out }
    }
}

impl Underway {
    fn count(&self, network: Network) -> usize {
        self.all.iter().filter(|(_, of, _)| *of == network).count()
    }

    /// The network that has most; of several the one that has the oldest.
    fn largest(&self) -> Option<Network> {
        let mut counts: BTreeMap<Network, usize> = BTreeMap::new();
        self.all.iter().for_each(|(_, of, _)| *counts.entry(*of).or_default() += 1);
        let most = counts.values().max().copied();
        let mut by_age = self.all.iter().map(|(_, of, _)| *of);
        by_age.find(|of| counts.get(of).copied() == most)
    }

    fn end_oldest(&mut self, network: Network) {
        if let Some(at) = self.all.iter().position(|(_, of, _)| *of == network) {
            self.all.remove(at).2.cancel();
        }
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.of.0.lock().all.retain(|(number, _, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(last: u8) -> Network {
        Network::of([192, 0, 2, last].into())
    }

    fn ended(all: &[Handshake]) -> usize {
        all.iter().filter(|shaking| shaking.out.is_cancelled()).count()
    }

    #[test]
    fn whoever_has_many_waits_for_none_but_their_own() {
        let room = Handshakes::default();
        let honest = room.begin(from(200));
        let silent: Vec<Handshake> = (0..EACH + 8).map(|_| room.begin(from(1))).collect();
        assert_eq!(ended(&silent), 8);
        assert!(silent[7].out.is_cancelled() && !silent[8].out.is_cancelled(), "the oldest went");
        assert!(!honest.out.is_cancelled());
    }

    #[test]
    fn a_full_room_takes_a_newcomer_at_the_cost_of_who_has_most() {
        let room = Handshakes::default();
        let few = [room.begin(from(100)), room.begin(from(100))];
        let silent: Vec<Handshake> =
            (0..8).flat_map(|network| [network; EACH]).map(|network| room.begin(from(network))).collect();
        assert_eq!(ended(&silent), 2, "there are never more than {ALL}");
        let newcomer = room.begin(from(101));
        assert_eq!((ended(&few), ended(&silent)), (0, 3));
        assert!(!newcomer.out.is_cancelled());
        let crowd: Vec<Handshake> = (0..200).map(|_| room.begin(from(7))).collect();
        assert!(!newcomer.out.is_cancelled() && ended(&few) == 0 && ended(&crowd) >= 200 - EACH);
    }

    #[test]
    fn what_has_ended_takes_no_room() {
        let room = Handshakes::default();
        for _ in 0..2 * ALL {
            drop(room.begin(from(1)));
        }
        let all: Vec<Handshake> = (0..EACH).map(|_| room.begin(from(1))).collect();
        assert_eq!((ended(&all), room.0.lock().all.len()), (0, EACH));
    }
}
