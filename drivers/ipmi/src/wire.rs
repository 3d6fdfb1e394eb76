//! RMCP and RMCP+ packets (IPMI 2.0 §13.1 to §13.6).
//!
//! **Purpose.** Bytes to fields and back, nothing of sessions or commands.
//!
//! # Invariants
//!
//! - Reading never panics, whatever the bytes are. Shown by
//!   `any_bytes_are_read_without_a_panic_and_never_as_a_session_s`.
//! - What is read from a session's packet was authenticated: every byte of it is either under the code or
//!   has exactly one legal value (S1). Shown by `a_flipped_bit_makes_a_packet_nothing`.

use crate::crypto::{BLOCK, Keys};

/// RMCP version 1.0, reserved, sequence 255 (no acknowledgement), class IPMI (IPMI 2.0 table 13-8).
const RMCP: [u8; 4] = [0x06, 0x00, 0xFF, 0x07];
/// Authentication type "RMCP+" (IPMI 2.0 table 13-8).
const RMCP_PLUS: u8 = 0x06;
/// Encrypted and authenticated (IPMI 2.0 table 13-8, bits 7 and 6 of the payload type).
const SEALED: u8 = 0xC0;
/// Next header, always 7 (IPMI 2.0 table 13-8).
const NEXT_HEADER: u8 = 0x07;
/// RMCP header, authentication type, payload type, session id, session sequence, payload length.
const HEADER: usize = 16;

/// The largest datagram that is read; IPMI over LAN messages are far shorter.
pub const LARGEST: usize = 512;

/// What a packet carries (IPMI 2.0 table 13-16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// An IPMI message.
    Ipmi = 0x00,
    /// Open Session request.
    OpenRequest = 0x10,
    /// Open Session response.
    OpenResponse = 0x11,
    /// RAKP message 1.
    Rakp1 = 0x12,
    /// RAKP message 2.
    Rakp2 = 0x13,
    /// RAKP message 3.
    Rakp3 = 0x14,
    /// RAKP message 4.
    Rakp4 = 0x15,
}

