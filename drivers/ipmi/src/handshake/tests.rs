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
    assert!(played(&login, Suite::Sha256, &PYGHMI, 1).presumed().is_none(), "before RAKP 2 there is none");
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
