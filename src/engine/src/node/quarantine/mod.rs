//! What the clusters of a node's releases are told around its fence: that it is being fenced, that nobody else repairs its machine, and
//! that it is back.
//!
//! [`NodeTask::quarantine`] compares what is wanted with what is under way. Each telling is a task of its own, beside the phases.
//!
//! # Invariants
//!
//! - No phase waits for a cluster, and a cluster that does not answer is asked again. Shown by
//!   `who_does_not_hear_that_it_is_being_fenced_keeps_no_off_back`, `nothing_waits_for_the_question_who_it_is`.
//! - The machine that a cluster has for the node is stored (`Event::ReleaseSubject`). Another machine under that name
//!   gives the fence up (`Replaced`, K1). Shown by
//!   `that_it_is_being_fenced_is_told_before_it_is_off_and_whom_it_met_is_stored`,
//!   `another_machine_under_the_node_s_name_is_left_alone_and_a_person_is_asked_at_once`.
//! - What a comparison found is told until the node's task takes it, also while nothing can be stored. Shown by
//!   `what_is_found_while_nothing_can_be_stored_is_not_forgotten`,
//!   `it_is_found_while_the_node_is_kept_off_and_let_be`.
//! - Others are kept away from the machine for as long as the node is fenced: neither the off nor the proof ends that (K8).
//!   Shown by `others_are_kept_away_from_its_machine_as_soon_as_that_can_be_done`,
//!   `what_keeps_others_away_from_a_machine_goes_with_the_fence`.
//! - A machine that is being deleted ends a breach, and nothing more is sent. Shown by
//!   `a_node_that_is_taken_away_and_comes_on_is_not_switched_off_again_and_again`.
//! - A gateway whose leadership is over tells nothing (S6): each task asks for it before each try.

mod cleanup;
mod met;
mod tries;
mod withdrawal;

pub(super) use met::Met;
use picket_core::ids::{EffectId, Generation, ReleaseId};
use picket_core::outcome::Reason;
use picket_core::record::{Phase, ReleaseStage};
use picket_release::{Left, Subject};
use tokio::task::JoinHandle;
pub(super) use withdrawal::{BY_ITS_SETTINGS, after};

use super::{Fatal, NodeTask};

/// What is told. While it is wanted unchanged its task goes on, or is over for good.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Telling {
    /// The node is being fenced: nothing new is given to it (K2, K8).
    Cordon(Generation, ReleaseId),
    /// Nobody else repairs the machine that was met (K8).
    Exclude(Generation, ReleaseId),
    /// Whether the cluster has still the machine that was met (K1).
    Compare(Generation, ReleaseId, Option<String>),
    /// What lets volumes go, and stands, is to go (K3).
    Withdraw(ReleaseId, Vec<EffectId>),
    /// What fences left goes: the node is back, or retired.
    CleanUp(Vec<Left>),
}

/// What is under way; it ends with its value.
#[derive(Debug, Default)]
pub(super) struct Tellings(Vec<(Telling, Task)>);

#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Tellings {
    fn has(&self, is: impl Fn(&Telling) -> bool) -> bool {
        self.0.iter().any(|(telling, _)| is(telling))
    }

    /// Ends those of that kind that are not wanted, and answers those that are to begin.
    fn keep(&mut self, kind: fn(&Telling) -> bool, mut wanted: Vec<Telling>) -> Vec<Telling> {
        self.0.retain(|(telling, _)| !kind(telling) || wanted.contains(telling));
        wanted.retain(|one| !self.has(|telling| telling == one));
        wanted
    }

    /// Drops those of that kind whose task is over.
    fn drop_ended(&mut self, kind: fn(&Telling) -> bool) {
        self.0.retain(|(telling, task)| !(kind(telling) && task.0.is_finished()));
    }

    fn begin(&mut self, telling: Telling, task: impl Future<Output = ()> + Send + 'static) {
        self.0.push((telling, Task(tokio::spawn(task))));
    }
}

impl NodeTask {
    /// Ends what is not wanted any more, and begins what is wanted and not under way.
    pub(super) fn quarantine(&mut self) {
        self.withdraw_unproven();
        self.tell_of_fence();
        self.clean_up();
    }

