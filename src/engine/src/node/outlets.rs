//! What a node's task shares with the others.

use std::sync::Arc;

use picket_core::ids::{NodeId, Revision};
use tokio::sync::{Semaphore, broadcast, watch};

use crate::office::Office;
use crate::view::NodeView;
use crate::work::Work;

/// Where a node's task tells what it knows, and what it shares with the other tasks.
pub(crate) struct Outlets {
    pub(crate) view: Arc<watch::Sender<NodeView>>,
    pub(crate) feed: broadcast::Sender<(Revision, NodeId)>,
    /// Nodes of which something changed that is not stored.
    pub(crate) shown: broadcast::Sender<NodeId>,
    /// Checks that nobody asked for take turns.
    pub(crate) turns: Arc<Semaphore>,
    /// What must not be cut is counted.
    pub(crate) work: Work,
    /// Why nothing is sent to the node.
    pub(crate) orphan: Option<String>,
    /// Where it is decided whether a fence may begin.
    pub(crate) office: Arc<Office>,
}
