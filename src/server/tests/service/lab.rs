//! A gateway in paused time: simulated machines, a store in memory, the service on a Unix socket, and a client.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hyper_util::rt::TokioIo;
use picket_audit::Audit;
use picket_core::budget::Budget;
use picket_core::device::{DeviceSpec, Identity};
use picket_core::election::{Election, ElectionError, Lease, Won};
use picket_core::ground::ReleasePermit;
use picket_core::ids::{DeviceId, Incarnation, NodeId, ReleaseId};
use picket_core::order::ReleaseOrder;
use picket_core::rules::Rules;
use picket_core::store::Store;
use picket_core::time::{Clock, WallTime};
use picket_core::topology::{Level, Topology};
use picket_driver::PowerDriver;
use picket_driver_sim::{Act, Fault, SharedWorld, SimClock, SimDriver, SimOptions, World};
use picket_engine::{Engine, NoHooks, NodePlan, Parts, PlannedRelease, Receipts};
use picket_proto::v1::fencing_service_client::FencingServiceClient;
use picket_proto::v1::{
    FenceRequest, FenceUpdate, NodeSelector, Outcome, OutcomeKind, UnfenceRequest, node_selector,
};
use picket_receipt::Keys;
use picket_release::{Progress, ReleaseError, Releaser, Subject};
use picket_server::{Addresses, Limits, SocketFile, serve_within};
use picket_store::MemoryStore;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_stream::StreamExt;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Status, Streaming};
use tonic_types::StatusExt;

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

/// Says that the node recovered.
#[derive(Debug)]
struct Alive;

#[async_trait]
impl picket_liveness::Liveness for Alive {
    fn patience(&self) -> Duration {
        s(2)
    }

    async fn look(&self) -> picket_liveness::Look {
        picket_liveness::Look::Recovered("ready".to_owned())
    }
}

/// Completes at once, or only accepts as long as it is told to.
#[derive(Debug, Default)]
pub struct Volumes {
    pub accepts_only: AtomicBool,
}

impl Volumes {
    fn answer(&self) -> Progress {
        match self.accepts_only.load(Ordering::SeqCst) {
            true => Progress::Accepted("working".to_owned()),
            false => Progress::Complete("detached".to_owned()),
        }
    }
}

#[async_trait]
impl Releaser for Volumes {
    fn max_in_flight(&self) -> Option<Duration> {
        Some(s(60))
    }

    fn deadline(&self) -> Duration {
        s(600)
    }

    fn settle(&self) -> Duration {
        s(2)
    }

    async fn attempt(
        &self,
        _order: &ReleaseOrder,
        _permit: &ReleasePermit<'_>,
        _until: Instant,
    ) -> Result<Progress, ReleaseError> {
        Ok(self.answer())
    }

    async fn observe(&self, _subject: &Subject, _until: Instant) -> Result<Progress, ReleaseError> {
        Ok(self.answer())
    }
}

pub struct Lab {
    pub world: SharedWorld,
    pub clock: Arc<SimClock>,
    pub store: Arc<dyn Store>,
    pub volumes: Arc<Volumes>,
    pub engine: Engine,
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
    let clock = Arc::new(SimClock::new());
    tokio::time::advance(s(100)).await;
    let incarnation = Incarnation::mint(WallTime::from_millis(1), [7; 10]);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(incarnation).expect("a store"));
    let volumes = Arc::new(Volumes::default());
    let engine = engine(nodes, &world, &clock, &store, &volumes, audit, budget);
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
    Lab { world, clock, store, volumes, engine, stop, client, socket, serving, _dir: dir }
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
        self.world.lock().expect("whole").fault(device, fault);
    }

    pub fn mend(&self, device: &str) {
        self.world.lock().expect("whole").mend(device);
    }

    pub fn happen(&self, act: Act) {
        self.world.lock().expect("whole").happen(self.clock.boot(), act);
    }

    pub fn is_on(&self, node: &str) -> bool {
        self.world.lock().expect("whole").truth(node, self.clock.boot())
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

    /// Fences `n1` for `db` and waits for the end.
    pub async fn fence(&self, key: &str) -> Outcome {
        self.open(fence_request(key)).await.expect("let in").outcome().await
    }

    /// Unfences `n1` for `db` and waits for the end.
    pub async fn unfence(&self, key: &str) -> Outcome {
        self.back(unfence_request(key)).await.expect("let in").outcome().await
    }
}

