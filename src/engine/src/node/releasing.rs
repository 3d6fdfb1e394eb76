//! Letting volumes go: settle, look, intent, permit, attempt, see it complete; release after release.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use picket_core::event::Event;
use picket_core::gate::{self, GateFault};
use picket_core::ground::{Look, LookFault};
use picket_core::ids::{EffectId, ReleaseId};
use picket_core::ledger::EffectKind;
use picket_core::order::{Opened, ReleaseOrder};
use picket_core::outcome::Reason;
use picket_core::record::{ReleaseStage, ReleaseState};
use picket_core::store::StoreError;
use picket_core::time::BootTime;
use picket_metrics::RELEASE_ATTEMPTS;
use picket_release::{Progress, ReleaseError, Releaser, Subject};
use tokio::time::Instant;

use super::{Failure, Fatal, NodeTask};
use crate::view::whose_release;

/// Looks without an Off in a row after which the evidence begins from zero (S4).
const UNKNOWN_LOOKS: u32 = 3;
/// Confirmations that do not hold until the release, before a person is asked.
const PROOFS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// While volumes are being let go power is read this often.
const WATCH: Duration = Duration::from_secs(2);

/// What an attempt, or a look at an accepted one, came to.
type Answered = Result<Progress, ReleaseError>;
/// A call to a releaser under way.
type Asking<T> = BoxFuture<'static, T>;

/// What a run of the phase remembers.
struct Run {
    unknown: u32,
    release: Option<ReleaseId>,
    deadline: BootTime,
    next: BootTime,
    pause: Duration,
}

impl NodeTask {
    pub(super) async fn releasing(&mut self) -> Result<(), Fatal> {
        let here = self.place();
        if self.ground.is_none() {
            // Confirmed by a process that is gone: own off at once, evidence from zero.
            self.resumed = true;
            let why = "it was confirmed by another leadership";
            self.persist(|| Event::Unproven { why: why.to_owned(), seen: false }).await?;
            return Ok(());
        }
        let now = self.now();
        let mut run = Run { unknown: 0, release: None, deadline: now, next: now, pause: FIRST_PAUSE };
        loop {
            let Some(state) = self.next_release() else { return Ok(()) };
            let Some(releaser) = self.releaser(&state.id) else {
                let detail =
                    format!("release {} is in the record and not in the settings any more", state.id);
                return self.give_up(Reason::ReleaseDeadline, detail).await;
            };
            self.begin(&mut run, &state, &*releaser);
            let looks = self.look().await?;
            if self.judge_looks(&mut run, &looks).await? {
                return Ok(());
            }
            let now = self.now();
            if now >= run.deadline {
                let detail = format!(
                    "release {} did not complete in {:?}: {}",
                    state.id,
                    releaser.deadline(),
                    state.detail
                );
                return self.give_up(Reason::ReleaseDeadline, detail).await;
            }
            if run.unknown == 0 && now >= run.next {
                match state.stage {
                    ReleaseStage::Accepted => self.observe(&mut run, &state, &releaser).await?,
                    _ => self.attempt(&mut run, &state, &releaser, &looks).await?,
                }
                if self.place() != here {
                    return Ok(());
                }
                if self.next_release().is_none_or(|next| next.id != state.id) {
                    continue;
                }
            }
            let left = run.deadline.since(now);
            self.wait_for(format!("release {} to complete", state.id), whose_release(&state.id), Some(left));
            let until_next = run.next.since(self.now());
            let pause =
                if run.unknown > 0 || until_next.is_zero() { FIRST_PAUSE } else { until_next.min(WATCH) };
            if self.pause(pause).await? {
                return Ok(());
            }
            self.close_expired(|kind| !kind.bars_proof()).await?;
        }
    }

    fn next_release(&self) -> Option<ReleaseState> {
        let fence = self.record().fence.as_ref()?;
        fence.releases.iter().find(|release| !release.stage.is_over()).cloned()
    }

    fn releaser(&self, id: &ReleaseId) -> Option<Arc<dyn Releaser>> {
        self.plan.releases.iter().find(|plan| plan.id == *id).map(|plan| plan.releaser.clone())
    }

    /// A release whose turn it is: its deadline begins, and it waits until storage has settled (S23).
    fn begin(&self, run: &mut Run, state: &ReleaseState, releaser: &dyn Releaser) {
        if run.release.as_ref() == Some(&state.id) {
            return;
        }
        let dark_since = self.ground.as_ref().map_or_else(|| self.now(), |ground| ground.dark_since);
        run.release = Some(state.id.clone());
        run.deadline = self.now() + releaser.deadline();
        run.next = dark_since + releaser.settle();
        run.pause = FIRST_PAUSE;
    }

