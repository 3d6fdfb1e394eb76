//! How a session begins: Open Session and RAKP 1 to 4, the BMC's side (IPMI 2.0 §13.17 to §13.24, §13.31).
//!
//! # Invariants
//!
//! - A slot of the world's device is taken from Open Session on, as real BMCs do, and given back when the
//!   handshake fails. Shown by `a_login_is_refused_as_an_unrecognized_parameter_and_keeps_no_slot`.
//! - A copy of a message gets the answer that the first one got. Shown by
//!   `a_copy_of_rakp_3_is_answered_until_the_session_is_used`.

use picket_core::time::BootTime;
use picket_driver_ipmi::crypto::{Keys, Suite, hmac};
use picket_driver_sim::{Fault, Request as Asked, Response, Trouble, World};

use super::IpmiBmc;
use super::session::{Active, LoginName, Session, Stage, Window};
use crate::account::Role;

/// RMCP+ status codes (IPMI 2.0 table 13-15).
const NO_RESOURCES: u8 = 0x01;
const INVALID_SESSION: u8 = 0x02;
const INVALID_ROLE: u8 = 0x09;
const UNKNOWN_NAME: u8 = 0x0D;
const WRONG_CODE: u8 = 0x0F;
const NO_SUCH_SUITE: u8 = 0x11;
const ILLEGAL: u8 = 0x12;

