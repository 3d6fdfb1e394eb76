//! Comparing, while a node is kept off, the machine that the far sides of its releases have now with the
//! machine that the fence met (K1).
//!
//! # Invariants
//!
//! - The comparison is a task of its own, at a modest pace. The watch of power does not wait for it. Shown
//!   by `nothing_waits_for_the_question_who_it_is`.
//! - What it found is told until the node's task takes it, also while nothing can be stored. Shown by
//!   `what_is_found_while_nothing_can_be_stored_is_not_forgotten`,
//!   `it_is_found_while_the_node_is_kept_off_and_let_be`.
//! - An attempt and the on compare for themselves. Shown by `it_is_found_before_the_on_which_is_not_sent`.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use picket_core::election::Leadership;
use picket_core::ids::{Generation, ReleaseId};
use picket_core::outcome::Reason;
use picket_core::record::Phase;
use picket_release::{ReleaseError, Releaser, Subject};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::command::Command;
use super::inbox::Own;
use super::{Fatal, NodeTask};

/// The task of one fence; it ends with its value.
#[derive(Debug)]
pub(super) struct Recognising {
    of: Generation,
    met: Vec<(ReleaseId, Option<String>)>,
    task: JoinHandle<()>,
}

impl Drop for Recognising {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl NodeTask {
    /// Begins once the node is off, or a person is waited for, and goes on until it is to come back: what is another machine's is let be also
    /// where that failed at first.
    pub(super) fn recognise(&mut self) {
        let record = self.record();
        // What may be alive may boot.
        let is_proven = record
            .fence
            .as_ref()
            .is_some_and(|fence| fence.evidence.is_some() || fence.attestation.is_some());
        let is_kept_off = match record.phase {
            // What a restore keeps off lets nothing go. Whose machine it is, is asked before its on (S21).
            Phase::Fenced | Phase::Released => !record.is_groundless(),
            Phase::NeedsOperator(_) => is_proven,
            _ => false,
        };
        let states = record.fence.iter().flat_map(|fence| &fence.releases);
        let all: Vec<(Subject, Arc<dyn Releaser>)> = states
            .filter(|_| is_kept_off && self.orphan.is_none())
            .filter_map(|state| Some((self.subject(state)?, self.releaser(&state.id)?)))
            .filter(|(subject, releaser)| subject.met.is_some() && releaser.lingers().is_some())
            .collect();
        if all.is_empty() {
            self.recognising = None;
            return;
        }
        let of = record.generation;
        let met: Vec<(ReleaseId, Option<String>)> =
            all.iter().map(|(subject, _)| (subject.release.clone(), subject.met.clone())).collect();
        if self.recognising.as_ref().is_some_and(|one| one.of == of && one.met == met) {
            return;
        }
        let paces = &self.plan.paces;
        let pace = paces.comparison.max(self.parts.rules.watch * paces.comparison_watches);
        let (leadership, told) = (self.hands.leadership().clone(), self.mailbox.own());
        let task = tokio::spawn(async move {
            join_all(
                all.iter()
                    .map(|(subject, releaser)| compared(subject, &**releaser, pace, &leadership, &told)),
            )
            .await;
        });
        self.recognising = Some(Recognising { of, met, task });
    }

    /// A person decides, unless one is waited for already with a reason of its own: that one says what is to be done, and what may be.
    pub(super) async fn recognised_another(
        &mut self,
        of: Generation,
        release: &ReleaseId,
        why: &str,
    ) -> Result<(), Fatal> {
        let record = self.record();
        let decides = matches!(
            record.phase,
            Phase::Fenced | Phase::Released | Phase::NeedsOperator(Reason::ReleaseDeadline)
        );
        // Where a person said that whoever is there now is meant, it is about nobody any more.
        let state = record.fence.as_ref().and_then(|fence| fence.release(release));
        let is_met = state.is_some_and(|state| self.whom_it_met(state).is_some());
        match decides && is_met && record.generation == of {
            true => self.replaced(release, why).await,
            false => Ok(()),
        }
    }
}

/// Asks on and on. What was found once is told again and again: the far side may not say it twice, as what is ours there is taken away with it, and
/// while the store is away, or a person is asked something else, nobody here takes it.
async fn compared(
    subject: &Subject,
    releaser: &dyn Releaser,
    pace: Duration,
    leadership: &Leadership,
    told: &Own,
) {
    let time = releaser.attempt_time();
    let mut found: Option<String> = None;
    loop {
        tokio::time::sleep(pace).await;
        // It may take away what is ours (S6).
        if leadership.check().is_err() {
            return;
        }
        match tokio::time::timeout(time, releaser.recognise(subject, Instant::now() + time)).await {
            Ok(Err(ReleaseError::Replaced(why))) => found = Some(why),
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(release = %subject.release, %error, "who has the node's name there is not told");
            }
            Err(_) => {
                tracing::debug!(release = %subject.release, "who has the node's name there is not told")
            }
        }
        if let Some(why) = &found {
            told.send(Command::Replaced(subject.generation, subject.release.clone(), why.clone()));
        }
    }
}
