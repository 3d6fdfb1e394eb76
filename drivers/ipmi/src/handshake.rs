//! Opening a session, without any I/O: Open Session, RAKP 1 to 4 (IPMI 2.0 §13.17 to §13.24).
//!
//! **Invariants.** Exactly one cipher suite is proposed, and an answer that names another is refused. The BMC proves
//! that it knows the password (RAKP 2) before we prove that we do (RAKP 3). What does not belong to this handshake
//! is ignored.

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
    their_random: [u8; 16],
    guid: [u8; 16],
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
            their_random: [0; 16],
            guid: [0; 16],
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
    fn user(&self) -> Vec<u8> {
        let name = self.login.username.as_bytes();
        [&[self.role(), name.len() as u8], name].concat()
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
                let code = self.password_hmac(&[&self.their_random, &self.local.to_le_bytes(), &self.user()]);
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
        Some(Session::new(Keys::derive(self.suite, key.bytes()), self.local, self.remote))
    }

    /// Takes a datagram in.
    pub fn handle(&mut self, datagram: &[u8]) -> Progress {
        let taken = match self.stage {
            Stage::Open => self.open_response(datagram),
            Stage::Rakp1 => {
                self.another_open_response(datagram);
                self.rakp2(datagram)
            }
            Stage::Rakp3 => self.rakp4(datagram),
        };
        taken.unwrap_or(Progress::Ignored)
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
        let user = self.user();
        let code = payload.get(40..)?;
        let signed_for = |remote: &u32| {
            let (local, remote) = (self.local.to_le_bytes(), remote.to_le_bytes());
            let expected =
                self.password_hmac(&[&local, &remote, &self.our_random, &their_random, &guid, &user]);
            expected.matches(code, self.suite.hash_len())
        };
        let remotes = [self.remote].into_iter().chain(self.other_remotes.iter().copied());
        let Some(remote) = remotes.into_iter().find(signed_for) else {
            return Some(Progress::Refused(Refusal::WrongPassword));
        };
        self.remote = remote;
        self.their_random = their_random;
        self.guid = guid;
        let key = self.login.bmc_key.as_ref().unwrap_or(&self.login.password);
        self.session_key = Some(hmac(self.suite, key.expose(), &[&self.our_random, &their_random, &user]));
        self.stage = Stage::Rakp3;
        Some(Progress::Next)
    }

    /// Takes a newer RAKP 2 in before RAKP 3 was sent: a BMC that got RAKP 1 twice may know only its last random.
    pub fn renew(&mut self, datagram: &[u8]) {
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
mod tests {
    use ipmi_rs_core::connection::Message;
    use proptest::prelude::*;

    use super::*;
    use crate::command::{GetChassisStatus, SetPrivilege};
    use crate::session::Answer;

    /// What was said on the wire, ours and theirs in turn, with random bytes 1 to 21 and initialisation vector 0xA5…:
    /// Open Session, RAKP 1 to 4, Set Session Privilege Level, Get Chassis Status of a host that is on.
    type Recording = [(&'static str, &'static str); 5];

    /// OpenIPMI's ipmi_sim 2.0.33, suite 3.
    const IPMI_SIM: Recording = [
        (
            "0600ff070610000000000000000020001503000011121314000000080100000001000008010000000200000801000000",
            "0600ff07061100000000000000002400150003001112131402000000000000080100000001000008010000000200000801000000",
        ),
        (
            "0600ff0706120000000000000000210016000000020000000102030405060708090a0b0c0d0e0f101300000561646d696e",
            "0600ff07061300000000000000003c0016000000111213141ec7cedb13546e821e0000d973ce00160123456789abcdef0123456789abcde0\
             63f37b610b0a72683e05baf8b6d3581e859c56ee",
        ),
        (
            "0600ff07061400000000000000001c00170000000200000002b5baac6b07ada5a2a4152c028f1082a523f8aa",
            "0600ff0706150000000000000000140017000000111213141d94af541e291a75682ee2b5",
        ),
        (
            "0600ff0706c002000000010000002000a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a55b13548f5ba50f548b51bc8ef84c59adffff0207\
             48d0dfa6c1e01095bc883108",
            "0600ff0706c0111213140100000020005ed7d16d699510bcf87a62e3982f7bd4ae4e1d21470f4850a8319b42aac087dbffff0207\
             0058f0f5e0f855aebb2d3f11",
        ),
        (
            "0600ff0706c002000000020000002000a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a59326a0debf0451ded0bd38f2c6c3cacdffff0207\
             b4569f7926da103177313b9a",
            "0600ff0706c0111213140200000020006f1a7fc29c56f69daa3d2d8875d61aa8fa36721e00a4f24fa4998f923a51b712ffff0207\
             18e90427d748156c57abc9b7",
        ),
    ];

    /// pyghmi 1.6.19, suite 17.
    const PYGHMI: Recording = [
        (
            "0600ff070610000000000000000020001503000011121314000000080300000001000008040000000200000801000000",
            "0600ff070611000000000000000024001500030011121314871f65e0000000080300000001000008040000000200000801000000",
        ),
        (
            "0600ff0706120000000000000000210016000000871f65e00102030405060708090a0b0c0d0e0f101300000561646d696e",
            "0600ff0706130000000000000000480016000000111213140beb07175e52cee13511c1d1ffc89d8100000000000000000000000000001234\
             35678abbf3e2d5dbd9a179fe61dc9388d3ec8501156197a8a53bf4343027cc87",
        ),
        (
            "0600ff0706140000000000000000280017000000871f65e040ef34dddc0cff27b07900d43663cb950d0106d49729090f26395f63c5eb180b",
            "0600ff070615000000000000000018001700000011121314bca72513cfd4ab748af93d471f96f6d0",
        ),
        (
            "0600ff0706c0871f65e0010000002000a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5752d1cde85b2e3e63893d444c1156477ffff0207\
             cdd2946de7781b762e7ff0e4f391f554",
            "0600ff0706c011121314010000002000a5dc1552802996ca03084cc5430c460f77000998e38df2fd062a277c3621acadffff0207\
             85e0a8c19805a647533f1599b230e5c1",
        ),
        (
            "0600ff0706c0871f65e0020000002000a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a51ee4a8096c5fb1be4ee94d40c418f70dffff0207\
             8a34ebcfb54603e39dc085ebc2a39232",
            "0600ff0706c011121314020000002000420044cbff5b2de7d72f7c0b52fa1a34258a51eedb1ca4e06336e898112823f4ffff0207\
             dc7d659ab5386ef15c60d3bcd7de6de4",
        ),
    ];

    const RANDOM: [u8; 21] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21];

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hexadecimal digits"))
            .collect()
    }

    fn login(password: &str) -> Login {
        Login {
            username: "admin".to_owned(),
            password: Secret::new(password.as_bytes()),
            bmc_key: None,
            privilege: Privilege::Operator,
        }
    }

    fn written(handshake: &Handshake<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        handshake.write(&mut out);
        out
    }

    /// A handshake that has taken the first `taken` answers in.
    fn played<'a>(login: &'a Login, suite: Suite, recording: &Recording, taken: usize) -> Handshake<'a> {
        let mut handshake = Handshake::new(login, suite, &RANDOM);
        for (ours, theirs) in &recording[..taken] {
            assert_eq!(written(&handshake), bytes(ours));
            assert!(matches!(handshake.handle(&bytes(theirs)), Progress::Next));
        }
        handshake
    }

    #[test]
    fn recorded_sessions_of_others_are_replayed_to_the_byte() {
        let login = login("secret12");
        for (suite, recording) in [(Suite::Sha1, IPMI_SIM), (Suite::Sha256, PYGHMI)] {
            let mut handshake = played(&login, suite, &recording, 2);
            assert_eq!(written(&handshake), bytes(recording[2].0));
            assert!(matches!(handshake.handle(&bytes(recording[2].1)), Progress::Done));
            let mut session = handshake.presumed().expect("it is open");
            let commands: [(Message, Answer); 2] = [
                (SetPrivilege(Privilege::Operator).into(), Answer { code: 0, data: vec![3] }),
                (GetChassisStatus.into(), Answer { code: 0, data: vec![1, 0, 0] }),
            ];
            for ((message, said), (ours, theirs)) in commands.into_iter().zip(&recording[3..]) {
                let mut request = session.request(message);
                let mut out = Vec::new();
                session.write_copy(&mut request, &[0xA5; 16], &mut out);
                assert_eq!(out, bytes(ours));
                assert_eq!(session.answer(&request, &mut bytes(theirs)), Some(said));
            }
        }
    }

    #[test]
    fn a_session_whose_rakp_4_was_lost_is_the_same() {
        let login = login("secret12");
        let handshake = played(&login, Suite::Sha256, &PYGHMI, 2);
        let mut session = handshake.presumed().expect("RAKP 2 was right");
        let mut request = session.request(SetPrivilege(Privilege::Operator).into());
        let mut out = Vec::new();
        session.write_copy(&mut request, &[0xA5; 16], &mut out);
        assert_eq!(out, bytes(PYGHMI[3].0));
        assert!(session.answer(&request, &mut bytes(PYGHMI[3].1)).is_some());
        assert!(
            played(&login, Suite::Sha256, &PYGHMI, 1).presumed().is_none(),
            "before RAKP 2 there is none"
        );
    }

    #[test]
    fn a_bmc_that_knows_only_its_last_answer_to_open_session_is_understood() {
        let login = login("secret12");
        let mut handshake = Handshake::new(&login, Suite::Sha256, &RANDOM);
        let mut first = bytes(PYGHMI[0].1);
        first[24] ^= 0xFF;
        assert_eq!(handshake.handle(&first), Progress::Next);
        assert_eq!(handshake.handle(&bytes(PYGHMI[0].1)), Progress::Ignored);
        assert_eq!(handshake.handle(&bytes(PYGHMI[1].1)), Progress::Next);
        assert_eq!(written(&handshake), bytes(PYGHMI[2].0));
    }

    #[test]
    fn another_password_or_key_is_found_out() {
        let wrong = login("secret13");
        let mut handshake = played(&wrong, Suite::Sha256, &PYGHMI, 1);
        let refused = handshake.handle(&bytes(PYGHMI[1].1));
        assert!(matches!(refused, Progress::Refused(Refusal::WrongPassword)));
        let keyed = Login { bmc_key: Some(Secret::new(*b"k_g")), ..login("secret12") };
        let mut handshake = played(&keyed, Suite::Sha256, &PYGHMI, 2);
        let refused = handshake.handle(&bytes(PYGHMI[2].1));
        assert!(matches!(refused, Progress::Refused(Refusal::WrongKey)));
    }

    #[test]
    fn algorithms_that_were_not_proposed_are_refused() {
        let login = login("secret12");
        for at in [32, 40, 48] {
            let mut handshake = Handshake::new(&login, Suite::Sha256, &RANDOM);
            let mut answer = bytes(PYGHMI[0].1);
            // None at all, for each of the three.
            answer[at] = 0;
            let refused = handshake.handle(&answer);
            assert!(matches!(refused, Progress::Refused(Refusal::OtherAlgorithms)), "{at}: {refused:?}");
        }
        let mut handshake = Handshake::new(&login, Suite::Sha256, &RANDOM);
        let mut weaker = bytes(IPMI_SIM[0].1);
        weaker[16] = 0x15;
        assert!(matches!(handshake.handle(&weaker), Progress::Refused(Refusal::OtherAlgorithms)));
    }

    #[test]
    fn a_refusal_may_be_two_bytes_long() {
        let login = login("secret12");
        let mut handshake = Handshake::new(&login, Suite::Sha256, &RANDOM);
        let short = |tag: u8, status: u8| {
            let mut out = Vec::new();
            wire::write_bare(&mut out, Payload::OpenResponse, &[tag, status]);
            out
        };
        assert!(matches!(handshake.handle(&short(0x16, 0x11)), Progress::Ignored), "another tag");
        assert!(matches!(handshake.handle(&short(0x15, 0)), Progress::Ignored), "a success has more to say");
        assert!(matches!(handshake.handle(&short(0x15, 0x11)), Progress::Refused(Refusal::Status(0x11))));
    }

    #[test]
    fn answers_of_another_stage_tag_or_session_are_ignored() {
        let login = login("secret12");
        let mut handshake = played(&login, Suite::Sha256, &PYGHMI, 1);
        for (ours, theirs) in [&PYGHMI[0], &PYGHMI[2], &PYGHMI[3]] {
            assert!(matches!(handshake.handle(&bytes(theirs)), Progress::Ignored));
            assert!(matches!(handshake.handle(&bytes(ours)), Progress::Ignored), "our own packet, sent back");
        }
        for at in [16, 20] {
            let mut other = bytes(PYGHMI[1].1);
            other[at] ^= 1;
            assert!(matches!(handshake.handle(&other), Progress::Ignored));
        }
        assert!(matches!(handshake.handle(&bytes(PYGHMI[1].1)), Progress::Next));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_without_a_panic_and_open_nothing(
            taken in 0_usize..3, at: prop::sample::Index, with: u8, cut: prop::sample::Index,
            noise in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let login = login("secret12");
            for (suite, recording) in [(Suite::Sha1, &IPMI_SIM), (Suite::Sha256, &PYGHMI)] {
                let right = bytes(recording[taken].1);
                let mut changed = right.clone();
                // Bytes 18 and 19 are reserved: nobody signs or reads them.
                let at = Some(at.index(right.len())).filter(|at| !matches!(at, 18 | 19)).unwrap_or(20);
                changed[at] ^= with.max(1);
                let head = [&right[..16], &noise].concat();
                for datagram in [&changed, &head, &right[..cut.index(right.len())].to_vec()] {
                    let mut handshake = played(&login, suite, recording, taken);
                    let progress = handshake.handle(datagram);
                    prop_assert!(!matches!(progress, Progress::Done));
                    // Only the answer to Open Session is not signed: what it says is proven by RAKP 2.
                    prop_assert!(taken == 0 || !matches!(progress, Progress::Next));
                }
            }
        }
    }
}
