//! What is stored of a node. Readings, proofs and permits are not in it: they die with the process.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::device::{DeviceSpec, Expected, Identity};
use crate::ids::{DeviceId, FenceId, Generation, NodeId, ReleaseId};
use crate::ledger::Ledger;
use crate::outcome::Reason;
use crate::roles;
use crate::time::WallTime;
use crate::topology::Topology;

mod evidence;
mod fence;
mod idle_keys;
mod issued;
mod release;
mod restored;

pub use evidence::{Attestation, DeviceEvidence, Evidence};
pub use fence::{AuditHead, Cause, Fence, HoldState, Moment, Said, SetAside};
pub use idle_keys::IdleKeys;
pub use issued::{Ended, Issued, Standing};
pub use release::{Part, ReleaseStage, ReleaseState};
pub use restored::Restored;

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
    /// The node was found on since: where the hold is a child's, what its parent proved of it is void (S22).
    #[serde(default, skip_serializing_if = "is_unset")]
    pub breached: bool,
    /// An admin of this node ended it: where the hold is a child's, it proves nothing of its child any more, and goes once nothing of that
    /// child relies on it (S22).
    #[serde(default, skip_serializing_if = "is_unset")]
    pub ended: bool,
    /// It was placed by a call of its own, without a fence: it stands until it is dropped by name.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub placed_alone: bool,
    /// It stood in the backup out of which the store came: no pause and no limit ends it with a fence (S21).
    #[serde(default, skip_serializing_if = "is_unset")]
    pub kept: bool,
    /// Who asked for a fence under this name: by the roles of any of them the machine on which the node runs may be fenced for it (S22). Empty: it
    /// was placed by the gateway, without a fence, or before this was stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub askers: Vec<roles::Person>,
}

impl Hold {
    /// So many who ask under one name are kept.
    const ASKERS: usize = 16;

    /// Those by whose word the node is off. Whoever only holds what is off asked for no off.
    pub fn askers(&self) -> Vec<roles::Person> {
        let is_older = self.askers.is_empty() && !self.placed_alone;
        let by_name = is_older.then(|| roles::Person::known_by_name(&self.by));
        self.askers.iter().cloned().chain(by_name).collect()
    }

    /// One more asked under this name. Nobody's right goes for that.
    pub(crate) fn is_asked_by(&mut self, asker: Option<&roles::Person>) {
        let is_known = |asker: &roles::Person| self.askers.iter().any(|known| known.is_same(asker));
        let new = asker.filter(|asker| self.askers.len() < Self::ASKERS && !is_known(asker));
        self.askers.extend(new.cloned());
    }

    /// Who placed it, for people. `None`: [`by`](Self::by) says all that is known.
    pub fn shown(&self) -> Option<&str> {
        // Of one that was placed alone the first who asked for a fence came later, and may be another person behind the same name.
        let placed = self.askers.first().filter(|asker| !self.placed_alone && asker.name == self.by);
        placed?.shown()
    }
}

fn is_unset(flag: &bool) -> bool {
    !flag
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
    /// Whom the far sides of its last fence's releases had for the node, in their own words: what is left there is that one's, and not
    /// whoever's has its name since (K1).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub met: BTreeMap<ReleaseId, String>,
}

/// Who else than a device has said that the identity learned from it is the node's (S13).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityProof {
    /// Who, and how, in words.
    pub by: String,
    /// When.
    pub at: WallTime,
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

/// A child's hold that an admin ended: for that fence of the child this node is not fenced again, nor is what it was off by joined again. A
/// later fence of this node, which somebody else began, the child may join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedHold {
    /// The child's fence.
    pub of: FenceId,
    /// The fence of this node that was open then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<FenceId>,
}

