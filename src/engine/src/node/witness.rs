//! Who else than a device says that it controls the node's machine (S13): a witness that saw the node fall
//! in a drill that only that device switched off, or Kubernetes.
//!
//! # Invariants
//!
//! - Only an explicit word counts: a liveness source that is silent saw nothing. Shown by
//!   `a_liveness_source_that_falls_silent_with_the_node_saw_nothing`.
//! - A second device that was switched off as well is no witness. Shown by
//!   `a_device_that_was_switched_off_too_is_no_witness`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::device::{DeviceClass, DeviceSpec, Identity, IdentityMatch};
use picket_core::event::Event;
use picket_core::ids::DeviceId;
use picket_core::power::{Power, Reading};
use picket_core::record::{Cause, DeviceEvidence, Fence, Phase};
use picket_core::time::BootTime;
use picket_liveness::{Liveness, Look};
use tokio::task::JoinHandle;

use super::{Fatal, NodeTask};
use crate::paces::Paces;

/// What this process saw of the drill under way.
#[derive(Debug, Default)]
pub(super) struct Drilled {
    /// Host devices that read On just before it.
    pub(super) lit: BTreeSet<DeviceId>,
    /// The liveness source said just before it that the node is alive.
    alive: bool,
    /// What was switched off until the node was confirmed.
    pub(super) cut: BTreeSet<DeviceId>,
    /// Host devices that read Off since the node is dark.
    dark: BTreeSet<DeviceId>,
    /// Since when it is.
    dark_since: Option<BootTime>,
    /// Host devices that read On before it, and Off at any time since then.
    fell: BTreeSet<DeviceId>,
    asking: Option<Asking>,
}

/// The liveness source is being asked whether the node is alive, until it says so or that it is not.
#[derive(Debug)]
struct Asking {
    task: JoinHandle<()>,
    /// How long one look takes at most.
    look: Duration,
    /// Its first explicit word since the node is off. One that comes after "alive" may have another reason: what runs on the node may miss
    /// the machine that was killed in its place.
    word: Arc<Mutex<Option<Look>>>,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Asking {
    fn begin(source: Arc<dyn Liveness>, paces: Arc<Paces>) -> Self {
        let (word, look_takes) = (Arc::new(Mutex::new(None)), source.patience());
        let told = word.clone();
        let task = tokio::spawn(async move {
            let asks = async {
                loop {
                    match look(&*source).await {
                        Look::Unanswered(_) | Look::Away(_) => tokio::time::sleep(paces.drill_watch).await,
                        said => return said,
                    }
                }
            };
            if let Ok(said) = tokio::time::timeout(paces.drill_patience, asks).await {
                *told.lock() = Some(said);
            }
        });
        Self { task, look: look_takes, word }
    }

    fn word(&self) -> Option<Look> {
        self.word.lock().clone()
    }
}

impl Drilled {
    /// `heard`: what the liveness source said, if it was asked.
    pub(super) fn of(lit: BTreeSet<DeviceId>, heard: Option<&Look>) -> Self {
        let alive = matches!(heard, Some(Look::Recovered(_)));
        Self { lit, alive, ..Self::default() }
    }

    /// A device was read.
    pub(super) fn note(&mut self, device: &DeviceId, reading: &Reading) {
        let is_since = self.dark_since.is_some_and(|since| reading.asked_at >= since);
        if is_since && reading.power == Power::Off && self.lit.contains(device) {
            self.fell.insert(device.clone());
        }
    }
}

/// One look, which takes no longer than the source's patience.
pub(super) async fn look(source: &dyn Liveness) -> Look {
    tokio::time::timeout(source.patience(), source.look()).await.unwrap_or_else(|_| source.late())
}

impl NodeTask {
    /// The device's identity is known, and nothing but the device itself has said it.
    fn is_only_learned(&self, spec: &DeviceSpec) -> bool {
        let expected = self.record().expected(spec);
        spec.class == DeviceClass::Host && expected.is_learned && !expected.is_empty()
    }

    /// What a drill asks before anything is cut; `None`: no identity waits for a witness, or nobody could be one.
    pub(super) fn source_of_witness(&self) -> Option<Arc<dyn Liveness>> {
        let is_needed = self.plan.topology.hosts().any(|spec| self.is_only_learned(spec));
        self.plan.liveness.clone().filter(|_| is_needed)
    }

    /// The device said last that it controls the node's machine, and somebody else than itself says which that is.
    fn is_known_by_others(&self, device: &DeviceId) -> bool {
        let live = self.live.devices.get(device);
        live.is_some_and(|live| live.identity_match == Some(IdentityMatch::Match))
    }

