//! Asking devices for power, and what is known of them to whoever looks.

mod lingering;

use std::time::Duration;

use futures::StreamExt;
use futures::future::OptionFuture;
use picket_core::device::{DeviceClass, DeviceSpec};
use picket_core::event::Event;
use picket_core::ground::{LOOK_LIFE, Look, LookFault, ReleaseGround};
use picket_core::ids::DeviceId;
use picket_core::outcome::Reason;
use picket_core::power::Power;
use picket_core::time::BootTime;
use tokio::time::Instant;

pub(super) use self::lingering::Lingering;
use super::children::Asks;
use super::hands::Did;
use super::whose::is_another_s;
use super::{Fatal, NodeTask, Place, sleep_until, words};

impl NodeTask {
    /// Notes what a call came to, for whoever looks.
    pub(super) fn show(&mut self, device: &DeviceId, did: &Did) {
        let wall = self.wall();
        let boot = self.now();
        let expected = self.expected_identity(device);
        let spec = self.stands_by().device(device);
        let untold = |spec: &DeviceSpec| {
            spec.class == DeviceClass::Host && !spec.is_cloud() && !self.sessions.told_a_life(device)
        };
        let hides = spec.is_some_and(|spec| spec.hides_its_restarts() || untold(spec));
        self.sessions.note(device, did);
        if hides {
            let refused_at = self.plan.drivers.get(device).and_then(|driver| driver.refused_session_at());
            self.sessions.note_unseen(device, did, refused_at, boot);
        } else {
            self.sessions.note_seen(device, did, boot);
        }
        if let (Did::Read { result: Ok(reading), .. }, Some(drilled)) = (did, &mut self.drilled) {
            drilled.note(device, reading);
        }
        let (mut says_whose, mut said_now) = (false, None);
        let call = self.plan.topology.device(device).map(|spec| spec.call);
        let live = self.device_live(device);
        let fault = match did {
            Did::Read { result: Ok(reading), .. } => {
                let ago = boot.since(reading.asked_at);
                let asked = wall.millis().saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(0));
                live.power = Some((reading.power, picket_core::time::WallTime::from_millis(asked)));
                live.said.clone_from(&reading.said);
                live.reading_took = Some(reading.answered_at.since(reading.asked_at));
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
        match did {
            Did::Off { result: Ok(_), .. } | Did::On(_, Ok(_)) => live.refused = None,
            Did::Off { result: Err(error), .. } | Did::On(_, Err(error)) if error.waits_for_a_person() => {
                live.refused = Some(format!("it refused what it was told last: {error}"));
            }
            _ => {}
        }
        live.fault_kind = fault.map(|error| error.kind);
        live.fault = fault.map(|error| (words::fault(error, call, live.reading_took), wall));
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
        let mut doing = self.hands.urgently().read_all(devices);
        let mut looks = Vec::new();
        while let Some((device, did)) = doing.next().await {
            looks.extend(self.looked(device, did));
        }
        looks
    }

    /// Reads these devices now, side by side, and answers callers meanwhile. `None`: the node was moved.
    pub(super) async fn watch(&mut self, devices: &[DeviceId]) -> Result<Option<Vec<Look>>, Fatal> {
        self.lingering.clear();
        self.watch_for(devices, &[], self.plan.paces.longest_look).await
    }

    /// The same, until one of `decisive` says On, and for so long at most: what the others say then is heard by the next one.
    pub(super) async fn watch_for(
        &mut self,
        devices: &[DeviceId],
        decisive: &[DeviceId],
        longest: Duration,
    ) -> Result<Option<Vec<Look>>, Fatal> {
        let (here, until) = (self.place(), Instant::now() + longest);
        let mut looks: Vec<Look> = std::mem::take(&mut self.lingering.heard);
        looks.retain(|look| devices.contains(&look.device));
        // A child's look asks what proves, and lets the readings of all else go on: that may speak against it.
        let needed = self.needed();
        let mut own: Vec<DeviceId> =
            devices.iter().filter(|device| needed.contains(device)).cloned().collect();
        own.retain(|device| !self.lingering.devices.contains(device));
        let besides: Vec<DeviceId> = devices.iter().filter(|device| !own.contains(device)).cloned().collect();
        let (mut asked, mut doing) = (own.clone(), self.hands.read_all(&own));
        self.go_on_with(&besides);
        let is_decided =
            |looks: &[Look]| looks.iter().any(|look| is_on(look) && decisive.contains(&look.device));
        while !(is_decided(&looks) || doing.is_empty() && self.lingering.devices.is_empty()) {
            // Answers before callers, as wherever a device is waited for: a mailbox that never empties would keep them unread.
            let next = tokio::select! {
                biased;
                Some(next) = doing.next(), if !doing.is_empty() => next,
                Some(next) = self.lingering.next() => next,
                () = tokio::time::sleep_until(until) => {
                    self.lingering.doing().extend(doing);
                    self.lingering.devices.extend(asked);
                    break;
                }
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
                    // What a look for a caller read, this one read.
                    let heard = std::mem::take(&mut self.lingering.heard);
                    for look in heard.into_iter().chain(self.just_told()) {
                        let is_news = is_on(&look) || looks.iter().all(|one| one.device != look.device);
                        if devices.contains(&look.device) && is_news {
                            looks.push(look);
                        }
                    }
                    if asks != Asks::Nothing {
                        let left = |device: &&DeviceId| looks.iter().all(|look| look.device != **device);
                        asked = own.iter().filter(left).cloned().collect();
                        doing = self.hands.read_all(&asked);
                        let left: Vec<DeviceId> = besides.iter().filter(left).cloned().collect();
                        self.go_on_with(&left);
                    }
                    continue;
                }
            };
            let (device, did) = next;
            asked.retain(|one| *one != device);
            looks.extend(self.looked(device, did));
        }
        self.store_sessions().await?;
        self.let_others_be(&mut looks).await?;
        Ok((self.place() == here).then_some(looks))
    }

