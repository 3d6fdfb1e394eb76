//! What releases set up, and what lets volumes go for as long as it stands: a taint (K3).
//!
//! Where the far side does not answer, a task of its own goes on asking and tells the node's task. No phase
//! waits for that, and none forgets it.
//!
//! # Invariants
//!
//! - It stands only while the node is proven off. Whichever phase finds that the node is not takes it away,
//!   before a breach or a lost proof is stored. Shown by
//!   `power_that_is_back_takes_it_away_within_two_seconds_of_the_reading`,
//!   `whoever_leads_next_takes_it_away_first`.
//! - It counts as gone only where the far side was asked after every attempt that could set it up anew had
//!   ended. Shown by `what_a_late_attempt_sets_up_after_it_was_seen_to_be_gone_is_found`.
//! - No on goes while it stands, nor for as long afterwards as controllers may act on it. Shown by
//!   `it_is_taken_away_before_the_release_is_complete_and_no_on_comes_soon_after`.
//! - What stood there by no attempt is noted before it is taken away. Shown by
//!   `what_stood_there_by_no_attempt_is_waited_out_whoever_comes_next`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use picket_core::election::Leadership;
use picket_core::event::Event;
use picket_core::ids::{EffectId, ReleaseId};
use picket_core::ledger::EffectKind;
use picket_core::record::Phase;
use picket_core::time::{BootTime, Clock};
use picket_release::{Quarantine, ReleaseError, Whose};
use tokio::time::Instant;

use super::Telling;
use crate::node::away::Waiting;
use crate::node::command::Command;
use crate::node::inbox::Own;
use crate::node::{Fatal, NodeTask};
use crate::paces::Backoff;

/// What is left of a release that left the settings: its name alone takes nothing away, and nobody's word makes it gone (K3).
pub(in crate::node) const BY_ITS_SETTINGS: &str = "start the gateway with that release in its settings, as it was, which takes away what it set up; then retry";

