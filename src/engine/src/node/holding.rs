//! The holds of a node that is kept off (S11): read at their devices again and again, and engaged again where somebody undid them.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::event::Event;
use picket_core::ground::Look;
use picket_core::ids::{DeviceId, EffectId};
use picket_core::order::Opened;
use picket_core::record::HoldState;
use picket_core::time::BootTime;
use picket_driver::{Effect, HoldFound, HoldReport};

use super::children::Asks;
use super::hands::{Did, Doing};
use super::whose::Ours;
use super::{Fatal, NodeTask};

/// When a device was asked last whether its hold stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct HoldRead {
    at: BootTime,
    /// In which life of the device; `None`: it tells of none.
    life: Option<u64>,
    /// It may have restarted before that.
    restarted: bool,
}

impl NodeTask {
    /// Engages what would have barred the releases, and bars nothing any more (S11). What is refused is said, and tried again some
    /// times.
    pub(super) async fn hold_late(&mut self) -> Result<(), Fatal> {
        let Some(fence) =
            self.record().fence.as_ref().filter(|_| self.late_tries < self.plan.paces.late_holds)
        else {
            return Ok(());
        };
        let late = |(device, hold): (&DeviceId, &HoldState)| {
            let due = hold.engaged.is_empty() && self.plan.drivers.get(device)?.holds_late();
            due.then(|| (device.clone(), hold.found.clone()))
        };
        let found: BTreeMap<DeviceId, HoldFound> = fence.holds.iter().filter_map(late).collect();
        if found.is_empty() {
            return Ok(());
        }
        self.late_tries += u32::from(self.engage(found, &Ours::new()).await?);
        Ok(())
    }

    /// Engages those holds, each in that life of its device. False: somebody else came first.
    async fn engage(&mut self, found: BTreeMap<DeviceId, HoldFound>, lives: &Ours) -> Result<bool, Fatal> {
        let (here, mut is_whole) = (self.place(), true);
        let (said, before) = (self.now(), self.open_now());
        let opened = self.persist_in_sessions(|| Event::HoldIntent { found: found.clone() }).await?;
        if self.is_old(said) {
            self.leave_unsent(&opened, &before).await?;
            return Ok(false);
        }
        let mut doing: FuturesUnordered<Doing> = FuturesUnordered::new();
        for one in opened {
            if let Opened::Hold(order) = one {
                let life = lives.get(order.device()).copied().flatten();
                doing.push(self.hands.hold(order, life));
            }
        }
        while self.place() == here {
            tokio::select! {
                biased;
                did = doing.next() => match did {
                    Some((device, did)) => self.held_late(device, did).await?,
                    None => break,
                },
                Some(command) = self.mailbox.recv() => {
                    // A hold under way keeps its device's session: to whoever looks meanwhile the device would seem silent. Whoever looks all the
                    // time waits for it in the end: it would never be engaged.
                    if !matches!(self.asks(&command), Asks::Nothing) {
                        if self.holds_cut < self.plan.paces.late_holds {
                            self.holds_cut += 1;
                            is_whole &= doing.is_empty();
                            doing.clear();
                        }
                        while let Some((device, did)) = doing.next().await {
                            self.held_late(device, did).await?;
                        }
                    }
                    self.command(command).await?;
                }
            }
        }
        Ok(is_whole)
    }

    /// Whether what devices said then of whose machine they control is too old to send anything by it: the store took its time, and a board may
    /// have been exchanged meanwhile. It is asked anew.
    pub(super) fn is_old(&self, said: BootTime) -> bool {
        self.now().since(said) > self.parts.rules.device_call
    }

    /// The effects that are open now.
    pub(super) fn open_now(&self) -> BTreeSet<EffectId> {
        self.record().ledger.open().iter().map(|open| open.id).collect()
    }

    /// What was stored to be sent, and is not, has ended. What was open before that was sent once, and its end nobody saw (S5).
    pub(super) async fn leave_unsent(
        &mut self,
        opened: &[Opened],
        before: &BTreeSet<EffectId>,
    ) -> Result<(), Fatal> {
        let effect = |one: &Opened| match one {
            Opened::Hold(order) => Some(order.effect()),
            Opened::Off(order) => Some(order.effect()),
            _ => None,
        };
        let new = |effect: &EffectId| !before.contains(effect);
        let effects: Vec<EffectId> = opened.iter().filter_map(effect).filter(new).collect();
        if effects.is_empty() {
            return Ok(());
        }
        self.persist(|| Event::Closed { effects: effects.clone(), why: "it was not sent" }).await.map(drop)
    }

    pub(super) fn hold_of(&self, device: &DeviceId) -> Option<&HoldState> {
        self.record().fence.as_ref()?.holds.get(device)
    }

    /// What a hold came to, as it is stored.
    pub(super) fn hold_state(&self, device: &DeviceId, engaged: Vec<String>, detail: String) -> HoldState {
        let driver = self.plan.drivers.get(device);
        let outlives = |word: &&String| driver.is_some_and(|driver| driver.outlives(word));
        let outlives = engaged.iter().filter(outlives).cloned().collect();
        HoldState { engaged, outlives, detail, ..HoldState::default() }
    }

