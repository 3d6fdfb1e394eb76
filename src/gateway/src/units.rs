//! Which devices of the fleet share what, and how much that bears.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use picket_config::{Fault, NodeSettings};
use picket_core::ids::{DeviceId, NodeId};
use picket_core::time::written;
use picket_driver::Shared;
use picket_engine::{NodePlan, Unit, UnitLimits};

/// The units that are in use, one for each name. A reload goes on with them: whoever has a turn there keeps it, and a node whose
/// settings are the old ones takes turns with those that have new ones.
#[derive(Debug, Default)]
pub(crate) struct Units(Mutex<BTreeMap<String, Weak<Unit>>>);

/// What stands at one unit.
#[derive(Debug, Default)]
struct Users {
    devices: Vec<(NodeId, DeviceId)>,
    /// As their drivers say.
    bears: usize,
    is_cloud: bool,
    at_once: Option<(u32, NodeId)>,
    pause: Option<(Duration, NodeId)>,
}

/// What the settings say of the units. Holds from [`NewLimits::take`] on, and not before: settings may yet be refused.
#[derive(Debug, Default)]
#[must_use = "units keep to their old limits until it is taken"]
pub(crate) struct NewLimits(Vec<(Arc<Unit>, UnitLimits, BTreeSet<NodeId>)>);

impl NewLimits {
    pub(crate) fn take(self) {
        for (unit, limits, nodes) in self.0 {
            unit.change(limits, nodes);
        }
    }
}

impl Units {
    /// Gives each node the units at which its devices are; also where it is alone there: others may come, and its settings stay.
    pub(crate) fn assign(
        &self,
        plans: &mut [NodePlan],
        nodes: &BTreeMap<NodeId, NodeSettings>,
        faults: &mut Vec<Fault>,
    ) -> NewLimits {
        let mut all: BTreeMap<String, Users> = BTreeMap::new();
        for plan in plans.iter() {
            let Some(node) = nodes.get(&plan.id) else { continue };
            for (id, driver) in &plan.drivers {
                let Some(device) = node.devices.get(id) else { continue };
                let limited = device.at_once.is_some() || device.pause.is_some();
                let shared = driver.shares();
                let own = || {
                    let name = driver.traits().endpoint.clone();
                    limited.then_some(Shared { name, at_once: 1, each_for_itself: false })
                };
                let Some(Shared { name, at_once, each_for_itself }) = shared.or_else(own) else {
                    continue;
                };
                let users = all.entry(name.clone()).or_default();
                users.bears = users.bears.max(at_once);
                users.is_cloud |= each_for_itself;
                let at_once = differs(&mut users.at_once, device.at_once, &plan.id);
                let pause = differs(&mut users.pause, device.pause, &plan.id);
                let at_once =
                    at_once.map(|(is, was, other)| ("at_once", is.to_string(), was.to_string(), other));
                let pause = pause.map(|(is, was, other)| ("pause", written(is), written(was), other));
                for (key, is, was, other) in at_once.into_iter().chain(pause) {
                    let message =
                        format!("is {is} for {name}, and {was} at {other}: what nodes share has one limit");
                    faults.push(device.fault(key, message));
                }
                users.devices.push((plan.id.clone(), id.clone()));
            }
        }
        let mut units: BTreeMap<(NodeId, DeviceId), Arc<Unit>> = BTreeMap::new();
        let mut limits = NewLimits::default();
        self.0.lock().retain(|_, unit| unit.strong_count() > 0);
        for (name, users) in all {
            let nodes: BTreeSet<NodeId> = users.devices.iter().map(|(node, _)| node.clone()).collect();
            let at_once =
                users.at_once.map_or(users.bears, |(set, _)| usize::try_from(set).unwrap_or(1)).max(1);
            let pause = users.pause.map_or(Duration::ZERO, |(pause, _)| pause);
            let new = UnitLimits { at_once, pause };
            let unit = self.of(&name, new, users.is_cloud);
            limits.0.push((unit.clone(), new, nodes));
            units.extend(users.devices.into_iter().map(|whose| (whose, unit.clone())));
        }
        for plan in plans {
            let NodePlan { spec, drivers, units: of_plan, .. } = plan;
            let unit = |id: &DeviceId| Some((id.clone(), units.remove(&(spec.id.clone(), id.clone()))?));
            of_plan.extend(drivers.keys().filter_map(unit));
        }
        limits
    }

    fn of(&self, name: &str, limits: UnitLimits, is_cloud: bool) -> Arc<Unit> {
        let mut known = self.0.lock();
        known.get(name).and_then(Weak::upgrade).unwrap_or_else(|| {
            let unit = Arc::new(match is_cloud {
                true => Unit::of_cloud(name, limits),
                false => Unit::new(name, limits),
            });
            known.insert(name.to_owned(), Arc::downgrade(&unit));
            unit
        })
    }
}

/// What is set here, what another one set, and who; the first word counts. `None`: nothing else was said before.
fn differs<T: Copy + PartialEq>(
    known: &mut Option<(T, NodeId)>,
    set: Option<T>,
    node: &NodeId,
) -> Option<(T, T, NodeId)> {
    let is = set?;
    let (was, other) = known.get_or_insert_with(|| (is, node.clone()));
    (*was != is).then(|| (is, *was, other.clone()))
}
