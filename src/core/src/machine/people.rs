//! The exits for people (S12, S16): named, with role and reason.
//!
//! # Invariants
//!
//! - A person's word that the node is off is refused while a host device says On (S12). Shown by
//!   `an_attested_node_is_released_and_a_host_that_says_on_forbids_it`.
//! - A stand-down is refused while an attempted release is neither complete nor abandoned (S16). Shown by
//!   `a_release_that_was_begun_before_a_breach_is_not_stood_down`.
//! - Whoever gives up an attempt that nothing bounds gives a word for its end. What stands goes first.
//!   Shown by `a_word_ends_the_attempt_that_nothing_bounds_and_what_stands_goes_first`.

use std::collections::BTreeSet;

use super::draft::Draft;
use super::fence::expect_ground;
use super::refused::Refused;
use super::release::settle_released;
use super::restored::{self, expect_no_hold};
use crate::device::{DeviceClass, Grade};
use crate::event::Person;
use crate::ground::Look;
use crate::ids::{DeviceId, EffectId, ReleaseId};
use crate::ledger::{EffectKind, describe};
use crate::outcome::{Outcome, Reason};
use crate::power::Power;
use crate::record::{Attestation, Bringing, Evidence, Fence, Phase, ReleaseStage};

pub(super) fn attest(draft: &mut Draft, person: Person, looks: &[Look]) -> Result<(), Refused> {
    draft.expect_phase(
        "attesting",
        &["fencing", "needs_operator"],
        "a person vouches for a node that is being fenced",
    )?;
    let (generation, at) = (draft.record.generation, draft.at);
    expect_ground(draft)?;
    if !draft.fence_is_current() {
        return Err(Refused::ForeignProof("the fence was ended by an unfence"));
    }
    // Whoever vouches knows the node as it is now, not what an on of ours that is still under way makes of it.
    draft.bars(EffectKind::bars_proof)?;
    let fence = draft.fence()?;
    expect_no_host_on(fence, looks)?;
    let Person { name, reason } = person;
    let words = format!("attested by {name}: {reason}");
    fence.evidence = Some(Evidence {
        grade: Grade::Attested,
        lowered_by: vec![words.clone()],
        level: 0,
        off_since: at,
        confirmed_at: at,
        devices: Vec::new(),
    });
    fence.attestation = Some(Attestation { by: name, reason, at, generation });
    fence.outcome = Some(Outcome::Fenced { released: false });
    fence.releases.iter_mut().for_each(|release| release.since = None);
    draft.record.phase = Phase::Fenced;
    // Before all else may be over: the last release drops what holds it for its callers alone.
    restored::hold_unread(draft);
    draft.moment(words);
    settle_released(draft);
    Ok(())
}

/// A person's word stands against no host device that was asked just now and says On.
fn expect_no_host_on(fence: &Fence, looks: &[Look]) -> Result<(), Refused> {
    for host in fence.topology.hosts() {
        let mut of_host = looks.iter().filter(|look| look.device == host.id).peekable();
        if of_host.peek().is_none() {
            return Err(Refused::ForeignProof("a host device was not asked"));
        }
        let mut readings = of_host.filter_map(|look| look.reading.as_ref());
        if let Some(on) = readings.find(|reading| reading.power == Power::On) {
            return Err(Refused::SaysOn { device: host.id.to_string(), said: on.said.clone() });
        }
    }
    Ok(())
}

pub(super) fn retry_seen_off(draft: &mut Draft, person: &Person, looks: &[Look]) -> Result<(), Refused> {
    draft.expect_phase("a retry", &["needs_operator"], "nothing waits for a person's look at the machine")?;
    if !draft.fence_is_current() {
        return Err(Refused::ForeignProof("the fence was ended by an unfence"));
    }
    let fence = draft.fence()?;
    if fence.lost.is_empty() {
        return Err(Refused::Phase {
            wanted: "a retry by whoever saw the machine off",
            phase: "needs_operator",
            hint: "no BMC restarted within this fence: retry without that word",
        });
    }
    expect_no_host_on(fence, looks)?;
    fence.seen_off = fence.lost.clone();
    let devices: Vec<String> = fence.lost.iter().map(ToString::to_string).collect();
    draft.moment(format!(
        "{} looked at the machine and saw it off, after {} restarted",
        person.name,
        devices.join(", ")
    ));
    retry(draft, person)
}

/// The same by the gateway itself, which is no person: it gives no word for the end of an effect, nor for who a machine is.
pub(super) fn try_again(draft: &mut Draft, why: &str) -> Result<(), Refused> {
    let phase = &draft.record.phase;
    if !matches!(phase, Phase::NeedsOperator(Reason::LevelsSpent | Reason::Deadline))
        || !draft.fence_is_current()
    {
        return Err(Refused::Phase {
            wanted: "to try it again",
            phase: phase.label(),
            hint: "only a fence whose levels or whose time are spent is tried again without a person",
        });
    }
    let by_person = draft.fence()?.by_person;
    retry(draft, &Person { name: "picket".to_owned(), reason: why.to_owned() })?;
    draft.fence()?.by_person = by_person;
    Ok(())
}

