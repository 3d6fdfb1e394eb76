//! Bodies for fuzzing what a BMC, or whoever speaks for one, may send (feature `fuzz`).
//!
//! Each takes any bytes, says whether they were taken as what they stand for, and panics where something does not hold: beside that nothing panics, that nothing unsigned answers,
//! that only an explicit Off is one, and that what is kept stays small.

use ipmi_rs_core::connection::{IpmiCommand, Message};
use picket_core::device::Identity;
use picket_core::power::Power;
use picket_driver::Secret;

use crate::command::{
    ChassisStatus, GetChassisStatus, GetSessionInfo, GetSystemGuid, GetWatchdog, SetPrivilege, SetWatchdog,
};
use crate::crypto::{Keys, Suite};
use crate::handshake::{Handshake, Login, Progress, Stage};
use crate::session::Session;
use crate::settings::Privilege;
use crate::wire::{self, LARGEST, Payload};
use crate::{hold, power, quirks, suites};

/// As in the recorded sessions of the handshake's tests, whose answers are seeds.
const RANDOM: [u8; 21] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21];
const LOCAL: u32 = 0xA0A1_A2A3;
const REMOTE: u32 = 0xB0B1_B2B3;

fn suite(flags: u8) -> Suite {
    if flags & 1 == 0 { Suite::Sha1 } else { Suite::Sha256 }
}

/// Datagrams, each after its length in two bytes, the lower one first; the last one may be cut off.
fn datagrams(mut data: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (len, rest) = data.split_first_chunk::<2>()?;
        let len = usize::from(u16::from_le_bytes(*len)).min(rest.len());
        let (datagram, rest) = rest.split_at(len);
        data = rest;
        // More is never read of one.
        Some(&datagram[..datagram.len().min(LARGEST)])
    })
}

/// Opening a session: bit 0 of the first byte says which suite, bit 1 whether each answer came twice.
pub fn handshake(data: &[u8]) -> bool {
    let Some((&flags, rest)) = data.split_first() else { return false };
    let suite = suite(flags);
    let taken: Vec<&[u8]> = datagrams(rest).take(64).collect();
    let login = Login {
        username: "admin".to_owned(),
        password: Secret::new(b"secret12"),
        bmc_key: None,
        privilege: Privilege::Operator,
    };
    let mut handshake = Handshake::new(&login, suite, &RANDOM);
    for (nth, datagram) in taken.iter().enumerate() {
        let mut out = Vec::new();
        handshake.write(&mut out);
        assert!(out.len() <= LARGEST);
        let before = handshake.stage();
        if flags & 2 != 0 {
            handshake.renew(datagram);
        }
        let progress = handshake.handle(datagram);
        assert!(handshake.remembers() <= 8 + LARGEST, "what is kept stays small");
        if progress == Progress::Done {
            assert_eq!(before, Stage::Rakp3, "nothing but RAKP 4 opens a session");
            assert!(handshake.presumed().is_some());
            opens_by_its_code_alone(&login, suite, flags, &taken[..=nth]);
            return true;
        }
    }
    false
}

/// The same with one bit of RAKP 4's code turned does not open a session.
fn opens_by_its_code_alone(login: &Login, suite: Suite, flags: u8, taken: &[&[u8]]) {
    let Some((last, before)) = taken.split_last() else { return };
    for bit in 0..8 {
        let mut handshake = Handshake::new(login, suite, &RANDOM);
        for datagram in before {
            if flags & 2 != 0 {
                handshake.renew(datagram);
            }
            handshake.handle(datagram);
        }
        // Header, tag, status, reserved, session id, code.
        let mut changed = last.to_vec();
        changed[16 + 8] ^= 1 << bit;
        assert_ne!(handshake.handle(&changed), Progress::Done);
    }
}

