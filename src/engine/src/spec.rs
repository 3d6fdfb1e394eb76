//! What the settings say of a node, as plain values.
//!
//! # Invariants
//!
//! - No driver, no releaser and no store is among them: a `NodePlan` has those beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use picket_core::ids::{DeviceId, NodeId};
use picket_core::topology::Topology;

use crate::paces::Paces;

/// What the settings say of a node, and its paces. It holds no driver, no releaser and no store: a pure machine decides by it.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// Its name.
    pub id: NodeId,
    /// What its cloud is told by: `spec.providerID` of its Node in Kubernetes, where the settings say it.
    pub provider_id: Option<String>,
    /// Its levels.
    pub topology: Topology,
    /// Between the tries of a device that failed, where the settings say so.
    pub retries: BTreeMap<DeviceId, Duration>,
    /// This gateway stands on it, as its settings say: it is never fenced by this gateway (S17).
    pub own_host: bool,
    /// Nodes that run on it and may be fenced by its fence, whoever asks for theirs (S22).
    pub fenced_for: Arc<BTreeSet<NodeId>>,
    /// Labels (`rack`, `zone`, `role`).
    pub labels: Arc<BTreeMap<String, String>>,
    /// The groups in which it is: one for each label, and those that the settings name.
    pub groups: Arc<BTreeSet<String>>,
    /// One of its groups allows drills, and none forbids them.
    pub drills: bool,
    /// Its pauses and its patience.
    pub paces: Arc<Paces>,
}

impl NodeSpec {
    /// A node of these levels, of which the settings say nothing else.
    pub fn new(id: NodeId, topology: Topology) -> Self {
        Self {
            id,
            provider_id: None,
            topology,
            retries: BTreeMap::new(),
            own_host: false,
            fenced_for: Arc::default(),
            labels: Arc::default(),
            groups: Arc::default(),
            drills: false,
            paces: Arc::default(),
        }
    }
}
