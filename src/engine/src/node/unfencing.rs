//! Bringing a node back: waits out what is open, supplies, holds, the host's on, On seen.

mod letting;
mod rounds;
mod stood_down;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::device::DeviceClass;
use picket_core::event::Event;
use picket_core::gate::{self, GateFault};
use picket_core::ids::DeviceId;
use picket_core::ledger::{EffectKind, OpenEffect};
use picket_core::order::{Opened, PendingOn};
use picket_core::power::Power;
use picket_core::record::Bringing;
use picket_core::store::StoreError;
use picket_core::time::BootTime;
use picket_driver::{DriverError, Effect, ErrorKind};
use rounds::Rounds;

use super::drain::Drained;
use super::hands::{Did, Doing};
use super::whose::{Ours, Vouched};
use super::{Fatal, NodeTask};

/// An on that was taken and is not seen is sent again after this.
const REPEAT: Duration = Duration::from_secs(15);
/// Between two readings while On is waited for; a provider's interface is asked at its own interval.
const PACE: Duration = Duration::from_millis(500);
/// How often undoing a hold is tried with a device that answers, before the power-on goes first.
const UNHOLD_TRIES: u32 = 5;
/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Why an on does not go after that reading: it showed nothing, or it made a session that does not stand in the ledger.
fn not_now(looked: &Did, is_stored: bool) -> Option<DriverError> {
    let Did::Read { result, .. } = looked else { return None };
    match result {
        Err(error) => Some(DriverError { effect: Effect::DidNotHappen, ..error.clone() }),
        Ok(_) if is_stored => None,
        Ok(_) => Some(DriverError::new(
            ErrorKind::Refused,
            Effect::DidNotHappen,
            "its session began just now: the on is stored with it first",
        )),
    }
}

impl NodeTask {
    pub(super) async fn unfencing(&mut self) -> Result<(), Fatal> {
        if self.drain(self.bars_bringing()).await? != Drained::Yes {
            return Ok(());
        }
        let deadline = self.now() + self.parts.rules.on_deadline;
        if !self.is_let_on(deadline).await? {
            return Ok(());
        }
        let deadline = self.now() + self.parts.rules.on_deadline;
        // A parent that was fenced for this node has to come back itself meanwhile.
        for class in [DeviceClass::Supply, DeviceClass::Parent] {
            let devices = self.switched_off(class);
            if !devices.is_empty() {
                if !self.bring_on(&devices, deadline).await? {
                    return Ok(());
                }
                self.persist(|| Event::SuppliesOn { devices: devices.clone() }).await?;
            }
        }
        if !self.undo_holds().await? {
            return Ok(());
        }
        // Undoing a hold may have taken as long.
        let deadline = self.now() + self.parts.rules.on_deadline;
        let detail = match self.record().bringing {
            Bringing::Abort => "nothing had been switched off".to_owned(),
            Bringing::StandDown => match self.seen_alive(deadline).await? {
                Some(detail) => detail,
                None => return Ok(()),
            },
            Bringing::PowerOn => {
                // Undoing holds takes its time: what somebody set up meanwhile bars the on, too.
                if !self.is_let_on(deadline).await? {
                    return Ok(());
                }
                let hosts = self.hosts_to_bring_on();
                if !self.bring_on(&hosts, deadline).await? {
                    return Ok(());
                }
                "seen on".to_owned()
            }
        };
        // The sessions that carried the on end before anybody can want an off again.
        if self.drain(EffectKind::bars_proof).await? == Drained::Yes {
            self.ground = None;
            self.conclude_drill().await?;
            self.persist(|| Event::Back { detail: detail.clone() }).await?;
        }
        Ok(())
    }

    /// What must have ended before anything is switched on. An on or the undoing of a hold that somebody before us sent
    /// is waited out too: what happens from here on is then our own doing.
    fn bars_bringing(&self) -> fn(&EffectKind) -> bool {
        let foreign = |open: &OpenEffect| open.kind.bars_proof() && !self.own.contains(&open.id);
        if self.record().ledger.open().iter().any(foreign) { |_| true } else { EffectKind::bars_on }
    }

