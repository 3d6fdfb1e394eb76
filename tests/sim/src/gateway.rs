//! A gateway: the real engine over its own clock, networks and sessions; it begins, dies, and begins again.

use std::sync::Arc;

use parking_lot::Mutex;
use picket_core::election::Election;
use picket_core::store::Store;
use picket_driver_sim::{Link, Random, SimClock};
use picket_engine::{Engine, Gate, Logins, NodePlan, Parents, Parts, Receipts, Unit, gated};
use picket_receipt::Keys;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::far::{Client, Elector, FarSide, Quorum};
use crate::gate::{Points, Process};
use crate::scene::{Scene, ms, s};
use crate::sky::{Sky, Wires};
use crate::trace::{Blow, GatewayId, What};

/// A machine on which the daemon runs, or does not.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) id: GatewayId,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) sky: Arc<Sky>,
    pub(crate) scene: Arc<Scene>,
    quorum: Arc<Quorum>,
    far: Arc<FarSide>,
    seed: Random,
    pub(crate) life: Option<Life>,
}

/// One process of it.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) process: Arc<Process>,
    pub(crate) engine: Engine,
    /// Cancelled when its connections break.
    pub(crate) gone: CancellationToken,
    /// What its settings say of the nodes.
    pub(crate) plans: Plans,
    elector: Arc<Elector>,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

/// Makes the nodes' plans, as a process that reads its settings does.
pub(crate) struct Plans(Box<dyn Fn() -> Vec<NodePlan> + Send + Sync>);

impl std::fmt::Debug for Plans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Plans")
    }
}

impl Plans {
    pub(crate) fn read(&self) -> Vec<NodePlan> {
        (self.0)()
    }
}

impl Gateway {
    pub(crate) fn new(
        id: GatewayId,
        scene: &Arc<Scene>,
        quorum: &Arc<Quorum>,
        far: &Arc<FarSide>,
        seed: u64,
    ) -> Self {
        let mut seed = Random::new(seed);
        Self {
            id,
            clock: Arc::new(SimClock::new()),
            sky: Sky::new(seed.bits()),
            scene: scene.clone(),
            quorum: quorum.clone(),
            far: far.clone(),
            seed,
            life: None,
        }
    }

    /// Begins a process, if none runs.
    pub(crate) fn start(&mut self) {
        if self.life.is_some() || !self.has_power() {
            return;
        }
        let (id, scene) = (self.id, self.scene.clone());
        scene.note(What::Began { gateway: id });
        let process = Process::new(scene.clone(), id, self.clock.clone());
        let (sky, clock) = (self.sky.clone(), self.clock.clone());
        let client = Arc::new(Client {
            gateway: id,
            quorum: self.quorum.clone(),
            sky: sky.clone(),
            clock: clock.clone(),
            process: process.clone(),
        });
        let elector = Elector::new(client.clone(), process.clone(), self.seed.bits());
        let link: Arc<dyn Link> =
            Arc::new(Wires { gateway: id, scene: scene.clone(), sky, process: process.clone() });
        let releaser = self.far.way(id, &process, &self.clock);
        let store: Arc<dyn Store> = client;
        let election: Arc<dyn Election> = elector.clone();
        let parents = Arc::<Parents>::default();
        let rights = scene.rights();
        for hold in [false, true] {
            scene.note(What::Rights { gateway: id, rights: rights.clone(), hold });
        }
        let plans = {
            let (scene, parents) = (scene.clone(), parents.clone());
            Plans(Box::new(move || scene.shape.plans(id, &scene.world, &link, &releaser, &parents)))
        };
        let engine = Engine::new(Parts {
            clock,
            random: random(self.seed.bits()),
            store,
            election,
            hooks: Arc::new(Points(process.clone())),
            audit: scene.books.of(id),
            receipts: Arc::new(Receipts::new(Keys::ephemeral(&format!("g{id}"), &|bytes| {
                bytes.fill(u8::try_from(id).unwrap_or(0) + 1);
            }))),
            metrics: Default::default(),
            rules: scene.shape.rules.clone(),
            budget: scene.shape.budget.clone(),
            roles: rights.roles(),
            nodes: plans.read(),
            own: Arc::default(),
            twins: Arc::default(),
            parents,
            simulated: false,
            check_at_start: false,
            logins: Logins::new(512),
            programs: Arc::new(Unit::of_programs(64)),
        });
        let (stop, running) = (CancellationToken::new(), engine.clone());
        let (gate, told): (Arc<dyn Gate>, _) = (process.clone(), stop.clone());
        let work = async move {
            if let Err(error) = running.run(told).await {
                scene.broken(format!("g{id} ended by itself: {error}"));
            }
        };
        let running = tokio::spawn(gated(Some(gate), work));
        self.life =
            Some(Life { process, engine, gone: CancellationToken::new(), plans, elector, stop, running });
    }

    /// Gone at once, in the middle of anything; nothing is closed, and what was sent still arrives.
    pub(crate) async fn kill(&mut self) {
        if self.life.is_some() {
            self.scene.note(What::Struck(Blow::Killed));
            self.scene.say(|| format!("g{} is killed", self.id));
            self.go().await;
        }
    }

    /// The same, when nobody counts it any more.
    pub(crate) async fn go(&mut self) {
        let Some(life) = self.life.take() else { return };
        life.gone.cancel();
        life.process.die();
        life.elector.die();
        life.running.abort();
        let _ = life.running.await;
    }

    /// Told to stop; until it has. One that hangs, or is stopped, is killed after a while, as an operator would.
    pub(crate) async fn end(&mut self) {
        let Some(life) = &self.life else { return };
        self.scene.note(What::Struck(Blow::Ended));
        self.scene.say(|| format!("g{} is told to end", self.id));
        life.stop.cancel();
        let until = self.scene.now() + s(30);
        while !life.running.is_finished() && self.scene.now() < until {
            tokio::time::sleep(ms(50)).await;
        }
        self.go().await;
    }

    fn has_power(&self) -> bool {
        self.scene.shape.stands_on(self.id).is_none_or(|machine| self.scene.is_on(machine))
    }

    /// Whether its process reached its point of death.
    pub(crate) fn is_dead(&self) -> bool {
        self.life.as_ref().is_some_and(|life| life.process.is_dead())
    }

    /// Ended although nobody told it.
    pub(crate) fn ended_by_itself(&self) -> bool {
        self.life.as_ref().is_some_and(|life| life.running.is_finished())
    }
}

fn random(seed: u64) -> picket_driver::Random {
    let state = Mutex::new(Random::new(seed));
    Arc::new(move |bytes: &mut [u8]| {
        let mut random = state.lock();
        bytes.chunks_mut(8).for_each(|chunk| {
            let word = random.bits().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        });
    })
}
