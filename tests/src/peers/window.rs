//! A BMC's window of session sequence numbers: what is far from the highest, or came before, is dropped (IPMI 2.0
//! §6.12.13). ipmi_sim takes a number twice; many BMCs do not.
//!
//! For packets that are whole: a BMC looks at their code first.

use std::collections::{BTreeMap, BTreeSet};

/// How far ahead of the highest a number may be, and how far behind.
const AHEAD: u32 = 15;
const BEHIND: u32 = 16;

/// The windows of all sessions, by the BMC's id of each.
#[derive(Debug, Default)]
pub struct Windows(BTreeMap<u32, BTreeSet<u32>>);

fn number(datagram: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(datagram.get(at..at + 4)?.try_into().ok()?))
}

impl Windows {
    /// Whether the BMC takes this datagram. What belongs to no session is always taken.
    pub fn take(&mut self, datagram: &[u8]) -> bool {
        let [_, _, _, _, 6, _, ..] = datagram else { return true };
        let (Some(session @ 1..), Some(sequence)) = (number(datagram, 6), number(datagram, 10)) else {
            return true;
        };
        let seen = self.0.entry(session).or_default();
        let highest = seen.last().copied().unwrap_or_default();
        let inside = sequence <= highest + AHEAD && sequence + BEHIND >= highest;
        inside && seen.insert(sequence)
    }
}
