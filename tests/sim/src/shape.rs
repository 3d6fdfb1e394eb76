//! The worlds in which histories happen: machines, devices, gateways, limits.

mod volumes;
mod weakness;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use picket_core::budget::{Budget, Limits};
use picket_core::device::{DeviceClass, DeviceSpec, Grade, Identity};
use picket_core::ids::{DeviceId, NodeId, ReleaseId};
use picket_core::rules::Rules;
use picket_core::topology::{Level, Topology};
use picket_driver::PowerDriver;
use picket_driver_sim::{
    Disk, Fault, Link, Random, RestorePolicy, SharedWorld, SimDriver, SimOptions, World,
};
use picket_engine::{NodePlan, NodeSpec, ParentDriver, ParentSettings, Parents, PlannedRelease};
use picket_release::Releaser;

pub(crate) use self::volumes::VOLUMES;
pub use self::weakness::Weakness;
use crate::rights::Rights;
use crate::scene::s;
use crate::trace::GatewayId;

/// After so long a device ends a session in which nothing is said.
pub(crate) const IDLE: Duration = Duration::from_secs(60);

/// The device of class parent.
const PARENT: &str = "parent";

/// Where they are attached.
pub(crate) const PLACE: &str = "/dev/vdx";

/// How late a detach may land.
pub(crate) const DETACH_LIFE: Duration = Duration::from_secs(65);

/// One node's devices, and which of them may lie.
#[derive(Clone, Debug)]
pub(crate) struct NodeShape {
    /// The machine is called the same.
    pub(crate) name: String,
    pub(crate) id: NodeId,
    pub(crate) levels: Vec<Vec<String>>,
    pub(crate) sessionless: Vec<String>,
    /// A host device that may say Off for a live machine. Only one that shares its level with an honest one: a single
    /// device that lies is believed, which `safety.md` says under "What remains".
    pub(crate) liar: Option<String>,
    /// The node on which it runs, and by which it is fenced where its own device does not stop it (S22).
    pub(crate) parent: Option<NodeId>,
    restore: RestorePolicy,
}

/// Everything that is drawn before a history begins.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) weakness: Weakness,
    pub(crate) nodes: Vec<NodeShape>,
    pub(crate) gateways: usize,
    /// The gateway that stands on one of the nodes (S17), and on which.
    guest: Option<(GatewayId, usize)>,
    pub(crate) trusted: bool,
    /// Whoever leads ends what others sent by the names of their sessions, as over Redfish (S8).
    names_sessions: bool,
    /// Releases that nothing bounds.
    pub(crate) unbounded: bool,
    /// Releases are programs that the gateway starts: what they do heeds no end, and a keeper ends them.
    pub(crate) programs: bool,
    pub(crate) releases: &'static [&'static str],
    pub(crate) rules: Rules,
    pub(crate) budget: Budget,
    /// So many fences at once.
    pub(crate) at_once: Option<u32>,
    /// The first host device of each node knows its volumes, and they are let go by it.
    pub(crate) volumes: bool,
    /// Which nodes each caller may fence, as a program. The first caller may fence all.
    pub(crate) rights: Arc<Rights>,
    /// Of 100 misfortunes so many strike devices; the others strike gateways, networks and the store.
    pub(crate) device_trouble: u8,
}

impl NodeShape {
    fn draw(random: &mut Random, name: &str) -> Self {
        let outlets: &[&str] = &["pdu-a", "pdu-b"];
        let (levels, sessionless, liar): (&[&[&str]], &[&str], Option<&str>) = match random.below(8) {
            0 | 1 => (&[&["bmc"]], &[], None),
            2 => (&[&["bmc", "second"]], &[], Some("second")),
            3 => (&[&["bmc"], &["second"]], &[], None),
            4 => (&[&["bmc"], outlets], &[], None),
            5 => (&[&["bmc"], outlets], outlets, None),
            6 => (&[&["bmc"]], &["bmc"], None),
            _ => (&[&["bmc", "second"], outlets], &["second"], Some("bmc")),
        };
        let restore = [RestorePolicy::AlwaysOff, RestorePolicy::LastState, RestorePolicy::AlwaysOn];
        let of = |device: &&str| format!("{name}-{device}");
        Self {
            name: name.to_owned(),
            id: NodeId::new(name).expect("a good name"),
            levels: levels.iter().map(|level| level.iter().map(of).collect()).collect(),
            sessionless: sessionless.iter().map(of).collect(),
            liar: liar.filter(|_| random.percent(70)).map(|device| of(&device)),
            parent: None,
            restore: restore[random.below(3) as usize],
        }
    }

