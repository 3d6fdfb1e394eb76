//! A node that is fenced and released, or was not seen on: it is watched.

use std::time::Duration;

use picket_core::confirm::SILENCE;
use picket_core::device::{DeviceClass, DeviceSpec};
use picket_core::event::Event;
use picket_core::ground::{Look, ReleaseGround};
use picket_core::ids::DeviceId;
use picket_core::record::{Bringing, Fence, Phase};
use picket_core::time::BootTime;

use super::looking::on;
use super::{Fatal, NodeTask, Place};

/// Why a child is not proven by its parent any more.
pub(super) const TAKEN_BACK: &str = "an admin of the machine on which it runs ended its hold";

impl NodeTask {
    pub(super) async fn released(&mut self) -> Result<(), Fatal> {
        self.late_tries = 0;
        self.exchanged.clear();
        let here = self.place();
        loop {
            self.close_expired(|kind| !kind.bars_proof()).await?;
            self.drop_holds_of_the_gone().await?;
            if self.place() != here || self.doubt.is_some() && self.store_doubt().await? {
                return Ok(());
            }
            let devices: Vec<DeviceId> = self.hosts().into_iter().chain(self.proving_beside()).collect();
            let began = self.now();
            // A word for on is not kept waiting by a device that is silent.
            let longest = self.watched_every() / 2;
            let Some(looks) = self.watch_for(&devices, &devices, longest).await? else { return Ok(()) };
            if self.found_on(&looks).await? || self.proof_is_gone(&looks).await? {
                return Ok(());
            }
            self.gives_up_what_restarted().await?;
            self.hold_late().await?;
            if self.place() != here {
                return Ok(());
            }
            // What another process knew of its devices this one does not: whom it watches is asked.
            if std::mem::take(&mut self.unasked) && self.whose(&self.hosts()).await?.is_none() {
                return Ok(());
            }
            self.check_holds(&looks).await?;
            if self.pause_between_looks(here, began).await? {
                return Ok(());
            }
        }
    }

    /// Waits until the look after the one that began then is due, and answers callers; true if the node is not `here` any more. From one look to the
    /// next, and not from its end, which a silent device puts off.
    pub(super) async fn pause_between_looks(&mut self, here: Place, began: BootTime) -> Result<bool, Fatal> {
        let watch = self.watched_every();
        self.pause(here, watch.saturating_sub(self.now().since(began)).max(watch / 2)).await
    }

    /// How often a node is watched that is kept off: as the settings say, and often enough that no host device restarts, or ends a session
    /// by idleness, between two looks (S2).
    pub(super) fn watched_every(&self) -> Duration {
        let silences = self.hosts().into_iter().flat_map(|device| {
            let hides = self.stands_by().device(&device).is_some_and(DeviceSpec::hides_its_restarts);
            let idle = self.plan.drivers.get(&device).and_then(|driver| driver.shortest_idle());
            hides.then_some(SILENCE).into_iter().chain(idle.map(|idle| idle / 2))
        });
        silences.fold(self.parts.rules.watch, Duration::min)
    }

    /// The supplies, or the parent, whose Off is the proof.
    pub(super) fn proving_beside(&self) -> Vec<DeviceId> {
        let Some(fence) = &self.record().fence else { return Vec::new() };
        // Level 0 is a person's word.
        let proves = fence.evidence.as_ref().and_then(|evidence| evidence.level.checked_sub(1));
        let level = proves.and_then(|level| fence.topology.level(level));
        let devices = level.into_iter().flat_map(|level| &level.devices);
        devices.filter(|spec| spec.class != DeviceClass::Host).map(|spec| spec.id.clone()).collect()
    }

    /// Which device of the proof may have restarted since, unseen (S2), in words: its Off says nothing until the node is proven anew.
    pub(super) fn restarted_since(&self) -> Option<String> {
        let proof = self.record().fence.as_ref()?.evidence.as_ref()?;
        let mut devices = proof.devices.iter().map(|proof| &proof.device);
        let restarted = devices.find(|device| self.sessions.may_have_restarted(device))?;
        Some(format!("{restarted} may have restarted since"))
    }

