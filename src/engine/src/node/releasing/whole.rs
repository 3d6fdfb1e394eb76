//! A release that is attempted as a whole, and followed until it was seen complete.
//!
//! # Invariants
//!
//! - At the deadline of a release that passes on, a later one that lets go in parts acts in its place
//!   (S23). The two never act side by side. Shown by
//!   `what_a_cluster_does_not_let_go_its_cloud_does_and_the_cluster_is_followed_to_its_end`,
//!   `while_its_taint_stands_nothing_is_passed_on`.
//! - The release that passed on has its turn again, and nothing is switched on before it is complete or
//!   given up by name (S7). Shown by
//!   `a_cluster_that_never_lets_go_is_a_persons_matter_in_the_end_and_the_node_stays_off`.

use std::sync::Arc;

use picket_core::event::Event;
use picket_core::ground::Look;
use picket_core::ids::{EffectId, ReleaseId};
use picket_core::outcome::Reason;
use picket_core::record::{Fence, ReleaseStage, ReleaseState};
use picket_core::time::{BootTime, written};
use picket_release::{Progress, Quarantine, ReleaseError, Releaser, Subject};

use super::{Next, Run, sending};
use crate::node::{Fatal, NodeTask, quarantine};

impl NodeTask {
    /// A release that is attempted as a whole.
    pub(super) async fn as_a_whole(
        &mut self,
        run: &mut Run,
        state: &ReleaseState,
        releaser: &Arc<dyn Releaser>,
        looks: &[Look],
    ) -> Result<Next, Fatal> {
        let here = self.place();
        let now = self.now();
        let Some(pacing) = run.pace(&state.id).map(|pacing| *pacing) else { return Ok(Next::Again) };
        if now >= pacing.deadline {
            return self.overdue(run, state, releaser, pacing.deadline).await;
        }
        if self.unseen == 0 && now >= pacing.next {
            match state.stage {
                _ if self.stands_from_before(run, &state.id) => self.withdraw_old(run, &state.id).await?,
                ReleaseStage::Accepted => self.observe(run, state, releaser).await?,
                _ if let Some(fault) = &run.barred => {
                    run.heard.insert(state.id.clone(), format!("no attempt is permitted: {fault}"));
                }
                _ => match releaser.clone().quarantine() {
                    None => self.attempt(run, state, releaser, looks, false).await?,
                    Some(cluster) => {
                        if let Some((looks, sets_up)) = self.prepared(run, state, cluster).await? {
                            self.attempt(run, state, releaser, &looks, sets_up).await?;
                        }
                    }
                },
            }
            if self.place() != here {
                return Ok(Next::Moved);
            }
            if self.next_release().is_none_or(|next| next.id != state.id) {
                return Ok(Next::Again);
            }
        }
        let until = run.pace(&state.id).map_or(now, |pacing| pacing.next);
        // Something was done, and what is next goes by another look.
        let goes_on = until <= self.now() && releaser.clone().quarantine().is_some();
        Ok(if goes_on && run.barred.is_none() { Next::Again } else { Next::Wait(until, pacing.deadline) })
    }

    /// Its time is over: what stands behind it acts in its place, else a person is asked (S23).
    async fn overdue(
        &mut self,
        run: &mut Run,
        state: &ReleaseState,
        releaser: &Arc<dyn Releaser>,
        deadline: BootTime,
    ) -> Result<Next, Fatal> {
        let id = &state.id;
        let said = run.heard.get(id).unwrap_or(&state.detail);
        let mut why = format!("did not complete in {}: {said}", written(releaser.deadline()));
        if let Some(to) = self.acts_instead(state, &**releaser) {
            let patience = releaser.max_in_flight().unwrap_or_default() + 2 * releaser.attempt_time();
            let Some(withdrawn) = self.withdraw_of(id).await? else { return Ok(Next::Again) };
            let left = match withdrawn {
                Ok(gone) => {
                    let passed_on =
                        || Event::PassedOn { release: id.clone(), to: to.clone(), why: why.clone() };
                    self.persist(|| quarantine::after(gone.clone(), passed_on())).await?;
                    "the record does not take it".to_owned()
                }
                Err(left) => format!("what it set up is not seen to be gone: {left}"),
            };
            if self.next_release().is_none_or(|next| next.id != *id) {
                // Its turn comes again, with all of its time.
                run.paces.remove(id);
                run.heard.remove(id);
                return Ok(Next::Again);
            }
            if self.now() < deadline + patience {
                tracing::warn!(release = %id, left, "it is not passed on yet");
                return Ok(Next::Wait(self.now() + self.plan.paces.release.first, deadline));
            }
            why += &format!("; it is not passed on to {to}: {left}");
        }
        self.give_up(Reason::ReleaseDeadline, format!("release {id} {why}")).await?;
        Ok(Next::Moved)
    }

