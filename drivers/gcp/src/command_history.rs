//! The commands of one kind, stops or starts, that this process sent to an instance: which request goes
//! next, and what became of the one that was taken last.
//!
//! # Invariants
//!
//! - What was not answered is sent again as the same request. What was taken is sent anew as another one:
//!   for the old name Compute Engine would do nothing. Shown by
//!   `an_order_is_the_same_request_until_it_was_taken`.
//! - What this process sent outlives a device that a reload makes anew. Shown by
//!   `a_device_that_is_made_anew_knows_what_was_sent_before`.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use picket_core::time::BootTime;

use crate::operation::Operation;
use crate::requests::Open;

/// What this process told one instance, and may not be over. It outlives a device that is made anew, by other settings: what was sent
/// by the one before is on its way all the same.
#[derive(Clone, Debug)]
pub(crate) struct InstanceHistory {
    pub(crate) stops: Arc<Mutex<CommandHistory>>,
    pub(crate) starts: Arc<Mutex<CommandHistory>>,
    /// The operations of its last detaches, by the disk.
    pub(crate) detaches: Arc<Mutex<BTreeMap<String, String>>>,
    /// Stops and starts whose end is not known.
    pub(crate) open: Arc<Open>,
    /// What is in the names of its requests, and in nobody else's.
    pub(crate) salt: [u8; 16],
}

impl InstanceHistory {
    /// Of an instance that was told nothing yet.
    pub(crate) fn new(salt: [u8; 16]) -> Self {
        Self {
            stops: Arc::default(),
            starts: Arc::default(),
            detaches: Arc::default(),
            open: Arc::default(),
            salt,
        }
    }
}

/// The commands of one kind.
#[derive(Debug, Default)]
pub(crate) struct CommandHistory {
    /// The request that goes next, or went last.
    request: Option<PendingRequest>,
    taken: Option<AcceptedOperation>,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRequest {
    /// Of which order it is: its generation and its entry in the ledger.
    order: (u64, u64),
    pub(crate) nth: u32,
    /// Another one is not this one sent again.
    is_taken: bool,
    first_at: Option<BootTime>,
    /// A copy of it was sent, and nobody here heard what became of that.
    is_unheard: bool,
}

/// The operation of the one that was taken last.
#[derive(Clone, Debug)]
struct AcceptedOperation {
    name: String,
    /// It was not among what is under way, once.
    is_missing: bool,
    /// When it was seen to have ended, and how.
    ended: Option<(BootTime, OperationEnd)>,
    /// The instance was asked for after that, and is not off.
    in_vain: bool,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OperationEnd {
    /// Without an error.
    Done,
    /// It came to nothing, in words.
    Failed(String),
}

impl OperationEnd {
    /// How that operation ended; `None`: it has not.
    pub(crate) fn of(operation: &Operation) -> Option<Self> {
        operation.is_done().then(|| operation.failed().map_or(Self::Done, Self::Failed))
    }
}

impl CommandHistory {
    /// The request to send for that order: the same until it was taken.
    pub(crate) fn next(&mut self, order: (u64, u64)) -> PendingRequest {
        let nth = match self.request {
            Some(going) if going.order == order && going.is_taken => going.nth + 1,
            Some(going) if going.order == order => return going,
            _ => 0,
        };
        let going = PendingRequest { order, nth, is_taken: false, first_at: None, is_unheard: false };
        self.request = Some(going);
        going
    }

    /// It is sent now. When its first copy was.
    pub(crate) fn sent(&mut self, at: BootTime) -> BootTime {
        self.request.as_mut().map_or(at, |going| *going.first_at.get_or_insert(at))
    }

    /// A copy is about to be sent, whose caller may go away; whether another one before it was not heard of.
    pub(crate) fn sending(&mut self, at: BootTime) -> bool {
        self.sent(at);
        self.request.as_mut().is_some_and(|going| std::mem::replace(&mut going.is_unheard, true))
    }

    /// It was surely refused: what is not heard of is what was before.
    pub(crate) fn refused(&mut self, was_unheard: bool) {
        if let Some(going) = &mut self.request {
            going.is_unheard = was_unheard;
        }
    }

    /// When the first copy of the one that went last was sent.
    pub(crate) fn first_at(&self) -> Option<BootTime> {
        self.request.and_then(|going| going.first_at)
    }

