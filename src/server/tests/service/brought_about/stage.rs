//! Machines, some of which run on others, the gateway before them, and callers who come over the loopback and by the socket.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use picket_core::device::Grade;
use picket_core::ids::{DeviceId, Incarnation, NodeId, ReleaseId};
use picket_core::rules::Rules;
use picket_core::store::Store;
use picket_core::time::{Clock, WallTime};
use picket_core::topology::{Level, Topology};
use picket_driver::PowerDriver;
use picket_driver_sim::{Act, Fault, Moving, Random, SharedWorld, SimClock, SimDriver, SimOptions, World};
use picket_engine::{NodePlan, NodeSpec, ParentDriver, ParentSettings, Parents, PlannedRelease};
use picket_store::MemoryStore;
use tokio::sync::Mutex;

use super::bounds::{Bounds, RACK};
use super::gateway::{Gateway, Ground};
use super::laws::Laws;
use super::rights::{Rights, callers, id};
use super::seen::Seen;
use crate::lab::Client;

pub const NODES: [&str; 8] = ["hv1", "hv2", "vm1", "vm2", "vm3", "web1", "web2", "web3"];
/// What carries others.
pub const HYPERVISORS: [&str; 2] = ["hv1", "hv2"];
/// What runs on others.
const MACHINES: [&str; 3] = ["vm1", "vm2", "vm3"];

/// All that is in force at one time.
#[derive(Clone, Debug)]
pub struct Settings {
    pub rights: Arc<Rights>,
    pub bounds: Arc<Bounds>,
}

impl Settings {
    fn draw(random: &mut Random) -> Self {
        Self { rights: Arc::new(Rights::draw(random)), bounds: Arc::new(Bounds::draw(random)) }
    }
}

pub struct Stage {
    ground: Ground,
    pub laws: Arc<Laws>,
    pub clients: BTreeMap<&'static str, Client>,
    /// The gateway of now, and what it took last.
    now: Mutex<(Option<Gateway>, Settings)>,
    /// Machines whose own device takes no off, so that the one on which they run is asked.
    deaf: BTreeSet<&'static str>,
    /// Gateways die here, and clocks are right; or else clocks jump, and the gateway stays.
    dies: bool,
}

impl Stage {
    pub async fn new(random: &mut Random) -> Self {
        let clock = Arc::new(SimClock::new());
        let incarnation = Incarnation::mint(WallTime::from_millis(1), [7; 10]);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(incarnation).expect("a store"));
        let settings = Settings::draw(random);
        let laws = Arc::new(Laws::new(clock.clone(), store.clone(), &settings));
        let deaf = MACHINES.into_iter().filter(|_| random.percent(70)).collect();
        let ground = Ground::new(built(random, &laws, &deaf), clock, store, laws.clone());
        let gateway = Gateway::begin(&ground, &settings, random.bits()).await;
        let clients = callers().iter().map(|caller| (*caller, ground.client(caller))).collect();
        let now = Mutex::new((Some(gateway), settings));
        Self { ground, laws, clients, now, deaf, dies: random.percent(50) }
    }

    /// Other settings, as the daemon takes them.
    pub async fn reload(&self, random: &mut Random) {
        let settings = Settings::draw(random);
        let mut now = self.now.lock().await;
        let Some(gateway) = &now.0 else { return };
        self.laws.told(&settings);
        if let Err(busy) = gateway.take(&self.ground, &settings).await {
            return self.laws.refused(&busy);
        }
        self.laws.taken();
        now.1 = settings;
    }

    /// The gateway dies, and another one takes over its store; or the wall clock jumps, by up to two hours.
    pub async fn blow(&self, random: &mut Random) {
        if !self.dies {
            let span = Duration::from_secs(7_200).as_millis() as u64;
            return self.ground.clock.jump_wall(random.below(2 * span) as i64 - span as i64);
        }
        let mut now = self.now.lock().await;
        if let Some(gateway) = now.0.take() {
            gateway.ends(random.percent(60)).await;
        }
        self.laws.is_led_anew();
        now.0 = Some(Gateway::begin(&self.ground, &now.1, random.bits()).await);
    }

    /// Devices break; or all of them answer again.
    pub fn trouble(&self, random: &mut Random) {
        let [node, other] = [(); 2].map(|()| NODES[random.below(NODES.len() as u64) as usize]);
        let mut world = self.ground.world.lock();
        match random.below(10) {
            0..5 => {
                world.fault(&device_of(node), Fault::Silent).fault(&device_of(other), Fault::Silent);
            }
            5 => {
                world.fault(&device_of(node), Fault::OffRefused);
            }
            _ => {
                for node in NODES {
                    world.mend(&device_of(node));
                    if self.deaf.contains(node) {
                        world.fault(&device_of(node), Fault::OffRefused);
                    }
                }
            }
        }
    }

    /// A machine runs on another one from now on.
    pub fn moves(&self, random: &mut Random) {
        let machine = MACHINES[random.below(MACHINES.len() as u64) as usize];
        let to = HYPERVISORS[random.below(HYPERVISORS.len() as u64) as usize];
        self.laws.runs_on(machine, to);
        let act = Act::Move { machine: machine.to_owned(), moving: Moving::Arrives(to.to_owned()) };
        self.ground.world.lock().happen(self.ground.clock.boot(), act);
    }

    pub async fn holds(&self, node: &NodeId) -> Vec<String> {
        let now = self.now.lock().await;
        let view = now.0.as_ref().and_then(|gateway| gateway.engine.node(node).ok());
        view.map(|view| view.stored.record.holds.keys().cloned().collect()).unwrap_or_default()
    }

    /// The machines to which an off was sent.
    fn switched_off(&self) -> Vec<&'static str> {
        let mut world = self.ground.world.lock();
        let now = self.ground.clock.boot();
        NODES.into_iter().filter(|node| world.received(&device_of(node), now).offs > 0).collect()
    }

    pub async fn end(self) -> (Vec<String>, Seen) {
        let off = self.switched_off();
        if let Some(gateway) = self.now.into_inner().0 {
            gateway.ends(true).await;
        }
        self.laws.end(&off)
    }
}

