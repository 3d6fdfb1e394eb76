//! A gateway's engine in paused time, over a simulated world, with an observer that sees the truth.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::{DeviceSpec, Identity};
use picket_core::election::{Election, ElectionError, Lease, Won};
use picket_core::event::{BoundKey, Holder, Person};
use picket_core::ground::ReleasePermit;
use picket_core::ids::{DeviceId, FenceId, Incarnation, NodeId, ReleaseId};
use picket_core::order::ReleaseOrder;
use picket_core::outcome::Outcome;
use picket_core::record::Then;
use picket_core::rules::Rules;
use picket_core::store::Store;
use picket_core::time::{BootTime, Clock, WallTime};
use picket_core::topology::{Level, Topology};
use picket_driver::PowerDriver;
use picket_driver_sim::{Act, Fault, SharedWorld, SimClock, SimDriver, SimOptions, World};
use picket_engine::{
    Admission, Engine, EngineError, FenceCall, Hooks, LastLook, NoLiveness, NodePlan, NodeView, Parts,
    PlannedRelease, Until,
};
use picket_release::{Progress, ReleaseError, Releaser, Subject};
use picket_store::MemoryStore;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub const NODE: &str = "n1";

pub fn node() -> NodeId {
    NodeId::new(NODE).expect("a good name")
}

pub fn person() -> Person {
    Person { name: "ada".to_owned(), reason: "a test".to_owned() }
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

/// What the test's releaser answers, attempt by attempt; the last one for ever.
#[derive(Clone, Debug)]
pub enum Answer {
    Complete,
    Accept,
    Refuse,
    Unknown,
}

/// Asks the truth at each attempt: a node that can still write must never be released.
#[derive(Debug)]
pub struct Observer {
    world: SharedWorld,
    clock: Arc<dyn Clock>,
    answers: Mutex<Vec<Answer>>,
    pub attempts: Mutex<Vec<BootTime>>,
    pub life: Option<Duration>,
    pub deadline: Duration,
}

impl Observer {
    fn answer(&self) -> Answer {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
    }
}

#[async_trait]
impl Releaser for Observer {
    fn max_in_flight(&self) -> Option<Duration> {
        self.life
    }

    fn deadline(&self) -> Duration {
        self.deadline
    }

    fn settle(&self) -> Duration {
        Duration::from_secs(2)
    }

    async fn attempt(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        _until: Instant,
    ) -> Result<Progress, ReleaseError> {
        let now = self.clock.boot();
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let machine = permit.node().as_str();
        assert!(!world.truth(machine, now), "{machine} is released while it is on, at {now:?}: {order:?}");
        drop(world);
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner).push(now);
        match self.answer() {
            Answer::Complete => Ok(Progress::Complete("gone".to_owned())),
            Answer::Accept => Ok(Progress::Accepted("working".to_owned())),
            Answer::Refuse => Err(ReleaseError::DidNotHappen("refused".to_owned())),
            Answer::Unknown => Err(ReleaseError::Unknown("no answer".to_owned())),
        }
    }

    async fn observe(&self, _subject: &Subject, _until: Instant) -> Result<Progress, ReleaseError> {
        match self.answer() {
            Answer::Complete => Ok(Progress::Complete("gone".to_owned())),
            Answer::Accept => Ok(Progress::Accepted("working".to_owned())),
            Answer::Refuse => Ok(Progress::NotThere("never heard of".to_owned())),
            Answer::Unknown => Err(ReleaseError::Unknown("no answer".to_owned())),
        }
    }
}

/// Counts the points that are reached, and stops for ever at one of them.
#[derive(Debug, Default)]
pub struct Points {
    pub seen: Mutex<Vec<String>>,
    pub die_at: Mutex<Option<usize>>,
    dead: tokio::sync::Notify,
}

