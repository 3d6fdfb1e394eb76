//! The holds of a node that is kept off (S11): read at their devices again and again, and engaged again where somebody undid them.

use std::collections::BTreeMap;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use picket_core::event::Event;
use picket_core::ground::Look;
use picket_core::ids::DeviceId;
use picket_core::order::Opened;
use picket_core::record::HoldState;
use picket_core::time::BootTime;
use picket_driver::{Effect, HoldFound, HoldReport};

use super::hands::{Did, Doing};
use super::whose::Ours;
use super::{Fatal, NodeTask};

/// How often a hold that could not be engaged before the releases is tried after them.
const LATE_TRIES: u32 = 5;

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
        let Some(fence) = self.record().fence.as_ref().filter(|_| self.late_tries < LATE_TRIES) else {
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
        self.late_tries += 1;
        self.engage(found, &Ours::new()).await
    }

    /// Engages those holds, each in that life of its device.
    async fn engage(&mut self, found: BTreeMap<DeviceId, HoldFound>, lives: &Ours) -> Result<(), Fatal> {
        let here = self.place();
        let opened = self.persist_in_sessions(|| Event::HoldIntent { found: found.clone() }).await?;
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
                Some(command) = self.mailbox.recv() => self.command(command).await?,
            }
        }
        Ok(())
    }

    /// What a hold came to, as it is stored.
    pub(super) fn hold_state(&self, device: &DeviceId, engaged: Vec<String>, detail: String) -> HoldState {
        let driver = self.plan.drivers.get(device);
        let outlives = |word: &&String| driver.is_some_and(|driver| driver.outlives(word));
        let outlives = engaged.iter().filter(outlives).cloned().collect();
        HoldState { engaged, outlives, detail, ..HoldState::default() }
    }

    async fn held_late(&mut self, device: DeviceId, did: Did) -> Result<(), Fatal> {
        self.show(&device, &did);
        let Did::Held { effect, result, .. } = did else { return Ok(()) };
        let refused = matches!(&result, Err(error) if error.effect == Effect::DidNotHappen);
        let report =
            result.unwrap_or_else(|error| HoldReport { engaged: Vec::new(), detail: error.to_string() });
        let result = self.hold_state(&device, report.engaged, report.detail);
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
        let mut undone: BTreeMap<DeviceId, HoldFound> = BTreeMap::new();
        while let Some((device, did)) = doing.next().await {
            self.show(&device, &did);
            let Did::Inspected { result: Ok(now), .. } = did else { continue };
            let (Some(driver), Some((hold, read))) = (self.plan.drivers.get(&device), due.get(&device))
            else {
                continue;
            };
            self.holds_read.insert(device.clone(), *read);
            let stands = driver.engaged(&now);
            let (engaged, gone): (Vec<String>, Vec<String>) =
                hold.engaged.iter().cloned().partition(|word| stands.contains(word));
            if !gone.is_empty() {
                let detail = format!("found undone by somebody else: {}", gone.join(", "));
                tracing::error!(%device, detail, "the hold does not stand any more: it is engaged again");
                let result = self.hold_state(&device, engaged, detail);
                let results = vec![(device.clone(), result)];
                self.persist(|| Event::HoldEnded { results: results.clone(), known: Vec::new() }).await?;
                undone.insert(device, hold.found.clone());
            }
        }
        if undone.is_empty() {
            return Ok(());
        }
        let devices: Vec<DeviceId> = undone.keys().cloned().collect();
        let Some(ours) = self.still_ours(&devices, looks).await? else { return Ok(()) };
        undone.retain(|device, _| ours.contains_key(device));
        self.engage(undone, &ours).await
    }

    /// The holds that are to be read now, and what is noted of each.
    fn holds_due(&self, looks: &[Look]) -> BTreeMap<DeviceId, (HoldState, HoldRead)> {
        let (now, every) = (self.now(), self.parts.rules.check_every);
        let due = |(device, hold): (&DeviceId, &HoldState)| {
            let look = looks.iter().find(|look| look.device == *device)?;
            let life = look.reading.as_ref()?.epoch.map(|epoch| epoch.id);
            let restarted = self.sessions.may_have_restarted(device);
            let is_due = self.holds_read.get(device).is_none_or(|last| {
                let is_old = !every.is_zero() && now.since(last.at) >= every;
                is_old || last.life != life || restarted && !last.restarted
            });
            let is_due = is_due && !hold.engaged.is_empty();
            is_due.then(|| (device.clone(), (hold.clone(), HoldRead { at: now, life, restarted })))
        };
        self.record().fence.iter().flat_map(|fence| &fence.holds).filter_map(due).collect()
    }
}
