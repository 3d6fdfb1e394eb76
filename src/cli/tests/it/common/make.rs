//! Messages for scripts: made up, and the same each time.

use picket_proto::v1::*;
use prost_types::{Duration, Timestamp};

/// The id of every fence here.
pub const FENCE: &str = "01990000-0000-7000-8000-000000000007";

/// `seconds` and `millis` after nine o'clock.
pub fn at(seconds: i64, millis: i32) -> Option<Timestamp> {
    // 2026-11-21T09:00:00Z
    Some(Timestamp { seconds: 1_795_251_600 + seconds, nanos: millis * 1_000_000 })
}

/// A span.
pub fn span(seconds: i64, millis: i32) -> Option<Duration> {
    Some(Duration { seconds, nanos: millis * 1_000_000 })
}

/// A node in its usual state.
pub fn node(name: &str) -> Node {
    Node {
        name: name.to_owned(),
        generation: 6,
        phase: Phase::Normal.into(),
        power: Some(NodePower { power: Power::On.into(), asked_at: at(0, 0), age: span(12, 340) }),
        devices: vec![bmc()],
        groups: vec!["rack1".to_owned()],
        identity: Some(NodeIdentity {
            system_uuid: "00112233445566778899aabbccddeeff".to_owned(),
            ..Default::default()
        }),
        readiness: Readiness::Ready.into(),
        ..Default::default()
    }
}

/// Its BMC.
pub fn bmc() -> Device {
    let uuid = "00112233445566778899aabbccddeeff".to_owned();
    Device {
        id: "bmc".to_owned(),
        device_class: DeviceClass::Host.into(),
        driver: "ipmi".to_owned(),
        address: "192.0.2.7:623".to_owned(),
        level: 1,
        grade: Grade::Observed.into(),
        has_epochs: true,
        expected_identity: Some(Identity { uuid: uuid.clone(), serial: String::new() }),
        said_identity: Some(Identity { uuid, serial: String::new() }),
        identity_match: IdentityMatch::Match.into(),
        readiness: Readiness::Ready.into(),
        checked_at: at(0, 0),
        reading: Some(DeviceReading {
            device: "bmc".to_owned(),
            power: Power::On.into(),
            asked_at: at(0, 0),
            answered_at: at(0, 12),
            age: span(12, 340),
            epoch: Some(3),
            said: "chassis status 0x61".to_owned(),
        }),
        ..Default::default()
    }
}

/// A node that wants somebody, with everything that can be told of one.
pub fn troubled(name: &str) -> Node {
    Node {
        generation: 7,
        phase: Phase::NeedsOperator.into(),
        reason: Reason::ReleaseDeadline.into(),
        detail: "release storage did not complete in time".to_owned(),
        phase_since: at(620, 0),
        power: Some(NodePower { power: Power::Off.into(), asked_at: at(700, 0), age: span(4, 0) }),
        holds: vec![Hold {
            holder: "alice".to_owned(),
            reason: "disk on fire".to_owned(),
            by: "uid 1000".to_owned(),
            since: at(1, 0),
            drop_when_released: true,
            ..Default::default()
        }],
        fence_id: FENCE.to_owned(),
        fence_opened_at: at(1, 0),
        releases: vec![
            release(ReleaseStage::Complete),
            Release {
                name: "detach".to_owned(),
                attempts: 3,
                detail: "503 Service Unavailable".to_owned(),
                due_at: at(620, 0),
                unfinished: true,
                ..release(ReleaseStage::Requested)
            },
        ],
        open_effects: vec![
            OpenEffect {
                id: 4,
                kind: EffectKind::Release.into(),
                target: "storage".to_owned(),
                generation: 7,
                term: 2,
                opened_at: at(21, 0),
                life: span(60, 0),
            },
            OpenEffect {
                id: 5,
                kind: EffectKind::Off.into(),
                target: "pdu-a".to_owned(),
                ..Default::default()
            },
        ],
        pauses: vec![Pause {
            scope: Some(PauseScope { of: Some(pause_scope::Of::Group("rack1".to_owned())) }),
            reason: "maintenance".to_owned(),
            by: "bob".to_owned(),
            since: at(0, 0),
            expires_at: at(7_200, 0),
        }],
        wait: Some(Wait { what: "an operator".to_owned(), ..Default::default() }),
        breaches: 1,
        devices: vec![
            bmc(),
            Device {
                id: "pdu-a".to_owned(),
                device_class: DeviceClass::Supply.into(),
                driver: "redfish".to_owned(),
                level: 2,
                readiness: Readiness::NotReady.into(),
                problems: vec![DeviceProblem {
                    kind: DeviceProblemKind::Unreachable.into(),
                    text: "192.0.2.9:443: no route to host".to_owned(),
                }],
                ..Default::default()
            },
        ],
        ..node(name)
    }
}

