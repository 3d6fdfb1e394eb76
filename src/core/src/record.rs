//! What is stored of a node. Readings, proofs and permits are not in it: they die with the process.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::device::{Grade, Identity, IdentityMatch};
use crate::ids::{DeviceId, FenceId, Generation, NodeId, ReleaseId};
use crate::ledger::Ledger;
use crate::outcome::{Outcome, Reason};
use crate::receipt::Issued;
use crate::restore::Restored;
use crate::time::WallTime;
use crate::topology::Topology;

/// Where a node stands. See "Life of a node" in the documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Not fenced.
    #[default]
    Normal,
    /// Being switched off and confirmed.
    Fencing,
    /// Proven off; volumes are being released.
    Fenced,
    /// Off, and every release complete or abandoned by name.
    Released,
    /// Being brought back.
    Unfencing,
    /// The on was sent and the node was not seen on in time.
    PowerOnFailed,
    /// A person must decide; the node is kept off.
    NeedsOperator(Reason),
    /// The hardware is gone for good: neither fenced nor brought back until the settings bring another machine.
    Retired,
}

impl Phase {
    /// A stable word for logs, metrics and tables.
    pub fn label(&self) -> &'static str {
        match self {
            Phase::Normal => "normal",
            Phase::Fencing => "fencing",
            Phase::Fenced => "fenced",
            Phase::Released => "released",
            Phase::Unfencing => "unfencing",
            Phase::PowerOnFailed => "power_on_failed",
            Phase::NeedsOperator(_) => "needs_operator",
            Phase::Retired => "retired",
        }
    }
}

/// A named reason to keep the node off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Why.
    pub reason: String,
    /// Who placed it.
    pub by: String,
    /// Since when.
    pub since: WallTime,
    /// Dropped by itself once everything is released (`then: POWER_ON`).
    pub drop_when_released: bool,
}

/// What happens to the node once everything is released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// It stays off until the hold is dropped.
    #[default]
    StayOff,
    /// The caller's own hold is dropped; with no other hold left the node is powered on.
    PowerOn,
}

/// Why a fence was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A caller asked.
    Asked,
    /// The node was found on although nobody unfenced it.
    Breach,
    /// A drill: on purpose, to see that it works.
    Drill,
    /// A restored store keeps the node off: nothing of it is proven, nothing is released, nothing is sent (S21).
    Restored,
}

/// How far one release is. *Requested → accepted → observed complete.*
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseStage {
    /// Not asked for yet.
    Pending,
    /// An attempt was stored and perhaps sent.
    Requested,
    /// The far side took it and works on it.
    Accepted,
    /// The far side was seen to have finished.
    Complete,
    /// A person gave it up, by name.
    Abandoned,
}

impl ReleaseStage {
    /// Nothing more is to be done.
    pub fn is_over(self) -> bool {
        matches!(self, ReleaseStage::Complete | ReleaseStage::Abandoned)
    }
}

/// One release of a fence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseState {
    /// Its name in the settings.
    pub id: ReleaseId,
    /// How long an attempt of it may still take effect after its sender stopped (S8).
    pub max_in_flight: Option<Duration>,
    /// How far it is.
    pub stage: ReleaseStage,
    /// Attempts so far.
    pub attempts: u32,
    /// An attempt from before a breach was never seen to have finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// What was said last: an error, a far side's word, who abandoned it and why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// What the device was told so that it stays off (S11).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldState {
    /// What was found before anything was changed, in the driver's own keys. Never overwritten while held.
    pub found: BTreeMap<String, String>,
    /// What was engaged; empty: nothing, and the evidence says "hold: none".
    pub engaged: Vec<String>,
    /// Why something could not be engaged; for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// A person's word that the node is off (S12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attestation {
    /// Who.
    pub by: String,
    /// Why they know.
    pub reason: String,
    /// When.
    pub at: WallTime,
    /// The generation for which it holds.
    pub generation: Generation,
}

