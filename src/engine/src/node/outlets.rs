//! What a node's task shares with the others.

use std::sync::Arc;

use picket_core::ids::{NodeId, Revision};
use tokio::sync::{Semaphore, broadcast, watch};

use crate::office::Office;
use crate::view::NodeView;
use crate::work::Work;

/// Turns of what nobody asked for, shared by the nodes of a leadership: thousands begin at once.
pub(crate) struct Turns {
    /// Of checks.
    pub(crate) checks: Semaphore,
    /// Of looking for what releases left.
    pub(crate) cleanup: Semaphore,
    /// Of the same at a far side that did not answer last time: a cluster that hangs keeps no other one's nodes waiting.
    pub(crate) silent: Semaphore,
}

impl Turns {
    /// So many of each.
    pub(crate) fn new(each: usize) -> Self {
        let turns = || Semaphore::new(each);
        Self { checks: turns(), cleanup: turns(), silent: turns() }
    }
}

/// Where a node's task tells what it knows, and what it shares with the other tasks.
pub(crate) struct Outlets {
    pub(crate) view: Arc<watch::Sender<NodeView>>,
    pub(crate) feed: broadcast::Sender<(Revision, NodeId)>,
    /// Nodes of which something changed that is not stored.
    pub(crate) shown: broadcast::Sender<NodeId>,
    pub(crate) turns: Arc<Turns>,
    /// What must not be cut is counted.
    pub(crate) work: Work,
    /// Why nothing is sent to the node.
    pub(crate) orphan: Option<String>,
    /// Where it is decided whether a fence may begin.
    pub(crate) office: Arc<Office>,
}
