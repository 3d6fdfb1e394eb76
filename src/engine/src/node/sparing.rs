//! Keeping away whoever else remediates machines, for as long as the node is fenced (K8). A task of its own for each release, as whoever has the
//! machines may be away for as long as it likes: nothing waits for it, and the off and the proof do not end it. What it sets up is tidied away
//! with the rest.

use std::collections::BTreeSet;
use std::sync::Arc;

use picket_core::election::Leadership;
use picket_core::ids::{Generation, ReleaseId};
use picket_core::record::Phase;
use picket_release::{Releaser, Subject};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::NodeTask;
use crate::paces::Backoff;

/// The tasks of one fence; they end with its value.
#[derive(Debug, Default)]
pub(super) struct Sparing {
    of: Generation,
    begun: BTreeSet<ReleaseId>,
    tasks: JoinSet<()>,
}

impl NodeTask {
    /// Begins for each release once it is known whom it met, and ends where the node is to come back.
    pub(super) fn spare(&mut self) {
        let record = self.record();
        let comes_back = matches!(record.phase, Phase::Normal | Phase::Unfencing | Phase::Retired);
        if comes_back || self.orphan.is_some() {
            self.sparing = Sparing::default();
            return;
        }
        let of = record.generation;
        if self.sparing.of != of {
            self.sparing = Sparing { of, ..Sparing::default() };
        }
        let record = self.record();
        let states = record.fence.iter().flat_map(|fence| &fence.releases);
        let due: Vec<(Subject, Arc<dyn Releaser>)> = states
            .filter(|state| !self.sparing.begun.contains(&state.id))
            .filter_map(|state| Some((self.subject(state)?, self.releaser(&state.id)?)))
            .filter(|(subject, releaser)| subject.met.is_some() && releaser.lingers().is_some())
            .collect();
        for (subject, releaser) in due {
            self.sparing.begun.insert(subject.release.clone());
            let leadership = self.hands.leadership().clone();
            let backoff = self.plan.paces.exclusion;
            self.sparing.tasks.spawn(async move { spared(&subject, &*releaser, &leadership, backoff).await });
        }
    }
}

/// Tries until it is done.
async fn spared(subject: &Subject, releaser: &dyn Releaser, leadership: &Leadership, backoff: Backoff) {
    let (time, mut pause) = (releaser.attempt_time(), backoff.first);
    // A gateway that stood still would keep others away from a machine that another one has brought back (S6).
    while leadership.check().is_ok() {
        match tokio::time::timeout(time, releaser.spare(subject, Instant::now() + time)).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => {
                tracing::warn!(release = %subject.release, %error, "others may remediate its machine meanwhile");
            }
            Err(_) => {
                tracing::warn!(release = %subject.release, "others may remediate its machine meanwhile: no answer");
            }
        }
        tokio::time::sleep(pause).await;
        pause = backoff.after(pause);
    }
}
