//! What releases of earlier fences left on a node that is back. An example is a taint that keeps new pods
//! away until then.
//!
//! # Invariants
//!
//! - It is taken away by a task of its own while the node is in phase Normal, and asked for once at the
//!   start. Shown by `what_is_left_there_while_the_process_runs_is_swept_within_ten_minutes`.
//! - A retirement keeps the machine that its fence met, so that this task finds it. Shown by
//!   `what_is_left_of_a_retired_node_is_taken_from_whoever_has_its_name_since`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use picket_core::election::Leadership;
use picket_core::ids::{Generation, NodeId, ReleaseId};
use picket_core::record::Phase;
use picket_core::store::{FenceQuery, Store, StoreError};
use picket_release::{Left, Quarantine, Whose};
use tokio::time::Instant;

use super::Telling;
use crate::node::command::Command;
use crate::node::{NodeTask, Turns};
use crate::office::write_note;
use crate::paces::{Backoff, Paces};

impl NodeTask {
    /// Begins where the node is in phase Normal, and ends wherever it is not.
    pub(super) fn clean_up(&mut self) {
        if !matches!(self.record().phase, Phase::Normal | Phase::Retired) || self.orphan.is_some() {
            self.tellings.keep(is_cleanup, Vec::new());
            self.forget_not_back();
            return;
        }
        let clusters = self.plan.releases.iter().filter_map(|plan| Some((&plan.id, plan.quarantine()?)));
        let mut all: Vec<(ReleaseId, Left, Asked)> =
            clusters.map(|(id, cluster)| (id.clone(), self.leavings_of(id), Asked::new(cluster))).collect();
        let gone = self.record().phase == Phase::Retired;
        let left: Vec<Left> = all.iter().map(|(_, left, _)| left.clone()).collect();
        let wanted = if all.is_empty() { Vec::new() } else { vec![Telling::CleanUp(left)] };
        let Some(telling) = self.tellings.keep(is_cleanup, wanted).pop() else { return };
        let (turns, own) = (self.turns.clone(), self.mailbox.own());
        let recalls = |(_, left, asked): &(_, Left, Asked)| left.off && asked.cluster.recalls();
        let mut recalls = !gone && self.is_back_lately() && all.iter().any(recalls);
        let (store, node, generation) =
            (self.parts.store.clone(), self.record().node.clone(), self.record().generation);
        let (leadership, paces) = (self.hands.leadership().clone(), self.plan.paces.clone());
        let task = async move {
            // What was sent before a fence ended may come until then.
            let mut pause = all.iter().filter_map(|(.., asked)| asked.cluster.max_in_flight()).max();
            let mut recalled = false;
            loop {
                // A store that is away is asked in the next round.
                if recalls && let Ok(met) = met_last(&*store, &node, generation).await {
                    recalls = false;
                    recalled = !met.is_empty();
                    all.iter_mut().for_each(|(id, left, _)| left.met_last = met.get(id).cloned());
                }
                // Each for itself: what one waits for, another does not.
                let told = |release: &ReleaseId| {
                    let (own, release) = (&own, release.clone());
                    move |is| own.send(Command::NotBack(release.clone(), is))
                };
                let done = join_all(all.iter().map(|(release, left, asked)| {
                    tidied(left, asked, &paces, &leadership, &turns, told(release))
                }))
                .await;
                let is_undone =
                    |((.., asked), done): (&(_, _, Asked), &bool)| *done || !asked.cluster.recalls();
                if recalled && all.iter().zip(&done).all(is_undone) {
                    recalled = note_undone(&*store, &leadership, &node, generation).await.is_err();
                }
                tokio::time::sleep(pause.take().unwrap_or(paces.cleanup_round)).await;
            }
        };
        self.forget_not_back();
        self.tellings.begin(telling, task);
    }

    /// It is told wherever the gateway is looked at. What a task said that has ended since is nothing any more.
    pub(in crate::node) fn note_not_back(&mut self, release: ReleaseId, is: bool) {
        if self.record().phase != Phase::Normal || !self.tellings.has(is_cleanup) {
            return;
        }
        let not_back = &mut self.live_mut().not_back;
        let is_news = if is { not_back.insert(release) } else { not_back.remove(&release) };
        if is_news {
            self.publish();
        }
    }

    fn forget_not_back(&mut self) {
        if !self.live.not_back.is_empty() {
            self.live_mut().not_back.clear();
            self.publish();
        }
    }

    fn leavings_of(&self, release: &ReleaseId) -> Left {
        let record = self.record();
        let met = record.retired.as_ref().and_then(|retired| retired.met.get(release).cloned());
        let identities = record.identities(&self.plan.topology);
        let whose = Whose { node: record.node.clone(), identities, met };
        let off = record.off_was_sent;
        let gone = record.phase == Phase::Retired;
        Left { whose, generation: record.generation, gone, off, met_last: None }
    }

