//! What is known, for whoever asks: nodes, changes, fences, and who leads.

use std::collections::BTreeMap;
use std::sync::Arc;

use picket_audit::Audit;
use picket_core::election::Leadership;
use picket_core::event::BoundKey;
use picket_core::groups::Groups;
use picket_core::ids::{FenceId, NodeId, Revision, Term};
use picket_core::near::near;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::Fence;
use picket_core::store::FenceQuery;
use picket_core::time::Clock;
use tokio::sync::{broadcast, watch};

use super::{Engine, Lead, Shared, Slot};
use crate::bound_keys::bound_to;
use crate::error::EngineError;
use crate::request::{Until, outcome_of};
use crate::view::NodeView;

impl Shared {
    pub(super) fn slot(&self, node: &NodeId) -> Result<Arc<Slot>, EngineError> {
        let slot = self.fleet().slots.get(node).cloned();
        slot.ok_or_else(|| EngineError::UnknownNode { name: node.to_string() })
    }

    pub(super) fn led(&self) -> Result<Arc<Leadership>, String> {
        match &*self.lead.borrow() {
            Lead::Yes(leadership) => {
                leadership.check().map_err(|ended| ended.to_string())?;
                Ok(leadership.clone())
            }
            Lead::No(why) => Err(why.clone()),
        }
    }
}

impl Engine {
    pub(super) fn slot(&self, node: &NodeId) -> Result<Arc<Slot>, EngineError> {
        self.shared.slot(node)
    }

    /// Names of nodes that `node` may have been meant to be. It is compared with each name of the fleet: ask for a single unknown name.
    pub fn near(&self, node: &NodeId) -> Vec<NodeId> {
        // The comparison is slow, and the fleet's lock is not held for it.
        let names: Vec<NodeId> = self.names().collect();
        let found = near(node.as_str(), names.iter().map(NodeId::as_str));
        found.into_iter().filter_map(|name| NodeId::new(name).ok()).collect()
    }

    /// What is known of a node.
    pub fn node(&self, node: &NodeId) -> Result<NodeView, EngineError> {
        Ok(self.slot(node)?.view.borrow().clone())
    }

    /// Whether there is a node of that name.
    pub fn knows(&self, node: &NodeId) -> bool {
        self.fleet().slots.contains_key(node)
    }

    /// The labels of a node by the settings of now, by which it is judged who may what with it. Where it is not at rest its plan may be older.
    ///
    /// # Errors
    /// There is no such node.
    pub fn labels(&self, node: &NodeId) -> Result<Arc<BTreeMap<String, String>>, EngineError> {
        Ok(self.shared.office.labels(&self.slot(node)?.plan))
    }

