//! Before the on, and before supplies come back, each release that sets something up is asked once more
//! whether the node may go on (K2).
//!
//! # Invariants
//!
//! - What somebody else set up, and lets volumes go for as long as it stands, bars the on (K7). It is
//!   waited for until `on_deadline`. Shown by
//!   `what_somebody_sets_up_while_it_is_brought_back_bars_the_on_too`.
//! - A far side that does not answer bars nothing, unless its last answer did. That answer is stored
//!   (`ReleaseState::barred`). Shown by `where_nobody_answers_the_on_goes_after_a_while`,
//!   `what_barred_a_release_bars_the_on_also_with_the_next_leader`.
//! - The question is asked again before an on that goes more than 5 s later. Shown by
//!   `what_somebody_sets_up_between_the_question_and_the_on_bars_it`.

use std::sync::Arc;
use std::time::Duration;

use picket_core::device::DeviceClass;
use picket_core::event::Event;
use picket_core::ids::ReleaseId;
use picket_core::record::{Bringing, Cause, ReleaseState};
use picket_core::time::BootTime;
use picket_release::{LetOn, Quarantine, ReleaseError, Subject};
use tokio::time::Instant;

use crate::node::{Fatal, NodeTask};
use crate::parts::PlannedRelease;
use crate::view::whose_release;

/// What the far sides of the releases said last of an on.
#[derive(Debug)]
pub(super) struct Clearance {
    at: BootTime,
    /// Which release bars it, and why.
    pub(super) bar: Option<(ReleaseId, String)>,
}

impl Clearance {
    /// All of them let it go just now.
    pub(super) fn given(at: BootTime) -> Self {
        Self { at, bar: None }
    }
}

/// What one of them said.
enum Said {
    Yes,
    No(String),
    /// It did not answer.
    Nothing,
    /// The node was moved, or something has to go first.
    Ended,
}

