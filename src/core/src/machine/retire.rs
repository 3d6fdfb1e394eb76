//! The hardware is gone for good (S16). What is kept of the node ends. What is open in the ledger does not:
//! it is waited out, also by whatever machine the settings bring under that name.
//!
//! # Invariants
//!
//! - A node is retired only once its releases are complete or abandoned by name. Nothing but other settings
//!   makes it a node again. Shown by `what_is_retired_stays_so`.

use super::draft::{Draft, bounded};
use super::refused::Refused;
use crate::event::Person;
use crate::ids::EffectId;
use crate::ledger::describe;
use crate::outcome::Outcome;
use crate::record::{Bringing, Phase, ReleaseStage, Retirement};

pub(super) fn retire(
    draft: &mut Draft,
    person: Person,
    settings: Option<String>,
    beside: Vec<String>,
) -> Result<(), Refused> {
    let anywhere: &[&str] = match settings {
        Some(_) => &["fenced", "released", "needs_operator", "power_on_failed"],
        // Nothing is sent to what the settings do not have: what was under way there never comes to its end.
        None => &["fencing", "fenced", "released", "unfencing", "needs_operator", "power_on_failed"],
    };
    draft.expect_phase(
        "retiring",
        anywhere,
        "what is not fenced is taken out of the settings; a fence, or an unfence, under way comes to its end first",
    )?;
    if settings.is_none() {
        give_up_unbegun(draft, &person)?;
    }
    // Whoever waits for its volumes is told the truth: they were let go, or somebody answers for them by name.
    let open = draft.fence()?.releases.iter().filter(|release| !release.stage.is_over());
    let open: Vec<String> = open.map(|release| release.id.to_string()).collect();
    if !open.is_empty() {
        return Err(Refused::NotReleased(open));
    }
    end_unbounded(draft, &person, settings.is_none())?;
    let at = draft.at;
    let fence = draft.fence()?;
    fence.outcome = Some(Outcome::Retired);
    let met = fence.releases.iter().filter_map(|one| Some((one.id.clone(), one.subject.clone()?))).collect();
    let left: Vec<String> = fence.switched_off.iter().map(ToString::to_string).collect();
    let left =
        if left.is_empty() { String::new() } else { format!("; left switched off: {}", left.join(", ")) };
    draft.next_generation();
    let record = &mut draft.record;
    record.phase = Phase::Retired;
    record.bringing = Bringing::PowerOn;
    record.breaches = 0;
    record.holds.clear();
    record.refused.clear();
    // Another machine under this name has other boards and other wiring.
    record.learned.clear();
    record.identity_proofs.clear();
    record.wired.clear();
    record.restored = None;
    draft.moment(format!("retired by {}: {}{left}", person.name, person.reason));
    beside.into_iter().for_each(|left| draft.moment(left));
    draft.end_fence();
    let Person { name: by, reason } = person;
    draft.record.retired = Some(Retirement { by, reason, at, settings, met });
    Ok(())
}

/// Releases that never began, and never will: whoever retires the node answers for their volumes, by name.
fn give_up_unbegun(draft: &mut Draft, person: &Person) -> Result<(), Refused> {
    let mut names = Vec::new();
    for release in &mut draft.fence()?.releases {
        if !release.stage.is_over() && release.attempts == 0 && !release.unfinished {
            release.stage = ReleaseStage::Abandoned;
            release.detail = bounded(format!("abandoned by {}: {}", person.name, person.reason));
            names.push(release.id.to_string());
        }
    }
    for name in names {
        draft.moment(format!("release {name} abandoned by {}: the hardware is gone", person.name));
    }
    Ok(())
}

/// What nothing bounds ends by a person's word alone: no device is there any more that could do it, and of an orphan nobody takes away
/// what its releases set up. A release, or a receipt, is somebody else's.
fn end_unbounded(draft: &mut Draft, person: &Person, orphan: bool) -> Result<(), Refused> {
    let unbounded = draft.record.ledger.open().iter().filter(|open| open.life.is_none());
    let (of_devices, others): (Vec<_>, Vec<_>) =
        unbounded.partition(|open| open.kind.device().is_some() || orphan && open.stands().is_some());
    if !others.is_empty() {
        return Err(Refused::OpenEffects(others.iter().map(|open| describe(&open.kind)).collect()));
    }
    let ended: Vec<(EffectId, String)> =
        of_devices.iter().map(|open| (open.id, describe(&open.kind))).collect();
    for (effect, words) in ended {
        draft.record.ledger.close(effect);
        draft.moment(format!("closed {words}: {} says that the hardware is gone", person.name));
    }
    Ok(())
}

pub(super) fn resettled(draft: &mut Draft, settings: Option<String>) -> Result<(), Refused> {
    let same = Refused::Phase {
        wanted: "a new machine",
        phase: draft.record.phase.label(),
        hint: "the settings have the node as they had it when it was retired",
    };
    draft.expect_phase("a new machine", &["retired"], "nobody said that the hardware is gone")?;
    let Some(retired) = draft.record.retired.as_mut().filter(|retired| retired.settings != settings) else {
        return Err(same);
    };
    match settings {
        None => retired.settings = None,
        Some(_) => {
            draft.next_generation();
            draft.record.retired = None;
            draft.record.phase = Phase::Normal;
        }
    }
    Ok(())
}
