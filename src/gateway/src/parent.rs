//! `driver = "parent"`: the node runs on another machine, which is a node itself (S22). No driver of its own: what it asks are
//! another device of the node, and the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use picket_config::{DeviceSettings, Fault, NodeSettings};
use picket_core::device::Grade;
use picket_core::ids::{DeviceId, NodeId};
use picket_core::near::did_you_mean;
use picket_driver::{PowerDriver, SettingFault};
use picket_engine::{CLOUD_LABEL, NodePlan, PARENT_LABEL, ParentDriver, ParentSettings, Parents, called};
use serde_json::{Map, Value};

/// Its name in the settings.
pub(crate) const NAME: &str = "parent";

/// Its keys:
///
/// - `placement`: the device of the same node that tells on which machine it runs; where only one can, that one.
/// - `node`: the only node on which it may run; without it, the one that has the name of the machine, or the label
///   `hypervisor` with it.
/// - `grade`: `"hypervisor"` (default): the parent's own evidence must be as good; `"learned"`, `"claimed"`: less is enough, and so is told.
const KEYS: [&str; 3] = ["placement", "node", "grade"];

/// What the table says.
#[derive(Debug)]
pub(crate) struct Table {
    placement: Option<DeviceId>,
    node: Option<NodeId>,
    grade: Grade,
}

/// Reads the table, all faults at once.
pub(crate) fn read(settings: &Map<String, Value>) -> Result<Table, Vec<SettingFault>> {
    let mut faults = Vec::new();
    for key in settings.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        faults.push(SettingFault::new(key.clone(), format!("unknown key; known are {}", KEYS.join(", "))));
    }
    let mut text = |key: &str| match settings.get(key) {
        None => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => {
            faults.push(SettingFault::new(key, format!("expected a name in quotes, found {other}")));
            None
        }
    };
    let (placement, node, grade) = (text("placement"), text("node"), text("grade"));
    let placement = placement.and_then(|name| {
        DeviceId::new(&name)
            .map_err(|error| faults.push(SettingFault::new("placement", error.to_string())))
            .ok()
    });
    let node = node.and_then(|name| {
        NodeId::new(&name).map_err(|error| faults.push(SettingFault::new("node", error.to_string()))).ok()
    });
    let grade = match grade.as_deref() {
        None | Some("hypervisor") => Grade::Hypervisor,
        Some("learned") => Grade::Learned,
        Some("claimed") => Grade::Claimed,
        Some(other) => {
            let right = "\"hypervisor\", or \"learned\" or \"claimed\" where less is enough of the parent's own evidence";
            faults.push(SettingFault::new("grade", format!("{other:?} is none here: expected {right}")));
            Grade::Hypervisor
        }
    };
    if faults.is_empty() { Ok(Table { placement, node, grade }) } else { Err(faults) }
}

/// The parent of a node whose other devices have these drivers.
pub(crate) fn make(
    parents: &Arc<Parents>,
    node: &NodeSettings,
    device: &DeviceSettings,
    drivers: &BTreeMap<DeviceId, Arc<dyn PowerDriver>>,
    nodes: &BTreeMap<NodeId, NodeSettings>,
) -> Result<Arc<dyn PowerDriver>, Vec<SettingFault>> {
    let table = read(&device.settings)?;
    let mut faults = Vec::new();
    if let Some(named) = &table.node {
        faults.extend(wrong_node(&node.id, named, nodes).map(|message| SettingFault::new("node", message)));
    }
    let places = match places(table.placement.as_ref(), node, drivers) {
        Ok(places) => Some(places),
        Err(message) => {
            faults.push(SettingFault::new("placement", message));
            None
        }
    };
    let Some(places) = places.filter(|_| faults.is_empty()) else { return Err(faults) };
    let settings = ParentSettings { child: node.id.clone(), node: table.node, grade: table.grade };
    Ok(Arc::new(ParentDriver::new(parents, settings, places)))
}

