//! A gateway's engine in paused time, over a simulated world, with an observer that sees the truth.

use std::sync::Arc;
use std::time::Duration;

use picket_core::event::{BoundKey, Holder, Person};
use picket_core::ids::{FenceId, Incarnation, NodeId};
use picket_core::outcome::Outcome;
use picket_core::record::{NodeRecord, SetAside, Then};
use picket_core::store::Store;
use picket_core::time::{Clock, WallTime};
use picket_driver_sim::{Act, Fault, Received, SharedWorld, SimClock, World};
use picket_engine::{
    Admission, Asides, ChangeError, Changed, Engine, EngineError, FenceCall, NodeView, Until,
};
use picket_store::{MemoryStore, backup};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use crate::observer::{Answer, Observer};
use crate::points::Points;
use crate::setup::Setup;
use crate::weather::Weather;

pub const NODE: &str = "n1";

pub fn node() -> NodeId {
    NodeId::new(NODE).expect("a good name")
}

pub fn person() -> Person {
    Person { name: "ada".to_owned(), reason: "a test".to_owned() }
}

/// A number that whoever runs the test gives it.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

pub const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The budget is set aside for this reason.
pub fn budget_aside(reason: &str) -> Asides {
    let who = SetAside { by: "ada".to_owned(), reason: reason.to_owned() };
    Asides { budget: Some(who), quorum: None }
}

