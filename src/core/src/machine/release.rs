//! Letting volumes go.
//!
//! A release may set something up that lets volumes go for as long as it stands, such as a taint. That is
//! an effect of its own, `Standing`. It is entered with the first attempt that may set it up, or once it is
//! found. What an attempt only asks for, such as deletions of pods, ends with its answer. Without an answer
//! it stands, and is taken back (`ReleaseState::asked_by`).
//!
//! # Invariants
//!
//! - An attempt is opened only in Fenced, with the evidence stored, and in the order of the settings (S4,
//!   S23). Shown by `a_release_is_opened_only_when_fenced`, `they_have_an_order`.
//! - A release is neither complete nor given up while something of it stands, and no on is opened (K3).
//!   Shown by `what_stands_bars_the_on`, `it_is_given_up_only_once_it_is_gone`.
//! - What stands is not gone while an attempt is open that may set it up. Shown by
//!   `while_an_attempt_is_open_it_is_not_gone`.
//! - Every attempt has an entry and an end of its own. A later success shortens no earlier life (S5). Shown
//!   by `each_attempt_has_an_entry_and_an_end_of_its_own`.
//! - A release's deadline counts from its first turn (`ReleaseState::since`), whoever leads (S16). Shown by
//!   `a_release_runs_out_of_time_also_where_leaders_come_and_go`.
//! - A release that passes on at its deadline is not over. A later one that lets go in parts acts in its
//!   place, once nothing of the first stands (S23). Shown by
//!   `what_is_passed_on_has_its_turn_after_what_acts_in_its_place`,
//!   `what_is_passed_on_opens_the_way_to_nothing_else`, `while_it_stands_nothing_acts_in_its_place`.
//! - The subject of a release is the first machine that was met in the fence, also through a breach (K1).
//!   Shown by `whom_a_release_is_about_is_who_was_met_first`.

use std::time::Duration;

use super::draft::{Draft, bounded};
use super::fence::expect_ground;
use super::refused::Refused;
use crate::event::MaxLife;
use crate::ids::{EffectId, ReleaseId};
use crate::ledger::EffectKind;
use crate::outcome::Outcome;
use crate::record::{NodeRecord, Phase, ReleaseStage, ReleaseState};

/// How long what was set up may be acted on after it was taken away, where the fence that says so has ended.
const LINGERS: Duration = Duration::from_secs(60);

pub(super) fn find<'a>(draft: &'a mut Draft, id: &ReleaseId) -> Result<&'a mut ReleaseState, Refused> {
    let fence = draft.fence()?;
    let known = fence.releases.iter().map(|release| release.id.to_string()).collect();
    fence.releases.iter_mut().find(|release| release.id == *id).ok_or(Refused::NoSuch {
        what: "release",
        name: id.to_string(),
        known,
    })
}

pub(super) fn intent(
    draft: &mut Draft,
    id: &ReleaseId,
    now: Option<MaxLife>,
    lingers: Option<Duration>,
    sets_up: bool,
) -> Result<(), Refused> {
    draft.expect_phase("a release", &["fenced"], "volumes are let go only once the node is proven off")?;
    find(draft, id)?;
    expect_ground(draft)?;
    let fence = draft.fence()?;
    // They have an order: an earlier one that is not over bars the later ones. The parts of one go side by side, and it has no
    // attempts of its own.
    let whole = id.whole();
    let beside = |release: &ReleaseState| id.is_part() && release.id.belongs_to(&whole);
    let before = fence.releases.iter().take_while(|release| release.id != *id);
    let has_passed_on = |release: &ReleaseState| release.passed_on.as_ref() == Some(&whole);
    let barred = before.filter(|release| !beside(release) && !has_passed_on(release));
    // And what acts in its place goes before it.
    let acts = fence.release(id).and_then(|release| fence.release(release.passed_on.as_ref()?));
    let waiting: Vec<String> = barred
        .chain(acts)
        .filter(|release| !release.stage.is_over())
        .map(|release| release.id.to_string())
        .collect();
    if !waiting.is_empty() {
        return Err(Refused::NotReleased(waiting));
    }
    let refused = |phase, hint| Err(Refused::Phase { wanted: "an attempt", phase, hint });
    if !id.is_part() && draft.fence()?.parts(id).next().is_some() {
        return refused("in parts", "each part of this release is attempted for itself");
    }
    let release = find(draft, id)?;
    if release.stage.is_over() {
        return refused("over", "this release is over");
    }
    release.stage = ReleaseStage::Requested;
    release.attempts += 1;
    let stored = release.max_in_flight;
    let (life, attempt) = (now.map_or(stored, |now| Some(stored?.max(now?))), release.attempts);
    // Other settings may have made it one that sets something up.
    release.lingers = release.lingers.max(lingers);
    let may_stand = release.lingers.is_some();
    let effect = draft.enter_new(EffectKind::Release(id.clone()), life);
    if may_stand {
        // What sets nothing up may come late all the same, and is refused only once it was taken back (S8).
        let is_new = enter_standing(draft, id);
        let release = find(draft, id)?;
        let first = if is_new { Some(effect) } else { release.asked_by };
        release.asked_by = first.filter(|_| !sets_up);
    }
    draft.moment(format!("release {id}: attempt {attempt}"));
    Ok(())
}

