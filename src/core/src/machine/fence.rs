//! A fence under way: its levels, the holds, our own off, and what becomes of its devices' sessions.
//!
//! # Invariants
//!
//! - A new round begins with the supplies, or the parent, that proved the node before: its host devices may
//!   not answer. A parent that refuses has its turn again after the levels before it (`Fence::is_ahead`).
//!   Shown by `what_supplies_proved_is_proven_anew_by_them_first_and_then_by_the_others_round_after_round`.
//! - An off stands in the ledger before it can be sent (S5). Shown by
//!   `an_off_stands_in_the_ledger_before_it_can_be_sent`.
//! - Once an off was sent the fence runs to its end, whatever its caller does (S15). Shown by
//!   `once_an_off_was_sent_the_fence_runs_to_its_end`.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::Draft;
use super::identity;
use super::refused::Refused;
use super::restored::{self, expect_no_hold};
use crate::device::{DeviceSpec, IdentityMatch};
use crate::ids::{DeviceId, EffectId};
use crate::ledger::EffectKind;
use crate::record::{Cause, Fence, HoldState, Said};
use crate::topology::Topology;

pub(super) fn next_level(draft: &mut Draft, why: &str, gives_way: bool) -> Result<(), Refused> {
    draft.expect_phase("the next level", &["fencing"], "levels are tried while fencing")?;
    let fence = draft.fence()?;
    let (level, is_last) = match fence.level_after(fence.level) {
        Some(level) => (level, false),
        None => (fence.first_level, true),
    };
    if fence.is_ahead(fence.level) {
        fence.first_level = level;
    }
    let spent = std::mem::replace(&mut fence.level, level) + 1;
    fence.gave_way |= gives_way && is_last && !fence.off_sent;
    if why.is_empty() {
        return Ok(());
    }
    draft.moment_once(match is_last {
        false => format!("level {spent} did not hold ({why}); trying level {}", level + 1),
        true => format!("level {spent} did not hold ({why}): all are tried anew until its deadline"),
    });
    Ok(())
}

/// The settings may say by now whose machine a device controls, or have a device that proves more. Where they lack one of which
/// something is to be undone, or that is not believed, the levels stay as they were; a drill's are its own. Once the node is let back in they stay
/// as they are, too, and the settings say of the same devices whose machines they control.
pub(super) fn new_topology(draft: &mut Draft, topology: Topology) -> Result<(), Refused> {
    draft.expect_phase(
        "other levels",
        &["needs_operator"],
        "a fence goes on by the levels with which it began",
    )?;
    let is_current = draft.fence_is_current();
    let fence = draft.fence()?;
    if !is_current {
        match fence.topology.with_identities_of(&topology) {
            Some(now) if now != fence.topology => {
                take_topology(fence, now);
                draft.moment("whose machines its devices control is what the settings say now");
            }
            Some(_) => {}
            None => draft.moment_once(
                "its levels stay as they were: the settings have other devices, or have them elsewhere"
                    .to_owned(),
            ),
        }
        return Ok(());
    }
    let class = |levels: &Topology, id: &DeviceId| levels.device(id).map(|spec| spec.class);
    let mut kept = fence.holds.keys().chain(&fence.switched_off).chain(&fence.lost);
    let is_whole = kept.all(|id| class(&topology, id) == class(&fence.topology, id));
    if fence.cause != Cause::Drill && fence.topology != topology {
        let words = match is_whole {
            true => "its levels are those that the settings have now",
            false => {
                "its levels stay as they were: the settings lack a device that was held, switched off or lost"
            }
        };
        if is_whole {
            take_topology(fence, topology);
        }
        draft.moment(words);
    }
    Ok(())
}

