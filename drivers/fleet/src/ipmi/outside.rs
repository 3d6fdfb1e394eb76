//! What a BMC answers outside of any session: presence pings, and the questions with which clients begin (IPMI 2.0 §13.2.3,
//! §22.13 to §22.15). Some come in the form of IPMI 1.5, which is spoken no further than that.

use picket_core::time::BootTime;
use picket_driver_sim::{Request as Asked, World};

use super::IpmiBmc;
use super::message::{INVALID_COMMAND, INVALID_DATA, Outcome, Request, WRONG_LENGTH};

/// RMCP header and authentication type none, of a message without a session (IPMI 2.0 table 13-8).
const V15: [u8; 5] = [0x06, 0x00, 0xFF, 0x07, 0x00];
/// What follows: sequence number and session id 0, then the length.
const V15_HEADER: usize = 14;
/// RMCP class ASF, and ASF's enterprise number.
const ASF: u8 = 0x06;
const ASF_IANA: [u8; 4] = [0x00, 0x00, 0x11, 0xBE];
/// The highest number of a LAN channel; 0x0E is "the present one".
const PRESENT_CHANNEL: u8 = 0x0E;
const LAN_CHANNEL: u8 = 0x01;

/// The answer to a presence ping (ASF 2.0 §3.2.4.2 and §3.2.4.3): IPMI is spoken here.
pub fn pong(datagram: &[u8]) -> Option<Vec<u8>> {
    let &[0x06, _, sequence, ASF, a, b, c, d, 0x80, tag, _, 0] = datagram.get(..12)? else { return None };
    let mut out = vec![0x06, 0x00, sequence, ASF];
    out.extend_from_slice(&ASF_IANA);
    out.extend_from_slice(&[0x40, tag, 0, 16]);
    out.extend_from_slice(&ASF_IANA);
    out.extend_from_slice(&[0, 0, 0, 0, 0x81, 0, 0, 0, 0, 0, 0, 0]);
    ([a, b, c, d] == ASF_IANA).then_some(out)
}

/// The message in a packet of IPMI 1.5 without a session.
pub fn read_v15(datagram: &[u8]) -> Option<&[u8]> {
    let (head, message) = datagram.split_at_checked(V15_HEADER)?;
    let outside = head[..5] == V15 && head[5..13] == [0; 8];
    // Some clients pad what they send.
    if outside { message.get(..usize::from(head[13])) } else { None }
}

/// A packet of IPMI 1.5 without a session.
pub fn write_v15(message: &[u8]) -> Vec<u8> {
    let mut out = V15.to_vec();
    out.extend_from_slice(&[0; 8]);
    // Ours are far shorter than 256 bytes.
    out.push(message.len() as u8);
    out.extend_from_slice(message);
    out
}

impl IpmiBmc {
    /// Answers a message that came outside of any session.
    pub(super) fn outside(&mut self, world: &mut World, now: BootTime, message: &[u8]) -> Option<Vec<u8>> {
        let request = Request::read(message)?;
        world.hand(now, &self.options.device, None, &Asked::Touch).ok()?;
        let outcome = self.public(&request).unwrap_or(Err(INVALID_COMMAND));
        Some(request.answer(&outcome))
    }

    /// What everybody may ask; `None`: this is nothing of that.
    pub(super) fn public(&self, request: &Request<'_>) -> Option<Outcome> {
        match (request.netfn, request.cmd) {
            (0x06, 0x37) => Some(Ok(self.guid.to_vec())),
            (0x06, 0x38) => Some(authentication(request.data)),
            (0x06, 0x54) => Some(self.cipher_suites(request.data)),
            _ => None,
        }
    }

    /// Get Channel Cipher Suites (§22.15): standard records, in pieces of 16 bytes.
    fn cipher_suites(&self, data: &[u8]) -> Outcome {
        let &[channel, _payload, index] = data else { return Err(WRONG_LENGTH) };
        if channel != PRESENT_CHANNEL && channel != LAN_CHANNEL {
            return Err(INVALID_DATA);
        }
        let records: Vec<u8> = self
            .options
            .suites
            .iter()
            .flat_map(|suite| {
                let [authentication, integrity, confidentiality] = suite.algorithms();
                [0xC0, suite.id(), authentication, 0x40 | integrity, 0x80 | confidentiality]
            })
            .collect();
        let from = 16 * usize::from(index & 0x3F);
        let piece = records.get(from..).unwrap_or_default();
        Ok([&[LAN_CHANNEL], &piece[..piece.len().min(16)]].concat())
    }
}

/// Get Channel Authentication Capabilities (§22.13): IPMI 2.0 alone, names are asked for, no BMC key.
fn authentication(data: &[u8]) -> Outcome {
    let &[channel, _level] = data else { return Err(WRONG_LENGTH) };
    if channel & 0x0F != PRESENT_CHANNEL && channel & 0x0F != LAN_CHANNEL {
        return Err(INVALID_DATA);
    }
    Ok(vec![LAN_CHANNEL, 0x80, 0x04, 0x02, 0, 0, 0, 0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ping_is_answered_and_nothing_else_is_taken_for_one() {
        let ping = [0x06, 0x00, 0xFF, 0x06, 0, 0, 0x11, 0xBE, 0x80, 7, 0, 0];
        let answer = pong(&ping).expect("it is a ping");
        assert_eq!((answer.len(), answer[8], answer[9]), (28, 0x40, 7));
        assert_eq!(answer[20] & 0x80, 0x80, "IPMI is supported");
        for at in [0, 3, 4, 7, 8, 11] {
            let mut other = ping;
            other[at] ^= 1;
            assert_eq!(pong(&other), None, "byte {at}");
        }
    }
}
