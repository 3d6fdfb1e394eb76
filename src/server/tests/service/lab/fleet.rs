//! The lab's nodes, and the engine that has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use picket_audit::Audit;
use picket_core::budget::Budget;
use picket_core::device::{DeviceSpec, Identity};
use picket_core::ids::{DeviceId, NodeId, ReleaseId};
use picket_core::roles::{Grant, Pattern, Role, Roles, Scope};
use picket_core::rules::Rules;
use picket_core::store::Store;
use picket_core::topology::{Level, Topology};
use picket_driver::PowerDriver;
use picket_driver_sim::{SharedWorld, SimClock, SimDriver, SimOptions};
use picket_engine::{Engine, Hooks, Logins, NodePlan, NodeSpec, Parts, PlannedRelease, Receipts, Unit};
use picket_receipt::Keys;

use super::far::{Alive, StoreElection, Volumes};

/// An engine with these nodes.
pub fn engine(
    nodes: &[&str],
    world: &SharedWorld,
    clock: &Arc<SimClock>,
    store: &Arc<dyn Store>,
    volumes: &Arc<Volumes>,
    (audit, budget): (Audit, Budget),
    hooks: Arc<dyn Hooks>,
) -> Engine {
    let rules = Rules::default();
    let nodes = plans(nodes, world, volumes);
    let random = Mutex::new(picket_driver_sim::Random::new(1));
    Engine::new(Parts {
        clock: clock.clone(),
        random: Arc::new(move |bytes: &mut [u8]| {
            let mut random = random.lock();
            bytes.iter_mut().for_each(|byte| *byte = random.bits() as u8);
        }),
        store: store.clone(),
        election: Arc::new(StoreElection(store.clone())),
        hooks,
        audit,
        receipts: Arc::new(Receipts::new(Keys::ephemeral("gateway", &|bytes| bytes.fill(7)))),
        metrics: Default::default(),
        rules,
        budget,
        roles: local_roles(),
        nodes,
        own: Arc::default(),
        twins: Arc::default(),
        parents: Arc::default(),
        simulated: false,
        check_at_start: false,
        logins: Logins::new(512),
        programs: Arc::new(Unit::of_programs(64)),
    })
}

/// The engine's own roles: whoever is on this machine is admin, and may attest where the door lets it.
fn local_roles() -> Roles {
    let is_local = ["uid:*", "tcp:*"].map(|text| Pattern::new(text).expect("a good pattern"));
    let grant = |role: Role| Grant {
        name: role.word().to_owned(),
        role,
        callers: is_local.to_vec(),
        uids: Vec::new(),
        gids: Vec::new(),
        nodes: Scope::default(),
        holders: Vec::new(),
    };
    Roles::new(vec![grant(Role::Admin), grant(Role::Attest)])
}

/// What the settings say of these nodes.
pub fn plans(nodes: &[&str], world: &SharedWorld, volumes: &Arc<Volumes>) -> Vec<NodePlan> {
    nodes.iter().map(|node| plan(world, node, &Rules::default(), volumes)).collect()
}

fn plan(world: &SharedWorld, node: &str, rules: &Rules, volumes: &Arc<Volumes>) -> NodePlan {
    let driver = SimDriver::new(world, &format!("{node}-bmc"), &SimOptions::default());
    let id = DeviceId::new("bmc").expect("a good name");
    // That of n10 is not set: a check has to learn it.
    let identity = match node {
        "n10" => Identity::default(),
        _ => world.lock().identity(node).clone(),
    };
    let spec = DeviceSpec { identity, ..driver.traits().spec(id.clone(), rules) };
    let mut levels = vec![Level { devices: vec![spec.clone()] }];
    let mut drivers: BTreeMap<DeviceId, Arc<dyn PowerDriver>> = BTreeMap::from([(id, Arc::new(driver) as _)]);
    if node.ends_with("unwired") {
        let driver = SimDriver::new(world, &format!("{node}-outlet"), &SimOptions::default());
        let (id, class) = (DeviceId::new("outlet").expect("a good name"), driver.traits().class);
        let has_epochs = driver.traits().has_epochs;
        let outlet = DeviceSpec { id: id.clone(), class, has_epochs, identity: Identity::default(), ..spec };
        levels.push(Level { devices: vec![outlet] });
        drivers.insert(id, Arc::new(driver));
    }
    let spec = NodeSpec {
        provider_id: (node == "n1").then(|| "aws:///eu-central-1a/i-1".to_owned()),
        own_host: node == "me",
        drills: node != "n10",
        // All that have a number are in one.
        groups: Arc::new(node.strip_prefix('n').map(|_| "rack=r1".to_owned()).into_iter().collect()),
        ..NodeSpec::new(
            NodeId::new(node).expect("a good name"),
            Topology::new(levels).expect("a good topology"),
        )
    };
    NodePlan {
        drivers,
        releases: vec![PlannedRelease {
            id: ReleaseId::new("detach").expect("a good name"),
            releaser: volumes.clone(),
        }],
        liveness: node.ends_with("alive").then(|| Arc::new(Alive) as _),
        ..NodePlan::of(spec)
    }
}