    /// Gives the proof up where one of its devices may have restarted since; why, in words.
    pub(super) async fn gives_up_what_restarted(&mut self) -> Result<Option<String>, Fatal> {
        let is_confirmed =
            self.ground.as_ref().is_some_and(|held| matches!(held.ground, ReleaseGround::Confirmed(_)));
        let Some(why) = self.restarted_since().filter(|_| is_confirmed) else { return Ok(None) };
        tracing::warn!(why, "what proved the node off is not believed any more");
        if self.record().phase == Phase::Fenced {
            self.lose_proof(why.clone()).await?;
        } else {
            self.ground = None;
            self.live_mut().proven = false;
            self.publish();
        }
        Ok(Some(why))
    }

    /// A supply whose Off is the proof reads On, or the parent does, or is proven anew: that says nothing of the node, and the
    /// proof is gone. True if so.
    pub(super) async fn proof_is_gone(&mut self, looks: &[Look]) -> Result<bool, Fatal> {
        let beside = self.proving_beside();
        let held = self.ground.clone();
        let is_anew = |look: &&Look| {
            let Some(ReleaseGround::Confirmed(proof)) = held.as_ref().map(|held| &held.ground) else {
                return false;
            };
            let is = look.reading.as_ref().and_then(|reading| reading.epoch).map(|epoch| epoch.id);
            let was =
                proof.devices().find(|(device, _)| **device == look.device).and_then(|(_, epoch)| epoch);
            is.is_some() && was.is_some() && is != was
        };
        let proves = |device: &DeviceId| beside.contains(device);
        let why = match on(looks).find(|device| proves(device)) {
            _ if self.is_taken_back() => TAKEN_BACK.to_owned(),
            Some(device) => format!("{device} reads On"),
            None => match looks.iter().filter(|look| proves(&look.device)).find(is_anew) {
                Some(look) => format!("what {} proved is void", look.device),
                None => return Ok(false),
            },
        };
        tracing::error!(why, "what proved the node off does not hold any more");
        let gone = self.withdraw_now().await;
        self.persist_unproven(gone, || Event::Unproven { why: why.clone(), seen: true }).await?;
        Ok(true)
    }

    /// Whether an admin of a machine that proves it ended its hold there: also where it is not said on which it runs now (S22).
    pub(super) fn is_taken_back(&self) -> bool {
        matches!(self.record().phase, Phase::Fenced | Phase::Released)
            && self.record().fence.as_ref().is_some_and(Fence::proved_by_its_parent)
            && self.office.is_taken_back(&self.plan.id)
    }

    pub(super) async fn power_on_failed(&mut self) -> Result<(), Fatal> {
        self.wait_for("a retry, or a fence", "an operator", None);
        let here = self.place();
        loop {
            let hosts = self.hosts();
            if self.pause(here, self.watched_every()).await? {
                return Ok(());
            }
            let Some(looks) = self.watch(&hosts).await? else { return Ok(()) };
            if self.came_on(&looks).await? {
                return Ok(());
            }
            self.close_expired(|_| true).await?;
        }
    }

    /// Whether a host device says On. What is not let on is kept off as before, and that is a breach; else what was waited for has come, and bringing
    /// it back goes on, once. Of a node that was stood down a person said that it is on.
    async fn came_on(&mut self, looks: &[Look]) -> Result<bool, Fatal> {
        let (here, hosts) = (self.place(), self.hosts());
        let on = on(looks).find(|device| hosts.contains(device)).cloned();
        let Some(device) = on.filter(|_| self.record().bringing == Bringing::PowerOn) else {
            return Ok(false);
        };
        // What a restore kept off was never proven off: whether it may be on is asked while it is brought back (S21).
        if !self.record().is_groundless() && self.is_barred_from_on().await? {
            return self.found_on(looks).await;
        }
        let of = self.record().generation;
        if self.place() != here || self.came_on_in.replace(of) == Some(of) {
            return Ok(self.place() != here);
        }
        tracing::info!(%device, "it is on after all");
        self.persist(|| Event::CameOn { device: device.clone() }).await?;
        Ok(true)
    }
}