    /// Whether the looks still bear the ground. True if the node was moved: breach, or evidence from zero.
    async fn judge_looks(&mut self, run: &mut Run, looks: &[Look]) -> Result<bool, Fatal> {
        if self.found_on(looks).await? {
            return Ok(true);
        }
        let Some(ground) = &self.ground else { return Ok(true) };
        let why = match ground.ground.examine(looks, self.now()) {
            Ok(()) => {
                run.unknown = 0;
                return Ok(false);
            }
            Err(LookFault::NewEpoch(device)) => format!("{device} began a new epoch"),
            Err(fault) => {
                run.unknown += 1;
                tracing::warn!(%fault, looks = run.unknown, "no release is attempted");
                if run.unknown < UNKNOWN_LOOKS {
                    return Ok(false);
                }
                fault.to_string()
            }
        };
        self.unproven += 1;
        if self.unproven > PROOFS {
            let detail =
                format!("the confirmation did not hold {PROOFS} times in a row, at last since {why}");
            self.give_up(Reason::Deadline, detail).await?;
            return Ok(true);
        }
        self.persist(|| Event::Unproven { why: why.clone(), seen: true }).await?;
        Ok(true)
    }

    async fn attempt(
        &mut self,
        run: &mut Run,
        state: &ReleaseState,
        releaser: &Arc<dyn Releaser>,
        looks: &[Look],
    ) -> Result<(), Fatal> {
        let id = state.id.clone();
        let opened = match self.apply(Event::ReleaseIntent { release: id.clone() }).await {
            Ok(opened) => opened,
            Err(Failure::Fatal(error)) => return Err(Fatal(error)),
            Err(Failure::Refused(refused)) => {
                tracing::error!(%refused, "a release was refused");
                back_off(run, self.now());
                return Ok(());
            }
            Err(Failure::Unavailable(_)) => {
                back_off(run, self.now());
                return Ok(());
            }
        };
        for one in opened {
            let Opened::Release(order) = one else { continue };
            let effect = order.effect();
            let sending = self.send(order, releaser.clone(), looks.to_vec());
            let sent = self.watch_over(sending).await?;
            self.counted_from.insert(effect, self.now());
            let Some(result) = sent else { return Ok(()) };
            let result = result?;
            self.parts.metrics.count(&RELEASE_ATTEMPTS, &[id.as_str(), how(&result)]);
            let (stage, detail, known) = match result {
                Ok(progress) => said(progress, effect),
                Err(ReleaseError::DidNotHappen(why)) => (ReleaseStage::Pending, why, Some(effect)),
                Err(ReleaseError::Unknown(why)) => (ReleaseStage::Requested, why, None),
            };
            tracing::info!(release = %id, ?stage, detail, "a release was attempted");
            self.progress(run, id.clone(), stage, detail, known).await?;
        }
        Ok(())
    }

    /// Asks the store once more, examines the look once more, and sends at once. The permit lives no longer than this.
    fn send(
        &self,
        order: ReleaseOrder,
        releaser: Arc<dyn Releaser>,
        looks: Vec<Look>,
    ) -> Asking<Result<Answered, Fatal>> {
        let (parts, leadership) = (self.parts.clone(), self.hands.leadership().clone());
        let (stored, ground) = (self.stored.clone(), self.ground.clone());
        let work = self.work.clone();
        Box::pin(async move {
            let _piece = work.begin().await;
            let Some(ground) = ground else {
                return Ok(Err(ReleaseError::DidNotHappen("there is no ground any more".to_owned())));
            };
            parts.hooks.reached("sending release").await;
            let permit = gate::release_permit(
                &*parts.store,
                &leadership,
                &*parts.clock,
                &stored,
                &ground.ground,
                &looks,
            )
            .await;
            let result = match permit {
                Ok(permit) => {
                    parts.hooks.reached("permitted release").await;
                    let time = releaser.attempt_time();
                    bounded(time, releaser.attempt(&order, &permit, Instant::now() + time)).await
                }
                // A conflict is a caller who joined in this moment: the next attempt has the new version.
                Err(GateFault::Store(error @ StoreError::Deposed(_))) => return Err(Fatal(error)),
                Err(fault) => Err(ReleaseError::DidNotHappen(format!("not permitted: {fault}"))),
            };
            parts.hooks.reached("sent release").await;
            Ok(result)
        })
    }