    /// What lets go with a cloud's own hands, next behind a release that passes on.
    fn acts_instead(&self, state: &ReleaseState, releaser: &dyn Releaser) -> Option<ReleaseId> {
        if !releaser.passes_on() || state.passed_on.is_some() {
            return None;
        }
        let releases = &self.record().fence.as_ref()?.releases;
        let behind = releases.iter().skip_while(|one| one.id != state.id).skip(1);
        let next = behind.filter(|one| !one.id.is_part()).find(|one| !one.stage.is_over())?;
        let acts = self.releaser(&next.id).is_some_and(|one| one.in_parts().is_some());
        acts.then(|| next.id.clone())
    }

    /// What the attempt goes by is read, and after that power: however long the reading takes, the look is fresh, and the store says its last
    /// word after both. Answers the look, and whether the attempt may set up what stands; `None`: not now.
    async fn prepared(
        &mut self,
        run: &mut Run,
        state: &ReleaseState,
        cluster: Arc<dyn Quarantine>,
    ) -> Result<Option<(Vec<Look>, bool)>, Fatal> {
        let Some(subject) = self.subject(state) else { return Ok(None) };
        let time = cluster.attempt_time();
        let reading = Box::pin(async move {
            let prepared = cluster.before_attempt(&subject, tokio::time::Instant::now() + time);
            let late = |_| Err(ReleaseError::Unknown("what it goes by was not read in time".to_owned()));
            tokio::time::timeout(time, prepared).await.unwrap_or_else(late)
        });
        let Some(read) = self.watch_over(reading).await? else { return Ok(None) };
        let sets_up = match read {
            Ok(read) => {
                let of = self.record().generation;
                read.met.into_iter().for_each(|whom| self.note_met(of, state.id.clone(), whom));
                if let Some(beside) = &read.beside
                    && self.is_acted_on(run, &state.id, beside, read.stands).await?
                {
                    return Ok(None);
                }
                read.beside.is_none()
            }
            Err(ReleaseError::Replaced(why)) => {
                self.replaced(&state.id, &why).await?;
                return Ok(None);
            }
            Err(error) => {
                let why = error.into_words();
                tracing::warn!(release = %state.id, why, "no attempt is made");
                run.heard.insert(state.id.clone(), why);
                run.back_off(&state.id, self.now());
                return Ok(None);
            }
        };
        let looks = self.look().await?;
        let moved = self.judge_looks(run, &looks).await?;
        Ok((!moved && run.barred.is_none()).then_some((looks, sets_up)))
    }

    /// Nothing of another machine's is let go: a person decides (K1).
    pub(in crate::node) async fn replaced(&mut self, release: &ReleaseId, why: &str) -> Result<(), Fatal> {
        self.give_up(Reason::Replaced, format!("release {release}: {why}")).await
    }

