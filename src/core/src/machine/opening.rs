//! The intent: a fence is opened, drilled, joined, and takes over what the one before left undone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::draft::{Draft, bounded};
use super::hold::expect_room;
use super::refused::Refused;
use super::restored;
use crate::device::DeviceClass;
use crate::event::{FenceRequest, JoinRequest, Overrides};
use crate::ids::DeviceId;
use crate::record::{Bringing, Cause, Fence, HoldState, Phase, ReleaseState, SetAside};
use crate::restore::HOLD;
use crate::time::written;
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
    // What stands for a restore was never unfenced: it owes no on (S21).
    let owes_on = draft.record.bringing == Bringing::PowerOn && !draft.fence_is_current();
    let before = draft.end_fence();
    let generation = draft.next_generation();
    let (node, at) = (draft.record.node.clone(), draft.at);
    let (holder, set_aside) = (&request.holder, request.set_aside.unwrap_or_default());
    let mut fence = Fence {
        id: request.id,
        node,
        generation,
        cause: Cause::Asked,
        reason: bounded(holder.reason.clone()),
        by: holder.by.clone(),
        holder: holder.name.clone(),
        by_person: holder.by_person,
        opened_at: at,
        deadline: request.deadline,
        confirming_since: Some(at),
        min_grade: request.min_grade,
        topology: request.topology,
        level: 0,
        first_level: 0,
        round: 0,
        off_sent: false,
        boot: None,
        gave_way: false,
        switched_off: BTreeSet::new(),
        identified: BTreeSet::new(),
        lost: BTreeSet::new(),
        seen_off: BTreeSet::new(),
        said: BTreeMap::new(),
        proved_held: BTreeMap::new(),
        was_proven: false,
        handed_over: BTreeSet::new(),
        silent: BTreeSet::new(),
        holds: BTreeMap::new(),
        releases: request
            .releases
            .into_iter()
            .map(|release| ReleaseState {
                lingers: release.lingers,
                by_name: release.by_name,
                ..ReleaseState::pending(release.id, release.max_in_flight)
            })
            .collect(),
        attestation: None,
        evidence: None,
        outcome: None,
        ended_at: None,
        audit: None,
        budget_override: set_aside.budget.as_ref().map(|(who, _)| who.clone()),
        quorum_override: set_aside.quorum.as_ref().map(|(who, _)| who.clone()),
        interrupted: None,
        moments: Vec::new(),
    };
    let as_before = inherit(&mut fence, before, owes_on);
    // It is kept off already: an abort would leave it off without a fence, and without its hold.
    fence.off_sent |= groundless && draft.record.holds.contains_key(HOLD);
    draft.record.fence = Some(fence);
    restored::expect_other_name(&request.holder.name, draft.record.phase.label())?;
    draft.record.phase = Phase::Fencing;
    draft.record.bringing = Bringing::PowerOn;
    draft.place(&request.holder);
    draft.bind(request.key);
    draft.moment(format!(
        "{OPENED}{} for {}: {}",
        request.holder.shown(),
        request.holder.name,
        request.holder.reason
    ));
    tell_aside(draft, set_aside);
    if as_before {
        draft.moment(
            "the settings lack a device that is still to be brought back: the topology stays as it was",
        );
    }
    Ok(())
}

/// How the first moment of a fence begins that somebody asked for.
const OPENED: &str = "fence opened by ";