/// One device's part in a proof, for people and history. It proves nothing by itself any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceEvidence {
    /// The device.
    pub device: DeviceId,
    /// Its own words at the last reading.
    pub said: String,
    /// Readings in a row that said Off.
    pub readings: u32,
    /// From the first of them to the last.
    pub lasted: Duration,
    /// What was engaged to keep it off.
    pub hold: Vec<String>,
    /// Whether the long window was asked for, and why (`already off`, `no epochs`, `resumed`, ...).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_window: Option<String>,
    /// What comparing identities said.
    pub identity: IdentityMatch,
}

/// Why the node is held to be off, as told to callers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// How good it is.
    pub grade: Grade,
    /// What lowered the grade.
    pub lowered_by: Vec<String>,
    /// Which level held, from 1; 0 for a person's word.
    pub level: usize,
    /// When the first Off of the confirming run was answered.
    pub off_since: WallTime,
    /// When it was confirmed.
    pub confirmed_at: WallTime,
    /// The devices of the level.
    pub devices: Vec<DeviceEvidence>,
}

/// Something that happened in a fence, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// When it was stored.
    pub at: WallTime,
    /// The phase it led to.
    pub phase: String,
    /// What happened, in words.
    pub what: String,
}

/// Where the audit stood: the number and the hash of its newest entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditHead {
    /// The number of the entry, from 1.
    pub seq: u64,
    /// SHA-256 in hexadecimal digits.
    pub hash: String,
}

/// A limit was set aside, by name (S14).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAside {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// One fence of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// Its id.
    pub id: FenceId,
    /// The node.
    pub node: NodeId,
    /// The generation that it opened.
    pub generation: Generation,
    /// Why it was opened.
    pub cause: Cause,
    /// The first caller's reason.
    pub reason: String,
    /// The first caller.
    pub by: String,
    /// The holder that the first caller placed.
    pub holder: String,
    /// When the intent was stored.
    pub opened_at: WallTime,
    /// How long the first caller gives it, from the intent to the confirmation.
    pub deadline: Duration,
    /// Since when it is being confirmed: the intent, or what made its evidence begin from zero. The deadline counts from
    /// here, whichever process goes on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirming_since: Option<WallTime>,
    /// The least grade that lets it be confirmed.
    pub min_grade: Grade,
    /// The node's levels as they were then.
    pub topology: Topology,
    /// The level being tried, from 0.
    pub level: usize,
    /// How often the evidence began from zero within this fence; what was proven before is void.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: u32,
    /// Whether an off may have been sent: from here on it runs to its end.
    pub off_sent: bool,
    /// Every device that was, or may have been, switched off.
    pub switched_off: BTreeSet<DeviceId>,
    /// Devices whose session was lost within this fence; binds successors (S2).
    pub lost: BTreeSet<DeviceId>,
    /// Devices that answered within this fence and fell silent since, in the same session. A successor, whose own
    /// sessions are new ones, stores them as lost before anything else.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub silent: BTreeSet<DeviceId>,
    /// Gateways that reached none of its devices and let another one try, by name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub handed_over: BTreeSet<String>,
    /// Holds, by device.
    pub holds: BTreeMap<DeviceId, HoldState>,
    /// Releases, in their order.
    pub releases: Vec<ReleaseState>,
    /// A person's word, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation: Option<Attestation>,
    /// Why the node is held to be off, once it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// How it ended, or where it stands for whoever asks for its outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// When it ended (unfence, breach, abort, stand-down).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<WallTime>,
    /// The newest entry of the audit when the fence last came to another phase: its confirmation, its end. Whoever cuts
    /// the audit's end off would have to change the store as well. A breach's fence begins with that of the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditHead>,
    /// Who set the budget aside for it, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_override: Option<SetAside>,
    /// The releases of the unfence that it interrupted before the node was seen on, all over: where it ends before an off of
    /// its own was sent, that goes on. `None`: it interrupted none that owes an on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Vec<ReleaseState>>,
    /// What happened, oldest first; at most [`Fence::MOMENTS`].
    pub moments: Vec<Moment>,
}