    fn switched_off(&self, class: DeviceClass) -> Vec<DeviceId> {
        let Some(fence) = &self.record().fence else { return Vec::new() };
        let of_class = |id: &&DeviceId| fence.topology.device(id).is_some_and(|spec| spec.class == class);
        fence.switched_off.iter().filter(of_class).cloned().collect()
    }

    /// The host devices that were switched off; after a fence that switched none off (a person's word), those of the
    /// first level that has any.
    fn hosts_to_bring_on(&self) -> Vec<DeviceId> {
        let hosts = self.switched_off(DeviceClass::Host);
        let Some(fence) = self.record().fence.as_ref().filter(|_| hosts.is_empty()) else { return hosts };
        let is_host = |level: &&picket_core::topology::Level| {
            level.devices.iter().any(|d| d.class == DeviceClass::Host)
        };
        let first = fence.topology.levels().iter().find(is_host);
        first.into_iter().flat_map(|level| &level.devices).map(|spec| spec.id.clone()).collect()
    }

    /// Why one of the host devices that are to be switched on never comes on again, where that device has said so.
    pub(super) fn gone_for_good(&self) -> Option<String> {
        self.hosts_to_bring_on().iter().find_map(|id| self.gone(id))
    }

    fn gone(&self, id: &DeviceId) -> Option<String> {
        Some(format!("{id}: {}", self.plan.drivers.get(id)?.gone_for_good()?))
    }