pub fn device_of(node: &str) -> String {
    format!("{node}-bmc")
}

fn built(random: &mut Random, laws: &Laws, deaf: &BTreeSet<&str>) -> SharedWorld {
    let mut world = World::new(random.bits());
    for node in NODES {
        world.add_machine(node).add_host(node, &device_of(node));
    }
    for machine in MACHINES {
        let on = HYPERVISORS[random.below(HYPERVISORS.len() as u64) as usize];
        world.set_parent(machine, on);
        laws.runs_on(machine, on);
        if deaf.contains(machine) {
            world.fault(&device_of(machine), Fault::OffRefused);
        }
    }
    world.shared()
}

pub fn plan(node: &'static str, settings: &Settings, ground: &Ground, parents: &Arc<Parents>) -> NodePlan {
    let Settings { rights, bounds } = settings;
    let world = &ground.world;
    let own: Arc<dyn PowerDriver> = Arc::new(SimDriver::new(world, &device_of(node), &SimOptions::default()));
    let mut levels = vec![("bmc", own.clone())];
    if MACHINES.contains(&node) {
        let settings = ParentSettings { child: id(node), node: None, grade: Grade::Hypervisor };
        levels.push(("hypervisor", Arc::new(ParentDriver::new(parents, settings, own))));
    }
    let mut drivers = BTreeMap::<DeviceId, Arc<dyn PowerDriver>>::new();
    let mut topology = Vec::new();
    for (name, driver) in levels {
        let device = DeviceId::new(name).expect("a good name");
        let mut spec = driver.traits().spec(device.clone(), &Rules::default());
        spec.identity = world.lock().identity(node).clone();
        topology.push(Level { devices: vec![spec] });
        drivers.insert(device, driver);
    }
    let tenant = rights.tenants[node];
    let fenced_for = rights.fenced_for.get(node).cloned().unwrap_or_default();
    let groups: BTreeSet<String> = bounds.rack.get(node).map(|_| RACK.to_owned()).into_iter().collect();
    let mark = format!("{tenant} {fenced_for:?} {groups:?}");
    let spec = NodeSpec {
        fenced_for: Arc::new(fenced_for),
        labels: Arc::new([("tenant".to_owned(), tenant.to_owned())].into()),
        groups: Arc::new(groups),
        ..NodeSpec::new(id(node), Topology::new(topology).expect("a good topology"))
    };
    NodePlan {
        drivers,
        releases: vec![PlannedRelease {
            id: ReleaseId::new("detach").expect("a good name"),
            releaser: ground.volumes.clone(),
        }],
        mark,
        ..NodePlan::of(spec)
    }
}
