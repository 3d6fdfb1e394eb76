//! What was, until now: the stored records, who led, who jumped, what devices were told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use picket_core::ids::{NodeId, Term};
use picket_core::record::NodeRecord;
use picket_core::time::BootTime;
use picket_driver_sim::{Edge, SharedWorld, Verb};

use crate::far::LIFE;
use crate::rights::InForce;
use crate::scene::s;
use crate::shape::Shape;
use crate::trace::{Event, GatewayId, What};

/// The longest that a rise takes after its on.
const RISE: Duration = Duration::from_secs(31);
/// What makes the first edge of a machine that never was off.
const BIRTH: &str = "its birth";

/// What is known of one node.
#[derive(Debug)]
pub(crate) struct NodePast {
    pub(crate) record: Arc<NodeRecord>,
    /// When its generation began.
    pub(crate) generation_began: BootTime,
    /// Ons that devices carried out, of whomever of ours.
    ons: Vec<(BootTime, String)>,
}

/// Everything that was.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) shape: Arc<Shape>,
    world: SharedWorld,
    nodes: BTreeMap<NodeId, NodePast>,
    /// Who leads at the store.
    pub(crate) leader: Option<(GatewayId, Term)>,
    jumps: Vec<(BootTime, GatewayId)>,
    /// Which machine of a gateway stood still with its clocks, from when until when.
    still: Vec<(GatewayId, BootTime, BootTime)>,
    /// Who led before, and when that ended.
    led: BTreeMap<GatewayId, BootTime>,
    /// When the store last confirmed to each gateway that it leads, and that it knows the node.
    checked: BTreeMap<(GatewayId, NodeId), BootTime>,
    rights: BTreeMap<GatewayId, InForce>,
}

/// The edge that switched it on; `None`: it is off. A machine that never was off is said to be on since the beginning.
fn on_since(world: &SharedWorld, machine: &str, at: BootTime) -> Option<Edge> {
    let mut world = world.lock();
    if !world.truth(machine, at) {
        return None;
    }
    let before = world.edges(machine, at).iter().rev().find(|edge| edge.at <= at).cloned();
    Some(before.unwrap_or(Edge { at: BootTime::default(), on: true, by: BIRTH.to_owned() }))
}

impl Past {
    pub(crate) fn new(shape: Arc<Shape>, world: SharedWorld) -> Self {
        let fresh = |id: &NodeId| NodePast {
            record: Arc::new(NodeRecord::new(id.clone())),
            generation_began: BootTime::default(),
            ons: Vec::new(),
        };
        let nodes = shape.nodes.iter().map(|node| (node.id.clone(), fresh(&node.id))).collect();
        let (jumps, still) = (Vec::new(), Vec::new());
        Self {
            shape,
            world,
            nodes,
            leader: None,
            jumps,
            still,
            led: BTreeMap::new(),
            checked: BTreeMap::new(),
            rights: BTreeMap::new(),
        }
    }

    pub(crate) fn node(&self, id: &NodeId) -> &NodePast {
        self.nodes.get(id).expect("every node has a past")
    }

