//! What lets volumes go: a far side behind a network, which heeds the request's own end and answers at random.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::device::Grade;
use picket_core::ground::ReleasePermit;
use picket_core::ids::{Generation, NodeId};
use picket_core::order::ReleaseOrder;
use picket_core::time::{BootTime, Clock};
use picket_driver_sim::{Random, SimClock};
use picket_release::{Pace, Progress, ReleaseError, Releaser, Subject};
use tokio::time::{Instant, sleep, timeout_at};

use crate::gate::{Leaving, Process};
use crate::scene::{Scene, ms, s};
use crate::shape::Weakness;
use crate::trace::{GatewayId, What};

/// So long after an attempt's time its program is surely gone.
const OVERTIME: Duration = Duration::from_secs(2);

/// The far side, which all gateways share.
#[derive(Debug)]
pub(crate) struct FarSide {
    scene: Arc<Scene>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    random: Random,
    /// From now on it completes at once.
    kind: bool,
    /// Requests on their way.
    under_way: u32,
}

/// How it answers, and whether it does what it was asked.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Complete,
    Accept,
    Refuse,
    /// Done or not, nothing is said.
    Silent(bool),
}

/// One gateway's way there.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    far: Arc<FarSide>,
    gateway: GatewayId,
    process: Arc<Process>,
    clock: Arc<SimClock>,
    kind: Kind,
}

/// What bounds an attempt (S8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The far side: it heeds the request's own end.
    Request,
    /// A keeper: it ends the program once the attempt's time is over, and with its gateway.
    Program,
    /// Nothing.
    Unbounded,
}

impl FarSide {
    pub(crate) fn new(scene: Arc<Scene>, seed: u64) -> Arc<Self> {
        let state = State { random: Random::new(seed), kind: false, under_way: 0 };
        Arc::new(Self { scene, state: Mutex::new(state) })
    }

    pub(crate) fn be_kind(&self) {
        self.state.lock().kind = true;
    }

    /// Nothing is on its way: whoever goes there and looks can say so.
    pub(crate) fn is_quiet(&self) -> bool {
        self.state.lock().under_way == 0
    }

    pub(crate) fn way(
        self: &Arc<Self>,
        gateway: GatewayId,
        process: &Arc<Process>,
        clock: &Arc<SimClock>,
    ) -> Arc<dyn Releaser> {
        let kind = match (self.scene.shape.unbounded, self.scene.shape.programs) {
            (true, _) => Kind::Unbounded,
            (false, true) => Kind::Program,
            (false, false) => Kind::Request,
        };
        Arc::new(Way { far: self.clone(), gateway, process: process.clone(), clock: clock.clone(), kind })
    }

    fn draw(&self) -> (Answer, Duration) {
        let state = &mut *self.state.lock();
        if state.kind {
            return (Answer::Complete, Duration::ZERO);
        }
        let answer = match state.random.below(10) {
            0..5 => Answer::Complete,
            5 | 6 => Answer::Accept,
            7 => Answer::Refuse,
            8 => Answer::Silent(true),
            _ => Answer::Silent(false),
        };
        if self.scene.shape.weakness == Weakness::ProgramsOutliveTheirGateway {
            // Longer than its attempt, and than a successor waits for that.
            return (Answer::Complete, state.random.between(s(10), s(140)));
        }
        let quick = state.random.percent(60);
        (answer, if quick { Duration::ZERO } else { state.random.between(Duration::ZERO, s(25)) })
    }
}

/// What goes to the far side.
#[derive(Clone, Debug)]
struct Request {
    node: NodeId,
    generation: Generation,
    grade: Grade,
    permitted_at: BootTime,
    gateway: GatewayId,
    /// Until when it may be acted upon, as the far side's clock has it; `None`: nothing is said of that.
    not_after: Option<BootTime>,
}

impl Request {
    /// It arrived: the volumes go, unless it came too late.
    fn take_effect(&self, scene: &Scene) -> bool {
        // The request says until when it may be acted upon, and the far side heeds that (S8).
        if self.not_after.is_some_and(|not_after| scene.now() > not_after) {
            return false;
        }
        let Request { node, generation, grade, permitted_at, gateway, .. } = self.clone();
        scene.note(What::Released { gateway, node, generation, permitted_at, grade });
        true
    }
}