/// Who opened the fence, for people, as its first moment tells: also once the hold that it placed is gone. `None`: the name that counts,
/// [`Fence::by`], says all that is known.
pub fn opened_by(fence: &Fence) -> Option<&str> {
    let told = fence.moments.first()?.what.strip_prefix(OPENED)?;
    let (shown, _) = told.split_once(&format!(" for {}: ", fence.holder))?;
    (shown != fence.by).then_some(shown)
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
/// True if the topology had to stay as it was, because the new one lacks a device of that. `owes_on`: an unfence ends here
/// whose on nobody saw.
fn inherit(fence: &mut Fence, before: Option<Fence>, owes_on: bool) -> bool {
    let Some(before) = before else { return false };
    if owes_on && before.all_released() {
        fence.interrupted = Some(before.releases.clone());
    }
    let mut undone = before.holds.keys().chain(&before.switched_off);
    let as_before = undone.any(|id| fence.topology.device(id).is_none());
    if as_before {
        fence.topology = before.topology;
    }
    fence.holds = without_seen(before.holds);
    fence.switched_off = before.switched_off;
    fence.identified = before.identified;
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

/// What of the holds of one generation belongs to the next.
pub(super) fn without_seen(holds: BTreeMap<DeviceId, HoldState>) -> BTreeMap<DeviceId, HoldState> {
    holds.into_iter().map(|(device, hold)| (device, hold.without_seen())).collect()
}

/// What the old life let go, or was about to, and never saw complete: it is let go again, also what the settings do not
/// have any more.
fn inherit_releases(fence: &mut Fence, before: Vec<ReleaseState>) {
    for old in before.into_iter().filter(|release| !release.stage.is_over()) {
        match fence.releases.iter_mut().find(|release| release.id == old.id) {
            Some(release) => release.unfinished |= old.unfinished,
            None => fence.add_release(old),
        }
    }
}

fn tell_aside(draft: &mut Draft, Overrides { budget, quorum }: Overrides) {
    for (what, aside) in [("budget", budget), ("store's quorum", quorum)] {
        if let Some((who, words)) = aside {
            draft.moment(format!("the {what} was set aside by {}: {} ({words})", who.by, who.reason));
        }
    }
}

/// Whose off was sent is barred by nothing: there is nothing to be set aside.
pub(super) fn set_aside(draft: &mut Draft, overrides: Overrides) -> Result<(), Refused> {
    draft.expect_phase(
        "setting limits aside",
        &["fencing", "needs_operator"],
        "limits bar a fence before its first off",
    )?;
    if !draft.fence_is_current() {
        return Err(Refused::ForeignProof("the fence was ended by an unfence: open a new one"));
    }
    let fence = draft.fence()?;
    if fence.off_sent {
        return Err(Refused::OffSent);
    }
    let who = |aside: &Option<(SetAside, String)>| aside.as_ref().map(|(who, _)| who.clone());
    fence.budget_override = who(&overrides.budget).or(fence.budget_override.take());
    fence.quorum_override = who(&overrides.quorum).or(fence.quorum_override.take());
    tell_aside(draft, overrides);
    Ok(())
}

/// The time of one who joins begins when it joins: a fence whose time ends before that has as long. Nobody makes it shorter for others.
fn lengthen(draft: &mut Draft, deadline: Duration, by: &str) -> Result<(), Refused> {
    let (at, is_being_confirmed) = (draft.at, draft.record.phase == Phase::Fencing);
    let fence = draft.fence()?;
    let since = fence.confirming_since.unwrap_or(fence.opened_at);
    // In all other phases its time would begin anew with the evidence.
    let spent = if is_being_confirmed { at.millis().saturating_sub(since.millis()) } else { 0 };
    // By a wall clock that jumped no more can have passed than there was.
    let spent = Duration::from_millis(spent).min(fence.deadline);
    let wanted = deadline.saturating_add(spent);
    if wanted > fence.deadline {
        fence.deadline = wanted;
        draft.moment(format!("its deadline is {} now, as {by} asked", written(wanted)));
    }
    Ok(())
}

pub(super) fn join(draft: &mut Draft, request: JoinRequest) -> Result<(), Refused> {
    let JoinRequest { holder, key, deadline } = request;
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
    expect_room(draft, &holder.name, &holder.by)?;
    draft.place(&holder);
    draft.fence()?.by_person |= holder.by_person;
    draft.bind(key);
    draft.moment(format!("joined by {} for {}: {}", holder.shown(), holder.name, holder.reason));
    // A longer deadline would let the gateway send a first off that only a person may still ask for (S16).
    let waits_for_a_person = matches!(draft.record.phase, Phase::NeedsOperator(_));
    if let Some(deadline) = deadline.filter(|_| holder.by_person || !waits_for_a_person) {
        lengthen(draft, deadline, holder.shown())?;
    }
    if draft.record.phase == Phase::Released {
        // Everything is released already: a hold that was to last until then is dropped at once.
        draft.drop_released();
    }
    Ok(())
}