fn header(out: &mut Vec<u8>, payload_type: u8, session: u32, sequence: u32, len: usize) {
    out.clear();
    out.extend_from_slice(&RMCP);
    out.extend_from_slice(&[RMCP_PLUS, payload_type]);
    out.extend_from_slice(&session.to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    // A payload of ours has at most a hundred bytes.
    out.extend_from_slice(&(len as u16).to_le_bytes());
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Writes a packet outside of any session into `out`.
pub fn write_bare(out: &mut Vec<u8>, payload_type: Payload, payload: &[u8]) {
    header(out, payload_type as u8, 0, 0, payload.len());
    out.extend_from_slice(payload);
}

/// The payload of a packet outside of any session, if it is one of that type.
pub fn read_bare(datagram: &[u8], payload_type: Payload) -> Option<&[u8]> {
    let (head, rest) = datagram.split_at_checked(HEADER)?;
    let expected = head[..4] == RMCP
        && head[4] == RMCP_PLUS
        && head[5] == payload_type as u8
        && u32_at(head, 6)? == 0
        && u32_at(head, 10)? == 0;
    let len = usize::from(u16::from_le_bytes([head[14], head[15]]));
    // Some BMCs pad what they send outside of a session.
    if expected { rest.get(..len) } else { None }
}

/// Writes an IPMI message of a session, encrypted and signed, into `out`.
pub fn write_sealed(
    out: &mut Vec<u8>,
    keys: &Keys,
    session: u32,
    sequence: u32,
    iv: &[u8; BLOCK],
    message: &[u8],
) {
    // Confidentiality trailer: pad bytes 1, 2, 3, …, then their number (IPMI 2.0 table 13-20).
    let pad = (BLOCK - (message.len() + 1) % BLOCK) % BLOCK;
    let len = BLOCK + message.len() + pad + 1;
    header(out, SEALED | Payload::Ipmi as u8, session, sequence, len);
    out.extend_from_slice(iv);
    let body = out.len();
    out.extend_from_slice(message);
    out.extend((1..=pad as u8).chain([pad as u8]));
    keys.encrypt(iv, &mut out[body..]);
    // Session trailer: what is signed has a multiple of four bytes (IPMI 2.0 §13.28.4).
    let pad = (4 - (out.len() - RMCP.len() + 2) % 4) % 4;
    out.extend_from_slice(&[0xFF; 3][..pad]);
    out.extend_from_slice(&[pad as u8, NEXT_HEADER]);
    keys.sign(out, RMCP.len());
}

/// What an authenticated packet of a session says.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened<'b> {
    /// The session sequence number.
    pub sequence: u32,
    /// The decrypted IPMI message.
    pub message: &'b [u8],
}

/// Reads an IPMI message of the session that has the id `session` on our side. Decrypts in place.
/// Anything that is not wholly right is `None`.
pub fn read_sealed<'b>(datagram: &'b mut [u8], keys: &Keys, session: u32) -> Option<Opened<'b>> {
    let signed_len = datagram.len().checked_sub(keys.code_len())?;
    if signed_len < HEADER + 2 * BLOCK + 2 || datagram[..4] != RMCP {
        return None;
    }
    let (signed, code) = datagram.split_at_mut(signed_len);
    let right = signed[4] == RMCP_PLUS
        && signed[5] == SEALED | Payload::Ipmi as u8
        && u32_at(signed, 6)? == session
        && keys.verify(&signed[RMCP.len()..], code);
    if !right {
        return None;
    }
    let sequence = u32_at(signed, 10)?;
    let len = usize::from(u16::from_le_bytes([signed[14], signed[15]]));
    let (iv, body) = signed.get_mut(HEADER..HEADER + len)?.split_at_mut_checked(BLOCK)?;
    if body.is_empty() || body.len() % BLOCK != 0 {
        return None;
    }
    let iv: &[u8; BLOCK] = (&*iv).try_into().ok()?;
    keys.decrypt(iv, body);
    // The pad bytes are under the code, and some BMCs do not count them up: only their number matters.
    let pad = usize::from(*body.last()?);
    let message = body.len().checked_sub(pad + 1)?;
    Some(Opened { sequence, message: &body[..message] })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::crypto::Suite;

    fn keys(suite: Suite) -> Keys {
        Keys::derive(suite, b"a session integrity key")
    }

    fn suites() -> impl Strategy<Value = Suite> {
        prop_oneof![Just(Suite::Sha1), Just(Suite::Sha256)]
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_read_back(
            suite in suites(), session: u32, sequence: u32, iv: [u8; 16],
            message in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let mut packet = Vec::new();
            write_sealed(&mut packet, &keys(suite), session, sequence, &iv, &message);
            prop_assert_eq!((packet.len() - 4 - suite.code_len()) % 4, 0);
            let opened = read_sealed(&mut packet, &keys(suite), session);
            prop_assert_eq!(opened, Some(Opened { sequence, message: &message }));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic_and_never_as_a_session_s(
            suite in suites(), session: u32, mut bytes in prop::collection::vec(any::<u8>(), 0..200),
            honest_head: bool,
        ) {
            if honest_head && bytes.len() >= 6 {
                bytes[..6].copy_from_slice(&[6, 0, 0xFF, 7, 6, 0xC0]);
            }
            read_bare(&bytes, Payload::Rakp2);
            prop_assert_eq!(read_sealed(&mut bytes, &keys(suite), session), None);
        }

        #[test]
        fn a_flipped_bit_makes_a_packet_nothing(
            suite in suites(), message in prop::collection::vec(any::<u8>(), 0..40), at: prop::sample::Index,
        ) {
            let mut packet = Vec::new();
            write_sealed(&mut packet, &keys(suite), 7, 9, &[3; 16], &message);
            let bit = at.index(packet.len() * 8);
            packet[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(read_sealed(&mut packet, &keys(suite), 7), None);
        }
    }

    #[test]
    fn a_signed_packet_whose_lengths_lie_is_nothing() {
        let keys = keys(Suite::Sha256);
        for len in [0_u16, 1, 15, 16, 17, 31, 33, 48, 49, 200, u16::MAX] {
            let mut packet = Vec::new();
            write_sealed(&mut packet, &keys, 7, 9, &[3; 16], b"0123456789abcdef");
            packet.truncate(packet.len() - keys.code_len());
            packet[14..16].copy_from_slice(&len.to_le_bytes());
            keys.sign(&mut packet, 4);
            if let Some(opened) = read_sealed(&mut packet, &keys, 7) {
                assert!(opened.message.len() < usize::from(len), "{len}");
            }
        }
    }

    #[test]
    fn a_bare_packet_is_read_only_as_what_it_is() {
        let mut packet = Vec::new();
        write_bare(&mut packet, Payload::OpenResponse, &[1, 2, 3]);
        assert_eq!(read_bare(&packet, Payload::OpenResponse), Some(&[1, 2, 3][..]));
        assert_eq!(read_bare(&packet, Payload::Rakp2), None);
        packet[6] = 1;
        assert_eq!(read_bare(&packet, Payload::OpenResponse), None, "it belongs to a session");
    }
}
