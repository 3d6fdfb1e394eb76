//! Which nodes there are, and the plan by which each of them is worked: settings change while fences are
//! open.
//!
//! # Invariants
//!
//! - A slot's plan never changes: another plan is another slot, and its task begins once the old one has
//!   ended.
//! - A node that is not Normal keeps the devices of its fence. Where the settings have others, or none, it
//!   is an orphan, to which nothing is sent. Shown by
//!   `a_node_whose_device_is_elsewhere_since_is_an_orphan_and_one_that_is_at_rest_is_not`.
//! - An orphan's machine is no other node's, by the addresses of its devices or by its identity. Shown by
//!   `what_keeps_an_orphan_off_is_nobody_elses_under_another_name`,
//!   `an_orphan_s_machine_is_known_by_its_identity_under_another_name_and_address`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use picket_core::groups::Groups;
use picket_core::ids::{NodeId, Revision, Version};
use picket_core::record::{NodeRecord, Phase};
use picket_core::store::Stored;
use picket_core::topology::Topology;
use tokio::sync::{Mutex, watch};

use super::{Engine, Shared};
use crate::looks::Looks;
use crate::node::{self, Kept, Mailbox};
use crate::own::Own;
use crate::parts::{NodePlan, Parts};
use crate::spec::NodeSpec;
use crate::view::{Live, NodeView};

/// Requests that may wait for one node's task.
const MAILBOX: usize = 64;

/// What stays of a node while leaderships come and go.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) plan: Arc<NodePlan>,
    /// The rules, and whatever else it works by, as they were when it got its plan.
    pub(super) parts: Arc<Parts>,
    /// Why nothing is sent to it.
    pub(super) orphan: Option<String>,
    pub(super) mailbox: Mailbox,
    /// Taken by the node's task while this gateway leads.
    pub(super) kept: Arc<Mutex<Kept>>,
    pub(super) view: Arc<watch::Sender<NodeView>>,
    pub(super) looks: Looks,
}

/// The fleet as the settings have it, and the nodes that are worked.
#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) parts: Arc<Parts>,
    pub(super) plans: BTreeMap<NodeId, Arc<NodePlan>>,
    /// Devices of several clouds tell where machines run.
    pub(super) has_several_clouds: bool,
    /// Another one with every change.
    pub(super) groups: Arc<Groups>,
    pub(super) slots: BTreeMap<NodeId, Arc<Slot>>,
    /// Where devices of orphans are: what is there is kept off for them, whatever the settings call it now.
    claims: BTreeMap<String, NodeId>,
}

impl Fleet {
    pub(super) fn new(mut parts: Parts) -> Self {
        let plans =
            std::mem::take(&mut parts.nodes).into_iter().map(|plan| (plan.id.clone(), Arc::new(plan)));
        let (plans, parts): (BTreeMap<NodeId, Arc<NodePlan>>, _) = (plans.collect(), Arc::new(parts));
        let slots = plans.iter().map(|(id, plan)| {
            let stored = Arc::new(never_stored(id));
            (id.clone(), Arc::new(Slot::new(plan.clone(), parts.clone(), None, stored)))
        });
        let slots = slots.collect();
        let (groups, has_several_clouds) = (grouped(&plans), has_several_clouds(&plans));
        Self { parts, plans, has_several_clouds, groups, slots, claims: BTreeMap::new() }
    }

    pub(super) fn change(&mut self, plans: BTreeMap<NodeId, Arc<NodePlan>>, parts: Arc<Parts>) {
        (self.groups, self.has_several_clouds) = (grouped(&plans), has_several_clouds(&plans));
        (self.plans, self.parts) = (plans, parts);
    }

    /// The slot of a node, as its record and the settings want it now. `None`: it left the settings, and nothing of it
    /// is open.
    fn seat(&mut self, stored: &Arc<Stored>) -> Option<Arc<Slot>> {
        let record = &stored.record;
        self.claims.retain(|_, node| *node != record.node);
        let planned = self.plans.get(&record.node);
        let mut orphan = orphaned(record, planned.map(|plan| &**plan));
        let fenced = record.fence.as_ref().filter(|_| orphan.is_some());
        let identities = fenced.map(|fence| record.identities(&fence.topology)).unwrap_or_default();
        self.parts.twins.keeps_off(&record.node, identities);
        if orphan.is_some() {
            let addresses = record.fence.iter().flat_map(|fence| fence.topology.addresses().values());
            self.claims.extend(addresses.map(|address| (address.clone(), record.node.clone())));
        } else if let Some(plan) = planned {
            let claimed = plan.topology.addresses().values().find_map(|at| Some((at, self.claims.get(at)?)));
            orphan = claimed.map(|(address, other)| {
                format!("its device is {address}, which keeps the orphan {other} off: retire that one, then reload")
            });
            // By another address, or another driver, it is the same machine. A node that is kept off itself is not renamed: two boards
            // may say the same.
            if orphan.is_none() && record.phase == Phase::Normal {
                let known = record.identities(&plan.topology);
                let kept_off = known.iter().find_map(|identity| self.parts.twins.kept_off_by(identity));
                orphan = kept_off.map(|machine| format!("it is {machine}"));
            }
        }
        let old = self.slots.get(&record.node);
        let plan = match (planned, &orphan) {
            (Some(plan), None) => plan.clone(),
            (None, None) => {
                self.slots.remove(&record.node);
                self.parts.twins.forget(&record.node);
                return None;
            }
            (_, Some(why)) => match old {
                Some(old) if old.orphan.as_ref() == Some(why) => old.plan.clone(),
                _ => Arc::new(of_record(record, planned.map(|plan| &**plan))),
            },
        };
        if let Some(old) = old.filter(|old| !Arc::ptr_eq(&old.plan, &plan)) {
            self.parts.twins.moved(&record.node, &old.plan.topology, &plan.topology);
        }
        // What is retired has no machine any more.
        for spec in plan.topology.hosts().filter(|_| record.phase != Phase::Retired) {
            self.parts.twins.expects(&record.node, &spec.id, record.expected(spec).identity);
        }
        let slot = match old {
            Some(old) if Arc::ptr_eq(&old.plan, &plan) && Arc::ptr_eq(&old.parts, &self.parts) => {
                return Some(old.clone());
            }
            // Whoever waits in the mailbox, or follows the node, is served by the new task.
            Some(old) => Slot {
                plan,
                parts: self.parts.clone(),
                orphan,
                mailbox: old.mailbox.clone(),
                kept: old.kept.clone(),
                view: old.view.clone(),
                looks: Looks::default(),
            },
            None => Slot::new(plan, self.parts.clone(), orphan, stored.clone()),
        };
        let slot = Arc::new(slot);
        self.slots.insert(record.node.clone(), slot.clone());
        Some(slot)
    }
}

