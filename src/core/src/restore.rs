//! A store that came out of a backup (S21): what its records become, and which numbers no number of the old
//! life reaches.
//!
//! # Invariants
//!
//! - Nothing of the old life proves, releases or switches anything on. A restored record has no evidence,
//!   no person's word and no receipt that stands, and its fence has [`Cause::Restored`]. Shown by
//!   `old_proofs_and_old_terms_are_void`, `what_is_restored_stands_on_nothing`.
//! - What was open stays open and is waited out. Shown by
//!   `a_fence_at_once_waits_out_what_the_old_life_may_have_sent`.
//! - Nothing is switched off on a backup's word alone: what the backup does not know may have happened
//!   since. Shown by `on_though_the_backup_says_fenced_it_waits_for_a_person_and_is_not_switched_off`.
//! - Terms and generations are raised beyond any of the old life. Shown by
//!   `terms_and_generations_are_raised_beyond_any_of_the_old_life`.

use std::collections::BTreeSet;

use crate::device::DeviceClass;
use crate::ground::Look;
use crate::ids::{FenceId, Generation, Incarnation, Term};
use crate::outcome::{Outcome, Reason};
use crate::power::Power;
use crate::record::{
    Bringing, Cause, Fence, Moment, NodeRecord, Phase, ReleaseStage, ReleaseState, Restored,
};
use crate::time::WallTime;
use crate::topology::Topology;

/// The name of the hold under which a node is kept off that a restored store found off. Only an admin drops it.
pub const HOLD: &str = "restored";

/// The name of the note in which a restored store says what it came from, as long as it lives: a [`Restored`] as JSON.
pub const NOTE: &str = "restored";

/// The name of the note in which a restored store says which lives it had before: a JSON list of them, oldest first.
pub const LIVES: &str = "lives";

/// Where the clock is behind what the backup says, the least by which a restore raises every generation and term: a fence, an unfence
/// and a leadership each take one, and 10⁹ are more than thirty years of them.
const RAISE: u64 = 1_000_000_000;

/// A generation or term that no life of the store can have given out before `at`: the milliseconds of that moment. A fence, an unfence
/// and a leadership take longer than one each, in whatever life, also in one that was restored from the same backup, or from a
/// later one. It stays exact in JSON (2⁵³) for longer than there are clocks.
fn raised(number: u64, at: WallTime) -> u64 {
    if at.millis() > number { at.millis() } else { number.saturating_add(RAISE) }
}

/// A term that no leadership of an earlier life can have had.
#[must_use]
pub fn raised_term(term: Term, at: WallTime) -> Term {
    Term(raised(term.0, at))
}

/// A generation that no fence of an earlier life can have had.
#[must_use]
pub fn raised_generation(generation: Generation, at: WallTime) -> Generation {
    Generation(raised(generation.0, at))
}

/// By what a store is known again at a far side where something was noted in its name: two stores never have a life in common, unless one was
/// restored from a backup of the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lives {
    /// The present one: of all gateways that share the store.
    pub now: Incarnation,
    /// Those of the stores from whose backups it came.
    pub before: BTreeSet<Incarnation>,
}

/// A restore: when, and of what.
#[derive(Clone, Copy, Debug)]
pub struct Restore {
    /// When.
    pub at: WallTime,
    /// When the backup was taken.
    pub taken_at: WallTime,
    /// The life of the store from which it was taken.
    pub from: Incarnation,
}

