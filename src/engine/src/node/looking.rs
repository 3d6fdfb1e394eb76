//! Asking devices for power, and what is known of them to whoever looks.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::future::OptionFuture;
use futures::stream::FuturesUnordered;
use picket_core::device::DeviceSpec;
use picket_core::event::Event;
use picket_core::ground::{LOOK_LIFE, Look, ReleaseGround};
use picket_core::ids::DeviceId;
use picket_core::outcome::Reason;
use picket_core::power::Power;

use super::children::Asks;
use super::hands::{Did, Doing};
use super::{Fatal, NodeTask, sleep_until};

/// Readings of host devices that a look did not wait for. Nothing else may be asked of these devices before they are
/// gone on with or dropped: it would wait for them.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    devices: BTreeSet<DeviceId>,
    /// None in a node at rest.
    doing: Option<Mutex<FuturesUnordered<Doing>>>,
}

impl Lingering {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn doing(&mut self) -> &mut FuturesUnordered<Doing> {
        self.doing.get_or_insert_default().get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NodeTask {
    /// Notes what a call came to, for whoever looks.
    pub(super) fn show(&mut self, device: &DeviceId, did: &Did) {
        let wall = self.wall();
        let boot = self.now();
        let expected = self.expected_identity(device);
        self.sessions.note(device, did);
        if self.stands_by().device(device).is_some_and(DeviceSpec::hides_its_restarts) {
            let refused_at = self.plan.drivers.get(device).and_then(|driver| driver.refused_session_at());
            self.sessions.note_unseen(device, did, refused_at, boot);
        }
        let (mut says_whose, mut said_now) = (false, None);
        let live = self.device_live(device);
        let fault = match did {
            Did::Read { result: Ok(reading), .. } => {
                let ago = boot.since(reading.asked_at);
                let asked = wall.millis().saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(0));
                live.power = Some((reading.power, picket_core::time::WallTime::from_millis(asked)));
                live.said.clone_from(&reading.said);
                live.reading = Some(reading.clone());
                None
            }
            Did::Identified { result: Ok(said), .. } => {
                let compared = expected.compare(&said.identity);
                live.identity_match = Some(compared);
                live.identity = Some(said.identity.clone());
                says_whose = compared.is_as_expected();
                said_now = Some(said);
                None
            }
            Did::Read { result: Err(error), .. } => {
                live.power = Some((Power::Unknown, wall));
                live.reading = None;
                Some(error)
            }
            Did::Identified { result: Err(error), .. }
            | Did::Inspected { result: Err(error), .. }
            | Did::Held { result: Err(error), .. } => Some(error),
            Did::Off { result: Err(error), .. } | Did::On(_, Err(error)) => Some(error),
            Did::Unheld(_, Err(error)) | Did::Quiesced(Err(error)) => Some(error),
            Did::Ended { result: Err(error), .. } => Some(error),
            _ => None,
        };
        live.fault_kind = fault.map(|error| error.kind);
        live.fault = fault.map(|error| (error.to_string(), wall));
        if says_whose {
            self.said_whose.insert(device.clone());
        }
        if let Some(said) = said_now {
            self.said_now(device, said);
        }
        self.publish();
    }

    /// Reads these devices now, side by side.
    pub(super) async fn look_at(&mut self, devices: &[DeviceId]) -> Result<Vec<Look>, Fatal> {
        let looks = self.glance_at(devices).await;
        self.store_sessions().await?;
        Ok(looks)
    }

    async fn glance_at(&mut self, devices: &[DeviceId]) -> Vec<Look> {
        self.lingering.clear();
        let mut doing = self.hands.read_all(devices);
        let mut looks = Vec::new();
        while let Some((device, did)) = doing.next().await {
            looks.extend(self.looked(device, did));
        }
        looks
    }

    /// Reads these devices now, side by side, and answers callers meanwhile. `None`: the node was moved.
    pub(super) async fn watch(&mut self, devices: &[DeviceId]) -> Result<Option<Vec<Look>>, Fatal> {
        self.watch_for(devices, |_| false).await
    }

