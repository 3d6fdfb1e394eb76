//! Fenced: look, intent, permit, attempt, see it complete; release after release, the parts of one side by side.

mod parts;
mod sending;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use picket_core::event::Event;
use picket_core::ground::{Look, LookFault};
use picket_core::ids::{EffectId, ReleaseId};
use picket_core::outcome::Reason;
use picket_core::record::{ReleaseStage, ReleaseState};
use picket_core::time::BootTime;
use picket_release::{InParts, Progress, Releaser, Subject};

pub(super) use self::parts::survey_event;
use super::{Fatal, NodeTask, standing};
use crate::view::whose_release;

/// Looks without an Off in a row after which the evidence begins from zero (S4).
const UNKNOWN_LOOKS: u32 = 3;
/// Confirmations that do not hold until the release, before a person is asked.
const PROOFS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// What was taken has at least this part of the deadline before it is forced.
const GRACE: u32 = 8;
/// While volumes are being let go power is read this often.
const WATCH: Duration = Duration::from_secs(2);

/// When something is tried, and until when.
#[derive(Clone, Copy, Debug)]
struct Pacing {
    began: BootTime,
    deadline: BootTime,
    next: BootTime,
    pause: Duration,
    /// The last attempt was made then.
    tried: BootTime,
}

impl Pacing {
    fn back_off(&mut self, now: BootTime) {
        self.next = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// When half of its time is over.
    fn half(&self) -> BootTime {
        self.began + self.deadline.since(self.began) / 2
    }
}

/// What a run of the phase remembers.
struct Run {
    unknown: u32,
    /// Of each release, and of each part of one.
    paces: BTreeMap<ReleaseId, Pacing>,
    /// Releases of parts of which this run has asked what is attached.
    surveyed: BTreeSet<ReleaseId>,
    /// Parts that were found attached since the last attempt: a new one is due.
    attached: BTreeSet<ReleaseId>,
    /// Parts of which a detach by force was taken.
    forced: BTreeSet<ReleaseId>,
    /// What was heard of each last that is not stored.
    heard: BTreeMap<ReleaseId, String>,
    /// What this run set up, and what stands on its own look.
    set_up: BTreeSet<EffectId>,
}

impl Run {
    fn pace(&mut self, id: &ReleaseId) -> Option<&mut Pacing> {
        self.paces.get_mut(id)
    }

    fn back_off(&mut self, id: &ReleaseId, now: BootTime) {
        if let Some(pacing) = self.pace(id) {
            pacing.back_off(now);
        }
    }

