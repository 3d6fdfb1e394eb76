//! What devices say they control (S13), and which supplies were seen to feed the node.
//!
//! # Invariants
//!
//! - An identity is learned in Normal and never in a fence. Shown by
//!   `an_identity_is_learned_in_normal_and_never_in_a_fence`.
//! - Wiring is verified only for supplies whose Off was the proof of a drill. Shown by
//!   `wiring_is_verified_by_drills_alone`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::draft::Draft;
use super::refused::Refused;
use crate::device::{DeviceClass, DeviceSpec, Identity};
use crate::event::Person;
use crate::ids::DeviceId;
use crate::record::{Cause, Fence, IdentityProof};

pub(super) fn learn(draft: &mut Draft, device: DeviceId, identity: Identity) -> Result<(), Refused> {
    draft.expect_phase("learning an identity", &["normal"], "an identity is never learned in a fence")?;
    keep(draft, device, identity);
    Ok(())
}

/// What proved the identity of before proves nothing of this one.
fn keep(draft: &mut Draft, device: DeviceId, identity: Identity) {
    draft.record.identity_proofs.remove(&device);
    draft.record.learned.insert(device, Arc::new(identity));
}

/// Somebody else than the device says the same of the node's machine as the device does (S13).
pub(super) fn prove(
    draft: &mut Draft,
    device: DeviceId,
    identity: &Identity,
    by: String,
) -> Result<(), Refused> {
    draft.expect_phase("proving an identity", &["normal"], "a fence goes by what was known when it began")?;
    if draft.record.learned.get(&device).is_none_or(|learned| **learned != *identity) {
        return Err(Refused::ForeignProof("the device's identity is another one by now"));
    }
    let at = draft.at;
    draft.record.identity_proofs.insert(device, IdentityProof { by, at });
    Ok(())
}

/// Somebody else than the device says which machine is the node's: that is expected of the device, whatever it says itself.
pub(super) fn tell(
    draft: &mut Draft,
    device: DeviceId,
    identity: Identity,
    by: String,
) -> Result<(), Refused> {
    draft.expect_phase(
        "what a device is to control",
        &["normal"],
        "a fence goes by what was known when it began",
    )?;
    // Another machine is fed by other outlets.
    draft.record.wired.clear();
    keep(draft, device.clone(), identity);
    let at = draft.at;
    draft.record.identity_proofs.insert(device, IdentityProof { by, at });
    Ok(())
}

/// A person's word stands where the settings give none: the fence under way, if there is one, goes on only by a retry.
pub(super) fn accept(
    draft: &mut Draft,
    device: DeviceId,
    identity: Identity,
    person: &Person,
) -> Result<(), Refused> {
    draft.expect_phase(
        "accepting an identity",
        &["normal", "needs_operator"],
        "what a device is found to be is not changed while a fence, or an unfence, goes by it",
    )?;
    let words = format!("{device}: {} accepted by {}: {}", identity.words(), person.name, person.reason);
    draft.moment(words);
    // The person read what the device says: nothing else has said it yet.
    keep(draft, device.clone(), identity);
    // Another board may be in another machine, fed by other outlets: also to the fence that waits for this word.
    let wired = std::mem::take(&mut draft.record.wired);
    if let Some(fence) = &mut draft.record.fence {
        fence.topology = fence.topology.clone().without_verified(|id| wired.contains_key(id));
        forget_board(fence, &device);
    }
    Ok(())
}

/// What the board before earned is none of another one's: what it said, its proof with a hold, and the look at what it controlled (S2).
pub(super) fn forget_board(fence: &mut Fence, device: &DeviceId) {
    fence.said.remove(device);
    fence.proved_held.remove(device);
    fence.seen_off.remove(device);
    if let Some(hold) = fence.holds.get_mut(device) {
        hold.outlives.clear();
    }
}

/// How a drill's findings begin among a fence's moments.
const DRILL: &str = "drill: ";

/// `identities`: devices whose learned identity another witness than the device itself confirmed, which saw the node fall, and that witness.
pub(super) fn drilled(
    draft: &mut Draft,
    verified: BTreeMap<DeviceId, String>,
    identities: BTreeMap<DeviceId, String>,
    findings: &[String],
) -> Result<(), Refused> {
    draft.expect_phase("a drill's findings", &["unfencing"], "what a drill shows is seen at its end")?;
    let fence = draft.fence()?;
    if fence.cause != Cause::Drill {
        return Err(Refused::ForeignProof("only a drill verifies wiring"));
    }
    // The level whose Off was the proof: each of its outlets was cut, and nothing else was.
    let proven = fence.evidence.as_ref().and_then(|evidence| evidence.level.checked_sub(1));
    let level = proven.and_then(|level| fence.topology.level(level)).map(|level| &level.devices);
    let cut = |id: &DeviceId| {
        let is_it = |spec: &DeviceSpec| spec.id == *id && spec.class == DeviceClass::Supply;
        level.is_some_and(|cut| cut.iter().any(is_it))
    };
    if let Some(other) = verified.keys().find(|id| !cut(id)) {
        let known = level.into_iter().flatten().map(|spec| spec.id.to_string()).collect();
        return Err(Refused::NoSuch { what: "device", name: other.to_string(), known });
    }
    let simulated = fence.topology.is_simulated();
    if let Some(other) = identities.keys().find(|id| !draft.record.learned.contains_key(*id)) {
        let known = draft.record.learned.keys().map(ToString::to_string).collect();
        return Err(Refused::NoSuch { what: "learned identity", name: other.to_string(), known });
    }
    // Nothing real was cut: it proves nothing to the gateway that comes after the rehearsal (S1).
    if !simulated {
        let at = draft.at;
        draft.record.wired.extend(verified);
        let proofs = identities.into_iter().map(|(device, by)| (device, IdentityProof { by, at }));
        draft.record.identity_proofs.extend(proofs);
    }
    for finding in findings {
        draft.moment(format!("{DRILL}{finding}"));
    }
    Ok(())
}

impl Fence {
    /// What a drill has shown so far, in words.
    pub fn findings(&self) -> impl Iterator<Item = &str> {
        self.moments.iter().filter_map(|moment| moment.what.strip_prefix(DRILL))
    }
}
