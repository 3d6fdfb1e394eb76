//! What is stored of one fence.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Attestation, Evidence, ReleaseStage, ReleaseState};
use crate::device::{DeviceClass, Grade, Identity, IdentityMatch};
use crate::ids::{DeviceId, FenceId, Generation, NodeId, ReleaseId};
use crate::outcome::Outcome;
use crate::time::WallTime;
use crate::topology::Topology;

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

/// What the device was told so that it stays off (S11).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldState {
    /// What was found before anything was changed, in the driver's own keys. Never overwritten while held. What begins with
    /// [`SEEN`](Self::SEEN) was so before the first off of one generation, and of no other.
    pub found: BTreeMap<String, String>,
    /// What was engaged; empty: nothing, and the evidence says "hold: none".
    pub engaged: Vec<String>,
    /// What of that a device which has just started does not say by itself (S2).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outlives: Vec<String>,
    /// It was engaged again after the node was proven off: that it stands shows nothing of how the device lived since (S2).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anew: bool,
    /// What was engaged, and was found undone by somebody else: it is to be engaged again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<String>,
    /// Why something could not be engaged; for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl HoldState {
    /// Keys of [`found`](Self::found) that begin so tell what the device's evidence is measured by, and nothing that is put back.
    pub const SEEN: &str = "seen:";

    /// What of it goes over to another generation: what is put back at its end.
    pub(crate) fn without_seen(mut self) -> Self {
        self.found.retain(|key, _| !key.starts_with(Self::SEEN));
        self.undone.clear();
        self
    }
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

fn is_none_after(level: &usize) -> bool {
    *level == 0
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
    /// A person opened it, joined it, or asked for it to be tried again: whether the node recovered is not asked (K9).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_person: bool,
    /// When the intent was stored.
    pub opened_at: WallTime,
    /// How long it has, from the intent to the confirmation: as the first caller asked, or longer for one who joined.
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
    /// The level with which this round began, from 0: supplies, or a parent, that proved the node before are tried first. Those
    /// after it follow, and round to those before it; after a parent the whole round from 0 on.
    #[serde(default, skip_serializing_if = "is_none_after")]
    pub first_level: usize,
    /// How often the evidence began from zero within this fence; what was proven before is void.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: u32,
    /// Whether an off may have been sent: from here on it runs to its end.
    pub off_sent: bool,
    /// The node's boot before the first off, as its liveness source names it: in another one it did not recover by itself (S15).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// Whether a whole round of its levels came to nothing, and nothing was sent: for whoever leads next it stands behind the others (S14).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gave_way: bool,
    /// Every device that was, or may have been, switched off.
    pub switched_off: BTreeSet<DeviceId>,
    /// Devices that said within this fence whose machine they control, before an off was sent: from one that does not say it again,
    /// in another session or to another gateway, nothing counts, and nothing is sent to it (S13).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub identified: BTreeSet<DeviceId>,
    /// What devices said first within this fence, where nobody knows whose machine they control (S13).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub said: BTreeMap<DeviceId, Said>,
    /// Devices whose session was lost within this fence; binds successors (S2).
    pub lost: BTreeSet<DeviceId>,
    /// Of the lost ones those for which a person said afterwards that he looked at the machine, and that it is off (S2).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub seen_off: BTreeSet<DeviceId>,
    /// What was engaged of the holds of devices, and outlives a restart, when those last proved the node off in this generation, with
    /// releases that were not over: where it reads engaged still, their Off counts again after a loss (S2).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub proved_held: BTreeMap<DeviceId, Vec<String>>,
    /// The node was proven off, or a person vouched for it, before the evidence began from zero: found on since, it is in breach (S11).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_proven: bool,
    /// Devices that answered within this fence and fell silent since, in the same session. A successor, whose own
    /// sessions are new ones, stores them as lost before anything else.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub silent: BTreeSet<DeviceId>,
    /// Gateways that reached none of its devices and let another one try, by name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub handed_over: BTreeSet<String>,
    /// Holds, by device.
    pub holds: BTreeMap<DeviceId, HoldState>,
    /// Releases, in their order; the parts of one stand before it.
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
    /// The same of the store's quorum (S17).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum_override: Option<SetAside>,
    /// The releases of the unfence that it interrupted before the node was seen on, all over: where it ends before an off of
    /// its own was sent, that goes on. `None`: it interrupted none that owes an on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Vec<ReleaseState>>,
    /// What happened, oldest first; at most [`Fence::MOMENTS`].
    pub moments: Vec<Moment>,
}