/// The lower four bits of a role: the level. Bit 4 says that the name alone is looked up.
const LEVEL: u8 = 0x0F;
/// Length of the algorithms in Open Session: three of eight bytes.
const ALGORITHMS: usize = 24;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl IpmiBmc {
    /// The answer to Open Session.
    pub(super) fn open(&mut self, world: &mut World, now: BootTime, request: &[u8]) -> Option<Vec<u8>> {
        let (&tag, &level) = (request.first()?, request.get(1)?);
        let console = u32_at(request, 4)?;
        let algorithms = request.get(8..8 + ALGORITHMS)?;
        let refused = |status: u8| {
            let mut out = vec![tag, status, 0, 0];
            out.extend_from_slice(&console.to_le_bytes());
            Some(out)
        };
        self.reap(world, now);
        let Some(suite) = self.options.suites.iter().copied().find(|suite| proposes(algorithms, *suite))
        else {
            return refused(NO_SUCH_SUITE);
        };
        let level = level & LEVEL;
        if level != 0 && Role::from_level(level).is_none() {
            return refused(INVALID_ROLE);
        }
        let opened = match world.hand(now, &self.options.device, None, &Asked::Open) {
            Ok(Response::Opened(id)) => Some(id),
            Err(Trouble::Password) => None,
            Err(Trouble::SessionsFull) => return refused(NO_RESOURCES),
            _ => return None,
        };
        let id = self.fresh_id();
        let session = Session { world: opened, console, level, suite, stage: Stage::Opened, closing: false };
        self.sessions.insert(id, session);
        let mut out = vec![tag, 0, if level == 0 { Role::Administrator as u8 } else { level }, 0];
        out.extend_from_slice(&console.to_le_bytes());
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(algorithms);
        Some(out)
    }

    fn fresh_id(&mut self) -> u32 {
        loop {
            let id = u32::from_le_bytes(self.bytes());
            if id != 0 && !self.sessions.contains_key(&id) {
                return id;
            }
        }
    }

    /// The answer to RAKP 1: RAKP 2.
    pub(super) fn rakp1(&mut self, world: &mut World, now: BootTime, rakp1: &[u8]) -> Option<Vec<u8>> {
        let (&tag, id) = (rakp1.first()?, u32_at(rakp1, 4)?);
        let their_random: [u8; 16] = rakp1.get(8..24)?.try_into().ok()?;
        let &role = rakp1.get(24)?;
        let name = rakp1.get(28..)?.get(..usize::from(*rakp1.get(27)?))?;
        if !self.is_known(world, now, id)? {
            return Some(vec![tag, INVALID_SESSION, 0, 0, 0, 0, 0, 0]);
        }
        let our_random = self.bytes();
        let guid = self.guid;
        let session = self.sessions.get_mut(&id)?;
        match &session.stage {
            Stage::Opened => {}
            Stage::Named(named) if named.rakp1 == rakp1 => return Some(named.rakp2.clone()),
            Stage::Named(_) | Stage::Active(_) => return None,
        }
        let console = session.console.to_le_bytes();
        let refused = |status: u8| [&[tag, status, 0, 0][..], &console].concat();
        if world.suffers(&self.options.device, &Fault::RakpRefused) {
            self.give_up(world, now, id);
            return Some(refused(ILLEGAL));
        }
        let account = self.options.accounts.iter().find(|account| account.name.as_bytes() == name);
        let Some(account) = account else {
            self.give_up(world, now, id);
            return Some(refused(UNKNOWN_NAME));
        };
        let wanted = match (role & LEVEL, session.level) {
            (0, 0) => account.role as u8,
            (0, level) | (level, 0) => level,
            (level, limit) => level.min(limit),
        };
        let Some(most) = Role::from_level(wanted).filter(|most| *most <= account.role) else {
            self.give_up(world, now, id);
            return Some(refused(INVALID_ROLE));
        };
        let mut password = account.password.clone().into_bytes();
        if session.world.is_none() {
            // The world says that these credentials are wrong: it knows another password.
            password.push(b'?');
        }
        let by_open_session = world.suffers(&self.options.device, &Fault::KeysByOpenSession);
        let signed = if by_open_session { session.level } else { role };
        let user = [&[signed, name.len() as u8], name].concat();
        let code = hmac(
            session.suite,
            &password,
            &[&console, &id.to_le_bytes(), &their_random, &our_random, &guid, &user],
        );
        let mut rakp2 = vec![tag, 0, 0, 0];
        rakp2.extend_from_slice(&console);
        rakp2.extend_from_slice(&our_random);
        rakp2.extend_from_slice(&guid);
        rakp2.extend_from_slice(code.bytes());
        let named = LoginName {
            rakp1: rakp1.to_vec(),
            rakp2: rakp2.clone(),
            their_random,
            our_random,
            user,
            password,
            most,
        };
        session.stage = Stage::Named(Box::new(named));
        Some(rakp2)
    }

    /// The answer to RAKP 3: RAKP 4.
    pub(super) fn rakp3(&mut self, world: &mut World, now: BootTime, rakp3: &[u8]) -> Option<Vec<u8>> {
        let (&tag, &status, id) = (rakp3.first()?, rakp3.get(1)?, u32_at(rakp3, 4)?);
        let refused = |status: u8, console: u32| [&[tag, status, 0, 0][..], &console.to_le_bytes()].concat();
        if !self.is_known(world, now, id)? {
            return Some(refused(INVALID_SESSION, 0));
        }
        let guid = self.guid;
        let session = self.sessions.get_mut(&id)?;
        let named = match &session.stage {
            Stage::Opened => return None,
            Stage::Active(active) => return active.rakp4.clone().filter(|rakp4| rakp4.first() == Some(&tag)),
            Stage::Named(named) => named,
        };
        let (console, suite) = (session.console, session.suite);
        if status != 0 {
            // The client gave up.
            self.give_up(world, now, id);
            return None;
        }
        let code = hmac(suite, &named.password, &[&named.our_random, &console.to_le_bytes(), &named.user]);
        if !code.matches(rakp3.get(8..)?, suite.hash_len()) {
            self.give_up(world, now, id);
            return Some(refused(WRONG_CODE, console));
        }
        let key = hmac(suite, &named.password, &[&named.their_random, &named.our_random, &named.user]);
        let check = hmac(suite, key.bytes(), &[&named.their_random, &id.to_le_bytes(), &guid]);
        let mut rakp4 = refused(0, console);
        rakp4.extend_from_slice(&check.bytes()[..suite.code_len()]);
        // A session begins at User, whatever it may reach (IPMI 2.0 §6.8).
        session.stage = Stage::Active(Box::new(Active {
            keys: Keys::derive(suite, key.bytes()),
            window: Window::default(),
            sent: 0,
            role: Role::User,
            most: named.most,
            rakp4: Some(rakp4.clone()),
        }));
        Some(rakp4)
    }

    /// Whether there is such a session, which stays alive by that; `None`: the device is silent.
    fn is_known(&mut self, world: &mut World, now: BootTime, id: u32) -> Option<bool> {
        let Some(session) = self.sessions.get(&id) else { return Some(false) };
        let Some(known) = session.world else { return Some(true) };
        match world.hand(now, &self.options.device, Some(known), &Asked::Touch) {
            Err(Trouble::NoSession) => {
                self.sessions.remove(&id);
                Some(false)
            }
            Err(Trouble::Silence) => None,
            _ => Some(true),
        }
    }

    /// Forgets a session, and gives its slot back.
    pub(super) fn give_up(&mut self, world: &mut World, now: BootTime, id: u32) {
        if let Some(known) = self.sessions.remove(&id).and_then(|session| session.world) {
            // It is gone then, whatever is answered.
            let _ = world.hand(now, &self.options.device, Some(known), &Asked::Close);
        }
    }
}

/// Whether Open Session proposes exactly this suite.
fn proposes(algorithms: &[u8], suite: Suite) -> bool {
    (0..).zip(suite.algorithms()).zip(algorithms.chunks_exact(8)).all(|((kind, number), proposed)| {
        proposed[0] == kind && proposed[3] == 8 && proposed[4] & 0x3F == number
    })
}
