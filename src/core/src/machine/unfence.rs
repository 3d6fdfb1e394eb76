//! Bringing a node back.
//!
//! # Invariants
//!
//! - Power-on is entered into the ledger in this file alone (S7). Shown by
//!   `an_on_is_opened_only_through_its_gate`.
//! - No on is opened while a hold keeps the node off, while a release is not over, or while an effect is
//!   open that bars it. Shown by `no_on_while_a_hold_keeps_it_off_or_a_release_is_not_over`,
//!   `no_on_while_an_off_a_hold_or_a_release_is_open`.
//! - A node is Normal again only with nothing left undone. Shown by `normal_leaves_nothing_undone`.

use std::collections::BTreeMap;

use super::draft::Draft;
use super::refused::Refused;
use crate::device::{DeviceClass, DeviceSpec};
use crate::event::Person;
use crate::ids::DeviceId;
use crate::ledger::{EffectKind, describe};
use crate::outcome::Outcome;
use crate::record::{Bringing, Fence, NodeRecord, Phase};
use crate::restore::HOLD;

pub(super) fn drop_hold(draft: &mut Draft, holder: &str, person: &Person) -> Result<(), Refused> {
    let groundless = draft.record.phase == Phase::Fenced && draft.record.is_groundless();
    if !groundless {
        draft.expect_phase(
            "unfencing",
            &["released", "power_on_failed"],
            "a fence runs to its end first; where a person is needed: retry, attest, abandon, stand-down or retire",
        )?;
    }
    if holder == HOLD && draft.record.holds.contains_key(HOLD) {
        return Err(Refused::Phase {
            wanted: "dropping the hold restored",
            phase: draft.record.phase.label(),
            hint: "only an admin drops it",
        });
    }
    if groundless || draft.record.phase == Phase::Released {
        if draft.record.holds.remove(holder).is_none() {
            let holds = draft.record.holds.keys().cloned().collect();
            return Err(Refused::NoSuchHold { holder: holder.to_owned(), holds });
        }
        draft.moment(format!("hold {holder} dropped by {}: {}", person.name, person.reason));
        if !draft.record.holds.is_empty() {
            return Ok(());
        }
    }
    // A step that is refused is dropped as a whole.
    if groundless {
        expect_released(&draft.record)?;
    }
    // A stand-down whose way back failed stays one: its releases may not have begun, and a person said that the host runs.
    let bringing = match draft.record.phase {
        Phase::PowerOnFailed => draft.record.bringing,
        _ => Bringing::PowerOn,
    };
    draft.begin_unfencing(bringing);
    draft.moment(format!("unfencing, asked by {}: {}", person.name, person.reason));
    Ok(())
}

pub(super) fn so_already(draft: &Draft) -> Result<(), Refused> {
    let phases = &["normal", "unfencing", "power_on_failed"];
    draft.expect_phase("this", phases, "the node is fenced: there is something to do")
}

/// Phase, holds and open effects: the part of S7 that undoing a hold waits for too.
fn gate(record: &NodeRecord, wanted: &'static str) -> Result<(), Refused> {
    if record.phase != Phase::Unfencing {
        let hint = "power comes back only while unfencing";
        return Err(Refused::Phase { wanted, phase: record.phase.label(), hint });
    }
    if !record.holds.is_empty() {
        return Err(Refused::Held(record.holds.keys().cloned().collect()));
    }
    let open: Vec<String> =
        record.ledger.open().iter().filter(|e| e.kind.bars_on()).map(|e| describe(&e.kind)).collect();
    if open.is_empty() { Ok(()) } else { Err(Refused::OpenEffects(open)) }
}

/// Every release observed complete or abandoned by name.
pub(super) fn expect_released(record: &NodeRecord) -> Result<(), Refused> {
    let releases = record.fence.iter().flat_map(|fence| &fence.releases);
    let open: Vec<String> =
        releases.filter(|release| !release.stage.is_over()).map(|release| release.id.to_string()).collect();
    if open.is_empty() { Ok(()) } else { Err(Refused::NotReleased(open)) }
}

/// The whole of S7 but for the generation: phase, holds, open effects, releases.
pub(crate) fn may_switch_on(record: &NodeRecord) -> Result<(), Refused> {
    gate(record, "a power-on")?;
    // A stand-down may follow a fence whose releases never began: nothing of them was sent.
    let stands_down = record.bringing == Bringing::StandDown;
    let releases = record.fence.iter().flat_map(|fence| &fence.releases);
    let open: Vec<String> = releases
        .filter(|release| {
            !(release.stage.is_over() || stands_down && release.attempts == 0 && !release.unfinished)
        })
        .map(|release| release.id.to_string())
        .collect();
    if open.is_empty() { Ok(()) } else { Err(Refused::NotReleased(open)) }
}

pub(super) fn unhold_intent(draft: &mut Draft) -> Result<(), Refused> {
    gate(&draft.record, "undoing a hold")?;
    let holds: Vec<_> =
        draft.fence()?.holds.iter().map(|(device, state)| (device.clone(), state.found.clone())).collect();
    for (device, found) in holds {
        let spec = draft.fence()?.topology.device(&device).map(|spec| spec.max_in_flight);
        let unhold = EffectKind::Unhold(device);
        let life = spec.and_then(|spec| unhold.life_at(spec));
        draft.enter(unhold, life, found);
    }
    Ok(())
}

