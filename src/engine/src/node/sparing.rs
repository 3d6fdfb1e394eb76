//! Keeping away whoever else remediates machines, for as long as the node is fenced (K8): the Machine of
//! Cluster API behind a Node.
//!
//! # Invariants
//!
//! - It is a task of its own for each release. Nothing waits for it, and neither the off nor the proof ends
//!   it. Shown by `others_are_kept_away_from_its_machine_as_soon_as_that_can_be_done`.
//! - What it sets up is taken away after everything else. Shown by
//!   `what_keeps_others_away_from_a_machine_goes_with_the_fence`.
//! - A machine that is being deleted ends a breach, and nothing more is sent. Shown by
//!   `a_node_that_is_taken_away_and_comes_on_is_not_switched_off_again_and_again`.

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
