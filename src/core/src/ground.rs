//! Why volumes may be let go, and the permit for one attempt (S4).

use std::time::Duration;

use crate::confirm::ConfirmedOff;
use crate::device::Identity;
use crate::election::Tenure;
use crate::ids::{DeviceId, FenceId, Generation, NodeId, Term};
use crate::power::{Power, Reading};
use crate::record::{Attestation, Evidence, NodeRecord};
use crate::time::{BootTime, WallTime};

/// How old a look may be when an attempt is permitted.
pub const LOOK_LIFE: Duration = Duration::from_secs(2);

/// How long a permitted attempt may still be acted upon by its receiver.
pub const ATTEMPT_LIFE: Duration = Duration::from_secs(60);

/// The only grounds on which volumes are released.
#[derive(Debug)]
pub enum ReleaseGround {
    /// The judge's proof.
    Confirmed(ConfirmedOff),
    /// A person's word, stored and valid for its generation.
    Attested(AttestedOff),
}

/// A person's stored word, as a ground. Made from the record alone.
#[derive(Debug)]
pub struct AttestedOff {
    pub(crate) node: NodeId,
    pub(crate) fence: FenceId,
    pub(crate) term: Term,
    pub(crate) hosts: Vec<DeviceId>,
    pub(crate) attestation: Attestation,
    pub(crate) evidence: Evidence,
}

impl AttestedOff {
    /// The ground of a record that carries an attestation for its present generation.
    pub fn of(record: &NodeRecord, term: Term) -> Option<Self> {
        let fence = record.fence.as_ref()?;
        let attestation = fence.attestation.clone()?;
        let evidence = fence.evidence.clone()?;
        (attestation.generation == record.generation).then(|| Self {
            node: record.node.clone(),
            fence: fence.id,
            term,
            hosts: fence.topology.hosts().map(|device| device.id.clone()).collect(),
            attestation,
            evidence,
        })
    }

    /// Who vouches, and why.
    pub fn attestation(&self) -> &Attestation {
        &self.attestation
    }
}

/// What one device answered, or that it did not, when it was looked at for an attempt.
#[derive(Clone, Debug)]
pub struct Look {
    /// The device.
    pub device: DeviceId,
    /// When it was asked (first copy).
    pub asked_at: BootTime,
    /// Its answer; `None`: none came.
    pub reading: Option<Reading>,
}

impl Look {
    /// When it was asked: the answer's own word for it, where there is one.
    pub fn asked(&self) -> BootTime {
        self.reading.as_ref().map_or(self.asked_at, |reading| reading.asked_at)
    }
}

/// Why an attempt is not permitted now.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum LookFault {
    /// A host device says On: breach, or the end of an attestation.
    #[error("{0} reads On")]
    On(DeviceId),
    /// No explicit Off: no attempt until it reads Off again.
    #[error("{0} does not read Off")]
    NotOff(DeviceId),
    /// It began a new life since the confirmation: back to Fencing.
    #[error("{0} began a new epoch since the confirmation")]
    NewEpoch(DeviceId),
    /// It was not looked at, or too long ago.
    #[error("{0} was not looked at within {LOOK_LIFE:?}")]
    Stale(DeviceId),
}

impl ReleaseGround {
    /// The node.
    pub fn node(&self) -> &NodeId {
        match self {
            ReleaseGround::Confirmed(proof) => proof.node(),
            ReleaseGround::Attested(word) => &word.node,
        }
    }

    /// The leadership in which it was made.
    pub fn term(&self) -> Term {
        match self {
            ReleaseGround::Confirmed(proof) => proof.term(),
            ReleaseGround::Attested(word) => word.term,
        }
    }

    /// The fence.
    pub fn fence(&self) -> FenceId {
        match self {
            ReleaseGround::Confirmed(proof) => proof.fence(),
            ReleaseGround::Attested(word) => word.fence,
        }
    }

    /// The evidence, as told to people and receivers.
    pub fn evidence(&self) -> &Evidence {
        match self {
            ReleaseGround::Confirmed(proof) => proof.evidence(),
            ReleaseGround::Attested(word) => &word.evidence,
        }
    }

    /// Which devices must be looked at before each attempt.
    pub fn to_look_at(&self) -> Vec<DeviceId> {
        match self {
            ReleaseGround::Confirmed(proof) => proof.devices().map(|(device, _)| device.clone()).collect(),
            ReleaseGround::Attested(word) => word.hosts.clone(),
        }
    }

    /// Until when these looks are fresh: the oldest of the newest ones of what must be looked at.
    pub fn fresh_until(&self, looks: &[Look], now: BootTime) -> BootTime {
        let newest = |device: &DeviceId| {
            let of_it = looks.iter().filter(|look| look.device == *device);
            of_it.map(Look::asked).max().unwrap_or_default()
        };
        let oldest = self.to_look_at().iter().map(newest).min();
        // Where nothing answers a person's word stands alone.
        oldest.unwrap_or(now) + LOOK_LIFE
    }

    /// Whether `looks` show at `now` what the ground says, for what goes on already: each Off counts for as long as one call of its device
    /// takes (`call`), since a slow device is no silent one. An attempt is permitted by [`examine`](Self::examine) alone.
    pub fn is_seen_off(&self, looks: &[Look], now: BootTime, call: impl Fn(&DeviceId) -> Duration) -> bool {
        let answers = || looks.iter().filter_map(|look| Some((&look.device, look.reading.as_ref()?)));
        if answers().any(|(_, reading)| reading.power == Power::On) {
            return false;
        }
        let ReleaseGround::Confirmed(proof) = self else { return true };
        proof.devices().all(|(device, epoch)| {
            let of_it = answers().filter(|(one, _)| *one == device).map(|(_, reading)| reading);
            let newest = of_it.max_by_key(|reading| reading.asked_at);
            newest.is_some_and(|reading| {
                let is_same = reading.epoch.map(|epoch| epoch.id) == epoch;
                let is_fresh = now.since(reading.asked_at) <= call(device).max(LOOK_LIFE);
                reading.power == Power::Off && is_same && is_fresh
            })
        })
    }

