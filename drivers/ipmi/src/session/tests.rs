use ipmi_rs_core::connection::NetFn;
use proptest::prelude::*;

use super::*;
use crate::crypto::Suite;

fn keys() -> Keys {
    Keys::derive(Suite::Sha256, b"sik")
}

fn session() -> Session {
    Session::new(keys(), 0xA0A1_A2A3, 0xB0B1_B2B3)
}

/// What a BMC would send.
pub(crate) fn reply(keys: &Keys, sequence: u32, rq_seq: u8, netfn: u8, cmd: u8, said: &[u8]) -> Vec<u8> {
    let mut message = vec![CONSOLE, netfn << 2];
    message.push(checksum(&message));
    message.extend_from_slice(&[BMC, rq_seq << 2, cmd]);
    message.extend_from_slice(said);
    message.push(checksum(&message[3..]));
    let mut out = Vec::new();
    wire::write_sealed(&mut out, keys, 0xA0A1_A2A3, sequence, &[5; BLOCK], &message);
    out
}

fn status(session: &mut Session) -> Request {
    session.request(Message::new_request(NetFn::Chassis, 1, vec![]))
}

fn written(session: &mut Session, request: &mut Request) -> u32 {
    let mut out = Vec::new();
    session.write_copy(request, &[0; BLOCK], &mut out);
    u32::from_le_bytes(out[10..14].try_into().expect("four bytes"))
}

#[test]
fn a_request_is_written_as_the_specification_says() {
    let mut session = session();
    let mut off = session.request(Message::new_request(NetFn::Chassis, 2, vec![0]));
    let mut out = Vec::new();
    session.write_copy(&mut off, &[9; BLOCK], &mut out);
    let opened = wire::read_sealed(&mut out, &keys(), 0xB0B1_B2B3).expect("it is right");
    assert_eq!(opened.sequence, 1, "sequence numbers begin at 1 (IPMI 2.0 §6.12.13)");
    assert_eq!(opened.message, [0x20, 0x00, 0xE0, 0x81, 0x04, 0x02, 0x00, 0x79]);
}

#[test]
fn an_answer_is_taken_once_and_a_late_one_never_for_another_request() {
    let mut session = session();
    let mut first = status(&mut session);
    written(&mut session, &mut first);
    let answer = reply(&keys(), 1, 1, 1, 1, &[0, 0x21, 0, 0]);
    let taken = session.answer(&first, &mut answer.clone());
    assert_eq!(taken, Some(Answer { code: 0, data: vec![0x21, 0, 0] }));
    // Sixty-four requests later the requester sequence is the same again.
    let mut later = status(&mut session);
    written(&mut session, &mut later);
    while later.rq_seq != 1 {
        let answer =
            reply(&keys(), session.seen.map_or(1, |seen| seen + 1), later.rq_seq, 1, 1, &[0, 0x20, 0, 0]);
        assert!(session.answer(&later, &mut answer.clone()).is_some());
        later = status(&mut session);
        written(&mut session, &mut later);
    }
    assert_eq!(session.answer(&later, &mut answer.clone()), None, "a late duplicate");
}

#[test]
fn a_wrong_sum_under_a_right_code_is_borne_and_known() {
    for at in [2, 10] {
        let mut session = session();
        let mut request = status(&mut session);
        written(&mut session, &mut request);
        let mut right = reply(&keys(), 1, 1, 1, 1, &[0, 0x21, 0, 0]);
        let opened = wire::read_sealed(&mut right, &keys(), 0xA0A1_A2A3).expect("it is right");
        let mut message = opened.message.to_vec();
        message[at] ^= 0x55;
        let mut odd = Vec::new();
        wire::write_sealed(&mut odd, &keys(), 0xA0A1_A2A3, 1, &[5; BLOCK], &message);
        assert!(!session.sums_wrongly());
        let answer = session.answer(&request, &mut odd);
        assert_eq!(answer, Some(Answer { code: 0, data: vec![0x21, 0, 0] }), "the sum at {at}");
        assert!(session.sums_wrongly());
    }
}