type Stream = std::pin::Pin<Box<dyn futures::Stream<Item = Result<FenceUpdate, Status>> + Send>>;

/// A stream that follows a node.
pub struct Updates(Stream);

impl Updates {
    pub fn of<T: Send + 'static>(stream: Streaming<T>, update: fn(T) -> Option<FenceUpdate>) -> Self {
        Self(Box::pin(stream.map(move |answer| answer.map(|answer| update(answer).expect("an update")))))
    }

    /// The next message, within an hour.
    pub async fn next(&mut self) -> Option<Result<FenceUpdate, Status>> {
        tokio::time::timeout(s(3_600), self.0.next()).await.expect("a message, or the end, within an hour")
    }

    pub async fn update(&mut self) -> FenceUpdate {
        self.next().await.expect("a message").expect("no error")
    }

    /// All messages until the stream's end.
    pub async fn all(mut self) -> Vec<FenceUpdate> {
        let mut all = Vec::new();
        while let Some(update) = self.next().await {
            all.push(update.expect("no error"));
        }
        all
    }

    /// The outcome, which stands in the last message and in no other.
    pub async fn outcome(self) -> Outcome {
        let all = self.all().await;
        let (last, others) = all.split_last().expect("at least one message");
        assert!(others.iter().all(|update| update.outcome.is_none()), "{all:#?}");
        last.outcome.clone().unwrap_or_else(|| panic!("{all:#?}"))
    }

    /// The error with which the stream ends.
    pub async fn error(mut self) -> Status {
        loop {
            match self.next().await.expect("an error") {
                Ok(update) => assert_eq!(update.outcome, None),
                Err(status) => return status,
            }
        }
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

fn engine(
    nodes: &[&str],
    world: &SharedWorld,
    clock: &Arc<SimClock>,
    store: &Arc<dyn Store>,
    volumes: &Arc<Volumes>,
    audit: Audit,
    budget: Budget,
) -> Engine {
    let rules = Rules::default();
    let nodes = nodes.iter().map(|node| plan(world, node, &rules, volumes)).collect();
    let random = Mutex::new(picket_driver_sim::Random::new(1));
    Engine::new(Parts {
        clock: clock.clone(),
        random: Arc::new(move |bytes: &mut [u8]| {
            let mut random = random.lock().unwrap_or_else(PoisonError::into_inner);
            bytes.iter_mut().for_each(|byte| *byte = random.bits() as u8);
        }),
        store: store.clone(),
        election: Arc::new(StoreElection(store.clone())),
        hooks: Arc::new(NoHooks),
        audit,
        receipts: Arc::new(Receipts::new(Keys::ephemeral("gateway", &|bytes| bytes.fill(7)))),
        metrics: Default::default(),
        rules,
        budget,
        nodes,
        twins: Arc::default(),
        check_at_start: false,
    })
}

fn plan(world: &SharedWorld, node: &str, rules: &Rules, volumes: &Arc<Volumes>) -> NodePlan {
    let driver = SimDriver::new(world, &format!("{node}-bmc"), &SimOptions::default());
    let traits = driver.traits().clone();
    let id = DeviceId::new("bmc").expect("a good name");
    // That of n10 is not set: a check has to learn it.
    let identity = match node {
        "n10" => Identity::default(),
        _ => world.lock().expect("whole").identity(node).clone(),
    };
    let spec = DeviceSpec {
        id: id.clone(),
        class: traits.class,
        grade: traits.grade,
        has_epochs: traits.has_epochs,
        longest_cycle: rules.longest_cycle,
        call: traits.call,
        dwell: rules.dwell,
        readings: rules.readings,
        max_in_flight: traits.max_in_flight,
        trust_after_restart: None,
        verified: false,
        identity,
    };
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
    NodePlan {
        id: NodeId::new(node).expect("a good name"),
        topology: Topology::new(levels).expect("a good topology"),
        drivers,
        releases: vec![PlannedRelease {
            id: ReleaseId::new("detach").expect("a good name"),
            releaser: volumes.clone(),
        }],
        own_host: node == "me",
        labels: BTreeMap::new(),
        // All that have a number are in one.
        drills: node != "n10",
        groups: node.strip_prefix('n').map(|_| "rack=r1".to_owned()).into_iter().collect(),
        liveness: node.ends_with("alive").then(|| Arc::new(Alive) as _),
        mark: String::new(),
    }
}