/// A fence for which a gateway let another one lead (S17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// The fence.
    pub fence: FenceId,
    /// When it did so last.
    pub at: WallTime,
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
    pub learned: BTreeMap<DeviceId, Arc<Identity>>,
    /// Who else than the device itself has said of these learned identities that they are the node's. A record of a version that knew
    /// none has none: what it learned was said by the device alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub identity_proofs: BTreeMap<DeviceId, IdentityProof>,
    /// Receipts that are open, or were ended before their time, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<Issued>,
    /// When the last fence ended with the node back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_since: Option<WallTime>,
    /// Whether an off was sent in the last fence that ended: what was set up for it goes once the node was seen to be back (K2).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub off_was_sent: bool,
    /// Supplies whose wiring a drill verified, each with the address that it had then: another one is other wiring.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub wired: BTreeMap<DeviceId, String>,
    /// When the last drill was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drilled_at: Option<WallTime>,
    /// That the hardware is gone for good; only in phase Retired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired: Option<Retirement>,
    /// Holds of children that an admin of this node ended (S22).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, EndedHold>,
    /// Keys of requests that changed nothing (S20).
    #[serde(default, skip_serializing_if = "IdleKeys::is_empty")]
    pub idle_keys: IdleKeys,
    /// The last fence, asked for by programs alone, for which a gateway let another one lead (S17).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_over: Option<HandedOver>,
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
            identity_proofs: BTreeMap::new(),
            receipts: Vec::new(),
            back_since: None,
            off_was_sent: false,
            wired: BTreeMap::new(),
            drilled_at: None,
            retired: None,
            refused: BTreeMap::new(),
            idle_keys: IdleKeys::default(),
            handed_over: None,
            restored: None,
        }
    }

    /// Whether it is the same but for the keys of requests that changed nothing.
    pub fn is_but_for_idle_keys(&self, other: &Self) -> bool {
        *self == Self { idle_keys: self.idle_keys.clone(), ..other.clone() }
    }

    /// Kept off since a restore and not by a fence: nothing of it is proven (S21).
    pub fn is_groundless(&self) -> bool {
        self.fence.as_ref().is_some_and(|fence| fence.cause == Cause::Restored)
    }

    /// Whether what its devices say decides where it stands: it came out of a backup, and nobody acted since (S21).
    pub fn is_undecided(&self) -> bool {
        match self.phase {
            Phase::Normal => self.restored.is_some(),
            Phase::NeedsOperator(Reason::Restored) => true,
            Phase::Fenced => self.is_groundless(),
            _ => false,
        }
    }

    /// What this device must say of itself: what the settings say, else what was learned at an earlier check (S13).
    pub fn expected(&self, spec: &DeviceSpec) -> Expected {
        self.expected_of(&spec.id, &spec.identity)
    }

    /// The same, where the settings say this of it.
    pub fn expected_of(&self, device: &DeviceId, set: &Identity) -> Expected {
        if !set.is_empty() {
            return Expected { identity: set.clone(), is_learned: false };
        }
        let learned = self.learned.get(device);
        Expected {
            identity: learned.map(|learned| Identity::clone(learned)).unwrap_or_default(),
            is_learned: !self.identity_proofs.contains_key(device),
        }
    }

    /// What the host devices of these levels say of themselves, as the settings have it or as it was learned (S13). Empty: nobody knows.
    pub fn identities(&self, topology: &Topology) -> Vec<Identity> {
        let known = topology.hosts().map(|spec| self.expected(spec).identity);
        known.filter(|identity| !identity.is_empty()).collect()
    }

    /// The holders that were told that the node stays off until they drop their holds: no fence of it ends before its first off (S7).
    pub fn held_alone(&self) -> Vec<String> {
        self.holders(|hold| hold.placed_alone)
    }

    /// The holders whose holds no pause and no limit ends with a fence, before its first off: these, and those that a restore kept, which
    /// know nothing of it (S21).
    pub fn held_through_limits(&self) -> Vec<String> {
        self.holders(|hold| hold.placed_alone || hold.kept)
    }

    fn holders(&self, of: impl Fn(&Hold) -> bool) -> Vec<String> {
        self.holds.iter().filter(|(_, hold)| of(hold)).map(|(holder, _)| holder.clone()).collect()
    }

    /// Nobody keeps it off and nothing is open: its settings may be changed, or taken away.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Normal | Phase::Retired)
            && self.holds.is_empty()
            && self.ledger.open().is_empty()
    }

    /// Whether other settings may be taken for it, with its devices where they were: it is at rest, or a person decides what is done next.
    pub fn takes_other_settings(&self) -> bool {
        self.is_at_rest() || matches!(self.phase, Phase::NeedsOperator(_) | Phase::PowerOnFailed)
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