    /// The node's record as it is stored now.
    pub(crate) fn record(&self, id: &NodeId) -> &Arc<NodeRecord> {
        &self.node(id).record
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &Arc<NodeRecord>> {
        self.nodes.values().map(|node| &node.record)
    }

    /// The record of the node of a device.
    pub(crate) fn owner(&self, device: &str) -> &Arc<NodeRecord> {
        self.record(&self.shape.owner(device).id)
    }

    pub(crate) fn on_since(&self, node: &NodeId, at: BootTime) -> Option<Edge> {
        on_since(&self.world, node.as_str(), at)
    }

    /// Whether an on of ours made the edge.
    pub(crate) fn is_ours(&self, node: &NodeId, edge: &Edge) -> bool {
        let made = |(at, device): &(BootTime, String)| {
            *device == edge.by && *at <= edge.at && edge.at.since(*at) <= RISE
        };
        edge.by == BIRTH || self.node(node).ons.iter().any(made)
    }

    /// A wall clock jumped not long ago: what it stamped cannot be compared.
    pub(crate) fn jumped(&self, gateway: GatewayId, at: BootTime) -> bool {
        self.jumps.iter().any(|(jumped, who)| *who == gateway && at.since(*jumped) < s(120))
    }

    /// For how long between those moments the machine of a gateway stood still with its clocks.
    pub(crate) fn stood_still(&self, gateway: GatewayId, from: BootTime, to: BootTime) -> Duration {
        let own = self.still.iter().filter(|(who, _, _)| *who == gateway);
        own.map(|(_, began, ended)| (*ended).min(to).since((*began).max(from))).sum()
    }

    /// When the store gave that gateway its last word for what it sends to the node.
    pub(crate) fn checked(&self, gateway: GatewayId, node: &NodeId) -> BootTime {
        self.checked.get(&(gateway, node.clone())).copied().unwrap_or_default()
    }

    /// Whether what that caller brings about at that gateway is within its rights.
    pub(crate) fn may(&self, gateway: GatewayId, who: &str, node: &NodeId, at: BootTime) -> bool {
        self.rights.get(&gateway).is_some_and(|rights| rights.may(who, node, at))
    }

    /// Whether a gateway leads, as the store sees it.
    pub(crate) fn leads(&self, gateway: GatewayId) -> bool {
        self.leader.is_some_and(|(leader, _)| leader == gateway)
    }

    /// Whether a gateway may believe that it leads: it does; or its clocks stood still, and by them its lease is not over
    /// (`safety.md`, "What remains": a stale off of it may still land).
    pub(crate) fn may_think_it_leads(&self, gateway: GatewayId, at: BootTime) -> bool {
        if self.leads(gateway) {
            return true;
        }
        let Some(ended) = self.led.get(&gateway) else { return false };
        // From before the end: that is noted when somebody asks the store, which may be after it went on.
        let before = BootTime::from_boot(ended.since_boot().saturating_sub(LIFE * 2));
        let lost = self.stood_still(gateway, before, at);
        !lost.is_zero() && at.since(*ended).saturating_sub(lost) <= LIFE
    }

    /// Whether the machine of any gateway stood still within so long before that moment.
    pub(crate) fn any_stood_still(&self, at: BootTime, within: Duration) -> bool {
        self.still.iter().any(|(_, _, ended)| *ended + within >= at)
    }

    pub(crate) fn take(&mut self, event: &Event) {
        match &event.what {
            What::Won { gateway, term } => self.leader = Some((*gateway, *term)),
            What::Lapsed { term, .. } => {
                if let Some((gateway, _)) = self.leader.take_if(|(_, led)| led == term) {
                    self.led.insert(gateway, event.at);
                }
            }
            What::Stopped { gateway, until, machine: true } => {
                self.still.push((*gateway, event.at, *until));
            }
            What::Stored { record, .. } => {
                if let Some(node) = self.nodes.get_mut(&record.node) {
                    if node.record.generation != record.generation {
                        node.generation_began = event.at;
                    }
                    node.record = record.clone();
                }
            }
            What::Heard(heard) if heard.verb == Verb::On && heard.executed => {
                let id = self.shape.owner(&heard.device).id.clone();
                if let Some(node) = self.nodes.get_mut(&id) {
                    node.ons.push((heard.at, heard.device.clone()));
                }
            }
            What::WentOn { gateway } => {
                let own = self.still.iter_mut().filter(|(who, _, _)| who == gateway);
                own.for_each(|(_, _, until)| *until = (*until).min(event.at));
            }
            What::Checked { gateway, node } => {
                self.checked.insert((*gateway, node.clone()), event.at);
            }
            What::Rights { gateway, rights, hold } => {
                let own = self.rights.entry(*gateway).or_default();
                match hold {
                    false => own.begin(rights),
                    true => own.hold(rights, event.at),
                }
            }
            What::Jumped { gateway } => self.jumps.push((event.at, *gateway)),
            _ => {}
        }
    }
}
