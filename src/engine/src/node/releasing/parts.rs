//! A release that is made of parts: the engine asks what is attached, lets each part go and follows it, and
//! asks once more at the end.
//!
//! # Invariants
//!
//! - A part is complete only by the word of its far side that the volume is free. That a list lacks a
//!   volume completes nothing. Shown by
//!   `what_is_attached_is_read_before_the_off_after_the_proof_and_once_more_at_the_end`.
//! - One part that is stuck does not keep the others. A person is asked once no open part has time left.
//!   Shown by `one_that_is_stuck_keeps_no_other_and_at_its_end_a_person_is_told_which_and_why`.
//! - An attempt whose answer did not come stands in the ledger for all of its life, also where its volume
//!   is free meanwhile: who let it go is not known. Shown by
//!   `a_detach_that_was_not_answered_bars_the_on_for_all_of_its_life_also_where_its_volume_is_free`.
//! - A detach waits for its turn at its account before its intent is stored. Shown by
//!   `a_detach_waits_for_its_turn_and_nothing_of_it_is_begun_before`.

use std::sync::Arc;

use futures::future::join_all;
use picket_core::event::{Event, Survey};
use picket_core::ground::Look;
use picket_core::ids::ReleaseId;
use picket_core::machine::Refused;
use picket_core::outcome::Reason;
use picket_core::record::{ReleaseStage, ReleaseState};
use picket_core::time::written;
use picket_release::{Found, InParts, Progress, ReleaseError, Releaser};

use super::sending::Answered;
use super::{Next, Run};
use crate::node::{Failure, Fatal, NodeTask};

impl NodeTask {
    /// The next step of a release of parts.
    pub(super) async fn in_parts(
        &mut self,
        run: &mut Run,
        whole: &ReleaseId,
        releaser: &Arc<dyn Releaser>,
        looks: &[Look],
    ) -> Result<Next, Fatal> {
        let now = self.now();
        let open = self.open_parts(whole);
        if open.is_empty() || !run.surveyed.contains(whole) {
            return self.survey(run, whole, releaser).await;
        }
        // The survey at the end has a time of its own.
        run.paces.remove(whole);
        open.iter().for_each(|part| self.begin(run, &part.id, &**releaser));
        let has_time = |run: &Run, part: &ReleaseState| {
            run.paces.get(&part.id).is_some_and(|pacing| now < pacing.deadline)
        };
        let (alive, stuck): (Vec<_>, Vec<_>) = open.into_iter().partition(|part| has_time(run, part));
        if alive.is_empty() {
            return self.give_up_parts(run, whole, &stuck, &**releaser).await;
        }
        let next_of =
            |run: &Run, part: &ReleaseState| run.paces.get(&part.id).map_or(now, |pacing| pacing.next);
        if self.unseen == 0 {
            let mut due: Vec<&ReleaseState> = alive.iter().filter(|part| next_of(run, part) <= now).collect();
            // Who has waited longest is first: what takes all of its time again and again keeps nobody.
            due.sort_by_key(|part| next_of(run, part));
            let is_attempted = |part: &&ReleaseState| {
                part.stage != ReleaseStage::Accepted && run.attached.contains(&part.id)
            };
            let (attempts, followed): (Vec<_>, Vec<_>) = due.into_iter().partition(is_attempted);
            if !followed.is_empty() {
                self.follow(run, &followed, releaser).await?;
                return Ok(Next::Again);
            }
            if let (Some(part), Some(fault)) = (attempts.first(), &run.barred) {
                run.heard.insert(part.id.clone(), format!("no attempt is permitted: {fault}"));
            } else if let Some(part) = attempts.first() {
                // Before the intent is stored and the permit asked for: what is waited for here makes no look too old.
                let Some(turn) = releaser.in_parts().and_then(InParts::turn) else {
                    self.attempt(run, part, releaser, looks, false).await?;
                    return Ok(Next::Again);
                };
                let deadline = run.paces.get(&part.id).map_or(now, |pacing| pacing.deadline);
                return Ok(Next::Wait(now + turn, deadline));
            }
        }
        let until = alive.iter().map(|part| next_of(run, part)).min().unwrap_or(now);
        let deadlines = alive.iter().filter_map(|part| run.paces.get(&part.id)).map(|pacing| pacing.deadline);
        Ok(Next::Wait(until, deadlines.max().unwrap_or(now)))
    }

