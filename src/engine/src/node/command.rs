//! What callers ask of a node, and the answers. The same in every phase; the rules say what is possible.

use std::sync::Arc;

use picket_core::event::{BoundKey, Event, FenceRequest, Person, PlannedRelease};
use picket_core::ground::{AttestedOff, Look, ReleaseGround};
use picket_core::ids::{FenceId, Generation, ReleaseId};
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::{NodeRecord, Phase};
use picket_core::store::StoreError;
use picket_core::time::WallTime;
use tokio::sync::oneshot;

use super::asked::{Asked, InWords};
use super::{Failure, Fatal, Ground, NodeTask};
use crate::error::{EngineError, Stale, TakenKey};
use crate::request::{Admission, Ask, FenceCall, Taken};

/// Where an answer goes. A caller who left does not stop anything.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, EngineError>>;

pub(crate) enum Command {
    Fence(Box<FenceCall>, Reply<Admission>),
    Unfence {
        holder: String,
        ask: Ask,
        reply: Reply<Taken>,
    },
    Retry(Ask, Reply<Taken>),
    Abandon(ReleaseId, Ask, Reply<Taken>),
    StandDown(Ask, Reply<Taken>),
    Attest(Person, Reply<NodeRecord>),
    /// Ask all devices now. A fence ends it unanswered.
    Check(Reply<NodeRecord>),
}

impl Command {
    /// Answers that the store is away: nothing was changed.
    pub(super) fn turn_away(self, record: &NodeRecord, why: &str) {
        fn no<T>(reply: Reply<T>, why: &str) {
            let _ = reply.send(Err(EngineError::Store(StoreError::Unavailable(why.to_owned()))));
        }
        match self {
            Command::Fence(_, reply) => no(reply, why),
            Command::Unfence { reply, .. }
            | Command::Retry(_, reply)
            | Command::Abandon(_, _, reply)
            | Command::StandDown(_, reply) => no(reply, why),
            Command::Attest(_, reply) => no(reply, why),
            Command::Check(reply) => {
                let _ = reply.send(Ok(record.clone()));
            }
        }
    }

    /// Whether devices are asked for it while a node is being fenced.
    pub(super) fn asks_devices(&self) -> bool {
        matches!(self, Command::Attest(..))
    }

    /// Whether it is to be answered before anything else: it cancels a check.
    pub(super) fn is_check(&self) -> bool {
        matches!(self, Command::Check(_))
    }
}

impl NodeTask {
    /// Does what a caller asks, in whatever phase.
    pub(super) async fn command(&mut self, command: Command) -> Result<(), Fatal> {
        let asked = command.asked();
        match command {
            Command::Fence(call, reply) => {
                let answer = self.admit(*call).await;
                self.answer(asked, reply, answer)
            }
            Command::Unfence { holder, ask, reply } => {
                let answer = self.people(ask, |person| Event::Unfence { holder, person }).await;
                self.answer(asked, reply, answer)
            }
            Command::Retry(ask, reply) => {
                let answer = self.people(ask, Event::Retry).await;
                self.answer(asked, reply, answer)
            }
            Command::Abandon(release, ask, reply) => {
                let answer = self.people(ask, |person| Event::Abandon { release, person }).await;
                self.answer(asked, reply, answer)
            }
            Command::StandDown(ask, reply) => {
                let answer = self.people(ask, Event::StandDown).await;
                self.answer(asked, reply, answer)
            }
            Command::Attest(person, reply) => {
                let answer = self.attest(person).await;
                self.answer(asked, reply, answer)
            }
            Command::Check(reply) => {
                // Within a fence the devices are read all the time: what is known is fresh.
                let record = self.record().clone();
                self.answer(asked, reply, Ok(Ok(record)))
            }
        }
    }

    /// Tells the audit what became of a request, and the caller.
    fn answer<T: InWords>(
        &self,
        asked: Option<Asked>,
        reply: Reply<T>,
        answer: Result<Result<T, EngineError>, Fatal>,
    ) -> Result<(), Fatal> {
        if let Some(asked) = asked {
            let became = match &answer {
                Ok(Ok(taken)) => Ok(taken.in_words()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(Fatal(error)) => Err(format!("whether it was stored is not known: {error}")),
            };
            self.teller.request(asked, self.record(), became);
        }
        deliver(reply, answer)
    }

    async fn people<'a>(
        &mut self,
        ask: Ask,
        event: impl FnOnce(Person) -> Event<'a>,
    ) -> Result<Result<Taken, EngineError>, Fatal> {
        match self.bound(ask.key.as_ref()).await {
            Ok(Ok(Some(fence))) => return Ok(Ok(Taken::Before(fence))),
            Ok(Ok(None)) => {}
            Ok(Err(error)) => return Ok(Err(error)),
            Err(failure) => return refusal(failure),
        }
        if let Err(stale) = self.in_time(ask.not_after, ask.expected_generation) {
            return Ok(Err(stale.into()));
        }
        let event = event(ask.person);
        let event = match ask.key {
            Some(key) => Event::Keyed { event: Box::new(event), key },
            None => event,
        };
        match self.apply(event).await {
            Ok(_) => Ok(Ok(Taken::Now(Box::new(self.record().clone())))),
            Err(failure) => refusal(failure),
        }
    }