/// Nodes that clouds would call by one name, where any node has a parent: which of them a machine runs on would not be known.
pub(crate) fn twice_called(nodes: &BTreeMap<NodeId, NodeSettings>) -> Vec<Fault> {
    let has_parent = |node: &NodeSettings| node.devices.values().any(|device| is_parent(device));
    if !nodes.values().any(has_parent) {
        return Vec::new();
    }
    let mut known: BTreeMap<&str, Vec<(Option<&String>, &NodeId)>> = BTreeMap::new();
    let mut faults = Vec::new();
    // A label names its node; whoever has none is called by its own name.
    let (labelled, plain): (Vec<_>, Vec<_>) =
        nodes.values().partition(|node| node.labels.contains_key(PARENT_LABEL));
    for node in plain.into_iter().chain(labelled) {
        let name = called(&node.id, &node.labels);
        let (cloud, of_that_name) = (node.labels.get(CLOUD_LABEL), known.entry(name).or_default());
        // Two that say whose name they bear are told apart by that.
        let is_alike =
            |(of, _): &&(Option<&String>, &NodeId)| of.is_none() || cloud.is_none() || *of == cloud;
        let other = of_that_name.iter().find(is_alike).map(|(_, other)| *other);
        of_that_name.push((cloud, &node.id));
        if let Some(other) = other {
            let message = format!(
                "{PARENT_LABEL} = {name:?} is what {other} is called too: of two machines of one name it is not known on which one a \
                 node runs"
            );
            faults.push(node.fault("labels", &message));
        }
    }
    faults
}

/// Nodes that are said to be a cloud's of which no device is: nothing would be found on them.
pub(crate) fn of_no_cloud(nodes: &BTreeMap<NodeId, NodeSettings>, plans: &[NodePlan]) -> Vec<Fault> {
    let clouds = plans.iter().flat_map(|plan| plan.drivers.values()).filter_map(|driver| driver.cloud());
    let clouds: BTreeSet<String> = clouds.collect();
    let labelled = nodes.values().filter_map(|node| Some((node, node.labels.get(CLOUD_LABEL)?)));
    let wrong = labelled.filter(|(_, of)| !clouds.is_empty() && !clouds.contains(*of));
    let right = clouds.iter().map(|cloud| format!("{cloud:?}")).collect::<Vec<_>>().join(" or ");
    wrong
        .map(|(node, of)| {
            node.fault(
                "labels",
                &format!("{CLOUD_LABEL} = {of:?} is no cloud of these settings: expected {right}"),
            )
        })
        .collect()
}

fn is_parent(device: &DeviceSettings) -> bool {
    device.driver == NAME
}

fn wrong_node(child: &NodeId, named: &NodeId, nodes: &BTreeMap<NodeId, NodeSettings>) -> Option<String> {
    if child == named {
        return Some("a node cannot run on itself: name the machine on which it runs".to_owned());
    }
    match nodes.get(named) {
        None => {
            let offer = did_you_mean(named.as_str(), nodes.keys().map(NodeId::as_str));
            Some(format!("there is no node {named}: a parent is a node itself, with its own devices{offer}"))
        }
        Some(parent) if parent.devices.values().any(|device| is_parent(device)) => Some(format!(
            "{named} has a parent of its own: a machine that is fenced for another one must be fenced by its own devices"
        )),
        Some(_) => None,
    }
}

/// The device that tells where the node runs.
fn places(
    named: Option<&DeviceId>,
    node: &NodeSettings,
    drivers: &BTreeMap<DeviceId, Arc<dyn PowerDriver>>,
) -> Result<Arc<dyn PowerDriver>, String> {
    let tell = || drivers.iter().filter(|(_, driver)| driver.tells_placement());
    let known: Vec<&str> = tell().map(|(id, _)| id.as_str()).collect();
    let right = match known.as_slice() {
        [] => "no device of the node does: a cloud's does, a BMC does not".to_owned(),
        known => format!("of the node's devices {}", known.join(", ")),
    };
    let Some(named) = named else {
        return match (tell().next(), known.len()) {
            (Some((_, only)), 1) => Ok(only.clone()),
            _ => Err(format!("is missing: which device tells on which machine the node runs; {right}")),
        };
    };
    match drivers.get(named) {
        Some(driver) if driver.tells_placement() => Ok(driver.clone()),
        Some(_) => Err(format!("the device {named} does not tell on which machine the node runs; {right}")),
        None => {
            let offer = did_you_mean(named.as_str(), node.devices.keys().map(DeviceId::as_str));
            Err(format!("the node has no device {named}{offer}"))
        }
    }
}
