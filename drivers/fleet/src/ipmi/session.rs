//! A session as the BMC keeps it.

use picket_driver_ipmi::crypto::{Keys, Suite};
use picket_driver_sim::SessionId;

use crate::account::Role;

/// How far ahead of the highest, and how far behind it, a number may be (IPMI 2.0 §6.12.13).
const AHEAD: u32 = 15;
const BEHIND: u32 = 16;

/// The sequence numbers that were taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    highest: Option<u32>,
    /// Bit n: the highest less n was taken.
    taken: u32,
}

impl Window {
    /// Whether that number is taken now: it is near the highest, and new. Numbers begin at 1, and at 0 with some clients.
    pub fn take(&mut self, number: u32) -> bool {
        let Some(highest) = self.highest else {
            let near = number <= AHEAD;
            if near {
                (self.highest, self.taken) = (Some(number), 1);
            }
            return near;
        };
        let ahead = number.wrapping_sub(highest);
        if (1..=AHEAD).contains(&ahead) {
            (self.highest, self.taken) = (Some(number), self.taken << ahead | 1);
            return true;
        }
        let behind = highest.wrapping_sub(number);
        let new = behind < BEHIND && self.taken >> behind & 1 == 0;
        if new {
            self.taken |= 1 << behind;
        }
        new
    }
}

/// How far a session has come.
#[derive(Debug)]
pub enum Stage {
    /// Open Session was answered.
    Opened,
    /// RAKP 1 was answered: what was said, as a copy of it gets the same answer.
    Named(Box<LoginName>),
    /// RAKP 3 was right.
    Active(Box<Active>),
}

/// Who wants to log in.
#[derive(Debug)]
pub struct LoginName {
    /// RAKP message 1.
    pub rakp1: Vec<u8>,
    /// RAKP message 2.
    pub rakp2: Vec<u8>,
    /// The client's random number.
    pub their_random: [u8; 16],
    /// Ours.
    pub our_random: [u8; 16],
    /// Role, length of the name, name.
    pub user: Vec<u8>,
    /// Its password.
    pub password: Vec<u8>,
    /// The most that it may do in this session.
    pub most: Role,
}

/// An open session.
#[derive(Debug)]
pub struct Active {
    /// Its keys.
    pub keys: Keys,
    /// Which of the client's numbers were taken.
    pub window: Window,
    /// The last number of ours.
    pub sent: u32,
    /// What it may do now.
    pub role: Role,
    /// The most that it may do.
    pub most: Role,
    /// RAKP 4, until the first packet came: a copy of RAKP 3 gets the same answer.
    pub rakp4: Option<Vec<u8>>,
}

/// A session, half open or open.
#[derive(Debug)]
pub struct Session {
    /// What the world calls it; `None`: the world refuses its credentials, and it will not get further than RAKP.
    pub world: Option<SessionId>,
    /// The client's id for it.
    pub console: u32,
    /// The level that Open Session asked for; 0: the highest.
    pub level: u8,
    /// The cipher suite.
    pub suite: Suite,
    /// How far it has come.
    pub stage: Stage,
    /// Its close was taken: it ends with the answer.
    pub closing: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_taken_once_and_only_near_the_highest() {
        let mut window = Window::default();
        assert!(!window.take(16), "too far from the first");
        assert!(window.take(1));
        assert!(!window.take(1));
        assert!(window.take(4) && window.take(3) && window.take(2));
        assert!(!window.take(2) && !window.take(3) && !window.take(4));
        assert!(!window.take(20), "16 ahead");
        assert!(window.take(19), "15 ahead");
        assert!(window.take(5), "14 behind");
        assert!(!window.take(3), "16 behind");
        assert!(window.take(30) && !window.take(14));
    }

    #[test]
    fn numbers_may_come_round() {
        let mut window = Window { highest: Some(u32::MAX - 1), taken: 1 };
        assert!(window.take(1) && window.take(u32::MAX) && !window.take(u32::MAX));
    }
}