    /// Compute Engine has it.
    pub(crate) fn over(&mut self) {
        if let Some(going) = &mut self.request {
            going.is_taken = true;
        }
    }

    /// Which of that order was not taken yet.
    pub(crate) fn unanswered(&self, order: (u64, u64)) -> Option<u32> {
        self.request.filter(|going| going.order == order && !going.is_taken).map(|going| going.nth)
    }

    /// That operation does it.
    pub(crate) fn taken(&mut self, operation: &Operation, now: BootTime) {
        let ended = OperationEnd::of(operation).map(|how| (now, how));
        self.taken = Some(AcceptedOperation {
            name: operation.name.clone(),
            is_missing: false,
            ended,
            in_vain: false,
        });
    }

    /// It has ended, as was found out.
    pub(crate) fn ends(&mut self, name: &str, how: OperationEnd, now: BootTime) {
        if let Some(taken) = self.taken.as_mut().filter(|taken| taken.name == name) {
            taken.ended = Some((now, how));
        }
    }

    /// It is not among what is under way. Whether that was so before.
    pub(crate) fn misses(&mut self) -> bool {
        self.taken.as_mut().is_some_and(|taken| std::mem::replace(&mut taken.is_missing, true))
    }

    /// Who asked at that time does not see it off. Who asked before it ended saw it on its way.
    pub(crate) fn not_off(&mut self, asked_at: BootTime) {
        if let Some(taken) = &mut self.taken {
            taken.in_vain |= taken.ended.as_ref().is_some_and(|(at, _)| *at < asked_at);
        }
    }

    /// Whether the last one that was taken has ended, and the instance is not off by that.
    pub(crate) fn was_in_vain(&self) -> bool {
        self.taken.as_ref().is_some_and(|taken| taken.in_vain)
    }

    /// The operation that is not known to have ended.
    pub(crate) fn under_way(&self) -> Option<String> {
        self.taken.as_ref().filter(|taken| taken.ended.is_none()).map(|taken| taken.name.clone())
    }

    /// How the last one that was taken ended.
    pub(crate) fn ended(&self) -> Option<OperationEnd> {
        self.taken.as_ref()?.ended.as_ref().map(|(_, how)| how.clone())
    }

    /// What was told before is of the past.
    pub(crate) fn forget(&mut self) {
        self.taken = None;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> BootTime {
        BootTime::from_boot(Duration::from_secs(seconds))
    }

    fn called(name: &str) -> Operation {
        serde_json::from_value(serde_json::json!({ "name": name })).expect("an operation")
    }

    #[test]
    fn an_order_is_the_same_request_until_it_was_taken() {
        let mut history = CommandHistory::default();
        assert_eq!(history.next((1, 1)).nth, 0);
        assert_eq!((history.sent(at(5)), history.sent(at(9))), (at(5), at(5)), "as old as its first copy");
        assert_eq!(history.next((1, 1)).nth, 0, "it was not answered");
        assert_eq!((history.unanswered((1, 1)), history.unanswered((1, 2))), (Some(0), None));
        history.over();
        assert_eq!(history.unanswered((1, 1)), None);
        assert_eq!(history.next((1, 1)).nth, 1, "sent anew on purpose");
        assert_eq!(history.sent(at(20)), at(20));
        history.taken(&called("o-1"), at(1));
        assert_eq!((history.under_way().as_deref(), history.ended()), (Some("o-1"), None));
        history.forget();
        assert_eq!(history.next((1, 1)).nth, 1, "what was told is forgotten, and not that it was sent");
        assert_eq!(history.next((1, 2)).nth, 0, "another order");
    }

    #[test]
    fn how_it_ended_is_told_of_the_last_one_alone() {
        let mut history = CommandHistory::default();
        history.taken(&called("o-1"), at(1));
        history.taken(&called("o-2"), at(1));
        history.ends("o-1", OperationEnd::Done, at(5));
        assert_eq!(history.under_way().as_deref(), Some("o-2"));
        history.not_off(at(9));
        history.ends("o-2", OperationEnd::Failed("why".to_owned()), at(10));
        assert_eq!(
            (history.under_way(), history.ended()),
            (None, Some(OperationEnd::Failed("why".to_owned())))
        );
        // Who asked before that saw it on its way.
        history.not_off(at(10));
        assert!(!history.was_in_vain());
        history.not_off(at(11));
        assert!(history.was_in_vain());
    }
}