/// Whose machine a device controls, by its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// What it answered.
    #[serde(default, skip_serializing_if = "Identity::is_empty")]
    pub identity: Identity,
    /// What the handshake of its session said, in words; `None`: there is no such thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_side: Option<String>,
}

impl Said {
    /// Whether that is another far side than one that said `later`.
    pub fn is_another_than(&self, later: &Said) -> bool {
        let is_another_machine = self.identity.compare(&later.identity) == IdentityMatch::Mismatch;
        let far_sides = self.far_side.as_ref().zip(later.far_side.as_ref());
        is_another_machine || far_sides.is_some_and(|(first, later)| first != later)
    }

    /// What is known of it with what it says later: the first word stays.
    pub fn add(&mut self, later: Said) {
        if self.identity.is_empty() {
            self.identity = later.identity;
        }
        self.far_side = self.far_side.take().or(later.far_side);
    }

    /// In words.
    pub fn words(&self) -> String {
        match &self.far_side {
            Some(far_side) if self.identity.is_empty() => format!("{far_side}, by its handshake"),
            _ => self.identity.words(),
        }
    }
}

impl Fence {
    /// A release whose far side may know the node by its name alone: as it was when the fence began, or as `now` says of one that is set. What was
    /// abandoned lets go of nobody.
    pub fn by_name(&self, now: impl Fn(&ReleaseId) -> Option<bool>) -> Option<&ReleaseId> {
        let goes_on = self.releases.iter().filter(|release| release.stage != ReleaseStage::Abandoned);
        let mut by_name = goes_on.filter(|release| {
            let is_done = release.stage == ReleaseStage::Complete && release.by_name;
            is_done || now(&release.id).unwrap_or(release.by_name)
        });
        by_name.next().map(|release| &release.id)
    }

    /// The levels that come after that one in this round, in their order.
    pub fn levels_after(&self, level: usize) -> impl Iterator<Item = usize> + use<> {
        let (levels, first) = (self.topology.levels().len(), self.first_level);
        // What is tried ahead has its own turn after those before it.
        let begins_again = self.is_ahead(level);
        let steps = if begins_again { 0..levels } else { level + 1..level + levels };
        steps.map(move |step| step % levels).take_while(move |next| begins_again || *next != first)
    }

    /// The level that comes after that one; `None`: all have been tried.
    pub fn level_after(&self, level: usize) -> Option<usize> {
        self.levels_after(level).next()
    }

    /// Whether that level is a parent's that proved the node before, tried before the node's own levels. The node may run on another
    /// machine by now, and that one is not switched off before its turn (S22).
    pub fn is_ahead(&self, level: usize) -> bool {
        level > 0 && level == self.first_level && self.is_of_a_parent(level)
    }

    /// Whether its parent is tried in its turn: the levels before it were spent in this round.
    pub fn tries_its_parent(&self) -> bool {
        self.is_of_a_parent(self.level) && !self.is_ahead(self.level)
    }

    /// Whether the parent's level holds the proof.
    pub fn proved_by_its_parent(&self) -> bool {
        let proved = self.evidence.as_ref().and_then(|evidence| evidence.level.checked_sub(1));
        proved.is_some_and(|level| self.is_of_a_parent(level))
    }

    fn is_of_a_parent(&self, level: usize) -> bool {
        let level = self.topology.level(level);
        level.is_some_and(|level| level.devices.iter().any(|spec| spec.class == DeviceClass::Parent))
    }

    /// Where a new round begins: with the supplies, or the parent, that proved the node, as its host devices may not answer.
    fn proved_beside(&self) -> Option<usize> {
        let proved = self.evidence.as_ref()?.level.checked_sub(1)?;
        let level = self.topology.level(proved)?;
        level.devices.iter().all(|spec| spec.class != DeviceClass::Host).then_some(proved)
    }

