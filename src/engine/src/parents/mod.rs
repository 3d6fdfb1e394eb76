//! Machines that run on other machines (S22): a child's device of class parent asks the parent's own task.
//!
//! **Invariants.** A child's hold stands in its parent's record, placed by the event that opens or joins the parent's fence: a
//! leader that dies between two steps leaves nothing that the next one does not find. What was asked under one leadership is
//! not done under another. A parent has no parent of its own, so that none waits for itself.
//! **Boundary.** The engine knows the nodes; what is here finds them by what a cloud calls its machines.

mod copies;
mod driver;
mod refusals;

use std::sync::{Arc, OnceLock, Weak};

pub(crate) use copies::{Copies, CopyHosts, Looker};
pub use driver::{ParentDriver, ParentSettings};
use picket_core::device::Grade;
use picket_core::ids::NodeId;
use picket_core::parent::{NotSeen, ParentOff};

use crate::Engine;
use crate::engine::Shared;

/// The label by which a node says what clouds call it, where that is not its own name.
pub const LABEL: &str = "hypervisor";

/// The label by which a node says which cloud calls it so, where the fleet's devices are of several.
pub const CLOUD_LABEL: &str = "hypervisor_of";

/// The way from a child's device to its parent's task. One for all devices of a gateway.
#[derive(Debug, Default)]
pub struct Parents {
    engine: OnceLock<Weak<Shared>>,
}

impl Parents {
    /// Where the nodes are from now on; the first word counts.
    pub(crate) fn bind(&self, shared: &Arc<Shared>) {
        let _ = self.engine.set(Arc::downgrade(shared));
    }

    pub(crate) fn engine(&self) -> Option<Engine> {
        Some(Engine::of(self.engine.get()?.upgrade()?))
    }
}

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
