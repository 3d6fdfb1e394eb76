//! From the intent to the confirmation, and back to it.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::Draft;
use super::release::settle_released;
use super::{Refused, restored};
use crate::confirm::ConfirmedOff;
use crate::device::{DeviceClass, Grade};
use crate::event::{BoundKey, FenceRequest, Holder};
use crate::ids::{DeviceId, EffectId, FenceId};
use crate::ledger::EffectKind;
use crate::outcome::{Outcome, Reason};
use crate::record::{Bringing, Cause, Fence, Hold, HoldState, Phase, ReleaseStage, ReleaseState};
use crate::restore::HOLD;
use crate::time::WallTime;
use crate::topology::Topology;

const RETRY_HINT: &str =
    "a fence is opened from normal, unfencing or power on failed; others join the open one";

pub(super) fn open(draft: &mut Draft, request: FenceRequest) -> Result<(), Refused> {
    // Also where a person is asked in the middle of an unfence: that fence was ended, and nobody switches it off.
    let ended = matches!(draft.record.phase, Phase::NeedsOperator(_)) && !draft.fence_is_current();
    // A restore keeps off, and proves nothing: its fence is no other's to join (S21).
    let groundless = draft.record.is_undecided() && draft.record.is_groundless();
    if !ended && !groundless {
        draft.expect_phase("opening a fence", &["normal", "unfencing", "power_on_failed"], RETRY_HINT)?;
    }
    let before = draft.end_fence();
    let generation = draft.next_generation();
    let (node, at) = (draft.record.node.clone(), draft.at);
    let (holder, set_aside) = (&request.holder, request.set_aside.unwrap_or_default());
    let mut fence = Fence {
        id: request.id,
        node,
        generation,
        cause: Cause::Asked,
        reason: holder.reason.clone(),
        by: holder.by.clone(),
        holder: holder.name.clone(),
        opened_at: at,
        deadline: request.deadline,
        confirming_since: Some(at),
        min_grade: request.min_grade,
        topology: request.topology,
        level: 0,
        round: 0,
        off_sent: false,
        switched_off: BTreeSet::new(),
        lost: BTreeSet::new(),
        handed_over: BTreeSet::new(),
        silent: BTreeSet::new(),
        holds: BTreeMap::new(),
        releases: request
            .releases
            .into_iter()
            .map(|release| ReleaseState {
                id: release.id,
                max_in_flight: release.max_in_flight,
                stage: ReleaseStage::Pending,
                attempts: 0,
                unfinished: false,
                detail: String::new(),
            })
            .collect(),
        attestation: None,
        evidence: None,
        outcome: None,
        ended_at: None,
        audit: None,
        budget_override: set_aside.budget.as_ref().map(|(who, _)| who.clone()),
        interrupted: None,
        moments: Vec::new(),
    };
    let as_before = inherit(&mut fence, before, draft.record.bringing);
    // It is kept off already: an abort would leave it off without a fence, and without its hold.
    fence.off_sent |= groundless && draft.record.holds.contains_key(HOLD);
    draft.record.fence = Some(fence);
    restored::expect_other_name(&request.holder.name, draft.record.phase.label())?;
    draft.record.phase = Phase::Fencing;
    draft.record.bringing = Bringing::PowerOn;
    draft.place(&request.holder);
    draft.bind(request.key);
    draft.moment(format!(
        "fence opened by {} for {}: {}",
        request.holder.by, request.holder.name, request.holder.reason
    ));
    for (what, aside) in [("budget", set_aside.budget), ("store's quorum", set_aside.quorum)] {
        if let Some((who, words)) = aside {
            draft.moment(format!("the {what} was set aside by {}: {} ({words})", who.by, who.reason));
        }
    }
    if as_before {
        draft.moment(
            "the settings lack a device that is still to be brought back: the topology stays as it was",
        );
    }
    Ok(())
}