    /// One that runs on another node.
    fn child(random: &mut Random, name: &str, parent: &NodeId) -> Self {
        let of = |device: &str| format!("{name}-{device}");
        let (server, up) = (vec![of("server")], vec![of(PARENT)]);
        let levels = if random.percent(50) { vec![up, server] } else { vec![server, up] };
        let parent = Some(parent.clone());
        Self { levels, sessionless: Vec::new(), liar: None, parent, ..Self::draw(random, name) }
    }

    /// Its own devices, which stand in the world; its parent is a node.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &String> {
        self.levels.iter().flatten().filter(|device| !device.ends_with(PARENT))
    }

    fn is_outlet(device: &str) -> bool {
        device.contains("pdu")
    }

    pub(crate) fn hosts(&self) -> impl Iterator<Item = &String> {
        self.devices().filter(|device| !Self::is_outlet(device))
    }

    pub(crate) fn outlets(&self) -> impl Iterator<Item = &String> {
        self.devices().filter(|device| Self::is_outlet(device))
    }
}

impl Shape {
    pub(crate) fn draw(random: &mut Random, weakness: Weakness) -> Self {
        // What is late does harm to the node that it was meant for: where that is looked for there is one.
        let count = if weakness.is_of_what_is_late() { 1 } else { [1, 1, 1, 2, 3][random.below(5) as usize] };
        let gateways = [2, 2, 3][random.below(3) as usize];
        let names = ["n1", "n2", "n3"];
        let mut nodes: Vec<_> = names[..count].iter().map(|name| NodeShape::draw(random, name)).collect();
        if count > 1 && weakness == Weakness::None && random.percent(40) {
            let parent = nodes[0].id.clone();
            nodes[count - 1] = NodeShape::child(random, names[count - 1], &parent);
        }
        let at_once = (count > 1 && random.percent(60)).then_some(1);
        let mut budget = Budget::unlimited();
        if let Some(most) = at_once {
            budget.fleet = Limits { at_once: Some(most), min_not_fenced: Some(0), ..Limits::default() };
            budget.cool_down = s(random.below(60));
        }
        let guest = (weakness == Weakness::NobodyKnowsItsHost || random.percent(25))
            .then(|| (random.below(gateways as u64), random.below(count as u64)));
        // Where a child runs is not checked here, and so not which gateway its parent carries.
        let guest = guest
            .map(|(gateway, node)| (gateway as usize, node as usize))
            .filter(|(_, node)| nodes[*node].parent.is_none());
        let rights = Arc::new(Rights::draw(random, nodes.iter().map(|node| &node.id)));
        Self {
            weakness,
            rights,
            nodes,
            gateways,
            guest,
            trusted: random.percent(20),
            unbounded: random.percent(10),
            releases: [&["detach"] as &[_], &["detach"], &["detach", "notify"], &[]]
                [random.below(4) as usize],
            rules: Rules {
                // Longer than any foreign cycle, and any late command to a device without sessions, that is drawn.
                longest_cycle: s(35),
                on_deadline: s(20 + random.below(80)),
                level_share: s(40 + random.below(80)),
                watch: s(1 + random.below(20)),
                check_every: s(0),
                ..Rules::default()
            },
            budget,
            at_once,
            // Of a weak world its weakness is looked for.
            device_trouble: match weakness {
                Weakness::None => [0, 5, 30, 60][random.below(4) as usize],
                _ => 0,
            },
            programs: match weakness {
                Weakness::None => random.percent(30),
                weakness => weakness == Weakness::ProgramsOutliveTheirGateway,
            },
            names_sessions: random.percent(50) || weakness == Weakness::EndedSessionsLiveOn,
            volumes: match weakness {
                Weakness::None => random.percent(40),
                weakness => weakness == Weakness::DetachesHeedNoEnd,
            },
        }
    }

    /// The machine on which a gateway stands, if that is one of the nodes.
    pub(crate) fn stands_on(&self, gateway: GatewayId) -> Option<&str> {
        self.guest.filter(|(guest, _)| *guest == gateway).map(|(_, node)| self.nodes[node].name.as_str())
    }

    pub(crate) fn node(&self, id: &NodeId) -> &NodeShape {
        self.nodes.iter().find(|node| node.id == *id).expect("every node has a shape")
    }

    /// The node of a device.
    pub(crate) fn owner(&self, device: &str) -> &NodeShape {
        let owns = |node: &&NodeShape| node.devices().any(|own| own == device);
        self.nodes.iter().find(owns).expect("every device has a node")
    }

    pub(crate) fn is_sessionless(&self, device: &str) -> bool {
        self.owner(device).sessionless.iter().any(|name| name == device)
    }