/// The record as the restored store has it, and the fence that ends with the old life, for the history.
///
/// `fence` is the id of the fence that stands for "kept off, says the backup". A node that was not fenced stays so until a
/// device says otherwise. One that is fenced, or on its way there or back, wants a person until it reads Off.
pub fn reborn(mut record: NodeRecord, restore: Restore, fence: FenceId) -> (NodeRecord, Option<Fence>) {
    let Restore { at, taken_at, from } = restore;
    record.generation = raised_generation(record.generation, at);
    record.bringing = Bringing::PowerOn;
    record.breaches = 0;
    let phase = record.phase.label().to_owned();
    record.restored = Some(Restored { at, taken_at, from, phase: phase.clone(), counted: false });
    // Another machine may have had this name since, and have it again: then its first reading decides.
    if record.phase == Phase::Retired {
        return (record, None);
    }
    let Some(mut old) = record.fence.take() else {
        record.phase = Phase::Normal;
        return (record, None);
    };
    let reason = format!("restored from the backup of {taken_at}, in which the node was {phase}");
    let outcome = Some(Outcome::NeedsOperator(Reason::Restored));
    let mut kept = empty(&record, fence, old.topology.clone(), reason, at);
    kept.deadline = old.deadline;
    kept.min_grade = old.min_grade;
    kept.off_sent = old.off_sent;
    kept.switched_off.clone_from(&old.switched_off);
    kept.lost.clone_from(&old.lost);
    kept.silent.clone_from(&old.silent);
    kept.holds.clone_from(&old.holds);
    kept.releases = old.releases.iter().filter(|release| !release.stage.is_over()).map(unfinished).collect();
    kept.outcome = outcome;
    // Whoever kept it off then, and knows nothing of the restore, does so until the hold is dropped by name.
    record.holds.values_mut().for_each(|hold| hold.kept = true);
    record.phase = Phase::NeedsOperator(Reason::Restored);
    let asks = Reason::Restored.asks();
    let what = format!("{asks}restored by an admin; the backup is of {taken_at}, and says {phase}");
    kept.moments.push(Moment { at, phase: record.phase.label().to_owned(), what });
    record.fence = Some(kept);
    old.ended_at = Some(at);
    let what = format!("ended: the store was restored from the backup of {taken_at}");
    old.moments.push(Moment { at, phase, what });
    (record, Some(old))
}

/// What was begun may have been done since, and what was not begun may have been begun.
fn unfinished(release: &ReleaseState) -> ReleaseState {
    ReleaseState {
        stage: ReleaseStage::Pending,
        attempts: 0,
        unfinished: release.unfinished || release.attempts > 0,
        passed_on: None,
        since: None,
        detail: String::new(),
        ..release.clone()
    }
}

/// A fence that stands for a restore, with nothing in it but the node's levels.
pub(crate) fn empty(
    record: &NodeRecord,
    id: FenceId,
    topology: Topology,
    reason: String,
    at: WallTime,
) -> Fence {
    Fence {
        id,
        node: record.node.clone(),
        generation: record.generation,
        cause: Cause::Restored,
        reason,
        by: "picket".to_owned(),
        holder: HOLD.to_owned(),
        by_person: false,
        opened_at: at,
        deadline: std::time::Duration::ZERO,
        confirming_since: None,
        min_grade: crate::device::Grade::Claimed,
        topology,
        level: 0,
        first_level: 0,
        round: 0,
        off_sent: false,
        boot: None,
        gave_way: false,
        switched_off: Default::default(),
        identified: Default::default(),
        seen_off: Default::default(),
        said: Default::default(),
        proved_held: Default::default(),
        was_proven: false,
        lost: Default::default(),
        silent: Default::default(),
        handed_over: Default::default(),
        holds: Default::default(),
        releases: Vec::new(),
        attestation: None,
        evidence: None,
        outcome: None,
        ended_at: None,
        audit: None,
        budget_override: None,
        quorum_override: None,
        interrupted: None,
        moments: Vec::new(),
    }
}

/// Whether the node is on, as these looks at its devices say; `None`: none of them says.
///
/// It proves nothing: an Off keeps a node off, and no more. A host device that says On is believed before any that says Off.
/// Supplies are asked where no host device speaks: all of a level off is off. One that is on, or a parent that is, says something
/// only of a node without host devices.
pub fn seen(topology: &Topology, looks: &[Look]) -> Option<Power> {
    let said = |wanted: Power| {
        move |look: &&Look| look.reading.as_ref().is_some_and(|reading| reading.power == wanted)
    };
    let of = |class: DeviceClass| {
        let is_so = move |look: &&Look| topology.device(&look.device).is_some_and(|spec| spec.class == class);
        looks.iter().filter(is_so)
    };
    if of(DeviceClass::Host).any(|look| said(Power::On)(&look)) {
        return Some(Power::On);
    }
    if of(DeviceClass::Host).chain(of(DeviceClass::Parent)).any(|look| said(Power::Off)(&look)) {
        return Some(Power::Off);
    }
    let reads_off = |level: &&crate::topology::Level| {
        !level.devices.is_empty()
            && level.devices.iter().all(|spec| {
                let off = |look: &Look| look.device == spec.id && said(Power::Off)(&look);
                spec.class == DeviceClass::Supply && looks.iter().any(off)
            })
    };
    if topology.levels().iter().any(|level| reads_off(&level)) {
        return Some(Power::Off);
    }
    let has_hosts = topology.devices().any(|spec| spec.class == DeviceClass::Host);
    (!has_hosts && looks.iter().any(|look| said(Power::On)(&look))).then_some(Power::On)
}

#[cfg(test)]
mod tests;
