//! Telling the far sides of releases that a node is being fenced, before it is off (K2, K8): nothing new is
//! given to the node, and nobody else lets go what it has.
//!
//! # Invariants
//!
//! - The announcement is a task of its own, and the off does not wait for it. Shown by
//!   `who_does_not_hear_that_it_is_being_fenced_keeps_no_off_back`.
//! - The machine that it meets there is stored (`Event::ReleaseSubject`). Another machine under that name
//!   gives the fence up (`Replaced`, K1). Shown by
//!   `that_it_is_being_fenced_is_told_before_it_is_off_and_whom_it_met_is_stored`,
//!   `another_machine_under_the_node_s_name_is_left_alone_and_a_person_is_asked_at_once`.
//! - What it sets up is tidied away with the rest. Shown by
//!   `what_is_left_there_while_the_process_runs_is_swept_within_ten_minutes`.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use picket_core::election::Leadership;
use picket_core::event::Event;
use picket_core::ids::{Generation, ReleaseId};
use picket_core::record::{Phase, ReleaseStage, ReleaseState};
use picket_release::{ReleaseError, Releaser, Subject};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::NodeTask;
use super::command::Command;
use super::inbox::Own;
use crate::paces::Paces;

/// Whom the far sides of releases have for the node, as they were met in this generation. It is stored with what is stored next: no
/// call to a device waits for that, and no store that is away makes it forgotten.
#[derive(Debug, Default)]
pub(super) struct Met(BTreeMap<ReleaseId, (Generation, String)>);

/// The task of one fence; it ends with its value.
#[derive(Debug)]
pub(super) struct Announcing {
    of: Generation,
    task: JoinHandle<()>,
}

impl Drop for Announcing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl NodeTask {
    /// Begins with each fence, and ends once the node is proven off, or is left alone. One that waits for a person without a proof may be
    /// alive still.
    pub(super) fn announce(&mut self) {
        let record = self.record();
        let is_unproven = match record.phase {
            Phase::Fencing => true,
            Phase::NeedsOperator(_) => record.fence.as_ref().is_some_and(|fence| fence.evidence.is_none()),
            _ => false,
        };
        if !is_unproven || self.orphan.is_some() {
            self.ends_announcing();
            return;
        }
        let of = record.generation;
        if self.announcing.as_ref().is_some_and(|one| one.of == of) {
            return;
        }
        // Also of what is complete: it is another round, and what the far side noted of the one before speaks against nobody.
        let states = record.fence.iter().flat_map(|fence| &fence.releases);
        let states = states.filter(|one| one.stage != ReleaseStage::Abandoned);
        let all: Vec<(Subject, Arc<dyn Releaser>)> = states
            .filter_map(|state| Some((self.subject(state)?, self.releaser(&state.id)?)))
            .filter(|(_, releaser)| releaser.lingers().is_some())
            .collect();
        self.ends_announcing();
        if all.is_empty() {
            return;
        }
        let (leadership, told) = (self.hands.leadership().clone(), self.mailbox.own());
        let paces = self.plan.paces.clone();
        let task = tokio::spawn(async move {
            let announced = all
                .into_iter()
                .map(|(subject, releaser)| announced(subject, releaser, &paces, &leadership, &told));
            join_all(announced).await;
        });
        self.announcing = Some(Announcing { of, task });
    }

    /// Nobody tries any more.
    fn ends_announcing(&mut self) {
        self.announcing = None;
        if !self.live.unannounced.is_empty() {
            self.live_mut().unannounced.clear();
            self.publish();
        }
    }

    /// What became of telling it. What a task said that has ended since is nothing any more, but for whom it met.
    pub(super) fn note_announced(
        &mut self,
        of: Generation,
        release: ReleaseId,
        told: Result<Option<String>, String>,
    ) {
        let tries = self.announcing.as_ref().is_some_and(|one| one.of == of);
        let why = told.as_ref().err();
        if tries && self.live.unannounced.get(&release) != why {
            let unannounced = &mut self.live_mut().unannounced;
            match why {
                Some(why) => unannounced.insert(release.clone(), why.clone()),
                None => unannounced.remove(&release),
            };
            self.publish();
        }
        if let Ok(Some(whom)) = told {
            self.note_met(of, release, whom);
        }
    }

    /// Who was met first in that generation stands.
    pub(super) fn note_met(&mut self, of: Generation, release: ReleaseId, whom: String) {
        let known = self.met.0.get(&release).is_some_and(|(known, _)| *known == of);
        if !known {
            self.met.0.insert(release, (of, whom));
            self.spare();
        }
    }

    /// What is stored is in the record alone: a person may have taken it out of there.
    pub(super) fn forget_stored_met(&mut self) {
        let fence = self.stored.record.fence.as_ref();
        let is_stored = |id: &ReleaseId| {
            fence.and_then(|fence| fence.release(id)).is_none_or(|state| state.subject.is_some())
        };
        self.met.0.retain(|id, _| !is_stored(id));
    }

    /// Whom that release met first in this fence, stored or not.
    pub(super) fn whom_it_met(&self, state: &ReleaseState) -> Option<String> {
        let of = self.record().generation;
        let noted = || self.met.0.get(&state.id).filter(|(known, _)| *known == of);
        state.subject.clone().or_else(|| noted().map(|(_, whom)| whom.clone()))
    }

    /// What is stored anyhow, after whom its releases met.
    pub(super) fn after_met<'e>(&self, event: Event<'e>) -> Event<'e> {
        let rides = matches!(
            event,
            Event::OffIntent { .. }
                | Event::Confirmed(_)
                | Event::GiveUp { .. }
                | Event::ReleaseIntent { .. }
                | Event::After { .. }
        );
        let states = self.record().fence.iter().flat_map(|fence| &fence.releases);
        let mut found: Vec<Event<'e>> = states
            .filter(|state| rides && state.subject.is_none())
            .filter_map(|state| {
                let subject = self.whom_it_met(state)?;
                Some(Event::ReleaseSubject { release: state.id.clone(), subject })
            })
            .collect();
        if found.is_empty() {
            return event;
        }
        match event {
            Event::After { found: more, event } => {
                found.extend(more);
                Event::After { found, event }
            }
            event => Event::After { found, event: Box::new(event) },
        }
    }
}

/// Tries until it is told, and hands on who was met.
async fn announced(
    subject: Subject,
    releaser: Arc<dyn Releaser>,
    paces: &Paces,
    leadership: &Leadership,
    told: &Own,
) {
    let (mut time, mut pause) = (paces.first_announcement, paces.announcement.first);
    // A gateway that stood still would announce a fence that another one has ended (S6).
    while leadership.check().is_ok() {
        let asked = releaser.announce(&subject, Instant::now() + time);
        let became = match tokio::time::timeout(time, asked).await {
            Ok(answer) => answer.map_err(ReleaseError::into_words),
            Err(_) => Err("no answer".to_owned()),
        };
        let is_done = became.is_ok();
        if let Err(why) = &became {
            tracing::warn!(release = %subject.release, why, "that it is being fenced is not told there yet");
        }
        told.send(Command::Announced(subject.generation, subject.release.clone(), became));
        if is_done {
            return;
        }
        tokio::time::sleep(pause).await;
        time = releaser.attempt_time();
        pause = paces.announcement.after(pause);
    }
}