pub(super) fn retry(draft: &mut Draft, person: &Person) -> Result<(), Refused> {
    draft.expect_phase("a retry", &["needs_operator", "power_on_failed"], "nothing waits for a person")?;
    if draft.record.phase == Phase::NeedsOperator(Reason::Restored) {
        return Err(Refused::Phase {
            wanted: "a retry",
            phase: "needs_operator",
            hint: "nothing was tried since the restore: fence the node, or stand down if it was brought back",
        });
    }
    if draft.record.phase == Phase::NeedsOperator(Reason::UnboundedEffect) {
        end_unbounded(draft, person);
    }
    let ours = draft.fence_is_current();
    if draft.record.phase == Phase::NeedsOperator(Reason::Replaced) {
        // A person looked: whoever is found by that name now is who is meant.
        draft.fence()?.releases.iter_mut().for_each(|release| release.subject = None);
    }
    if draft.record.phase == Phase::PowerOnFailed || !ours {
        // The same generation: what was meant is unchanged.
        draft.record.phase = Phase::Unfencing;
    } else {
        let at = draft.at;
        let fence = draft.fence()?;
        fence.releases.iter_mut().for_each(|release| (release.passed_on, release.since) = (None, None));
        fence.begin_from_zero(at);
        fence.attestation = None;
        // Whoever may retry decides what a fence does next, and is a person (K9).
        fence.by_person = true;
        draft.record.phase = Phase::Fencing;
    }
    draft.moment(format!("retry, asked by {}: {}", person.name, person.reason));
    Ok(())
}

pub(super) fn ask_for_less(draft: &mut Draft, grade: Grade, person: &Person) -> Result<(), Refused> {
    let phase = draft.record.phase.label();
    let waits = draft.record.phase == Phase::NeedsOperator(Reason::GradeTooLow);
    let fence = draft.fence()?;
    if !waits || grade >= fence.min_grade {
        return Err(Refused::Phase {
            wanted: "a lower grade",
            phase,
            hint: "only a fence that waits for a better grade than it can prove goes on for a lower one",
        });
    }
    fence.min_grade = grade;
    draft.moment(format!("{} is content with the grade {grade:?}", person.name));
    retry(draft, person)
}

/// What nothing bounds ends by a person's word alone: whoever retries says that no device does it any more. A release is
/// given up by its name instead.
fn end_unbounded(draft: &mut Draft, person: &Person) {
    let ended: Vec<(EffectId, String)> = draft
        .record
        .ledger
        .open()
        .iter()
        .filter(|open| open.life.is_none() && open.kind.device().is_some())
        .map(|open| (open.id, describe(&open.kind)))
        .collect();
    for (effect, words) in ended {
        draft.record.ledger.close(effect);
        draft.moment(format!("closed {words}: {} says that it has ended", person.name));
    }
}

pub(super) fn abandon(
    draft: &mut Draft,
    id: &ReleaseId,
    person: &Person,
    orphan: bool,
) -> Result<(), Refused> {
    // Of an orphan nothing comes to its end by itself, and it is retired only once a person answers for each of its releases.
    let phases: &[&str] = match orphan {
        // After a stand-down that failed, what never began is in the way of a retirement.
        false => &["fenced", "needs_operator", "power_on_failed"],
        true => &["fencing", "fenced", "released", "unfencing", "needs_operator", "power_on_failed"],
    };
    draft.expect_phase("abandoning a release", phases, "no release is under way")?;
    // An attempt that nothing bounds stays open for ever; giving the release up by name is a person's word for its end.
    let ended: Vec<EffectId> = draft
        .record
        .ledger
        .open()
        .iter()
        .filter(|open| {
            // What an orphan's release set up stands until the settings are back, or the node is retired (K3).
            let is_its = matches!(&open.kind, EffectKind::Release(of) if of.belongs_to(id));
            open.life.is_none() && is_its
        })
        .map(|open| open.id)
        .collect();
    if !orphan && draft.record.ledger.standing().any(|(_, of)| of.belongs_to(id)) {
        return end_attempts(draft, id, person, &ended);
    }
    let unbounded = !ended.is_empty();
    let fence = draft.fence()?;
    let known: Vec<String> = fence.releases.iter().map(|release| release.id.to_string()).collect();
    let Some(release) = fence.releases.iter_mut().find(|release| release.id == *id) else {
        return Err(Refused::NoSuch { what: "release", name: id.to_string(), known });
    };
    if release.stage == ReleaseStage::Complete && !unbounded {
        return Err(Refused::Phase {
            wanted: "abandoning",
            phase: "complete",
            hint: "this release is complete",
        });
    }
    if release.stage != ReleaseStage::Complete {
        release.stage = ReleaseStage::Abandoned;
    }
    let detail = format!("abandoned by {}: {}", person.name, person.reason);
    release.detail.clone_from(&detail);
    let parts = fence.releases.iter_mut().filter(|one| one.id.belongs_to(id) && !one.stage.is_over());
    for part in parts {
        part.stage = ReleaseStage::Abandoned;
        part.detail.clone_from(&detail);
    }
    draft.moment(format!("release {id} {detail}"));
    for effect in ended {
        draft.record.ledger.close(effect);
    }
    // Only what was confirmed before the deadline passed may go on from here: the node is kept off and watched.
    let waits = [Reason::ReleaseDeadline, Reason::Replaced].map(Phase::NeedsOperator);
    let waited = waits.contains(&draft.record.phase);
    if waited && draft.fence_is_current() {
        let fence = draft.fence()?;
        if fence.evidence.is_some() && fence.waits_for_nothing() {
            draft.record.phase = Phase::Fenced;
        }
    }
    settle_released(draft);
    Ok(())
}

