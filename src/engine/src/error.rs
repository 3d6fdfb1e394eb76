//! Why a request was not taken.

use std::time::Duration;

use picket_core::budget::Bar;
use picket_core::ids::{DeviceId, FenceId, Generation};
use picket_core::machine::Refused;
use picket_core::outcome::Reason;
use picket_core::store::StoreError;
use picket_core::time::WallTime;
use picket_driver::ErrorKind;

/// Why the engine did not do what was asked. Nothing was changed, but for what [`EngineError::Unanswered`] and
/// [`StoreError::Unknown`] leave open.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// No such node.
    #[error("there is no node {name:?}")]
    UnknownNode {
        /// What was asked for.
        name: String,
    },
    /// The rules do not allow it.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Nothing was sent, and why.
    #[error("blocked ({}): {detail}", .reason.words())]
    Blocked {
        /// The stable reason.
        reason: Reason,
        /// In words.
        detail: String,
    },
    /// A pause or a limit bars it; nothing was sent.
    #[error("{0}")]
    Barred(Box<Bar>),
    /// There is nothing on which a receipt could stand.
    #[error("the node is not proven off just now: {0}")]
    NotProven(String),
    /// As many receipts are open as may be.
    #[error("{open} receipts {}are open, and no more may be: renew one, hand one back, or wait until one expires", if *.own { "of yours " } else { "of the node " })]
    ReceiptsFull {
        /// How many.
        open: usize,
        /// Whether they are all the caller's own.
        own: bool,
        /// When the first of them expires.
        room_in: Duration,
    },
    /// Nothing can be signed, and why.
    #[error("receipts cannot be signed: {0}")]
    NoKey(String),
    /// The settings do not allow it, and what of them would.
    #[error("{0}")]
    NotAllowed(String),
    /// Whoever asked may not any more: the roles changed while the request waited.
    #[error("{0}")]
    RoleLost(String),
    /// The request came too late, or the node moved on.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The key is bound to other parameters.
    #[error("the idempotency key {:?} is already used with other parameters", .0.key)]
    KeyTaken(TakenKey),
    /// The store does not answer, or refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This gateway does not lead at the moment.
    #[error("no gateway leads at the moment: {0}")]
    NoLeader(String),
    /// The leadership ended before anybody was told what became of it: it may have been done.
    #[error(
        "this gateway's leadership ended before it told what became of the request: it may have been done"
    )]
    Unanswered,
    /// A device did not do its part.
    #[error("{device}: {detail}")]
    Device {
        /// Which.
        device: DeviceId,
        /// What kind of trouble.
        kind: ErrorKind,
        /// In words.
        detail: String,
    },
    /// A field of the request cannot be as it is.
    #[error("{field}: {what}")]
    Field {
        /// The field.
        field: &'static str,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
}

/// That the node may have another machine than when the request came, in words.
pub(crate) fn another_machine(how: &str) -> String {
    format!(
        "the settings may have another machine under this name since the request came ({how}), and nothing was sent to it: ask again, if this one is dead"
    )
}

/// Why questions are not answered here just now.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{why}")]
pub struct Absent {
    /// In words.
    pub why: String,
    /// Since when.
    pub since: Option<WallTime>,
    /// How long ago what was last seen was read; `None`: nothing was.
    pub age: Option<Duration>,
}

/// What the request did not know.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Stale {
    /// The node moved on.
    #[error(
        "generation {expected} was expected and the node is in generation {found}: look again, then decide"
    )]
    Generation {
        /// What the caller expected.
        expected: Generation,
        /// The present one.
        found: Generation,
    },
    /// It came too late.
    #[error("the request's not_after has passed: nothing was changed")]
    NotAfter,
    /// The key's fence is older than the history that is kept.
    #[error("fence {0}, to which the key is bound, is no longer kept")]
    FenceGone(FenceId),
}

/// A key that is bound to another request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenKey {
    /// The key.
    pub key: String,
    /// The fence to which it is bound; `None`: the node had none.
    pub fence: Option<FenceId>,
}