    /// Whether somebody saw the machine itself fall by its outlets: a host device that others than itself say is the node's. A device that is
    /// merely silent saw nothing, nor did a liveness source: their network, or their own power, may have gone with the outlets.
    ///
    /// # Errors
    /// Nobody did, and why, in words.
    pub(super) fn saw_it_fall(&self, drilled: &Drilled) -> Result<(), String> {
        match drilled.fell.first() {
            _ if drilled.fell.iter().any(|device| self.is_known_by_others(device)) => Ok(()),
            None => Err("no host device read Off, before it was switched on again: have it stay off when its power comes back (its \
                         restore policy) for a drill, or say `verified = true` of the outlets"
                .to_owned()),
            Some(device) => Err(format!(
                "nobody but {device} says whose machine fell: give `identity` in its settings, or drill the node by it before a witness"
            )),
        }
    }

    /// The node was confirmed off, and is dark since then: who else saw it fall is noted, and asked, while it is off.
    pub(super) fn note_fall(&mut self, dark_since: BootTime) {
        let Some(fence) = self.record().fence.as_ref().filter(|fence| fence.cause == Cause::Drill) else {
            return;
        };
        let cut = fence.switched_off.clone();
        let reads_off = |device: &DeviceId| {
            let reading = self.live.devices.get(device).and_then(|live| live.reading.as_ref());
            reading.is_some_and(|one| one.power == Power::Off && one.asked_at >= dark_since)
        };
        let hosts = fence.topology.hosts().map(|spec| spec.id.clone());
        let dark: BTreeSet<DeviceId> = hosts.filter(reads_off).collect();
        let source = self.source_of_witness();
        let Some(drilled) = &mut self.drilled else { return };
        (drilled.cut, drilled.dark, drilled.dark_since) = (cut, dark, Some(dark_since));
        // Where the proof was lost and made again the first word stands: a later one may have another reason.
        if drilled.asking.is_none() {
            let source = source.filter(|_| drilled.alive);
            drilled.asking = source.map(|source| Asking::begin(source, self.plan.paces.clone()));
        }
    }

    /// Before the node is switched on: the look of the liveness source that is under way may come to its end, and none counts that ends later. What
    /// runs on the node is alive again then.
    pub(super) async fn hear_witness(&mut self) {
        let asking = self.drilled.as_mut().and_then(|drilled| drilled.asking.as_mut());
        let Some(asking) = asking.filter(|asking| !asking.task.is_finished()) else { return };
        if tokio::time::timeout(asking.look, &mut asking.task).await.is_err() {
            asking.task.abort();
        }
    }

    /// Devices whose learned identity another witness confirmed in this drill, each with that witness; and in words what became of the
    /// others.
    pub(super) fn witnesses(
        &self,
        fence: &Fence,
        drilled: &Drilled,
    ) -> (BTreeMap<DeviceId, String>, Vec<String>) {
        let (mut confirmed, mut findings) = (BTreeMap::new(), Vec::new());
        for spec in fence.topology.hosts().filter(|spec| self.is_only_learned(spec)) {
            let id = &spec.id;
            match self.witness_of(fence, drilled, id) {
                Ok(witness) => {
                    findings.push(format!("{id}: {witness} saw the node fall: its identity is verified"));
                    confirmed.insert(id.clone(), format!("a drill, in which {witness} saw the node fall"));
                }
                Err(why) => findings.push(format!(
                    "{id}: its identity stays learned from the device itself, since {why}. A drill verifies it if a liveness source, or \
                     a second device, sees the node fall by {id} alone; or give `identity` in its settings"
                )),
            }
        }
        (confirmed, findings)
    }