#[async_trait]
impl Hooks for Points {
    async fn reached(&self, point: &str) {
        let dies = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(point.to_owned());
            *self.die_at.lock().unwrap_or_else(PoisonError::into_inner) == Some(seen.len())
        };
        if dies {
            self.dead.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

pub struct Lab {
    pub world: SharedWorld,
    pub clock: Arc<SimClock>,
    pub store: Arc<dyn Store>,
    pub observer: Arc<Observer>,
    pub points: Arc<Points>,
    pub engine: Engine,
    pub rules: Rules,
    levels: Vec<Vec<String>>,
    pub last_look: Arc<dyn LastLook>,
    running: Option<JoinHandle<()>>,
    keys: u32,
}

/// A lab with machine `n1` and the host device `bmc`, of one level.
pub async fn lab(seed: u64) -> Lab {
    Lab::with(seed, &[&["bmc"]], |world| {
        world.add_machine(NODE).add_host(NODE, "bmc");
    })
    .await
}

impl Lab {
    pub async fn with(seed: u64, levels: &[&[&str]], build: impl FnOnce(&mut World)) -> Self {
        eprintln!("seed {seed}");
        let mut world = World::new(seed);
        build(&mut world);
        let world = world.shared();
        let clock = Arc::new(SimClock::new());
        // The world began a while ago.
        tokio::time::advance(Duration::from_secs(100)).await;
        let incarnation = Incarnation::mint(WallTime::from_millis(1), [7; 10]);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(incarnation).expect("a store"));
        let observer = Arc::new(Observer {
            world: world.clone(),
            clock: clock.clone(),
            answers: Mutex::new(vec![Answer::Complete]),
            attempts: Mutex::default(),
            life: Some(Duration::from_secs(60)),
            deadline: Duration::from_secs(600),
        });
        let levels: Vec<Vec<String>> =
            levels.iter().map(|level| level.iter().map(|&device| device.to_owned()).collect()).collect();
        let points = Arc::new(Points::default());
        let last_look: Arc<dyn LastLook> = Arc::new(NoLiveness);
        let rules = Rules::default();
        let engine = build_engine(&world, &clock, &store, &observer, &points, &rules, &levels, &last_look);
        let mut lab = Self {
            world,
            clock,
            store,
            observer,
            points,
            engine,
            rules,
            levels,
            last_look,
            running: None,
            keys: 0,
        };
        lab.start().await;
        lab
    }

    pub fn answers(&self, answers: &[Answer]) {
        *self.observer.answers.lock().expect("whole") = answers.to_vec();
    }

    /// A gateway process: new drivers, new sessions, the same store.
    pub async fn start(&mut self) {
        self.engine = build_engine(
            &self.world,
            &self.clock,
            &self.store,
            &self.observer,
            &self.points,
            &self.rules,
            &self.levels,
            &self.last_look,
        );
        let engine = self.engine.clone();
        self.running = Some(tokio::spawn(async move {
            engine.run(CancellationToken::new()).await.expect("a whole store");
        }));
        self.engine.until_leading().await;
    }

    /// Gone at once, in the middle of anything; nothing is closed.
    pub async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
            let _ = running.await;
        }
    }

    pub async fn crash(&mut self) {
        self.kill().await;
        self.start().await;
    }

    /// Waits until the point of death is reached; false if it was not within `time`.
    pub async fn died(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.points.dead.notified()).await.is_ok()
    }

    pub fn fault(&self, device: &str, fault: Fault) {
        self.world.lock().expect("whole").fault(device, fault);
    }

    pub fn mend(&self, device: &str) {
        self.world.lock().expect("whole").mend(device);
    }

    pub fn happen(&self, act: Act) {
        self.world.lock().expect("whole").happen(self.clock.boot(), act);
    }

    pub fn schedule(&self, after: Duration, act: Act) {
        self.world.lock().expect("whole").schedule(self.clock.boot() + after, act);
    }

    pub fn is_on(&self) -> bool {
        self.world.lock().expect("whole").truth(NODE, self.clock.boot())
    }

    /// How often it truly went from on to off.
    pub fn falls(&self) -> usize {
        let mut world = self.world.lock().expect("whole");
        world.edges(NODE, self.clock.boot()).iter().filter(|edge| !edge.on).count()
    }

    pub fn attempts(&self) -> usize {
        self.observer.attempts.lock().expect("whole").len()
    }

    pub fn call(&mut self) -> FenceCall {
        self.keys += 1;
        FenceCall {
            holder: Holder {
                name: "db".to_owned(),
                by: "tester".to_owned(),
                reason: "a test".to_owned(),
                then: Then::StayOff,
            },
            key: Some(BoundKey { key: format!("k{}", self.keys), digest: "d".to_owned() }),
            min_grade: None,
            deadline: None,
            not_after: None,
            expected_generation: None,
        }
    }

    pub async fn open(&mut self) -> FenceId {
        let call = self.call();
        match self.engine.fence(&node(), call).await.expect("let in") {
            Admission::Opened(id) => id,
            other => panic!("{other:?}"),
        }
    }

    /// Follows a fence to its outcome.
    pub async fn outcome(&self, id: FenceId, until: Until) -> Outcome {
        self.outcome_within(id, until, Duration::from_secs(3_600)).await.expect("an outcome within an hour")
    }

    pub async fn outcome_within(&self, id: FenceId, until: Until, time: Duration) -> Option<Outcome> {
        let work = async {
            let mut view = self.engine.follow(&node()).expect("known");
            loop {
                view.changed().await.expect("the engine lives");
                let now = view.borrow_and_update().clone();
                if let (_, Some(outcome)) = self.engine.outcome(&now, id, until, None).await.expect("a store")
                {
                    return outcome;
                }
            }
        };
        tokio::time::timeout(time, work).await.ok()
    }

    pub async fn fence(&mut self) -> Outcome {
        let id = self.open().await;
        self.outcome(id, Until::Released).await
    }

    pub fn view(&self) -> NodeView {
        self.engine.node(&node()).expect("known")
    }

    pub fn phase(&self) -> &'static str {
        self.view().stored.record.phase.label()
    }

    pub async fn reach(&self, phase: &str, time: Duration) {
        let work = async {
            let mut view = self.engine.follow(&node()).expect("known");
            view.wait_for(|view| view.stored.record.phase.label() == phase).await.map(|_| ())
        };
        if tokio::time::timeout(time, work).await.is_err() {
            let record = self.view().stored.record;
            panic!("{phase} was not reached within {time:?}: {record:#?} {:?}", self.view().live);
        }
    }

    pub async fn unfence(&self) -> Result<(), EngineError> {
        self.engine.unfence(&node(), "db".to_owned(), person()).await.map(|_| ())
    }
}