/// Whether a node in this phase may be drilled by these levels, as far as the rules go. `releases`: it has volumes that the
/// drill would let go.
///
/// # Errors
/// It is not Normal, or it has volumes and supplies whose wiring nobody knows: outlets that feed something else, such as the
/// switch before the BMC, would prove a machine dark that runs.
pub fn may_be_drilled(phase: &Phase, topology: &Topology, releases: bool) -> Result<(), Refused> {
    if *phase != Phase::Normal {
        let hint = "a drill is of a node of which nothing is wrong";
        return Err(Refused::Phase { wanted: "a drill", phase: phase.label(), hint });
    }
    let unknown = topology.devices().filter(|spec| spec.class == DeviceClass::Supply && !spec.verified);
    let unknown: Vec<String> = unknown.map(|spec| spec.id.to_string()).collect();
    if releases && !unknown.is_empty() { Err(Refused::WiringUnknown(unknown)) } else { Ok(()) }
}

/// A fence of a node of which nothing is wrong: the same in everything, also in that its volumes are let go.
pub(super) fn drill(draft: &mut Draft, request: FenceRequest) -> Result<(), Refused> {
    may_be_drilled(&draft.record.phase, &request.topology, !request.releases.is_empty())?;
    if draft.record.restored.is_some() {
        return Err(Refused::ForeignProof("no device has said since the restore whether the node is on"));
    }
    open(draft, request)?;
    draft.record.drilled_at = Some(draft.at);
    draft.fence()?.cause = Cause::Drill;
    Ok(())
}

/// What the fence before left undone belongs to the new one: what was found before the first hold is what is put back.
/// True if the topology had to stay as it was, because the new one lacks a device of that.
fn inherit(fence: &mut Fence, before: Option<Fence>, bringing: Bringing) -> bool {
    let Some(before) = before else { return false };
    // Nobody saw the on that the unfence owes.
    if bringing == Bringing::PowerOn && before.all_released() {
        fence.interrupted = Some(before.releases.clone());
    }
    let mut undone = before.holds.keys().chain(&before.switched_off);
    let as_before = undone.any(|id| fence.topology.device(id).is_none());
    if as_before {
        fence.topology = before.topology;
    }
    fence.holds = before.holds;
    fence.switched_off = before.switched_off;
    // Nobody saw it on since: what a device says that restarted is believed no more than before.
    fence.lost = before.lost;
    fence.silent = before.silent;
    if before.cause == Cause::Restored {
        inherit_releases(fence, before.releases);
    }
    // Once an off was sent, an abort of the new fence would leave the node off without a fence.
    fence.off_sent = before.off_sent && !fence.switched_off.is_empty();
    as_before
}

/// What the old life let go, or was about to, and never saw complete: it is let go again, also what the settings do not
/// have any more.
fn inherit_releases(fence: &mut Fence, before: Vec<ReleaseState>) {
    for old in before.into_iter().filter(|release| !release.stage.is_over()) {
        match fence.releases.iter_mut().find(|release| release.id == old.id) {
            Some(release) => release.unfinished |= old.unfinished,
            None => fence.releases.push(old),
        }
    }
}

pub(super) fn join(draft: &mut Draft, holder: Holder, key: Option<BoundKey>) -> Result<(), Refused> {
    draft.expect_phase(
        "joining",
        &["fencing", "fenced", "released", "needs_operator"],
        "there is no open fence",
    )?;
    if !draft.fence_is_current() {
        return Err(Refused::ForeignProof("the fence was ended by an unfence: open a new one"));
    }
    if draft.record.is_groundless() {
        return Err(Refused::ForeignProof(
            "it is kept off since a restore and not by a fence: open a new one",
        ));
    }
    restored::expect_other_name(&holder.name, draft.record.phase.label())?;
    draft.place(&holder);
    draft.bind(key);
    draft.moment(format!("joined by {} for {}: {}", holder.by, holder.name, holder.reason));
    if draft.record.phase == Phase::Released {
        // Everything is released already: a hold that was to last until then is dropped at once.
        draft.drop_released();
    }
    Ok(())
}

