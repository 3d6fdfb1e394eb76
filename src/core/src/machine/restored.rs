//! Nodes of a restored store (S21): what their first reading makes of them, and the hold that only an admin
//! drops.
//!
//! # Invariants
//!
//! - A fence whose cause is a restore proves nothing. It lets nothing be sent, released or signed. Shown by
//!   `what_is_restored_stands_on_nothing`,
//!   `no_event_lets_anything_go_or_sends_anything_while_a_restore_keeps_it_off`.
//! - The hold of a restore is dropped by an admin's own event alone. Shown by
//!   `only_an_admin_s_word_drops_the_hold_and_the_releases_come_first`.
//! - What the old life may have had under way stands in the ledger once, and bounded. Shown by
//!   `what_may_have_been_under_way_stands_in_the_ledger_once_and_bounded`.

use std::time::Duration;

use super::draft::Draft;
use super::refused::Refused;
use super::unfence::expect_released;
use crate::device::DeviceClass;
use crate::event::{Person, PlannedRelease};
use crate::ground::Look;
use crate::ids::{DeviceId, FenceId, Term};
use crate::ledger::EffectKind;
use crate::outcome::{Outcome, Reason};
use crate::power::Power;
use crate::record::{Bringing, Hold, NodeRecord, Phase, Restored};
use crate::restore::{self, HOLD};
use crate::topology::Topology;

/// How long something of the old life may still take effect that nothing bounds: nobody knows that it is there.
const UNBOUNDED: Duration = Duration::from_secs(600);

/// No leadership of this life: theirs begin at 1.
const OLD_LIFE: Term = Term(0);

/// In the ledger: whatever receipts the old life may have issued.
const OLD_RECEIPT: &str = "of the life before the restore";

/// A node of which the backup has nothing is as one that it says was not fenced.
pub(super) fn mark(draft: &mut Draft, mark: Restored) -> Result<(), Refused> {
    if draft.record != NodeRecord::new(draft.record.node.clone()) {
        return Err(Refused::ForeignProof("something is stored of it"));
    }
    let generation = restore::raised_generation(draft.record.generation, draft.at);
    draft.record.generation = generation;
    draft.record.restored = Some(mark);
    Ok(())
}

/// What the old life may have sent after the backup was taken enters the ledger, and is waited out like what stood there:
/// no Off counts, and no on is sent, while it may still take effect.
pub(super) fn adopt(
    draft: &mut Draft,
    topology: &Topology,
    releases: &[PlannedRelease],
    receipts: Duration,
) -> Result<(), Refused> {
    let phase = draft.record.phase.label();
    let Some(mark) = draft.record.restored.as_mut().filter(|mark| !mark.counted) else {
        return Err(Refused::Phase { wanted: "adopting", phase, hint: "nothing was restored" });
    };
    mark.counted = true;
    // Nothing of this life joins them: each is waited out for itself.
    let (generation, term, at) = (draft.record.generation, OLD_LIFE, draft.at);
    let ledger = &mut draft.record.ledger;
    let mut enter = |kind: EffectKind, life: Option<Duration>| {
        ledger.enter(kind, generation, term, at, Some(life.unwrap_or(UNBOUNDED)), None);
    };
    for device in topology.devices() {
        enter(EffectKind::On(device.id.clone()), device.max_in_flight.on);
        enter(EffectKind::Off(device.id.clone()), device.max_in_flight.off);
    }
    for release in releases {
        enter(EffectKind::Release(release.id.clone()), release.max_in_flight);
    }
    enter(EffectKind::Receipt(OLD_RECEIPT.to_owned()), Some(receipts));
    // What the old life set up may stand still, and is taken away.
    for release in releases.iter().filter(|release| release.lingers.is_some()) {
        ledger.enter(EffectKind::Standing(release.id.clone()), generation, term, at, None, None);
    }
    let states = draft.record.fence.iter_mut().flat_map(|fence| &mut fence.releases);
    states.for_each(|state| state.asked_by = None);
    draft.moment("waiting out what may have been under way when the store was lost");
    Ok(())
}

/// What the node's devices say now. Off: it is kept off, without a ground, until an admin says otherwise. On: it is what it
/// was if nobody had fenced it, else a person decides.
pub(super) fn read(
    draft: &mut Draft,
    id: FenceId,
    topology: Topology,
    looks: &[Look],
) -> Result<(), Refused> {
    if !draft.record.is_undecided() {
        return Err(Refused::Phase {
            wanted: "a first reading",
            phase: draft.record.phase.label(),
            hint: "it decides only where a node of a restored store stands",
        });
    }
    let own = draft.record.fence.as_ref().map(|fence| &fence.topology);
    match restore::seen(own.unwrap_or(&topology), looks) {
        Some(Power::Off) => found_off(draft, id, topology, looks),
        Some(Power::On) => found_on(draft),
        _ => Err(Refused::ForeignProof("no device says whether it is on")),
    }
}

