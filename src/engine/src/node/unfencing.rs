//! Bringing a node back: waits out what is open, supplies, holds, the host's on, On seen.

mod letting;
mod rounds;
mod sending;
mod stood_down;
mod vouching;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use letting::Clearance;
use picket_core::device::DeviceClass;
use picket_core::event::Event;
use picket_core::ids::DeviceId;
use picket_core::ledger::{EffectKind, OpenEffect};
use picket_core::machine::Refused;
use picket_core::order::{Opened, PendingOn};
use picket_core::power::Power;
use picket_core::record::Bringing;
use picket_core::time::{BootTime, written};
use picket_driver::ErrorKind;
use rounds::Rounds;

use self::vouching::Vouched;
use super::drain::Drained;
use super::hands::{Did, Doing};
use super::{Fatal, NodeTask};

/// The ons that are stored, and why the rules did not allow one.
#[derive(Debug)]
struct Intended {
    ons: Vec<PendingOn>,
    refused: Option<Refused>,
}

impl NodeTask {
    pub(super) async fn unfencing(&mut self) -> Result<(), Fatal> {
        self.exchanged.clear();
        self.hear_witness().await;
        if self.drain(self.bars_bringing()).await? != Drained::Yes {
            return Ok(());
        }
        let deadline = self.now() + self.parts.rules.on_deadline;
        if !self.is_let_on(deadline).await? {
            return Ok(());
        }
        let deadline = self.now() + self.parts.rules.on_deadline;
        let mut clearance = Clearance::given(self.now());
        // A parent that was fenced for this node has to come back itself meanwhile.
        for class in [DeviceClass::Supply, DeviceClass::Parent] {
            let devices = self.switched_off(class);
            if !devices.is_empty() {
                if !self.bring_on(&devices, &mut clearance, deadline).await? {
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
                let mut clearance = Clearance::given(self.now());
                let hosts = self.hosts_to_bring_on();
                if !self.bring_on(&hosts, &mut clearance, deadline).await? {
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
        let mut pause = self.plan.paces.unhold.first;
        // A BMC that was cut off with its supplies first has to start: what was found must not be forgotten meanwhile.
        let until = self.now() + self.parts.rules.on_deadline;
        while self.record().fence.as_ref().is_some_and(|fence| !fence.holds.is_empty()) {
            let held = self.record().fence.iter().flat_map(|fence| fence.holds.keys());
            let held: Vec<DeviceId> = held.cloned().collect();
            self.open_sessions(&held).await;
            let Some(ours) = self.ours_to_undo(&held, tries).await? else { return Ok(false) };
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
            if !faults.is_empty() && (tries >= self.plan.paces.unhold_tries && !silent || self.now() >= until)
            {
                // A board that refuses to take its policy back must not keep the node off; it is said in the record.
                let detail =
                    "could not be undone: put the device's restore policy, watchdog and button back by hand";
                self.persist(|| Event::Unheld { devices: faults.clone(), detail: detail.to_owned() }).await?;
            } else if !faults.is_empty() && self.pause(here, pause).await? {
                return Ok(false);
            }
            pause = self.plan.paces.unhold.after(pause);
        }
        Ok(true)
    }

    /// Switches devices on, and waits until each reads On. False if that failed, or the node was moved.
    async fn bring_on(
        &mut self,
        devices: &[DeviceId],
        clearance: &mut Clearance,
        deadline: BootTime,
    ) -> Result<bool, Fatal> {
        let here = self.place();
        let devices = devices.to_vec();
        if devices.is_empty() {
            return Ok(true);
        }
        let mut vouched = Vouched::default();
        let mut pending = self.on_intent(&devices).await?;
        let mut dark: BTreeSet<DeviceId> = devices.iter().cloned().collect();
        let (mut send_at, mut told) = (self.now(), 0u32);
        let mut rounds = Rounds::new(self.plan.paces.on_watch);
        while !dark.is_empty() {
            let now = self.now();
            let gone = dark.iter().find_map(|device| self.gone(device));
            if now >= deadline || pending.ons.is_empty() || gone.is_some() {
                let names: Vec<String> = dark.iter().map(|device| vouched.words(device)).collect();
                let within = written(self.parts.rules.on_deadline);
                let names = names.join(", ");
                let said = dark.iter().map(|device| self.says_last(device)).chain(vouched.refusals(&dark));
                let said = said.collect::<Vec<String>>().join(", ");
                let told = if told == 1 { "once".to_owned() } else { format!("{told} times") };
                let detail = match (gone, &pending.refused, &clearance.bar) {
                    (Some(why), ..) => format!("it does not come back, retire it ({why})"),
                    (None, Some(refused), _) => format!("no on was sent to {names}: {refused}"),
                    (None, None, Some((_, why))) => format!("it is not switched on: {why}"),
                    (None, None, None) => format!("{names} not seen on within {within}, told {told}: {said}"),
                };
                tracing::error!(detail, "the node was not seen to come on");
                self.persist(|| Event::OnFailed { detail: detail.clone() }).await?;
                return Ok(false);
            }
            if now >= send_at {
                if !self.renew(clearance).await? || self.place() != here {
                    return Ok(false);
                }
                send_at = if clearance.bar.is_some() {
                    self.now() + self.plan.paces.clearance
                } else {
                    let Some(again) = self.send_vouched(&mut pending, &mut vouched, clearance, &dark).await?
                    else {
                        return Ok(false);
                    };
                    told += 1;
                    // All of them were asked something just now.
                    let now = self.now();
                    dark.iter().for_each(|device| rounds.heard(self, device, true, now));
                    again
                };
            }
            match &clearance.bar {
                Some((release, why)) => self.waits_for_clearance(release, why, deadline),
                None => {
                    let names: Vec<String> = dark.iter().map(ToString::to_string).collect();
                    self.wait_for("On to be seen", names.join(", "), Some(deadline.since(now)));
                }
            }
            let next = rounds.first(&dark).unwrap_or(send_at).min(send_at).min(deadline);
            if self.pause(here, next.since(self.now())).await? {
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
    async fn on_intent(&mut self, devices: &[DeviceId]) -> Result<Intended, Fatal> {
        self.open_sessions(devices).await;
        let devices = devices.to_vec();
        let opened = match self.persist_or_refused(|| Event::OnIntent { devices: devices.clone() }).await? {
            Ok(opened) => opened,
            Err(refused) => return Ok(Intended { ons: Vec::new(), refused: Some(refused) }),
        };
        let ons = opened.into_iter().filter_map(|one| if let Opened::On(on) = one { Some(on) } else { None });
        Ok(Intended { ons: ons.collect(), refused: None })
    }

    /// An on goes in the session that is stored with it; where another one took its place, or one began since, it is stored anew.
    async fn follow_sessions(
        &mut self,
        pending: &mut Intended,
        dark: &BTreeSet<DeviceId>,
    ) -> Result<(), Fatal> {
        let is_over = |on: &&PendingOn| self.hands.session(on.device()).as_deref() != on.session();
        let over = pending.ons.iter().filter(|on| dark.contains(on.device())).filter(is_over);
        let over: Vec<DeviceId> = over.map(|on| on.device().clone()).collect();
        if !over.is_empty() {
            let anew = self.on_intent(&over).await?;
            pending.ons.retain(|on| !over.contains(on.device()));
            pending.ons.extend(anew.ons);
            pending.refused = anew.refused;
        }
        Ok(())
    }
}