pub(super) fn next_level(draft: &mut Draft, why: &str) -> Result<(), Refused> {
    draft.expect_phase("the next level", &["fencing"], "levels are tried while fencing")?;
    let fence = draft.fence()?;
    if fence.level + 1 >= fence.topology.levels().len() {
        return Err(Refused::NoSuch {
            what: "level",
            name: (fence.level + 2).to_string(),
            known: (1..=fence.topology.levels().len()).map(|level| level.to_string()).collect(),
        });
    }
    fence.level += 1;
    let level = fence.level;
    draft.moment(format!("level {level} did not hold ({why}); trying level {}", level + 1));
    Ok(())
}

/// A fence that stands for a restore does nothing (S21).
pub(super) fn expect_ground(draft: &Draft) -> Result<(), Refused> {
    if draft.record.is_groundless() {
        return Err(Refused::ForeignProof(
            "it is kept off since a restore and not by a fence: fence it first",
        ));
    }
    Ok(())
}

fn known_device(draft: &mut Draft, device: &DeviceId) -> Result<Option<std::time::Duration>, Refused> {
    let fence = draft.fence()?;
    match fence.topology.device(device) {
        Some(spec) => Ok(spec.max_in_flight.off),
        None => Err(Refused::NoSuch {
            what: "device",
            name: device.to_string(),
            known: fence.topology.devices().map(|spec| spec.id.to_string()).collect(),
        }),
    }
}

pub(super) fn hold_intent(
    draft: &mut Draft,
    found: BTreeMap<DeviceId, BTreeMap<String, String>>,
) -> Result<(), Refused> {
    draft.expect_phase("a hold", &["fencing", "fenced", "released"], "a hold belongs to a fence")?;
    expect_ground(draft)?;
    for (device, found) in found {
        let life = known_device(draft, &device)?;
        let state = draft.fence()?.holds.entry(device.clone()).or_default();
        for (key, value) in found {
            state.found.entry(key).or_insert(value);
        }
        let found = state.found.clone();
        draft.enter(EffectKind::Hold(device), life, found);
    }
    Ok(())
}

pub(super) fn hold_ended(
    draft: &mut Draft,
    results: Vec<(DeviceId, HoldState)>,
    known: &[EffectId],
) -> Result<(), Refused> {
    let mut words = Vec::new();
    for (device, result) in results {
        let what = if result.engaged.is_empty() { "none".to_owned() } else { result.engaged.join(", ") };
        words.push(format!("{device}: {what}"));
        let state = draft.fence()?.holds.entry(device).or_default();
        state.engaged = result.engaged;
        state.detail = result.detail;
    }
    for id in known {
        draft.close_if(*id, |kind| matches!(kind, EffectKind::Hold(_)));
    }
    if !words.is_empty() {
        draft.moment(format!("hold: {}", words.join("; ")));
    }
    Ok(())
}

pub(super) fn off_intent(draft: &mut Draft, devices: &[DeviceId]) -> Result<(), Refused> {
    draft.expect_phase(
        "an off",
        &["fencing", "fenced", "released", "needs_operator"],
        "an off belongs to a fence",
    )?;
    if !draft.fence_is_current() {
        return Err(Refused::ForeignProof("the fence was ended by an unfence"));
    }
    expect_ground(draft)?;
    // Nobody has seen it on since the restore: it stays held for an admin as if it had read Off before this fence.
    if let Some(mark) = draft.record.restored.take() {
        let reason = format!("fenced before any reading after the restore of {}", mark.at);
        let hold = Hold { reason, by: "picket".to_owned(), since: draft.at, drop_when_released: false };
        draft.record.holds.entry(HOLD.to_owned()).or_insert(hold);
    }
    for device in devices {
        let life = known_device(draft, device)?;
        draft.enter(EffectKind::Off(device.clone()), life, BTreeMap::new());
    }
    let fence = draft.fence()?;
    fence.off_sent = true;
    fence.switched_off.extend(devices.iter().cloned());
    let names: Vec<String> = devices.iter().map(ToString::to_string).collect();
    draft.moment(format!("off: {}", names.join(", ")));
    Ok(())
}

