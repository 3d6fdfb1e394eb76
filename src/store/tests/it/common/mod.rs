//! Records to store.
#![allow(dead_code, clippy::unwrap_used)] // Each test binary uses a part of it.

pub mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use picket_core::device::{DeviceClass, DeviceSpec, Grade, Identity, IdentityMatch, MaxInFlight};
use picket_core::ids::{
    DeviceId, EffectId, FenceId, Generation, Incarnation, NodeId, ReceiptId, ReleaseId, Version,
};
use picket_core::ledger::Ledger;
use picket_core::outcome::{Outcome, Reason};
use picket_core::record::{
    Attestation, AuditHead, Bringing, Cause, DeviceEvidence, Ended, EndedHold, Evidence, Fence, HandedOver,
    Hold, HoldState, IdentityProof, IdleKeys, Issued, Moment, NodeRecord, Part, Phase, ReleaseStage,
    ReleaseState, Retirement, SetAside,
};
use picket_core::roles::{Person, Proof};
use picket_core::store::{KeyEntry, Write};
use picket_core::time::WallTime;
use picket_core::topology::{Level, Topology};
use proptest::test_runner::{Config as ProptestConfig, FileFailurePersistence};

pub fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

pub fn device(name: &str) -> DeviceId {
    DeviceId::new(name).unwrap()
}

pub fn at(millis: u64) -> WallTime {
    WallTime::from_millis(millis)
}

/// A life of the store, told apart by `n`.
pub fn life(n: u8) -> Incarnation {
    Incarnation::mint(at(1_700_000_000_000), [n; 10])
}

/// A fence's id, opened at `millis`.
pub fn fence_id(millis: u64, n: u8) -> FenceId {
    FenceId::mint(at(millis), [n; 10])
}

fn spec(id: &str, class: DeviceClass) -> DeviceSpec {
    DeviceSpec {
        id: device(id),
        class,
        grade: Grade::Observed,
        has_epochs: class == DeviceClass::Host,
        longest_cycle: Duration::from_secs(15),
        call: Duration::from_secs(5),
        dwell: Duration::from_millis(1_500),
        readings: 2,
        max_in_flight: MaxInFlight { off: Some(Duration::from_secs(60)), on: None },
        trust_after_restart: (class == DeviceClass::Host).then_some(Duration::from_secs(60)),
        verified: class == DeviceClass::Supply,
        identity: Identity {
            uuid: Identity::usable_uuid("00112233-4455-6677-8899-aabbccddeeff"),
            serial: None,
        },
    }
}

