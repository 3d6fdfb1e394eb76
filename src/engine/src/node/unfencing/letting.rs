//! Before the on, and before supplies come back, the far side of each release that sets something up is asked once more whether it may go (K2):
//! what somebody else set up, and lets volumes go for as long as it stands, bars it (K7).

use std::sync::Arc;
use std::time::Duration;

use picket_core::device::DeviceClass;
use picket_core::event::Event;
use picket_core::record::Bringing;
use picket_core::time::BootTime;
use picket_release::{LetOn, ReleaseError, Releaser, Subject};
use tokio::time::Instant;

use crate::node::{Fatal, NodeTask};
use crate::view::whose_release;

/// Between two questions.
const PACE: Duration = Duration::from_secs(2);
/// So often what stands is taken away before a person is asked who sets it up.
const MOST_ROUNDS: u32 = 3;
/// So long an answer is waited for; whoever is away, and was not seen to bar it, keeps no node off: it may be what answers there.
const PATIENCE: Duration = Duration::from_secs(15);

impl NodeTask {
    /// False: it is not let on before the deadline, the node was moved, or something stands that has to go first.
    pub(super) async fn is_let_on(&mut self, deadline: BootTime) -> Result<bool, Fatal> {
        // An outlet switches on whatever hangs on it, also where a person says that the machine was alive.
        let switches_on = |class| !self.switched_off(class).is_empty();
        let is_asked = self.record().bringing == Bringing::PowerOn
            || switches_on(DeviceClass::Supply)
            || switches_on(DeviceClass::Parent);
        if !is_asked {
            return Ok(true);
        }
        let states = self.record().fence.iter().flat_map(|fence| &fence.releases);
        let all: Vec<(Subject, Arc<dyn Releaser>)> = states
            .filter_map(|state| Some((self.subject(state)?, self.releaser(&state.id)?)))
            .filter(|(_, releaser)| releaser.lingers().is_some())
            .collect();
        for (subject, releaser) in all {
            if !self.is_let_on_by(&subject, &*releaser, deadline).await? {
                return Ok(false);
            }
        }
        Ok(true)
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
        releaser: &dyn Releaser,
        deadline: BootTime,
    ) -> Result<bool, Fatal> {
        let here = self.place();
        let patience = self.now() + PATIENCE;
        // What was seen to stand stands also while nobody answers, until somebody says otherwise: before an attempt, or before a retry.
        let mut barred = self.live.barred.contains(&subject.release.whole()).then(|| {
            "somebody else's was seen to stand there, and lets its volumes go: take it away, then retry"
                .to_owned()
        });
        loop {
            let time = releaser.attempt_time().min(PATIENCE);
            let asked = tokio::time::timeout(time, releaser.lets_on(subject, Instant::now() + time)).await;
            if let Ok(answered) = &asked {
                self.note_barred(&subject.release, answered);
            }
            match asked {
                Ok(Ok(LetOn { stands: true, .. })) => {
                    // It is taken away beside whatever is waited for, and that is waited for (K3).
                    self.stands_there(&subject.release).await?;
                    self.found_standing += 1;
                    if self.found_standing > MOST_ROUNDS {
                        let why = format!(
                            "what release {} sets up is set up again and again by somebody",
                            subject.release
                        );
                        self.not_let_on(&why).await?;
                    }
                    return Ok(false);
                }
                Ok(Ok(LetOn { found, .. })) => {
                    if let Some(found) = found {
                        tracing::warn!(release = %subject.release, found, "before the on");
                    }
                    return Ok(true);
                }
                Ok(Err(ReleaseError::DidNotHappen(why) | ReleaseError::Barred(why))) => barred = Some(why),
                // Whoever stands it down says that it is this machine, and alive.
                Ok(Err(ReleaseError::Replaced(_))) if self.record().bringing == Bringing::StandDown => {
                    return Ok(true);
                }
                // Who is switched on would be another machine, or nobody (K1).
                Ok(Err(ReleaseError::Replaced(why))) => {
                    self.replaced(&subject.release, &why).await?;
                    return Ok(false);
                }
                Ok(Err(ReleaseError::Unknown(why))) => {
                    tracing::warn!(release = %subject.release, why, "whether it may be switched on is not told");
                }
                Err(_) => {
                    tracing::warn!(release = %subject.release, "whether it may be switched on is not told")
                }
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
            let what = format!("release {} to let it be switched on: {why}", subject.release);
            self.wait_for(what, whose_release(&subject.release), Some(deadline.since(now)));
            if self.pause(PACE).await? || self.place() != here {
                return Ok(false);
            }
        }
    }
}
