//! Evidence, holds and releases as they are told. On the wire they prove nothing.

use picket_core::ids::DeviceId;
use picket_core::record::{Attestation, DeviceEvidence, Evidence, Fence, HoldState, ReleaseState};
use picket_proto::v1;

use super::time::{duration, timestamp};
use super::words;

/// Why the node of a fence is held to be off; `None`: it is not.
pub(crate) fn evidence(fence: &Fence) -> Option<v1::Evidence> {
    let evidence: &Evidence = fence.evidence.as_ref()?;
    Some(v1::Evidence {
        grade: words::grade(evidence.grade).into(),
        lowered_by: evidence.lowered_by.clone(),
        level: u32::try_from(evidence.level).unwrap_or(u32::MAX),
        off_since: Some(timestamp(evidence.off_since)),
        confirmed_at: Some(timestamp(evidence.confirmed_at)),
        devices: evidence.devices.iter().map(|one| device(one, fence)).collect(),
        attestation: fence.attestation.as_ref().map(attestation),
        simulated: fence.topology.is_simulated(),
    })
}

fn device(device: &DeviceEvidence, fence: &Fence) -> v1::DeviceEvidence {
    v1::DeviceEvidence {
        hold_detail: fence.holds.get(&device.device).map(|hold| hold.detail.clone()).unwrap_or_default(),
        device: device.device.to_string(),
        said: device.said.clone(),
        readings: device.readings,
        lasted: Some(duration(device.lasted)),
        hold: device.hold.clone(),
        long_window: device.long_window.clone().unwrap_or_default(),
        identity_match: words::identity_match(device.identity).into(),
    }
}

fn attestation(word: &Attestation) -> v1::Attestation {
    v1::Attestation {
        by: word.by.clone(),
        reason: word.reason.clone(),
        at: Some(timestamp(word.at)),
        generation: word.generation.0,
    }
}

/// What a device was told so that it stays off.
pub(crate) fn hold((device, hold): (&DeviceId, &HoldState)) -> v1::DeviceHold {
    v1::DeviceHold {
        device: device.to_string(),
        found: hold.found.clone(),
        engaged: hold.engaged.clone(),
        detail: hold.detail.clone(),
    }
}

/// A release. When its stage last changed is what the fence's moments say.
pub(crate) fn release(fence: &Fence, release: &ReleaseState) -> v1::Release {
    let prefix = format!("release {}", release.id);
    let tells = |what: &str| {
        what.strip_prefix(&prefix).is_some_and(|rest| rest.starts_with(':') || rest.starts_with(' '))
    };
    let changed = fence.moments.iter().rev().find(|moment| tells(&moment.what));
    let part = release.part.clone();
    let (volume, volume_name, device) =
        part.map(|part| (part.volume, part.name, part.device)).unwrap_or_default();
    v1::Release {
        part_of: if release.id.is_part() { release.id.whole().to_string() } else { String::new() },
        volume,
        volume_name,
        device,
        name: release.id.to_string(),
        stage: words::stage(release.stage).into(),
        attempts: release.attempts,
        detail: release.detail.clone(),
        max_in_flight: release.max_in_flight.map(duration),
        changed_at: changed.map(|moment| timestamp(moment.at)),
        due_at: None,
        unfinished: release.unfinished,
    }
}

/// Those releases of a fence that are not over, in their order.
pub(crate) fn open_releases(fence: &Fence) -> Vec<v1::Release> {
    let open = fence.releases.iter().filter(|one| !one.stage.is_over());
    open.map(|one| release(fence, one)).collect()
}

/// All releases of a fence, in their order; none until the node is proven off.
pub(crate) fn releases(fence: &Fence) -> Vec<v1::Release> {
    if fence.evidence.is_none() {
        return Vec::new();
    }
    fence.releases.iter().map(|one| release(fence, one)).collect()
}
