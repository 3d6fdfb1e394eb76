//! The trait.

use std::time::Duration;

use async_trait::async_trait;
use picket_answers::liveness::Look;
use picket_core::cluster_node::{Belongs, ClusterNode};
use picket_core::device::Identity;

/// What a look saw of a node's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    /// The boot in which the node is.
    pub boot: String,
    /// What the node renews by itself as long as it runs, in words that are others each time. `None`: it is not known.
    pub beat: Option<String>,
}

/// A source that says whether one node recovered.
#[async_trait]
pub trait Liveness: Send + Sync + std::fmt::Debug {
    /// The longest that a look takes.
    fn patience(&self) -> Duration;

    /// What it is taken for that no answer came within that time.
    fn late(&self) -> Look {
        Look::Unanswered(format!("no answer within {:?}", self.patience()))
    }

    /// Asks now. May be dropped at any moment; nothing of it is left behind then.
    async fn look(&self) -> Look;

    /// What it answers to a check of the node, which asks once. `None`: it is asked in a fence alone. Ends within its
    /// [`Liveness::patience`].
    async fn check(&self) -> Option<Look> {
        None
    }

    /// What was wrong with its settings when they were read, and is no fault of them; each a sentence for people.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the last look saw of the node's life. `None`: nothing, or the source knows no boots.
    fn sign(&self) -> Option<Sign> {
        None
    }

    /// Whether that Node of Kubernetes is the one of which it would ask (K1). `None`: it knows no such Nodes. Changes nothing. Ends within
    /// its [`Liveness::patience`].
    async fn has(&self, node: &ClusterNode, identities: &[Identity]) -> Option<Belongs> {
        let _ = (node, identities);
        None
    }
}
