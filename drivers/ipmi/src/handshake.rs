//! Opening a session, without any I/O: Open Session, RAKP 1 to 4 (IPMI 2.0 §13.17 to §13.24).
//!
//! # Invariants
//!
//! - Exactly one cipher suite is proposed, and an answer that names another is refused. Shown by
//!   `algorithms_that_were_not_proposed_are_refused`.
//! - The BMC proves that it knows the password (RAKP 2) before we prove that we do (RAKP 3). Shown by
//!   `another_password_or_key_is_found_out`.
//! - What does not belong to this handshake is ignored. Shown by
//!   `answers_of_another_stage_tag_or_session_are_ignored`.

use picket_driver::Secret;

use crate::crypto::{Hash, Keys, Suite, hmac};
use crate::session::Session;
use crate::settings::Privilege;
use crate::wire::{self, Payload};

/// Bit 4 of the requested role: look the user up by name alone, not by name and privilege (IPMI 2.0 table 13-11).
/// Without it a user whose limit is above the requested level is not found.
const NAME_ONLY: u8 = 0x10;

/// Who logs in, and with what.
#[derive(Clone, Debug)]
pub struct Login {
    /// At most 16 bytes.
    pub username: String,
    /// At most 20 bytes.
    pub password: Secret,
    /// The BMC key K_G; without one the password takes its place (IPMI 2.0 §13.31).
    pub bmc_key: Option<Secret>,
    /// The level that the session may reach.
    pub privilege: Privilege,
}

/// Why the BMC, or we, ended the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A status code of the BMC's, not 0 (IPMI 2.0 table 13-15), in answer to Open Session or RAKP 1.
    Status(u8),
    /// A status code in RAKP 4: the BMC does not like our RAKP 3, although it had proven that it knows the password.
    Rakp4(u8),
    /// The BMC chose algorithms that were not proposed.
    OtherAlgorithms,
    /// The BMC did not prove that it knows the password: ours is wrong, or it is not the BMC.
    WrongPassword,
    /// The code of RAKP 4 is wrong: the BMC key is.
    WrongKey,
}

/// What a datagram did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing: it does not belong here.
    Ignored,
    /// The next packet is to be sent.
    Next,
    /// The session is open: [`Handshake::presumed`] is more than presumed now.
    Done,
    /// It is over.
    Refused(Refusal),
}

/// Which packet is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Open Session.
    Open,
    /// RAKP message 1.
    Rakp1,
    /// RAKP message 3.
    Rakp3,
}

/// One attempt to open a session.
pub struct Handshake<'a> {
    login: &'a Login,
    suite: Suite,
    /// Message tag of the first packet; the others have the following ones.
    tag: u8,
    local: u32,
    our_random: [u8; 16],
    stage: Stage,
    remote: u32,
    /// What other answers to Open Session named: some BMCs begin again with each copy and know only the last.
    other_remotes: Vec<u32>,
    /// Further answers to Open Session came, more than we asked for or not.
    doubled: bool,
    /// A RAKP 2 that fits none of the ids that were seen yet.
    doubted: Option<Vec<u8>>,
    their_random: [u8; 16],
    guid: [u8; 16],
    /// The role in the codes: the one of RAKP 1, or with some BMCs what Open Session asked for.
    signed_role: u8,
    session_key: Option<Hash>,
}

impl<'a> Handshake<'a> {
    /// An attempt with `suite`; `random` is 21 unpredictable bytes.
    pub fn new(login: &'a Login, suite: Suite, random: &[u8; 21]) -> Self {
        let mut our_random = [0; 16];
        our_random.copy_from_slice(&random[..16]);
        let local = u32::from_le_bytes([random[16], random[17], random[18], random[19]]);
        Self {
            login,
            suite,
            tag: random[20],
            // Session id 0 means "outside of a session".
            local: local.max(1),
            our_random,
            stage: Stage::Open,
            remote: 0,
            other_remotes: Vec::new(),
            doubled: false,
            doubted: None,
            their_random: [0; 16],
            guid: [0; 16],
            signed_role: NAME_ONLY | login.privilege.level(),
            session_key: None,
        }
    }