/// Somebody set it up by hand, or for a record that is no more: it is taken away and waited out like what an attempt set up.
pub(super) fn stands_found(draft: &mut Draft, id: &ReleaseId, lingers: Duration) -> Result<(), Refused> {
    // The fence that stands for a restore does not know each release of the settings: what stands of one is of the old life (S21).
    if !draft.record.is_groundless() || draft.fence()?.release(id).is_some() {
        let release = find(draft, id)?;
        release.lingers = release.lingers.max(Some(lingers));
        release.asked_by = None;
    }
    if enter_standing(draft, id) {
        draft.moment(format!("what release {id} sets up stands there already"));
    }
    Ok(())
}

/// Whose turn it is now has its time from here on.
pub(super) fn note_turn(draft: &mut Draft) {
    let (phase, at) = (&draft.record.phase, draft.at);
    let Some(fence) = draft.record.fence.as_mut().filter(|_| *phase == Phase::Fenced) else { return };
    let Some(next) = fence.next_release().map(|next| next.id.clone()) else { return };
    let whole = next.whole();
    let is_its_turn = |one: &&mut ReleaseState| {
        one.id == next || next.is_part() && one.id.is_part() && one.id.belongs_to(&whole)
    };
    fence.releases.iter_mut().filter(is_its_turn).for_each(|one| one.since = one.since.or(Some(at)));
}

/// From now on it stands, until it was seen to be gone. False: it stood before.
fn enter_standing(draft: &mut Draft, id: &ReleaseId) -> bool {
    let is_new = !stands_of(&draft.record, id);
    if is_new {
        let (generation, term, at) = (draft.record.generation, draft.term, draft.at);
        draft.record.ledger.enter(EffectKind::Standing(id.clone()), generation, term, at, None, None);
    }
    is_new
}

/// Who was met first stays: what is found later by the same name is compared with that.
pub(super) fn subject(draft: &mut Draft, id: &ReleaseId, subject: String) -> Result<(), Refused> {
    let release = find(draft, id)?;
    if release.subject.is_none() {
        draft.moment(format!("release {id}: it is about {subject}"));
        find(draft, id)?.subject = Some(subject);
    }
    Ok(())
}

pub(super) fn barred(draft: &mut Draft, id: &ReleaseId, is: bool) -> Result<(), Refused> {
    find(draft, id)?.barred = is;
    let what = if is { "bars" } else { "does not bar any more" };
    draft.moment(format!("what somebody else set up {what} release {id}, and the way back"));
    Ok(())
}

pub(super) fn progress(
    draft: &mut Draft,
    id: &ReleaseId,
    stage: ReleaseStage,
    detail: String,
    known: Option<EffectId>,
) -> Result<(), Refused> {
    // An answer ends its own attempt and nothing else.
    if let Some(effect) = known {
        draft.close_if(effect, |kind| *kind == EffectKind::Release(id.clone()));
        close_answered(draft, id, effect);
    }
    let release = find(draft, id)?;
    if release.stage.is_over() {
        return Ok(());
    }
    let refused = |hint| Err(Refused::Phase { wanted: "progress of a release", phase: "pending", hint });
    if stage == ReleaseStage::Abandoned {
        return refused("only a person abandons a release, by name");
    }
    if stage == ReleaseStage::Complete && draft.fence()?.parts(id).next().is_some() && !id.is_part() {
        return refused("it is complete once nothing of it is found attached");
    }
    if stage == ReleaseStage::Complete && stands_of(&draft.record, id) {
        return refused("what it set up is taken away first");
    }
    let release = find(draft, id)?;
    // A volume may be let go by somebody else: that it is free is seen, whoever did it.
    let seen = release.part.is_some() && stage == ReleaseStage::Complete;
    if release.attempts == 0 && !seen {
        return refused("nothing was attempted in this fence");
    }
    release.stage = stage;
    // Whoever follows what was accepted goes by all of its words.
    let is_followed = stage == ReleaseStage::Accepted;
    release.detail = if is_followed { detail.clone() } else { bounded(detail.clone()) };
    let word = match stage {
        ReleaseStage::Pending => "waits for a new attempt",
        ReleaseStage::Requested => "is not known to be done",
        ReleaseStage::Accepted => "accepted",
        ReleaseStage::Complete => "complete",
        ReleaseStage::Abandoned => "abandoned",
    };
    // Each attempt is told with how it ended, also where it ended as the one before.
    let what = bounded(format!("release {id} {word}: {detail}"));
    if draft.fence()?.moments.last().is_none_or(|last| last.what != what) {
        draft.moment(what);
    }
    settle_released(draft);
    Ok(())
}

