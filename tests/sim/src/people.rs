//! Callers and persons, at random: each asks one gateway after the other until one leads, and leaves when it takes too long.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::device::Grade;
use picket_core::event::{BoundKey, Holder, Person};
use picket_core::ids::{NodeId, ReceiptId, ReleaseId};
use picket_core::receipt::Statement;
use picket_core::record::{SetAside, Then};
use picket_core::roles::{Person as Caller, Proof};
use picket_core::store::StoreError;
use picket_driver_sim::Random;
use picket_engine::{Asides, Change, Engine, EngineError, FenceCall, Gate, LetIn, ReceiptCall, gated};
use picket_receipt::{ListedKey, PublicKeys, Signed};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::far::{FarSide, Quorum};
use crate::gate::Process;
use crate::gateway::Gateway;
use crate::rights::Rights;
use crate::scene::{Scene, s};
use crate::trace::{Told, What};

pub(crate) const HOLDERS: [&str; 3] = ["db", "k8s", "ops"];

pub(crate) fn release(name: &str) -> ReleaseId {
    ReleaseId::new(name).expect("a good name")
}

pub(crate) fn person(name: &str) -> Person {
    Person { name: name.to_owned(), reason: "chaos".to_owned() }
}

/// A connection to one gateway's process.
#[derive(Clone, Debug)]
struct Line {
    engine: Engine,
    process: Arc<Process>,
    gone: CancellationToken,
}

/// Connections to all processes that run at the moment, in the order in which a caller tries them.
#[derive(Clone, Debug)]
pub(crate) struct Lines(Vec<Line>);

impl Lines {
    pub(crate) fn to(gateways: &[Gateway], first: usize) -> Self {
        let order = (0..gateways.len()).map(|index| &gateways[(index + first) % gateways.len()]);
        let line = |gateway: &Gateway| {
            let life = gateway.life.as_ref().filter(|life| !life.process.is_dead())?;
            Some(Line { engine: life.engine.clone(), process: life.process.clone(), gone: life.gone.clone() })
        };
        Self(order.filter_map(line).collect())
    }

    /// Asks one gateway after the other until one of them leads. `None`: a connection broke, and nobody knows.
    pub(crate) async fn ask<T, F>(&self, ask: impl Fn(Engine) -> F) -> Option<Result<T, EngineError>>
    where
        F: Future<Output = Result<T, EngineError>>,
    {
        let mut last = Err(EngineError::NoLeader("no gateway runs".to_owned()));
        for line in &self.0 {
            let gate: Arc<dyn Gate> = line.process.clone();
            let asked = gated(Some(gate), ask(line.engine.clone()));
            match line.gone.run_until_cancelled(asked).await? {
                Err(error @ EngineError::NoLeader(_)) => last = Err(error),
                other => return Some(other),
            }
        }
        Some(last)
    }
}

/// What everybody shares.
#[derive(Debug)]
pub(crate) struct People {
    pub(crate) scene: Arc<Scene>,
    pub(crate) calls: JoinSet<()>,
    /// Receipts that were issued to somebody.
    receipts: Arc<Mutex<Vec<(NodeId, ReceiptId, String)>>>,
    /// Where the public keys are listed.
    quorum: Arc<Quorum>,
}

impl People {
    pub(crate) fn new(scene: Arc<Scene>, quorum: Arc<Quorum>) -> Self {
        Self { scene, calls: JoinSet::new(), receipts: Arc::default(), quorum }
    }

    /// Whether a person can know that nothing of ours is on its way any more: no process is stopped, or was lately.
    fn is_calm(&self, gateways: &[Gateway]) -> bool {
        let now = self.scene.now();
        gateways
            .iter()
            .filter_map(|gateway| gateway.life.as_ref())
            .all(|life| !life.process.is_stopped() && now.since(life.process.thawed()) > s(60))
    }

