//! The observer of scenarios: a releaser that asks the truth at each attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use picket_core::ground::ReleasePermit;
use picket_core::order::ReleaseOrder;
use picket_core::time::{BootTime, Clock};
use picket_driver_sim::SharedWorld;
use picket_release::{Machine, Pace, Progress, Quarantine, ReleaseError, Releaser, Subject, Whose};
use tokio::time::Instant;

/// What the test's releaser answers, attempt by attempt; the last one for ever.
#[derive(Clone, Debug)]
pub enum Answer {
    Complete,
    Accept,
    Refuse,
    Unknown,
}

impl Answer {
    pub fn to_attempt(&self) -> Result<Progress, ReleaseError> {
        match self {
            Answer::Complete => Ok(Progress::Complete("gone".to_owned())),
            Answer::Accept => Ok(Progress::Accepted("working".to_owned())),
            Answer::Refuse => Err(ReleaseError::DidNotHappen("refused".to_owned())),
            Answer::Unknown => Err(ReleaseError::Unknown("no answer".to_owned())),
        }
    }

    pub fn to_look(&self) -> Result<Progress, ReleaseError> {
        match self {
            Answer::Refuse => Ok(Progress::NotThere("never heard of".to_owned())),
            other => other.to_attempt(),
        }
    }
}

/// Asks the truth at each attempt: a node that can still write must never be released.
#[derive(Debug)]
pub struct Observer {
    pub world: SharedWorld,
    pub clock: Arc<dyn Clock>,
    pub answers: Mutex<Vec<Answer>>,
    pub attempts: Mutex<Vec<BootTime>>,
    pub violations: Mutex<Vec<String>>,
    /// How long an attempt takes to be answered.
    pub attempt_takes: Mutex<Duration>,
    /// How long a look at what was accepted takes.
    pub look_takes: Mutex<Duration>,
    /// Such a look is under way.
    pub looking: AtomicBool,
    pub life: Mutex<Option<Duration>>,
    /// From the first Off to the first attempt.
    pub settle: Mutex<Duration>,
    pub deadline: Duration,
    /// What is told of the machine under the gateway.
    pub machine: Mutex<Result<Machine, String>>,
}

impl Observer {
    pub fn new(world: &SharedWorld, clock: Arc<dyn Clock>) -> Self {
        Self {
            world: world.clone(),
            clock,
            answers: Mutex::new(vec![Answer::Complete]),
            attempts: Mutex::default(),
            violations: Mutex::default(),
            attempt_takes: Mutex::default(),
            look_takes: Mutex::default(),
            looking: AtomicBool::new(false),
            life: Mutex::new(Some(Duration::from_secs(60))),
            settle: Mutex::new(Pace::default().settle),
            deadline: Duration::from_secs(600),
            machine: Mutex::new(Err("the API server is away".to_owned())),
        }
    }

    fn answer(&self) -> Answer {
        let mut answers = self.answers.lock();
        if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
    }
}

#[async_trait]
impl Releaser for Observer {
    fn max_in_flight(&self) -> Option<Duration> {
        *self.life.lock()
    }

    fn pace(&self) -> Pace {
        let settle = *self.settle.lock();
        Pace { deadline: self.deadline, settle, ..Pace::default() }
    }

    async fn attempt(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        _until: Instant,
    ) -> Result<Progress, ReleaseError> {
        let now = self.clock.boot();
        if self.world.lock().truth(permit.node().as_str(), now) {
            // A panic here would end the node's task alone; the lab asks for this when it ends.
            let words = format!("{} is released while it is on, at {now:?}: {order:?}", permit.node());
            self.violations.lock().push(words);
        }
        self.attempts.lock().push(now);
        let takes = *self.attempt_takes.lock();
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        self.answer().to_attempt()
    }

    async fn observe(&self, _subject: &Subject, _until: Instant) -> Result<Progress, ReleaseError> {
        let takes = *self.look_takes.lock();
        self.looking.store(true, Ordering::SeqCst);
        tokio::time::sleep(takes).await;
        self.looking.store(false, Ordering::SeqCst);
        self.answer().to_look()
    }
}

#[async_trait]
impl Quarantine for Observer {
    fn lingers(&self) -> Duration {
        Duration::ZERO
    }

    async fn machine_named(&self, _name: &str, _until: Instant) -> Result<Machine, String> {
        self.machine.lock().clone()
    }

    async fn withdraw(&self, _whose: &Whose, _until: Instant) -> Result<(), ReleaseError> {
        Ok(())
    }
}