/// What was only asked for has ended with the answer, unless an attempt that was not answered asked for it, too: nothing of it comes late.
fn close_answered(draft: &mut Draft, id: &ReleaseId, attempt: EffectId) {
    if may_come(&draft.record, id) {
        return;
    }
    let standing = draft.record.ledger.standing().filter(|(_, release)| *release == id);
    let effects: Vec<EffectId> = standing.map(|(effect, _)| effect).collect();
    let state = draft.record.fence.as_mut().and_then(|fence| fence.release_mut(id));
    if state.is_some_and(|state| state.asked_by.take_if(|first| *first == attempt).is_some()) {
        for effect in effects {
            draft.record.ledger.close(effect);
        }
    }
}

/// Whether an attempt of it is open.
fn may_come(record: &NodeRecord, id: &ReleaseId) -> bool {
    let of_it = EffectKind::Release(id.clone());
    record.ledger.open().iter().any(|open| open.kind == of_it)
}

/// The next one behind it that is not over acts first, and none that waits for both. What was set up is gone by then: two never let the same volume go.
pub(super) fn passed_on(draft: &mut Draft, id: &ReleaseId, to: &ReleaseId, why: &str) -> Result<(), Refused> {
    draft.expect_phase("passing on", &["fenced"], "volumes are let go only once the node is proven off")?;
    expect_ground(draft)?;
    let refused = |phase, hint| Err(Refused::Phase { wanted: "passing on", phase, hint });
    if stands_of(&draft.record, id) {
        return refused("standing", "what it set up is taken away first");
    }
    let is_over = find(draft, to)?.stage.is_over();
    let release = find(draft, id)?;
    if release.stage.is_over() || release.passed_on.is_some() || is_over {
        return refused("over", "it is passed on once, while it and what acts in its place are under way");
    }
    let fence = draft.fence()?;
    let behind = fence.releases.iter().skip_while(|one| one.id != *id).skip(1);
    let next = behind.filter(|one| !one.id.is_part()).find(|one| !one.stage.is_over());
    if next.is_none_or(|next| next.id != *to) || id.is_part() {
        return refused("before it", "what acts in its place is the next behind it, as a whole");
    }
    let release = find(draft, id)?;
    // Its turn comes again, with all of its time.
    release.since = None;
    release.passed_on = Some(to.clone());
    release.detail = bounded(format!("passed on to {to}: {why}"));
    let told = format!("release {id} {}", release.detail);
    draft.moment(told);
    Ok(())
}

/// Whether something that its attempts set up was not seen to be gone.
pub(super) fn stands_of(record: &NodeRecord, id: &ReleaseId) -> bool {
    record.ledger.standing().any(|(_, release)| release == id)
}

/// What stood was seen to be gone: it ends by itself, once whoever acted on it has seen that too. What it was to bring about is
/// not brought about any more: a new attempt is due. While an attempt is open it may be set up again, and stands.
pub(super) fn withdrawn(draft: &mut Draft, effects: &[EffectId]) {
    let record = &draft.record;
    let gone = record.ledger.standing();
    let gone = gone.filter(|(id, release)| effects.contains(id) && !may_come(record, release));
    let gone: Vec<(EffectId, ReleaseId)> = gone.map(|(id, release)| (id, release.clone())).collect();
    for (id, release) in gone {
        let state = draft.record.fence.as_mut().and_then(|fence| fence.release_mut(&release));
        let (lingers, asked) = state.map_or((None, None), |state| {
            if !state.stage.is_over() {
                state.stage = ReleaseStage::Pending;
            }
            (state.lingers, state.asked_by.take())
        });
        // Nobody acts on what was never set up.
        if asked.is_some() {
            draft.record.ledger.close(id);
        } else {
            draft.record.ledger.bound(id, lingers.unwrap_or(LINGERS));
        }
        let what = if asked.is_some() { "asked for is taken back" } else { "set up is gone" };
        draft.moment(format!("what release {release} {what}"));
    }
}

/// Everything is let go: Released. Holds that were to last only so long are dropped; with none left it is brought back.
pub(super) fn settle_released(draft: &mut Draft) {
    let Some(fence) = &mut draft.record.fence else { return };
    // Also nothing that a person gives up makes a ground of a restore (S21).
    if draft.record.phase != Phase::Fenced || fence.evidence.is_none() || !fence.all_released() {
        return;
    }
    fence.outcome = Some(Outcome::Fenced { released: true });
    draft.record.phase = Phase::Released;
    draft.moment("released");
    draft.drop_released();
}
