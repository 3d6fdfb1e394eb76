//! Which node a machine's name means, who holds whom, and questions from one node to another.

use std::sync::Arc;

use picket_core::ids::NodeId;
use picket_core::parent::hold_of;
use picket_core::record::Phase;
use tokio::sync::oneshot;

use super::{Engine, Shared};
use crate::error::EngineError;
use crate::node::Command;
use crate::parents::{LABEL, ParentAnswer, ParentAsk};

impl Engine {
    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared, role: Arc::from("") }
    }

    /// The node that `host` means: the one of that name, else the only one that is labelled so.
    pub(crate) fn parent_named(&self, host: &str) -> Option<NodeId> {
        let fleet = self.fleet();
        if let Some((id, _)) = NodeId::new(host).ok().and_then(|id| fleet.plans.get_key_value(&id)) {
            return Some(id.clone());
        }
        let is_called =
            |plan: &&Arc<crate::NodePlan>| plan.labels.get(LABEL).is_some_and(|name| name == host);
        let mut called = fleet.plans.values().filter(is_called);
        let only = called.next()?;
        called.next().is_none().then(|| only.id.clone())
    }

    /// The nodes that are held for a child, as their records say.
    pub(crate) fn held_by(&self, child: &NodeId) -> Vec<NodeId> {
        let hold = hold_of(child);
        let slots: Vec<_> = self.fleet().slots.values().cloned().collect();
        let holds = slots.iter().filter(|slot| slot.view.borrow().stored.record.holds.contains_key(&hold));
        holds.map(|slot| slot.plan.id.clone()).collect()
    }

    /// In words, that a node is on its way back; `None`: it is not.
    pub(crate) fn is_coming_back(&self, node: &NodeId) -> Option<&'static str> {
        let slot = self.slot(node).ok()?;
        let view = slot.view.borrow();
        (view.stored.record.phase == Phase::Unfencing).then_some("being brought back")
    }

    /// Whether the gateway's own machine was last seen to run on that node (S17).
    pub(crate) fn carries_own_host(&self, node: &NodeId) -> bool {
        let children = self.shared.office.children(node);
        let fleet = self.fleet();
        children.iter().any(|child| fleet.plans.get(child).is_some_and(|plan| plan.own_host))
    }

    /// Why a child's hold on its parent may not be dropped: it is kept off by it, or on its way there. In words, its phase.
    pub(crate) fn keeps_its_parent(&self, child: &str) -> Option<&'static str> {
        let slot = NodeId::new(child).ok().and_then(|child| self.slot(&child).ok())?;
        let view = slot.view.borrow();
        let record = &view.stored.record;
        let is_let_go = matches!(record.phase, Phase::Normal | Phase::Retired);
        (!is_let_go).then(|| record.phase.label())
    }

    /// Notes that a child runs there: a fence of the parent takes it away too.
    pub(crate) fn runs_on(&self, child: &NodeId, parent: &NodeId) {
        self.shared.office.runs_on(child, parent);
    }

    /// Asks a node's task for one of its children.
    pub(crate) async fn of_parent(
        &self,
        parent: &NodeId,
        ask: ParentAsk,
    ) -> Result<ParentAnswer, EngineError> {
        let slot = self.slot(parent)?;
        let term = self.leading().map_err(EngineError::NoLeader)?;
        let (reply, answer) = oneshot::channel();
        let command = Command::Parent(ask, term, reply);
        slot.mailbox.send(command).await.map_err(|_| EngineError::Unanswered)?;
        answer.await.map_err(|_| EngineError::Unanswered)?
    }
}