fn found_off(draft: &mut Draft, id: FenceId, topology: Topology, looks: &[Look]) -> Result<(), Refused> {
    let words = match draft.record.restored.take() {
        Some(mark) => format!("it reads Off after the restore of {}", mark.at),
        None => "it reads Off again".to_owned(),
    };
    if draft.record.fence.is_none() {
        draft.next_generation();
        let fence = restore::empty(&draft.record, id, topology, words.clone(), draft.at);
        draft.record.fence = Some(fence);
    }
    let fence = draft.fence()?;
    fence.outcome = None;
    // Nobody else switches an outlet on again: the old life may have cut it after the backup was taken.
    let off = looks.iter().filter(|look| look.reading.as_ref().is_some_and(|one| one.power == Power::Off));
    let is_supply =
        |id: &&DeviceId| fence.topology.device(id).is_some_and(|spec| spec.class == DeviceClass::Supply);
    let supplies: Vec<DeviceId> = off.map(|look| &look.device).filter(is_supply).cloned().collect();
    fence.switched_off.extend(supplies);
    draft.record.phase = Phase::Fenced;
    place_hold(draft, words.clone());
    draft.moment(format!("{words}: kept off, and nothing of it is proven or released"));
    Ok(())
}

/// A node that is fenced before any reading since the restore stays held for an admin, as if it had read Off before that.
pub(super) fn hold_unread(draft: &mut Draft) {
    if let Some(mark) = draft.record.restored.take() {
        place_hold(draft, format!("fenced before any reading after the restore of {}", mark.at));
    }
}

fn place_hold(draft: &mut Draft, reason: String) {
    let (by, since) = ("picket".to_owned(), draft.at);
    let hold = Hold {
        reason,
        by,
        since,
        drop_when_released: false,
        breached: false,
        ended: false,
        placed_alone: false,
        kept: false,
        askers: Vec::new(),
    };
    draft.record.holds.entry(HOLD.to_owned()).or_insert(hold);
}

fn found_on(draft: &mut Draft) -> Result<(), Refused> {
    let was = draft.record.restored.take();
    match draft.record.phase {
        // Nobody kept it off, and it is on.
        Phase::Normal => {}
        Phase::Fenced => {
            draft.fence()?.outcome = Some(Outcome::NeedsOperator(Reason::Restored));
            draft.record.phase = Phase::NeedsOperator(Reason::Restored);
            let what = "it reads On although nobody unfenced it since the restore: a person decides";
            draft.moment(Reason::Restored.asks() + what);
        }
        _ if was.is_some() => {
            let what = "it reads On, and the backup says that it was kept off: it was brought back since, or somebody \
                        else switched it on; a person decides";
            // It takes the place of what the restore said.
            let asks = match draft.record.phase {
                Phase::NeedsOperator(reason) => reason.asks(),
                _ => String::new(),
            };
            draft.moment(asks + what);
        }
        _ => return Err(Refused::ForeignProof("that is known")),
    }
    Ok(())
}

/// An admin drops the hold under which the restore keeps the node off; with none left it is brought back.
pub(super) fn drop_hold(draft: &mut Draft, person: &Person) -> Result<(), Refused> {
    let phases = &["fenced", "released", "needs_operator"];
    draft.expect_phase("dropping the hold restored", phases, "a fence runs to its end first")?;
    let released = draft.record.phase == Phase::Released || draft.record.is_groundless();
    if !released && draft.record.phase == Phase::Fenced {
        return Err(Refused::Phase {
            wanted: "dropping the hold restored",
            phase: "fenced",
            hint: "its releases come to their end first",
        });
    }
    if draft.record.holds.remove(HOLD).is_none() {
        let holds = draft.record.holds.keys().cloned().collect();
        return Err(Refused::NoSuchHold { holder: HOLD.to_owned(), holds });
    }
    draft.moment(format!("hold {HOLD} dropped by {}: {}", person.name, person.reason));
    let kept_off = matches!(draft.record.phase, Phase::Fenced | Phase::Released);
    if !kept_off || !draft.record.holds.is_empty() {
        return Ok(());
    }
    // A step that is refused is dropped as a whole: the hold stays.
    expect_released(&draft.record)?;
    draft.begin_unfencing(Bringing::PowerOn);
    draft.moment(format!("unfencing, asked by {}: {}", person.name, person.reason));
    Ok(())
}

/// What would let a node go that a restore keeps off is an admin's: the hold goes first.
pub(super) fn expect_no_hold(record: &NodeRecord) -> Result<(), Refused> {
    if record.holds.contains_key(HOLD) { Err(Refused::Held(vec![HOLD.to_owned()])) } else { Ok(()) }
}

/// Nobody but a restore places a hold of that name.
pub(super) fn expect_other_name(holder: &str, phase: &'static str) -> Result<(), Refused> {
    if holder != HOLD {
        return Ok(());
    }
    Err(Refused::Phase {
        wanted: "a hold named restored",
        phase,
        hint: "that name is a restore's own, and an admin drops it by its own call: choose another",
    })
}
