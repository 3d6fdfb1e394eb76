//! Releases that are made of parts, one a volume (`volumes/VOLUME`). What was found attached becomes a
//! release of its own, beside its like.
//!
//! Which volumes go is decided in `release/volumes`. How they go is `Volumes` in `drivers/api`.
//!
//! # Invariants
//!
//! - Parts stand before their release, which is over only with all of them (S7). Shown by
//!   `a_release_is_over_only_with_all_of_its_parts`.
//! - The release is complete only once nothing that is to go was found attached after all parts were over.
//!   Shown by `nothing_found_completes_only_what_was_asked_after_the_confirmation_with_all_parts_over`.
//! - A part that a person gave up is not begun again by what is found. Shown by
//!   `one_part_is_given_up_by_its_name_and_is_not_begun_again`.
//! - An attempt whose answer did not come stands in the ledger for all of its life (S5). Shown by
//!   `the_longer_life_of_an_attempt_stands_in_the_ledger`,
//!   `an_attempt_of_a_part_that_was_not_seen_to_end_is_remembered_over_a_breach`.

use super::draft::Draft;
use super::fence::expect_ground;
use super::refused::Refused;
use super::release::{find, settle_released, stands_of};
use crate::event::{MaxLife, Survey};
use crate::ids::ReleaseId;
use crate::record::{Fence, Part, Phase, ReleaseStage, ReleaseState};

/// So many are named in a moment; the record has all.
const NAMED: usize = 16;

pub(super) fn surveyed(
    draft: &mut Draft,
    id: &ReleaseId,
    found: Result<Survey, String>,
) -> Result<(), Refused> {
    draft.expect_phase("a survey", &["fencing", "fenced"], "what is attached is asked for in a fence")?;
    expect_ground(draft)?;
    let whole = find(draft, id)?;
    let refused = |phase, hint| Err(Refused::Phase { wanted: "a survey", phase, hint });
    if whole.id.is_part() {
        return refused("a part", "a part has none of its own");
    }
    if whole.stage.is_over() {
        return refused("over", "this release is over");
    }
    match found {
        Ok(survey) => take(draft, id, survey),
        Err(why) => {
            whole.detail.clone_from(&why);
            tell(draft, format!("what {id} would let go cannot be told: {why}"))
        }
    }
}

fn take(draft: &mut Draft, id: &ReleaseId, survey: Survey) -> Result<(), Refused> {
    let fence = draft.fence()?;
    // What was to go, and stays by now (other settings, another tag), is none of it, unless it was told to go already.
    let kept: Vec<ReleaseId> = survey.stays.iter().map(|(part, _)| id.part(&part.volume)).collect();
    let was_told = |one: &ReleaseState| one.attempts > 0 || one.unfinished || one.stage.is_over();
    fence.releases.retain(|one| was_told(one) || !kept.contains(&one.id));
    let were_over = fence.parts(id).all(|part| part.stage.is_over());
    let mut names = Vec::new();
    for found in survey.parts {
        let name = found.to_string();
        if is_to_go(fence, id, found, survey.max_in_flight)? {
            names.push(name);
        }
    }
    let goes = named(&names, "nothing");
    let stays = match survey.stays.is_empty() {
        true => String::new(),
        false => {
            let stays: Vec<String> =
                survey.stays.iter().map(|(part, why)| format!("{part} ({why})")).collect();
            format!("; stays: {}", named(&stays, "nothing"))
        }
    };
    let when = if survey.on_ground { "" } else { " before the off" };
    let detail = format!("attached{when}, and to be let go: {goes}{stays}");
    find(draft, id)?.detail.clone_from(&detail);
    tell(draft, format!("{id}: {detail}"))?;
    let is_free = were_over && names.is_empty() && !stands_of(&draft.record, id);
    if survey.on_ground && draft.record.phase == Phase::Fenced && is_free {
        find(draft, id)?.stage = ReleaseStage::Complete;
        tell(draft, format!("release {id} complete: nothing that is to go is attached"))?;
        settle_released(draft);
    }
    Ok(())
}

/// Enters what was found. False if a person gave it up.
fn is_to_go(fence: &mut Fence, whole: &ReleaseId, found: Part, life: MaxLife) -> Result<bool, Refused> {
    let id = whole.part(&found.volume);
    let parts = fence.parts(whole).count();
    let Some(known) = fence.releases.iter_mut().find(|release| release.id == id) else {
        if parts >= Fence::PARTS {
            return Err(Refused::TooManyParts(whole.to_string(), parts + 1, Fence::PARTS));
        }
        fence.add_release(ReleaseState { part: Some(found), ..ReleaseState::pending(id, life) });
        return Ok(true);
    };
    if known.stage == ReleaseStage::Abandoned {
        return Ok(false);
    }
    let moved = known.part.as_ref().is_none_or(|part| part.device != found.device);
    // Seen to be gone, and there again; or what was accepted was of another place.
    if known.stage == ReleaseStage::Complete || moved && known.stage != ReleaseStage::Requested {
        known.stage = ReleaseStage::Pending;
        known.detail = "it is attached again".to_owned();
    }
    known.part = Some(found);
    Ok(true)
}

/// A moment, unless it was the last one already: what is asked again and again says the same.
fn tell(draft: &mut Draft, what: String) -> Result<(), Refused> {
    if draft.fence()?.moments.last().is_none_or(|last| last.what != what) {
        draft.moment(what);
    }
    Ok(())
}

fn named(names: &[String], none: &str) -> String {
    match names.len().checked_sub(NAMED) {
        _ if names.is_empty() => none.to_owned(),
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..NAMED].join(", ")),
    }
}
