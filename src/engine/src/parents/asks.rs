//! What a child's device asks its parent's task, and what that answers.

use picket_core::device::Grade;
use picket_core::ids::NodeId;
use picket_core::parent::{NotSeen, ParentOff};

/// What a child wants of its parent.
#[derive(Clone, Debug)]
pub(crate) enum ParentAsk {
    /// It is fenced, or its fence is joined, and held for the child. `least`: how good its evidence must be. `by`: who asked for the child's fence.
    Hold { child: NodeId, least: Grade, by: String },
    /// The child holds it no more.
    LetGo { child: NodeId },
    /// Where it stands. Where it is not held, it is asked as the place of a copy of the child.
    Look { child: NodeId, is_held: bool },
    /// Its devices are read: nobody did of late, and the child waits for one of them to say On.
    Read,
    /// What the child asked before is done by now, or never will be.
    Settle,
}

/// How a parent answers a child.
#[derive(Debug)]
pub(crate) enum ParentAnswer {
    /// Stored. `already`: it was proven off before, and read Off just now.
    Held { already: bool },
    /// Stored, or there was nothing to let go.
    LetGo,
    /// Where it stands.
    Seen(ParentSeen),
    /// Nothing that was asked before is under way.
    Settled,
}

/// Where a parent stands, as its own task sees it.
#[derive(Debug)]
pub(crate) enum ParentSeen {
    /// The child does not hold it, or it was found on since: what it proved is void.
    Void(&'static str),
    /// It is held, and not proven off just now: why.
    Unproven(String),
    /// It is held, and proven off.
    Off(ParentOff),
}

impl From<Result<ParentOff, NotSeen>> for ParentSeen {
    fn from(seen: Result<ParentOff, NotSeen>) -> Self {
        seen.map_or_else(|why| ParentSeen::Unproven(why.to_string()), ParentSeen::Off)
    }
}
