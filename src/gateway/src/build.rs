//! From checked settings to the engine's parts. What drivers and releasers find wrong is told all at once.

mod clouds;
mod releases;
mod remarks;
mod simulated;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use picket_config::{DeviceSettings, Fault, Faults, Grouping, Kinded, Nature, NodeSettings, Settings};
use picket_core::device::{DeviceClass, DeviceSpec};
use picket_core::ids::{DeviceId, NodeId, ReleaseId};
use picket_core::time::written;
use picket_core::topology::{Level, Topology};
use picket_driver::{Context, PowerDriver, SettingFault};
use picket_engine::{NodePlan, NodeSpec, Own, Paces};
use picket_release::{ForNode, Releaser, unmade};
use picket_server::Tls;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::drivers::Drivers;
use crate::parent;
use crate::sources::{self, Sources};
use crate::units::NewLimits;

pub(crate) use simulated::Simulated;

/// The drivers that a build may leave out.
const LEFT_OUT: [&str; 6] = ["agent", "aws", "gcp", "ipmi", "openstack", "redfish"];

/// What is made of checked settings.
#[derive(Debug)]
pub(crate) struct BuiltParts {
    /// The fleet.
    pub(crate) nodes: Vec<NodePlan>,
    /// The certificates of its listeners.
    pub(crate) tls: Option<Tls>,
    /// What its devices share.
    pub(crate) limits: NewLimits,
    /// Why it is simulated; `None`: its devices are real (S1).
    pub(crate) simulated: Option<Simulated>,
    /// Who is asked on which node the gateway stands.
    pub(crate) own: Own,
    /// What is to be said of it that is no fault.
    pub(crate) remarks: Vec<String>,
}

/// The fleet of these settings, and the certificates of its listeners. Sends nothing, and changes nothing of what runs. `told` is what is
/// wrong with them already.
pub(crate) fn all(
    settings: &Settings,
    told: Faults,
    context: &Context,
    drivers: &Drivers,
) -> Result<BuiltParts, Faults> {
    let mut faults = Vec::new();
    let tls = crate::access_settings::tls(settings, &mut faults);
    let releasers = releases::made(settings, &mut faults);
    let own = releases::who_tells_where_it_stands(settings, &releasers);
    let simulated = simulated::of(settings, &drivers.kinds, &mut faults);
    let sources = sources::read(&settings.groups, &mut faults);
    let mut builder = Builder {
        made_of: drivers,
        nodes: &settings.nodes,
        context,
        releasers,
        endpoints: BTreeMap::new(),
        alone: BTreeMap::new(),
        grouping: &settings.groups,
        groups: settings.groups.members().by_node(),
        alike: BTreeSet::new(),
        paces: Arc::default(),
        simulated: simulated.is_some(),
        sources,
        is_whole: told.is_empty(),
        faults: &mut faults,
    };
    let is_asked = own.is_asked();
    let mut nodes: Vec<NodePlan> = settings
        .nodes
        .values()
        .filter_map(|node| {
            let mut plan = builder.node(node)?;
            let own_host = releases::stands_on(&settings.gateway, &plan, is_asked);
            Arc::make_mut(&mut plan.spec).own_host = own_host;
            plan.mark = mark(settings, node, &plan);
            Some(plan)
        })
        .collect();
    builder.samples(&settings.samples);
    faults.extend(parent::twice_called(&settings.nodes));
    faults.extend(parent::of_no_cloud(&settings.nodes, &nodes));
    let limits = drivers.units.assign(&mut nodes, &settings.nodes, &mut faults);
    // What is wrong with a text is told once: a driver that cannot read it either says nothing new.
    faults.retain(|fault| told.all().iter().all(|told| told.place != fault.place));
    faults.extend(told);
    if faults.is_empty() {
        let remarks = remarks::of(settings, &nodes, simulated);
        Ok(BuiltParts { nodes, tls, limits, simulated, own, remarks })
    } else {
        Err(Faults::new(faults))
    }
}