/// A fence that has been through a lot.
pub fn fence(of: &NodeId, id: FenceId, opened_at: WallTime) -> Fence {
    let topology = Topology::new(vec![
        Level { devices: vec![spec("bmc", DeviceClass::Host)] },
        Level { devices: vec![spec("pdu-a", DeviceClass::Supply), spec("pdu-b", DeviceClass::Supply)] },
    ]);
    Fence {
        id,
        node: of.clone(),
        generation: Generation(3),
        cause: Cause::Breach,
        reason: "disk errors — \"r1\"\n".to_owned(),
        by: "ops@example".to_owned(),
        holder: "ops".to_owned(),
        by_person: true,
        opened_at,
        deadline: Duration::from_secs(600),
        confirming_since: Some(opened_at),
        min_grade: Grade::Claimed,
        topology: topology.unwrap().at(BTreeMap::from([(device("bmc"), "10.1.0.7:623".to_owned())])),
        level: 1,
        first_level: 0,
        round: 0,
        off_sent: true,
        boot: Some("b2f1c0de-0000-4000-8000-00000000b007".to_owned()),
        gave_way: true,
        switched_off: BTreeSet::from([device("bmc"), device("pdu-a")]),
        identified: BTreeSet::new(),
        seen_off: BTreeSet::new(),
        said: BTreeMap::new(),
        proved_held: BTreeMap::new(),
        was_proven: true,
        lost: BTreeSet::from([device("bmc")]),
        silent: BTreeSet::from([device("pdu-a")]),
        handed_over: BTreeSet::new(),
        holds: BTreeMap::from([(
            device("bmc"),
            HoldState {
                found: BTreeMap::from([("restore_policy".to_owned(), "previous".to_owned())]),
                engaged: vec!["restore policy always-off".to_owned()],
                outlives: vec!["restore policy always-off".to_owned()],
                detail: "button lock: not supported".to_owned(),
                anew: false,
                undone: vec!["watchdog stopped".to_owned()],
            },
        )]),
        releases: vec![
            ReleaseState {
                lingers: Some(Duration::from_secs(30)),
                asked_by: Some(EffectId(2)),
                since: Some(opened_at.after(Duration::from_secs(90))),
                barred: true,
                by_name: true,
                id: ReleaseId::new("detach").unwrap(),
                max_in_flight: Some(Duration::from_secs(60)),
                stage: ReleaseStage::Accepted,
                attempts: 2,
                unfinished: true,
                passed_on: None,
                detail: "https://storage.example/jobs/7".to_owned(),
                subject: Some("node r1n07 of rack 1".to_owned()),
                part: None,
            },
            ReleaseState {
                part: Some(Part {
                    volume: "vol-0abc".to_owned(),
                    device: "/dev/vdb".to_owned(),
                    name: "data-1".to_owned(),
                }),
                ..ReleaseState::pending(ReleaseId::new("volumes").unwrap().part("vol-0abc"), None)
            },
            ReleaseState::pending(ReleaseId::new("inform").unwrap(), None),
        ],
        attestation: Some(Attestation {
            by: "ops@example".to_owned(),
            reason: "I pulled the plug".to_owned(),
            at: opened_at.after(Duration::from_secs(120)),
            generation: Generation(3),
        }),
        evidence: Some(Evidence {
            grade: Grade::Hypervisor,
            lowered_by: vec!["bmc: identity unknown".to_owned()],
            level: 1,
            off_since: opened_at.after(Duration::from_secs(4)),
            confirmed_at: opened_at.after(Duration::from_secs(20)),
            devices: vec![DeviceEvidence {
                device: device("bmc"),
                said: "chassis status 0x60".to_owned(),
                readings: 2,
                lasted: Duration::from_millis(15_250),
                hold: vec!["restore policy always-off".to_owned()],
                long_window: Some("already off".to_owned()),
                identity: IdentityMatch::Unknown,
            }],
        }),
        outcome: Some(Outcome::NeedsOperator(Reason::ReleaseDeadline)),
        ended_at: None,
        audit: Some(AuditHead { seq: 57, hash: "0123456789abcdef".repeat(4) }),
        budget_override: Some(SetAside { by: "ada@example".to_owned(), reason: "it is true".to_owned() }),
        quorum_override: Some(SetAside { by: "ada@example".to_owned(), reason: "it is gone".to_owned() }),
        interrupted: None,
        moments: vec![Moment {
            at: opened_at,
            phase: "fencing".to_owned(),
            what: "the intent was stored".to_owned(),
        }],
    }
}

/// A ledger in which one effect of each kind is open.
/// The session of the first effect.
pub const SESSION: &str = "10.1.0.7:443/redfish/v1/SessionService/Sessions/7 of picket";

pub fn ledger() -> Ledger {
    let open = |id: u64, kind: serde_json::Value, life: serde_json::Value| serde_json::json!({ "id": id, "kind": kind, "generation": 3, "term": 7, "opened_at": 1_795_250_372_042_u64, "life": life });
    let minute = serde_json::json!({ "secs": 60, "nanos": 500_000_000 });
    let mut off = open(11, serde_json::json!({ "off": "bmc" }), minute.clone());
    off["session"] = serde_json::json!(SESSION);
    serde_json::from_value(serde_json::json!({
        "next": 16,
        "open": [
            off,
            open(12, serde_json::json!({ "on": "pdu-a" }), serde_json::Value::Null),
            open(13, serde_json::json!({ "hold": "bmc" }), minute.clone()),
            open(14, serde_json::json!({ "unhold": "bmc" }), minute.clone()),
            open(15, serde_json::json!({ "release": "detach" }), minute.clone()),
            open(16, serde_json::json!({ "receipt": "0198-1" }), minute),
        ],
    }))
    .unwrap()
}

/// Who said that the BMC is the node's.
pub const WITNESS: &str = "Node r1n07 in Kubernetes has the same system UUID";