    /// Watches power and answers callers while a releaser is asked. `None`: the node was moved, by a breach or a person,
    /// and the call was cut off; what an attempt may still do stands in the ledger.
    async fn watch_over<T>(&mut self, mut asking: Asking<T>) -> Result<Option<T>, Fatal> {
        let here = self.place();
        let mut watch_at = Instant::now() + WATCH;
        loop {
            tokio::select! {
                biased;
                answer = &mut asking => return Ok(Some(answer)),
                // Callers, however many, do not keep power from being watched.
                () = tokio::time::sleep_until(watch_at) => {
                    // What was permitted a moment ago goes on at once, whatever a device takes for its answer.
                    let looks = tokio::select! {
                        biased;
                        answer = &mut asking => return Ok(Some(answer)),
                        looks = self.glance() => looks,
                    };
                    self.store_sessions().await?;
                    self.found_on(&looks).await?;
                    watch_at = Instant::now() + WATCH;
                }
                Some(command) = self.mailbox.recv() => self.command(command).await?,
            }
            if self.place() != here {
                return Ok(None);
            }
        }
    }

    async fn observe(
        &mut self,
        run: &mut Run,
        state: &ReleaseState,
        releaser: &Arc<dyn Releaser>,
    ) -> Result<(), Fatal> {
        let record = self.record();
        let Some(fence) = &record.fence else { return Ok(()) };
        let subject = Subject {
            node: record.node.clone(),
            fence: fence.id,
            generation: record.generation,
            release: state.id.clone(),
            accepted: state.detail.clone(),
        };
        let attempts = self.open_attempts(&state.id);
        let releaser = releaser.clone();
        let asking = Box::pin(async move {
            let time = releaser.attempt_time();
            bounded(time, releaser.observe(&subject, Instant::now() + time)).await
        });
        let Some(answer) = self.watch_over(asking).await? else { return Ok(()) };
        match answer {
            Ok(Progress::Accepted(_)) => back_off(run, self.now()),
            Ok(progress) => {
                let (stage, detail, known) = match attempts.last() {
                    Some(effect) => said(progress, *effect),
                    None => {
                        let (stage, detail, _) = said(progress, EffectId(0));
                        (stage, detail, None)
                    }
                };
                self.progress(run, state.id.clone(), stage, detail, known).await?;
            }
            Err(error) => {
                tracing::warn!(release = %state.id, %error, "how far the release is cannot be told");
                back_off(run, self.now());
            }
        }
        Ok(())
    }

    fn open_attempts(&self, id: &ReleaseId) -> Vec<EffectId> {
        let ours = |kind: &EffectKind| matches!(kind, EffectKind::Release(release) if release == id);
        self.record().ledger.open().iter().filter(|open| ours(&open.kind)).map(|open| open.id).collect()
    }

    async fn progress(
        &mut self,
        run: &mut Run,
        release: ReleaseId,
        stage: ReleaseStage,
        detail: String,
        known: Option<EffectId>,
    ) -> Result<(), Fatal> {
        self.persist(|| Event::ReleaseProgress {
            release: release.clone(),
            stage,
            detail: detail.clone(),
            known,
        })
        .await?;
        if !stage.is_over() {
            back_off(run, self.now());
        }
        Ok(())
    }
}

fn said(progress: Progress, effect: EffectId) -> (ReleaseStage, String, Option<EffectId>) {
    match progress {
        Progress::Complete(detail) => (ReleaseStage::Complete, detail, Some(effect)),
        Progress::Accepted(detail) => (ReleaseStage::Accepted, detail, None),
        Progress::NotThere(detail) => (ReleaseStage::Pending, detail, Some(effect)),
    }
}

/// How an attempt ended, in one word.
fn how(answered: &Answered) -> &'static str {
    match answered {
        Ok(Progress::Complete(_)) => "complete",
        Ok(Progress::Accepted(_)) => "accepted",
        Ok(Progress::NotThere(_)) => "not_there",
        Err(ReleaseError::DidNotHappen(_)) => "did_not_happen",
        Err(ReleaseError::Unknown(_)) => "unknown",
    }
}

/// Runs a call with a net under it: a releaser that overruns its time does not hold the node's task.
async fn bounded(time: Duration, call: impl Future<Output = Answered>) -> Answered {
    let net = time + Duration::from_secs(1);
    tokio::time::timeout(net, call)
        .await
        .unwrap_or_else(|_| Err(ReleaseError::Unknown(format!("no end after {net:?}"))))
}

fn back_off(run: &mut Run, now: BootTime) {
    run.next = now + run.pause;
    run.pause = (run.pause * 2).min(LONGEST_PAUSE);
}