    /// The same, until one of them says that; what the others would have said is not waited for then.
    pub(super) async fn watch_for(
        &mut self,
        devices: &[DeviceId],
        enough: fn(&Look) -> bool,
    ) -> Result<Option<Vec<Look>>, Fatal> {
        let here = self.place();
        self.lingering.clear();
        let mut looks: Vec<Look> = Vec::new();
        // A child's look asks what proves, and lets the readings of all else go on: that may speak against it.
        let needed = self.needed();
        let (own, besides): (Vec<DeviceId>, Vec<DeviceId>) =
            devices.iter().cloned().partition(|device| needed.contains(device));
        let mut doing = self.hands.read_all(&own);
        self.go_on_with(&besides);
        while !doing.is_empty() || !self.lingering.doing().is_empty() {
            let next = tokio::select! {
                biased;
                Some(command) = self.mailbox.recv() => {
                    // Where it asks the same devices it would wait for calls that nobody goes on with. All else lets the
                    // readings go on: callers, however many, do not keep power from being watched.
                    let asks = self.asks(&command);
                    if asks != Asks::Nothing {
                        doing.clear();
                    }
                    if asks == Asks::Anything {
                        self.lingering.clear();
                    }
                    self.command(command).await?;
                    if self.place() != here {
                        return Ok(None);
                    }
                    // What a child's look read, this one read.
                    for look in self.just_told() {
                        if devices.contains(&look.device) && looks.iter().all(|one| one.device != look.device) {
                            looks.push(look);
                        }
                    }
                    if asks != Asks::Nothing {
                        let left = |device: &&DeviceId| looks.iter().all(|look| look.device != **device);
                        doing = self.hands.read_all(own.iter().filter(left));
                        let left: Vec<DeviceId> = besides.iter().filter(left).cloned().collect();
                        self.go_on_with(&left);
                    }
                    continue;
                }
                Some(next) = doing.next(), if !doing.is_empty() => next,
                Some(next) = self.lingering.doing().next() => next,
            };
            let (device, did) = next;
            self.lingering.devices.remove(&device);
            looks.extend(self.looked(device, did));
            if looks.last().is_some_and(enough) {
                break;
            }
        }
        self.store_sessions().await?;
        self.let_others_be(&mut looks).await?;
        Ok((self.place() == here).then_some(looks))
    }

    /// Reads what the ground wants looked at, and every other host device besides: these are not waited for longer
    /// than a look may be old, since a dead BMC must not make a proof by supplies stale. Their readings go on at the next
    /// look: a device whose session has to be made anew takes longer than one.
    pub(super) async fn look(&mut self) -> Result<Vec<Look>, Fatal> {
        let looks = self.glance().await;
        self.store_sessions().await?;
        Ok(looks)
    }

    /// The devices whose Off is the proof that is in hand.
    pub(super) fn needed(&self) -> Vec<DeviceId> {
        match self.ground.as_ref().map(|held| &held.ground) {
            Some(ground @ ReleaseGround::Confirmed(_)) => ground.to_look_at(),
            Some(ReleaseGround::Attested(_)) | None => Vec::new(),
        }
    }

    /// Reads these, or goes on with it: what is not waited for now is heard by the next look.
    fn go_on_with(&mut self, devices: &[DeviceId]) {
        let new = |device: &&DeviceId| !self.lingering.devices.contains(*device);
        let new: Vec<DeviceId> = devices.iter().filter(new).cloned().collect();
        let more: Vec<Doing> = new.iter().map(|device| self.hands.read(device)).collect();
        self.lingering.doing().extend(more);
        self.lingering.devices.extend(new);
    }

    /// The same, and nothing is stored: it may be dropped at any moment.
    pub(super) async fn glance(&mut self) -> Vec<Look> {
        self.glance_within(LOOK_LIFE * 3 / 4).await
    }

