//! What a gateway of a lab is made of: its nodes, their devices, its rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_audit::Audit;
use picket_core::budget::Budget;
use picket_core::device::{DeviceClass, DeviceSpec, Grade, Identity};
use picket_core::election::{Election, ElectionError, Lease, Won};
use picket_core::groups::label;
use picket_core::ids::{DeviceId, NodeId, ReleaseId};
use picket_core::roles::Roles;
use picket_core::rules::Rules;
use picket_core::store::Store;
use picket_core::topology::{Level, Topology};
use picket_driver::PowerDriver;
use picket_driver_sim::{Random, SharedWorld, SimClock, SimDriver, SimOptions};
use picket_engine::{
    Change, Engine, Hooks, Logins, NodePlan, NodeSpec, Own, ParentDriver, ParentSettings, Parents, Parts,
    PlannedRelease, Receipts, Unit,
};
use picket_liveness::Liveness;
use picket_receipt::Keys;
use picket_release::{ForNode, Quarantine, Releaser};

use crate::clouds::{Cloud, Far};
use crate::families::Places;
use crate::shared::{Door, Outlet};

/// The device of class parent; the node's first device says where it runs.
pub const PARENT: &str = "hypervisor";

/// One node of the settings.
#[derive(Clone, Debug, Default)]
pub struct NodeSetup {
    pub name: String,
    pub levels: Vec<Vec<String>>,
    pub own_host: bool,
}

/// The settings of a gateway. A test may change them between its death and its next start.
#[derive(Clone)]
pub struct Setup {
    pub nodes: Vec<NodeSetup>,
    pub rules: Rules,
    pub budget: Budget,
    pub roles: Roles,
    /// What runs on a node and may be fenced by it, whoever asks.
    pub fenced_for: BTreeMap<String, BTreeSet<NodeId>>,
    /// The labels of all nodes.
    pub labels: BTreeMap<String, String>,
    pub releases: Vec<(String, Arc<dyn Releaser>)>,
    /// No node has any.
    pub without_releases: bool,
    /// Whether nodes may be drilled.
    pub drills: bool,
    /// What says of every node whether it recovered.
    pub liveness: Option<Arc<dyn Liveness>>,
    /// Who tells on which node the gateway stands; without, the nodes say it.
    pub own: Option<Arc<dyn Quarantine>>,
    /// The only node of which it does.
    pub lives: Option<String>,
    pub audit: Audit,
    /// Where a node's devices are; without, nobody knows.
    pub addresses: BTreeMap<String, String>,
    /// Whether identities are learned by a check after the start.
    pub check_at_start: bool,
    /// Its devices' sessions can be ended by their names.
    pub names_sessions: bool,
    /// Host devices know the volumes of their machines, and refuse a detach that is so old.
    pub volumes: Option<Duration>,
    /// How many devices are logged in to side by side.
    pub logins: usize,
    /// In which election it takes part; `None`: it is alone.
    pub election: Option<Arc<dyn Election>>,
    /// The only node on which children may run.
    pub only_parent: Option<NodeId>,
    /// How long it takes to be told where a child runs.
    pub placing: Duration,
    /// Nobody tells where a child runs.
    pub unplaced: Arc<AtomicBool>,
    /// The machines on which whoever tells says that copies of the children may be.
    pub copies: Arc<Mutex<Vec<String>>>,
    /// The child's own device tells of them, too.
    pub tells_copies: bool,
    /// The way to parents, of the engine that was made last.
    pub parents: Arc<Mutex<Arc<Parents>>>,
    /// A PDU on which all outlets are, what they share of it, and how long its answers take.
    pub pdu: Option<(Arc<Door>, Arc<Unit>, Duration)>,
    /// The clouds of those that place machines, by their endpoints.
    pub clouds_of: BTreeMap<String, String>,
    /// What all host devices share.
    pub shared: Option<Arc<Unit>>,
    /// All devices are providers' interfaces.
    pub clouds: bool,
    /// Their offs end their machines.
    pub finals: bool,
    /// What they say at times.
    pub far: Arc<Far>,
    /// The last word on each device.
    pub adjust: Arc<dyn Fn(&mut DeviceSpec) + Send + Sync>,
}

