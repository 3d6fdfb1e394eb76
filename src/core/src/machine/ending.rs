//! A fence that does not come to a proof: a person is asked, or it ends before anything was sent.
//!
//! # Invariants
//!
//! - After an off whose end was not known, only a boot that was named before that off ends the fence as
//!   recovered. Every off is waited out first (S15). Shown by
//!   `it_ends_in_the_boot_before_the_off_once_each_off_ended`,
//!   `where_an_outlet_may_be_off_it_runs_to_its_end`.
//! - A fence that ends before its off in the middle of an unfence lets that unfence go on. Shown by
//!   `what_ends_before_its_off_in_the_middle_of_an_unfence_goes_on_with_it`.

use super::draft::Draft;
use super::fence::expect_ground;
use super::refused::Refused;
use crate::ledger::EffectKind;
use crate::outcome::{Outcome, Reason};
use crate::record::{Bringing, Cause, Phase};
use crate::restore::HOLD;

pub(super) fn give_up(draft: &mut Draft, reason: Reason, detail: &str) -> Result<(), Refused> {
    draft.expect_phase(
        "asking a person",
        &["fencing", "fenced", "released", "unfencing", "needs_operator"],
        "nothing is under way",
    )?;
    let ours = draft.fence_is_current();
    if ours {
        // A restore asks for a person by itself, and for what devices say (S21).
        expect_ground(draft)?;
        let fence = draft.fence()?;
        fence.outcome = Some(Outcome::NeedsOperator(reason));
        // It was given for the members of now. What a person sets aside from here on is for his retry.
        fence.quorum_override = None;
    }
    draft.record.phase = Phase::NeedsOperator(reason);
    draft.moment(format!("{}{detail}", reason.asks()));
    Ok(())
}

/// The node is well after each off of the fence ended unheard, in the same boot: none of them reached it (S15).
pub(super) fn recovered(draft: &mut Draft, boot: &str, why: &str) -> Result<(), Refused> {
    if !draft.fence()?.may_recover_in(boot) {
        return Err(Refused::OffSent);
    }
    draft.bars(|kind| matches!(kind, EffectKind::Off(_)))?;
    let fence = draft.fence()?;
    fence.off_sent = false;
    // Each is over: a fence that begins while its holds are undone has sent nothing.
    fence.switched_off.clear();
    undo(draft, Outcome::AbortedRecovered)?;
    draft.moment(format!("aborted, as no off reached the node: {why}"));
    Ok(())
}

pub(super) fn abort(draft: &mut Draft, why: &str) -> Result<(), Refused> {
    undo(draft, Outcome::AbortedRecovered)?;
    draft.moment(format!("aborted before anything was sent: {why}"));
    Ok(())
}

/// A pause or a limit came before the first off.
pub(super) fn bar(draft: &mut Draft, reason: Reason, why: &str) -> Result<(), Refused> {
    undo(draft, Outcome::Blocked(reason))?;
    draft.moment(format!("blocked ({}) before anything was sent: {why}", reason.words()));
    Ok(())
}

/// Ends a fence that has sent no off: its holds go, and what they changed is put back. An unfence that it interrupted goes
/// on, with its on, and with the releases as they were then: those of this fence never began. A hold that was placed by a call of its
/// own keeps the fence from ending so (S7).
fn undo(draft: &mut Draft, outcome: Outcome) -> Result<(), Refused> {
    let phase = &draft.record.phase;
    // Nothing waits for a person any more where the node is well: the switch of its rack is back.
    let is_spent = matches!(phase, Phase::NeedsOperator(Reason::LevelsSpent | Reason::Deadline));
    let may_end = *phase == Phase::Fencing
        || is_spent && outcome == Outcome::AbortedRecovered && draft.fence_is_current();
    if !may_end {
        return Err(Refused::Phase {
            wanted: "an abort",
            phase: phase.label(),
            hint: "only a fence that has not sent an off can be aborted",
        });
    }
    // On a person's word volumes may have been let go although no off could be sent.
    let fence = draft.fence()?;
    let begun: Vec<String> =
        fence.releases.iter().filter(|one| one.attempts > 0).map(|one| one.id.to_string()).collect();
    if fence.off_sent || fence.cause == Cause::Breach {
        return Err(Refused::OffSent);
    }
    if !begun.is_empty() {
        return Err(Refused::NotReleased(begun));
    }
    let mut held = match outcome {
        // It runs: whoever kept it off before the backup was taken let it go since.
        Outcome::AbortedRecovered => draft.record.held_alone(),
        _ => draft.record.held_through_limits(),
    };
    // What a restore keeps off is an admin's to bring back (S21).
    held.extend(draft.record.holds.contains_key(HOLD).then(|| HOLD.to_owned()));
    if !held.is_empty() {
        return Err(Refused::Held(held));
    }
    let fence = draft.fence()?;
    fence.outcome = Some(outcome);
    let bringing = match fence.interrupted.take() {
        Some(releases) => {
            fence.releases = releases;
            Bringing::PowerOn
        }
        None => Bringing::Abort,
    };
    draft.record.holds.clear();
    draft.begin_unfencing(bringing);
    Ok(())
}
