//! A far side that answers at random, late or never, and asks the truth at each attempt.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use picket_core::device::Grade;
use picket_core::ground::{LOOK_LIFE, ReleasePermit};
use picket_core::ledger::EffectKind;
use picket_core::order::ReleaseOrder;
use picket_core::record::Phase;
use picket_core::time::{BootTime, Clock};
use picket_driver_sim::Random;
use picket_release::{Progress, ReleaseError, Releaser, Subject};
use tokio::time::Instant;

use super::law::Law;
use crate::lab::{Answer, node, s};

#[derive(Debug)]
pub struct Whimsical {
    pub law: Arc<Law>,
    pub random: Mutex<Random>,
    /// From now on it completes at once.
    pub kind: Mutex<bool>,
    pub unbounded: bool,
    pub attempts: Mutex<Vec<BootTime>>,
}

impl Whimsical {
    async fn answer(&self, until: Instant) -> Option<Answer> {
        if *self.kind.lock().expect("whole") {
            return Some(Answer::Complete);
        }
        let (answer, takes) = {
            let mut random = self.random.lock().expect("whole");
            let answer = match random.below(10) {
                0..4 => Some(Answer::Complete),
                4 | 5 => Some(Answer::Accept),
                6 => Some(Answer::Refuse),
                7 | 8 => Some(Answer::Unknown),
                _ => None,
            };
            let quick = random.percent(50);
            (answer, if quick { Duration::ZERO } else { random.between(Duration::ZERO, s(25)) })
        };
        let answered = tokio::time::timeout_at(until, async {
            tokio::time::sleep(takes).await;
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        });
        answered.await.ok()
    }

    /// S4, seen from outside: the machine is off, or was switched on by somebody else after it was looked at.
    fn examine(&self, order: &ReleaseOrder, permit: &ReleasePermit<'_>) {
        let now = self.law.clock.boot();
        let attested = permit.evidence().grade == Grade::Attested;
        if let Some(edge) = self.law.on_since(now) {
            let fresh = now.since(edge.at) <= LOOK_LIFE && !self.law.is_ours(&edge);
            let vouched = attested && !self.law.is_ours(&edge);
            if !fresh && !vouched {
                self.law.broken(format!("released while it is on since {edge:?}: {order:?}"));
            }
        }
        let record = self.law.store.stood(&node(), now).expect("a record");
        let fence = record.fence.as_ref().expect("a fence");
        let open = record.ledger.get(order.effect());
        let entered = open.is_some_and(|open| open.kind == EffectKind::Release(order.release().clone()));
        if record.phase != Phase::Fenced
            || fence.id != permit.fence()
            || record.generation != permit.generation()
            || fence.evidence.is_none()
            || !entered
        {
            self.law.broken(format!("an attempt without a ground: {order:?} {permit:?} {record:#?}"));
        }
        self.law.say(format!("release attempt of generation {}", permit.generation()));
        self.attempts.lock().expect("whole").push(now);
    }
}

#[async_trait]
impl Releaser for Whimsical {
    fn max_in_flight(&self) -> Option<Duration> {
        (!self.unbounded).then_some(s(65))
    }

    fn deadline(&self) -> Duration {
        s(300)
    }

    fn settle(&self) -> Duration {
        s(2)
    }

    async fn attempt(
        &self,
        order: &ReleaseOrder,
        permit: &ReleasePermit<'_>,
        until: Instant,
    ) -> Result<Progress, ReleaseError> {
        self.examine(order, permit);
        self.answer(until).await.unwrap_or(Answer::Unknown).to_attempt()
    }

    async fn observe(&self, _subject: &Subject, until: Instant) -> Result<Progress, ReleaseError> {
        self.answer(until).await.unwrap_or(Answer::Unknown).to_look()
    }
}