impl Setup {
    pub fn new(name: &str, levels: &[&[&str]]) -> Self {
        Self {
            nodes: vec![NodeSetup { name: name.to_owned(), levels: named(levels), own_host: false }],
            rules: Rules::default(),
            budget: Budget::unlimited(),
            roles: Roles::of_this_machine(),
            fenced_for: BTreeMap::new(),
            labels: BTreeMap::new(),
            releases: Vec::new(),
            without_releases: false,
            drills: true,
            own: None,
            liveness: None,
            lives: None,
            audit: Audit::none(),
            addresses: BTreeMap::new(),
            check_at_start: false,
            names_sessions: false,
            volumes: None,
            logins: 512,
            election: None,
            only_parent: None,
            placing: Duration::ZERO,
            unplaced: Arc::default(),
            copies: Arc::default(),
            tells_copies: false,
            parents: Arc::default(),
            pdu: None,
            clouds_of: BTreeMap::new(),
            shared: None,
            clouds: false,
            finals: false,
            far: Arc::default(),
            adjust: Arc::new(|_| {}),
        }
    }

    pub fn engine(
        &self,
        world: &SharedWorld,
        clock: &Arc<SimClock>,
        store: &Arc<dyn Store>,
        hooks: Arc<dyn Hooks>,
    ) -> Engine {
        let counter = Mutex::new(Random::new(1));
        let parents = Arc::<Parents>::default();
        *self.parents.lock() = parents.clone();
        Engine::new(Parts {
            clock: clock.clone(),
            random: Arc::new(move |bytes: &mut [u8]| {
                let mut random = counter.lock();
                bytes.iter_mut().for_each(|byte| *byte = random.bits() as u8);
            }),
            store: store.clone(),
            election: self.election.clone().unwrap_or_else(|| Arc::new(StoreElection(store.clone()))),
            hooks,
            audit: self.audit.clone(),
            receipts: Arc::new(Receipts::new(Keys::ephemeral("gateway", &|bytes| bytes.fill(7)))),
            metrics: Default::default(),
            rules: self.rules.clone(),
            budget: self.budget.clone(),
            roles: self.roles.clone(),
            nodes: self.nodes.iter().map(|node| self.plan(node, world)).collect(),
            own: self
                .own
                .clone()
                .map_or_else(Arc::default, |of| Arc::new(Own::named("worker-7".to_owned(), of))),
            twins: Arc::default(),
            parents,
            simulated: false,
            check_at_start: self.check_at_start,
            logins: Logins::new(self.logins),
            programs: Arc::new(Unit::of_programs(64)),
        })
    }

    /// What a reload of these settings asks for.
    pub fn change(&self, world: &SharedWorld) -> Change {
        let nodes = self.nodes.iter().map(|node| self.plan(node, world)).collect();
        Change { nodes, rules: self.rules.clone(), budget: self.budget.clone(), roles: self.roles.clone() }
    }

    fn plan(&self, node: &NodeSetup, world: &SharedWorld) -> NodePlan {
        let mut drivers: BTreeMap<DeviceId, Arc<dyn PowerDriver>> = BTreeMap::new();
        let mut topology = Vec::new();
        for level in &node.levels {
            let mut devices = Vec::new();
            for name in level {
                let driver: Arc<dyn PowerDriver> = match name.as_str() {
                    PARENT => self.parent(node, drivers.values().next().expect("what places it comes first")),
                    name => self.device(name, world),
                };
                let spec = self.spec(node, name, &*driver, world);
                drivers.insert(spec.id.clone(), driver);
                devices.push(spec);
            }
            topology.push(Level { devices });
        }
        let node_id = NodeId::new(&node.name).expect("a good name");
        let named = self.releases.iter().filter(|_| !self.without_releases);
        let releases = named.map(|(id, releaser)| PlannedRelease {
            id: ReleaseId::new(id).expect("a good name"),
            releaser: releaser
                .of_node(&ForNode { id: &node_id, provider_id: None, devices: &drivers })
                .expect("it has the device")
                .unwrap_or_else(|| releaser.clone()),
        });
        let releases: Vec<PlannedRelease> = releases.collect();
        let address = self.addresses.get(&node.name);
        let addresses =
            address.iter().flat_map(|at| drivers.keys().map(move |id| (id.clone(), format!("{at}/{id}"))));
        let at_pdu = |(_, unit, _): &(Arc<Door>, Arc<Unit>, Duration)| {
            let supplies = drivers.iter().filter(|(_, driver)| driver.traits().class == DeviceClass::Supply);
            supplies.map(|(id, _)| (id.clone(), unit.clone())).collect()
        };
        let mut units: BTreeMap<_, _> = self.pdu.as_ref().map(at_pdu).unwrap_or_default();
        let hosts = drivers.iter().filter(|(_, driver)| driver.traits().class == DeviceClass::Host);
        let shared = hosts.filter_map(|(id, _)| Some((id.clone(), self.shared.clone()?)));
        units.extend(shared);
        let specs = topology.iter().flat_map(|level: &Level| &level.devices);
        let identities: Vec<String> = specs.map(|spec| spec.identity.words()).collect();
        let spec = NodeSpec {
            own_host: node.own_host,
            fenced_for: Arc::new(self.fenced_for.get(&node.name).cloned().unwrap_or_default()),
            labels: Arc::new(self.labels.clone()),
            groups: Arc::new(self.labels.iter().map(|(key, value)| label(key, value)).collect()),
            drills: self.drills,
            ..NodeSpec::new(
                NodeId::new(&node.name).expect("a good name"),
                Topology::new(topology).expect("a good topology").at(addresses.collect()),
            )
        };
        NodePlan {
            drivers,
            units,
            releases,
            liveness: self
                .liveness
                .clone()
                .filter(|_| self.lives.as_ref().is_none_or(|only| *only == node.name)),
            mark: format!(
                "{:?} {:?} {} {:?} {address:?} {identities:?}",
                node.levels,
                self.labels,
                self.without_releases,
                self.releases.iter().map(|(id, _)| id).collect::<Vec<_>>()
            ),
            ..NodePlan::of(spec)
        }
    }