impl NodeTask {
    /// False: it is not let on before the deadline, the node was moved, or something stands that has to go first.
    pub(super) async fn is_let_on(&mut self, deadline: BootTime) -> Result<bool, Fatal> {
        for (subject, cluster) in self.asked_before_an_on() {
            if !self.is_let_on_by(&subject, &*cluster, deadline).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Asks once more, where the last answer is not of just now: an on may go minutes after the first, and again and again. False: the node was moved,
    /// or something stands that has to go first.
    pub(super) async fn renew(&mut self, clearance: &mut Clearance) -> Result<bool, Fatal> {
        if clearance.bar.is_none() && self.now().since(clearance.at) < self.plan.paces.clearance_serves {
            return Ok(true);
        }
        let known = clearance.bar.take();
        for (subject, cluster) in self.asked_before_an_on() {
            let release = &subject.release;
            match self.lets_on(&subject, &*cluster, self.plan.paces.clearance_renewal).await? {
                Said::Ended => return Ok(false),
                Said::Yes => {}
                Said::No(why) => {
                    clearance.bar = Some((release.clone(), why));
                    return Ok(true);
                }
                Said::Nothing => {
                    let before = known.clone().filter(|(of, _)| of == release);
                    if let Some(bar) =
                        before.or_else(|| Some((release.clone(), self.barred_before(release)?)))
                    {
                        clearance.bar = Some(bar);
                        return Ok(true);
                    }
                }
            }
        }
        clearance.at = self.now();
        Ok(true)
    }

    /// Whether a node that was not let on, or would not be now, is on all the same. Nothing is waited for.
    pub(in crate::node) async fn is_barred_from_on(&mut self) -> Result<bool, Fatal> {
        for (subject, cluster) in self.asked_before_an_on() {
            let asked = ask(&subject, &*cluster, self.plan.paces.clearance_renewal).await;
            self.note_barred(&subject.release, &asked).await?;
            match asked {
                Ok(LetOn { stands: true, .. }) => {
                    self.stands_there(&subject.release).await?;
                    return Ok(true);
                }
                Ok(_) => {}
                Err(ReleaseError::Unknown(_)) if self.barred_before(&subject.release).is_none() => {}
                // Another machine under the node's name is let be: bringing it back finds it, and asks a person (K1).
                Err(ReleaseError::Replaced(_)) => {}
                Err(_) => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Whether anybody is asked whether something may be switched on.
    pub(super) fn is_asked_before_an_on(&self) -> bool {
        !self.asked_before_an_on().is_empty()
    }

    /// Whom to ask whether something may be switched on, and about whom.
    fn asked_before_an_on(&self) -> Vec<(Subject, Arc<dyn Quarantine>)> {
        // An outlet switches on whatever hangs on it, also where a person says that the machine was alive.
        let switches_on = |class| !self.switched_off(class).is_empty();
        let is_asked = self.record().bringing == Bringing::PowerOn
            || switches_on(DeviceClass::Supply)
            || switches_on(DeviceClass::Parent);
        let Some(fence) = self.record().fence.as_ref().filter(|_| is_asked) else { return Vec::new() };
        // The fence that stands for a restore knows none of them, or not all: what stands at their far sides bars its on too (S21).
        let is_unknown =
            |plan: &&PlannedRelease| fence.cause == Cause::Restored && fence.release(&plan.id).is_none();
        let of_the_settings = self.plan.releases.iter().filter(is_unknown);
        let unknown = of_the_settings.map(|plan| ReleaseState::pending(plan.id.clone(), None));
        let states = fence.releases.iter().cloned().chain(unknown);
        states.filter_map(|state| Some((self.subject(&state)?, self.quarantine_of(&state.id)?))).collect()
    }

    /// What was seen to bar it stands also while nobody answers, until somebody says otherwise: before an attempt, or before a retry, whoever led.
    fn barred_before(&self, release: &ReleaseId) -> Option<String> {
        let state = self.record().fence.as_ref()?.release(&release.whole())?;
        state.barred.then(|| {
            "somebody else's was seen to stand there, and lets its volumes go: take it away, then retry"
                .to_owned()
        })
    }

    /// Whether what stands there is somebody else's, as it was answered last.
    pub(in crate::node) async fn note_barred<T>(
        &mut self,
        release: &ReleaseId,
        answered: &Result<T, ReleaseError>,
    ) -> Result<(), Fatal> {
        let is = match answered {
            Ok(_) => false,
            Err(ReleaseError::Barred(_)) => true,
            // Whoever fails before it looks there says nothing of what stands there.
            Err(_) => return Ok(()),
        };
        let release = release.whole();
        let state = self.record().fence.as_ref().and_then(|fence| fence.release(&release));
        if state.is_some_and(|state| state.barred != is) {
            self.persist(|| Event::Barred { release: release.clone(), is }).await?;
        }
        Ok(())
    }

    /// A person is asked.
    async fn not_let_on(&mut self, why: &str) -> Result<(), Fatal> {
        let detail = format!("it is not switched on: {why}");
        tracing::error!(detail, "the node was not seen to come on");
        self.persist(|| Event::OnFailed { detail: detail.clone() }).await.map(drop)
    }

    async fn is_let_on_by(
        &mut self,
        subject: &Subject,
        cluster: &dyn Quarantine,
        deadline: BootTime,
    ) -> Result<bool, Fatal> {
        let here = self.place();
        let patience = self.now() + self.plan.paces.clearance_patience;
        let mut barred = self.barred_before(&subject.release);
        loop {
            match self.lets_on(subject, cluster, self.plan.paces.clearance_patience).await? {
                Said::Yes => return Ok(true),
                Said::Ended => return Ok(false),
                Said::No(why) => barred = Some(why),
                Said::Nothing => {}
            }
            let now = self.now();
            if barred.is_none() && now >= patience {
                return Ok(true);
            }
            if let Some(why) = barred.as_ref().filter(|_| now >= deadline) {
                self.not_let_on(why).await?;
                return Ok(false);
            }
            let why = barred.as_deref().unwrap_or("nobody answers");
            self.waits_for_clearance(&subject.release, why, deadline);
            if self.pause(here, self.plan.paces.clearance).await? {
                return Ok(false);
            }
        }
    }

    pub(super) fn waits_for_clearance(&mut self, release: &ReleaseId, why: &str, deadline: BootTime) {
        let left = deadline.since(self.now());
        let what = format!("release {release} to let it be switched on: {why}");
        self.wait_for(what, whose_release(release), Some(left));
    }

    /// Asks one of them once.
    async fn lets_on(
        &mut self,
        subject: &Subject,
        cluster: &dyn Quarantine,
        within: Duration,
    ) -> Result<Said, Fatal> {
        let release = &subject.release;
        let asked = ask(subject, cluster, within).await;
        self.note_barred(release, &asked).await?;
        match asked {
            Ok(LetOn { stands: true, .. }) => {
                // It is taken away beside whatever is waited for, and that is waited for (K3).
                self.stands_there(release).await?;
                self.found_standing += 1;
                if self.found_standing > self.plan.paces.clearance_rounds {
                    let why = format!("what release {release} sets up is set up again and again by somebody");
                    self.not_let_on(&why).await?;
                }
                Ok(Said::Ended)
            }
            Ok(LetOn { found, .. }) => {
                if let Some(found) = found {
                    tracing::warn!(%release, found, "before the on");
                }
                Ok(Said::Yes)
            }
            Err(ReleaseError::DidNotHappen(why) | ReleaseError::Barred(why)) => Ok(Said::No(why)),
            // Whoever stands it down says that it is this machine, and alive.
            Err(ReleaseError::Replaced(_)) if self.record().bringing == Bringing::StandDown => Ok(Said::Yes),
            // Who is switched on would be another machine, or nobody (K1).
            Err(ReleaseError::Replaced(why)) => {
                self.replaced(release, &why).await?;
                Ok(Said::Ended)
            }
            Err(ReleaseError::Unknown(why)) => {
                tracing::warn!(%release, why, "whether it may be switched on is not told");
                Ok(Said::Nothing)
            }
        }
    }
}

async fn ask(subject: &Subject, cluster: &dyn Quarantine, within: Duration) -> Result<LetOn, ReleaseError> {
    let time = cluster.attempt_time().min(within);
    let asked = tokio::time::timeout(time, cluster.before_on(subject, Instant::now() + time)).await;
    asked.unwrap_or_else(|_| Err(ReleaseError::Unknown("no answer in time".to_owned())))
}
