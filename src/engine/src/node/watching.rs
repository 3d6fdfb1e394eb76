//! Phases that wait: normal, released, power-on failed, and a person's decision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::device::{DeviceClass, Identity, IdentityMatch};
use picket_core::event::{Event, Person};
use picket_core::ground::{LOOK_LIFE, Look, ReleaseGround};
use picket_core::ids::DeviceId;
use picket_core::order::Opened;
use picket_core::outcome::Reason;
use picket_core::power::Power;
use picket_core::record::{Cause, HoldState};
use picket_core::time::BootTime;
use picket_driver::ErrorKind;

use super::command::Command;
use super::hands::{Did, Doing};
use super::{Fatal, NodeTask, sleep_until};

/// The longest pause between two offs that are sent while a person is waited for.
const LONGEST_OFF_PAUSE: Duration = Duration::from_secs(300);

/// Readings of host devices that a look did not wait for. Nothing else may be asked of these devices before they are
/// gone on with or dropped: it would wait for them.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    devices: BTreeSet<DeviceId>,
    doing: Mutex<FuturesUnordered<Doing>>,
}

impl Lingering {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn doing(&mut self) -> &mut FuturesUnordered<Doing> {
        self.doing.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NodeTask {
    /// Notes what a call came to, for whoever looks.
    pub(super) fn show(&mut self, device: &DeviceId, did: &Did) {
        let wall = self.wall();
        let boot = self.now();
        let expected = self.expected_identity(device);
        self.sessions.note(device, did);
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

    fn readings<'d>(&self, devices: impl IntoIterator<Item = &'d DeviceId>) -> FuturesUnordered<Doing> {
        devices.into_iter().map(|device| self.hands.read(device)).collect()
    }

    /// Reads these devices now, side by side.
    pub(super) async fn look_at(&mut self, devices: &[DeviceId]) -> Result<Vec<Look>, Fatal> {
        self.lingering.clear();
        let mut doing = self.readings(devices);
        let mut looks = Vec::new();
        while let Some((device, did)) = doing.next().await {
            looks.extend(self.looked(device, did));
        }
        self.store_sessions().await?;
        Ok(looks)
    }

    /// Reads these devices now, side by side, and answers callers meanwhile. `None`: the node was moved.
    pub(super) async fn watch(&mut self, devices: &[DeviceId]) -> Result<Option<Vec<Look>>, Fatal> {
        let here = self.place();
        self.lingering.clear();
        let mut looks: Vec<Look> = Vec::new();
        let mut doing = self.readings(devices);
        loop {
            tokio::select! {
                biased;
                Some(command) = self.mailbox.recv() => {
                    // It may ask the same devices, which would wait for calls that nobody goes on with.
                    let asks = !command.is_check();
                    if asks {
                        doing.clear();
                    }
                    self.command(command).await?;
                    if self.place() != here {
                        return Ok(None);
                    }
                    if asks {
                        self.lingering.clear();
                        let left = |device: &&DeviceId| looks.iter().all(|look| look.device != **device);
                        doing = self.readings(devices.iter().filter(left));
                    }
                }
                next = doing.next() => match next {
                    Some((device, did)) => looks.extend(self.looked(device, did)),
                    None => break,
                },
            }
        }
        self.store_sessions().await?;
        Ok((self.place() == here).then_some(looks))
    }

    /// Reads what the ground wants looked at, and every other host device besides: these are not waited for longer
    /// than a look may be old, since a dead BMC must not make a proof by supplies stale. Their readings go on at the next
    /// look: a device whose session has to be made anew takes longer than one.
    pub(super) async fn look(&mut self) -> Result<Vec<Look>, Fatal> {
        let mut looks: Vec<Look> = Vec::new();
        let hosts = self.hosts();
        let needed = match self.ground.as_ref().map(|held| &held.ground) {
            Some(ground @ ReleaseGround::Confirmed(_)) => ground.to_look_at(),
            // Nothing but the host devices can speak against a person's word: also a slow one is heard.
            Some(ReleaseGround::Attested(_)) => {
                looks = self.look_at(&hosts).await?;
                looks.retain(|look| look.reading.as_ref().is_some_and(|reading| reading.power == Power::On));
                Vec::new()
            }
            None => Vec::new(),
        };
        let besides: Vec<DeviceId> = hosts.into_iter().filter(|host| !needed.contains(host)).collect();
        let mut doing = self.readings(&needed);
        let mut others = std::mem::take(&mut self.lingering);
        let more: Vec<Doing> = besides
            .iter()
            .filter(|host| !others.devices.contains(*host))
            .map(|host| self.hands.read(host))
            .collect();
        others.doing().extend(more);
        others.devices.extend(besides.iter().cloned());
        let asked_at = self.now();
        let patience = tokio::time::sleep(LOOK_LIFE * 3 / 4);
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
        self.store_sessions().await?;
        for device in besides {
            if looks.iter().all(|look| look.device != device) {
                looks.push(Look { device, asked_at, reading: None });
            }
        }
        Ok(looks)
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
        if std::mem::take(&mut self.unchecked_holds) {
            self.check_holds().await?;
        }
        loop {
            self.close_expired(|kind| !kind.bars_proof()).await?;
            let devices: Vec<DeviceId> = self.hosts().into_iter().chain(self.proving_supplies()).collect();
            let Some(looks) = self.watch(&devices).await? else { return Ok(()) };
            if self.found_on(&looks).await?
                || self.supply_is_back(&looks).await?
                || self.pause(self.parts.rules.watch).await?
            {
                return Ok(());
            }
        }
    }

    /// Whether what another process engaged still stands, as the crash table asks. Nothing is sent that changes anything:
    /// what stands no more is said, and power is watched.
    async fn check_holds(&mut self) -> Result<(), Fatal> {
        let holds: BTreeMap<DeviceId, HoldState> =
            self.record().fence.as_ref().map(|fence| fence.holds.clone()).unwrap_or_default();
        let mut doing: FuturesUnordered<Doing> = holds
            .iter()
            .filter(|(_, hold)| !hold.engaged.is_empty())
            .map(|(device, _)| self.hands.inspect(device))
            .collect();
        while let Some((device, did)) = doing.next().await {
            self.show(&device, &did);
            let Did::Inspected(Ok(now)) = did else { continue };
            let (Some(driver), Some(hold)) = (self.plan.drivers.get(&device), holds.get(&device)) else {
                continue;
            };
            let stands = driver.engaged(&now);
            let (engaged, gone): (Vec<String>, Vec<String>) =
                hold.engaged.iter().cloned().partition(|word| stands.contains(word));
            if !gone.is_empty() {
                let detail = format!("found undone by somebody else: {}", gone.join(", "));
                tracing::error!(%device, detail, "the hold does not stand any more");
                let results = vec![(device, HoldState { engaged, detail, ..HoldState::default() })];
                self.persist(|| Event::HoldEnded { results: results.clone(), known: Vec::new() }).await?;
            }
        }
        Ok(())
    }

    /// The supplies whose Off is the proof.
    fn proving_supplies(&self) -> Vec<DeviceId> {
        let Some(fence) = &self.record().fence else { return Vec::new() };
        // Level 0 is a person's word.
        let proves = fence.evidence.as_ref().and_then(|evidence| evidence.level.checked_sub(1));
        let level = proves.and_then(|level| fence.topology.level(level));
        let devices = level.into_iter().flat_map(|level| &level.devices);
        devices.filter(|spec| spec.class == DeviceClass::Supply).map(|spec| spec.id.clone()).collect()
    }

    /// A supply whose Off is the proof reads On: that says nothing of the node, and the proof is gone. True if so.
    async fn supply_is_back(&mut self, looks: &[Look]) -> Result<bool, Fatal> {
        let supplies = self.proving_supplies();
        let Some(device) = on(looks).find(|device| supplies.contains(device)).cloned() else {
            return Ok(false);
        };
        tracing::error!(%device, "a supply that was cut is on again");
        self.persist(|| Event::Unproven { why: format!("supply {device} reads On") }).await?;
        Ok(true)
    }

    pub(super) async fn power_on_failed(&mut self) -> Result<(), Fatal> {
        self.wait_for("a retry, or a fence", "an operator", None);
        loop {
            let hosts = self.hosts();
            if self.pause(self.parts.rules.watch).await? || self.watch(&hosts).await?.is_none() {
                return Ok(());
            }
            self.close_expired(|_| true).await?;
        }
    }

    /// Kept off while a person is waited for: what reads On, and was switched off by this fence, is switched off again.
    /// It is watched as closely as a fenced node: a BMC that restarts between two looks is noticed only while its session
    /// lives.
    pub(super) async fn needs_operator(&mut self, reason: Reason) -> Result<(), Fatal> {
        self.wait_for(format!("a decision ({})", reason.label()), "an operator", None);
        let watch = self.parts.rules.watch;
        let (mut pause, mut off_at, retry_at) = (watch, self.now(), self.now() + watch * 3);
        loop {
            if self.pause(watch).await? {
                return Ok(());
            }
            let here = self.place();
            let Some(looks) = self.watch(&self.kept_off()).await? else { return Ok(()) };
            let record = self.record();
            let Some(fence) = record.fence.as_ref().filter(|fence| fence.generation == record.generation)
            else {
                continue;
            };
            let (confirmed, breach) = (fence.evidence.is_some(), fence.cause == Cause::Breach);
            if confirmed && (self.found_on(&looks).await? || self.supply_is_back(&looks).await?) {
                return Ok(());
            }
            let retryable = matches!(reason, Reason::LevelsSpent | Reason::Deadline);
            if breach && retryable && self.now() >= retry_at {
                let person =
                    Person { name: "picket".to_owned(), reason: "a breach is never given up".to_owned() };
                self.persist(|| Event::Retry(person.clone())).await?;
                return Ok(());
            }
            // Whose machine a device controls was found out to be wrong: nothing is sent to it.
            if reason != Reason::IdentityMismatch && self.now() >= off_at && self.off_again(&looks).await? {
                off_at = self.now() + pause;
                pause = (pause * 2).min(LONGEST_OFF_PAUSE);
            }
            if self.place() != here {
                return Ok(());
            }
        }
    }

    /// What is watched while a person is waited for: the host devices, and everything else that was switched off.
    fn kept_off(&self) -> Vec<DeviceId> {
        let mut devices = self.hosts();
        let switched_off = self.record().fence.iter().flat_map(|fence| &fence.switched_off);
        let more: Vec<DeviceId> = switched_off.filter(|device| !devices.contains(device)).cloned().collect();
        devices.extend(more);
        devices
    }

    /// True if an off was sent.
    async fn off_again(&mut self, looks: &[Look]) -> Result<bool, Fatal> {
        let Some(fence) = &self.record().fence else { return Ok(false) };
        let devices: Vec<DeviceId> =
            on(looks).filter(|device| fence.switched_off.contains(device)).cloned().collect();
        if devices.is_empty() {
            return Ok(false);
        }
        if self.plan.own_host {
            tracing::error!("it is on, and this gateway stands on it: nothing is sent");
            return Ok(false);
        }
        let Some(devices) = self.still_ours(devices).await? else { return Ok(false) };
        if devices.is_empty() {
            return Ok(false);
        }
        let opened = self.persist(|| Event::OffIntent { devices: devices.clone() }).await?;
        let mut doing: FuturesUnordered<Doing> = FuturesUnordered::new();
        for one in opened {
            if let Opened::Off(order) = one {
                // Here nothing is proven by it: it may be as late as it likes.
                doing.push(self.hands.off(Arc::new(order), BootTime::from_boot(Duration::MAX)));
            }
        }
        while let Some((device, did)) = doing.next().await {
            self.show(&device, &did);
            if let Did::Off(effect, result) = did {
                self.counted_from.insert(effect, self.now());
                tracing::warn!(%device, ?result, "the node read On while a person is waited for; the off was sent again");
            }
        }
        Ok(true)
    }

    /// Those of the devices that do not say they control another machine (S13): a board may have been exchanged since.
    /// `None`: one does, and a person is told.
    async fn still_ours(&mut self, devices: Vec<DeviceId>) -> Result<Option<Vec<DeviceId>>, Fatal> {
        let mut doing: FuturesUnordered<Doing> =
            devices.iter().map(|device| self.hands.identify(device)).collect();
        let mut ours = Vec::new();
        while let Some((device, did)) = doing.next().await {
            self.show(&device, &did);
            match did {
                Did::Identified(Ok(said)) => {
                    let expected = self.expected_identity(&device);
                    if expected.compare(&said) == IdentityMatch::Mismatch {
                        let detail = mismatch(&device, &said, &expected);
                        self.give_up(Reason::IdentityMismatch, detail).await?;
                        return Ok(None);
                    }
                    ours.push(device);
                }
                Did::Identified(Err(error)) if error.kind == ErrorKind::Unsupported => ours.push(device),
                _ => {}
            }
        }
        Ok(Some(ours))
    }
}

/// What reads On.
fn on(looks: &[Look]) -> impl Iterator<Item = &DeviceId> {
    let says_on = |look: &&Look| look.reading.as_ref().is_some_and(|reading| reading.power == Power::On);
    looks.iter().filter(says_on).map(|look| &look.device)
}

/// That a device controls another machine, in words.
pub(super) fn mismatch(device: &DeviceId, said: &Identity, expected: &Identity) -> String {
    let (says, wanted) = (said.words(), expected.words());
    format!("{device} says it controls {says}, expected {wanted}: nothing was sent to it")
}