    /// What was proven so far is void.
    pub(crate) fn begin_from_zero(&mut self, at: WallTime) {
        self.first_level = self.proved_beside().unwrap_or(0);
        self.level = self.first_level;
        self.confirming_since = Some(at);
        self.gave_way = false;
        self.round += 1;
        self.was_proven |= self.evidence.is_some();
        if let Some(evidence) = self.evidence.take().filter(|_| !self.all_released()) {
            let held = evidence.devices.into_iter().filter_map(|one| {
                let mut words = one.hold;
                let outlives = &self.holds.get(&one.device).filter(|hold| !hold.anew)?.outlives;
                words.retain(|word| outlives.contains(word));
                (!words.is_empty()).then_some((one.device, words))
            });
            self.proved_held = held.collect();
        }
        self.outcome = None;
    }

    /// Whether the node was held to be off in this generation, or something of it let go: found on, it is in breach.
    pub fn was_held_off(&self) -> bool {
        // A record of an earlier version tells it by its evidence and its attempts alone.
        let begun = || self.releases.iter().any(|release| release.attempts > 0);
        self.was_proven || self.evidence.is_some() || begun()
    }

    /// How many moments are kept.
    pub const MOMENTS: usize = 200;

    /// How many parts a release may have.
    pub const PARTS: usize = 256;

    /// The parts of that release.
    pub fn parts<'a>(&'a self, whole: &'a ReleaseId) -> impl Iterator<Item = &'a ReleaseState> {
        self.releases.iter().filter(move |release| release.id.is_part() && release.id.belongs_to(whole))
    }

    /// Adds one: a part before the release of which it is, all else at the end.
    pub(crate) fn add_release(&mut self, release: ReleaseState) {
        let whole = release.id.whole();
        let before = self.releases.iter().position(|other| release.id.is_part() && other.id == whole);
        self.releases.insert(before.unwrap_or(self.releases.len()), release);
    }

    /// The release of that name.
    pub fn release(&self, id: &ReleaseId) -> Option<&ReleaseState> {
        self.releases.iter().find(|release| release.id == *id)
    }

    /// The same, to be changed.
    pub(crate) fn release_mut(&mut self, id: &ReleaseId) -> Option<&mut ReleaseState> {
        self.releases.iter_mut().find(|release| release.id == *id)
    }

    /// Whether it may end as recovered in that boot, once each of its offs ended: it was in that boot before the first of them, and they went to
    /// host devices alone. An outlet that may have been cut is for a person to bring back (S15).
    pub fn may_recover_in(&self, boot: &str) -> bool {
        let is_host =
            |id: &DeviceId| self.topology.device(id).is_some_and(|spec| spec.class == DeviceClass::Host);
        self.cause == Cause::Asked
            && !self.was_proven
            && self.boot.as_deref() == Some(boot)
            && self.switched_off.iter().all(is_host)
    }

    /// It ended before an off was sent.
    pub fn sent_nothing(&self) -> bool {
        self.outcome.as_ref().is_some_and(Outcome::sent_nothing)
    }

    /// Whether nothing was done by it that binds: no off of it was sent, nor a release attempted, and no breach wants it.
    pub fn is_unsent(&self) -> bool {
        let begun = self.releases.iter().any(|release| release.attempts > 0);
        !self.off_sent && self.cause != Cause::Breach && !begun
    }

    /// Whether nothing is left to be let go: of what is not over, all parts are, and it is only to be asked once more what is attached.
    pub(crate) fn waits_for_nothing(&self) -> bool {
        let has_parts = |one: &ReleaseState| !one.id.is_part() && self.parts(&one.id).next().is_some();
        self.releases.iter().all(|one| one.stage.is_over() || has_parts(one))
    }

    /// The release whose turn it is, or the part of it: the first that is not over, but what acts in its place goes before it.
    pub fn next_release(&self) -> Option<&ReleaseState> {
        let mut open = self.releases.iter().filter(|release| !release.stage.is_over());
        let first = open.next()?;
        let acts = |one: &&ReleaseState| first.passed_on.as_ref() == Some(&one.id.whole());
        Some(open.find(acts).unwrap_or(first))
    }

    /// Whether every release is complete or abandoned.
    pub fn all_released(&self) -> bool {
        self.releases.iter().all(|release| release.stage.is_over())
    }
}