pub(super) fn unheld(draft: &mut Draft, devices: &[DeviceId], detail: &str) -> Result<(), Refused> {
    draft.expect_phase("undoing a hold", &["unfencing"], "holds are undone while unfencing")?;
    let fence = draft.fence()?;
    fence.holds.retain(|device, _| !devices.contains(device));
    if !devices.is_empty() {
        let names: Vec<_> = devices.iter().map(ToString::to_string).collect();
        let detail = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
        draft.moment(format!("hold undone: {}{detail}", names.join(", ")));
    }
    Ok(())
}

pub(super) fn on_intent(draft: &mut Draft, devices: &[DeviceId]) -> Result<(), Refused> {
    may_switch_on(&draft.record)?;
    let bringing = draft.record.bringing;
    let mut lives = BTreeMap::new();
    for device in devices {
        let fence = draft.fence()?;
        let Some(spec) = fence.topology.device(device) else {
            let known = fence.topology.devices().map(|spec| spec.id.to_string()).collect();
            return Err(Refused::NoSuch { what: "device", name: device.to_string(), known });
        };
        if bringing != Bringing::PowerOn && spec.class == DeviceClass::Host || bringing == Bringing::Abort {
            return Err(Refused::Phase {
                wanted: "a power-on of the host",
                phase: "unfencing",
                hint: "after an abort or a stand-down no on is sent to a host device",
            });
        }
        // Supplies come first, then the parent: a host device may need them to answer, and nothing runs on a parent that is off.
        let before = |class: DeviceClass| match class {
            DeviceClass::Supply => 0,
            DeviceClass::Parent => 1,
            DeviceClass::Host => 2,
        };
        let waits_for = |other: &DeviceSpec| before(other.class) < before(spec.class);
        if fence.switched_off.iter().filter_map(|id| fence.topology.device(id)).any(waits_for) {
            return Err(Refused::Phase {
                wanted: "a power-on of the host",
                phase: "unfencing",
                hint: "its supplies are brought back first, then its parent",
            });
        }
        lives.insert(device.clone(), spec.max_in_flight.on);
    }
    for (device, life) in lives {
        draft.enter(EffectKind::On(device), life, BTreeMap::new());
    }
    let names: Vec<_> = devices.iter().map(ToString::to_string).collect();
    draft.moment(format!("on: {}", names.join(", ")));
    Ok(())
}

pub(super) fn supplies_on(draft: &mut Draft, devices: &[DeviceId]) -> Result<(), Refused> {
    draft.expect_phase("bringing supplies back", &["unfencing"], "supplies come back while unfencing")?;
    let fence = draft.fence()?;
    let is_back = |id: &DeviceId| {
        devices.contains(id) && fence.topology.device(id).is_some_and(|spec| spec.class != DeviceClass::Host)
    };
    fence.switched_off = fence.switched_off.iter().filter(|id| !is_back(id)).cloned().collect();
    Ok(())
}

/// Whether something that the fence changed, besides the host's power, was not put back.
fn leaves_undone(fence: &Fence) -> bool {
    let is_beside =
        |id: &DeviceId| fence.topology.device(id).is_some_and(|spec| spec.class != DeviceClass::Host);
    !fence.holds.is_empty() || fence.switched_off.iter().any(is_beside)
}

pub(super) fn back(draft: &mut Draft, detail: &str) -> Result<(), Refused> {
    draft.expect_phase("coming back", &["unfencing"], "only a node being brought back comes back")?;
    draft.bars(EffectKind::bars_on)?;
    if leaves_undone(draft.fence()?) {
        return Err(Refused::Phase {
            wanted: "coming back",
            phase: "unfencing",
            hint: "a hold is not undone yet, a supply not seen on, or the hold on the parent not dropped",
        });
    }
    let bringing = draft.record.bringing;
    if let Some(fence) = &mut draft.record.fence {
        match bringing {
            Bringing::StandDown => fence.outcome = Some(Outcome::StoodDown),
            Bringing::Abort | Bringing::PowerOn => {}
        }
        if bringing == Bringing::PowerOn {
            fence.switched_off.clear();
        }
    }
    draft.record.phase = Phase::Normal;
    draft.moment(detail);
    draft.end_fence();
    draft.record.bringing = Bringing::PowerOn;
    draft.record.breaches = 0;
    // None is open, or it would not be back; of those that ended early nobody need know any more.
    draft.record.receipts.clear();
    // Nothing of an aborted fence was ever sent: the node was not gone, and needs no time to cool down.
    if bringing != Bringing::Abort {
        draft.record.back_since = Some(draft.at);
    }
    Ok(())
}

pub(super) fn on_failed(draft: &mut Draft, detail: &str) -> Result<(), Refused> {
    draft.expect_phase("a failed power-on", &["unfencing"], "nothing was switched on")?;
    draft.record.phase = Phase::PowerOnFailed;
    draft.moment(format!("not seen on: {detail}"));
    Ok(())
}

/// The same generation: what was meant is unchanged.
pub(super) fn came_on(draft: &mut Draft, device: &DeviceId) -> Result<(), Refused> {
    draft.expect_phase("going on", &["power_on_failed"], "nothing was to come on")?;
    draft.record.phase = Phase::Unfencing;
    draft.moment(format!("{device} reads On after all: bringing it back goes on"));
    Ok(())
}
