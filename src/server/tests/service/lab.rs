//! A gateway in paused time: simulated machines, a store in memory, the service on a Unix socket, and a client.

pub mod far;
mod fleet;
mod points;
mod updates;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use picket_audit::Audit;
use picket_core::budget::Budget;
use picket_core::ids::{Incarnation, NodeId};
use picket_core::roles::Roles;
use picket_core::rules::Rules;
use picket_core::store::Store;
use picket_core::time::{Clock, WallTime};
use picket_driver_sim::{Act, Fault, SharedWorld, SimClock, World};
use picket_engine::{Change, Engine, NoHooks};
use picket_proto::v1::fencing_service_client::FencingServiceClient;
use picket_proto::v1::{FenceRequest, NodeSelector, Outcome, OutcomeKind, UnfenceRequest, node_selector};
use picket_server::{Addresses, Limits, SocketFile, serve_within};
use picket_store::MemoryStore;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic_types::StatusExt;

use self::far::Volumes;
use self::points::Points;
pub use self::updates::Updates;

pub type Client = FencingServiceClient<Channel>;

/// The machines; `me` is the gateway's own.
pub const NODES: [&str; 4] = ["n1", "n2", "n10", "me"];

pub fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn named(name: &str) -> Option<NodeSelector> {
    Some(NodeSelector { by: Some(node_selector::By::Name(name.to_owned())) })
}

/// A fence of `n1` for `db`, with that key.
pub fn fence_request(key: &str) -> FenceRequest {
    FenceRequest {
        node: named("n1"),
        reason: "a test".to_owned(),
        idempotency_key: key.to_owned(),
        holder: "db".to_owned(),
        ..Default::default()
    }
}

/// An unfence of `n1` for `db`, with that key.
pub fn unfence_request(key: &str) -> UnfenceRequest {
    UnfenceRequest {
        node: named("n1"),
        reason: "a test".to_owned(),
        idempotency_key: key.to_owned(),
        holder: "db".to_owned(),
        ..Default::default()
    }
}

pub struct Lab {
    pub world: SharedWorld,
    pub clock: Arc<SimClock>,
    /// Of another gateway: as the first one was, until that one's is set.
    other_clock: Arc<SimClock>,
    pub store: Arc<dyn Store>,
    pub volumes: Arc<Volumes>,
    pub engine: Engine,
    pub points: Arc<Points>,
    pub stop: CancellationToken,
    pub client: Client,
    pub socket: PathBuf,
    pub serving: Option<JoinHandle<()>>,
    _dir: TempDir,
}

pub async fn lab() -> Lab {
    lab_within(Limits::default()).await
}

pub async fn lab_within(limits: Limits) -> Lab {
    lab_with(limits, Audit::none()).await
}

pub async fn lab_with(limits: Limits, audit: Audit) -> Lab {
    lab_of(&NODES, limits, audit, Budget::unlimited()).await
}

/// A lab of these nodes, with a budget.
pub async fn lab_of(nodes: &[&str], limits: Limits, audit: Audit, budget: Budget) -> Lab {
    let mut world = World::new(1);
    for node in nodes {
        let machine = world.add_machine(node).add_host(node, &format!("{node}-bmc"));
        if node.ends_with("unwired") {
            machine.add_supply(node, &format!("{node}-outlet"));
        }
    }
    let world = world.shared();
    let (clock, other_clock) = (Arc::new(SimClock::new()), Arc::new(SimClock::new()));
    tokio::time::advance(s(100)).await;
    let incarnation = Incarnation::mint(WallTime::from_millis(1), [7; 10]);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(incarnation).expect("a store"));
    let volumes = Arc::new(Volumes::default());
    let points = Arc::new(Points::default());
    let engine = fleet::engine(nodes, &world, &clock, &store, &volumes, (audit, budget), points.clone());
    let stop = CancellationToken::new();
    let working = (engine.clone(), stop.clone());
    tokio::spawn(async move { working.0.run(working.1).await.expect("a whole store") });
    engine.until_leading().await;

    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("picket.sock");
    let unix = Some(SocketFile { path: socket.clone(), mode: SocketFile::MODE });
    let listeners = Addresses { unix, tcp: None }.bind().await.expect("bound");
    let serving = serve_within(limits, engine.clone(), listeners, stop.clone());
    let serving = Some(tokio::spawn(async move { serving.await.expect("served") }));
    let client = connect(&socket).await;
    Lab {
        world,
        clock,
        other_clock,
        store,
        volumes,
        engine,
        points,
        stop,
        client,
        socket,
        serving,
        _dir: dir,
    }
}