/// Answers in an open session, to Get Chassis Status: bit 0 of the first byte says which suite, bit 1 that what follows is
/// signed before it is taken, as only the BMC could: a session sequence number and a message.
pub fn session(data: &[u8]) -> bool {
    let Some((&flags, rest)) = data.split_first() else { return false };
    let mut answered = false;
    let keys = || Keys::derive(suite(flags), b"a session integrity key");
    let mut session = Session::new(keys(), LOCAL, REMOTE);
    let mut request = session.request(GetChassisStatus.into());
    let mut out = Vec::new();
    session.write_copy(&mut request, &[0xA5; 16], &mut out);
    for datagram in datagrams(rest).take(64) {
        if flags & 2 == 0 {
            let mut unsigned = datagram.to_vec();
            assert_eq!(session.answer(&request, &mut unsigned), None, "nobody signed it");
            continue;
        }
        let Some((sequence, message)) = datagram.split_first_chunk::<4>() else { continue };
        let message = &message[..message.len().min(256)];
        wire::write_sealed(&mut out, &keys(), LOCAL, u32::from_le_bytes(*sequence), &[5; 16], message);
        let mut turned = out.clone();
        let at = 4 + usize::from(sequence[0]) % (out.len() - 4);
        turned[at] ^= 1;
        assert_eq!(session.answer(&request, &mut turned), None, "a bit of it was turned");
        let Some(answer) = session.answer(&request, &mut out) else { continue };
        assert_eq!((message[1] >> 2, message[4] >> 2, message[5]), (1, 1, 1), "it is the answer to ours");
        assert_eq!((answer.code, &answer.data[..]), (message[6], &message[7..message.len() - 1]));
        says_only_what_it_says(answer.code, &answer.data);
        answered = true;
    }
    answered
}

/// On and Off are explicit, or they are Unknown (S1).
fn says_only_what_it_says(code: u8, data: &[u8]) {
    let explicit = match data {
        [state, _, _, ..] if code == 0 => Some(state & 1),
        _ => None,
    };
    let (power, said) = power::interpret(code, data);
    let expected = match explicit {
        Some(0) => Power::Off,
        Some(_) => Power::On,
        None => Power::Unknown,
    };
    assert_eq!(power, expected, "{code:#x} {data:x?}: {said}");
    assert!(said.len() <= 200 && !said.contains(char::is_control), "{said:?}");
}

/// What commands answer: the first byte is the completion code, the rest what follows it.
pub fn answers(data: &[u8]) -> bool {
    let Some((&code, data)) = data.split_first() else { return false };
    says_only_what_it_says(code, data);
    let _ = quirks::verdict(code);
    assert!(suites::numbers(data).len() <= data.len());
    assert!(!quirks::describe(code).to_string().is_empty());
    let status = GetChassisStatus::parse_success_response(data).ok();
    let timer = GetWatchdog::parse_success_response(data).ok();
    if let Some(timer) = timer {
        // What is put back is what was found, but that it stands still.
        let message = Message::from(SetWatchdog(timer));
        let mut back = message.data().to_vec();
        assert_eq!(back[0] & 0x40, 0, "it is never started");
        back.extend_from_slice(&[0, 0]);
        let again = GetWatchdog::parse_success_response(&back).expect("as long as it was");
        assert_eq!(again, crate::command::Watchdog { running: false, ..timer });
    }
    hold::comes_back(
        status.map(ChassisStatus::restore_policy),
        timer,
        status.and_then(|status| status.buttons),
    );
    if let Ok(guid) = GetSystemGuid::parse_success_response(data) {
        let digits: String = guid.iter().map(|byte| format!("{byte:02x}")).collect();
        let said = Identity { uuid: Identity::usable_uuid(&digits), serial: None };
        assert_eq!(said.uuid.is_none(), guid == [0; 16] || guid == [0xFF; 16]);
        let _ = Identity::default().compare(&said);
    }
    if let Ok(level) = SetPrivilege::parse_success_response(data) {
        assert!(level < 16);
    }
    let _ = GetSessionInfo::parse_success_response(data);
    code == 0 && status.is_some()
}

/// Packets outside of a session: what is read as one is written again to the same bytes.
pub fn packet(data: &[u8]) -> bool {
    let kinds = [
        Payload::OpenRequest,
        Payload::OpenResponse,
        Payload::Rakp1,
        Payload::Rakp2,
        Payload::Rakp3,
        Payload::Rakp4,
    ];
    let mut read = 0;
    for kind in kinds {
        let Some(payload) = wire::read_bare(data, kind) else { continue };
        let mut out = Vec::new();
        wire::write_bare(&mut out, kind, payload);
        assert_eq!(out, data[..out.len()]);
        read += 1;
    }
    assert!(read <= 1, "a packet is one thing");
    read == 1
}