/// A message of a stream.
pub fn update(node: &str, second: i64, phase: Phase, text: &str) -> FenceUpdate {
    FenceUpdate {
        time: at(second, 0),
        node: node.to_owned(),
        fence_id: FENCE.to_owned(),
        generation: 7,
        phase: phase.into(),
        text: text.to_owned(),
        level: 1,
        elapsed: span(second, 0),
        ..Default::default()
    }
}

/// What stands behind a confirmation.
pub fn evidence() -> Evidence {
    Evidence {
        grade: Grade::Observed.into(),
        level: 1,
        off_since: at(4, 0),
        confirmed_at: at(5, 100),
        devices: vec![DeviceEvidence {
            device: "bmc".to_owned(),
            said: "chassis status 0x60".to_owned(),
            readings: 2,
            lasted: span(1, 20),
            hold: vec!["restore policy always-off".to_owned(), "watchdog stopped".to_owned()],
            identity_match: IdentityMatch::Match.into(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// A release.
pub fn release(stage: ReleaseStage) -> Release {
    Release {
        name: "storage".to_owned(),
        stage: stage.into(),
        attempts: 1,
        detail: "array7: 3 volumes detached".to_owned(),
        max_in_flight: span(60, 0),
        changed_at: at(7, 0),
        ..Default::default()
    }
}

/// The last message, with that outcome.
pub fn ended(node: &str, second: i64, phase: Phase, outcome: Outcome) -> FenceUpdate {
    FenceUpdate { outcome: Some(outcome), ..update(node, second, phase, "") }
}

/// An outcome.
pub fn outcome(kind: OutcomeKind, reason: Reason, detail: &str) -> Outcome {
    Outcome {
        kind: kind.into(),
        reason: reason.into(),
        detail: detail.to_owned(),
        released: false,
        superseded: None,
        limit: None,
    }
}

/// A fence as it goes when nothing is in its way.
pub fn good_fence(node: &str) -> Vec<FenceUpdate> {
    let waiting = FenceUpdate {
        wait: Some(Wait {
            what: "a second Off".to_owned(),
            whose: "bmc".to_owned(),
            until: at(180, 0),
            otherwise: "next level".to_owned(),
        }),
        ..update(node, 4, Phase::Fencing, "bmc reads Off")
    };
    let released = Outcome { released: true, ..outcome(OutcomeKind::Fenced, Reason::Unspecified, "") };
    let proven = |update| FenceUpdate { evidence: Some(evidence()), ..update };
    vec![
        update(node, 0, Phase::Fencing, "opened for alice"),
        update(node, 1, Phase::Fencing, "off accepted by bmc"),
        waiting,
        FenceUpdate {
            releases: vec![release(ReleaseStage::Requested)],
            ..proven(update(node, 5, Phase::Fenced, "confirmed"))
        },
        FenceUpdate {
            releases: vec![release(ReleaseStage::Complete)],
            ..proven(ended(node, 7, Phase::Released, released))
        },
    ]
}

/// What a device said at that second.
pub fn reading(device: &str, power: Power, second: i64) -> DeviceReading {
    DeviceReading {
        device: device.to_owned(),
        power: power.into(),
        asked_at: at(second, 0),
        answered_at: at(second, 12),
        age: span(0, 12),
        ..Default::default()
    }
}

/// A fence whose device takes every off and never falls.
pub fn ignored_fence(node: &str) -> Vec<FenceUpdate> {
    let reads = |second| FenceUpdate {
        readings: vec![reading("bmc", Power::On, second)],
        wait: Some(Wait {
            what: "Off of level 1".to_owned(),
            whose: "bmc".to_owned(),
            until: at(20, 0),
            otherwise: "next level, or needs operator".to_owned(),
        }),
        ..update(node, second, Phase::Fencing, "bmc says On")
    };
    let spent = outcome(OutcomeKind::NeedsOperator, Reason::LevelsSpent, "off: bmc");
    vec![
        update(node, 0, Phase::Fencing, "opened for alice"),
        update(node, 1, Phase::Fencing, "off: bmc"),
        reads(2),
        reads(19),
        ended(node, 20, Phase::NeedsOperator, spent),
    ]
}

/// A node that its fence left on: the BMC took the off, and nothing came of it.
pub fn left_on(name: &str) -> Node {
    let off = OpenEffect { kind: EffectKind::Off.into(), target: "bmc".to_owned(), ..Default::default() };
    Node {
        generation: 7,
        phase: Phase::NeedsOperator.into(),
        reason: Reason::LevelsSpent.into(),
        detail: "not off within 20 s: bmc reads On".to_owned(),
        phase_since: at(-100, 0),
        fence_id: FENCE.to_owned(),
        fence_opened_at: at(-120, 0),
        open_effects: vec![off],
        wait: Some(Wait {
            what: "a decision (levels spent)".to_owned(),
            whose: "an operator".to_owned(),
            ..Default::default()
        }),
        ..node(name)
    }
}

/// A fence as it was.
pub fn fence() -> Fence {
    Fence {
        id: FENCE.to_owned(),
        node: "r1n07".to_owned(),
        generation: 7,
        cause: FenceCause::Asked.into(),
        askers: vec![FenceAsker {
            caller: "uid 1000".to_owned(),
            holder: "alice".to_owned(),
            reason: "disk on fire".to_owned(),
            at: at(0, 0),
            ..Default::default()
        }],
        opened_at: at(0, 0),
        ended_at: at(3_600, 0),
        deadline: span(600, 0),
        minimum_grade: Grade::Claimed.into(),
        levels: vec![
            FenceLevel { devices: vec!["bmc".to_owned()], device_class: DeviceClass::Host.into() },
            FenceLevel {
                devices: vec!["pdu-a".to_owned(), "pdu-b".to_owned()],
                device_class: DeviceClass::Supply.into(),
            },
        ],
        level: 1,
        off_sent: true,
        switched_off: vec!["bmc".to_owned()],
        holds: vec![DeviceHold {
            device: "bmc".to_owned(),
            found: [("restore_policy".to_owned(), "previous".to_owned())].into(),
            engaged: vec!["restore policy always-off".to_owned()],
            detail: "power button lock: not supported".to_owned(),
        }],
        releases: vec![release(ReleaseStage::Complete)],
        evidence: Some(evidence()),
        outcome: Some(Outcome { released: true, ..outcome(OutcomeKind::Fenced, Reason::Unspecified, "") }),
        timings: Some(FenceTimings {
            off_sent: span(1, 0),
            off_seen: span(4, 0),
            confirmed: span(5, 100),
            released: span(7, 0),
            back: span(3_600, 0),
        }),
        moments: vec![
            Moment { at: at(0, 0), phase: Phase::Fencing.into(), what: "opened for alice".to_owned() },
            Moment { at: at(5, 100), phase: Phase::Fenced.into(), what: "confirmed: observed".to_owned() },
        ],
        exchanges: vec![Exchange {
            at: at(1, 0),
            device: "bmc".to_owned(),
            asked: "power off, hard".to_owned(),
            answered: "taken".to_owned(),
            took: span(0, 14),
        }],
        exchanges_cut: true,
        ..Default::default()
    }
}
