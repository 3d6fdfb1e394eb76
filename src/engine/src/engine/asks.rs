//! What callers ask of a node: each request goes to the node's own task, and is answered by it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use picket_audit::Told;
use picket_core::cluster_node::{Belongs, ClusterNode};
use picket_core::ids::{NodeId, ReleaseId};
use picket_core::record::NodeRecord;
use picket_core::target::Target;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Engine;
use super::fleet::Slot;
use crate::error::EngineError;
use crate::node::Command;
use crate::plan::Plan;
use crate::request::{Admission, Ask, FenceCall, Taken};
use crate::view::NodeView;

/// How long a release may take to say whose Node a node is.
const WHOSE: Duration = Duration::from_secs(5);

impl Engine {
    pub(super) async fn ask<T>(
        &self,
        node: &NodeId,
        make: impl FnOnce(oneshot::Sender<Result<T, EngineError>>) -> Command,
    ) -> Result<T, EngineError> {
        let (reply, answer) = oneshot::channel();
        let mut command = make(reply);
        if !self.acting.roles.is_empty() && command.asked().is_some() {
            command = Command::As(self.acting.clone(), Box::new(command));
        }
        let asked = command.asked();
        // What reaches the node's task is told by it, with what became of it.
        let refused = |error: EngineError| {
            if let Some(asked) = asked.clone() {
                let at = self.shared.parts.clock.wall().millis();
                let entry =
                    Told { at, what: "request".to_owned(), node: Some(node.to_string()), ..Told::default() };
                self.shared.parts.audit.tell_counted(asked.told(entry, Err(error.to_string())));
            }
            error
        };
        let slot = self.slot(node).map_err(refused)?;
        self.leading().map_err(|why| refused(EngineError::NoLeader(why)))?;
        // A node that left the settings meanwhile is not known any more. Of any other the task may have begun it.
        let gone = || self.slot(node).err().unwrap_or(EngineError::Unanswered);
        slot.mailbox.send(command).await.map_err(|_| refused(gone()))?;
        answer.await.map_err(|_| refused(gone()))?
    }

    /// Opens or joins the fence of a node. A caller who leaves does not stop it.
    pub async fn fence(&self, node: &NodeId, call: FenceCall) -> Result<Admission, EngineError> {
        self.fence_of(node, call, self.target(node)).await
    }

    /// The same, of the machine that the node had when the request came.
    pub(super) async fn fence_of(
        &self,
        node: &NodeId,
        call: FenceCall,
        target: Target,
    ) -> Result<Admission, EngineError> {
        self.ask(node, |reply| Command::Fence(Box::new(call), target, reply)).await
    }

    /// The machine that the node has now. Of a node that is not in the settings nothing is known, and it is asked nothing.
    pub(super) fn target(&self, node: &NodeId) -> Target {
        let target = |slot: Arc<Slot>| Target::of(&slot.view.borrow().stored.record, &slot.plan.topology);
        self.slot(node).map(target).unwrap_or_default()
    }

    /// What the node's releases and its liveness source say of whether that Node of Kubernetes is its (K1), each with who says it. Empty: none of
    /// them knows such Nodes. Stores nothing.
    pub async fn has(
        &self,
        node: &NodeId,
        wanted: &ClusterNode,
    ) -> Result<Vec<(String, Belongs)>, EngineError> {
        let slot = self.slot(node)?;
        let identities = slot.view.borrow().stored.record.identities(&slot.plan.topology);
        let releases = slot.plan.releases.iter().map(async |plan| {
            let cluster = plan.quarantine()?;
            let until = Instant::now() + WHOSE;
            let said = tokio::time::timeout_at(until, cluster.has(wanted, &identities, until)).await;
            let late = |_| Some(Belongs::Untold(format!("no answer within {WHOSE:?}")));
            Some((format!("release {}", plan.id), said.unwrap_or_else(late)?))
        });
        let source = async {
            let source = slot.plan.liveness.as_ref()?;
            let said = tokio::time::timeout(source.patience(), source.has(wanted, &identities)).await;
            let late = |_| Some(Belongs::Untold(format!("no answer within {:?}", source.patience())));
            Some(("liveness source".to_owned(), said.unwrap_or_else(late)?))
        };
        let (releases, source) = tokio::join!(join_all(releases), source);
        Ok(releases.into_iter().flatten().chain(source).collect())
    }

    /// What a fence would do, by the same code. Stores and sends nothing that changes anything.
    pub async fn plan(&self, node: &NodeId, call: FenceCall) -> Result<Plan, EngineError> {
        // Asked here, so that a source that hangs keeps a plan waiting and no fence.
        let slot = self.slot(node)?;
        let heard = match slot.plan.liveness.clone().filter(|_| !call.holder.by_person) {
            Some(source) => Some(slot.looks.at(source).await),
            None => None,
        };
        let _turn = slot.looks.turn.lock().await;
        self.ask(node, |reply| Command::Plan(Box::new(call), heard, reply)).await
    }

    /// Drops a hold; with none left the node is brought back.
    pub async fn unfence(
        &self,
        node: &NodeId,
        holder: String,
        ask: impl Into<Ask>,
    ) -> Result<Taken, EngineError> {
        self.ask(node, |reply| Command::Unfence { holder, ask: ask.into(), reply }).await
    }

    /// Tries again what waits for a person.
    pub async fn retry(&self, node: &NodeId, ask: impl Into<Ask>) -> Result<Taken, EngineError> {
        self.ask(node, |reply| Command::Retry(ask.into(), reply)).await
    }

    /// Gives a release up, by name.
    pub async fn abandon(
        &self,
        node: &NodeId,
        release: ReleaseId,
        ask: impl Into<Ask>,
    ) -> Result<NodeRecord, EngineError> {
        match self.ask(node, |reply| Command::Abandon(release, ask.into(), reply)).await? {
            Taken::Now(record) => Ok(*record),
            Taken::Before(_) => Ok(self.node(node)?.stored.record.clone()),
        }
    }

    /// It was alive: undo, without an on of the host.
    pub async fn stand_down(&self, node: &NodeId, ask: impl Into<Ask>) -> Result<Taken, EngineError> {
        self.ask(node, |reply| Command::StandDown(ask.into(), reply)).await
    }

    /// Asks all devices of the node now; what they say is in its view afterwards.
    pub async fn check(&self, node: &NodeId) -> Result<NodeView, EngineError> {
        match self.ask(node, Command::Check).await {
            // A fence ended the check: what is known is what its readings say.
            Ok(_) | Err(EngineError::NoLeader(_) | EngineError::Unanswered) => self.node(node),
            Err(error) => Err(error),
        }
    }
}