    /// All nodes, by name.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView> + use<> {
        let slots: Vec<_> = self.fleet().slots.values().cloned().collect();
        slots.into_iter().map(|slot| slot.view.borrow().clone())
    }

    /// The names of all nodes.
    pub fn names(&self) -> impl Iterator<Item = NodeId> + use<> {
        self.fleet().slots.keys().cloned().collect::<Vec<_>>().into_iter()
    }

    /// The groups, and the nodes in each.
    pub fn groups(&self) -> Arc<Groups> {
        self.fleet().groups.clone()
    }

    /// Follows a node: the present at once, then each change (coalesced for a slow follower).
    pub fn follow(&self, node: &NodeId) -> Result<watch::Receiver<NodeView>, EngineError> {
        let mut view = self.slot(node)?.view.subscribe();
        view.mark_changed();
        Ok(view)
    }

    /// Stored changes of all nodes, from now on.
    pub fn feed(&self) -> broadcast::Receiver<(Revision, NodeId)> {
        self.shared.feed.subscribe()
    }

    /// The store's life.
    pub fn incarnation(&self) -> picket_core::ids::Incarnation {
        self.shared.parts.store.incarnation()
    }

    /// Whether a key of a caller is bound for this node: what was asked with it was done.
    pub async fn is_bound(&self, node: &NodeId, key: &BoundKey) -> Result<bool, EngineError> {
        let idle_keys = |slot: Arc<Slot>| slot.view.borrow().stored.record.idle_keys.clone();
        let idle = self.slot(node).map(idle_keys).unwrap_or_default();
        Ok(bound_to(&*self.shared.parts.store, node, key, &idle).await?.is_some())
    }

    /// Nodes of which something changed that is not stored (readiness), from now on.
    pub fn shown(&self) -> broadcast::Receiver<NodeId> {
        self.shared.shown.subscribe()
    }

    /// The newest revision, and the store's life that it belongs to.
    pub async fn revision(&self) -> Result<(picket_core::ids::Incarnation, Revision), EngineError> {
        let store = &self.shared.parts.store;
        Ok((store.incarnation(), store.revision().await?))
    }

    /// Nodes that changed after a revision of the same life of the store.
    pub async fn changed_since(&self, since: Revision) -> Result<Vec<(Revision, NodeId)>, EngineError> {
        Ok(self.shared.parts.store.changed_since(since).await?)
    }

    /// One fence, open or of the history.
    pub async fn get_fence(&self, id: FenceId) -> Result<Option<Fence>, EngineError> {
        Ok(self.shared.parts.store.fence(id).await?)
    }

    /// Fences, newest first.
    pub async fn fences(&self, query: FenceQuery) -> Result<Vec<Fence>, EngineError> {
        Ok(self.shared.parts.store.fences(query).await?)
    }

    /// The fence `id` as it stands in `view`, or in the history where the node has moved on, and its outcome for a
    /// caller who waits `until` and wants at least `grade`.
    pub async fn outcome(
        &self,
        view: &NodeView,
        id: FenceId,
        until: Until,
        grade: Option<picket_core::device::Grade>,
    ) -> Result<(Option<Fence>, Option<Outcome>), EngineError> {
        let fence = match view.stored.record.fence.clone().filter(|fence| fence.id == id) {
            Some(fence) => fence,
            None => match self.get_fence(id).await? {
                Some(fence) => fence,
                None => return Ok((None, None)),
            },
        };
        let ended = fence.ended_at.is_some();
        let outcome = match outcome_of(&fence, until, grade) {
            // Ended by a breach or another fence before it came to what this caller waited for.
            None if ended => Some(Outcome::Superseded),
            // Nobody goes on with it: whoever waits is told that a person must.
            None if view.live.orphaned.is_some() => Some(Outcome::NeedsOperator(Reason::Orphaned)),
            outcome => outcome,
        };
        Ok((Some(fence), outcome))
    }

    /// The term led here, or why none is. A leadership whose permit is over is none, also before its tasks have ended: a gateway
    /// that was stopped for long would tell what was so then as the present.
    pub fn leading(&self) -> Result<Term, String> {
        self.led().map(|leadership| leadership.term())
    }

    pub(super) fn led(&self) -> Result<Arc<Leadership>, String> {
        self.shared.led()
    }

    /// Whether the far side of a release is asked on which node this gateway stands.
    pub fn asks_where_it_stands(&self) -> bool {
        self.shared.parts.own.is_asked()
    }

    /// What is told of everything that was asked, decided and done.
    pub fn audit(&self) -> &Audit {
        &self.shared.parts.audit
    }

    /// The clocks by which it works.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.parts.clock
    }

    /// Waits until the leadership of `term` is over, or another one has begun here.
    pub async fn until_over(&self, term: Term) {
        let mut lead = self.shared.lead.subscribe();
        let over = |lead: &Lead| !matches!(lead, Lead::Yes(leadership) if leadership.term() == term && leadership.check().is_ok());
        let _ = lead.wait_for(over).await;
    }

    /// Waits until this gateway leads.
    pub async fn until_leading(&self) {
        let mut lead = self.shared.lead.subscribe();
        let leads = |lead: &Lead| matches!(lead, Lead::Yes(leadership) if leadership.check().is_ok());
        let _ = lead.wait_for(leads).await;
    }
}
