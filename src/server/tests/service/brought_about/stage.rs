//! The gateway with its machines, some of which run on others, and callers who come over the loopback.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use picket_audit::Audit;
use picket_core::budget::{Budget, Limits as Numbers};
use picket_core::device::Grade;
use picket_core::ids::{DeviceId, Incarnation, NodeId, ReleaseId};
use picket_core::rules::Rules;
use picket_core::store::Store;
use picket_core::time::{Clock, WallTime};
use picket_core::topology::{Level, Topology};
use picket_driver::PowerDriver;
use picket_driver_sim::{Fault, Random, SharedWorld, SimClock, SimDriver, SimOptions, World};
use picket_engine::{
    Change, Engine, Logins, NodePlan, ParentDriver, ParentSettings, Parents, Parts, PlannedRelease, Receipts,
    Unit,
};
use picket_proto::v1::fencing_service_client::FencingServiceClient;
use picket_receipt::Keys;
use picket_server::{Addresses, House, HouseRules, Limits, serve_house};
use picket_store::MemoryStore;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Endpoint, Uri};

use super::laws::{Laws, Seen};
use super::rights::{CALLERS, Rights, id};
use crate::lab::far::{StoreElection, Volumes};
use crate::lab::{Client, s};

pub const NODES: [&str; 8] = ["hv1", "hv2", "vm1", "vm2", "vm3", "web1", "web2", "web3"];
/// The group of `hv1` and what runs on it, and of `web1`.
pub const RACK: (&str, [&str; 4]) = ("rack=r1", ["hv1", "vm1", "vm2", "web1"]);

/// On which machine one runs.
pub fn parent_of(node: &str) -> Option<&'static str> {
    match node {
        "vm1" | "vm2" => Some("hv1"),
        "vm3" => Some("hv2"),
        _ => None,
    }
}

pub struct Stage {
    world: SharedWorld,
    pub clock: Arc<SimClock>,
    volumes: Arc<Volumes>,
    engine: Engine,
    house: House,
    parents: Arc<Parents>,
    pub laws: Arc<Laws>,
    pub clients: BTreeMap<&'static str, Client>,
    stop: CancellationToken,
}

impl Stage {
    pub async fn new(random: &mut Random) -> Self {
        let world = built(random);
        let clock = Arc::new(SimClock::new());
        let incarnation = Incarnation::mint(WallTime::from_millis(1), [7; 10]);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(incarnation).expect("a store"));
        let (rights, budget) = (Arc::new(Rights::draw(random)), Arc::new(draw_budget(random)));
        let laws = Arc::new(Laws::new(clock.clone(), store.clone(), &rights, &budget));
        let (volumes, parents) = (Arc::new(Volumes::default()), Arc::<Parents>::default());
        let bits = Mutex::new(Random::new(random.bits()));
        let engine = Engine::new(Parts {
            clock: clock.clone(),
            random: Arc::new(move |bytes: &mut [u8]| {
                let mut random = bits.lock().unwrap_or_else(PoisonError::into_inner);
                bytes.iter_mut().for_each(|byte| *byte = random.bits() as u8);
            }),
            store: store.clone(),
            election: Arc::new(StoreElection(store)),
            hooks: laws.clone(),
            audit: Audit::none(),
            receipts: Arc::new(Receipts::new(Keys::ephemeral("gateway", &|bytes| bytes.fill(7)))),
            metrics: Default::default(),
            rules: Rules::default(),
            budget: (*budget).clone(),
            roles: rights.roles(),
            nodes: plans(&rights, &world, &volumes, &parents),
            own: Arc::default(),
            twins: Arc::default(),
            parents: parents.clone(),
            simulated: false,
            check_at_start: false,
            logins: Logins::new(512),
            programs: Arc::new(Unit::of_programs(64)),
        });
        let stop = CancellationToken::new();
        let working = (engine.clone(), stop.clone());
        tokio::spawn(async move { working.0.run(working.1).await.expect("a whole store") });
        engine.until_leading().await;

        let tcp = Some("127.0.0.1:0".parse().expect("an address"));
        let listeners = Addresses { unix: None, tcp }.bind().await.expect("bound");
        let address = listeners.tcp_address().expect("an address");
        let rules = HouseRules { limits: Limits::default(), roles: rights.roles(), ..HouseRules::default() };
        let house = House::new(rules, &engine, &listeners, stop.clone());
        let serving = serve_house(house.clone(), engine.clone(), listeners, stop.clone());
        tokio::spawn(async move { serving.await.expect("served") });
        let mut clients = BTreeMap::new();
        for caller in CALLERS {
            clients.insert(caller, client(caller, address).await);
        }
        Self { world, clock, volumes, engine, house, parents, laws, clients, stop }
    }

    /// Other settings, as the daemon takes them.
    pub async fn reload(&self, random: &mut Random) {
        let rights = Arc::new(Rights::draw(random));
        let budget = Arc::new(draw_budget(random));
        self.laws.told(&rights, &budget);
        let nodes = plans(&rights, &self.world, &self.volumes, &self.parents);
        let (rules, roles) = (Rules::default(), rights.roles());
        let change = Change { nodes, rules, budget: (*budget).clone(), roles };
        if let Err(busy) = self.engine.change(change).await {
            return self.laws.refused(&busy);
        }
        self.house.change(Limits::default(), rights.roles());
        self.laws.taken();
    }

    /// Devices break, or are mended.
    pub fn trouble(&self, random: &mut Random) {
        let node = NODES[random.below(NODES.len() as u64) as usize];
        let fault = match random.below(4) {
            0 => Some(Fault::Silent),
            1 => Some(Fault::OffRefused),
            _ => None,
        };
        let mut world = self.world.lock().expect("whole");
        match fault {
            Some(fault) => world.fault(&device_of(node), fault),
            None => world.mend(&device_of(node)),
        };
    }

    pub async fn end(self) -> (Vec<String>, Seen) {
        let mut world = self.world.lock().expect("whole");
        let mut offs = |node: &&&str| world.received(&device_of(node), self.clock.boot()).offs > 0;
        let off: Vec<&str> = NODES.iter().filter(&mut offs).copied().collect();
        drop(world);
        self.stop.cancel();
        self.laws.end(&off)
    }
}