    /// Reads what the ground wants looked at, and every other host device besides: these are not waited for longer
    /// than a look may be old, since a dead BMC must not make a proof by supplies stale. Where something stands, or is under way, that
    /// goes for all of them. Their readings go on at the next look: a device whose session has to be made anew takes longer than one.
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
    pub(super) fn go_on_with(&mut self, devices: &[DeviceId]) {
        let new = |device: &&DeviceId| !self.lingering.devices.contains(*device);
        let new: Vec<DeviceId> = devices.iter().filter(new).cloned().collect();
        let more = self.hands.read_all(&new);
        self.lingering.doing().extend(more);
        self.lingering.devices.extend(new);
    }

    /// The same, and nothing is stored: it may be dropped at any moment.
    pub(super) async fn glance(&mut self) -> Vec<Look> {
        self.glance_within(LOOK_LIFE * 3 / 4, self.lets_go()).await
    }

    /// `patience`: how long it waits for the devices besides. It ends at the first On. `hurries`: what stands is not kept by a device that is slow, or
    /// waits for its turn (K3), nor is who waits for the store.
    pub(super) async fn glance_within(&mut self, patience: Duration, hurries: bool) -> Vec<Look> {
        let (hosts, needed) = (self.hosts(), self.needed());
        let is_attested =
            self.ground.as_ref().is_some_and(|held| matches!(held.ground, ReleaseGround::Attested(_)));
        // Nothing but the host devices can speak against a person's word: also a slow one is heard.
        if is_attested && !hurries {
            // An On that was heard meanwhile is what ends that word.
            let heard = std::mem::take(&mut self.lingering.heard);
            self.lingering.clear();
            self.lingering.heard = heard;
            let looks = self.hear((&hosts, self.plan.paces.longest_look), (&[], Duration::ZERO)).await;
            // One whose turn did not come in all that time was not asked: nothing goes by the word of a person then.
            let is_asked = |host: &DeviceId| looks.iter().any(|look| look.device == *host);
            if on(&looks).next().is_some() || !hosts.iter().all(is_asked) {
                return looks;
            }
        }
        let besides: Vec<DeviceId> = hosts.into_iter().filter(|host| !needed.contains(host)).collect();
        let longest = if hurries { LOOK_LIFE } else { self.plan.paces.longest_look };
        self.hear((&needed, longest), (&besides, patience)).await
    }