    /// The same of what is told of the open fence. It is asked for also once it is known whom a cluster has for the node.
    fn tell_of_fence(&mut self) {
        let clusters = self.quarantines();
        let wanted = clusters.iter().flat_map(|(subject, _)| self.wanted(subject)).collect();
        let of_fence = |one: &Telling| !matches!(one, Telling::Withdraw(..) | Telling::CleanUp(_));
        for telling in self.tellings.keep(of_fence, wanted) {
            let (Telling::Cordon(_, of) | Telling::Exclude(_, of) | Telling::Compare(_, of, _)) = &telling
            else {
                continue;
            };
            let Some((subject, cluster)) = clusters.iter().find(|(subject, _)| subject.release == *of) else {
                continue;
            };
            let tries = self.tries(subject.clone(), cluster.clone());
            match telling {
                Telling::Cordon(..) => self.tellings.begin(telling, tries.cordon()),
                Telling::Exclude(..) => self.tellings.begin(telling, tries.exclude()),
                _ => {
                    let paces = &self.plan.paces;
                    let pace = paces.comparison.max(self.parts.rules.watch * paces.comparison_watches);
                    self.tellings.begin(telling, tries.compare(pace));
                }
            }
        }
        // What a task said that has ended is nothing any more.
        let is_tried = |release: &ReleaseId| {
            self.tellings.has(|one| matches!(one, Telling::Cordon(_, of) if of == release))
        };
        if !self.live.unannounced.keys().all(is_tried) {
            let left = self.live.unannounced.clone().into_iter().filter(|(of, _)| is_tried(of)).collect();
            self.live_mut().unannounced = left;
            self.publish();
        }
    }

    /// What the cluster of that release is told of the open fence.
    fn wanted(&self, subject: &Subject) -> Vec<Telling> {
        let record = self.record();
        let Some(fence) = record.fence.as_ref().filter(|_| self.orphan.is_none()) else { return Vec::new() };
        let is_abandoned =
            fence.release(&subject.release).is_some_and(|state| state.stage == ReleaseStage::Abandoned);
        let is_proven = fence.evidence.is_some() || fence.attestation.is_some();
        // A node without a proof that waits for a person may be alive.
        let is_unproven = match record.phase {
            Phase::Fencing => true,
            Phase::NeedsOperator(_) => fence.evidence.is_none(),
            _ => false,
        };
        let comes_back = matches!(record.phase, Phase::Normal | Phase::Unfencing | Phase::Retired);
        let is_kept_off = match record.phase {
            // What a restore keeps off lets nothing go. Whose machine it is, is asked before its on (S21).
            Phase::Fenced | Phase::Released => !record.is_groundless(),
            // What may be alive may boot.
            Phase::NeedsOperator(_) => is_proven,
            _ => false,
        };
        let (of, release) = (subject.generation, subject.release.clone());
        let is_met = subject.met.is_some();
        let mut wanted = Vec::new();
        // Also of what is complete: it is another round, and what the cluster noted of the one before speaks against nobody.
        if is_unproven && !is_abandoned {
            wanted.push(Telling::Cordon(of, release.clone()));
        }
        // The off and the proof do not end it: whoever has the machines may be away for as long as it likes.
        if is_met && !comes_back {
            wanted.push(Telling::Exclude(of, release.clone()));
        }
        // What is another machine's is let be also where that failed at first. An attempt, and the on, compare for themselves.
        if is_met && is_kept_off {
            wanted.push(Telling::Compare(of, release, subject.met.clone()));
        }
        wanted
    }

    /// What became of telling a cluster that the node is being fenced.
    pub(super) fn note_cordoned(
        &mut self,
        of: Generation,
        release: ReleaseId,
        told: Result<Option<String>, String>,
    ) {
        let telling = Telling::Cordon(of, release.clone());
        let why = told.as_ref().err();
        if self.tellings.has(|one| *one == telling) && self.live.unannounced.get(&release) != why {
            let unannounced = &mut self.live_mut().unannounced;
            match why {
                Some(why) => unannounced.insert(release.clone(), why.clone()),
                None => unannounced.remove(&release),
            };
            self.publish();
        }
        // For whom it met, also what an ended task said counts.
        if let Ok(Some(whom)) = told {
            self.note_met(of, release, whom);
        }
    }

    /// The cluster has another machine for the node. A person decides, unless one is waited for already with a reason of its own: that reason
    /// says what is to be done, and what may be.
    pub(super) async fn note_replaced(
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
