//! How a node's record changes: decided, stored, and only then done.

use std::sync::Arc;
use std::time::Duration;

use picket_core::event::Event;
use picket_core::ids::{EffectId, FenceId};
use picket_core::ledger::{EffectKind, OpenEffect};
use picket_core::machine::{self, Refused};
use picket_core::order::Opened;
use picket_core::outcome::Reason;
use picket_core::record::{NodeRecord, Phase, ReleaseStage};
use picket_core::store::StoreError;
use picket_core::time::BootTime;

use super::away::Waiting;
use super::command::store_failure;
use super::measuring::Standing;
use super::sessions::Sessions;
use super::{Failure, Fatal, NodeTask, quarantine};

/// Where a node stands; a phase's loop ends when this changes.
pub(super) type Place = (&'static str, u64, Option<(FenceId, u32)>);

impl NodeTask {
    pub(super) fn place(&self) -> Place {
        Self::place_of(self.record())
    }

    pub(super) fn place_of(record: &NodeRecord) -> Place {
        (
            record.phase.label(),
            record.generation.0,
            record.fence.as_ref().map(|fence| (fence.id, fence.round)),
        )
    }

    /// Decides, stores, and only then opens the effects.
    pub(super) async fn apply(&mut self, event: Event<'_>) -> Result<Vec<Opened>, Failure> {
        let event = self.after_met(event);
        let label = event.label();
        let term = self.hands.leadership().term();
        let before = self.place();
        let (was_normal, began) = (self.record().phase == Phase::Normal, self.now());
        let step = machine::step(self.record(), self.stored.version, event, term, self.wall())
            .map_err(Failure::Refused)?;
        let step = match self.teller.head() {
            Some(head) if Self::place_of(step.record()) != before => step.anchor(&head),
            _ => step,
        };
        if !self.office.may_store(self.record(), step.record()) {
            let why = "the machine on which it runs does not hold it any more";
            return Err(Failure::Refused(Refused::ForeignProof(why)));
        }
        if step.changes_nothing(self.record()) {
            // Nothing is written for it; that this leadership leads still, and that the record is the newest one, is asked all the same (S6).
            return self.ask_store().await.map(|()| Vec::new()).map_err(store_failure);
        }
        if Self::place_of(step.record()) != before || self.gives_up_what_is_attempted(step.record()) {
            // What moves the node, or gives a release up, may take its time to be stored, and nothing more is sent on the old ground meanwhile.
            self.cut_off();
        }
        let told = self.teller.step(self.record(), &step, label);
        // At the end of the gateway nothing is begun any more; what ends is stored.
        let begins = step.begins(self.record());
        let work = self.work.clone();
        // Whoever waits there for the end of the gateway reads power all the same where something stands (K3).
        let _piece = if begins { self.of_store(work.begin()).await } else { work.go_on() };
        self.parts.hooks.reached(&format!("saving {label}")).await;
        let saved = match self.save(&step).await {
            Ok(saved) => saved,
            Err(StoreError::Unavailable(why)) => {
                tracing::warn!(event = label, why, "the store did not take a step");
                return Err(Failure::Unavailable(why));
            }
            Err(error @ StoreError::KeyTaken(_)) => {
                return Err(Failure::Unavailable(error.to_string()));
            }
            Err(error) => {
                tracing::error!(event = label, %error, "this leadership cannot go on");
                return Err(Failure::Fatal(error));
            }
        };
        let standing = Standing::of(self.record());
        let (stored, opened) = step.open(saved).into_parts();
        self.stored = Arc::new(stored);
        self.forget_stored_met();
        self.office.stored(&self.stored.record);
        self.teller.measures.moved(&standing, &self.stored.record, self.wall(), self.now());
        self.teller.tell(told);
        self.teller.moved(&self.stored.record);
        self.parts.hooks.reached(&format!("saved {label}")).await;
        self.note_effects(&opened);
        if self.place() != before {
            let record = self.record();
            tracing::info!(
                event = label,
                from = before.0,
                to = record.phase.label(),
                generation = record.generation.0,
                fence = record.fence.as_ref().map(|fence| fence.id.to_string()),
                "the node moved to another phase"
            );
            self.live_mut().wait = None;
        } else {
            tracing::debug!(event = label, phase = before.0, "a step was stored");
        }
        if !matches!(self.record().phase, Phase::Fencing | Phase::Fenced) {
            self.unproven = 0;
        }
        if self.record().phase != Phase::Unfencing {
            self.found_standing = 0;
        }
        if was_normal || self.record().phase == Phase::Normal {
            self.sessions = Sessions::since(began);
            self.said_first.clear();
        }
        self.sessions.fence = self.record().fence.as_ref().map(|fence| fence.id);
        if self.record().phase != Phase::Fenced && self.record().phase != Phase::Released {
            self.ground = None;
            // What was seen while the store took that a person is asked is stored next: it may be a breach.
            let asks_of_it =
                matches!(self.record().phase, Phase::NeedsOperator(_)) && self.place().1 == before.1;
            self.doubt = self.doubt.take().filter(|_| asks_of_it);
        }
        self.weigh_age(before, began);
        self.live_mut().proven = self.is_proven_now();
        self.hands.work_in(&self.stored.record.phase);
        self.show_stored();
        Ok(opened)
    }

    /// Whether an attempt under way is none by that record: a person says that it has ended, or gave its release up.
    fn gives_up_what_is_attempted(&self, next: &NodeRecord) -> bool {
        let Some(open) = self.attempted.and_then(|effect| self.record().ledger.get(effect)) else {
            return false;
        };
        let EffectKind::Release(release) = &open.kind else { return false };
        let state = next.fence.as_ref().and_then(|fence| fence.release(release));
        next.ledger.get(open.id).is_none()
            || state.is_some_and(|state| state.stage == ReleaseStage::Abandoned)
    }

    /// Applies an event of our own. While the store is away it is tried again, and nothing else happens meanwhile.
    pub(super) async fn persist(&mut self, make: impl Fn() -> Event<'static>) -> Result<Vec<Opened>, Fatal> {
        let waiting = Waiting::watching(&self.plan.paces);
        self.persist_in(waiting, make).await
    }

    /// The same of what says that the node is not proven off, after what of it is gone: what else stands goes meanwhile, also where the store
    /// is away (K3).
    pub(super) async fn persist_unproven(
        &mut self,
        gone: Vec<EffectId>,
        make: impl Fn() -> Event<'static>,
    ) -> Result<Vec<Opened>, Fatal> {
        self.take_away_all_but(&gone);
        let waiting = Waiting::unproven(&self.plan.paces);
        self.persist_in(waiting, || quarantine::after(gone.clone(), make())).await
    }

    pub(super) async fn persist_in(
        &mut self,
        mut waiting: Waiting,
        make: impl Fn() -> Event<'static>,
    ) -> Result<Vec<Opened>, Fatal> {
        loop {
            if let Some(became) = self.try_to_persist(make(), &mut waiting).await? {
                return Ok(became.unwrap_or_default());
            }
        }
    }

    /// `None`: the store is away, and was waited for. `Some(Err)`: the rules do not allow it.
    async fn try_to_persist(
        &mut self,
        event: Event<'static>,
        waiting: &mut Waiting,
    ) -> Result<Option<Result<Vec<Opened>, Refused>>, Fatal> {
        match self.apply(event).await {
            Ok(opened) => Ok(Some(Ok(opened))),
            Err(Failure::Fatal(error)) => Err(Fatal(error)),
            Err(Failure::Refused(refused)) => {
                // The phases ask only for what the rules allow; if they do not, the safe thing is to do nothing.
                tracing::error!(%refused, "a step of our own was refused");
                tokio::time::sleep(self.plan.paces.refused_step).await;
                Ok(Some(Err(refused)))
            }
            Err(Failure::Unavailable(why)) => {
                self.wait_for(format!("the store ({why})"), "store", None);
                self.turn_away(waiting, &why).await;
                Ok(None)
            }
        }
    }

    /// The same of something that is about to be sent, with the sessions in which it will go.
    pub(super) async fn persist_in_sessions(
        &mut self,
        make: impl Fn() -> Event<'static>,
    ) -> Result<Vec<Opened>, Fatal> {
        Ok(self.persist_or_refused(make).await?.unwrap_or_default())
    }

    /// The same for a step whose refusal a person has to read.
    pub(super) async fn persist_or_refused(
        &mut self,
        make: impl Fn() -> Event<'static>,
    ) -> Result<Result<Vec<Opened>, Refused>, Fatal> {
        let mut waiting = Waiting::watching(&self.plan.paces);
        loop {
            let event = self.in_sessions(make());
            if let Some(became) = self.try_to_persist(event, &mut waiting).await? {
                return Ok(became);
            }
        }
    }

    fn note_effects(&mut self, opened: &[Opened]) {
        let now = self.now();
        for one in opened {
            let id = one.effect();
            self.own.insert(id);
            self.counted_from.insert(id, now);
        }
        let ledger = &self.stored.record.ledger;
        // What nobody of this life sent is counted from when it was entered.
        for open in ledger.open() {
            self.counted_from.entry(open.id).or_insert(now);
        }
        self.counted_from.retain(|id, _| ledger.get(*id).is_some());
        self.own.retain(|id| ledger.get(*id).is_some());
    }

    /// The end of an effect's longest life on our own clock; `None`: nothing bounds it, or nothing yet.
    ///
    /// What this process sent to a device lives as long as its session there, and that lives as long as anything is said in
    /// it: its life is counted only once the session was to be closed and was not seen to.
    pub(super) fn expires_at(&self, open: &OpenEffect) -> Option<BootTime> {
        if let Some(device) = open.kind.device().filter(|_| self.own.contains(&open.id)) {
            let since = self.unclosed.get(device)?;
            return self.life_of(open).map(|life| *since + life);
        }
        let from = self.counted_from.get(&open.id).copied().unwrap_or_else(|| self.now());
        self.life_of(open).map(|life| from + life)
    }

    /// How long an effect may live: what was believed when it was stored, or what its device says now, if that is longer.
    pub(super) fn life_of(&self, open: &OpenEffect) -> Option<Duration> {
        let driver = open.kind.device().and_then(|device| self.plan.drivers.get(device));
        let life = open.life?;
        match driver.filter(|driver| !driver.guesses_life()) {
            Some(driver) => open.kind.life_at(driver.longest_life()).map(|now| now.max(life)),
            None => Some(life),
        }
    }

    pub(super) async fn give_up(&mut self, reason: Reason, detail: String) -> Result<(), Fatal> {
        tracing::error!(reason = reason.label(), detail, "the node needs an operator");
        let gone = self.withdraw_now().await;
        self.persist_unproven(gone, || Event::GiveUp { reason, detail: detail.clone() }).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use picket_core::device::{DeviceClass, DeviceSpec, Grade, Identity, MaxInFlight};
    use picket_core::event::{FenceRequest, Holder};
    use picket_core::ids::{DeviceId, NodeId, Term, Version};
    use picket_core::record::Then;
    use picket_core::time::WallTime;
    use picket_core::topology::{Level, Topology};

    use super::*;

    fn fencing() -> NodeRecord {
        let bmc = DeviceSpec {
            id: DeviceId::new("bmc").expect("a good name"),
            class: DeviceClass::Host,
            grade: Grade::Observed,
            has_epochs: true,
            longest_cycle: Duration::from_secs(15),
            call: Duration::from_secs(5),
            dwell: Duration::from_secs(1),
            readings: 2,
            max_in_flight: MaxInFlight { off: None, on: None },
            trust_after_restart: None,
            verified: false,
            identity: Identity::default(),
        };
        let holder = Holder {
            name: "db".to_owned(),
            by: "ada".to_owned(),
            reason: "a test".to_owned(),
            then: Then::StayOff,
            by_person: false,
            asker: None,
        };
        let request = FenceRequest {
            id: FenceId::mint(WallTime::from_millis(1), [1; 10]),
            holder,
            deadline: Duration::from_secs(600),
            min_grade: Grade::Claimed,
            topology: Topology::new(vec![Level { devices: vec![bmc] }]).expect("a good topology"),
            releases: Vec::new(),
            key: None,
            set_aside: None,
        };
        let (node, event) = (NodeId::new("n1").expect("a good name"), Event::Fence(Box::new(request)));
        let at = WallTime::from_millis(1);
        let step =
            machine::step(&NodeRecord::new(node), Version(0), event, Term(1), at).expect("it is normal");
        step.record().clone()
    }

    /// A loop of a phase that goes on over evidence that began from zero would go by a judge, or a proof, of the round before.
    #[test]
    fn a_node_whose_evidence_began_from_zero_is_at_another_place() {
        let (before, mut after) = (fencing(), fencing());
        assert_eq!(NodeTask::place_of(&before), NodeTask::place_of(&after));
        after.fence.iter_mut().for_each(|fence| fence.round += 1);
        assert_ne!(NodeTask::place_of(&before), NodeTask::place_of(&after));
    }
}