    fn device(&self, name: &str, world: &SharedWorld) -> Arc<dyn PowerDriver> {
        match self.pdu.as_ref().filter(|_| !name.ends_with("bmc")) {
            None => {
                let (names_sessions, volumes) = (self.names_sessions, self.volumes);
                let options = SimOptions { names_sessions, volumes, ..SimOptions::default() };
                let plain: Arc<dyn PowerDriver> = Arc::new(SimDriver::new(world, name, &options));
                let is_of_a_cloud = self.clouds_of.contains_key(&plain.traits().endpoint);
                if is_of_a_cloud || self.tells_copies && name == "server" {
                    return self.places(plain);
                }
                if self.clouds {
                    Arc::new(Cloud { of: plain, is_final: self.finals, far: self.far.clone() })
                } else {
                    plain
                }
            }
            Some((door, _, latency)) => {
                let options = SimOptions { latency: *latency, ..SimOptions::default() };
                Arc::new(Outlet { inner: SimDriver::new(world, name, &options), door: door.clone() })
            }
        }
    }

    fn parent(&self, node: &NodeSetup, places: &Arc<dyn PowerDriver>) -> Arc<dyn PowerDriver> {
        let child = NodeId::new(&node.name).expect("a good name");
        let settings = ParentSettings { child, node: self.only_parent.clone(), grade: Grade::Hypervisor };
        let places = self.places(places.clone());
        Arc::new(ParentDriver::new(&self.parents.lock(), settings, places))
    }

    fn places(&self, inner: Arc<dyn PowerDriver>) -> Arc<dyn PowerDriver> {
        let (takes, away, copies) = (self.placing, self.unplaced.clone(), self.copies.clone());
        let cloud = self.clouds_of.get(&inner.traits().endpoint).cloned();
        Arc::new(Places { inner, takes, away, copies, cloud })
    }

    fn spec(
        &self,
        node: &NodeSetup,
        name: &str,
        driver: &dyn PowerDriver,
        world: &SharedWorld,
    ) -> DeviceSpec {
        let plain = driver.traits().spec(DeviceId::new(name).expect("a good name"), &self.rules);
        let identity = match plain.class {
            DeviceClass::Host | DeviceClass::Parent => world.lock().identity(&node.name).clone(),
            DeviceClass::Supply => Identity::default(),
        };
        let mut spec = DeviceSpec { verified: true, identity, ..plain };
        (self.adjust)(&mut spec);
        spec
    }
}

pub fn named(levels: &[&[&str]]) -> Vec<Vec<String>> {
    levels.iter().map(|level| level.iter().map(|&device| device.to_owned()).collect()).collect()
}

#[derive(Debug)]
struct StoreElection(Arc<dyn Store>);

#[async_trait]
impl Election for StoreElection {
    async fn campaign(&self) -> Result<Won, ElectionError> {
        let term = self.0.take_term().await.map_err(|error| ElectionError::Unavailable(error.to_string()))?;
        Ok(Won { term, incarnation: self.0.incarnation(), lease: Lease::endless() })
    }

    async fn resign(&self) -> Result<(), ElectionError> {
        Ok(())
    }
}
