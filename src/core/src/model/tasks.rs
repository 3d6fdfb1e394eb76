//! What a gateway is at, and what it knows meanwhile.

use std::sync::Arc;

use super::world::{DEVICES, VOLUMES};
use crate::confirm::Judge;
use crate::ground::Look;
use crate::ids::EffectId;
use crate::ledger::EffectKind;
use crate::order::{HoldOrder, OffOrder, PendingOn, ReleaseOrder, UnholdOrder};
use crate::power::{Epoch, Power};

/// How long a call waits for its answer, in ticks.
pub(super) const CALL: u64 = 1;

/// What a device answered to an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) already: bool,
    /// The device's life in which it was given.
    pub(super) epoch: Option<Epoch>,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// The order that it carries; `None`: it asks for power.
    pub(super) effect: Option<EffectId>,
    /// The session in which it was made, with a device.
    pub(super) epoch: Option<Epoch>,
    pub(super) since: u64,
    pub(super) answer: Option<Answer>,
    /// What the device said to a question whose answer is late.
    pub(super) late: Option<Power>,
}

/// What the gateway is at.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// Watching, and waiting for callers.
    Rest,
    /// Waiting out open effects.
    Drain {
        kinds: Kinds,
        asked: [bool; DEVICES],
        then: Then,
    },
    Fence(Box<Fencing>),
    LetGo(Releasing),
    Bring(Bringing),
}

/// Which effects are waited out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kinds {
    Proof,
    On,
    All,
}

impl Kinds {
    pub(super) fn has(self, kind: &EffectKind) -> bool {
        match self {
            Kinds::Proof => kind.bars_proof(),
            Kinds::On => kind.bars_on(),
            Kinds::All => true,
        }
    }
}

/// What comes after a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Then {
    Fence,
    Bring,
    Back,
}

/// What a fence's run knows of one device.
#[derive(Clone, Debug, Default)]
pub(super) struct Hand {
    /// Held, or it knows no hold: from here on it is looked at, switched off and read.
    pub(super) live: bool,
    /// The stored order to switch it off, and, before that, to hold it.
    pub(super) order: Option<Order>,
    pub(super) call: Option<Call>,
    pub(super) not_before: u64,
}

/// An order in hand.
#[derive(Clone, Debug)]
pub(super) enum Order {
    Hold(Arc<HoldOrder>),
    Off(Arc<OffOrder>),
}

/// A fence, from its stored intent to its proof.
#[derive(Clone, Debug)]
pub(super) struct Fencing {
    pub(super) judge: Judge,
    pub(super) hands: [Hand; DEVICES],
}

/// Volumes are let go, and the node is watched.
#[derive(Clone, Debug, Default)]
pub(super) struct Releasing {
    pub(super) looks: Option<Vec<Look>>,
    pub(super) order: Option<Arc<ReleaseOrder>>,
    pub(super) call: Option<Call>,
    pub(super) unknown: u8,
    /// The look got no answer from a device of the node.
    pub(super) unseen: bool,
    /// What is attached was asked for.
    pub(super) surveyed: bool,
    /// Volumes that were found attached since the last attempt: a new one is due.
    pub(super) attached: [bool; VOLUMES],
    /// What this run set up.
    pub(super) set_up: Vec<EffectId>,
    /// Which of them is being let go.
    pub(super) at: usize,
    /// When it is gone on with.
    pub(super) next: u64,
}

/// The node is brought back.
#[derive(Clone, Debug, Default)]
pub(super) struct Bringing {
    /// What is to be put back, while that is under way.
    pub(super) undo: [Option<Arc<UnholdOrder>>; DEVICES],
    /// The stored orders to switch it on; `None`: none is stored yet.
    pub(super) pending: Option<Vec<Arc<PendingOn>>>,
    pub(super) calls: [Option<Call>; DEVICES],
    /// Sent in this round.
    pub(super) sent: [bool; DEVICES],
    /// Not seen on.
    pub(super) dark: [bool; DEVICES],
    /// The life in which each said whose machine it controls, and it is the node's.
    pub(super) ours: [Option<u64>; DEVICES],
    pub(super) send_at: u64,
    /// When what this round did not bring on is sent again.
    pub(super) again: Option<u64>,
    pub(super) read_at: u64,
}

impl Bringing {
    /// Calls are waited for, and callers are not heard meanwhile.
    pub(super) fn is_busy(&self) -> bool {
        self.calls.iter().any(Option::is_some) || self.undo.iter().any(Option::is_some)
    }
}