    /// Somebody asks for something.
    pub(crate) fn ask(&mut self, random: &mut Random, gateways: &[Gateway], far: &FarSide) {
        let node =
            self.scene.shape.nodes[random.below(self.scene.shape.nodes.len() as u64) as usize].id.clone();
        let lines = Lines::to(gateways, random.below(gateways.len() as u64) as usize);
        let who = HOLDERS[random.below(3) as usize];
        let patience = s(1 + random.below(200));
        let holder = self.holder(random, &node);
        let what = random.below(26);
        match what {
            0..8 => self.fence(random, lines, node, patience),
            8..12 => self.spawn("unfence", node.clone(), patience, async move {
                words(
                    lines
                        .ask(|e| {
                            let (n, h) = (node.clone(), holder.clone());
                            async move { e.unfence(&n, h, person(who)).await }
                        })
                        .await,
                )
            }),
            // A retry of what nothing bounds says that it has surely ended; so does giving a release up.
            12..15 if self.is_calm(gateways) && far.is_quiet() => {
                self.spawn("retry", node.clone(), patience, async move {
                    words(
                        lines
                            .ask(|e| {
                                let n = node.clone();
                                async move { e.retry(&n, person(who)).await }
                            })
                            .await,
                    )
                })
            }
            15 if self.is_calm(gateways) && far.is_quiet() => {
                let which = release(if random.percent(70) { "detach" } else { "notify" });
                self.spawn("abandon", node.clone(), patience, async move {
                    words(
                        lines
                            .ask(|e| {
                                let (n, r) = (node.clone(), which.clone());
                                async move { e.abandon(&n, r, person(who)).await }
                            })
                            .await,
                    )
                });
            }
            16 => self.spawn("stand down", node.clone(), patience, async move {
                words(
                    lines
                        .ask(|e| {
                            let n = node.clone();
                            async move { e.stand_down(&n, person(who)).await }
                        })
                        .await,
                )
            }),
            // Whoever vouches went there and looked.
            17 if !self.scene.is_on(node.as_str()) => {
                self.spawn("attest", node.clone(), patience, async move {
                    words(
                        lines
                            .ask(|e| {
                                let n = node.clone();
                                async move { e.attest(&n, person(who)).await }
                            })
                            .await,
                    )
                })
            }
            18..21 => self.receipt(lines, node, who, patience),
            21 => self.hand_back(random, lines, patience),
            22 | 23 => self.reload(random, gateways),
            _ => self.spawn("check", node.clone(), patience, async move {
                words(
                    lines
                        .ask(|e| {
                            let n = node.clone();
                            async move { e.check(&n).await }
                        })
                        .await,
                )
            }),
        }
    }

    /// Whose hold is to be dropped: more often than not one that there is.
    fn holder(&self, random: &mut Random, node: &NodeId) -> String {
        let holds = self.scene.past(|past| past.record(node).holds.keys().next().cloned());
        let any = HOLDERS[random.below(3) as usize].to_owned();
        holds.filter(|_| random.percent(75)).unwrap_or(any)
    }

    fn spawn(
        &mut self,
        what: &'static str,
        node: NodeId,
        patience: Duration,
        work: impl Future<Output = String> + Send + 'static,
    ) {
        let scene = self.scene.clone();
        self.calls.spawn(async move {
            let told =
                tokio::time::timeout(patience, work).await.unwrap_or_else(|_| "the caller left".to_owned());
            scene.say(|| format!("{what} {node}: {told}"));
        });
    }

    fn fence(&mut self, random: &mut Random, lines: Lines, node: NodeId, patience: Duration) {
        let (call, waits) = (call(random), random.percent(30));
        // The server lets nobody else ask.
        if !self.scene.rights().may(&call.holder.by, &node) {
            return;
        }
        let scene = self.scene.clone();
        let key = call.key.as_ref().map(|bound| bound.key.clone());
        self.calls.spawn(async move {
            if let Some(key) = key.clone() {
                scene.note(What::Asks { node: node.clone(), key });
            }
            let asked = lines.ask(|engine| {
                let (node, call) = (node.clone(), call.clone());
                async move {
                    if waits {
                        engine.fence_or_wait(&node, call, Some(s(120))).await
                    } else {
                        engine.fence(&node, call).await.map(LetIn::In)
                    }
                }
            });
            let told = tokio::time::timeout(patience, asked).await.ok().flatten();
            scene.say(|| format!("fence {node}, key {key:?}: {told:?}"));
            if let Some(key) = key {
                scene.note(What::Answered { node, key, told: heard(told) });
            }
        });
    }

    fn receipt(&mut self, lines: Lines, node: NodeId, who: &'static str, patience: Duration) {
        let (receipts, scene, quorum) = (self.receipts.clone(), self.scene.clone(), self.quorum.clone());
        self.spawn("receipt", node.clone(), patience, async move {
            let call =
                || ReceiptCall { by: who.to_owned(), fence: None, renews: None, audience: String::new() };
            let told = lines
                .ask(|engine| {
                    let node = node.clone();
                    async move { engine.receipt(&node, call()).await }
                })
                .await;
            if let Some(Ok(receipted)) = &told {
                let said = read(&receipted.signed, &quorum.listed());
                scene.note(What::Receipted { node: node.clone(), id: receipted.id, said });
                let mut receipts = receipts.lock();
                receipts.push((node.clone(), receipted.id, who.to_owned()));
            }
            words(told.map(|told| told.map(|receipted| receipted.id)))
        });
    }