#[allow(clippy::too_many_arguments)]
fn build_engine(
    world: &SharedWorld,
    clock: &Arc<SimClock>,
    store: &Arc<dyn Store>,
    observer: &Arc<Observer>,
    points: &Arc<Points>,
    rules: &Rules,
    levels: &[Vec<String>],
    last_look: &Arc<dyn LastLook>,
) -> Engine {
    let mut drivers: BTreeMap<DeviceId, Arc<dyn PowerDriver>> = BTreeMap::new();
    let mut topology = Vec::new();
    for level in levels {
        let mut devices = Vec::new();
        for name in level {
            let id = DeviceId::new(name).expect("a good name");
            let driver = SimDriver::new(world, name, &SimOptions::default());
            let traits = driver.traits().clone();
            let identity = match traits.class {
                picket_core::device::DeviceClass::Host => world.lock().expect("whole").identity(NODE).clone(),
                _ => Identity::default(),
            };
            devices.push(DeviceSpec {
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
                verified: true,
                identity,
            });
            drivers.insert(id, Arc::new(driver));
        }
        topology.push(Level { devices });
    }
    let plan = NodePlan {
        id: node(),
        topology: Topology::new(topology).expect("a good topology"),
        drivers,
        releases: vec![PlannedRelease {
            id: ReleaseId::new("detach").expect("a good name"),
            releaser: observer.clone(),
        }],
        own_host: false,
        labels: BTreeMap::new(),
    };
    let counter = Mutex::new(picket_driver_sim::Random::new(1));
    Engine::new(Parts {
        clock: clock.clone(),
        random: Arc::new(move |bytes: &mut [u8]| {
            let mut random = counter.lock().unwrap_or_else(PoisonError::into_inner);
            bytes.iter_mut().for_each(|byte| *byte = random.bits() as u8);
        }),
        store: store.clone(),
        election: Arc::new(StoreElection(store.clone())),
        last_look: last_look.clone(),
        hooks: points.clone(),
        rules: rules.clone(),
        nodes: vec![plan],
        twins: Arc::default(),
        check_at_start: false,
    })
}