    /// Whether `looks` permit an attempt at `now`.
    pub fn examine(&self, looks: &[Look], now: BootTime) -> Result<(), LookFault> {
        if let Some(on) =
            looks.iter().find(|look| look.reading.as_ref().is_some_and(|r| r.power == Power::On))
        {
            return Err(LookFault::On(on.device.clone()));
        }
        let fresh = |device: &DeviceId| {
            let newest = looks.iter().filter(|look| look.device == *device).max_by_key(|look| look.asked());
            newest
                .filter(|look| now.since(look.asked()) <= LOOK_LIFE)
                .ok_or_else(|| LookFault::Stale(device.clone()))
        };
        match self {
            ReleaseGround::Confirmed(proof) => {
                for (device, epoch) in proof.devices() {
                    let off = fresh(device)?.reading.as_ref().filter(|reading| reading.power == Power::Off);
                    let Some(reading) = off else {
                        return Err(LookFault::NotOff(device.clone()));
                    };
                    if reading.epoch.map(|e| e.id) != epoch {
                        return Err(LookFault::NewEpoch(device.clone()));
                    }
                }
            }
            ReleaseGround::Attested(word) => {
                for device in &word.hosts {
                    fresh(device)?;
                }
            }
        }
        Ok(())
    }
}

/// The permit for *one* attempt of a release. Borrows its ground; made by [`crate::gate::release_permit`] alone.
#[derive(Debug)]
pub struct ReleasePermit<'ground> {
    pub(crate) ground: &'ground ReleaseGround,
    pub(crate) generation: Generation,
    pub(crate) not_after: WallTime,
    pub(crate) checked_at: BootTime,
    pub(crate) by_parent: bool,
    pub(crate) check: PermitCheck,
    pub(crate) identities: Vec<Identity>,
}

/// Whether a permit still permits, for what sends once it is connected, in a task of its own: the attempt's caller may have
/// waited seconds by then. It permits nothing by itself.
#[derive(Clone, Debug)]
pub struct PermitCheck {
    pub(crate) tenure: Tenure,
    /// Until then the look that permits it is fresh.
    pub(crate) fresh_until: BootTime,
}

impl PermitCheck {
    /// The same, where whoever sends has read the node off itself, by a request of that time: the newer of the two looks counts.
    #[must_use]
    pub fn seen_off_at(self, asked_at: BootTime) -> Self {
        Self { fresh_until: self.fresh_until.max(asked_at + LOOK_LIFE), ..self }
    }

    /// Asked right before each packet.
    ///
    /// # Errors
    /// Leadership has ended, or the look is older than [`LOOK_LIFE`]: nothing more is sent under this permit.
    pub fn may_send(&self) -> Result<(), String> {
        self.tenure.check().map_err(|ended| ended.to_string())?;
        match self.tenure.now() <= self.fresh_until {
            true => Ok(()),
            false => Err(format!("it was seen off longer than {LOOK_LIFE:?} ago")),
        }
    }
}

impl ReleasePermit<'_> {
    /// When the store was asked for the last time. What was got after that to send an attempt with, a token, would bear it for longer
    /// than whoever waits for its end (S8): it is not sent with that.
    pub fn checked_at(&self) -> BootTime {
        self.checked_at
    }

    /// Asked before each packet of an attempt that sends several: whether this leadership, and the look, still permit one.
    ///
    /// # Errors
    /// Why not; nothing more is sent under this permit.
    pub fn may_send(&self) -> Result<(), String> {
        self.check.may_send()
    }

    /// The same question, to be asked where the permit itself does not reach.
    pub fn check(&self) -> PermitCheck {
        self.check.clone()
    }

    /// What the node's host devices say of themselves, as the settings have it or as it was learned (S13). Empty: nobody knows.
    pub fn identities(&self) -> &[Identity] {
        &self.identities
    }

    /// Whether the node is proven off by the machine on which it runs, and not by a person's word or its own devices.
    pub fn is_by_parent(&self) -> bool {
        self.by_parent
    }

    /// Whether an attempt goes only where whoever sends it reads Off itself, if it reads power at all (S4): the node is proven off by its own
    /// devices. By a person's word it goes unless On is read; of what the parent proves the node's own devices say nothing.
    pub fn needs_off(&self) -> bool {
        matches!(self.ground, ReleaseGround::Confirmed(_)) && !self.by_parent
    }

    /// The node whose volumes may be let go.
    pub fn node(&self) -> &NodeId {
        self.ground.node()
    }

    /// The fence.
    pub fn fence(&self) -> FenceId {
        self.ground.fence()
    }

    /// The generation; a receiver refuses one that is older than it has seen.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The leadership that permits.
    pub fn term(&self) -> Term {
        self.ground.term()
    }

    /// Why the node is held to be off.
    pub fn evidence(&self) -> &Evidence {
        self.ground.evidence()
    }

    /// After this a receiver must not begin to act on the attempt any more.
    pub fn not_after(&self) -> WallTime {
        self.not_after
    }
}