/// What stands is taken away before its release is given up. Until an attempt that nothing bounds has ended it may be set up
/// again, and is never seen to be gone: that the attempt has ended is all that the word is taken for.
fn end_attempts(
    draft: &mut Draft,
    id: &ReleaseId,
    person: &Person,
    ended: &[EffectId],
) -> Result<(), Refused> {
    if ended.is_empty() {
        let fence = draft.fence()?;
        if fence.release(id).is_some_and(|release| release.asked_by.is_some()) {
            return Err(Refused::Phase {
                wanted: "abandoning",
                phase: "asked",
                hint: "what this release asked for was not answered, and may happen late: it is taken back first, by itself as soon as \
                       its far side answers; then abandon it again. Where that is gone for good: take the node out of the settings, \
                       reload, abandon it, and retire the node",
            });
        }
        return Err(Refused::Phase {
            wanted: "abandoning",
            phase: "standing",
            hint: "what this release set up lets volumes go for as long as it stands: it is taken away first, by hand where Picket \
                   does not reach it, and seen to be gone by the release of that name in the settings",
        });
    }
    let detail = format!(
        "its attempts have ended, says {}: {}; what it set up is taken away before it is given up",
        person.name, person.reason
    );
    draft.moment(format!("release {id}: {detail}"));
    if let Some(release) = draft.fence()?.releases.iter_mut().find(|release| release.id == *id) {
        release.detail = detail;
    }
    for effect in ended {
        draft.record.ledger.close(*effect);
    }
    Ok(())
}

pub(super) fn stand_down(draft: &mut Draft, person: &Person) -> Result<(), Refused> {
    draft.expect_phase(
        "standing down",
        &["needs_operator", "power_on_failed"],
        "a fence, or an unfence, that goes on by itself needs no person",
    )?;
    expect_no_hold(&draft.record)?;
    let failed = draft.record.phase == Phase::PowerOnFailed;
    if failed {
        expect_let_on(draft)?;
    }
    let fence = draft.fence()?;
    let begun: Vec<String> = fence
        .releases
        .iter()
        .filter(|release| !release.stage.is_over() && (release.attempts > 0 || release.unfinished))
        .map(|release| release.id.to_string())
        .collect();
    if !begun.is_empty() {
        return Err(Refused::NotReleased(begun));
    }
    fence.outcome = Some(Outcome::StoodDown);
    draft.record.holds.clear();
    draft.begin_unfencing(Bringing::StandDown);
    draft.moment(format!("stood down by {}: {}", person.name, person.reason));
    if failed {
        give_up_supplies(draft, person)?;
    }
    Ok(())
}

/// The volumes of a node that was not let on can go to other nodes for as long as a foreign taint stands (K7). A stand-down would
/// end the watch that switches such a node off.
fn expect_let_on(draft: &mut Draft) -> Result<(), Refused> {
    let (phase, bringing) = (draft.record.phase.label(), draft.record.bringing);
    let barred = draft.fence()?.releases.iter().any(|release| release.barred);
    if bringing == Bringing::PowerOn && barred {
        return Err(Refused::Phase {
            wanted: "standing down",
            phase,
            hint: "what somebody else set up lets its volumes go while the node runs: take that away, then retry",
        });
    }
    Ok(())
}

/// The person saw that these supplies do not come on. Another try would end where the first one did.
fn give_up_supplies(draft: &mut Draft, person: &Person) -> Result<(), Refused> {
    let fence = draft.fence()?;
    let is_supply =
        |id: &DeviceId| fence.topology.device(id).is_some_and(|spec| spec.class == DeviceClass::Supply);
    let (supplies, others) = fence.switched_off.iter().cloned().partition::<BTreeSet<_>, _>(is_supply);
    fence.switched_off = others;
    if !supplies.is_empty() {
        let names: Vec<String> = supplies.iter().map(ToString::to_string).collect();
        let names = names.join(", ");
        draft.moment(format!("not brought back, given up by {}: {names}; look at each by hand", person.name));
    }
    Ok(())
}