impl Fence {
    /// How many moments are kept.
    pub const MOMENTS: usize = 200;

    /// The release of that name.
    pub fn release(&self, id: &ReleaseId) -> Option<&ReleaseState> {
        self.releases.iter().find(|release| release.id == *id)
    }

    /// It ended before an off was sent.
    pub fn sent_nothing(&self) -> bool {
        self.outcome.as_ref().is_some_and(Outcome::sent_nothing)
    }

    /// Whether every release is complete or abandoned.
    pub fn all_released(&self) -> bool {
        self.releases.iter().all(|release| release.stage.is_over())
    }
}

/// That the hardware is gone for good, and who said so (S16).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retirement {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: WallTime,
    /// The devices as the settings had them then, in words. `None`: the settings do not have the node (any more), so
    /// that whatever brings it back is another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
}

/// What an unfence will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bringing {
    /// Power on, and wait for On.
    #[default]
    PowerOn,
    /// Nothing was sent yet: undo the hold, no on.
    Abort,
    /// It was alive: no on of the host; ends when a host device reads On.
    StandDown,
}

/// All that is stored of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// The node.
    pub node: NodeId,
    /// Number of its fences and unfences.
    pub generation: Generation,
    /// Where it stands.
    pub phase: Phase,
    /// Who keeps it off.
    pub holds: BTreeMap<String, Hold>,
    /// What is open.
    pub ledger: Ledger,
    /// The open fence, or the last one until the node is back.
    pub fence: Option<Fence>,
    /// What the unfence under way does.
    pub bringing: Bringing,
    /// Breaches in a row; the wait before the next off grows with it.
    pub breaches: u32,
    /// Identities learned at an earlier check, never in a fence (S13).
    pub learned: BTreeMap<DeviceId, Identity>,
    /// Receipts that are open, or were ended before their time, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<Issued>,
    /// When the last fence ended with the node back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_since: Option<WallTime>,
    /// Supplies whose wiring a drill verified, each with the address that it had then: another one is other wiring.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub wired: BTreeMap<DeviceId, String>,
    /// When the last drill was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drilled_at: Option<WallTime>,
    /// That the hardware is gone for good; only in phase Retired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired: Option<Retirement>,
    /// The record came out of a backup, and no device has said since whether the node is on (S21).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Restored>,
}

impl NodeRecord {
    /// A node of which nothing is stored yet.
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            generation: Generation(0),
            phase: Phase::Normal,
            holds: BTreeMap::new(),
            ledger: Ledger::default(),
            fence: None,
            bringing: Bringing::PowerOn,
            breaches: 0,
            learned: BTreeMap::new(),
            receipts: Vec::new(),
            back_since: None,
            wired: BTreeMap::new(),
            drilled_at: None,
            retired: None,
            restored: None,
        }
    }

    /// Kept off since a restore and not by a fence: nothing of it is proven (S21).
    pub fn is_groundless(&self) -> bool {
        self.fence.as_ref().is_some_and(|fence| fence.cause == Cause::Restored)
    }

    /// Whether what its devices say decides where it stands: it came out of a backup, and nobody acted since (S21).
    pub fn is_undecided(&self) -> bool {
        crate::machine::is_undecided(self)
    }

    /// Nobody keeps it off and nothing is open: its settings may be changed, or taken away.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Normal | Phase::Retired)
            && self.holds.is_empty()
            && self.ledger.open().is_empty()
    }

    /// What keeps it from being at rest, in words: its phase, its holders, what is open.
    pub fn unrest(&self) -> String {
        let mut words = vec![self.phase.label().replace('_', " ")];
        if !self.holds.is_empty() {
            let holders: Vec<&str> = self.holds.keys().map(String::as_str).collect();
            words.push(format!("held by {}", holders.join(", ")));
        }
        if !self.ledger.open().is_empty() {
            let open: Vec<&str> = self.ledger.open().iter().map(|open| open.kind.label()).collect();
            words.push(format!("with open effects: {}", open.join(", ")));
        }
        words.join(", ")
    }
}
