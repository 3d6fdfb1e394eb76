//! What names a command (`requestId`), and the commands of which it is not known yet whether they are over.
//!
//! Compute Engine does a request once: another copy with the same `requestId` is answered with the first
//! one's operation, and does nothing (instances.stop, query parameters). Google says for how long of its
//! other services alone, in the same words: at least 60 minutes, which is as long as a token lives. The
//! operation bears the `requestId` (`clientOperationId`), so that a command whose answer was lost can be
//! looked up.
//!
//! # Invariants
//!
//! - A name is made of the order and of what this device of this process alone has: the same order, sent
//!   again, is the same request. Shown by `the_same_order_is_the_same_request_and_another_is_another`.
//! - An off that is sent anew on purpose, and a successor's own, is another request (S2). Shown by
//!   `a_start_that_was_taken_and_is_ordered_anew_is_another_request`.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use picket_core::ids::{EffectId, Generation, NodeId};
use picket_core::time::BootTime;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// For how long Compute Engine knows a request again, and what clocks may differ by.
const REMEMBERED: Duration = Duration::from_secs(3_630);

/// The name of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(Uuid);

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What a name is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestIdParts<'a> {
    /// What no other process has.
    pub(crate) salt: [u8; 16],
    pub(crate) method: &'a str,
    pub(crate) node: &'a NodeId,
    pub(crate) generation: Generation,
    pub(crate) effect: EffectId,
    /// The instance's numeric id.
    pub(crate) instance: &'a str,
    /// Which of its disks, where it is about one.
    pub(crate) device: &'a str,
    /// How many were sent before it on purpose, of the same order.
    pub(crate) nth: u32,
}

impl RequestId {
    pub(crate) fn new(of: RequestIdParts<'_>) -> Self {
        let RequestIdParts { salt, method, node, generation, effect, instance, device, nth } = of;
        let mut hash = Sha256::new();
        hash.update(salt);
        for part in [method, node.as_str(), instance, device] {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part);
        }
        for number in [generation.0, effect.0, u64::from(nth)] {
            hash.update(number.to_be_bytes());
        }
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(hash.finalize()).for_each(|(byte, of)| *byte = of);
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }
}

/// One copy of a command on its way.
#[derive(Clone, Copy, Debug)]
struct Copy {
    serial: u64,
    request: RequestId,
    sent_at: BootTime,
    until: BootTime,
}

/// Copies that may yet be taken, as far as is known.
#[derive(Debug, Default)]
pub(crate) struct Open(Mutex<(u64, Vec<Copy>)>);