    /// When a part that is under way is due once more, by force; `None`: that is not allowed, or done.
    fn force_due(&self, id: &ReleaseId, releaser: &dyn Releaser) -> Option<BootTime> {
        let forces = releaser.in_parts().is_some_and(InParts::forces) && !self.forced.contains(id);
        let pacing = self.paces.get(id).filter(|_| forces)?;
        let span = pacing.deadline.since(pacing.began);
        Some(pacing.half().max(pacing.tried + span / GRACE))
    }
}

/// What comes after a step.
enum Next {
    /// The next step, at once.
    Again,
    /// It is waited for: until when nothing is due, and until when at most.
    Wait(BootTime, BootTime),
    /// The node was moved, or a person is asked.
    Moved,
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
        let mut run = Run {
            unknown: 0,
            paces: BTreeMap::new(),
            surveyed: BTreeSet::new(),
            attached: BTreeSet::new(),
            forced: BTreeSet::new(),
            heard: BTreeMap::new(),
            set_up: BTreeSet::new(),
        };
        loop {
            // What stands on another confirmation, or by another leadership, goes first, whichever release is due (K3).
            if self.record().ledger.standing().any(|(effect, _)| !run.set_up.contains(&effect)) {
                self.withdraw_unseen().await?;
            }
            let Some(state) = self.next_release() else { return Ok(()) };
            let whole = state.id.whole();
            let Some(releaser) = self.releaser(&whole) else {
                let detail = format!("release {whole} is in the record and not in the settings any more");
                return self.give_up(Reason::ReleaseDeadline, detail).await;
            };
            if state.id.is_part() && releaser.in_parts().is_none() {
                let detail = format!(
                    "release {} is in the record, and by the settings {whole} has no parts any more",
                    state.id
                );
                return self.give_up(Reason::ReleaseDeadline, detail).await;
            }
            if releaser.in_parts().is_none() {
                self.begin(&mut run, &whole, &*releaser);
            }
            let looks = self.look().await?;
            if self.judge_looks(&mut run, &looks).await? {
                return Ok(());
            }
            let next = match releaser.in_parts() {
                Some(_) => self.in_parts(&mut run, &whole, &releaser, &looks).await?,
                None => self.as_a_whole(&mut run, &state, &releaser, &looks).await?,
            };
            if self.place() != here {
                return Ok(());
            }
            let (until, deadline) = match next {
                Next::Again => continue,
                Next::Moved => return Ok(()),
                Next::Wait(until, deadline) => (until, deadline),
            };
            let left = deadline.since(self.now());
            self.wait_for(format!("release {whole} to complete"), whose_release(&whole), Some(left));
            let until_next = until.since(self.now());
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

    pub(super) fn releaser(&self, id: &ReleaseId) -> Option<Arc<dyn Releaser>> {
        self.plan.releases.iter().find(|plan| plan.id == *id).map(|plan| plan.releaser.clone())
    }

    /// A release, or a part of one, whose turn it is: its deadline begins, and it waits until storage has settled (S23).
    fn begin(&self, run: &mut Run, id: &ReleaseId, releaser: &dyn Releaser) {
        let now = self.now();
        let dark_since = self.ground.as_ref().map_or(now, |ground| ground.dark_since);
        run.paces.entry(id.clone()).or_insert_with(|| Pacing {
            began: now,
            deadline: now + releaser.deadline(),
            next: dark_since + releaser.settle(),
            pause: FIRST_PAUSE,
            tried: now,
        });
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
                if matches!(fault, LookFault::On(_)) {
                    self.withdraw_unseen().await?;
                }
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
        let gone = self.withdraw_now().await;
        let unproven = || Event::Unproven { why: why.clone(), seen: true };
        self.persist(|| standing::after(gone.clone(), unproven())).await?;
        Ok(true)
    }

    /// A release that is attempted as a whole.
    async fn as_a_whole(
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
            let said = run.heard.get(&state.id).unwrap_or(&state.detail);
            let detail =
                format!("release {} did not complete in {:?}: {said}", state.id, releaser.deadline());
            self.give_up(Reason::ReleaseDeadline, detail).await?;
            return Ok(Next::Moved);
        }
        if run.unknown == 0 && now >= pacing.next {
            match state.stage {
                _ if self.stands_from_before(run, &state.id) => self.withdraw_old(run, &state.id).await?,
                ReleaseStage::Accepted => self.observe(run, state, releaser).await?,
                _ if releaser.lingers().is_none() => self.attempt(run, state, releaser, looks).await?,
                _ => {
                    if let Some(looks) = self.prepared(run, &state.id, releaser).await? {
                        self.attempt(run, state, releaser, &looks).await?;
                    }
                }
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
        let goes_on = releaser.lingers().is_some() && until <= self.now();
        Ok(if goes_on && run.unknown == 0 { Next::Again } else { Next::Wait(until, pacing.deadline) })
    }

    /// What the attempt goes by is read, and after that power: however long the reading takes, the look is fresh, and the store says its last
    /// word after both. `None`: not now.
    async fn prepared(
        &mut self,
        run: &mut Run,
        release: &ReleaseId,
        releaser: &Arc<dyn Releaser>,
    ) -> Result<Option<Vec<Look>>, Fatal> {
        let (asked, time) = (releaser.clone(), releaser.attempt_time());
        let reading = Box::pin(async move {
            let prepared = asked.prepare(tokio::time::Instant::now() + time);
            let late = |_| Err("what it goes by was not read in time".to_owned());
            tokio::time::timeout(time, prepared).await.unwrap_or_else(late)
        });
        match self.watch_over(reading).await? {
            None => return Ok(None),
            Some(Err(why)) => {
                tracing::warn!(%release, why, "no attempt is made");
                run.heard.insert(release.clone(), why);
                run.back_off(release, self.now());
                return Ok(None);
            }
            Some(Ok(())) => {}
        }
        let looks = self.look().await?;
        let moved = self.judge_looks(run, &looks).await?;
        Ok((!moved && run.unknown == 0).then_some(looks))
    }

    /// What was set up on another confirmation, or by another leadership, is taken away before anything is set up on this one (K3).
    fn stands_from_before(&self, run: &Run, release: &ReleaseId) -> bool {
        self.stands_of(release).iter().any(|effect| !run.set_up.contains(effect))
    }

    async fn withdraw_old(&mut self, run: &mut Run, release: &ReleaseId) -> Result<(), Fatal> {
        match self.withdraw_of(release).await? {
            Some(Ok(gone)) => drop(self.persist(|| Event::Withdrawn { effects: gone.clone() }).await?),
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
                self.persist(|| standing::after(gone.clone(), complete())).await?;
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
            sending::bounded(time, releaser.observe(&subject, tokio::time::Instant::now() + time)).await
        });
        let Some(answer) = self.watch_over(asking).await? else { return Ok(()) };
        match answer {
            // What stands is to stand no longer than it must.
            Ok(Progress::Accepted(_)) if !self.stands_of(&state.id).is_empty() => {
                let next = self.now() + FIRST_PAUSE;
                run.pace(&state.id).into_iter().for_each(|pacing| pacing.next = next);
            }
            Ok(Progress::Accepted(_)) => run.back_off(&state.id, self.now()),
            Ok(Progress::Complete(words)) if !self.stands_of(&state.id).is_empty() => {
                self.complete(run, &state.id, words).await?;
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
            Err(error) => {
                tracing::warn!(release = %state.id, %error, "how far the release is cannot be told");
                run.back_off(&state.id, self.now());
            }
        }
        Ok(())
    }
}
