//! The calls, one file a kind.

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod drill;
pub(crate) mod fence;
pub(crate) mod gateways;
mod history;
mod kubernetes_node;
pub(crate) mod motion;
pub(crate) mod nodes;
pub(crate) mod operator_requests;
pub(crate) mod pause;
pub(crate) mod plan;
pub(crate) mod queue_wait;
pub(crate) mod receipts;
pub(crate) mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::BoxStream;
use picket_audit::Told;
use picket_core::budget::Bar;
use picket_core::ids::NodeId;
use picket_core::parent::child_of;
use picket_core::record::Phase;
use picket_core::roles::Role;
use picket_engine::{Acting, Ask, Engine, EngineError, NodeView, Taken};
use picket_proto::v1::{self, ErrorReason};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::admission::{AdmissionControl, AuthenticatedCaller};
use crate::convert::device::CurrentTime;
use crate::convert::{outcome, pause as pauses, queue};
use crate::errors::{self, Verb};
use crate::fault::Fault;
use crate::guard::CallerRights;
use crate::guard::calls::OVERRIDE;

/// The messages of a stream that follows a node.
pub(crate) type Updates = BoxStream<'static, Result<v1::FenceUpdate, Status>>;

/// What every call needs. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct FencingHandlers {
    pub(crate) engine: Engine,
    pub(crate) admission: Arc<AdmissionControl>,
    /// For whom it works.
    rights: CallerRights,
    /// Ends what it answers with a stream.
    pub(crate) stop: CancellationToken,
}

impl FencingHandlers {
    /// Handlers that work for no caller yet.
    pub(crate) fn new(engine: Engine, admission: Arc<AdmissionControl>) -> Self {
        Self { engine, admission, rights: CallerRights::nobody(), stop: CancellationToken::new() }
    }

    /// The handlers, working for that caller.
    pub(crate) fn of(&self, caller: &AuthenticatedCaller) -> Self {
        let (rights, stop) = (caller.rights.clone(), caller.stop.clone());
        let right = Some((rights.caller.person(), rights.needs()));
        let engine = self.engine.acting_as(Acting { roles: rights.caller.roles().join(","), right });
        Self { engine, rights, admission: self.admission.clone(), stop }
    }

    /// Whether the call may be made for that node; of one that the settings do not know any more only the name counts.
    pub(crate) fn sees(&self, node: &NodeId) -> bool {
        self.rights.may(node, &self.labels(node))
    }

    /// Whether the caller may be told that there is that node: it may look at it, or make the call for it.
    pub(crate) fn knows(&self, node: &NodeId) -> bool {
        let labels = self.labels(node);
        self.rights.caller.may(Role::Viewer, node, &labels) || self.rights.may(node, &labels)
    }

    /// Whether the caller may be told of any node.
    pub(crate) fn knows_all(&self) -> bool {
        self.rights.caller.has_everywhere(Role::Viewer)
    }

    /// Tells of a call for a node of which the caller is told nothing, not even that it is there.
    pub(crate) fn conceal(&self, node: &NodeId) {
        drop(self.denied(self.rights.not_for(self.rights.needs(), node)));
    }

    /// Whether the call may be made for all nodes, whichever there are.
    pub(crate) fn sees_all(&self) -> bool {
        self.rights.caller.has_everywhere(self.rights.needs())
    }

    /// Refuses the call for a node that the caller has no role for.
    pub(crate) fn may(&self, node: &NodeId) -> Result<(), Fault> {
        self.may_as(self.rights.needs(), node)
    }

    /// Refuses the call for a group that has a node for which the caller has no role.
    fn may_all_of(&self, group: &str, members: &BTreeSet<NodeId>) -> Result<(), Fault> {
        match members.iter().find(|node| !self.sees(node)) {
            None => Ok(()),
            Some(node) if self.knows(node) => self.may(node),
            // The caller named the group, and not the node: the audit alone is told which one it is.
            Some(node) => {
                self.conceal(node);
                Err(self.rights.not_for_group(self.rights.needs(), group))
            }
        }
    }

    /// Refuses what needs that role for that node.
    fn may_as(&self, role: Role, node: &NodeId) -> Result<(), Fault> {
        if self.rights.caller.may(role, node, &self.labels(node)) {
            return Ok(());
        }
        Err(self.denied(self.rights.not_for(role, node)))
    }

    /// Refuses to set a budget or a quorum aside for that node.
    pub(crate) fn may_set_aside(&self, what: &str, node: &NodeId) -> Result<(), Fault> {
        if self.rights.caller.may(OVERRIDE, node, &self.labels(node)) {
            return Ok(());
        }
        Err(self.denied(self.rights.not_aside(OVERRIDE, what, node)))
    }

    /// Whoever may decide what a fence does next, for that node, is a person; a program is a controller and no more (K9).
    pub(crate) fn is_a_person(&self, node: &NodeId) -> bool {
        self.rights.caller.may(Role::Operator, node, &self.labels(node))
    }

    /// Refuses to act on that node for a holder who is neither the caller nor one that its roles list.
    pub(crate) fn may_act_for(&self, holder: &str, node: &NodeId) -> Result<(), Fault> {
        let caller = &self.rights.caller;
        if caller.may_act_for(holder, node, &self.labels(node)) {
            return Ok(());
        }
        let message = format!(
            "{} may not act for {holder:?} on {node}: leave the holder out, or an admin lists it in `holders` of the role",
            caller.name
        );
        let fault = Fault::new(ErrorReason::HolderNotAllowed, message);
        Err(self.denied(fault.with("caller", &caller.name).with("holder", holder)))
    }

