//! The other nodes of a gateway, as a child's device and a node's own task ask for them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use async_trait::async_trait;
use picket_core::device::Grade;
use picket_core::ids::NodeId;

use super::asks::{ParentAnswer, ParentAsk};
use crate::error::EngineError;
use crate::parts::node_plan::NodePlan;
use crate::view::NodeView;

/// The label by which a node says what clouds call it, where that is not its own name.
pub const LABEL: &str = "hypervisor";

/// The label by which a node says which cloud calls it so, where the fleet's devices are of several.
pub const CLOUD_LABEL: &str = "hypervisor_of";

/// What clouds call a node: by its label, else by its name.
pub fn called<'a>(node: &'a NodeId, labels: &'a BTreeMap<String, String>) -> &'a str {
    labels.get(LABEL).map_or_else(|| node.as_str(), String::as_str)
}

/// What a node is that is not kept off, and that no device of its says On of.
pub(crate) const NOT_SEEN: &str = "was not seen on";

/// A machine from which a child was evacuated.
#[derive(Debug)]
pub(crate) enum CopyHost {
    /// Its hardware is gone.
    Gone,
    /// This node was proven off by its devices with the grade that is wanted, and is kept off.
    Off(NodeId),
    /// All else.
    MayRun,
}

/// The nodes, and questions from one to another. The engine answers.
#[async_trait]
pub(crate) trait Nodes: fmt::Debug + Send + Sync {
    /// What is known of a node.
    ///
    /// # Errors
    /// There is no such node.
    fn node(&self, node: &NodeId) -> Result<NodeView, EngineError>;

    /// The node that `host` means in that cloud: the only one that is called so, by its label or, where it has none, by its name.
    ///
    /// # Errors
    /// There is none, or it cannot be a parent: in words.
    fn parent_named(&self, host: &str, cloud: Option<&str>) -> Result<NodeId, String>;

    /// What is known of `host`, as clouds call it, where a copy of a child may run. As of a parent, a person's word is no proof of it.
    fn host_of_a_copy(&self, host: &str, cloud: Option<&str>, least: Grade) -> CopyHost;

    /// What the settings say of a node; `None`: there is no such node.
    fn plan_of(&self, node: &NodeId) -> Option<Arc<NodePlan>>;

    /// The nodes that are held for a child, as their records say.
    fn held_by(&self, child: &NodeId) -> Vec<NodeId>;

    /// Why nothing is sent to a node; `None`: it is no orphan.
    fn orphaned(&self, node: &NodeId) -> Option<String>;

    /// Whether a node was seen on when its devices were read last, and is not on its way back or off.
    ///
    /// # Errors
    /// In words, what it is instead.
    fn seems_on(&self, node: &NodeId) -> Result<(), &'static str>;

    /// Asks where the gateway's own machine runs, where that may be another node and the settings do not say on which: what a check
    /// saw may be minutes old. Takes 2 s at the longest; what is not said then is as it was.
    async fn locate_own_host(&self);

    /// Whether the gateway's own machine was last seen to run on that node (S17).
    fn carries_own_host(&self, node: &NodeId) -> bool;

    /// Whether a node is being fenced, and the turn of its parent has come.
    fn tries_its_parent(&self, child: &NodeId) -> bool;

    /// Whether a node is being brought back.
    fn is_unfencing(&self, child: &NodeId) -> bool;

    /// The names of those who asked for a node's fence, each once; empty where it is at rest.
    fn askers(&self, child: &NodeId) -> String;

    /// Notes that a child runs there: a fence of the parent takes it away too.
    fn runs_on(&self, child: &NodeId, parent: &NodeId);

    /// Asks a node's task for one of its children.
    async fn of_parent(&self, parent: &NodeId, ask: ParentAsk) -> Result<ParentAnswer, EngineError>;
}

/// The way from a child's device to its parent's task. One for all devices of a gateway.
#[derive(Debug, Default)]
pub struct Parents {
    engine: OnceLock<Weak<dyn Nodes>>,
}

impl Parents {
    /// Where the nodes are from now on; the first word counts.
    pub(crate) fn bind(&self, nodes: Weak<dyn Nodes>) {
        let _ = self.engine.set(nodes);
    }

    /// The nodes of the engine; `None`: none runs.
    pub(crate) fn engine(&self) -> Option<Arc<dyn Nodes>> {
        self.engine.get()?.upgrade()
    }
}