    /// A release of that fence whose far side may know the node by its name alone, by the settings of now (K1).
    pub(in crate::node) fn by_name<'f>(&self, fence: &'f Fence) -> Option<&'f ReleaseId> {
        fence.by_name(|id| {
            let cluster = self.releaser(id)?.quarantine();
            Some(cluster.is_some_and(|cluster| cluster.by_name_alone()))
        })
    }

    /// Of which fence that release is, and about whom.
    pub(in crate::node) fn subject(&self, state: &ReleaseState) -> Option<Subject> {
        let record = self.record();
        let fence = record.fence.as_ref()?;
        Some(Subject {
            node: record.node.clone(),
            fence: fence.id,
            generation: record.generation,
            round: fence.round,
            release: state.id.clone(),
            accepted: state.detail.clone(),
            identities: record.identities(&fence.topology),
            met: self.whom_it_met(state),
        })
    }

    /// What was set up on another confirmation, or by another leadership, is taken away before anything is set up on this one (K3).
    fn stands_from_before(&self, run: &Run, release: &ReleaseId) -> bool {
        self.stands_of(release).into_iter().any(|effect| self.is_from_before(run, release, effect))
    }

    pub(super) fn is_from_before(&self, run: &Run, release: &ReleaseId, effect: EffectId) -> bool {
        !run.set_up.contains(&effect) && !self.only_asked(release)
    }

    async fn withdraw_old(&mut self, run: &mut Run, release: &ReleaseId) -> Result<(), Fatal> {
        match self.withdraw_of(release).await? {
            Some(Ok(gone)) => drop(self.persist(|| Event::Withdrawn { effects: gone.clone() }).await?),
            Some(Err(why)) => self.not_withdrawn(run, release, why),
            None => {}
        }
        Ok(())
    }

    /// Whether others may deal with the same by what stands, or stood a moment ago: it is taken away, and waited for (K4).
    async fn is_acted_on(
        &mut self,
        run: &mut Run,
        release: &ReleaseId,
        beside: &str,
        stands: bool,
    ) -> Result<bool, Fatal> {
        if stands {
            if self.stands_of(release).is_empty() || self.only_asked(release) {
                // By no attempt of this record: what comes next takes it away like what an attempt left (K3).
                self.stands_there(release).await?;
                run.back_off(release, self.now());
            } else {
                self.begin_anew(run, release, format!("bound to it meanwhile: {beside}"), None).await?;
            }
            return Ok(true);
        }
        let Some(until) = self.lingers_until(release).filter(|until| *until > self.now()) else {
            return Ok(false);
        };
        let why = format!("left to others until they act no more on what was set up: {beside}");
        run.heard.insert(release.clone(), why);
        run.pace(release).into_iter().for_each(|pacing| pacing.next = until);
        Ok(true)
    }

    /// Something came beside what was set up, by which others act too: that goes first, and the next attempt waits until nobody acts on it any more,
    /// so that they and we never do the same (K4).
    async fn begin_anew(
        &mut self,
        run: &mut Run,
        release: &ReleaseId,
        words: String,
        known: Option<EffectId>,
    ) -> Result<(), Fatal> {
        match self.withdraw_at_once(release).await? {
            Some(Ok(gone)) => {
                let due_again = || Event::ReleaseProgress {
                    release: release.clone(),
                    stage: ReleaseStage::Pending,
                    detail: words.clone(),
                    known,
                };
                run.heard.remove(release);
                self.persist(|| quarantine::after(gone.clone(), due_again())).await?;
                run.back_off(release, self.now());
                let lingers =
                    self.quarantine_of(release).map(|cluster| cluster.lingers()).unwrap_or_default();
                let from = self.now() + lingers;
                run.pace(release).into_iter().for_each(|pacing| pacing.next = pacing.next.max(from));
            }
            Some(Err(why)) => self.not_withdrawn(run, release, why),
            None => {}
        }
        Ok(())
    }

    /// Nothing is left to be let go: what was set up for it goes, and then it is complete.
    async fn complete(&mut self, run: &mut Run, release: &ReleaseId, words: String) -> Result<(), Fatal> {
        match self.withdraw_of(release).await? {
            Some(Ok(gone)) => {
                let complete = || Event::ReleaseProgress {
                    release: release.clone(),
                    stage: ReleaseStage::Complete,
                    detail: words.clone(),
                    known: None,
                };
                self.persist(|| quarantine::after(gone.clone(), complete())).await?;
            }
            Some(Err(why)) => self.not_withdrawn(run, release, why),
            None => {}
        }
        Ok(())
    }

    fn not_withdrawn(&self, run: &mut Run, release: &ReleaseId, why: String) {
        tracing::warn!(%release, why, "what it set up is not seen to be gone");
        run.heard.insert(release.clone(), format!("what it set up is not seen to be gone: {why}"));
        run.back_off(release, self.now());
    }

    async fn observe(
        &mut self,
        run: &mut Run,
        state: &ReleaseState,
        releaser: &Arc<dyn Releaser>,
    ) -> Result<(), Fatal> {
        let Some(subject) = self.subject(state) else { return Ok(()) };
        let attempts = self.open_attempts(&state.id);
        let releaser = releaser.clone();
        let asking = Box::pin(async move {
            let time = releaser.attempt_time();
            sending::bounded(time, releaser.observe(&subject, tokio::time::Instant::now() + time)).await
        });
        let Some(answer) = self.watch_over(asking).await? else { return Ok(()) };
        match answer {
            Ok(Progress::Accepted(words)) => {
                run.heard.insert(state.id.clone(), words);
                if self.stands_of(&state.id).is_empty() {
                    run.back_off(&state.id, self.now());
                } else {
                    // What stands is to stand no longer than it must.
                    let next = self.now() + self.plan.paces.release.first;
                    run.pace(&state.id).into_iter().for_each(|pacing| pacing.next = next);
                }
            }
            Ok(Progress::Complete(words)) if !self.stands_of(&state.id).is_empty() => {
                self.complete(run, &state.id, words).await?;
            }
            Ok(Progress::NotThere(words)) if !self.stands_of(&state.id).is_empty() => {
                self.begin_anew(run, &state.id, words, attempts.last().copied()).await?;
            }
            Ok(progress) => {
                let (stage, detail, known) = match attempts.last() {
                    Some(effect) => sending::said(progress, *effect),
                    None => {
                        let (stage, detail, _) = sending::said(progress, EffectId(0));
                        (stage, detail, None)
                    }
                };
                self.progress(run, state.id.clone(), stage, detail, known).await?;
            }
            Err(ReleaseError::Replaced(why)) => self.replaced(&state.id, &why).await?,
            Err(error) => {
                tracing::warn!(release = %state.id, %error, "how far the release is cannot be told");
                run.heard.insert(state.id.clone(), error.to_string());
                run.back_off(&state.id, self.now());
            }
        }
        Ok(())
    }
}
