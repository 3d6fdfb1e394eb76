//! What people ask of a node besides fencing it.

use picket_core::device::Identity;
use picket_core::ids::{DeviceId, NodeId};

use super::Engine;
use crate::error::EngineError;
use crate::node::{Command, Wish};
use crate::plan::Plan;
use crate::request::{Admission, Ask, FenceCall, Taken};

impl Engine {
    async fn wish(&self, node: &NodeId, wish: Wish, ask: impl Into<Ask>) -> Result<Taken, EngineError> {
        self.ask(node, |reply| Command::Wish(wish, ask.into(), reply)).await
    }

    /// Places a hold, or renews the reason of the one of that name.
    pub async fn hold(
        &self,
        node: &NodeId,
        holder: String,
        ask: impl Into<Ask>,
    ) -> Result<Taken, EngineError> {
        self.wish(node, Wish::Hold(holder), ask).await
    }

    /// An admin drops the hold under which a restore keeps the node off (S21).
    pub async fn drop_restored(&self, node: &NodeId, ask: impl Into<Ask>) -> Result<Taken, EngineError> {
        self.wish(node, Wish::DropRestored, ask).await
    }

    /// An admin ends the hold of a child, by the name under which it holds the node (S22). The child's proof by this node is void from then on;
    /// the hold goes once nothing of the child relies on it.
    pub async fn end_childs_hold(
        &self,
        node: &NodeId,
        holder: String,
        ask: impl Into<Ask>,
    ) -> Result<Taken, EngineError> {
        self.wish(node, Wish::EndChildsHold(holder), ask).await
    }

    /// A person vouches that the node is off (S12). Every host device is asked first.
    pub async fn attest(&self, node: &NodeId, ask: impl Into<Ask>) -> Result<Taken, EngineError> {
        self.wish(node, Wish::Attest, ask).await
    }

    /// A person looked at the machine and says that it is off: what devices say that restarted within the fence is believed again, after a
    /// long dwell and as claimed, and the fence is tried again (S2). Every host device is asked first; refused while one says On.
    pub async fn retry_seen_off(&self, node: &NodeId, ask: impl Into<Ask>) -> Result<Taken, EngineError> {
        self.wish(node, Wish::RetrySeenOff, ask).await
    }

    /// The hardware is gone for good.
    pub async fn retire(&self, node: &NodeId, ask: impl Into<Ask>) -> Result<Taken, EngineError> {
        self.wish(node, Wish::Retire, ask).await
    }

    /// What the device says now is what it is to say from now on (S13). Where something is `expected`, nothing else is
    /// accepted.
    pub async fn accept_identity(
        &self,
        node: &NodeId,
        device: DeviceId,
        expected: Identity,
        ask: impl Into<Ask>,
    ) -> Result<Taken, EngineError> {
        self.wish(node, Wish::Accept { device, expected }, ask).await
    }

    /// What a drill would do. Stores and sends nothing that changes anything.
    pub async fn plan_drill(&self, node: &NodeId, call: FenceCall) -> Result<Plan, EngineError> {
        self.ask(node, |reply| Command::PlanDrill(Box::new(call), reply)).await
    }

    /// Opens the fence of a node of which nothing is wrong, where the settings allow that, and nothing is to be let go on the
    /// word of supplies whose wiring nobody knows.
    pub async fn drill(&self, node: &NodeId, call: FenceCall) -> Result<Admission, EngineError> {
        let target = self.target(node);
        self.ask(node, |reply| Command::Drill(Box::new(call), target, reply)).await
    }
}