    fn open_parts(&self, whole: &ReleaseId) -> Vec<ReleaseState> {
        let fence = self.record().fence.iter();
        fence.flat_map(|fence| fence.parts(whole)).filter(|part| !part.stage.is_over()).cloned().collect()
    }

    /// Asks what is attached: after the confirmation, and again once all parts are over.
    async fn survey(
        &mut self,
        run: &mut Run,
        whole: &ReleaseId,
        releaser: &Arc<dyn Releaser>,
    ) -> Result<Next, Fatal> {
        let now = self.now();
        self.begin(run, whole, &**releaser);
        let Some(pacing) = run.pace(whole).map(|pacing| *pacing) else { return Ok(Next::Again) };
        if now >= pacing.deadline {
            let why = run.heard.get(whole).cloned().unwrap_or_default();
            let within = written(releaser.deadline());
            let detail = format!("what {whole} has to let go could not be told in {within}: {why}");
            self.give_up(Reason::ReleaseDeadline, detail).await?;
            return Ok(Next::Moved);
        }
        // Only what is let go waits until storage has settled.
        let first = !run.surveyed.contains(whole) && !run.heard.contains_key(whole);
        if now < pacing.next && !first {
            return Ok(Next::Wait(pacing.next, pacing.deadline));
        }
        let asking = self.hands.survey(releaser, releaser.attempt_time());
        let Some(found) = self.watch_over(asking).await? else { return Ok(Next::Moved) };
        match self.surveyed(whole, found.map_err(ReleaseError::into_words), releaser).await? {
            Ok(parts) => {
                run.surveyed.insert(whole.clone());
                run.attached.extend(parts);
                run.heard.remove(whole);
            }
            Err(Surveying::TooMany(why)) => {
                self.give_up(Reason::ReleaseDeadline, why).await?;
                return Ok(Next::Moved);
            }
            Err(Surveying::Failed(why)) => {
                tracing::warn!(release = %whole, why, "what is attached cannot be told");
                run.heard.insert(whole.clone(), why);
                run.back_off(whole, self.now());
            }
        }
        Ok(Next::Again)
    }

    /// Stores what was found, or that it could not be told. Which parts are attached.
    async fn surveyed(
        &mut self,
        whole: &ReleaseId,
        found: Result<Found, String>,
        releaser: &Arc<dyn Releaser>,
    ) -> Result<Result<Vec<ReleaseId>, Surveying>, Fatal> {
        let told = match &found {
            Ok(found) => Ok(found.parts.iter().map(|part| whole.part(&part.volume)).collect()),
            Err(why) => Err(Surveying::Failed(why.clone())),
        };
        match self.apply(survey_event(whole, found, true, &**releaser)).await {
            Ok(_) => Ok(told),
            Err(Failure::Fatal(error)) => Err(Fatal(error)),
            Err(Failure::Refused(refused @ Refused::TooManyParts(..))) => {
                Ok(Err(Surveying::TooMany(refused.to_string())))
            }
            Err(Failure::Refused(refused)) => Ok(Err(Surveying::Failed(refused.to_string()))),
            Err(Failure::Unavailable(why)) => Ok(Err(Surveying::Failed(format!("the store is away: {why}")))),
        }
    }

    /// Looks how far these are, side by side.
    async fn follow(
        &mut self,
        run: &mut Run,
        parts: &[&ReleaseState],
        releaser: &Arc<dyn Releaser>,
    ) -> Result<(), Fatal> {
        let time = releaser.attempt_time();
        let asked = parts.iter().filter_map(|state| {
            let asking = self.hands.standing(releaser, state.part.clone()?, time);
            let state = (*state).clone();
            Some(async move { (state, asking.await) })
        });
        let asking = Box::pin(join_all(asked.collect::<Vec<_>>()));
        let Some(answers) = self.watch_over(asking).await? else { return Ok(()) };
        for (state, answer) in answers {
            let is_open = self.open_parts(&state.id.whole()).iter().any(|part| part.id == state.id);
            // A person may have given it up meanwhile.
            if is_open {
                self.followed(run, &state, answer, &**releaser).await?;
            }
        }
        Ok(())
    }