#[test]
fn another_command_s_answer_is_ignored() {
    let mut session = session();
    let mut request = status(&mut session);
    written(&mut session, &mut request);
    for (rq_seq, netfn, cmd) in [(2, 1, 1), (1, 0, 1), (1, 7, 1), (1, 1, 2)] {
        let mut other = reply(&keys(), 1, rq_seq, netfn, cmd, &[0, 0x20, 0, 0]);
        assert_eq!(session.answer(&request, &mut other), None, "{rq_seq} {netfn} {cmd}");
    }
    let mut foreign = reply(&Keys::derive(Suite::Sha256, b"other"), 1, 1, 1, 1, &[0, 0x20, 0, 0]);
    assert_eq!(session.answer(&request, &mut foreign), None, "another session's key");
}

#[test]
fn copies_have_numbers_of_their_own_but_stay_in_the_window() {
    let mut session = session();
    let mut request = status(&mut session);
    let numbers: Vec<u32> = (0..12).map(|_| written(&mut session, &mut request)).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8]);
    let mut answer = reply(&keys(), 1, 1, 1, 1, &[0, 0x20, 0, 0]);
    assert!(session.answer(&request, &mut answer).is_some());
    let mut next = status(&mut session);
    assert_eq!(written(&mut session, &mut next), 9, "the first of them surely arrived");
    assert_eq!(written(&mut session, &mut next), 9, "and no more is known");
}

#[test]
fn a_late_answer_answers_nothing_and_opens_the_window() {
    let mut session = session();
    let mut first = status(&mut session);
    let mut second = status(&mut session);
    for _ in 0..5 {
        written(&mut session, &mut first);
    }
    for _ in 0..5 {
        written(&mut session, &mut second);
    }
    let mut third = status(&mut session);
    assert_eq!(written(&mut session, &mut third), 8, "the window is used up");
    let mut late = reply(&keys(), 1, 2, 1, 1, &[0, 0x20, 0, 0]);
    assert_eq!(session.answer(&third, &mut late), None, "it answers the second");
    assert_eq!(written(&mut session, &mut third), 9, "which began with the sixth number");
    let mut late = reply(&keys(), 2, 1, 1, 1, &[0, 0x20, 0, 0]);
    session.overhear(&mut late);
    assert_eq!(session.arrived, 6, "an older one takes nothing back");
    let mut answer = reply(&keys(), 3, 3, 1, 1, &[0, 0x20, 0, 0]);
    assert!(session.answer(&third, &mut answer).is_some());
}

#[test]
fn an_answer_from_before_a_request_says_nothing_of_its_arrival() {
    let mut session = session();
    let mut request = status(&mut session);
    written(&mut session, &mut request);
    let mut old = reply(&keys(), 1, 1, 1, 1, &[0, 0x20, 0, 0]);
    assert!(session.answer(&request, &mut old.clone()).is_some());
    // Sixty-four requests later the requester sequence is the same again.
    for _ in 0..64 {
        request = status(&mut session);
    }
    for _ in 0..3 {
        written(&mut session, &mut request);
    }
    assert_eq!((session.arrived, request.rq_seq), (1, 1));
    session.overhear(&mut old);
    assert_eq!(session.arrived, 1);
}

#[test]
fn a_last_request_has_numbers_that_are_new_and_then_one_that_every_bmc_takes() {
    let mut session = session();
    let mut request = status(&mut session);
    for _ in 0..9 {
        written(&mut session, &mut request);
    }
    let mut last = session.last_request(Message::new_request(NetFn::Chassis, 1, vec![]));
    let numbers: Vec<u32> = (0..9).map(|_| written(&mut session, &mut last)).collect();
    assert_eq!(numbers, [9, 10, 11, 12, 13, 14, 15, 8, 8]);
}

proptest! {
    #[test]
    fn a_flipped_bit_makes_an_answer_nothing(at: prop::sample::Index, said in prop::collection::vec(any::<u8>(), 1..20)) {
        let mut session = session();
        let mut request = status(&mut session);
        written(&mut session, &mut request);
        let mut answer = reply(&keys(), 1, 1, 1, 1, &said);
        let bit = at.index(answer.len() * 8);
        answer[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(session.answer(&request, &mut answer), None);
    }

    #[test]
    fn a_signed_message_of_any_bytes_is_read_without_a_panic(message in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut session = session();
        let mut request = status(&mut session);
        written(&mut session, &mut request);
        let mut packet = Vec::new();
        wire::write_sealed(&mut packet, &keys(), 0xA0A1_A2A3, 1, &[5; BLOCK], &message);
        session.answer(&request, &mut packet);
    }
}