    /// Puts back what the holds found. False if the node was moved meanwhile.
    async fn undo_holds(&mut self) -> Result<bool, Fatal> {
        let here = self.place();
        let mut tries = 0;
        let mut pause = PACE;
        // A BMC that was cut off with its supplies first has to start: what was found must not be forgotten meanwhile.
        let until = self.now() + self.parts.rules.on_deadline;
        while self.record().fence.as_ref().is_some_and(|fence| !fence.holds.is_empty()) {
            let held = self.record().fence.iter().flat_map(|fence| fence.holds.keys());
            let held: Vec<DeviceId> = held.cloned().collect();
            self.open_sessions(&held).await;
            let Some(ours) = self.ours_to_undo(&held).await? else { return Ok(false) };
            if self.record().fence.as_ref().is_none_or(|fence| fence.holds.is_empty()) {
                break;
            }
            let opened = self.persist_in_sessions(|| Event::UnholdIntent).await?;
            if self.place() != here {
                return Ok(false);
            }
            let mut doing: FuturesUnordered<Doing> = FuturesUnordered::new();
            let (mut faults, mut silent) = (Vec::new(), false);
            for one in opened {
                let Opened::Unhold(order) = one else { continue };
                match ours.get(order.device()) {
                    Some(life) => doing.push(self.hands.unhold(Arc::new(order), *life)),
                    None => {
                        silent = true;
                        faults.push(order.device().clone());
                    }
                }
            }
            while let Some((device, did)) = doing.next().await {
                self.show(&device, &did);
                let Did::Unheld(effect, result) = did else { continue };
                self.counted_from.insert(effect, self.now());
                match result {
                    Ok(report) => {
                        let devices = vec![device];
                        let detail = report.detail;
                        self.persist(|| Event::Unheld { devices: devices.clone(), detail: detail.clone() })
                            .await?;
                    }
                    Err(error) => {
                        tracing::warn!(%device, %error, "the hold was not seen to be undone");
                        silent |= matches!(error.kind, ErrorKind::TimedOut | ErrorKind::Unreachable);
                        faults.push(device);
                    }
                }
            }
            tries += 1;
            if !faults.is_empty() && (tries >= UNHOLD_TRIES && !silent || self.now() >= until) {
                // A board that refuses to take its policy back must not keep the node off; it is said in the record.
                let detail =
                    "could not be undone: put the device's restore policy, watchdog and button back by hand";
                self.persist(|| Event::Unheld { devices: faults.clone(), detail: detail.to_owned() }).await?;
            } else if !faults.is_empty() && self.pause(pause).await? {
                return Ok(false);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(true)
    }

    /// Switches devices on, and waits until each reads On. False if that failed, or the node was moved.
    async fn bring_on(&mut self, devices: &[DeviceId], deadline: BootTime) -> Result<bool, Fatal> {
        let here = self.place();
        let devices = devices.to_vec();
        if devices.is_empty() {
            return Ok(true);
        }
        let mut vouched = Vouched::default();
        let mut pending = self.on_intent(&devices).await?;
        let mut dark: BTreeSet<DeviceId> = devices.iter().cloned().collect();
        let mut send_at = self.now();
        let mut rounds = Rounds::new(PACE);
        while !dark.is_empty() {
            let now = self.now();
            let gone = dark.iter().find_map(|device| self.gone(device));
            if now >= deadline || pending.is_empty() || gone.is_some() {
                let names: Vec<String> = dark.iter().map(|device| vouched.words(device)).collect();
                let within = self.parts.rules.on_deadline;
                let detail = match gone {
                    Some(why) => format!("it does not come back, retire it ({why})"),
                    None => format!("{} not seen on within {within:?}", names.join(", ")),
                };
                tracing::error!(detail, "the node was not seen to come on");
                self.persist(|| Event::OnFailed { detail: detail.clone() }).await?;
                return Ok(false);
            }
            if now >= send_at {
                self.follow_sessions(&mut pending, &dark).await?;
                if self.place() != here {
                    return Ok(false);
                }
                let Some(ours) = self.vouched(&mut vouched, &dark).await? else { return Ok(false) };
                let of_ours = |on: &&PendingOn| ours.contains_key(on.device());
                let to_send = pending.iter().filter(|on| dark.contains(on.device())).filter(of_ours);
                let again = self.send_on(to_send, &ours).await?;
                let unsaid = dark.iter().filter(|device| !ours.contains_key(*device));
                let whose = unsaid.map(|device| self.asked_again(device, true, PACE * 2));
                send_at = self.now() + whose.chain([again]).min().unwrap_or(again);
                // All of them were asked something just now.
                let now = self.now();
                dark.iter().for_each(|device| rounds.heard(self, device, true, now));
            }
            let names: Vec<String> = dark.iter().map(ToString::to_string).collect();
            self.wait_for("On to be seen", names.join(", "), Some(deadline.since(now)));
            let next = rounds.first(&dark).unwrap_or(send_at).min(send_at).min(deadline);
            if self.pause(next.since(self.now())).await? || self.place() != here {
                return Ok(false);
            }
            let asked = rounds.due(&dark, self.now());
            if asked.is_empty() {
                continue;
            }
            let Some(looks) = self.watch(&asked).await? else { return Ok(false) };
            let heard_at = self.now();
            for look in looks {
                rounds.heard(self, &look.device, look.reading.is_some(), heard_at);
                if look.reading.as_ref().is_some_and(|reading| reading.power != Power::Unknown) {
                    vouched.answers(&look.device);
                }
                if look.reading.is_some_and(|reading| reading.power == Power::On) {
                    dark.remove(&look.device);
                }
            }
            dark.retain(|device| !self.is_without_parent(device));
        }
        Ok(true)
    }

    /// Whether the device is a parent that nobody is held by any more, and that is no node now, or an orphan: nothing of it comes back
    /// by itself, and its child waits for it no longer.
    fn is_without_parent(&self, device: &DeviceId) -> bool {
        let fault = || self.live.devices.get(device).and_then(|live| live.fault_kind);
        self.hands.class(device) == Some(DeviceClass::Parent)
            && self.office.held_by(&self.plan.id).is_empty()
            && fault() == Some(ErrorKind::Settings)
    }

    /// Stores that they are about to be switched on, each in the session that it has then.
    async fn on_intent(&mut self, devices: &[DeviceId]) -> Result<Vec<PendingOn>, Fatal> {
        self.open_sessions(devices).await;
        let devices = devices.to_vec();
        let opened = self.persist_in_sessions(|| Event::OnIntent { devices: devices.clone() }).await?;
        let ons = opened.into_iter().filter_map(|one| if let Opened::On(on) = one { Some(on) } else { None });
        Ok(ons.collect())
    }

    /// An on goes in the session that is stored with it; where another one took its place, or one began since, it is stored anew.
    async fn follow_sessions(
        &mut self,
        pending: &mut Vec<PendingOn>,
        dark: &BTreeSet<DeviceId>,
    ) -> Result<(), Fatal> {
        let is_over = |on: &&PendingOn| self.hands.session(on.device()).as_deref() != on.session();
        let over = pending.iter().filter(|on| dark.contains(on.device())).filter(is_over);
        let over: Vec<DeviceId> = over.map(|on| on.device().clone()).collect();
        if !over.is_empty() {
            let anew = self.on_intent(&over).await?;
            pending.retain(|on| !over.contains(on.device()));
            pending.extend(anew);
        }
        Ok(())
    }

    /// Sends each on once, right after power was read and the store was asked. Answers when it is to be sent again if nothing comes on.
    async fn send_on(
        &mut self,
        pending: impl Iterator<Item = &PendingOn>,
        ours: &Ours,
    ) -> Result<Duration, Fatal> {
        let life = |on: &PendingOn| ours.get(on.device()).copied().flatten();
        let mut sending: FuturesUnordered<_> = pending.map(|on| self.send_one(on, life(on))).collect();
        let mut again = REPEAT;
        while let Some((device, looked, sent)) = sending.next().await {
            self.show(&device, &looked);
            let did = match sent {
                Ok(did) => did,
                Err(GateFault::Store(error @ (StoreError::Deposed(_) | StoreError::Conflict { .. }))) => {
                    return Err(Fatal(error));
                }
                Err(fault) => {
                    tracing::warn!(%fault, "the on is not sent now");
                    again = again.min(self.asked_again(&device, true, PACE * 2));
                    continue;
                }
            };
            self.show(&device, &did);
            match did {
                Did::On(effect, Ok(taken)) => {
                    tracing::info!(%device, %effect, already = taken.already, "the on was taken");
                }
                Did::On(effect, Err(error)) => {
                    tracing::warn!(%device, %effect, %error, "the on was not seen to be taken");
                    let pace = if error.effect == Effect::DidNotHappen { PACE * 2 } else { PACE * 4 };
                    again = again.min(self.asked_again(&device, true, pace));
                }
                _ => {}
            }
        }
        Ok(again)
    }

    /// Reads power, asks the store once more and sends at once: no other device's turn comes between. The on goes in the session of that
    /// reading, where the device said in it whose machine it controls (`life`). None is made for the on after the store's word: what comes
    /// between the two, also a stop of the whole machine that neither of its clocks sees, the device ends by its idle limit (S6, S8).
    fn send_one<'on>(
        &self,
        on: &'on PendingOn,
        life: Option<u64>,
    ) -> impl Future<Output = (DeviceId, Did, Result<Did, GateFault>)> + use<'on> {
        let (parts, hands, stored) = (self.parts.clone(), self.hands.clone(), self.stored.clone());
        async move {
            // What is shared is waited for before power is read: nothing comes between the store's word and the on.
            let (_turns, hands) = match hands.in_turn(on.device()).await {
                Ok(ready) => ready,
                Err(error) => {
                    let asked_at = parts.clock.boot();
                    let looked = Did::Read { asked_at, result: Err(error.clone()) };
                    return (on.device().clone(), looked, Ok(Did::On(on.effect(), Err(error))));
                }
            };
            let (device, looked) = hands.read(on.device()).await;
            // What a parent is asked goes in no session, and lets go also of one whose whereabouts nobody tells.
            let is_parent = hands.class(&device) == Some(DeviceClass::Parent);
            let is_stored = hands.session(&device).as_deref() == on.session();
            if let Some(why) = not_now(&looked, is_stored).filter(|_| !is_parent) {
                return (device, looked, Ok(Did::On(on.effect(), Err(why))));
            }
            parts.hooks.reached("sending on").await;
            let sent = match gate::on_order(&*parts.store, hands.leadership(), &stored, on).await {
                Ok(order) => Ok(hands.on(order, life).await.1),
                Err(fault) => Err(fault),
            };
            (device, looked, sent)
        }
    }
}