    async fn followed(
        &mut self,
        run: &mut Run,
        state: &ReleaseState,
        answer: Answered,
        releaser: &dyn Releaser,
    ) -> Result<(), Fatal> {
        let (id, now) = (state.id.clone(), self.now());
        let accepted = state.stage == ReleaseStage::Accepted;
        let force_due = run.force_due(&id, releaser);
        match answer {
            Ok(Progress::Complete(words)) => {
                // What was taken has been done. One that was not answered may have been done by somebody else, and land yet.
                let known = self.open_attempts(&id).last().copied().filter(|_| accepted);
                self.progress(run, id, ReleaseStage::Complete, words, known).await
            }
            Ok(Progress::NotThere(words)) => self.due_again(run, id, accepted, words).await,
            // Taken, and at no end: force would end it.
            Ok(Progress::Accepted(words)) if force_due.is_some_and(|due| now >= due) => {
                self.due_again(run, id.clone(), accepted, words).await?;
                if let Some(pacing) = run.pace(&id) {
                    pacing.make_due(now);
                }
                Ok(())
            }
            Ok(Progress::Accepted(words)) => {
                run.heard.insert(id.clone(), words);
                run.back_off(&id, now);
                if let (Some(due), Some(pacing)) = (force_due, run.pace(&id)) {
                    pacing.next = pacing.next.min(due);
                }
                Ok(())
            }
            Err(error) => {
                tracing::warn!(release = %id, %error, "how far it is cannot be told");
                run.heard.insert(id.clone(), error.to_string());
                run.back_off(&id, now);
                Ok(())
            }
        }
    }

    /// A new attempt is due of a part.
    async fn due_again(
        &mut self,
        run: &mut Run,
        id: ReleaseId,
        accepted: bool,
        words: String,
    ) -> Result<(), Fatal> {
        run.attached.insert(id.clone());
        run.in_vain.insert(id.clone(), words.clone());
        match accepted {
            true => self.progress(run, id, ReleaseStage::Pending, words, None).await,
            false => Ok(()),
        }
    }

    /// No open part has time left.
    async fn give_up_parts(
        &mut self,
        run: &Run,
        whole: &ReleaseId,
        stuck: &[ReleaseState],
        releaser: &dyn Releaser,
    ) -> Result<Next, Fatal> {
        let why = |part: &ReleaseState| {
            let heard = run.heard.get(&part.id).unwrap_or(&part.detail);
            // The last attempt was taken, as those before were, and nobody heard yet what became of it.
            let before = run.in_vain.get(&part.id).filter(|before| *before != heard);
            let before = before.map(|before| format!("; the attempt before came to nothing: {before}"));
            format!("{}: {heard}{}", part.id, before.unwrap_or_default())
        };
        let all: Vec<String> = stuck.iter().map(why).collect();
        let detail = format!(
            "of release {whole} {} did not complete in {}: {}",
            all.len(),
            written(releaser.deadline()),
            all.join("; ")
        );
        self.give_up(Reason::ReleaseDeadline, detail).await?;
        Ok(Next::Moved)
    }
}

/// Why a survey came to nothing.
enum Surveying {
    /// It could not be told, or not be stored.
    Failed(String),
    /// There is more than may be.
    TooMany(String),
}

/// What was found, or that it could not be told, for the record.
pub(in crate::node) fn survey_event(
    whole: &ReleaseId,
    found: Result<Found, String>,
    on_ground: bool,
    releaser: &dyn Releaser,
) -> Event<'static> {
    let max_in_flight = releaser.max_in_flight();
    let found = found.map(|Found { parts, stays }| Survey { parts, stays, on_ground, max_in_flight });
    Event::ReleaseSurveyed { release: whole.clone(), found }
}