    /// Which packet is to be sent now.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    fn tag_of(&self, stage: Stage) -> u8 {
        self.tag.wrapping_add(stage as u8)
    }

    fn stage_tag(&self) -> u8 {
        self.tag_of(self.stage)
    }

    fn role(&self) -> u8 {
        NAME_ONLY | self.login.privilege.level()
    }

    /// Role, length of the name, name: what the codes end with.
    fn user(&self, role: u8) -> Vec<u8> {
        let name = self.login.username.as_bytes();
        [&[role, name.len() as u8], name].concat()
    }

    /// Whether the BMC makes its codes with the privilege of Open Session.
    pub fn has_open_privilege(&self) -> bool {
        self.signed_role != self.role()
    }

    fn password_hmac(&self, parts: &[&[u8]]) -> Hash {
        hmac(self.suite, self.login.password.expose(), parts)
    }

    /// Writes the packet that is to be sent now.
    pub fn write(&self, out: &mut Vec<u8>) {
        let tag = self.stage_tag();
        match self.stage {
            Stage::Open => {
                let mut payload = vec![tag, self.login.privilege.level(), 0, 0];
                payload.extend_from_slice(&self.local.to_le_bytes());
                for (kind, algorithm) in (0..).zip(self.suite.algorithms()) {
                    payload.extend_from_slice(&[kind, 0, 0, 8, algorithm, 0, 0, 0]);
                }
                wire::write_bare(out, Payload::OpenRequest, &payload);
            }
            Stage::Rakp1 => {
                let name = self.login.username.as_bytes();
                let mut payload = vec![tag, 0, 0, 0];
                payload.extend_from_slice(&self.remote.to_le_bytes());
                payload.extend_from_slice(&self.our_random);
                payload.extend_from_slice(&[self.role(), 0, 0, name.len() as u8]);
                payload.extend_from_slice(name);
                wire::write_bare(out, Payload::Rakp1, &payload);
            }
            Stage::Rakp3 => {
                let user = self.user(self.signed_role);
                let code = self.password_hmac(&[&self.their_random, &self.local.to_le_bytes(), &user]);
                self.write_rakp3(out, 0, code.bytes());
            }
        }
    }

    fn write_rakp3(&self, out: &mut Vec<u8>, status: u8, code: &[u8]) {
        let mut payload = vec![self.stage_tag(), status, 0, 0];
        payload.extend_from_slice(&self.remote.to_le_bytes());
        payload.extend_from_slice(code);
        wire::write_bare(out, Payload::Rakp3, &payload);
    }

    /// Writes what lets the BMC forget this half-open session, if it has one: RAKP 3 with the status "invalid
    /// integrity check value" (IPMI 2.0 §13.22). BMCs have few slots.
    pub fn write_abort(&self, out: &mut Vec<u8>) -> bool {
        let half_open = self.stage != Stage::Open;
        if half_open {
            self.write_rakp3(out, 0x0F, &[]);
        }
        half_open
    }

    /// The session that the BMC opens with RAKP 3, whether its RAKP 4 arrives or not. Nothing of it may be believed
    /// but what is signed with its keys: they prove what RAKP 4 proves.
    pub fn presumed(&self) -> Option<Session> {
        let key = self.session_key.as_ref().filter(|_| self.stage == Stage::Rakp3)?;
        let keys = Keys::derive(self.suite, key.bytes());
        Some(Session::new(keys, self.local, self.remote).of_system(self.guid))
    }

    /// Takes a datagram in.
    pub fn handle(&mut self, datagram: &[u8]) -> Progress {
        let taken = match self.stage {
            Stage::Open => self.open_response(datagram),
            Stage::Rakp1 => match self.another_open_response(datagram) {
                Some(()) => self.doubted.take().and_then(|doubted| self.rakp2(&doubted)),
                None => self.rakp2(datagram),
            },
            Stage::Rakp3 => {
                self.another_open_response(datagram);
                self.rakp4(datagram)
            }
        };
        taken.unwrap_or(Progress::Ignored)
    }

    /// Whether the BMC, or the network, answered Open Session more than once: then it may have begun again, and what it
    /// says of our codes says nothing of our secrets.
    pub fn was_doubled(&self) -> bool {
        self.doubled
    }

    /// How much it keeps of what was said: ids, and bytes.
    #[cfg(feature = "fuzz")]
    pub(crate) fn remembers(&self) -> usize {
        self.other_remotes.len() + self.doubted.as_ref().map_or(0, Vec::len)
    }

    /// The payload, if it answers that stage. A BMC that refuses may leave out everything after the status
    /// (ipmi_sim's Open Session does).
    fn payload<'d>(&self, datagram: &'d [u8], kind: Payload, stage: Stage) -> Option<&'d [u8]> {
        let payload = wire::read_bare(datagram, kind)?;
        let ours = payload.first() == Some(&self.tag_of(stage))
            && match payload.get(4..8) {
                Some(id) => id == self.local.to_le_bytes(),
                None => payload.get(1).is_some_and(|status| *status != 0),
            };
        ours.then_some(payload)
    }

    fn open_response(&mut self, datagram: &[u8]) -> Option<Progress> {
        let payload = self.payload(datagram, Payload::OpenResponse, Stage::Open)?;
        if payload[1] != 0 {
            return Some(Progress::Refused(Refusal::Status(payload[1])));
        }
        let remote = u32::from_le_bytes(payload.get(8..12)?.try_into().ok()?);
        let algorithms = payload.get(12..36)?;
        for (kind, proposed) in (0..).zip(self.suite.algorithms()) {
            let chosen = &algorithms[8 * usize::from(kind)..][..8];
            if chosen[0] != kind || chosen[4] & 0x3F != proposed {
                return Some(Progress::Refused(Refusal::OtherAlgorithms));
            }
        }
        if remote == 0 {
            return None;
        }
        self.remote = remote;
        self.stage = Stage::Rakp1;
        Some(Progress::Next)
    }

    /// Notes the id of a further answer to Open Session.
    fn another_open_response(&mut self, datagram: &[u8]) -> Option<()> {
        let payload = self.payload(datagram, Payload::OpenResponse, Stage::Open)?;
        let remote = u32::from_le_bytes(payload.get(8..12)?.try_into().ok()?);
        self.doubled = true;
        let new = remote != 0 && remote != self.remote && !self.other_remotes.contains(&remote);
        if new && payload[1] == 0 && self.other_remotes.len() < 8 {
            self.other_remotes.push(remote);
        }
        Some(())
    }

    fn rakp2(&mut self, datagram: &[u8]) -> Option<Progress> {
        let payload = self.payload(datagram, Payload::Rakp2, Stage::Rakp1)?;
        if payload[1] != 0 {
            return Some(Progress::Refused(Refusal::Status(payload[1])));
        }
        let their_random: [u8; 16] = payload.get(8..24)?.try_into().ok()?;
        let guid: [u8; 16] = payload.get(24..40)?.try_into().ok()?;
        let code = payload.get(40..)?;
        let signed_for = |&(role, remote): &(u8, u32)| {
            let (local, remote, user) = (self.local.to_le_bytes(), remote.to_le_bytes(), self.user(role));
            let expected =
                self.password_hmac(&[&local, &remote, &self.our_random, &their_random, &guid, &user]);
            expected.matches(code, self.suite.hash_len())
        };
        let remotes = [self.remote].into_iter().chain(self.other_remotes.iter().copied());
        // Either way the password is proven, and each proof is over what we sent: nothing weaker is taken (S1).
        let roles = [self.role(), self.login.privilege.level()];
        let mut pairs = roles.into_iter().flat_map(|role| remotes.clone().map(move |remote| (role, remote)));
        let Some((role, remote)) = pairs.find(signed_for) else {
            self.doubted = Some(datagram.to_vec());
            return Some(Progress::Refused(Refusal::WrongPassword));
        };
        self.remote = remote;
        self.signed_role = role;
        self.their_random = their_random;
        self.guid = guid;
        let key = self.login.bmc_key.as_ref().unwrap_or(&self.login.password);
        let user = self.user(role);
        self.session_key = Some(hmac(self.suite, key.expose(), &[&self.our_random, &their_random, &user]));
        self.stage = Stage::Rakp3;
        Some(Progress::Next)
    }

    /// Takes further answers in before the next packet is sent: a BMC that got RAKP 1 twice may know only its last random,
    /// and one that got Open Session twice only its last id.
    pub fn renew(&mut self, datagram: &[u8]) {
        self.another_open_response(datagram);
        if self.stage == Stage::Rakp3 {
            self.rakp2(datagram);
        }
    }

    fn rakp4(&mut self, datagram: &[u8]) -> Option<Progress> {
        let payload = self.payload(datagram, Payload::Rakp4, Stage::Rakp3)?;
        if payload[1] != 0 {
            return Some(Progress::Refused(Refusal::Rakp4(payload[1])));
        }
        let key = self.session_key.as_ref()?;
        let expected =
            hmac(self.suite, key.bytes(), &[&self.our_random, &self.remote.to_le_bytes(), &self.guid]);
        if !expected.matches(payload.get(8..)?, self.suite.code_len()) {
            return Some(Progress::Refused(Refusal::WrongKey));
        }
        Some(Progress::Done)
    }
}

#[cfg(test)]
mod tests;