    /// Other settings: callers have other rights, and nodes cool down for another time. Each gateway reads them when it gets to it.
    fn reload(&mut self, random: &mut Random, gateways: &[Gateway]) {
        let scene = self.scene.clone();
        let rights = Arc::new(Rights::draw(random, scene.shape.nodes.iter().map(|node| &node.id)));
        let mut budget = scene.shape.budget.clone();
        if scene.shape.at_once.is_some() {
            budget.cool_down = s(random.below(60));
        }
        scene.set_rights(&rights);
        scene.say(|| format!("{rights:?}"));
        for gateway in gateways {
            let Some(life) = gateway.life.as_ref().filter(|life| !life.process.is_dead()) else { continue };
            let (scene, rights, id) = (scene.clone(), rights.clone(), gateway.id);
            scene.note(What::Rights { gateway: id, rights: rights.clone(), hold: false });
            let change = Change {
                nodes: life.plans.read(),
                rules: scene.shape.rules.clone(),
                budget: budget.clone(),
                roles: rights.roles(),
            };
            let (engine, gone) = (life.engine.clone(), life.gone.clone());
            let gate: Arc<dyn Gate> = life.process.clone();
            self.calls.spawn(async move {
                let changing = gated(Some(gate), async move { engine.change(change).await });
                let changing = gone.run_until_cancelled(changing);
                // Whoever reloads a process that died waits no longer than other callers.
                if let Ok(Some(Ok(_))) = tokio::time::timeout(s(200), changing).await {
                    scene.note(What::Rights { gateway: id, rights, hold: true });
                }
            });
        }
    }

    fn hand_back(&mut self, random: &mut Random, lines: Lines, patience: Duration) {
        let one = {
            let mut receipts = self.receipts.lock();
            if receipts.is_empty() {
                return;
            }
            let index = random.below(receipts.len() as u64) as usize;
            receipts.swap_remove(index)
        };
        let (node, id, by) = one;
        self.scene.note(What::HandsBack { node: node.clone(), id });
        self.spawn("hand back", node.clone(), patience, async move {
            words(
                lines
                    .ask(|engine| {
                        let (node, by) = (node.clone(), by.clone());
                        async move { engine.return_receipt(&node, id, by).await }
                    })
                    .await,
            )
        });
    }
}

/// What a receipt says to whoever has the keys that are listed.
fn read(signed: &Signed, listed: &[ListedKey]) -> Result<Box<Statement>, String> {
    let body = signed.verify(&PublicKeys::of(listed)?).map_err(|forged| forged.to_string())?;
    body.statement().map(Box::new).map_err(|fault| fault.to_string())
}

fn words<T>(told: Option<Result<T, EngineError>>) -> String {
    match told {
        None => "the connection broke".to_owned(),
        Some(Ok(_)) => "done".to_owned(),
        Some(Err(error)) => error.to_string(),
    }
}

/// What a caller with a key knows afterwards.
fn heard(told: Option<Result<LetIn, EngineError>>) -> Told {
    match told {
        None => Told::Unknown,
        Some(Ok(LetIn::In(admission))) => Told::Fence(admission.fence()),
        Some(Ok(LetIn::Waits(_))) => Told::Unknown,
        Some(Err(EngineError::KeyTaken(_))) => Told::Taken,
        Some(Err(EngineError::Store(StoreError::Unknown(_)))) => Told::Unknown,
        // Leadership ended while it waited: it may have been stored.
        Some(Err(EngineError::Unanswered | EngineError::Store(StoreError::Deposed(_)))) => Told::Unknown,
        Some(Err(error)) => Told::Nothing(error.to_string()),
    }
}

pub(crate) fn fence_call(holder: &str) -> FenceCall {
    FenceCall {
        holder: Holder {
            by: holder.to_owned(),
            name: holder.to_owned(),
            reason: "chaos".to_owned(),
            then: Then::StayOff,
            by_person: false,
            asker: Some(Caller { name: holder.to_owned(), proof: Proof::Certificate }),
        },
        key: None,
        min_grade: None,
        deadline: None,
        not_after: None,
        expected_generation: None,
        set_aside: None,
        turn: None,
    }
}

fn call(random: &mut Random) -> FenceCall {
    let mut call = fence_call(HOLDERS[random.below(3) as usize]);
    let key = random.below(40);
    let digest = if random.percent(90) { "d" } else { "other" };
    if random.percent(40) {
        call.holder.then = Then::PowerOn;
    }
    call.key = random.percent(70).then(|| BoundKey { key: format!("c{key}"), digest: digest.to_owned() });
    call.min_grade = random.percent(15).then_some(Grade::Observed);
    call.deadline = random.percent(30).then(|| s(30 + random.below(300)));
    let who = SetAside { by: "ops".to_owned(), reason: "chaos".to_owned() };
    call.set_aside = random.percent(10).then_some(Asides { budget: Some(who), quorum: None });
    call
}