    /// The node is back since not long ago: what another process began then may not have come to its end.
    fn is_back_lately(&self) -> bool {
        let age = |since| self.office.now_as_of(since).millis().saturating_sub(since.millis());
        let back_since = self.record().back_since;
        back_since.is_some_and(|since| u128::from(age(since)) < self.plan.paces.cleanup_after.as_millis())
    }
}

fn is_cleanup(telling: &Telling) -> bool {
    matches!(telling, Telling::CleanUp(_))
}

/// Where it stands among the notes of the fleet after which of a node's fences everything was undone that goes by whom it met.
const UNDONE: &str = "undone/";

/// Whom the far sides had for the node in its last fence, as they were met first; nobody where everything was undone after it.
async fn met_last(
    store: &dyn Store,
    node: &NodeId,
    generation: Generation,
) -> Result<BTreeMap<ReleaseId, String>, StoreError> {
    let undone = store.note(&format!("{UNDONE}{node}")).await?;
    if undone.is_some_and(|note| note.text == generation.0.to_string()) {
        return Ok(BTreeMap::new());
    }
    let last = store.fences(FenceQuery { node: Some(node.clone()), before: None, limit: 1 }).await?;
    let releases = last.into_iter().flat_map(|fence| fence.releases);
    Ok(releases.filter_map(|one| Some((one.id, one.subject?))).collect())
}

/// Whoever leads next does not undo it again: what stands at the far side by then was set up by somebody since.
async fn note_undone(
    store: &dyn Store,
    leadership: &Leadership,
    node: &NodeId,
    generation: Generation,
) -> Result<(), StoreError> {
    write_note(store, leadership, &format!("{UNDONE}{node}"), Some(generation.0.to_string())).await
}

/// Where it is asked.
struct Asked {
    cluster: Arc<dyn Quarantine>,
    /// It did not answer last time.
    is_silent: AtomicBool,
}

impl Asked {
    fn new(cluster: Arc<dyn Quarantine>) -> Self {
        Self { cluster, is_silent: AtomicBool::new(false) }
    }
}

/// What is to be taken away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// What stands at the far side itself.
    Rest,
    /// What keeps others away from the machine, after that.
    Spared,
}

/// True if nothing is left.
async fn tidied(
    left: &Left,
    asked: &Asked,
    paces: &Paces,
    leadership: &Leadership,
    turns: &Turns,
    not_back: impl Fn(bool),
) -> bool {
    let is_tidy = done(What::Rest, left, asked, paces, leadership, turns, not_back).await;
    // Whoever has the machines says nothing of whether it is back.
    is_tidy & done(What::Spared, left, asked, paces, leadership, turns, |_| ()).await
}

/// Asks until nothing is left to do (true), or until the next round may do it.
async fn done(
    what: What,
    left: &Left,
    asked: &Asked,
    paces: &Paces,
    leadership: &Leadership,
    turns: &Turns,
    not_back: impl Fn(bool),
) -> bool {
    let began = Instant::now();
    let (mut pace, mut told, mut is_late) = (paces.cleanup.first, false, false);
    loop {
        // Thousands of nodes begin at once. Whoever has the machines may be away for long: nobody's turn is spent on that.
        let turn = match what {
            What::Rest if asked.is_silent.load(Ordering::Relaxed) => turns.silent.acquire().await.ok(),
            What::Rest => turns.cleanup.acquire().await.ok(),
            What::Spared => None,
        };
        // A gateway that stood still would take away what the fence of another one has set up (S6).
        if leadership.check().is_err() {
            return false;
        }
        let (cluster, time) = (&asked.cluster, asked.cluster.attempt_time());
        let said = match what {
            What::Rest => tokio::time::timeout(time, cluster.clean_up(left, Instant::now() + time)).await,
            What::Spared => tokio::time::timeout(time, cluster.readmit(left, Instant::now() + time)).await,
        };
        drop(turn);
        // Who does not answer says nothing of the machine.
        let waits = matches!(said, Ok(Ok(Some(_))));
        if what == What::Rest {
            asked.is_silent.store(!matches!(said, Ok(Ok(_))), Ordering::Relaxed);
        }
        let why = match said {
            Ok(Ok(None)) => {
                if is_late {
                    not_back(false);
                }
                return true;
            }
            Ok(Ok(Some(why))) => {
                pace = paces.cleanup.first;
                why
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        let waits_long = began.elapsed() > paces.cleanup_patience;
        match waits_long && !told {
            true => {
                tracing::error!(node = %left.whose.node, why, "what a release left stands still: it waits for this for a quarter of an hour")
            }
            false => {
                tracing::debug!(node = %left.whose.node, why, "what a release left is not taken away yet")
            }
        }
        told |= waits_long;
        if told && waits && !is_late {
            is_late = true;
            not_back(true);
        }
        // What is left at the far side itself is looked for again, whatever becomes of this.
        if told && what == What::Spared {
            return false;
        }
        tokio::time::sleep(pace).await;
        let Backoff { first, longest } = paces.cleanup;
        pace = paces.cleanup.after(pace).min(if told { longest } else { first * 5 });
    }
}
