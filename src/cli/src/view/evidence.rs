//! Evidence and releases, for scripts and in words.

use std::collections::BTreeMap;

use picket_proto::v1::{Attestation, DeviceEvidence, DeviceHold, Evidence, Release, ReleaseStage};
use serde::Serialize;

use super::{filled, seconds, simulated, stamp, words};
use crate::duration;
use crate::style::{Tone, clean};

/// Why a node is held to be off.
#[derive(Debug, Serialize)]
pub struct EvidenceView {
    grade: Option<String>,
    lowered_by: Vec<String>,
    level: u32,
    off_since: Option<String>,
    confirmed_at: Option<String>,
    devices: Vec<DeviceEvidenceView>,
    attestation: Option<AttestationView>,
    /// No real machine is off: the gateway is simulated.
    simulated: bool,
}

#[derive(Debug, Serialize)]
struct DeviceEvidenceView {
    device: String,
    said: Option<String>,
    readings: u32,
    lasted_s: Option<f64>,
    hold: Vec<String>,
    hold_detail: Option<String>,
    long_window: Option<String>,
    identity: Option<String>,
}

#[derive(Debug, Serialize)]
struct AttestationView {
    by: String,
    reason: String,
    at: Option<String>,
    generation: u64,
}

impl From<&Evidence> for EvidenceView {
    fn from(evidence: &Evidence) -> Self {
        Self {
            grade: words::grade(evidence.grade),
            lowered_by: evidence.lowered_by.clone(),
            level: evidence.level,
            off_since: stamp(&evidence.off_since),
            confirmed_at: stamp(&evidence.confirmed_at),
            devices: evidence.devices.iter().map(DeviceEvidenceView::from).collect(),
            attestation: evidence.attestation.as_ref().map(AttestationView::from),
            simulated: evidence.simulated,
        }
    }
}

impl From<&DeviceEvidence> for DeviceEvidenceView {
    fn from(device: &DeviceEvidence) -> Self {
        Self {
            device: device.device.clone(),
            said: filled(&device.said),
            readings: device.readings,
            lasted_s: seconds(&device.lasted),
            hold: device.hold.clone(),
            hold_detail: filled(&device.hold_detail),
            long_window: filled(&device.long_window),
            identity: words::identity_match(device.identity_match),
        }
    }
}

impl From<&Attestation> for AttestationView {
    fn from(word: &Attestation) -> Self {
        Self {
            by: word.by.clone(),
            reason: word.reason.clone(),
            at: stamp(&word.at),
            generation: word.generation,
        }
    }
}

/// One release.
#[derive(Debug, Serialize)]
pub struct ReleaseView {
    name: String,
    stage: Option<String>,
    attempts: u32,
    detail: Option<String>,
    max_in_flight_s: Option<f64>,
    changed_at: Option<String>,
    due_at: Option<String>,
    unfinished: bool,
    part_of: Option<String>,
    volume: Option<String>,
    volume_name: Option<String>,
    device: Option<String>,
}

impl From<&Release> for ReleaseView {
    fn from(release: &Release) -> Self {
        Self {
            name: release.name.clone(),
            stage: words::stage(release.stage),
            attempts: release.attempts,
            detail: filled(&release.detail),
            max_in_flight_s: seconds(&release.max_in_flight),
            changed_at: stamp(&release.changed_at),
            due_at: stamp(&release.due_at),
            unfinished: release.unfinished,
            part_of: filled(&release.part_of),
            volume: filled(&release.volume),
            volume_name: filled(&release.volume_name),
            device: filled(&release.device),
        }
    }
}

/// What a device was told so that it stays off.
#[derive(Debug, Serialize)]
pub struct DeviceHoldView {
    device: String,
    found: BTreeMap<String, String>,
    engaged: Vec<String>,
    detail: Option<String>,
}

impl From<&DeviceHold> for DeviceHoldView {
    fn from(hold: &DeviceHold) -> Self {
        Self {
            device: hold.device.clone(),
            found: hold.found.clone(),
            engaged: hold.engaged.clone(),
            detail: filled(&hold.detail),
        }
    }
}

