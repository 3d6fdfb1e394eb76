//! The engine in this process, with rules that `picketd` refuses: for negative controls alone.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;

use picket_core::device::Grade;
use picket_core::event::Holder;
use picket_core::ids::{DeviceId, FenceId, Incarnation, NodeId, ReleaseId};
use picket_core::outcome::Outcome;
use picket_core::record::{Evidence, Then};
use picket_core::rules::Rules;
use picket_core::store::Store;
use picket_core::time::Clock;
use picket_core::topology::{Level, Topology};
use picket_driver::{Context, Random};
use picket_election::Single;
use picket_engine::clock::SystemClock;
use picket_engine::{
    Engine, FenceCall, Logins, NoHooks, NodePlan, NodeSpec, Parts, PlannedRelease, Receipts, Unit, Until,
};
use picket_receipt::Keys;
use picket_store::MemoryStore;
use picket_tests::peers::{OPERATOR, PASSWORD};
use picket_tests::{PeerError, Result, Webhook};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::bmc::scene::{LONG, NODE};

/// A running engine over one node behind one BMC, with the driver and the releaser that `picketd` has.
pub struct Inside {
    engine: Engine,
    running: JoinHandle<()>,
    _password: tempfile::NamedTempFile,
}

fn random() -> Random {
    Arc::new(|bytes: &mut [u8]| {
        let mut source = std::fs::File::open("/dev/urandom").expect("it is there");
        source.read_exact(bytes).expect("it never ends");
    })
}

impl Inside {
    /// Starts it under these rules, whatever they are.
    pub async fn start(rules: Rules, bmc: SocketAddr, webhook: &Webhook) -> Result<Self> {
        let clock = Arc::new(SystemClock);
        let context = Context { clock: clock.clone(), random: random() };
        let password = tempfile::NamedTempFile::new().map_err(PeerError::io("create a password's file"))?;
        std::fs::write(password.path(), PASSWORD).map_err(PeerError::io("write a password"))?;
        let settings = json!({
            "host": bmc.ip().to_string(), "port": bmc.port(), "username": OPERATOR,
            "password_file": password.path(), "cipher_suites": [17, 3],
        });
        let table = settings.as_object().expect("a table");
        let driver = picket_driver_ipmi::kind().make(table, &context).expect("good settings");
        let id = DeviceId::new("bmc").expect("a good name");
        let spec = driver.traits().spec(id.clone(), &rules);
        let release = json!({ "url": webhook.url(), "settle": "500ms" });
        let release = release.as_object().expect("a table");
        let topology = Topology::new(vec![Level { devices: vec![spec] }]).expect("a good topology");
        let spec = NodeSpec::new(NodeId::new(NODE).expect("a good name"), topology);
        let plan = NodePlan {
            drivers: BTreeMap::from([(id, driver)]),
            releases: vec![PlannedRelease {
                id: ReleaseId::new("detach").expect("a good name"),
                releaser: picket_release::make("detach", "webhook", release).expect("good settings"),
            }],
            ..NodePlan::of(spec)
        };
        let incarnation = Incarnation::mint(clock.wall(), [7; 10]);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(incarnation).expect("an empty store"));
        let engine = Engine::new(Parts {
            clock,
            random: context.random.clone(),
            election: Arc::new(Single::new(store.clone())),
            store,
            hooks: Arc::new(NoHooks),
            audit: picket_audit::Audit::none(),
            receipts: Arc::new(Receipts::new(Keys::ephemeral("gateway", &|bytes| bytes.fill(7)))),
            metrics: Default::default(),
            rules,
            budget: picket_core::budget::Budget::unlimited(),
            roles: picket_core::roles::Roles::of_this_machine(),
            nodes: vec![plan],
            own: Arc::default(),
            twins: Arc::default(),
            parents: Arc::default(),
            simulated: false,
            check_at_start: true,
            logins: Logins::new(512),
            programs: Arc::new(Unit::of_programs(64)),
        });
        let runs = engine.clone();
        let running = tokio::spawn(async move {
            runs.run(CancellationToken::new()).await.expect("a whole store");
        });
        engine.until_leading().await;
        Ok(Self { engine, running, _password: password })
    }

    /// Fences the node; the evidence with which that ended.
    pub async fn fence(&self) -> (Outcome, Option<Evidence>) {
        let node = NodeId::new(NODE).expect("a good name");
        let holder = Holder {
            name: "test".to_owned(),
            by: "tester".to_owned(),
            reason: "a test".to_owned(),
            then: Then::StayOff,
            by_person: false,
            asker: None,
        };
        let call = FenceCall {
            holder,
            key: None,
            min_grade: Some(Grade::Claimed),
            deadline: None,
            not_after: None,
            expected_generation: None,
            set_aside: None,
            turn: None,
        };
        let fence = self.engine.fence(&node, call).await.expect("let in").fence();
        timeout(LONG, self.outcome(&node, fence)).await.expect("an outcome in time")
    }

    async fn outcome(&self, node: &NodeId, fence: FenceId) -> (Outcome, Option<Evidence>) {
        let mut view = self.engine.follow(node).expect("known");
        loop {
            let now = view.borrow_and_update().clone();
            let told = self.engine.outcome(&now, fence, Until::Released, None).await.expect("a store");
            if let (Some(fence), Some(outcome)) = told {
                return (outcome, fence.evidence);
            }
            view.changed().await.expect("the engine lives");
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.running.abort();
    }
}