    /// The volumes of each node, with its machine.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = (&str, String)> {
        let all = self.nodes.iter().filter(|_| self.volumes).map(|node| node.name.as_str());
        all.flat_map(|node| ["root", "one", "two"].map(|volume| (node, format!("{node}-{volume}"))))
    }

    pub(crate) fn build(&self, world: &mut World) {
        for node in &self.nodes {
            world.add_machine(&node.name).set_restore(&node.name, node.restore);
            for device in node.devices() {
                if NodeShape::is_outlet(device) {
                    world.add_supply(&node.name, device);
                } else {
                    world.add_host(&node.name, device);
                }
            }
            for device in &node.sessionless {
                world.set_sessionless(device);
            }
            for device in node.devices().filter(|_| self.weakness == Weakness::EndedSessionsLiveOn) {
                world.fault(device, Fault::EndsNoOther);
            }
        }
        for (node, volume) in self.volumes() {
            let disk = Disk { root: volume.ends_with("root"), ..Disk::default() };
            world.add_volume(node, &volume, PLACE, disk);
        }
        for node in &self.nodes {
            if let Some(parent) = &node.parent {
                world.set_parent(&node.name, parent.as_str());
            }
        }
    }

    /// The settings, as one process has them: its own drivers, and its own way to the far sides.
    pub(crate) fn plans(
        &self,
        gateway: GatewayId,
        world: &SharedWorld,
        link: &Arc<dyn Link>,
        releaser: &Arc<dyn Releaser>,
        parents: &Arc<Parents>,
    ) -> Vec<NodePlan> {
        self.sessions_live(world, 4, IDLE);
        let own = self.stands_on(gateway);
        let plan = |node: &NodeShape| {
            let mut plan = self.plan(node, world, link, releaser, parents);
            let is_own = own == Some(node.name.as_str());
            Arc::make_mut(&mut plan.spec).own_host = is_own && self.weakness != Weakness::NobodyKnowsItsHost;
            plan
        };
        let plans = self.nodes.iter().map(plan).collect();
        if self.weakness == Weakness::SessionsNeverEnd {
            // After the drivers were made, who believe otherwise.
            self.sessions_live(world, usize::MAX, IDLE * 1_000);
        }
        plans
    }

    fn sessions_live(&self, world: &SharedWorld, most: usize, idle: Duration) {
        let mut world = world.lock();
        for device in self.nodes.iter().flat_map(NodeShape::devices) {
            world.set_sessions(device, most, idle);
        }
    }

    fn plan(
        &self,
        node: &NodeShape,
        world: &SharedWorld,
        link: &Arc<dyn Link>,
        releaser: &Arc<dyn Releaser>,
        parents: &Arc<Parents>,
    ) -> NodePlan {
        let mut drivers: BTreeMap<DeviceId, Arc<dyn PowerDriver>> = BTreeMap::new();
        let mut levels = Vec::new();
        let plain = SimOptions { names_sessions: self.names_sessions, ..SimOptions::default() };
        let knowing = SimOptions { volumes: self.volumes.then_some(DETACH_LIFE), ..plain.clone() };
        let first = node.hosts().next();
        for level in &node.levels {
            let mut devices = Vec::new();
            for name in level {
                let sim = |name: &str| {
                    let is_parents = level.iter().any(|device| device.ends_with(PARENT));
                    let knows = first.is_some_and(|first| first == name) && !is_parents;
                    SimDriver::new(world, name, if knows { &knowing } else { &plain }).over(link.clone())
                };
                let driver: Arc<dyn PowerDriver> = match name.ends_with(PARENT) {
                    true => {
                        let places = Arc::new(sim(&format!("{}-server", node.name)));
                        let settings =
                            ParentSettings { child: node.id.clone(), node: None, grade: Grade::Claimed };
                        Arc::new(ParentDriver::new(parents, settings, places))
                    }
                    false => Arc::new(sim(name)),
                };
                let spec = self.spec(node, name, &*driver, world);
                drivers.insert(spec.id.clone(), driver);
                devices.push(spec);
            }
            levels.push(Level { devices });
        }
        let releases = self.releases.iter().map(|id| PlannedRelease {
            id: ReleaseId::new(id).expect("a good name"),
            releaser: releaser.clone(),
        });
        let volumes = self.volumes.then(|| volumes::of(&node.id, &drivers));
        let spec = NodeSpec::new(node.id.clone(), Topology::new(levels).expect("a good topology"));
        let releases = volumes.into_iter().chain(releases).collect();
        NodePlan { drivers, releases, ..NodePlan::of(spec) }
    }

    fn spec(
        &self,
        node: &NodeShape,
        name: &str,
        driver: &dyn PowerDriver,
        world: &SharedWorld,
    ) -> DeviceSpec {
        let plain = driver.traits().spec(DeviceId::new(name).expect("a good name"), &self.rules);
        let identity = match plain.class {
            DeviceClass::Host | DeviceClass::Parent => world.lock().identity(&node.name).clone(),
            DeviceClass::Supply => Identity::default(),
        };
        DeviceSpec { trust_after_restart: self.trusted.then(|| s(60)), verified: true, identity, ..plain }
    }
}