/// A record in `phase` that has everything in it.
pub fn rich(phase: Phase) -> NodeRecord {
    let name = node("r1n07");
    let id = fence_id(1_795_250_372_042, 7);
    NodeRecord {
        generation: Generation(3),
        wired: BTreeMap::from([(device("pdu-a"), "10.1.0.9:161/3".to_owned())]),
        drilled_at: Some(at(1_794_000_000_000)),
        retired: (phase == Phase::Retired).then(|| Retirement {
            by: "ops@example".to_owned(),
            reason: "sold".to_owned(),
            at: at(1_795_250_400_000),
            settings: Some("sim:r1n07".to_owned()),
            met: BTreeMap::from([(ReleaseId::new("pods").unwrap(), "the machine of then".to_owned())]),
        }),
        bringing: if phase == Phase::Unfencing { Bringing::StandDown } else { Bringing::PowerOn },
        phase,
        holds: BTreeMap::from([(
            "ops".to_owned(),
            Hold {
                reason: "disk errors".to_owned(),
                by: "ops@example".to_owned(),
                since: at(1_795_250_372_042),
                drop_when_released: true,
                breached: false,
                ended: true,
                placed_alone: true,
                kept: false,
                askers: vec![Person { name: "ops@example".to_owned(), proof: Proof::Certificate }],
            },
        )]),
        ledger: ledger(),
        fence: Some(fence(&name, id, at(1_795_250_372_042))),
        refused: BTreeMap::from([("child:vm1".to_owned(), EndedHold { of: id, within: Some(id) })]),
        idle_keys: idle_keys(id),
        handed_over: Some(HandedOver { fence: id, at: at(1_795_250_300_000) }),
        breaches: 2,
        learned: BTreeMap::from([(
            device("bmc"),
            Arc::new(Identity {
                uuid: Identity::usable_uuid("00112233445566778899aabbccddeeff"),
                serial: Some("SN1".to_owned()),
            }),
        )]),
        identity_proofs: BTreeMap::from([(
            device("bmc"),
            IdentityProof { by: WITNESS.to_owned(), at: at(1_794_000_000_000) },
        )]),
        receipts: vec![receipt(None), receipt(Some(Ended::Returned))],
        back_since: Some(at(1_795_000_000_000)),
        ..NodeRecord::new(name)
    }
}

/// The key of a hold that was placed again.
fn idle_keys(fence: FenceId) -> IdleKeys {
    let mut key = serde_json::to_value(entry("abc", fence, at(1_795_250_372_042), None)).unwrap();
    key["key"] = "ops@example\nagain".into();
    key["by"] = "ada@example".into();
    serde_json::from_value(serde_json::Value::Array(vec![key])).unwrap()
}

/// A receipt that has everything in it.
fn receipt(ended: Option<Ended>) -> Issued {
    let issued_at = at(1_795_250_372_042);
    Issued {
        id: ReceiptId::mint(issued_at, [9; 10]),
        effect: EffectId(16),
        fence: fence_id(1_795_250_372_042, 7),
        generation: Generation(3),
        round: 1,
        by: "db@example".to_owned(),
        audience: "storage".to_owned(),
        system_uuid: "00112233445566778899aabbccddeeff".to_owned(),
        grade: Grade::Observed,
        simulated: false,
        off_at: at(1_795_250_371_900),
        issued_at,
        expires_at: issued_at.after(Duration::from_secs(60)),
        ended,
    }
}

/// A write of `record` over version `expected`, with nothing beside it.
pub fn write_of(record: NodeRecord, expected: u64) -> Write {
    Write { expected: Version(expected), record, fences: Vec::new(), keys: Vec::new() }
}

/// A small record that can be told apart by `generation`.
pub fn plain(name: &str, generation: u64) -> NodeRecord {
    NodeRecord { generation: Generation(generation), ..NodeRecord::new(node(name)) }
}

pub fn entry(digest: &str, fence: FenceId, bound: WallTime, outcome: Option<Outcome>) -> KeyEntry {
    KeyEntry { digest: digest.to_owned(), fence: Some(fence), at: bound, outcome }
}

/// A property is tried with `usual` cases, or with as many as a soak asks for; what fails is kept beside its test.
pub fn config(usual: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|asked| asked.parse().ok());
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::with_cases(asked.unwrap_or(usual))
    }
}