    /// Refuses to drop that hold of that node: one of a restore (S21), or of a machine that runs on it (S22), is an admin's, any other its
    /// holder's.
    pub(crate) fn may_drop(&self, holder: &str, node: &NodeId) -> Result<(), Fault> {
        if holder == picket_core::restore::HOLD || child_of(holder).is_some() {
            self.may_as(OVERRIDE, node)
        } else {
            self.may_act_for(holder, node)
        }
    }

    /// Drops it.
    pub(crate) async fn dropped(
        &self,
        node: &NodeId,
        holder: String,
        ask: Ask,
    ) -> Result<Taken, EngineError> {
        if holder == picket_core::restore::HOLD {
            return self.engine.drop_restored(node, ask).await;
        }
        if child_of(&holder).is_some() {
            return self.engine.end_childs_hold(node, holder, ask).await;
        }
        self.engine.unfence(node, holder, ask).await
    }

    /// Refuses what concerns all nodes, to whom the call is granted for some alone.
    pub(crate) fn may_everything(&self) -> Result<(), Fault> {
        if self.sees_all() {
            return Ok(());
        }
        let (caller, role) = (&self.rights.caller, self.rights.needs());
        let groups = caller.groups(role);
        let message = format!(
            "{} has the role {role} only for {}, and this concerns all nodes: name a group or a node",
            caller.name,
            groups.join(", ")
        );
        let fault = Fault::new(ErrorReason::RoleMissing, message)
            .with("caller", &caller.name)
            .with("role", role.word())
            .with_list("groups", &groups);
        Err(self.denied(fault))
    }

    fn denied(&self, fault: Fault) -> Fault {
        let call = self.rights.call.map_or("", |call| call.name);
        self.admission.guard.denied(&self.rights.origin, call, fault)
    }

    fn labels(&self, node: &NodeId) -> Arc<BTreeMap<String, String>> {
        self.engine.labels(node).unwrap_or_default()
    }

    /// What time it is.
    pub(crate) fn now(&self) -> CurrentTime {
        let clock = self.engine.clock();
        CurrentTime { wall: clock.wall(), boot: clock.boot() }
    }

    /// What is known of a node here, where this gateway leads: what it knew before, or never learned, is not the truth.
    pub(crate) fn view(&self, node: &NodeId) -> Result<NodeView, Fault> {
        self.leads()?;
        self.stored(node)
    }

    /// The same, once something was asked of it that may have been done.
    pub(crate) fn view_after(&self, node: &NodeId) -> Result<NodeView, Fault> {
        self.engine.leading().map_err(|why| errors::ended(&why))?;
        self.engine.node(node).map_err(|error| errors::engine(error, Verb::Look, node, &self.engine))
    }

    /// What is stored of a node, as this gateway last read it.
    pub(crate) fn stored(&self, node: &NodeId) -> Result<NodeView, Fault> {
        self.tells()?;
        self.engine.node(node).map_err(|error| errors::engine(error, Verb::Look, node, &self.engine))
    }

    /// What a request came to before any node's task heard of it: a refusal is audited with its caller and reason.
    pub(crate) fn heard<T>(
        &self,
        caller: &AuthenticatedCaller,
        call: &str,
        came: Result<T, Fault>,
    ) -> Result<T, Fault> {
        came.inspect_err(|fault| {
            let audit = self.engine.audit();
            let mut details = json!({ "call": call, "outcome": "refused", "how": fault.message() });
            if let Some(shown) = &self.rights.origin.shown {
                details["person"] = json!(&**shown);
            }
            audit.tell_counted(Told {
                at: self.engine.clock().wall().millis(),
                who: caller.name.clone(),
                role: self.rights.caller.roles().join(","),
                what: "request".to_owned(),
                details,
                ..Told::default()
            });
        })
    }

    /// Whether this gateway leads.
    pub(crate) fn leads(&self) -> Result<(), Fault> {
        self.engine.leading().map(|_| ()).map_err(|why| errors::no_leader(&self.engine, &why))
    }

    /// A node on the wire.
    pub(crate) fn node(&self, view: &NodeView) -> v1::Node {
        self.node_under(view, self.engine.braked().as_ref())
    }

    /// The same of one of many, under the brake as it is now: it is found by looking at the whole fleet.
    pub(crate) fn node_under(&self, view: &NodeView, brake: Option<&Bar>) -> v1::Node {
        let mut node = crate::convert::node::node(view, self.now(), self.engine.leading().is_ok());
        let covering = self.engine.pauses_of(&view.plan.id);
        node.pauses =
            covering.iter().map(pauses::pause).chain(brake.into_iter().map(pauses::brake)).collect();
        if node.wait.is_none() && view.stored.record.phase == Phase::Normal {
            node.wait = self.engine.waiting_for(&view.plan.id).first().map(queue::wait_of_node);
        }
        if view.stored.record.phase == Phase::Normal {
            let bar = brake.cloned().or_else(|| self.engine.standing_bar(&view.plan.id));
            node.barred = bar.as_ref().map(outcome::limit);
        }
        node.refused_settings = self.engine.refused_settings_of(&view.plan.id).unwrap_or_default();
        self.hiding(node)
    }
}
