//! Phases that wait: normal, released, power-on failed, and a person's decision.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::device::{DeviceClass, IdentityMatch};
use picket_core::event::{Event, Person};
use picket_core::ground::{LOOK_LIFE, Look, ReleaseGround};
use picket_core::ids::DeviceId;
use picket_core::order::Opened;
use picket_core::outcome::Reason;
use picket_core::power::Power;
use picket_core::record::Cause;
use std::sync::Arc;

use super::command::Command;
use super::hands::{Did, Doing};
use super::{Fatal, NodeTask, sleep_until};

impl NodeTask {
    /// Notes what a call came to, for whoever looks.
    pub(super) fn show(&mut self, device: &DeviceId, did: &Did) {
        let wall = self.wall();
        let boot = self.now();
        let expected = self.expected_identity(device);
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
            Did::Identified(Ok(identity)) => {
                live.identity_match = Some(expected.compare(identity));
                live.identity = Some(identity.clone());
                None
            }
            Did::Read { result: Err(error), .. } => {
                live.power = Some((Power::Unknown, wall));
                live.reading = None;
                Some(error)
            }
            Did::Identified(Err(error)) | Did::Inspected(Err(error)) | Did::Held(_, Err(error)) => {
                Some(error)
            }
            Did::Off(_, Err(error)) | Did::On(_, Err(error)) => Some(error),
            Did::Unheld(_, Err(error)) | Did::Quiesced(Err(error)) => Some(error),
            _ => None,
        };
        live.fault_kind = fault.map(|error| error.kind);
        live.fault = fault.map(|error| (error.to_string(), wall));
        self.publish();
    }

    /// Reads these devices now, side by side.
    pub(super) async fn look_at(&mut self, devices: &[DeviceId]) -> Vec<Look> {
        let mut doing: FuturesUnordered<Doing> =
            devices.iter().map(|device| self.hands.read(device)).collect();
        let mut looks = Vec::new();
        while let Some((device, did)) = doing.next().await {
            looks.extend(self.looked(device, did));
        }
        looks
    }

    /// Reads what the ground wants looked at, and every other host device besides: these are not waited for longer
    /// than a look may be old, since a dead BMC must not make a proof by supplies stale.
    pub(super) async fn look(&mut self) -> Vec<Look> {
        let mut looks: Vec<Look> = Vec::new();
        let hosts = self.hosts();
        let needed = match self.ground.as_ref().map(|held| &held.ground) {
            Some(ground @ ReleaseGround::Confirmed(_)) => ground.to_look_at(),
            // Nothing but the host devices can speak against a person's word: also a slow one is heard.
            Some(ReleaseGround::Attested(_)) => {
                looks = self.look_at(&hosts).await;
                looks.retain(|look| look.reading.as_ref().is_some_and(|reading| reading.power == Power::On));
                Vec::new()
            }
            None => Vec::new(),
        };
        let besides: Vec<DeviceId> = hosts.into_iter().filter(|host| !needed.contains(host)).collect();
        let mut doing: FuturesUnordered<Doing> =
            needed.iter().chain(&besides).map(|device| self.hands.read(device)).collect();
        let asked_at = self.now();
        let patience = tokio::time::sleep(LOOK_LIFE * 3 / 4);
        tokio::pin!(patience);
        let mut patient = true;
        loop {
            tokio::select! {
                biased;
                next = doing.next() => match next {
                    Some((device, did)) => looks.extend(self.looked(device, did)),
                    None => break,
                },
                () = &mut patience, if patient => patient = false,
            }
            let waits = needed.iter().any(|device| looks.iter().all(|look| look.device != *device));
            if !patient && !waits {
                break;
            }
        }
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
        let on = looks.iter().find(|look| {
            hosts.contains(&look.device)
                && look.reading.as_ref().is_some_and(|reading| reading.power == Power::On)
        });
        let Some(on) = on else { return Ok(false) };
        let (id, device) = (self.mint_fence(), on.device.clone());
        tracing::error!(%device, "breach: a fenced node is on and nobody unfenced it");
        self.resumed = false;
        self.persist(|| Event::Breach { id, device: device.clone() }).await?;
        Ok(true)
    }

    pub(super) async fn normal(&mut self) -> Result<(), Fatal> {
        let here = self.place();
        if self.first_check().await? {
            return Ok(());
        }
        loop {
            self.close_expired(|_| true).await?;
            let now = self.now();
            let expiry = self.record().ledger.open().iter().filter_map(|open| self.expires_at(open)).min();
            let timer = async {
                match expiry {
                    Some(at) => sleep_until(now, at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(command) = self.mailbox.recv() => match command {
                    Command::Check(reply) => {
                        if self.check(Some(reply)).await? {
                            return Ok(());
                        }
                    }
                    command => self.command(command).await?,
                },
                () = timer => {}
            }
            if self.place() != here {
                return Ok(());
            }
        }
    }

    /// The check after the start, some nodes at a time. True if the node was moved meanwhile.
    async fn first_check(&mut self) -> Result<bool, Fatal> {
        let here = self.place();
        let Some(turns) = self.turns.take() else { return Ok(false) };
        loop {
            tokio::select! {
                biased;
                Some(command) = self.mailbox.recv() => self.command(command).await?,
                turn = turns.acquire() => {
                    let _turn = turn;
                    return self.check(None).await;
                }
            }
            if self.place() != here {
                return Ok(true);
            }
        }
    }

    /// Asks every device for its identity and power. Any other request ends it at once: a check never delays an off.
    /// True if the node was moved meanwhile.
    async fn check(
        &mut self,
        reply: Option<super::command::Reply<picket_core::record::NodeRecord>>,
    ) -> Result<bool, Fatal> {
        let here = self.place();
        let devices: Vec<DeviceId> = self.plan.topology.devices().map(|spec| spec.id.clone()).collect();
        let mut doing: FuturesUnordered<Doing> =
            devices.iter().map(|device| self.hands.identify(device)).collect();
        doing.extend(devices.iter().map(|device| self.hands.read(device)));
        loop {
            tokio::select! {
                biased;
                Some(command) = self.mailbox.recv() => {
                    let ends = !command.is_check();
                    self.command(command).await?;
                    if ends {
                        // The calls under way are dropped here; `reply` says so by closing.
                        return Ok(self.place() != here);
                    }
                }
                next = doing.next() => {
                    let Some((device, did)) = next else { break };
                    self.show(&device, &did);
                    if let Did::Identified(Ok(identity)) = did {
                        self.learn(device, identity).await?;
                    }
                }
            }
        }
        if let Some(reply) = reply {
            let _ = reply.send(Ok(self.record().clone()));
        }
        Ok(false)
    }

    /// An identity is learned where nothing is expected yet; never in a fence.
    async fn learn(
        &mut self,
        device: DeviceId,
        identity: picket_core::device::Identity,
    ) -> Result<(), Fatal> {
        let expected = self.expected_identity(&device);
        if self.parts.twins.is_twin(&self.plan.id, &identity) {
            tracing::error!(%device, said = ?identity, "another node's device says the same of itself: it is not learned");
            return Ok(());
        }
        match expected.compare(&identity) {
            IdentityMatch::Mismatch => {
                tracing::error!(%device, said = ?identity, ?expected, "the device controls another machine");
            }
            IdentityMatch::Unknown if expected.is_empty() && !identity.is_empty() => {
                self.persist(|| Event::Learned { device: device.clone(), identity: identity.clone() })
                    .await?;
                self.device_live(&device).identity_match = Some(IdentityMatch::Match);
                self.publish();
            }
            IdentityMatch::Unknown | IdentityMatch::Match => {}
        }
        Ok(())
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
        }
    }

    pub(super) async fn released(&mut self) -> Result<(), Fatal> {
        loop {
            self.close_expired(|kind| !kind.bars_proof()).await?;
            let hosts = self.hosts();
            let looks = self.look_at(&hosts).await;
            if self.found_on(&looks).await?
                || self.supply_is_back().await?
                || self.pause(self.parts.rules.watch).await?
            {
                return Ok(());
            }
        }
    }

    /// A supply whose Off is the proof reads On: that says nothing of the node, and the proof is gone. True if so.
    async fn supply_is_back(&mut self) -> Result<bool, Fatal> {
        let Some(fence) = &self.record().fence else { return Ok(false) };
        // Level 0 is a person's word.
        let proves = fence.evidence.as_ref().and_then(|evidence| evidence.level.checked_sub(1));
        let level = proves.and_then(|level| fence.topology.level(level));
        let supplies: Vec<DeviceId> = level
            .into_iter()
            .flat_map(|level| &level.devices)
            .filter(|spec| spec.class == DeviceClass::Supply)
            .map(|spec| spec.id.clone())
            .collect();
        let looks = self.look_at(&supplies).await;
        let on =
            looks.iter().find(|look| look.reading.as_ref().is_some_and(|reading| reading.power == Power::On));
        let Some(device) = on.map(|look| look.device.clone()) else { return Ok(false) };
        tracing::error!(%device, "a supply that was cut is on again");
        self.persist(|| Event::Unproven { why: format!("supply {device} reads On") }).await?;
        Ok(true)
    }

    pub(super) async fn power_on_failed(&mut self) -> Result<(), Fatal> {
        self.wait_for("a retry, or a fence", "an operator", None);
        while !self.pause(self.parts.rules.watch).await? {
            let hosts = self.hosts();
            self.look_at(&hosts).await;
            self.close_expired(|_| true).await?;
        }
        Ok(())
    }

    /// Kept off while a person is waited for: what reads On, and was switched off by this fence, is switched off again.
    pub(super) async fn needs_operator(&mut self, reason: Reason) -> Result<(), Fatal> {
        self.wait_for(format!("a decision ({})", reason.label()), "an operator", None);
        let mut pause = self.parts.rules.watch;
        loop {
            if self.pause(pause).await? {
                return Ok(());
            }
            let here = self.place();
            let hosts = self.hosts();
            let looks = self.look_at(&hosts).await;
            let record = self.record();
            let Some(fence) = record.fence.as_ref().filter(|fence| fence.generation == record.generation)
            else {
                continue;
            };
            let (confirmed, breach) = (fence.evidence.is_some(), fence.cause == Cause::Breach);
            if confirmed && self.found_on(&looks).await? {
                return Ok(());
            }
            let retryable = matches!(reason, Reason::LevelsSpent | Reason::Deadline);
            if breach && retryable && pause > self.parts.rules.watch {
                let person =
                    Person { name: "picket".to_owned(), reason: "a breach is never given up".to_owned() };
                self.persist(|| Event::Retry(person.clone())).await?;
                return Ok(());
            }
            self.off_again(&looks).await?;
            if self.place() != here {
                return Ok(());
            }
            pause = (pause * 2).min(Duration::from_secs(300));
        }
    }

    async fn off_again(&mut self, looks: &[Look]) -> Result<(), Fatal> {
        let Some(fence) = &self.record().fence else { return Ok(()) };
        let on: Vec<DeviceId> = looks
            .iter()
            .filter(|look| look.reading.as_ref().is_some_and(|reading| reading.power == Power::On))
            .filter(|look| fence.switched_off.contains(&look.device))
            .map(|look| look.device.clone())
            .collect();
        if on.is_empty() {
            return Ok(());
        }
        let opened = self.persist(|| Event::OffIntent { devices: on.clone() }).await?;
        let mut doing: FuturesUnordered<Doing> = FuturesUnordered::new();
        for one in opened {
            if let Opened::Off(order) = one {
                doing.push(self.hands.off(Arc::new(order)));
            }
        }
        while let Some((device, did)) = doing.next().await {
            self.show(&device, &did);
            if let Did::Off(effect, result) = did {
                self.counted_from.insert(effect, self.now());
                tracing::warn!(%device, ?result, "off, again, while a person is waited for");
            }
        }
        Ok(())
    }
}
