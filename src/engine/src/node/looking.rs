//! Asking devices for power, and what is known of them to whoever looks.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::event::Event;
use picket_core::ground::{LOOK_LIFE, Look, ReleaseGround};
use picket_core::ids::DeviceId;
use picket_core::power::Power;
use picket_core::record::Phase;
use picket_core::time::BootTime;

use super::command::Command;
use super::hands::{Did, Doing};
use super::{Fatal, Ground, NodeTask, sleep_until};
use crate::parents::ParentAsk;

/// Readings of host devices that a look did not wait for. Nothing else may be asked of these devices before they are
/// gone on with or dropped: it would wait for them.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    devices: BTreeSet<DeviceId>,
    /// None in a node at rest.
    doing: Option<Mutex<FuturesUnordered<Doing>>>,
}

/// What a look for a child said, for the others that ask.
#[derive(Debug)]
pub(super) struct SharedLook {
    looks: Vec<Look>,
    /// Of which proof it is.
    ground: Weak<Ground>,
    until: BootTime,
}

/// A look for one child serves the others so long at least.
const SHARED: Duration = Duration::from_millis(250);
/// Whoever was found to be told what it said is told so, also a moment later.
const GRACE: Duration = Duration::from_millis(100);
/// How long a look for children waits for host devices besides those that prove.
const PATIENCE_FOR_CHILDREN: Duration = Duration::from_millis(100);

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
            Did::Ended { result: Err(error), .. } => Some(error),
            _ => None,
        };
        live.fault_kind = fault.map(|error| error.kind);
        live.fault = fault.map(|error| (error.to_string(), wall));
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
        let mut doing = self.hands.read_all(devices);
        loop {
            tokio::select! {
                biased;
                Some(command) = self.mailbox.recv() => {
                    // Where it asks the same devices it would wait for calls that nobody goes on with. All else lets the
                    // readings go on: callers, however many, do not keep power from being watched.
                    let proves = self.record().phase == Phase::Released && !command.is_check();
                    let asks = proves || command.asks_devices() || command.looks() && !self.is_told(&command);
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
                        doing = self.hands.read_all(devices.iter().filter(left));
                    }
                }
                next = doing.next() => match next {
                    Some((device, did)) => {
                        looks.extend(self.looked(device, did));
                        if looks.last().is_some_and(enough) {
                            break;
                        }
                    }
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
        let looks = self.glance().await;
        self.store_sessions().await?;
        Ok(looks)
    }

    /// The same, and nothing is stored: it may be dropped at any moment.
    pub(super) async fn glance(&mut self) -> Vec<Look> {
        self.glance_within(LOOK_LIFE * 3 / 4).await
    }

    /// What a look for one child says serves the others that ask in the meantime: as long as it took, and [`SHARED`] at least. So
    /// however many ask, and however slow a device is, the node's own work goes on. No other host device is waited for that may
    /// speak against it: that is the watch's matter, and what is late there is late for no child.
    pub(super) async fn look_for_children(&mut self) -> Result<Vec<Look>, Fatal> {
        let asked_at = self.now();
        if let Some(last) = self.shared_look(GRACE) {
            return Ok(last.looks.clone());
        }
        let ground = self.ground.as_ref().map(Arc::downgrade).unwrap_or_default();
        let looks = self.glance_within(PATIENCE_FOR_CHILDREN).await;
        self.store_sessions().await?;
        let now = self.now();
        let until = now + now.since(asked_at).max(SHARED);
        self.shared_look = Some(Box::new(SharedLook { looks: looks.clone(), ground, until }));
        Ok(looks)
    }

    /// Whether a child is told what another one's look said: no device is asked for it.
    fn is_told(&self, command: &Command) -> bool {
        matches!(command, Command::Parent(ParentAsk::Look { .. }, ..))
            && self.shared_look(Duration::ZERO).is_some()
    }

    fn shared_look(&self, grace: Duration) -> Option<&SharedLook> {
        let (now, ground) = (self.now(), self.ground.as_ref()?);
        let last = self.shared_look.as_deref()?;
        (now < last.until + grace && last.ground.as_ptr() == Arc::as_ptr(ground)).then_some(last)
    }

    async fn glance_within(&mut self, patience: Duration) -> Vec<Look> {
        let mut looks: Vec<Look> = Vec::new();
        let hosts = self.hosts();
        let needed = match self.ground.as_ref().map(|held| &held.ground) {
            Some(ground @ ReleaseGround::Confirmed(_)) => ground.to_look_at(),
            // Nothing but the host devices can speak against a person's word: also a slow one is heard.
            Some(ReleaseGround::Attested(_)) => {
                looks = self.glance_at(&hosts).await;
                looks.retain(|look| look.reading.as_ref().is_some_and(|reading| reading.power == Power::On));
                Vec::new()
            }
            None => Vec::new(),
        };
        let besides: Vec<DeviceId> = hosts.into_iter().filter(|host| !needed.contains(host)).collect();
        let mut doing = self.hands.read_all(&needed);
        let mut others = std::mem::take(&mut self.lingering);
        let more: Vec<Doing> = besides
            .iter()
            .filter(|host| !others.devices.contains(*host))
            .map(|host| self.hands.read(host))
            .collect();
        others.doing().extend(more);
        others.devices.extend(besides.iter().cloned());
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
        self.resumed = false;
        self.persist(|| Event::Breach { id, device: device.clone() }).await?;
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
pub(super) fn on(looks: &[Look]) -> impl Iterator<Item = &DeviceId> {
    looks.iter().filter(|look| is_on(look)).map(|look| &look.device)
}

/// Whether it says On.
pub(super) fn is_on(look: &Look) -> bool {
    look.reading.as_ref().is_some_and(|reading| reading.power == Power::On)
}