/// A digest of all that a plan is made of, so that a reload knows which nodes have other settings. Holds no secret: nor do settings.
fn mark(settings: &Settings, node: &NodeSettings, plan: &NodePlan) -> String {
    let devices = node.devices.values().map(|device| files(&device.settings));
    let named = releases(settings, node).chain(sources_of(settings, plan)).map(|how| files(&how.settings));
    let all = json!({
        "alike": alike(settings, node, plan),
        "files": devices.chain(named).collect::<Vec<_>>(),
        "own_host": plan.own_host,
    });
    // It is only ever compared, and kept for as long as the node is.
    Sha256::digest(all.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the settings say of a node, on whichever machine they are read.
pub(crate) fn alike(settings: &Settings, node: &NodeSettings, plan: &NodePlan) -> serde_json::Value {
    let devices = node.devices.iter().map(|(id, device)| {
        let limits = [
            device.at_once.map(|calls| calls.to_string()),
            device.pause.map(written),
            device.retry.map(written),
        ];
        let plain = json!([device.driver, device.settings]);
        let whole = match limits.iter().all(Option::is_none) {
            true => plain,
            false => json!([device.driver, device.settings, limits]),
        };
        (id.to_string(), whole)
    });
    let of = |how: &Kinded| json!([how.kind, how.settings]);
    let mut all = json!({
        "topology": plan.topology,
        "devices": devices.collect::<serde_json::Map<_, _>>(),
        "releases": node.releases.iter().map(ToString::to_string).zip(releases(settings, node).map(of)).collect::<Vec<_>>(),
        "liveness": sources_of(settings, plan).map(of).collect::<Vec<_>>(),
        "labels": plan.labels,
        "groups": plan.groups,
        "drills": plan.drills,
        "provider_id": plan.provider_id,
    });
    // Where it is not set, the settings are alike for a gateway that does not know it yet.
    if !plan.fenced_for.is_empty() {
        all["fenced_for"] = json!(plan.fenced_for);
    }
    all
}

fn releases<'a>(settings: &'a Settings, node: &'a NodeSettings) -> impl Iterator<Item = &'a Kinded> {
    node.releases.iter().filter_map(|id| settings.releases.get(id)).map(|release| &release.how)
}

fn sources_of<'a>(settings: &'a Settings, plan: &'a NodePlan) -> impl Iterator<Item = &'a Kinded> {
    let groups = plan.groups.iter().filter_map(|name| settings.groups.settings().get(name));
    groups.filter_map(|group| group.rules.liveness.as_ref())
}

/// The files that these settings name, as they stand on the disk: a secret that was replaced is another one. What is in
/// them is not looked at.
fn files(settings: &serde_json::Map<String, serde_json::Value>) -> Vec<serde_json::Value> {
    let named = settings.iter().filter(|(key, _)| key.ends_with("_file"));
    let found = named.filter_map(|(_, path)| std::fs::metadata(path.as_str()?).ok());
    found
        .map(|file| {
            json!([file.ino(), file.size(), file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()])
        })
        .collect()
}

struct Builder<'a> {
    made_of: &'a Drivers,
    /// All nodes of the settings.
    nodes: &'a BTreeMap<NodeId, NodeSettings>,
    context: &'a Context,
    releasers: BTreeMap<ReleaseId, Arc<dyn Releaser>>,
    /// Which device has which endpoint: two nodes with one BMC would be fenced for one another.
    endpoints: BTreeMap<String, String>,
    /// Which device takes whatever is the only one at a place.
    alone: BTreeMap<String, String>,
    /// What says whether the nodes of a group recovered.
    sources: Sources,
    /// The rules of groups.
    grouping: &'a Grouping,
    /// In which groups each node is.
    groups: BTreeMap<NodeId, BTreeSet<String>>,
    /// Nodes that are in the same ones share them.
    alike: BTreeSet<Arc<BTreeSet<String>>>,
    /// All nodes have the same ones.
    paces: Arc<Paces>,
    /// Its devices switch no real machine (S1).
    simulated: bool,
    /// The settings had no fault before: what is missing of a level was not told yet.
    is_whole: bool,
    faults: &'a mut Vec<Fault>,
}

impl Builder<'_> {
    fn node(&mut self, node: &NodeSettings) -> Option<NodePlan> {
        // All of them first, so that the faults of all are told.
        let (parent, own): (Vec<_>, Vec<_>) = node
            .devices
            .keys()
            .partition(|id| node.devices.get(*id).is_some_and(|one| one.driver == parent::NAME));
        let mut drivers: BTreeMap<DeviceId, Arc<dyn PowerDriver>> =
            own.into_iter().filter_map(|id| Some((id.clone(), self.driver(node, id)?))).collect();
        self.parent(node, &parent, &mut drivers);
        self.faults.extend(clouds::misnamed(node, &drivers));
        let spec = |id: &DeviceId| {
            let driver = drivers.get(id)?;
            let traits = driver.traits();
            let spec = node.devices.get(id)?.spec(Nature {
                class: traits.class,
                grade: traits.grade,
                has_epochs: traits.has_epochs,
                max_in_flight: traits.max_in_flight,
                call: traits.call,
            });
            let max_in_flight = driver.max_in_flight(spec.call);
            let identity = if spec.identity.is_empty() { driver.names() } else { spec.identity.clone() };
            Some(DeviceSpec { max_in_flight, identity, ..spec })
        };
        let levels = node.levels.iter().map(|level| {
            let mut devices = level.iter().map(spec).collect::<Option<Vec<_>>>()?;
            // It stays for as long as the node does.
            devices.shrink_to_fit();
            Some(Level { devices })
        });
        let mut levels = levels.collect::<Option<Vec<_>>>()?;
        levels.shrink_to_fit();
        let topology = Topology::new(levels)
            .map_err(|wrong| {
                if self.is_whole {
                    self.faults.extend(wrong.iter().map(|fault| node.fault("levels", &fault.to_string())));
                }
            })
            .ok()?;
        for level in topology.levels() {
            self.alone(node, level, &drivers);
        }
        let addresses = drivers.iter().map(|(id, driver)| (id.clone(), driver.traits().endpoint.clone()));
        let topology = topology.at(addresses.collect()).of_simulated(self.simulated);
        let whose = ForNode { id: &node.id, provider_id: node.provider_id.as_deref(), devices: &drivers };
        let (releases, wrong) = releases::of_node(&node.releases, &self.releasers, &whose);
        self.faults.extend(wrong.iter().map(|wrong| node.fault("releases", wrong)));
        let groups = Arc::new(self.groups.remove(&node.id).unwrap_or_default());
        let groups = self.alike.get(&groups).cloned().unwrap_or(groups);
        self.alike.insert(groups.clone());
        let spec = NodeSpec {
            provider_id: node.provider_id.clone(),
            retries: clouds::retries(node, &drivers),
            fenced_for: node.fenced_for.clone(),
            labels: node.labels.clone(),
            drills: self.grouping.allows_drills(&*groups),
            paces: self.paces.clone(),
            groups: groups.clone(),
            ..NodeSpec::new(node.id.clone(), topology)
        };
        let liveness = self.sources.of(node, &groups, self.faults);
        Some(NodePlan { drivers, releases, liveness, ..NodePlan::of(spec) })
    }

    /// The node's parent, once the device that tells where it runs is made.
    fn parent(
        &mut self,
        node: &NodeSettings,
        devices: &[&DeviceId],
        drivers: &mut BTreeMap<DeviceId, Arc<dyn PowerDriver>>,
    ) {
        if let [first, second, ..] = devices {
            let message =
                format!("{first} and {second} are both its parent: a node runs on one machine at a time");
            self.faults.push(node.fault("devices", &message));
        }
        for id in devices {
            let Some(device) = node.devices.get(*id) else { continue };
            match parent::make(&self.made_of.parents, node, device, drivers, self.nodes) {
                Ok(driver) => drop(drivers.insert((*id).clone(), driver)),
                Err(wrong) => {
                    self.faults
                        .extend(wrong.into_iter().map(|fault| device.fault(&fault.key, fault.message)));
                }
            }
        }
    }

    /// What reads off also where it does not know must not prove by itself.
    fn alone(
        &mut self,
        node: &NodeSettings,
        level: &Level,
        drivers: &BTreeMap<DeviceId, Arc<dyn PowerDriver>>,
    ) {
        let why = |id: &DeviceId| drivers.get(id)?.never_alone();
        let is_good = |other: &DeviceSpec| other.class == DeviceClass::Host && why(&other.id).is_none();
        let has_good = level.devices.iter().any(is_good);
        for device in &level.devices {
            let Some(why) = why(&device.id) else { continue };
            let right = match device.class {
                DeviceClass::Supply => "no outlet by it proves: take another agent or driver for it",
                DeviceClass::Host | DeviceClass::Parent if has_good => continue,
                DeviceClass::Host | DeviceClass::Parent => {
                    "put another host device beside it in its level, which must then read Off too"
                }
            };
            let message =
                format!("device {} reads off also where it does not know ({why}): {right}", device.id);
            self.faults.push(node.fault("levels", &message));
        }
    }

    /// What is wrong with what devices have that no node uses, and was not told yet. What they lack, a node may give.
    fn samples(&mut self, samples: &[DeviceSettings]) {
        for device in samples {
            let wrong = match device.driver.as_str() {
                parent::NAME => parent::read(&device.settings).err(),
                _ => self.make(device).err(),
            };
            let Some(wrong) = wrong else { continue };
            let has = |fault: &SettingFault| device.has(&fault.key);
            for fault in wrong.into_iter().filter(has).map(|fault| device.fault(&fault.key, fault.message)) {
                if self.faults.iter().all(|told| told.place != fault.place) {
                    self.faults.push(fault);
                }
            }
        }
    }

    fn make(&self, device: &DeviceSettings) -> Result<Arc<dyn PowerDriver>, Vec<SettingFault>> {
        let kinds = &self.made_of.kinds;
        let Some(kind) = kinds.iter().find(|kind| kind.name() == device.driver) else {
            let mut known: Vec<&str> = kinds.iter().map(|kind| kind.name()).chain([parent::NAME]).collect();
            known.sort_unstable();
            let message = unmade("driver", &device.driver, &known, &LEFT_OUT);
            return Err(vec![SettingFault { key: "driver".to_owned(), message }]);
        };
        kind.make(&device.settings, self.context)
    }

    fn driver(&mut self, node: &NodeSettings, id: &DeviceId) -> Option<Arc<dyn PowerDriver>> {
        let device = node.devices.get(id)?;
        let driver = match self.make(device) {
            Ok(driver) => driver,
            Err(wrong) => {
                self.faults.extend(wrong.into_iter().map(|fault| device.fault(&fault.key, fault.message)));
                return None;
            }
        };
        let endpoint = driver.traits().endpoint.clone();
        let here = format!("{}/{id}", node.id);
        if let Some(other) = self.endpoints.get(&endpoint) {
            let message =
                format!("device {id} is {endpoint}, and so is {other}: each device belongs to one node");
            self.faults.push(node.fault("devices", &message));
        } else if let Some(other) = self.neighbour(&endpoint, driver.alone_at()) {
            let message = format!(
                "device {id} is {endpoint}, and {other} is there too: where several are, each has to be named, one for \
                 each node (system)"
            );
            self.faults.push(node.fault("devices", &message));
        } else {
            if let Some(place) = driver.alone_at() {
                self.alone.insert(place.to_owned(), here.clone());
            }
            self.endpoints.insert(endpoint, here);
        }
        Some(driver)
    }

    /// Who may be the same device under another endpoint: one of the two takes whatever is the only one there.
    fn neighbour(&self, endpoint: &str, alone_at: Option<&str>) -> Option<&String> {
        let alone = endpoint.match_indices(' ').find_map(|(at, _)| self.alone.get(&endpoint[..at]));
        let named = || {
            let place = format!("{} ", alone_at?);
            let (first, here) = self.endpoints.range(place.clone()..).next()?;
            first.starts_with(&place).then_some(here)
        };
        alone.or_else(named)
    }
}

#[cfg(test)]
mod tests;
