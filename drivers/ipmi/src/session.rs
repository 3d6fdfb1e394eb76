//! One open RMCP+ session, without any I/O: requests in, packets out; datagrams in, answers out.
//!
//! # Invariants
//!
//! - An answer is taken only if its code is right and its session is ours. Its session sequence number must
//!   be above every one that we had seen when its request was first written. Its requester sequence,
//!   network function and command must be the request's. Shown by
//!   `an_answer_is_taken_once_and_a_late_one_never_for_another_request`.
//! - An answer to an earlier request is never taken for the answer to a later one, even after the six bits
//!   of the requester sequence came round. Shown by
//!   `an_answer_is_taken_once_and_a_late_one_never_for_another_request`.

use ipmi_rs_core::connection::Message;
use picket_core::device::Identity;

use crate::crypto::{BLOCK, Keys};
use crate::wire::{self, Opened};

/// The BMC's address (IPMI 2.0 §5.1).
pub const BMC: u8 = 0x20;
/// Ours: the first remote console's software id (§5.5).
pub const CONSOLE: u8 = 0x81;

/// How far our sequence numbers may run ahead of the highest one that surely arrived: those BMCs are served, too, that
/// keep the window of IPMI 1.5.
const AHEAD: u32 = 8;
/// How far those of a last question may: a BMC drops what is more than 15 ahead of the highest that it has seen, and what
/// it has seen already (IPMI 2.0 §6.12.13). So a session that used up the others still has numbers that are new.
const LAST_AHEAD: u32 = 15;

/// One request, and what will answer it.
#[derive(Debug)]
pub struct Request {
    message: Message,
    rq_seq: u8,
    /// Sequence number of its first copy, once written.
    first: Option<u32>,
    /// Answers at or below this sequence number were written before it was asked.
    floor: Option<u32>,
    /// How far ahead its copies may go.
    ahead: u32,
}

/// What is remembered of a request after it was given up: its answer may come late.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    rq_seq: u8,
    first: u32,
    floor: Option<u32>,
}

/// What the BMC said to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The completion code; 0 is success (IPMI 2.0 table 5-2).
    pub code: u8,
    /// What follows it.
    pub data: Vec<u8>,
}

/// The state of an open session.
#[derive(Debug)]
pub struct Session {
    keys: Keys,
    /// Our id for it: what the BMC's packets carry.
    local: u32,
    /// The BMC's id for it.
    remote: u32,
    /// The managed system's GUID, as RAKP 2 says it and RAKP 4 vouches for.
    guid: [u8; 16],
    /// The last sequence number that we used.
    sent: u32,
    /// The highest one that surely arrived, because a request that began with it was answered, in time or late.
    arrived: u32,
    /// The last request of each requester sequence number, as long as its answer would show anything new: none, in a session in
    /// which all is answered.
    asked: Vec<PendingRequest>,
    /// The highest one of the BMC's. None yet: they begin at 1, says §6.12.13, and at 0, says some BMC.
    seen: Option<u32>,
    rq_seq: u8,
    sums_wrongly: bool,
}

/// The sum that makes a message's bytes zero (IPMI 2.0 §13.8).
pub fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte))
}

impl Session {
    /// A session that was just opened.
    pub fn new(keys: Keys, local: u32, remote: u32) -> Self {
        let (guid, asked) = ([0; 16], Vec::new());
        Self {
            keys,
            local,
            remote,
            guid,
            sent: 0,
            arrived: 0,
            asked,
            seen: None,
            rq_seq: 0,
            sums_wrongly: false,
        }
    }

    /// The same, with the GUID that its handshake said.
    #[must_use]
    pub fn of_system(self, guid: [u8; 16]) -> Self {
        Self { guid, ..self }
    }

    /// The GUID that its handshake said, also where it tells no machine from another (all zeros).
    pub fn system(&self) -> String {
        let digits: String = self.guid.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("GUID {digits}")
    }

    /// Whether that GUID tells its machine from others: all zeros do not, nor does what boards say that were never given one.
    pub fn says_its_system(&self) -> bool {
        let digits: String = self.guid.iter().map(|byte| format!("{byte:02x}")).collect();
        Identity::usable_uuid(&digits).is_some()
    }