    /// Reads devices, or goes on with it, each of the two groups for so long at most, and until one of them says On.
    async fn hear(&mut self, needed: (&[DeviceId], Duration), besides: (&[DeviceId], Duration)) -> Vec<Look> {
        let (asked_at, began) = (self.now(), Instant::now());
        let mut looks = std::mem::take(&mut self.lingering.heard);
        // An answer to an earlier look's question is of then: it may be On, and for the rest the device is asked anew.
        let is_of_before = |look: &Look, now: BootTime| {
            look.asked() < asked_at && (look.reading.is_none() || now.since(look.asked()) > LOOK_LIFE / 2)
        };
        for (devices, _) in [needed, besides] {
            let is_heard = |device: &DeviceId| {
                looks.iter().any(|look| look.device == *device && !is_of_before(look, asked_at))
            };
            let due: Vec<DeviceId> = devices.iter().filter(|device| !is_heard(device)).cloned().collect();
            self.go_on_with(&due);
        }
        while on(&looks).next().is_none() {
            let waits =
                [needed, besides].into_iter().filter(|(devices, _)| self.lingering.is_asking(devices));
            let Some(until) =
                waits.map(|(_, patience)| began + patience).filter(|at| *at > Instant::now()).min()
            else {
                break;
            };
            tokio::select! {
                biased;
                Some((device, did)) = self.lingering.next() => {
                    let Some(look) = self.looked(device, did) else { continue };
                    if is_of_before(&look, self.now()) {
                        self.go_on_with(std::slice::from_ref(&look.device));
                    }
                    looks.push(look);
                }
                () = tokio::time::sleep_until(until) => {}
            }
        }
        let silent = [needed.0, besides.0].concat().into_iter();
        let silent = silent.filter(|device| self.lingering.devices.contains(device));
        let silent: Vec<Look> = silent.map(|device| Look { device, asked_at, reading: None }).collect();
        if on(&looks).next().is_some() {
            self.lingering.clear();
        }
        looks.extend(silent);
        looks
    }

    /// An answer to what a look did not wait for, which the next look hears. True if that is due at once.
    pub(super) fn is_heard_late(&mut self, device: DeviceId, did: Did) -> bool {
        let Some(look) = self.looked(device, did) else { return false };
        let is_waited_for = look.reading.is_some() && self.needed().contains(&look.device);
        let is_due = is_on(&look) || is_waited_for;
        self.lingering.heard.push(look);
        is_due
    }

    /// Why these looks do not bear an attempt. Those in a row that show no Off are counted (K3, S4).
    pub(super) fn weigh(&mut self, looks: &[Look]) -> Option<LookFault> {
        let now = self.now();
        let Some(held) = self.ground.clone() else {
            self.unseen += 1;
            return None;
        };
        let is_off = held.ground.is_seen_off(looks, now, |device| self.hands.time(device));
        self.unseen = if is_off { 0 } else { self.unseen + 1 };
        held.ground.examine(looks, now).err()
    }

    fn looked(&mut self, device: DeviceId, did: Did) -> Option<Look> {
        self.show(&device, &did);
        let Did::Read { result, .. } = &did else { return None };
        if result.as_ref().is_err_and(|error| error.kind == picket_driver::ErrorKind::NoTurn) {
            // Nobody asked it: that is no look, and a person's word waits for one (S4, S12).
            return None;
        }
        match result {
            Err(error) if is_another_s(error) => {
                let _before = self.exchanged.insert(device.clone(), error.detail.clone());
            }
            _ => drop(self.exchanged.remove(&device)),
        }
        Some(did.look(&device))
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

    /// Waits for `pause`, answering callers; true if the node is not `here` any more, also where it was moved before, or if another task is to
    /// go on with it.
    pub(super) async fn pause(&mut self, here: Place, pause: Duration) -> Result<bool, Fatal> {
        let until = self.now() + pause;
        while self.place() == here && !self.steps_aside() {
            let now = self.now();
            tokio::select! {
                biased;
                Some((device, did)) = self.lingering.next() => {
                    // Whoever waits for it has its turn, or its answer.
                    if self.is_heard_late(device, did) {
                        return Ok(false);
                    }
                }
                Some(command) = self.mailbox.recv() => self.command(command).await?,
                () = sleep_until(now, until) => return Ok(false),
            }
            // Callers, however many, do not keep what is due waiting.
            if self.place() == here && (self.now() >= until || self.lingering.hears_on()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What reads On.
pub(in crate::node) fn on(looks: &[Look]) -> impl Iterator<Item = &DeviceId> {
    looks.iter().filter(|look| is_on(look)).map(|look| &look.device)
}

/// Whether it says On.
fn is_on(look: &Look) -> bool {
    look.reading.as_ref().is_some_and(|reading| reading.power == Power::On)
}