impl Way {
    /// Until when, by the far side's clock. What the gateway's wall clock is behind, because its machine stood still, the far
    /// side's is not; other faults of it are within the margin of the release's life.
    fn not_after(&self, permit: &ReleasePermit<'_>) -> BootTime {
        let left = permit.not_after().millis().saturating_sub(self.clock.wall().millis());
        // It may be over already.
        let then = self.far.scene.now().since_boot() + Duration::from_millis(left);
        BootTime::from_boot(then.saturating_sub(self.clock.behind()))
    }

    /// The keeper: until the program is ended, as the attempt's time is over, or its gateway stands still or is gone.
    async fn ended(self, until: Instant) {
        if self.far.scene.shape.weakness == Weakness::ProgramsOutliveTheirGateway {
            std::future::pending::<()>().await;
        }
        while Instant::now() < until && !self.process.is_stopped() {
            sleep(ms(100)).await;
        }
    }

    async fn answered(&self, answer: Answer) -> Option<Answer> {
        match answer {
            Answer::Silent(_) => std::future::pending().await,
            answer => Some(answer),
        }
    }
}

#[async_trait]
impl Releaser for Way {
    fn max_in_flight(&self) -> Option<Duration> {
        match self.kind {
            Kind::Request => Some(s(65)),
            Kind::Program => Some(self.pace().attempt + OVERTIME),
            Kind::Unbounded => None,
        }
    }

    fn pace(&self) -> Pace {
        Pace { deadline: s(300), ..Pace::default() }
    }

    async fn attempt(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        until: Instant,
    ) -> Result<Progress, ReleaseError> {
        let scene = &self.far.scene;
        let request = Request {
            node: permit.node().clone(),
            generation: permit.generation(),
            grade: permit.evidence().grade,
            permitted_at: scene.now(),
            gateway: self.gateway,
            not_after: (self.kind == Kind::Request && scene.shape.weakness != Weakness::ReleasesHeedNoEnd)
                .then(|| self.not_after(permit)),
        };
        scene.note(What::Attempt {
            gateway: self.gateway,
            node: request.node.clone(),
            release: order.release().clone(),
            effect: order.effect(),
            generation: request.generation,
            fence: permit.fence(),
            grade: request.grade,
        });
        if self.kind != Kind::Program {
            self.process.leaves(Leaving::Release).await;
        }
        let (answer, takes) = self.far.draw();
        let (far, does) = (self.far.clone(), !matches!(answer, Answer::Refuse | Answer::Silent(false)));
        let kept = (self.kind == Kind::Program).then(|| self.clone().ended(until));
        // On its way, whatever becomes of who sent it.
        far.state.lock().under_way += 1;
        let effect = tokio::spawn(async move {
            let ended = match kept {
                None => {
                    sleep(takes).await;
                    false
                }
                Some(kept) => tokio::time::timeout(takes, kept).await.is_ok(),
            };
            far.state.lock().under_way -= 1;
            does && !ended && request.take_effect(&far.scene)
        });
        if self.kind == Kind::Program {
            // A program has begun, and its gateway stands still.
            self.process.leaves(Leaving::Release).await;
        }
        let heard = timeout_at(until, async {
            let done = effect.await.unwrap_or(false);
            (done, self.answered(answer).await)
        });
        match heard.await {
            Ok((_, Some(Answer::Refuse))) => Err(ReleaseError::DidNotHappen("refused".to_owned())),
            Ok((false, Some(_))) => Err(ReleaseError::DidNotHappen("it came too late".to_owned())),
            Ok((true, Some(Answer::Complete))) => Ok(Progress::Complete("gone".to_owned())),
            Ok((true, Some(Answer::Accept))) => Ok(Progress::Accepted("working".to_owned())),
            _ => Err(ReleaseError::Unknown("no answer".to_owned())),
        }
    }

    async fn observe(&self, _subject: &Subject, until: Instant) -> Result<Progress, ReleaseError> {
        let (answer, takes) = self.far.draw();
        let heard = timeout_at(until, async {
            sleep(takes).await;
            self.answered(answer).await
        });
        match heard.await {
            Ok(Some(Answer::Complete)) => Ok(Progress::Complete("gone".to_owned())),
            Ok(Some(Answer::Accept)) => Ok(Progress::Accepted("working".to_owned())),
            Ok(Some(Answer::Refuse)) => Ok(Progress::NotThere("never heard of".to_owned())),
            _ => Err(ReleaseError::Unknown("no answer".to_owned())),
        }
    }
}