pub(super) fn lost(draft: &mut Draft, device: DeviceId) -> Result<(), Refused> {
    known_device(draft, &device)?;
    draft.fence()?.silent.remove(&device);
    if draft.fence()?.lost.insert(device.clone()) {
        draft.moment(format!("{device}: session lost; its Off counts only after an On"));
    }
    Ok(())
}

pub(super) fn silent(draft: &mut Draft, device: DeviceId, silent: bool) -> Result<(), Refused> {
    known_device(draft, &device)?;
    // No moment: a BMC that comes and goes would push out what matters.
    let fence = draft.fence()?;
    if silent {
        fence.silent.insert(device);
    } else {
        fence.silent.remove(&device);
    }
    Ok(())
}

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

pub(super) fn grade_word(grade: Grade) -> &'static str {
    match grade {
        Grade::Observed => "observed",
        Grade::Hypervisor => "graded hypervisor",
        Grade::Claimed => "claimed",
        Grade::Attested => "attested",
    }
}

/// What was proven so far is void.
pub(super) fn begin_from_zero(fence: &mut Fence, at: WallTime) {
    fence.confirming_since = Some(at);
    fence.round += 1;
    fence.level = 0;
    fence.evidence = None;
    fence.outcome = None;
}

pub(super) fn unproven(draft: &mut Draft, why: &str) -> Result<(), Refused> {
    let phases = &["fenced", "released", "needs_operator"];
    draft.expect_phase("going back to fencing", phases, "nothing was confirmed")?;
    if !draft.fence_is_current() || draft.fence()?.evidence.is_none() {
        return Err(Refused::ForeignProof("it was never proven off"));
    }
    let at = draft.at;
    begin_from_zero(draft.fence()?, at);
    draft.record.phase = Phase::Fencing;
    draft.moment(format!("the confirmation does not hold any more ({why}); evidence from zero"));
    Ok(())
}

pub(super) fn breach(draft: &mut Draft, id: FenceId, device: &DeviceId) -> Result<(), Refused> {
    draft.expect_phase(
        "a breach",
        &["fenced", "released", "needs_operator"],
        "only a fenced node can be in breach",
    )?;
    if !draft.fence_is_current() {
        return Err(Refused::ForeignProof("the fence was ended by an unfence"));
    }
    let fence = draft.fence()?;
    if fence.evidence.is_none() && fence.releases.iter().all(|release| release.attempts == 0) {
        return Err(Refused::ForeignProof("it was never proven off"));
    }
    let Some(before) = draft.end_fence() else {
        return Err(Refused::ForeignProof("there is no fence"));
    };
    let generation = draft.next_generation();
    draft.record.breaches += 1;
    let count = draft.record.breaches;
    let at = draft.at;
    let releases = before
        .releases
        .iter()
        .map(|release| match release.stage {
            // What a person gave up stays given up; all else is let go anew, now that the node was on.
            ReleaseStage::Abandoned => release.clone(),
            _ => ReleaseState {
                stage: ReleaseStage::Pending,
                attempts: 0,
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
        releases,
        attestation: None,
        evidence: None,
        outcome: None,
        ended_at: None,
        budget_override: None,
        moments: Vec::new(),
        ..before
    });
    draft.record.phase = Phase::Fencing;
    draft.moment(format!("breach {count}: {device} reads On"));
    Ok(())
}

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
        draft.fence()?.outcome = Some(Outcome::NeedsOperator(reason));
    }
    draft.record.phase = Phase::NeedsOperator(reason);
    draft.moment(format!("needs an operator ({}): {detail}", reason.words()));
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
/// on, with its on, and with the releases as they were then: those of this fence never began.
fn undo(draft: &mut Draft, outcome: Outcome) -> Result<(), Refused> {
    draft.expect_phase("an abort", &["fencing"], "only a fence that has not sent an off can be aborted")?;
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