pub async fn channel(socket: &std::path::Path) -> Channel {
    let path = socket.to_owned();
    let connector = tower::service_fn(move |_: Uri| {
        let path = path.clone();
        async move { tokio::net::UnixStream::connect(path).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://gateway").connect_with_connector(connector).await.expect("connected")
}

pub async fn connect(socket: &std::path::Path) -> Client {
    Client::new(channel(socket).await)
}

impl Lab {
    pub fn fault(&self, device: &str, fault: Fault) {
        self.world.lock().fault(device, fault);
    }

    pub fn mend(&self, device: &str) {
        self.world.lock().mend(device);
    }

    pub fn happen(&self, act: Act) {
        self.world.lock().happen(self.clock.boot(), act);
    }

    pub fn is_on(&self, node: &str) -> bool {
        self.world.lock().truth(node, self.clock.boot())
    }

    pub fn volumes_only_accept(&self, only: bool) {
        self.volumes.accepts_only.store(only, Ordering::SeqCst);
    }

    /// Waits until `n1` stands in this phase.
    pub async fn reach(&self, phase: &str) {
        let node = NodeId::new("n1").expect("a good name");
        let mut view = self.engine.follow(&node).expect("known");
        let reached = view.wait_for(|view| view.stored.record.phase.label() == phase);
        assert!(
            tokio::time::timeout(s(600), reached).await.is_ok(),
            "{phase} was not reached within 10 minutes"
        );
    }

    pub async fn open(&self, request: FenceRequest) -> Result<Updates, Status> {
        let stream = self.client.clone().fence(request).await?.into_inner();
        Ok(Updates::of(stream, |answer| answer.update))
    }

    pub async fn back(&self, request: UnfenceRequest) -> Result<Updates, Status> {
        let stream = self.client.clone().unfence(request).await?.into_inner();
        Ok(Updates::of(stream, |answer| answer.update))
    }

    /// Another gateway over the same machines and the same store, with a clock of its own. It leads as soon as it runs.
    pub fn another_gateway(&self) -> Engine {
        let (clock, limits) = (&self.other_clock, (Audit::none(), Budget::unlimited()));
        fleet::engine(&NODES, &self.world, clock, &self.store, &self.volumes, limits, Arc::new(NoHooks))
    }

    /// A reload: `n1` has this label from now on, and no other.
    pub async fn label(&self, key: &str, value: &str, roles: Roles) {
        let mut nodes = fleet::plans(&NODES, &self.world, &self.volumes);
        for plan in nodes.iter_mut().filter(|plan| plan.id.as_str() == "n1") {
            let labels = &mut Arc::make_mut(&mut plan.spec).labels;
            *labels = Arc::new(BTreeMap::from([(key.to_owned(), value.to_owned())]));
            plan.mark = format!("{key}={value}");
        }
        let (rules, budget) = (Rules::default(), Budget::unlimited());
        self.engine.change(Change { nodes, rules, budget, roles }).await.expect("good settings");
    }

    /// Fences `n1` for `db` and waits for the end.
    pub async fn fence(&self, key: &str) -> Outcome {
        self.open(fence_request(key)).await.expect("let in").outcome().await
    }

    /// Unfences `n1` for `db` and waits for the end.
    pub async fn unfence(&self, key: &str) -> Outcome {
        self.back(unfence_request(key)).await.expect("let in").outcome().await
    }
}

/// The reason of an error, and its metadata.
pub fn reason(status: &Status) -> (String, BTreeMap<String, String>) {
    let details = status.get_error_details();
    let info = details.error_info().unwrap_or_else(|| panic!("no details: {status:?}"));
    assert_eq!(info.domain, "picket");
    (info.reason.clone(), info.metadata.clone().into_iter().collect())
}

/// The fields that a request had wrong.
pub fn wrong_fields(status: &Status) -> Vec<String> {
    let details = status.get_error_details();
    let bad = details.bad_request().unwrap_or_else(|| panic!("no fields: {status:?}"));
    bad.field_violations.iter().map(|fault| fault.field.clone()).collect()
}

pub fn kind(outcome: &Outcome) -> OutcomeKind {
    outcome.kind()
}
