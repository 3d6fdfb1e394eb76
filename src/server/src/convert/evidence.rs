//! Evidence, holds and releases as they are told. On the wire they prove nothing.

use picket_core::ids::DeviceId;
use picket_core::record::{Attestation, DeviceEvidence, Evidence, Fence, HoldState, Moment, ReleaseState};
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
        hold_detail: match fence.holds.get(&device.device) {
            Some(hold) => hold.detail.clone(),
            None if device.hold.is_empty() => String::new(),
            None => put_back(&device.device, &fence.moments).unwrap_or_default(),
        },
        device: device.device.to_string(),
        said: device.said.clone(),
        readings: device.readings,
        lasted: Some(duration(device.lasted)),
        hold: device.hold.clone(),
        long_window: device.long_window.clone().unwrap_or_default(),
        identity_match: words::identity_match(device.identity).into(),
    }
}

/// When the hold of a device ended, and what was said of that. The hold itself is gone from the record by then: the moment is what is left.
fn put_back(device: &DeviceId, moments: &[Moment]) -> Option<String> {
    moments.iter().rev().find_map(|moment| {
        let rest = moment.what.strip_prefix("hold undone: ")?;
        let (devices, said) = rest.split_once(" (").unwrap_or((rest, ""));
        devices.split(", ").any(|one| one == device.as_str()).then(|| {
            match said.strip_suffix(')').unwrap_or(said) {
                "" => format!("put back at {}", moment.at),
                said if said.starts_with("could not be undone") => said.to_owned(),
                said => format!("put back at {}: {said}", moment.at),
            }
        })
    })
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

#[cfg(test)]
mod tests {
    use picket_core::time::WallTime;

    use super::*;

    /// The machine writes these moments as holds are undone (`core::machine`).
    #[test]
    fn a_hold_that_was_put_back_says_when_and_one_that_could_not_be_says_so() {
        let moment = |what: &str| Moment {
            at: WallTime::from_millis(1_700_000_000_000),
            phase: "unfencing".to_owned(),
            what: what.to_owned(),
        };
        let by_hand =
            "could not be undone: put the device's restore policy, watchdog and button back by hand";
        let moments = [
            moment("hold: bmc: restore policy always-off"),
            moment("hold undone: bmc, pdu-a"),
            moment("hold undone: other (the watchdog's settings were put back)"),
            moment(&format!("hold undone: stuck ({by_hand})")),
        ];
        let told = |device: &str| put_back(&DeviceId::new(device).expect("an id"), &moments);
        let at = "put back at 2023-11-14T22:13:20.000Z";
        assert_eq!(told("bmc").as_deref(), Some(at));
        assert_eq!(told("pdu-a").as_deref(), Some(at));
        assert_eq!(told("other"), Some(format!("{at}: the watchdog's settings were put back")));
        assert_eq!(told("stuck").as_deref(), Some(by_hand));
        assert_eq!(told("pdu"), None, "another device begins alike");
    }
}