    /// Who saw that what this device controls is the node.
    fn witness_of(&self, fence: &Fence, drilled: &Drilled, id: &DeviceId) -> Result<String, String> {
        if !drilled.lit.contains(id) {
            return Err("this gateway did not see it on before the drill".to_owned());
        }
        if !drilled.cut.contains(id) {
            let cut: Vec<&str> = drilled.cut.iter().map(DeviceId::as_str).collect();
            return Err(format!("the drill was by {}", cut.join(" and ")));
        }
        // What fell by one of them may not be what the other controls.
        if drilled.cut.len() > 1 {
            return Err("other devices were switched off with it".to_owned());
        }
        let said = |one: &DeviceEvidence| one.device == *id && one.identity.is_as_expected();
        if !fence.evidence.as_ref().is_some_and(|evidence| evidence.devices.iter().any(said)) {
            return Err("it did not say whose machine it controls".to_owned());
        }
        if let Some(second) = self.second_device(fence, drilled, id) {
            return Ok(second.to_string());
        }
        match drilled.asking.as_ref().map(Asking::word) {
            Some(Some(Look::NotRecovered(words))) => Ok(format!("its liveness source ({words})")),
            Some(Some(Look::Recovered(words))) => Err(format!(
                "its liveness source said that the node was alive while {id} read Off ({words}): it may control another machine, or the \
                 source is slow to notice"
            )),
            Some(_) => Err("its liveness source gave no explicit word while the node was off".to_owned()),
            None if self.plan.liveness.is_none() => Err("no other witness saw the node fall".to_owned()),
            None => {
                Err("its liveness source did not say that the node was alive before the drill".to_owned())
            }
        }
    }

    /// A host device whose identity somebody else has said, that was left alone, and read On before and Off since.
    fn second_device<'f>(&self, fence: &'f Fence, drilled: &Drilled, id: &DeviceId) -> Option<&'f DeviceId> {
        let saw = |other: &DeviceId| drilled.lit.contains(other) && drilled.dark.contains(other);
        let others = fence.topology.hosts().map(|spec| &spec.id).filter(|other| *other != id);
        others
            .into_iter()
            .find(|other| saw(other) && self.is_known_by_others(other) && !drilled.cut.contains(*other))
    }

    /// Takes what far sides said of the node's machine at a check. A learned identity that agrees with it is proven. Where the device says another
    /// machine than the far side, or said another one before, the far side's word is what is expected of it from now on: its address may lead
    /// elsewhere. Those devices.
    pub(super) async fn compare_with(
        &mut self,
        machines: &[(Identity, String)],
    ) -> Result<Vec<DeviceId>, Fatal> {
        let mut refuted = Vec::new();
        if self.record().phase != Phase::Normal {
            return Ok(refuted);
        }
        let hosts: Vec<DeviceSpec> = self.plan.topology.hosts().cloned().collect();
        for spec in hosts.into_iter().filter(|spec| spec.identity.is_empty()) {
            let device = spec.id.clone();
            let learned = self.record().expected(&spec).identity;
            let said = self.live.devices.get(&device).and_then(|live| live.identity.clone());
            let said = said.unwrap_or_default();
            let find = |known: &Identity, as_it: IdentityMatch| {
                machines.iter().find(|(machine, _)| known.compare(machine) == as_it).cloned()
            };
            if let Some((_, by)) = find(&learned, IdentityMatch::Match) {
                if self.is_only_learned(&spec) {
                    tracing::info!(%device, by, "the identity that was learned is the node's");
                    let (device, identity) = (device.clone(), learned);
                    self.persist(|| Event::IdentityProven {
                        device: device.clone(),
                        identity: identity.clone(),
                        by: by.clone(),
                    })
                    .await?;
                    self.compare_anew(&device);
                }
                continue;
            }
            let is_another = find(&learned, IdentityMatch::Mismatch);
            let is_same = find(&said, IdentityMatch::Match);
            let machine = match is_another.is_some() {
                // The node is another machine by now, and the device controls that one.
                true => is_same.or(is_another),
                false if is_same.is_some() => None,
                false => find(&said, IdentityMatch::Mismatch),
            };
            let Some((identity, by)) = machine else { continue };
            match identity.compare(&said) {
                IdentityMatch::Match => {
                    tracing::warn!(%device, ?said, by, "the node's machine is another one by now");
                }
                _ => {
                    tracing::error!(%device, ?said, machine = ?identity, by, "the device controls another machine than the node's")
                }
            }
            self.persist(|| Event::IdentityTold {
                device: device.clone(),
                identity: identity.clone(),
                by: by.clone(),
            })
            .await?;
            self.expects(&device);
            self.device_live(&device).identity_match = Some(identity.compare(&said));
            self.publish();
            refuted.push(device);
        }
        Ok(refuted)
    }

    /// What the device said last, compared with what is known by now.
    pub(super) fn compare_anew(&mut self, device: &DeviceId) {
        let expected = self.expected_identity(device);
        let live = self.device_live(device);
        let Some(said) =
            live.identity.as_ref().filter(|_| live.identity_match.is_some_and(IdentityMatch::is_as_expected))
        else {
            return;
        };
        live.identity_match = Some(expected.compare(said));
        self.publish();
    }
}