    /// Whether a message of the BMC's had a wrong sum under a right code.
    pub fn sums_wrongly(&self) -> bool {
        self.sums_wrongly
    }

    /// The BMC's id for it: what Close Session names.
    pub fn remote_id(&self) -> u32 {
        self.remote
    }

    /// A new request. What was asked before it can no longer be answered.
    pub fn request(&mut self, message: Message) -> Request {
        self.rq_seq = (self.rq_seq + 1) & 0x3F;
        self.forget(self.rq_seq);
        Request { message, rq_seq: self.rq_seq, first: None, floor: self.seen, ahead: AHEAD }
    }

    fn forget(&mut self, rq_seq: u8) {
        self.asked.retain(|asked| asked.rq_seq != rq_seq);
    }

    /// The same, of the last request before the session is given up.
    pub fn last_request(&mut self, message: Message) -> Request {
        Request { ahead: LAST_AHEAD, ..self.request(message) }
    }

    /// Writes one copy of `request`, under a sequence number of its own: a BMC drops the same number as a duplicate,
    /// and then a copy could not cure a lost *answer* (IPMI 2.0 §6.12.13). Where the window has no number left, one that
    /// any BMC still takes is used again: it may be that none of its copies has arrived.
    pub fn write_copy(&mut self, request: &mut Request, iv: &[u8; BLOCK], out: &mut Vec<u8>) {
        let number = if self.sent < self.arrived.saturating_add(request.ahead) {
            self.sent += 1;
            self.sent
        } else {
            self.sent.min(self.arrived.saturating_add(AHEAD))
        };
        let first = *request.first.get_or_insert(number);
        if !self.asked.iter().any(|asked| asked.rq_seq == request.rq_seq) {
            self.asked.push(PendingRequest { rq_seq: request.rq_seq, first, floor: request.floor });
        }
        let data = request.message.data();
        let mut message = Vec::with_capacity(7 + data.len());
        message.extend_from_slice(&[BMC, request.message.netfn_raw() << 2]);
        message.push(checksum(&message));
        message.extend_from_slice(&[CONSOLE, request.rq_seq << 2, request.message.cmd()]);
        message.extend_from_slice(data);
        message.push(checksum(&message[3..]));
        wire::write_sealed(out, &self.keys, self.remote, number, iv, &message);
    }

    /// Opens what is ours, and notes what it shows of the sequence numbers on both sides.
    fn take_in<'d>(&mut self, datagram: &'d mut [u8]) -> Option<Opened<'d>> {
        let opened = wire::read_sealed(datagram, &self.keys, self.local)?;
        self.seen = self.seen.max(Some(opened.sequence));
        let message = opened.message;
        // Requester, network function, checksum, responder, sequence, command, completion code, …, checksum.
        if message.len() < 8 {
            return None;
        }
        // The code over the whole packet was right, which no network makes and no stranger: the sums say nothing more.
        self.sums_wrongly |= checksum(message) != 0 || checksum(&message[..3]) != 0;
        // A late answer is no answer any more, but it shows how far we have come. Without that a BMC that hung until the
        // window was used up, and that drops the numbers it has seen, would never answer in this session again.
        let asked = self.asked.iter().find(|asked| asked.rq_seq == message[4] >> 2);
        if let Some(asked) = asked.filter(|asked| Some(opened.sequence) > asked.floor) {
            self.arrived = self.arrived.max(asked.first);
            self.asked.retain(|asked| asked.first > self.arrived);
        }
        Some(opened)
    }

    /// Takes in what came while nothing was asked: it answers nothing any more.
    pub fn overhear(&mut self, datagram: &mut [u8]) {
        self.take_in(datagram);
    }

    /// The answer to `request`, if `datagram` is it.
    pub fn answer(&mut self, request: &Request, datagram: &mut [u8]) -> Option<Answer> {
        let opened = self.take_in(datagram)?;
        let message = opened.message;
        let ours = request.first.is_some()
            && Some(opened.sequence) > request.floor
            && message[1] >> 2 == request.message.netfn_raw() | 1
            && message[4] >> 2 == request.rq_seq
            && message[5] == request.message.cmd();
        ours.then(|| Answer { code: message[6], data: message[7..message.len() - 1].to_vec() })
    }
}

#[cfg(test)]
mod tests;