    async fn held_late(&mut self, device: DeviceId, did: Did) -> Result<(), Fatal> {
        // One came to its end, and makes room no more: those after it do again.
        self.holds_cut = 0;
        self.show(&device, &did);
        let Did::Held { effect, result, .. } = did else { return Ok(()) };
        let refused = matches!(&result, Err(error) if error.effect == Effect::DidNotHappen);
        let left = || self.hold_of(&device).map(|hold| hold.engaged.clone());
        let report = result.unwrap_or_else(|error| HoldReport {
            engaged: left().unwrap_or_default(),
            detail: error.to_string(),
        });
        let mut undone = self.hold_of(&device).map(|hold| hold.undone.clone()).unwrap_or_default();
        undone.retain(|word| !report.engaged.contains(word));
        let result = HoldState { undone, ..self.hold_state(&device, report.engaged, report.detail) };
        let (results, known) = (vec![(device, result)], Vec::from_iter(refused.then_some(effect)));
        self.persist(|| Event::HoldEnded { results: results.clone(), known: known.clone() }).await?;
        Ok(())
    }

    /// Whether what was engaged still stands: asked first after the releases and after a takeover, then after each restart of its device,
    /// and as often as devices are checked. What was undone is engaged again, and told. A device that does not answer now is asked
    /// after a later look.
    pub(super) async fn check_holds(&mut self, looks: &[Look]) -> Result<(), Fatal> {
        let due = self.holds_due(looks);
        let mut doing: FuturesUnordered<Doing> =
            due.keys().map(|device| self.hands.inspect(device, None)).collect();
        while let Some((device, did)) = doing.next().await {
            self.show(&device, &did);
            let Did::Inspected { result: Ok(now), .. } = did else { continue };
            let (Some(driver), Some(read)) = (self.plan.drivers.get(&device), due.get(&device)) else {
                continue;
            };
            self.holds_read.insert(device.clone(), *read);
            let stands = driver.engaged(&now);
            self.note_undone(&device, &stands).await?;
        }
        self.engage_undone(looks).await
    }

    /// Notes what does not stand any more of what was engaged at the device, and tells it.
    pub(super) async fn note_undone(&mut self, device: &DeviceId, stands: &[String]) -> Result<(), Fatal> {
        let Some(hold) = self.hold_of(device).cloned() else { return Ok(()) };
        let (engaged, gone): (Vec<String>, Vec<String>) =
            hold.engaged.into_iter().partition(|word| stands.contains(word));
        if gone.is_empty() {
            return Ok(());
        }
        let detail = format!("found undone by somebody else: {}", gone.join(", "));
        tracing::error!(%device, detail, "the hold does not stand any more: it is engaged again");
        let undone = [hold.undone, gone].concat();
        let result = HoldState { undone, ..self.hold_state(device, engaged, detail) };
        let results = vec![(device.clone(), result)];
        self.persist(|| Event::HoldEnded { results: results.clone(), known: Vec::new() }).await?;
        self.undone_tries.remove(device);
        Ok(())
    }

    /// Engages again what was undone, at devices that answer now: one that has just restarted may not take it at once.
    async fn engage_undone(&mut self, looks: &[Look]) -> Result<(), Fatal> {
        let answers =
            |device: &&DeviceId| looks.iter().any(|look| look.device == **device && look.reading.is_some());
        let holds = self.record().fence.iter().flat_map(|fence| &fence.holds);
        let undone =
            holds.filter(|(device, hold)| self.is_engaged_again(device, hold)).map(|(device, _)| device);
        let devices: Vec<DeviceId> = undone.filter(answers).cloned().collect();
        if devices.is_empty() {
            return Ok(());
        }
        let Some(ours) = self.still_ours(&devices, looks).await? else { return Ok(()) };
        let found = |device: &DeviceId| Some((device.clone(), self.hold_of(device)?.found.clone()));
        let found: BTreeMap<DeviceId, HoldFound> = ours.keys().filter_map(found).collect();
        if !found.is_empty() && self.engage(found, &ours).await? {
            for device in devices {
                *self.undone_tries.entry(device).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Whether somebody undid something of it that is to be engaged again: some times, since a device may refuse it for good.
    fn is_engaged_again(&self, device: &DeviceId, hold: &HoldState) -> bool {
        !hold.undone.is_empty()
            && self.undone_tries.get(device).is_none_or(|tries| *tries < self.plan.paces.late_holds)
    }

    /// The holds that are to be read now, and what is noted of each.
    fn holds_due(&self, looks: &[Look]) -> BTreeMap<DeviceId, HoldRead> {
        let (now, every) = (self.now(), self.parts.rules.check_every);
        let due = |(device, hold): (&DeviceId, &HoldState)| {
            let look = looks.iter().find(|look| look.device == *device)?;
            let life = look.reading.as_ref()?.epoch.map(|epoch| epoch.id);
            let restarted = self.sessions.may_have_restarted(device);
            let is_due = self.holds_read.get(device).is_none_or(|last| {
                let is_old = !every.is_zero() && now.since(last.at) >= every;
                is_old || last.life != life || restarted && !last.restarted
            });
            let is_due = is_due && !hold.engaged.is_empty() && !self.is_engaged_again(device, hold);
            is_due.then(|| (device.clone(), HoldRead { at: now, life, restarted }))
        };
        self.record().fence.iter().flat_map(|fence| &fence.holds).filter_map(due).collect()
    }
}