impl Slot {
    /// Whether this gateway stands on it.
    pub(super) fn is_own_host(&self, own: &Own) -> bool {
        self.plan.own_host || own.is(&self.plan, &self.view.borrow().stored.record, &self.parts.twins)
    }

    fn new(plan: Arc<NodePlan>, parts: Arc<Parts>, orphan: Option<String>, stored: Arc<Stored>) -> Self {
        let (mailbox, inbox) = node::mailbox(MAILBOX);
        let live = Live { orphaned: orphan.clone(), ..Live::default() };
        let view = NodeView { stored, live: Arc::new(live), plan: plan.clone() };
        Slot {
            plan,
            parts,
            orphan,
            mailbox,
            kept: Arc::new(Mutex::new(Kept::new(inbox))),
            view: Arc::new(watch::Sender::new(view)),
            looks: Looks::default(),
        }
    }
}

impl Shared {
    pub(super) fn fleet(&self) -> RwLockReadGuard<'_, Fleet> {
        self.fleet.read()
    }
}

impl Engine {
    pub(super) fn fleet(&self) -> RwLockReadGuard<'_, Fleet> {
        self.shared.fleet()
    }

    pub(super) fn fleet_mut(&self) -> RwLockWriteGuard<'_, Fleet> {
        self.shared.fleet.write()
    }

    /// See [`Fleet::seat`]. An orphan is told, loudly: a person must decide.
    pub(super) fn seat(&self, stored: &Arc<Stored>) -> Option<Arc<Slot>> {
        let before = self.fleet().slots.get(&stored.record.node).and_then(|slot| slot.orphan.clone());
        let slot = self.fleet_mut().seat(stored)?;
        if let Some(why) = slot.orphan.as_ref().filter(|why| before.as_ref() != Some(why)) {
            let record = &stored.record;
            let fence = record.fence.as_ref().map(|fence| fence.id.to_string());
            tracing::error!(
                node = %record.node,
                fence,
                generation = record.generation.0,
                phase = record.phase.label(),
                why,
                "ORPHANED: nothing is sent to the node; put its settings back, or retire it"
            );
        }
        Some(slot)
    }

    /// What was last seen of a node.
    pub(super) fn last_seen(&self, node: &NodeId) -> Arc<Stored> {
        let seen = self.fleet().slots.get(node).map(|slot| slot.view.borrow().stored.clone());
        seen.unwrap_or_else(|| Arc::new(never_stored(node)))
    }
}

fn has_several_clouds(plans: &BTreeMap<NodeId, Arc<NodePlan>>) -> bool {
    let clouds = plans.values().flat_map(|plan| plan.drivers.values()).filter_map(|driver| driver.cloud());
    clouds.collect::<BTreeSet<_>>().len() > 1
}

fn grouped(plans: &BTreeMap<NodeId, Arc<NodePlan>>) -> Arc<Groups> {
    Arc::new(Groups::of_nodes(plans.values().map(|plan| (&plan.id, &*plan.groups))))
}

pub(super) fn never_stored(node: &NodeId) -> Stored {
    Stored { version: Version(0), revision: Revision(0), record: NodeRecord::new(node.clone()) }
}

/// Why a node cannot be worked by that plan, if it cannot.
pub(super) fn orphaned(record: &NodeRecord, plan: Option<&NodePlan>) -> Option<String> {
    if matches!(record.phase, Phase::Normal | Phase::Retired) {
        return None;
    }
    match plan {
        None => Some("the node is not in the settings any more".to_owned()),
        Some(plan) => record.fence.as_ref()?.topology.elsewhere(&plan.topology),
    }
}

/// What is known of an orphan: its devices as its fence had them, and no way to reach them.
fn of_record(record: &NodeRecord, planned: Option<&NodePlan>) -> NodePlan {
    let topology = record.fence.as_ref().map_or_else(Topology::none, |fence| fence.topology.clone());
    let spec = NodeSpec::new(record.node.clone(), topology);
    let Some(planned) = planned else { return NodePlan::of(spec) };
    let spec = NodeSpec {
        provider_id: planned.provider_id.clone(),
        fenced_for: planned.fenced_for.clone(),
        labels: planned.labels.clone(),
        groups: planned.groups.clone(),
        paces: planned.paces.clone(),
        ..spec
    };
    // By these what the releases of its fence set up is taken away, and nothing is let go.
    NodePlan { releases: planned.releases.clone(), ..NodePlan::of(spec) }
}