pub struct Lab {
    pub world: SharedWorld,
    pub clock: Arc<SimClock>,
    pub store: Arc<Weather>,
    pub observer: Arc<Observer>,
    pub points: Arc<Points>,
    pub engine: Engine,
    pub setup: Setup,
    /// Told to stop, and told once more.
    pub stops: (CancellationToken, CancellationToken),
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
        Self::set_up(seed, Setup::new(NODE, levels), build).await
    }

    /// Makes the world, then the gateway. Where the setup names no release, `detach` goes to the observer.
    pub async fn set_up(seed: u64, setup: Setup, build: impl FnOnce(&mut World)) -> Self {
        eprintln!("seed {seed}");
        // The world began a while ago.
        tokio::time::advance(s(100)).await;
        let mut lab = Self::dark(seed, setup, build);
        lab.start().await;
        lab
    }

    /// Makes the world; the gateway is to be started.
    pub fn dark(seed: u64, mut setup: Setup, build: impl FnOnce(&mut World)) -> Self {
        let mut world = World::new(seed);
        build(&mut world);
        let world = world.shared();
        let clock = Arc::new(SimClock::new());
        let incarnation = Incarnation::mint(WallTime::from_millis(1), [7; 10]);
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(incarnation).expect("a store"));
        let store = Arc::new(Weather::new(memory, clock.clone(), seed));
        let observer = Arc::new(Observer::new(&world, clock.clone()));
        if setup.releases.is_empty() {
            setup.releases.push(("detach".to_owned(), observer.clone()));
        }
        let points = Arc::new(Points::default());
        let shared: Arc<dyn Store> = store.clone();
        let engine = setup.engine(&world, &clock, &shared, points.clone());
        Self {
            world,
            clock,
            store,
            observer,
            points,
            engine,
            setup,
            stops: Default::default(),
            running: None,
            keys: 0,
        }
    }

    pub fn answers(&self, answers: &[Answer]) {
        *self.observer.answers.lock() = answers.to_vec();
    }

    /// A gateway process: new drivers, new sessions, the same store.
    pub async fn start(&mut self) {
        let store: Arc<dyn Store> = self.store.clone();
        self.engine = self.setup.engine(&self.world, &self.clock, &store, self.points.clone());
        let engine = self.engine.clone();
        self.stops = Default::default();
        let (stop, hurry) = self.stops.clone();
        self.running = Some(tokio::spawn(async move {
            engine.run_until(stop, hurry).await.expect("a whole store");
        }));
        self.engine.until_leading().await;
    }

    /// Told to stop; until it has.
    pub async fn stop(&mut self) {
        self.stops.0.cancel();
        if let Some(running) = self.running.take() {
            running.await.expect("an orderly end");
        }
    }

    /// Reloads the setup.
    pub async fn reload(&self) -> Result<Changed, ChangeError> {
        self.engine.change(self.setup.change(&self.world)).await
    }

    /// Gone at once, in the middle of anything; nothing is closed.
    pub async fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
            let _ = running.await;
        }
    }

    /// What the store keeps now, as a backup's file has it.
    pub async fn backup(&self) -> Vec<u8> {
        let content = self.store.dump().await.expect("a whole store");
        let lines = backup::Lines::new(content, self.clock.wall(), "a test");
        lines.collect::<Result<Vec<_>, _>>().expect("written").concat()
    }

    /// The gateway is gone, its store too, and a new one is made from a backup. Nothing is started.
    pub async fn restore(&mut self, file: &[u8]) {
        self.kill().await;
        self.store = Arc::new(Weather::new(self.reborn(file), self.clock.clone(), 1));
    }

    /// A store that was made from a backup.
    pub fn reborn(&self, file: &[u8]) -> Arc<dyn Store> {
        let mut number = 0;
        let mut mint = || {
            number += 1;
            FenceId::mint(self.clock.wall(), [number; 10])
        };
        let rebirth = backup::RestoreOptions {
            at: self.clock.wall(),
            incarnation: Incarnation::mint(self.clock.wall(), [9; 10]),
            mint: &mut mint,
        };
        let content = backup::restored_content(backup::read(file).expect("a whole backup"), rebirth);
        Arc::new(MemoryStore::filled(&content).expect("a store"))
    }

    pub async fn crash(&mut self) {
        self.kill().await;
        self.start().await;
    }

    /// Waits until the point of death is reached; false if it was not within `time`.
    pub async fn died(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.points.death()).await.is_ok()
    }

    pub fn fault(&self, device: &str, fault: Fault) {
        self.world.lock().fault(device, fault);
    }

    pub fn mend(&self, device: &str) {
        self.world.lock().mend(device);
    }

    pub fn happen(&self, act: Act) {
        self.world.lock().happen(self.clock.boot(), act);
    }

    pub fn schedule(&self, after: Duration, act: Act) {
        self.world.lock().schedule(self.clock.boot() + after, act);
    }

    pub fn is_on(&self) -> bool {
        self.world.lock().truth(NODE, self.clock.boot())
    }

    /// How often it truly went from on to off.
    pub fn falls(&self) -> usize {
        let mut world = self.world.lock();
        world.edges(NODE, self.clock.boot()).iter().filter(|edge| !edge.on).count()
    }

    pub fn attempts(&self) -> usize {
        self.observer.attempts.lock().len()
    }

    pub fn call(&mut self) -> FenceCall {
        self.keys += 1;
        FenceCall {
            holder: Holder {
                name: "db".to_owned(),
                by: "tester".to_owned(),
                reason: "a test".to_owned(),
                then: Then::StayOff,
                by_person: false,
                asker: None,
            },
            key: Some(BoundKey { key: format!("k{}", self.keys), digest: "d".to_owned() }),
            min_grade: None,
            deadline: None,
            not_after: None,
            expected_generation: None,
            set_aside: None,
            turn: None,
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

    pub fn record(&self) -> NodeRecord {
        self.view().stored.record.clone()
    }

    pub fn phase(&self) -> &'static str {
        self.record().phase.label()
    }

    /// Another caller, who joins or opens.
    pub async fn open_again(&mut self) {
        let call = self.call();
        self.engine.fence(&node(), call).await.expect("let in");
    }

    /// What a device was asked so far.
    pub fn received(&self, device: &str) -> Received {
        self.world.lock().received(device, self.clock.boot())
    }

    pub async fn reach(&self, phase: &str, time: Duration) {
        self.reach_of(&node(), phase, time).await;
    }

    pub async fn reach_of(&self, node: &NodeId, phase: &str, time: Duration) {
        let work = async {
            let mut view = self.engine.follow(node).expect("known");
            view.wait_for(|view| view.stored.record.phase.label() == phase).await.map(|_| ())
        };
        if tokio::time::timeout(time, work).await.is_err() {
            let view = self.engine.node(node).expect("known");
            panic!("{phase} was not reached within {time:?}: {:#?} {:?}", view.stored.record, view.live);
        }
    }

    /// Waits until it stands in a phase that waits for somebody; false if it does not within `time`.
    pub async fn settled(&self, time: Duration) -> bool {
        let waits = ["normal", "released", "power_on_failed", "needs_operator"];
        let work = async {
            let mut view = self.engine.follow(&node()).expect("known");
            view.wait_for(|view| waits.contains(&view.stored.record.phase.label())).await.map(|_| ())
        };
        tokio::time::timeout(time, work).await.is_ok()
    }

    pub async fn unfence(&self) -> Result<(), EngineError> {
        self.engine.unfence(&node(), "db".to_owned(), person()).await.map(|_| ())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let violations = self.observer.violations.lock().clone();
        if !std::thread::panicking() {
            assert!(violations.is_empty(), "{violations:#?}");
        }
    }
}