/// The fence goes by these from now on. Another board: what the one before earned is none of its (S2).
fn take_topology(fence: &mut Fence, topology: Topology) {
    let before = std::mem::replace(&mut fence.topology, topology);
    let is_another = |spec: &&DeviceSpec| {
        let now = fence.topology.device(&spec.id);
        now.is_some_and(|now| spec.identity.compare(&now.identity) == IdentityMatch::Mismatch)
    };
    let others: Vec<DeviceId> = before.devices().filter(is_another).map(|spec| spec.id.clone()).collect();
    others.iter().for_each(|device| identity::forget_board(fence, device));
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
    let phases = ["fencing", "fenced", "released", "needs_operator"];
    draft.expect_phase("a hold", &phases, "a hold belongs to a fence")?;
    if !draft.fence_is_current() {
        return Err(Refused::ForeignProof("the fence was ended by an unfence"));
    }
    expect_ground(draft)?;
    for (device, found) in found {
        let life = known_device(draft, &device)?;
        let fence = draft.fence()?;
        // What reads engaged from here on may be this hold, and not the one with which the device proved the node.
        fence.proved_held.remove(&device);
        let is_proven = fence.evidence.is_some();
        let state = fence.holds.entry(device.clone()).or_default();
        state.anew = is_proven;
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
        let state = draft.fence()?.holds.entry(device.clone()).or_default();
        let is_less = state.engaged.iter().any(|word| !result.engaged.contains(word));
        words.push(match is_less {
            true => format!("{device}: {what} ({})", result.detail),
            false => format!("{device}: {what}"),
        });
        state.engaged = result.engaged;
        state.outlives = result.outlives;
        state.undone = result.undone;
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

pub(super) fn off_intent(
    draft: &mut Draft,
    devices: &[DeviceId],
    identified: Vec<DeviceId>,
) -> Result<(), Refused> {
    draft.expect_phase(
        "an off",
        &["fencing", "fenced", "released", "needs_operator"],
        "an off belongs to a fence",
    )?;
    if !draft.fence_is_current() {
        return Err(Refused::ForeignProof("the fence was ended by an unfence"));
    }
    expect_ground(draft)?;
    restored::hold_unread(draft);
    for device in devices {
        let life = known_device(draft, device)?;
        // What was found before anything was changed also tells what of the device is older than this off.
        let found = draft.fence()?.holds.get(device).map(|hold| hold.found.clone()).unwrap_or_default();
        draft.enter(EffectKind::Off(device.clone()), life, found);
    }
    let fence = draft.fence()?;
    fence.off_sent = true;
    fence.switched_off.extend(devices.iter().cloned());
    fence.identified.extend(identified);
    let names: Vec<String> = devices.iter().map(ToString::to_string).collect();
    draft.moment(format!("off: {}", names.join(", ")));
    Ok(())
}

/// Each off of the fence is known not to have happened. A restore's hold is no fence's to end, and stays with the off that placed it (S21).
pub(super) fn not_sent(draft: &mut Draft, effects: &[EffectId], why: &str) -> Result<(), Refused> {
    draft.expect_phase("an off that was not sent", &["fencing"], "an off belongs to a fence")?;
    expect_no_hold(&draft.record)?;
    let (generation, term) = (draft.record.generation, draft.term);
    let of_generation = draft.record.ledger.open().iter().filter(|open| open.generation == generation);
    let offs = of_generation.filter(|open| matches!(open.kind, EffectKind::Off(_)));
    // What another leadership of this fence sent, nobody knows here, also where this one sent the same anew.
    if !offs.clone().all(|open| open.term == term && effects.contains(&open.id)) {
        return Err(Refused::OffSent);
    }
    let unsent: BTreeSet<DeviceId> = offs
        .filter_map(|open| match &open.kind {
            EffectKind::Off(device) => Some(device.clone()),
            _ => None,
        })
        .collect();
    let fence = draft.fence()?;
    if unsent.is_empty() || unsent != fence.switched_off {
        return Err(Refused::OffSent);
    }
    fence.off_sent = false;
    fence.switched_off.clear();
    for effect in effects {
        draft.close_if(*effect, |kind| matches!(kind, EffectKind::Off(_)));
    }
    draft.moment_once(format!("no off happened: {why}"));
    Ok(())
}

/// The longest name of a boot that is stored, in bytes: a kubelet writes it.
const LONGEST_BOOT: usize = 256;

pub(super) fn boot(draft: &mut Draft, boot: String) -> Result<(), Refused> {
    let fence = draft.fence()?;
    if !fence.off_sent && boot.len() <= LONGEST_BOOT {
        fence.boot = Some(boot);
    }
    Ok(())
}

pub(super) fn lost(draft: &mut Draft, device: DeviceId) -> Result<(), Refused> {
    known_device(draft, &device)?;
    let fence = draft.fence()?;
    fence.silent.remove(&device);
    // Whoever looked at the machine did so before this.
    fence.seen_off.remove(&device);
    if draft.fence()?.lost.insert(device.clone()) {
        draft.moment(format!("{device}: session lost; its Off counts only after an On"));
    }
    Ok(())
}

pub(super) fn said(draft: &mut Draft, device: DeviceId, said: Said) -> Result<(), Refused> {
    known_device(draft, &device)?;
    draft.fence()?.said.entry(device).or_insert(said);
    Ok(())
}

pub(super) fn seen_on(draft: &mut Draft, device: DeviceId) -> Result<(), Refused> {
    known_device(draft, &device)?;
    let fence = draft.fence()?;
    fence.seen_off.clear();
    fence.proved_held.clear();
    draft.moment(format!("{device} reads On: it is not off as it was seen before"));
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
