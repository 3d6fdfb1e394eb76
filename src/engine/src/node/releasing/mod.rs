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
use picket_release::{Progress, Releaser, Subject};

pub(super) use self::parts::survey_event;
use super::{Fatal, NodeTask};
use crate::view::whose_release;

/// Looks without an Off in a row after which the evidence begins from zero (S4).
const UNKNOWN_LOOKS: u32 = 3;
/// Confirmations that do not hold until the release, before a person is asked.
const PROOFS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// While volumes are being let go power is read this often.
const WATCH: Duration = Duration::from_secs(2);

/// When something is tried, and until when.
#[derive(Clone, Copy, Debug)]
struct Pacing {
    began: BootTime,
    deadline: BootTime,
    next: BootTime,
    pause: Duration,
}

impl Pacing {
    fn back_off(&mut self, now: BootTime) {
        self.next = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Half of its time is over.
    fn is_late(&self, now: BootTime) -> bool {
        now.since(self.began) * 2 >= self.deadline.since(self.began)
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
    /// What was heard of each last that is not stored.
    heard: BTreeMap<ReleaseId, String>,
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
            heard: BTreeMap::new(),
        };
        loop {
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
            let detail = format!(
                "release {} did not complete in {:?}: {}",
                state.id,
                releaser.deadline(),
                state.detail
            );
            self.give_up(Reason::ReleaseDeadline, detail).await?;
            return Ok(Next::Moved);
        }
        if run.unknown == 0 && now >= pacing.next {
            match state.stage {
                ReleaseStage::Accepted => self.observe(run, state, releaser).await?,
                _ => self.attempt(run, state, releaser, looks).await?,
            }
            if self.place() != here {
                return Ok(Next::Moved);
            }
            if self.next_release().is_none_or(|next| next.id != state.id) {
                return Ok(Next::Again);
            }
        }
        let until = run.pace(&state.id).map_or(now, |pacing| pacing.next);
        Ok(Next::Wait(until, pacing.deadline))
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
            Ok(Progress::Accepted(_)) => run.back_off(&state.id, self.now()),
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