/// Evidence in words: a line for the verdict, one for each device, one for a person's word.
pub fn lines(evidence: &Evidence) -> Vec<String> {
    let grade = words::spoken(words::grade(evidence.grade));
    let mut verdict = format!("evidence: {grade}");
    if evidence.level > 0 {
        verdict += &format!(", level {}", evidence.level);
    }
    for (what, at) in [("off since", &evidence.off_since), ("confirmed", &evidence.confirmed_at)] {
        if let Some(at) = at {
            verdict += &format!(", {what} {}", duration::stamp(at));
        }
    }
    if !evidence.lowered_by.is_empty() {
        verdict += &format!("; lowered by {}", evidence.lowered_by.join(", "));
    }
    verdict += &format!("; {grade}: {}", words::grade_means(evidence.grade));
    let mut lines = Vec::new();
    if evidence.simulated {
        lines.push(simulated::EVIDENCE.to_owned());
    }
    lines.push(verdict);
    lines.extend(evidence.devices.iter().map(|device| {
        let lasted = device.lasted.as_ref().map(duration::of_wire).unwrap_or_default();
        let hold = match device.hold.as_slice() {
            [] if device.hold_detail.is_empty() => "not held off at the device".to_owned(),
            [] => format!("not held off at the device ({})", device.hold_detail),
            held if device.hold_detail.is_empty() => format!("held off by: {}", held.join(", ")),
            held => format!("held off by: {} ({})", held.join(", "), device.hold_detail),
        };
        let long = match device.long_window.as_str() {
            "" => String::new(),
            why => format!("; long window: {why}"),
        };
        format!(
            "{}: {}; {} readings Off over {}{long}; identity {}; {hold}",
            device.device,
            if device.said.is_empty() { "off" } else { &device.said },
            device.readings,
            duration::words(lasted),
            words::spoken(words::identity_match(device.identity_match)),
        )
    }));
    if let Some(word) = &evidence.attestation {
        let at = word.at.as_ref().map(duration::stamp).unwrap_or_default();
        lines.push(format!("attested by {} {at}: {}", word.by, word.reason));
    }
    lines.iter().map(|line| clean(line).into_owned()).collect()
}

/// A release in words, and how it is to be taken.
pub fn release_line(release: &Release) -> (Tone, String) {
    let tone = match ReleaseStage::try_from(release.stage) {
        Ok(ReleaseStage::Complete) => Tone::Good,
        Ok(ReleaseStage::Abandoned) => Tone::Bad,
        _ => Tone::Busy,
    };
    let called: Vec<&str> = [&release.volume_name, &release.device]
        .into_iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty())
        .collect();
    let called = if called.is_empty() { String::new() } else { format!(" ({})", called.join(", ")) };
    let stage = words::spoken(words::stage(release.stage));
    let mut text = format!("release {}{called}: {stage}", release.name);
    if release.attempts > 1 {
        text += &format!(" after {} attempts", release.attempts);
    }
    if !release.detail.is_empty() {
        text += &format!(" ({})", duration::spoken(&release.detail));
    }
    (tone, clean(&text).into_owned())
}

/// A release as it stands now: besides, since when, and until when it has time.
pub fn release_standing(release: &Release) -> (Tone, String) {
    let (tone, mut text) = release_line(release);
    if let Some(since) = &release.changed_at {
        text += &format!(", since {}", duration::stamp_seconds(since));
    }
    if let Some(due) = &release.due_at {
        text += &format!("; if not complete by {}, needs operator", duration::stamp_seconds(due));
    }
    if release.unfinished {
        text += "; an attempt from before a breach was never seen to end";
    }
    (tone, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_of_a_simulation_says_so_before_anything_else() {
        let real = Evidence { level: 1, ..Evidence::default() };
        let simulated = Evidence { simulated: true, ..real.clone() };
        assert!(lines(&simulated)[0].starts_with("simulated: "), "{:?}", lines(&simulated));
        assert_eq!(lines(&simulated)[1..], lines(&real));
    }

    #[test]
    fn a_device_that_took_no_hold_says_why() {
        let why = "restore policy: not supported, no such command (0xC1)";
        let told = |device: DeviceEvidence| {
            lines(&Evidence { devices: vec![device], ..Evidence::default() }).remove(1)
        };
        let none = DeviceEvidence { hold_detail: why.to_owned(), ..DeviceEvidence::default() };
        assert!(
            told(none.clone()).ends_with(&format!("; not held off at the device ({why})")),
            "{}",
            told(none)
        );
        let held =
            DeviceEvidence { hold: vec!["watchdog timer stopped".to_owned()], ..DeviceEvidence::default() };
        assert!(told(held.clone()).ends_with("; held off by: watchdog timer stopped"));
        let ended = DeviceEvidence { hold_detail: "put back at 2026-11-21T10:00:00.000Z".to_owned(), ..held };
        assert!(
            told(ended)
                .ends_with("; held off by: watchdog timer stopped (put back at 2026-11-21T10:00:00.000Z)")
        );
    }

    #[test]
    fn a_part_of_a_release_is_told_with_its_volume_and_where_it_is() {
        let release = Release {
            name: "volumes/vol-0abc".to_owned(),
            stage: ReleaseStage::Accepted.into(),
            attempts: 2,
            detail: "the detach was taken".to_owned(),
            part_of: "volumes".to_owned(),
            volume: "vol-0abc".to_owned(),
            volume_name: "data-1".to_owned(),
            device: "/dev/vdb".to_owned(),
            ..Release::default()
        };
        let (_, text) = release_line(&release);
        assert_eq!(
            text,
            "release volumes/vol-0abc (data-1, /dev/vdb): accepted after 2 attempts (the detach was taken)"
        );
        let (_, plain) =
            release_line(&Release { volume_name: String::new(), device: String::new(), ..release });
        assert!(plain.starts_with("release volumes/vol-0abc: accepted"), "{plain}");
    }
}