impl Open {
    fn copies(&self) -> MutexGuard<'_, (u64, Vec<Copy>)> {
        self.0.lock()
    }

    /// One is about to be sent, which may be taken until then. Its number.
    pub(crate) fn sending(&self, request: RequestId, sent_at: BootTime, until: BootTime) -> u64 {
        let mut copies = self.copies();
        copies.0 += 1;
        let serial = copies.0;
        copies.1.push(Copy { serial, request, sent_at, until });
        serial
    }

    /// That one never left, or was surely refused.
    pub(crate) fn refused(&self, serial: u64) {
        self.copies().1.retain(|copy| copy.serial != serial);
    }

    /// The request was taken: no other copy of it does anything, as long as it is remembered.
    pub(crate) fn taken(&self, serial: u64, request: RequestId) {
        let is_over = |copy: &Copy| {
            copy.serial == serial || copy.request == request && copy.until.since(copy.sent_at) <= REMEMBERED
        };
        self.copies().1.retain(|copy| !is_over(copy));
    }

    /// All that may yet be taken, and until when at most.
    pub(crate) fn waiting(&self, now: BootTime) -> Option<(Vec<RequestId>, BootTime)> {
        let mut copies = self.copies();
        copies.1.retain(|copy| copy.until > now);
        let until = copies.1.iter().map(|copy| copy.until).max()?;
        let mut requests: Vec<RequestId> = Vec::new();
        for copy in &copies.1 {
            if !requests.contains(&copy.request) {
                requests.push(copy.request);
            }
        }
        Some((requests, until))
    }

    /// How many copies of that request are open.
    pub(crate) fn copies_of(&self, request: RequestId) -> usize {
        self.copies().1.iter().filter(|copy| copy.request == request).count()
    }

    /// What does that request was found, and has ended. Where one copy alone is open it was that one; of several no other one does anything,
    /// as long as it is remembered.
    pub(crate) fn found(&self, request: RequestId) {
        let alone = self.copies_of(request) == 1;
        let is_over =
            |copy: &Copy| copy.request == request && (alone || copy.until.since(copy.sent_at) <= REMEMBERED);
        self.copies().1.retain(|copy| !is_over(copy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> NodeId {
        NodeId::new("n1").expect("a name")
    }

    fn of(node: &NodeId, effect: u64, nth: u32) -> RequestIdParts<'_> {
        let (generation, effect) = (Generation(3), EffectId(effect));
        RequestIdParts {
            salt: [0; 16],
            method: "instances.stop",
            node,
            generation,
            effect,
            instance: "17",
            device: "",
            nth,
        }
    }

    #[test]
    fn the_same_order_is_the_same_request_and_another_is_another() {
        let node = node();
        let first = RequestId::new(of(&node, 1, 0));
        assert_eq!(first, RequestId::new(of(&node, 1, 0)));
        let others = [
            of(&node, 2, 0),
            of(&node, 1, 1),
            RequestIdParts { method: "instances.start", ..of(&node, 1, 0) },
            RequestIdParts { instance: "18", ..of(&node, 1, 0) },
            RequestIdParts { device: "disk-1", ..of(&node, 1, 0) },
            RequestIdParts { generation: Generation(4), ..of(&node, 1, 0) },
            RequestIdParts { salt: [1; 16], ..of(&node, 1, 0) },
        ];
        for other in others {
            assert_ne!(first, RequestId::new(other), "{other:?}");
        }
        let text = first.to_string();
        assert_eq!((text.len(), text.matches('-').count(), &text[14..15]), (36, 4, "4"), "{text}");
    }

    #[test]
    fn a_copy_is_open_until_it_is_known_to_be_over_or_cannot_be_taken() {
        let at = |seconds| BootTime::from_boot(Duration::from_secs(seconds));
        let (node, open) = (node(), Open::default());
        let (one, other) = (RequestId::new(of(&node, 1, 0)), RequestId::new(of(&node, 2, 0)));
        let lost = open.sending(one, at(0), at(3_630));
        let refused = open.sending(one, at(10), at(3_640));
        // A copy that was refused says nothing of the one before it.
        open.refused(refused);
        assert_eq!(open.waiting(at(20)), Some((vec![one], at(3_630))));
        let again = open.sending(one, at(30), at(3_660));
        let beside = open.sending(other, at(40), at(3_670));
        assert_eq!((open.copies_of(one), open.copies_of(other)), (2, 1));
        // Taken once, it is taken for all copies.
        open.taken(again, one);
        assert_eq!(open.waiting(at(50)), Some((vec![other], at(3_670))));
        open.refused(beside);
        assert_eq!((open.waiting(at(60)), lost), (None, 1));
        // What may come later than Compute Engine knows it again stays open.
        open.sending(one, at(100), at(50_000));
        let again = open.sending(one, at(110), at(50_010));
        open.taken(again, one);
        assert_eq!(open.waiting(at(200)), Some((vec![one], at(50_000))));
        open.sending(one, at(210), at(50_020));
        open.found(one);
        assert_eq!(open.copies_of(one), 2, "which of them it was is not known");
        open.sending(other, at(220), at(50_030));
        open.found(other);
        assert_eq!((open.copies_of(one), open.copies_of(other)), (2, 0));
        assert_eq!(open.waiting(at(50_021)), None);
    }
}
