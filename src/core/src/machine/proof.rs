//! The confirmation, and what voids it: a proof that does not hold any more, a breach.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::Draft;
use super::opening::without_seen;
use super::refused::Refused;
use super::release::settle_released;
use crate::confirm::ConfirmedOff;
use crate::device::Grade;
use crate::ids::{DeviceId, FenceId};
use crate::ledger::EffectKind;
use crate::outcome::Outcome;
use crate::parent::child_of;
use crate::record::{Bringing, Cause, Fence, Phase, ReleaseStage, ReleaseState};

/// Whether the proof was made of this fence as it is now, by this leadership.
pub(super) fn expect_present(draft: &mut Draft, proof: &ConfirmedOff) -> Result<(), Refused> {
    let (generation, term, node) = (draft.record.generation, draft.term, draft.record.node.clone());
    let fence = draft.fence()?;
    if proof.fence() != fence.id || proof.generation() != generation || *proof.node() != node {
        return Err(Refused::ForeignProof("it was made for another fence"));
    }
    if proof.term() != term {
        return Err(Refused::ForeignProof("it was made under another leadership"));
    }
    if proof.round() != fence.round {
        return Err(Refused::ForeignProof("it was made before the evidence began from zero"));
    }
    Ok(())
}

pub(super) fn confirmed(draft: &mut Draft, proof: &ConfirmedOff) -> Result<(), Refused> {
    draft.expect_phase("a confirmation", &["fencing"], "only a node being fenced is confirmed")?;
    draft.bars(EffectKind::bars_proof)?;
    expect_present(draft, proof)?;
    let fence = draft.fence()?;
    if proof.evidence().grade < fence.min_grade {
        return Err(Refused::ForeignProof("its grade is below the least that was asked for"));
    }
    let grade = proof.evidence().grade;
    fence.evidence = Some(proof.evidence().clone());
    fence.attestation = None;
    fence.outcome = Some(Outcome::Fenced { released: false });
    draft.record.phase = Phase::Fenced;
    draft.moment(format!("confirmed off, {}", grade_word(grade)));
    settle_released(draft);
    Ok(())
}

fn grade_word(grade: Grade) -> &'static str {
    match grade {
        Grade::Observed => "observed",
        Grade::Hypervisor => "graded hypervisor",
        Grade::Learned => "graded learned",
        Grade::Claimed => "claimed",
        Grade::Attested => "attested",
    }
}

pub(super) fn unproven(draft: &mut Draft, why: &str, seen: bool) -> Result<(), Refused> {
    let phases = &["fenced", "released", "needs_operator"];
    draft.expect_phase("going back to fencing", phases, "nothing was confirmed")?;
    if !draft.fence_is_current() || draft.fence()?.evidence.is_none() {
        return Err(Refused::ForeignProof("it was never proven off"));
    }
    if seen {
        void_children(draft);
    }
    let at = draft.at;
    draft.fence()?.begin_from_zero(at);
    draft.record.phase = Phase::Fencing;
    draft.moment(format!("the confirmation does not hold any more ({why}); evidence from zero"));
    Ok(())
}

/// What this node proved of its children is void: each of them finds that out by its own hold, whoever leads then.
fn void_children(draft: &mut Draft) {
    let children = draft.record.holds.iter_mut().filter(|(holder, _)| child_of(holder).is_some());
    children.for_each(|(_, hold)| hold.breached = true);
}

pub(super) fn breach(draft: &mut Draft, id: FenceId, device: &DeviceId) -> Result<(), Refused> {
    // While a node is proven anew it counts as fenced: its callers were told so, and its volumes may be somebody else's.
    let is_proven_anew = draft.record.phase == Phase::Fencing
        && draft.record.fence.as_ref().is_some_and(|fence| fence.was_proven);
    if !is_proven_anew {
        draft.expect_phase(
            "a breach",
            &["fenced", "released", "needs_operator", "power_on_failed"],
            "only a fenced node can be in breach",
        )?;
    }
    // Not let on, it is kept off as before. Whoever stood it down said that it is on.
    let is_let_on = draft.record.phase != Phase::PowerOnFailed || draft.record.bringing != Bringing::PowerOn;
    if is_let_on && !draft.fence_is_current() {
        return Err(Refused::ForeignProof("the fence was ended by an unfence"));
    }
    let fence = draft.fence()?;
    if !fence.was_held_off() {
        return Err(Refused::ForeignProof("it was never proven off"));
    }
    if is_proven_anew && fence.outcome.is_none() {
        // What its callers were told before it began from zero; its key answers with that still (S20).
        fence.outcome = Some(Outcome::Fenced { released: fence.all_released() });
    }
    let Some(before) = draft.end_fence() else {
        return Err(Refused::ForeignProof("there is no fence"));
    };
    let generation = draft.next_generation();
    draft.record.breaches += 1;
    void_children(draft);
    let count = draft.record.breaches;
    let at = draft.at;
    let given_up = |release: &ReleaseState| {
        let whole = before.release(&release.id.whole());
        [Some(release), whole].iter().flatten().any(|one| one.stage == ReleaseStage::Abandoned)
    };
    let releases = before
        .releases
        .iter()
        .map(|release| match given_up(release) {
            // What a person gave up stays given up; all else is let go anew, now that the node was on.
            true => release.clone(),
            false => ReleaseState {
                stage: ReleaseStage::Pending,
                attempts: 0,
                passed_on: None,
                since: None,
                unfinished: !release.stage.is_over() && (release.unfinished || release.attempts > 0),
                detail: String::new(),
                ..release.clone()
            },
        })
        .collect();
    draft.record.fence = Some(Fence {
        id,
        generation,
        cause: Cause::Breach,
        reason: format!("breach {count}: {device} reads On although nobody unfenced the node"),
        opened_at: at,
        confirming_since: Some(at),
        level: 0,
        first_level: 0,
        releases,
        attestation: None,
        evidence: None,
        outcome: None,
        ended_at: None,
        budget_override: None,
        quorum_override: None,
        // A look, and a proof, of the generation before: it was found on since.
        seen_off: BTreeSet::new(),
        gave_way: false,
        proved_held: BTreeMap::new(),
        was_proven: false,
        holds: without_seen(before.holds),
        moments: Vec::new(),
        ..before
    });
    draft.record.phase = Phase::Fencing;
    draft.moment(format!("breach {count}: {device} reads On"));
    Ok(())
}