pub fn device_of(node: &str) -> String {
    format!("{node}-bmc")
}

fn built(random: &mut Random) -> SharedWorld {
    let mut world = World::new(random.bits());
    for node in NODES {
        world.add_machine(node).add_host(node, &device_of(node));
    }
    for node in NODES {
        if let Some(parent) = parent_of(node) {
            world.set_parent(node, parent);
            // So that the machine on which it runs is asked.
            if random.percent(70) {
                world.fault(&device_of(node), Fault::OffRefused);
            }
        }
    }
    world.shared()
}

fn draw_budget(random: &mut Random) -> Budget {
    let per_window = random.percent(40).then(|| (1 + random.below(4) as u32, s(60 + random.below(540))));
    let fleet = Numbers {
        at_once: Some(1 + random.below(3) as u32),
        at_once_percent: None,
        per_window,
        min_not_fenced: Some(random.below(6) as u32),
    };
    let rack = Numbers { at_once: Some(1 + random.below(2) as u32), ..Numbers::default() };
    let groups = random.percent(60).then(|| (RACK.0.to_owned(), rack));
    Budget {
        fleet,
        groups: groups.into_iter().collect(),
        cool_down: s(random.below(300)),
        brake_least: if random.percent(30) { 3 } else { u32::MAX },
        queue_most: 1 + random.below(20) as u32,
        queue_expires: s(60 + random.below(900)),
        ..Budget::default()
    }
}

/// A connection from the caller's own address.
async fn client(caller: &'static str, address: SocketAddr) -> Client {
    let from = caller.strip_prefix("tcp:").expect("an address").parse().expect("an address");
    let connector = tower::service_fn(move |_: Uri| async move {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from, 0))?;
        socket.connect(address).await.map(TokioIo::new)
    });
    let channel = Endpoint::from_static("http://gateway").connect_with_connector(connector).await;
    FencingServiceClient::new(channel.expect("connected"))
}

fn plans(
    rights: &Rights,
    world: &SharedWorld,
    volumes: &Arc<Volumes>,
    parents: &Arc<Parents>,
) -> Vec<NodePlan> {
    NODES.iter().map(|node| plan(node, rights, world, volumes, parents)).collect()
}

fn plan(
    node: &str,
    rights: &Rights,
    world: &SharedWorld,
    volumes: &Arc<Volumes>,
    parents: &Arc<Parents>,
) -> NodePlan {
    let own: Arc<dyn PowerDriver> = Arc::new(SimDriver::new(world, &device_of(node), &SimOptions::default()));
    let mut levels = vec![("bmc", own.clone())];
    if parent_of(node).is_some() {
        let settings = ParentSettings { child: id(node), node: None, grade: Grade::Hypervisor };
        levels.push(("hypervisor", Arc::new(ParentDriver::new(parents, settings, own))));
    }
    let mut drivers = BTreeMap::<DeviceId, Arc<dyn PowerDriver>>::new();
    let mut topology = Vec::new();
    for (name, driver) in levels {
        let device = DeviceId::new(name).expect("a good name");
        let mut spec = driver.traits().spec(device.clone(), &Rules::default());
        spec.identity = world.lock().expect("whole").identity(node).clone();
        topology.push(Level { devices: vec![spec] });
        drivers.insert(device, driver);
    }
    let tenant = rights.tenants[node];
    let fenced_for = rights.fenced_for.get(node).cloned().unwrap_or_default();
    NodePlan {
        id: id(node),
        provider_id: None,
        topology: Topology::new(topology).expect("a good topology"),
        drivers,
        releases: vec![PlannedRelease {
            id: ReleaseId::new("detach").expect("a good name"),
            releaser: volumes.clone(),
        }],
        own_host: false,
        mark: format!("{tenant} {fenced_for:?}"),
        fenced_for: Arc::new(fenced_for),
        labels: Arc::new([("tenant".to_owned(), tenant.to_owned())].into()),
        units: BTreeMap::new(),
        retries: BTreeMap::new(),
        drills: false,
        groups: Arc::new(RACK.1.contains(&node).then(|| RACK.0.to_owned()).into_iter().collect()),
        liveness: None,
    }
}

impl Stage {
    /// The wall clock jumps, by up to two hours.
    pub fn jump(&self, random: &mut Random) {
        let span = Duration::from_secs(7_200).as_millis() as u64;
        self.clock.jump_wall(random.below(2 * span) as i64 - span as i64);
    }

    pub fn holds(&self, node: &NodeId) -> Vec<String> {
        self.engine
            .node(node)
            .map(|view| view.stored.record.holds.keys().cloned().collect())
            .unwrap_or_default()
    }
}