    /// The fence to which a key is bound already. Bound to other parameters it is an error.
    async fn bound(&self, key: Option<&BoundKey>) -> Result<Result<Option<FenceId>, EngineError>, Failure> {
        let Some(bound) = key else { return Ok(Ok(None)) };
        let entry = self.parts.store.key(&self.record().node, &bound.key).await.map_err(store_failure)?;
        Ok(match entry {
            Some(entry) if entry.digest != bound.digest => {
                Err(EngineError::KeyTaken(TakenKey { key: bound.key.clone(), fence: entry.fence }))
            }
            Some(entry) => Ok(Some(entry.fence)),
            None => Ok(None),
        })
    }

    fn in_time(&self, not_after: Option<WallTime>, expected: Option<Generation>) -> Result<(), Stale> {
        let found = self.record().generation;
        match expected {
            _ if not_after.is_some_and(|limit| self.wall() > limit) => Err(Stale::NotAfter),
            Some(expected) if expected != found => Err(Stale::Generation { expected, found }),
            _ => Ok(()),
        }
    }

    async fn admit(&mut self, call: FenceCall) -> Result<Result<Admission, EngineError>, Fatal> {
        // A repetition is answered even when it comes late: it changes nothing.
        match self.bound(call.key.as_ref()).await {
            Ok(Ok(Some(fence))) => {
                if let Some(answer) = self.replay(fence).await? {
                    return Ok(answer);
                }
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => return Ok(Err(error)),
            Err(failure) => return refusal(failure),
        }
        if let Err(stale) = self.in_time(call.not_after, call.expected_generation) {
            return Ok(Err(stale.into()));
        }
        if self.plan.own_host {
            return Ok(Err(EngineError::Blocked {
                reason: Reason::OwnHost,
                detail: "this gateway stands on that machine and does not shoot itself".to_owned(),
            }));
        }
        match self.record().phase {
            Phase::Normal | Phase::Unfencing | Phase::PowerOnFailed => self.open(call).await,
            Phase::Fenced | Phase::Released => self.join_proven(call).await,
            // A person is asked in the middle of an unfence: the fence was ended by it, and nobody can join it.
            Phase::NeedsOperator(_) if !self.fence_is_current() => self.open(call).await,
            Phase::Fencing | Phase::NeedsOperator(_) => self.join(call).await,
        }
    }

    /// A key that is bound: its fence goes on, or it has ended and is told as it ended. `None`: it ended before an off
    /// was sent, which does not bind the key (S20): it is decided again.
    async fn replay(&mut self, fence: FenceId) -> Result<Option<Result<Admission, EngineError>>, Fatal> {
        let record = self.record();
        let open = record.fence.as_ref().filter(|open| open.id == fence);
        if open.is_some_and(|open| open.generation == record.generation) {
            // Fenced is said only with a proof in hand and an Off read just now, to whoever asks again too.
            if matches!(record.phase, Phase::Fenced | Phase::Released) {
                self.prove_now().await?;
            }
            if self.fence_id() == fence {
                return Ok(Some(Ok(Admission::Joined(fence))));
            }
        }
        let record = self.record();
        let open = record.fence.as_ref().filter(|open| open.id == fence);
        let kept = match open {
            Some(open) => Ok(Some(open.clone())),
            None => self.parts.store.fence(fence).await,
        };
        Ok(match kept {
            Ok(Some(ended)) if ended.outcome == Some(Outcome::AbortedRecovered) => None,
            Ok(Some(ended)) => Some(Ok(Admission::Superseded(Box::new(ended)))),
            Ok(None) => Some(Err(Stale::FenceGone(fence).into())),
            Err(error) => Some(refusal(store_failure(error))?),
        })
    }

    async fn open(&mut self, call: FenceCall) -> Result<Result<Admission, EngineError>, Fatal> {
        let rules = &self.parts.rules;
        let request = FenceRequest {
            id: self.mint_fence(),
            holder: call.holder,
            deadline: call.deadline.unwrap_or(rules.fence_deadline),
            min_grade: call.min_grade.unwrap_or(picket_core::device::Grade::Claimed),
            topology: self.plan.topology.clone(),
            releases: self
                .plan
                .releases
                .iter()
                .map(|plan| PlannedRelease {
                    id: plan.id.clone(),
                    max_in_flight: plan.releaser.max_in_flight(),
                })
                .collect(),
            key: call.key,
        };
        let id = request.id;
        match self.apply(Event::Fence(Box::new(request))).await {
            Ok(_) => {
                self.resumed = false;
                Ok(Ok(Admission::Opened(id)))
            }
            Err(failure) => refusal(failure),
        }
    }

    async fn join(&mut self, call: FenceCall) -> Result<Result<Admission, EngineError>, Fatal> {
        match self.apply(Event::Join { holder: call.holder, key: call.key }).await {
            Ok(_) => Ok(Ok(Admission::Joined(self.fence_id()))),
            Err(failure) => refusal(failure),
        }
    }

    /// "Already fenced" is said only with a proof in hand and an Off read just now; else it is proven anew.
    async fn join_proven(&mut self, call: FenceCall) -> Result<Result<Admission, EngineError>, Fatal> {
        let proven = self.prove_now().await?;
        // A join that wants the power back once everything is released may bring the node back at once.
        let fence = self.fence_id();
        match self.apply(Event::Join { holder: call.holder, key: call.key }).await {
            Ok(_) if proven => Ok(Ok(Admission::Already(fence))),
            Ok(_) => Ok(Ok(Admission::Joined(self.fence_id()))),
            Err(failure) => refusal(failure),
        }
    }

    /// Whether the node is proven off now: a proof in hand and an Off read just now. If not it is proven anew.
    async fn prove_now(&mut self) -> Result<bool, Fatal> {
        let looks = self.look().await?;
        let now = self.now();
        let proven = match &self.ground {
            Some(held) => held.ground.examine(&looks, now).map_err(|fault| fault.to_string()),
            None => Err("this leadership has not proven it yet".to_owned()),
        };
        if self.found_on(&looks).await? {
            return Ok(false);
        }
        if let Err(why) = &proven {
            self.persist(|| Event::Unproven { why: why.clone() }).await?;
        }
        Ok(proven.is_ok())
    }

    fn fence_is_current(&self) -> bool {
        let record = self.record();
        record.fence.as_ref().is_some_and(|fence| fence.generation == record.generation)
    }

    fn fence_id(&self) -> FenceId {
        match &self.record().fence {
            Some(fence) => fence.id,
            None => self.mint_fence(),
        }
    }

    async fn attest(&mut self, person: Person) -> Result<Result<NodeRecord, EngineError>, Fatal> {
        let hosts = self.hosts();
        let looks: Vec<Look> = self.look_at(&hosts).await?;
        match self.apply(Event::Attest { person, looks: &looks }).await {
            Ok(_) => {
                let term = self.hands.leadership().term();
                let dark_since = self.now();
                self.ground = AttestedOff::of(self.record(), term)
                    .map(|word| Arc::new(Ground { ground: ReleaseGround::Attested(word), dark_since }));
                Ok(Ok(self.record().clone()))
            }
            Err(failure) => refusal(failure),
        }
    }
}

fn store_failure(error: StoreError) -> Failure {
    match error {
        StoreError::Unavailable(why) => Failure::Unavailable(why),
        error => Failure::Fatal(error),
    }
}

/// What a caller is told of a failure; the fatal ones go on to the engine too.
fn refusal<T>(failure: Failure) -> Result<Result<T, EngineError>, Fatal> {
    match failure {
        Failure::Refused(refused) => Ok(Err(refused.into())),
        Failure::Unavailable(why) => Ok(Err(EngineError::Store(StoreError::Unavailable(why)))),
        Failure::Fatal(error) => Err(Fatal(error)),
    }
}

fn deliver<T>(reply: Reply<T>, answer: Result<Result<T, EngineError>, Fatal>) -> Result<(), Fatal> {
    match answer {
        Ok(answer) => {
            let _ = reply.send(answer);
            Ok(())
        }
        Err(fatal) => {
            let _ = reply.send(Err(EngineError::Store(fatal.0.clone())));
            Err(fatal)
        }
    }
}