/// What is stored with what is gone, in one write.
pub(in crate::node) fn after(gone: Vec<EffectId>, event: Event<'_>) -> Event<'_> {
    if gone.is_empty() {
        return event;
    }
    let found = vec![Event::Withdrawn { effects: gone }];
    Event::After { found, event: Box::new(event) }
}

/// What of one release stands, and from when on no attempt sets it up anew.
struct Stands {
    release: ReleaseId,
    whose: Whose,
    effects: Vec<EffectId>,
    cluster: Arc<dyn Quarantine>,
    leadership: Arc<Leadership>,
    /// `None`: nothing bounds an attempt.
    settled_at: Option<BootTime>,
}

impl NodeTask {
    /// Takes away what stands although the node is not proven off, beside whatever its phase does.
    pub(in crate::node) fn withdraw_unproven(&mut self) {
        // Nobody reads power of an orphan.
        let is_proven =
            self.record().phase == Phase::Fenced && self.ground.is_some() && self.orphan.is_none();
        let stands = if is_proven { Vec::new() } else { self.stands() };
        self.take_away(stands);
    }

    /// Takes away what stands, but for what is gone, by tasks.
    pub(in crate::node) fn take_away_all_but(&mut self, gone: &[EffectId]) {
        let mut stands = self.stands();
        stands.iter_mut().for_each(|one| one.effects.retain(|effect| !gone.contains(effect)));
        stands.retain(|one| !one.effects.is_empty());
        self.take_away(stands);
    }

    fn take_away(&mut self, stands: Vec<Stands>) {
        let wanted = stands.iter().map(Stands::telling).collect();
        // A withdrawal asks on until it is not wanted any more: a task that is over met a defect.
        self.tellings.drop_ended(is_withdrawal);
        let new = self.tellings.keep(is_withdrawal, wanted);
        for one in stands.into_iter().filter(|one| new.contains(&one.telling())) {
            let (clock, backoff) = (self.parts.clock.clone(), self.plan.paces.withdrawal);
            let told = self.mailbox.own();
            let telling = one.telling();
            self.tellings.begin(telling, async move { one.take_away(&*clock, backoff, &told).await });
        }
    }

    /// The same at once, and no longer than a moment: what of it is gone, to be stored with what comes next.
    pub(in crate::node) async fn withdraw_now(&mut self) -> Vec<EffectId> {
        let stands = self.stands();
        if stands.is_empty() {
            return Vec::new();
        }
        let asked_at = self.now();
        let at_once = self.plan.paces.withdrawal_at_once;
        let asked = stands.iter().map(|one| one.ask(at_once));
        let answers = join_all(asked).await;
        let mut gone = Vec::new();
        for (one, answer) in stands.into_iter().zip(answers) {
            match answer {
                Ok(()) if one.is_settled(asked_at) => gone.extend(one.effects),
                Ok(()) => {}
                Err(error) => one.warn(&error),
            }
        }
        self.note_gone(gone)
    }

    /// At an orderly end: nobody may read power from now on, and what stands goes. The next leader asks for it again, and stores that.
    pub(crate) async fn let_nothing_stand(&mut self) {
        // A successor that is seen may have ended a moment ago: its key in the election outlives it. One that lives removes it first anyway.
        // A leadership that is over changes nothing (S6).
        if self.hands.leadership().check().is_ok() {
            self.withdraw_now().await;
        }
    }

    /// The same in the middle of a call to a releaser, after looks that did not show the node off; what becomes of its proof is decided
    /// after the call.
    pub(in crate::node) async fn withdraw_unseen(&mut self) -> Result<(), Fatal> {
        let gone = self.withdraw_now().await;
        if !gone.is_empty() {
            self.take_away_all_but(&gone);
            let waiting = Waiting::unproven(&self.plan.paces);
            self.persist_in(waiting, || Event::Withdrawn { effects: gone.clone() }).await?;
            self.withdraw_unproven();
        }
        Ok(())
    }

    /// What a release that has nothing left to do had set up, taken away for good. `Err`: why it is not; `None`: the node was moved.
    pub(in crate::node) async fn withdraw_of(
        &mut self,
        release: &ReleaseId,
    ) -> Result<Option<Result<Vec<EffectId>, String>>, Fatal> {
        let Some(stands) = self.stands().into_iter().find(|one| one.release == *release) else {
            return Ok(Some(Ok(Vec::new())));
        };
        if !stands.is_settled(self.now()) {
            return Ok(Some(Err("an attempt that was not answered may set it up still".to_owned())));
        }
        self.withdraw_at_once(release).await
    }

    /// The same now, whether or not it is for good: only what is gone for good is answered.
    pub(in crate::node) async fn withdraw_at_once(
        &mut self,
        release: &ReleaseId,
    ) -> Result<Option<Result<Vec<EffectId>, String>>, Fatal> {
        let Some(cluster) = self.quarantine_of(release) else { return Ok(Some(Ok(Vec::new()))) };
        let (time, effects) = (cluster.attempt_time(), self.stands_of(release));
        let stands = self.standing_of(release, effects.clone(), cluster);
        let is_settled = stands.is_settled(self.now());
        let asking = Box::pin(async move { stands.ask(time).await });
        let Some(answer) = self.watch_over(asking).await? else { return Ok(None) };
        let gone = if is_settled { effects } else { Vec::new() };
        Ok(Some(answer.map(|()| self.note_gone(gone)).map_err(|error| error.to_string())))
    }

    /// Until when whoever acted on what the release set up may act on it still, although it is gone.
    pub(in crate::node) fn lingers_until(&self, release: &ReleaseId) -> Option<BootTime> {
        let of_it = EffectKind::Standing(release.clone());
        let gone =
            self.record().ledger.open().iter().filter(|open| open.kind == of_it && open.life.is_some());
        gone.filter_map(|open| self.expires_at(open)).max()
    }

    /// What the task of its own told.
    pub(in crate::node) async fn withdrawn(&mut self, effects: Vec<EffectId>) -> Result<(), Fatal> {
        // Told again before it was stored.
        let stands = |effect: &EffectId| self.record().ledger.standing().any(|(one, _)| one == *effect);
        let effects: Vec<EffectId> = effects.into_iter().filter(stands).collect();
        if effects.is_empty() {
            self.withdraw_unproven();
            return Ok(());
        }
        // It was asked after they had ended.
        self.close_expired(|kind| matches!(kind, EffectKind::Release(_))).await?;
        let effects = self.note_gone(effects);
        self.persist(|| Event::Withdrawn { effects: effects.clone() }).await?;
        self.withdraw_unproven();
        Ok(())
    }

    /// What that release would set up was found to stand there: from now on it is in the ledger.
    pub(in crate::node) async fn stands_there(&mut self, release: &ReleaseId) -> Result<(), Fatal> {
        let lingers = self.quarantine_of(release).map(|cluster| cluster.lingers()).unwrap_or_default();
        tracing::warn!(%release, "what it sets up stands there, by no attempt that is known: it is taken away first");
        self.persist(|| Event::StandsFound { release: release.clone(), lingers }).await.map(drop)
    }

    /// What stands of that release.
    pub(in crate::node) fn stands_of(&self, release: &ReleaseId) -> Vec<EffectId> {
        let ledger = &self.record().ledger;
        ledger.standing().filter(|(_, one)| *one == release).map(|(id, _)| id).collect()
    }

    /// Whether what stands of it was only asked for: whoever leads goes on with it at once.
    pub(in crate::node) fn only_asked(&self, release: &ReleaseId) -> bool {
        let fence = self.record().fence.as_ref();
        fence.and_then(|fence| fence.release(release)).is_some_and(|state| state.asked_by.is_some())
    }

    /// From now on they end by themselves.
    fn note_gone(&mut self, effects: Vec<EffectId>) -> Vec<EffectId> {
        let now = self.now();
        self.counted_from.extend(effects.iter().map(|effect| (*effect, now)));
        effects
    }

    /// What stands, by release, where the settings know how to take it away.
    fn stands(&self) -> Vec<Stands> {
        let mut all: BTreeMap<&ReleaseId, Vec<EffectId>> = BTreeMap::new();
        self.record().ledger.standing().for_each(|(effect, of)| all.entry(of).or_default().push(effect));
        let known = all.into_iter().filter_map(|(release, effects)| {
            let cluster = self.quarantine_of(release);
            if cluster.is_none() {
                tracing::error!(%release, "it set up something, and is not in the settings any more as it was");
            }
            Some(self.standing_of(release, effects, cluster?))
        });
        known.collect()
    }

    fn standing_of(
        &self,
        release: &ReleaseId,
        effects: Vec<EffectId>,
        cluster: Arc<dyn Quarantine>,
    ) -> Stands {
        let of_it = EffectKind::Release(release.clone());
        let attempts = self.record().ledger.open().iter().filter(|open| open.kind == of_it);
        let mut ends = attempts.map(|open| self.expires_at(open));
        let settled_at = ends.try_fold(BootTime::default(), |latest, at| Some(latest.max(at?)));
        let (release, whose) = (release.clone(), self.whose_is(release));
        let leadership = self.hands.leadership().clone();
        Stands { release, whose, effects, cluster, leadership, settled_at }
    }

    /// Whether who manages machines takes this one away: asked beside whatever else is due, and no longer than that.
    pub(in crate::node) fn being_deleted(&self) -> impl Future<Output = Option<String>> + use<> {
        let all = self.quarantines();
        let at_once = self.plan.paces.withdrawal_at_once;
        async move {
            let until = Instant::now() + at_once;
            let asked =
                join_all(all.iter().map(|(subject, cluster)| cluster.is_being_deleted(subject, until)));
            let told = tokio::time::timeout_at(until, asked).await.unwrap_or_default();
            told.into_iter().flatten().next()
        }
    }

    /// Whose it is that a release set up.
    fn whose_is(&self, release: &ReleaseId) -> Whose {
        let (record, fence) = (self.record(), self.record().fence.as_ref());
        let topology = fence.map_or(&self.plan.topology, |fence| &fence.topology);
        let met = fence.and_then(|fence| fence.release(release)).and_then(|state| self.whom_it_met(state));
        Whose { node: record.node.clone(), identities: record.identities(topology), met }
    }
}

fn is_withdrawal(telling: &Telling) -> bool {
    matches!(telling, Telling::Withdraw(..))
}

impl Stands {
    fn telling(&self) -> Telling {
        Telling::Withdraw(self.release.clone(), self.effects.clone())
    }

    /// Whether nothing that was sent can set it up anew.
    fn is_settled(&self, now: BootTime) -> bool {
        self.settled_at.is_some_and(|at| at <= now)
    }

    async fn ask(&self, time: Duration) -> Result<(), ReleaseError> {
        // Whoever leads by now takes it away first (S6).
        self.leadership.check().map_err(|ended| ReleaseError::DidNotHappen(ended.to_string()))?;
        let asked = self.cluster.withdraw(&self.whose, Instant::now() + time);
        let late = |_| Err(ReleaseError::Unknown("no answer in time".to_owned()));
        tokio::time::timeout(time, asked).await.unwrap_or_else(late)
    }

    fn warn(&self, error: &ReleaseError) {
        tracing::warn!(release = %self.release, %error, "what it set up is not seen to be gone");
    }

    /// Asks until it is gone for good, and says so.
    async fn take_away(self, clock: &dyn Clock, backoff: Backoff, told: &Own) {
        let mut pause = backoff.first;
        loop {
            let asked_at = clock.boot();
            match self.ask(self.cluster.attempt_time()).await {
                // Told until it is stored: the word may come while the store is away.
                Ok(()) if self.is_settled(asked_at) => {
                    told.send(Command::Withdrawn(self.effects.clone()));
                    pause = backoff.longest;
                }
                // It is gone, and what was sent before may set it up anew until then.
                Ok(()) => {
                    let left = self.settled_at.map_or(backoff.longest, |at| at.since(clock.boot()));
                    pause = left.clamp(backoff.first, backoff.longest);
                }
                Err(error) => self.warn(&error),
            }
            tokio::time::sleep(pause).await;
            pause = backoff.after(pause);
        }
    }
}
