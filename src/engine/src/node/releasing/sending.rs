//! One attempt: the intent, the store asked once more, the permit, the sending; and what came of it.

use std::sync::Arc;
use std::time::Duration;

use picket_core::event::Event;
use picket_core::gate::{self, GateFault};
use picket_core::ground::Look;
use picket_core::ids::{EffectId, ReleaseId};
use picket_core::ledger::EffectKind;
use picket_core::order::{Opened, ReleaseOrder};
use picket_core::record::{Part, ReleaseStage, ReleaseState};
use picket_core::store::StoreError;
use picket_metrics::RELEASE_ATTEMPTS;
use picket_release::{Progress, ReleaseError, Releaser};
use tokio::time::Instant;

use super::Run;
use super::watch_over::Asking;
use crate::node::{Failure, Fatal, NodeTask};

/// What an attempt, or a look at an accepted one, came to.
pub(super) type Answered = Result<Progress, ReleaseError>;

impl NodeTask {
    /// One attempt of a release, or of a part of one. `sets_up`: whether it may set up what lets go as long as it stands.
    pub(super) async fn attempt(
        &mut self,
        run: &mut Run,
        state: &ReleaseState,
        releaser: &Arc<dyn Releaser>,
        looks: &[Look],
        sets_up: bool,
    ) -> Result<(), Fatal> {
        let id = state.id.clone();
        let (life, lingers) =
            (Some(releaser.max_in_flight()), releaser.clone().quarantine().map(|cluster| cluster.lingers()));
        let intent = Event::ReleaseIntent { release: id.clone(), life, lingers, sets_up };
        let opened = match self.apply(intent).await {
            Ok(opened) => opened,
            Err(Failure::Fatal(error)) => return Err(Fatal(error)),
            Err(Failure::Refused(refused)) => {
                tracing::error!(%refused, "a release was refused");
                run.back_off(&id, self.now());
                return Ok(());
            }
            Err(Failure::Unavailable(_)) => {
                run.back_off(&id, self.now());
                return Ok(());
            }
        };
        run.set_up.extend(self.stands_of(&id));
        let now = self.now();
        let late = run.pace(&id).is_some_and(|pacing| {
            pacing.tried = now;
            now >= pacing.half()
        });
        let part = state.part.clone().map(|part| (part, late));
        for one in opened {
            let Opened::Release(order) = one else { continue };
            let effect = order.effect();
            let sending = self.send(order, releaser.clone(), part.clone(), looks.to_vec());
            self.attempted = Some(effect);
            let sent = self.watch_over(sending).await;
            self.attempted = None;
            let sent = sent?;
            self.counted_from.insert(effect, self.now());
            let Some(result) = sent else {
                run.back_off(&id, self.now());
                return Ok(());
            };
            let result = result?;
            self.parts.metrics.count(&RELEASE_ATTEMPTS, &[id.whole().as_str(), how(&result)]);
            self.note_barred(&id, &result).await?;
            if !matches!(
                result,
                Err(ReleaseError::DidNotHappen(_) | ReleaseError::Barred(_) | ReleaseError::Replaced(_))
            ) {
                run.attached.remove(&id);
            }
            if late && matches!(result, Ok(Progress::Accepted(_))) {
                run.forced.insert(id.clone());
            }
            let lingers = lingers.is_some();
            let goes_on = matches!(result, Ok(Progress::Complete(_) | Progress::NotThere(_)));
            let is_taken = matches!(result, Ok(Progress::Accepted(_)));
            let replaced = match &result {
                Err(ReleaseError::Replaced(why)) => Some(why.clone()),
                _ => None,
            };
            let (stage, detail, known) = match result {
                // What was answered has ended; what it set up stands in the ledger besides, and is taken away first.
                Ok(Progress::Accepted(words) | Progress::Complete(words)) if lingers => {
                    (ReleaseStage::Accepted, words, Some(effect))
                }
                Ok(progress) => said(progress, effect),
                Err(
                    ReleaseError::DidNotHappen(why) | ReleaseError::Barred(why) | ReleaseError::Replaced(why),
                ) => (ReleaseStage::Pending, why, Some(effect)),
                Err(ReleaseError::Unknown(why)) => (ReleaseStage::Requested, why, None),
            };
            tracing::info!(release = %id, ?stage, detail, "a release was attempted");
            self.progress(run, id.clone(), stage, detail, known).await?;
            if let Some(why) = replaced {
                return self.replaced(&id, &why).await;
            }
            match run.pace(&id) {
                Some(pacing) if lingers && goes_on => pacing.goes_on(now),
                // What stands is to stand no longer than it must.
                Some(pacing) if lingers && is_taken => {
                    pacing.next = pacing.next.min(now + pacing.backoff.first)
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Asks the store once more, examines the look once more, and sends at once. The permit lives no longer than this.
    fn send(
        &self,
        order: ReleaseOrder,
        releaser: Arc<dyn Releaser>,
        part: Option<(Part, bool)>,
        looks: Vec<Look>,
    ) -> Asking<Result<Answered, Fatal>> {
        let (parts, hands) = (self.parts.clone(), self.hands.clone());
        let (stored, ground) = (self.stored.clone(), self.ground.clone());
        let work = self.work.clone();
        Box::pin(async move {
            let _piece = work.begin().await;
            let Some(ground) = ground else {
                return Ok(Err(ReleaseError::DidNotHappen("there is no ground any more".to_owned())));
            };
            parts.hooks.reached("sending release").await;
            // Its turn comes first: between the permit and the sending nothing is waited for.
            let turn = match (releaser.in_parts(), &part) {
                (Some(in_parts), Some(_)) => match hands.turn_to_detach(in_parts.device()).await {
                    Ok(turn) => Some(turn),
                    Err(error) => return Ok(Err(ReleaseError::DidNotHappen(error.to_string()))),
                },
                _ => None,
            };
            let permit = gate::release_permit(
                &*parts.store,
                hands.leadership(),
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
                    match (releaser.in_parts(), part, turn) {
                        (Some(in_parts), Some((part, late)), Some(turn)) => {
                            let how = (&part, late);
                            hands.detach(in_parts, (&order, &permit), how, (turn, time)).await
                        }
                        _ => {
                            let until = Instant::now() + time;
                            bounded(time, releaser.attempt(&order, &permit, until)).await
                        }
                    }
                }
                // A conflict is a caller who joined in this moment: the next attempt has the new version.
                Err(GateFault::Store(error @ StoreError::Deposed(_))) => return Err(Fatal(error)),
                Err(fault) => Err(ReleaseError::DidNotHappen(format!("not permitted: {fault}"))),
            };
            parts.hooks.reached("sent release").await;
            Ok(result)
        })
    }

    pub(super) fn open_attempts(&self, id: &ReleaseId) -> Vec<EffectId> {
        let ours = |kind: &EffectKind| matches!(kind, EffectKind::Release(release) if release == id);
        self.record().ledger.open().iter().filter(|open| ours(&open.kind)).map(|open| open.id).collect()
    }

    pub(super) async fn progress(
        &mut self,
        run: &mut Run,
        release: ReleaseId,
        stage: ReleaseStage,
        detail: String,
        known: Option<EffectId>,
    ) -> Result<(), Fatal> {
        run.heard.remove(&release);
        self.persist(|| Event::ReleaseProgress {
            release: release.clone(),
            stage,
            detail: detail.clone(),
            known,
        })
        .await?;
        if !stage.is_over() {
            run.back_off(&release, self.now());
        }
        Ok(())
    }
}

pub(super) fn said(progress: Progress, effect: EffectId) -> (ReleaseStage, String, Option<EffectId>) {
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
        Err(ReleaseError::Barred(_)) => "barred",
        Err(ReleaseError::Replaced(_)) => "replaced",
        Err(ReleaseError::Unknown(_)) => "unknown",
    }
}

/// Runs a call with a net under it: a releaser that overruns its time does not hold the node's task.
pub(super) async fn bounded(time: Duration, call: impl Future<Output = Answered>) -> Answered {
    let net = time + Duration::from_secs(1);
    tokio::time::timeout(net, call)
        .await
        .unwrap_or_else(|_| Err(ReleaseError::Unknown(format!("no end after {net:?}"))))
}