    pub(super) async fn glance_within(&mut self, patience: Duration) -> Vec<Look> {
        let mut looks: Vec<Look> = Vec::new();
        let (hosts, needed) = (self.hosts(), self.needed());
        // Nothing but the host devices can speak against a person's word: also a slow one is heard.
        if let Some(ReleaseGround::Attested(_)) = self.ground.as_ref().map(|held| &held.ground) {
            looks = self.glance_at(&hosts).await;
            looks.retain(|look| look.reading.as_ref().is_some_and(|reading| reading.power == Power::On));
        }
        let besides: Vec<DeviceId> = hosts.into_iter().filter(|host| !needed.contains(host)).collect();
        let mut doing = self.hands.read_all(&needed);
        self.go_on_with(&besides);
        let mut others = std::mem::take(&mut self.lingering);
        let asked_at = self.now();
        let patience = tokio::time::sleep(patience);
        tokio::pin!(patience);
        let mut patient = true;
        loop {
            tokio::select! {
                biased;
                Some((device, did)) = doing.next() => looks.extend(self.looked(device, did)),
                Some((device, did)) = others.doing().next() => {
                    others.devices.remove(&device);
                    looks.extend(self.looked(device, did));
                }
                () = &mut patience, if patient => patient = false,
                else => break,
            }
            let waits = !doing.is_empty();
            if !waits && (!patient || others.devices.is_empty()) {
                break;
            }
        }
        self.lingering = others;
        for device in besides {
            if looks.iter().all(|look| look.device != device) {
                looks.push(Look { device, asked_at, reading: None });
            }
        }
        looks
    }

    fn looked(&mut self, device: DeviceId, did: Did) -> Option<Look> {
        self.show(&device, &did);
        let Did::Read { asked_at, result } = did else { return None };
        let reading = result.ok();
        let asked_at = reading.as_ref().map_or(asked_at, |reading| reading.asked_at);
        Some(Look { device, asked_at, reading })
    }

    /// The host devices as the fence has them, else as the settings do.
    pub(super) fn hosts(&self) -> Vec<DeviceId> {
        let topology = self.record().fence.as_ref().map_or(&self.plan.topology, |fence| &fence.topology);
        topology.hosts().map(|spec| spec.id.clone()).collect()
    }

    /// A host device says On although nobody unfenced the node: breach (S11). True if so.
    pub(super) async fn found_on(&mut self, looks: &[Look]) -> Result<bool, Fatal> {
        let hosts = self.hosts();
        let Some(device) = on(looks).find(|device| hosts.contains(device)).cloned() else {
            return Ok(false);
        };
        let id = self.mint_fence();
        tracing::error!(%device, "breach: a fenced node is on and nobody unfenced it");
        self.cut_off();
        self.resumed = false;
        // Found on once it is fenced again, whoever takes it away.
        let again = self.record().breaches > 0;
        let going = again.then(|| self.being_deleted());
        let (gone, going) = tokio::join!(self.withdraw_now(), OptionFuture::from(going));
        self.persist_unproven(gone, || Event::Breach { id, device: device.clone() }).await?;
        if let Some(why) = going.flatten() {
            self.give_up(
                Reason::BeingDeleted,
                format!("found on once more, and {why}: nothing more is sent"),
            )
            .await?;
        }
        Ok(true)
    }

    /// Waits for `pause`, answering callers; true if the node was moved.
    pub(super) async fn pause(&mut self, pause: Duration) -> Result<bool, Fatal> {
        let here = self.place();
        let until = self.now() + pause;
        loop {
            let now = self.now();
            tokio::select! {
                biased;
                Some(command) = self.mailbox.recv() => self.command(command).await?,
                () = sleep_until(now, until) => return Ok(false),
            }
            if self.place() != here {
                return Ok(true);
            }
            // Callers, however many, do not keep what is due waiting.
            if self.now() >= until {
                return Ok(false);
            }
        }
    }
}

/// What reads On.
pub(in crate::node) fn on(looks: &[Look]) -> impl Iterator<Item = &DeviceId> {
    looks.iter().filter(|look| is_on(look)).map(|look| &look.device)
}

/// Whether it says On.
pub(super) fn is_on(look: &Look) -> bool {
    look.reading.as_ref().is_some_and(|reading| reading.power == Power::On)
}
