//! A record on its way through the real machine, stored in [`OneNode`] after each step.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::executor::block_on;
use picket_core::confirm::ConfirmedOff;
use picket_core::device::DeviceSpec;
use picket_core::election::{Election, ElectionError, Leadership, Lease, Won, lead};
use picket_core::event::{Event, FenceRequest};
use picket_core::ground::Look;
use picket_core::ids::{DeviceId, EffectId, Revision, Term, Version};
use picket_core::ledger;
use picket_core::machine::{self, Refused};
use picket_core::order::Opened;
use picket_core::outcome::Reason;
use picket_core::power::{Power, Reading};
use picket_core::record::{Fence, NodeRecord, Phase, ReleaseStage};
use picket_core::restore::{Restore, reborn};
use picket_core::step;
use picket_core::store::{Store, Stored};
use picket_core::time::{BootTime, Clock, WallTime};

use super::store::{OneNode, incarnation};
use super::{Bench, device, fence_id, node, person, release, request};

/// Both clocks, set by hand, in milliseconds.
#[derive(Debug, Default)]
pub struct HandClock {
    boot: AtomicU64,
    ahead: AtomicU64,
}

impl HandClock {
    pub fn advance(&self, by: Duration) {
        self.boot.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }

    /// Sets the wall clock forward alone.
    pub fn jump(&self, by: Duration) {
        self.ahead.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn boot(&self) -> BootTime {
        super::boot(self.boot.load(Ordering::SeqCst))
    }

    fn wall(&self) -> WallTime {
        WallTime::from_millis(
            1_700_000_000_000 + self.boot.load(Ordering::SeqCst) + self.ahead.load(Ordering::SeqCst),
        )
    }
}

/// Wins at once, under a lease that ends when it is ended.
#[derive(Debug)]
struct Walkover(Term);

#[async_trait]
impl Election for Walkover {
    async fn campaign(&self) -> Result<Won, ElectionError> {
        Ok(Won { term: self.0, incarnation: incarnation(), lease: Lease::endless() })
    }

    async fn resign(&self) -> Result<(), ElectionError> {
        Ok(())
    }
}

/// One node, one store, one leadership, one clock.
#[derive(Debug)]
pub struct Player {
    pub clock: Arc<HandClock>,
    pub store: OneNode,
    pub leadership: Arc<Leadership>,
    pub stored: Stored,
}

impl Player {
    /// A node of which nothing is stored.
    pub fn new() -> Self {
        let (clock, store) = (Arc::new(HandClock::default()), OneNode::default());
        let leadership = Self::wins(&store, &clock);
        let stored = Stored { version: Version(0), revision: Revision(0), record: NodeRecord::new(node()) };
        Self { clock, store, leadership, stored }
    }

    fn wins(store: &OneNode, clock: &Arc<HandClock>) -> Arc<Leadership> {
        let term = block_on(store.take_term()).unwrap();
        block_on(lead(&Walkover(term), clock.clone(), Duration::from_secs(1))).unwrap()
    }

    /// Another leadership takes the record over as it is stored.
    pub fn succeeds(&mut self) {
        self.leadership = Self::wins(&self.store, &self.clock);
    }

    /// The store comes out of a backup that has the record as it is now, and is led anew. Returns the fence that ended.
    pub fn restores(&mut self, restore: Restore, fence: u8) -> Option<Fence> {
        let (record, ended) = reborn(self.record().clone(), restore, fence_id(fence));
        self.stored = Stored { version: Version(1), revision: Revision(1), record };
        self.store.restores(self.stored.clone());
        self.succeeds();
        ended
    }

    /// A fence of these levels and releases was opened.
    pub fn fencing(levels: &[&[DeviceSpec]], releases: &[&str]) -> Self {
        let mut player = Self::new();
        player.fence(request(1, levels, releases));
        player
    }

    pub fn record(&self) -> &NodeRecord {
        &self.stored.record
    }

    pub fn phase(&self) -> &'static str {
        self.record().phase.label()
    }

    pub fn open_fence(&self) -> &Fence {
        self.record().fence.as_ref().unwrap()
    }

    /// What is open, as words.
    pub fn open_effects(&self) -> Vec<String> {
        self.record().ledger.open().iter().map(|open| ledger::describe(&open.kind)).collect()
    }

    pub fn step(&self, event: Event<'_>) -> Result<step::Step, Refused> {
        let term = self.leadership.term();
        machine::step(self.record(), self.stored.version, event, term, self.clock.wall())
    }

    /// Decides, stores, opens.
    pub fn try_apply(&mut self, event: Event<'_>) -> Result<Vec<Opened>, Refused> {
        let step = self.step(event)?;
        let saved = block_on(step::save(&self.store, &self.leadership, &step)).unwrap();
        let (stored, opened) = step.open(saved).into_parts();
        self.stored = stored;
        Ok(opened)
    }

    #[track_caller]
    pub fn apply(&mut self, event: Event<'_>) -> Vec<Opened> {
        self.try_apply(event).unwrap()
    }

    #[track_caller]
    pub fn fence(&mut self, request: FenceRequest) {
        self.apply(Event::Fence(Box::new(request)));
    }

    #[track_caller]
    pub fn off_intent(&mut self, devices: &[&str]) -> Vec<Opened> {
        let devices = devices.iter().map(|name| device(name)).collect();
        self.apply(Event::OffIntent { devices, identified: Vec::new() })
    }

    #[track_caller]
    pub fn hold_intent(&mut self, name: &str, found: &[(&str, &str)]) -> EffectId {
        let found = found.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let opened = self.apply(Event::HoldIntent { found: BTreeMap::from([(device(name), found)]) });
        let Some(Opened::Hold(order)) = opened.first() else { unreachable!("a hold intent opens a hold") };
        order.effect()
    }

    /// A proof for the fence as it is open now.
    pub fn proof(&self) -> ConfirmedOff {
        Bench::judging(self.record(), self.leadership.term(), false).proves()
    }

    /// Proven off, by the real judge.
    #[track_caller]
    pub fn confirm(&mut self) -> ConfirmedOff {
        let proof = self.proof();
        self.apply(Event::Confirmed(&proof));
        proof
    }

    /// All that is open has ended.
    pub fn close_all(&mut self) {
        let effects = self.record().ledger.open().iter().map(|open| open.id).collect();
        self.apply(Event::Closed { effects, why: "its longest life has passed" });
    }

    /// One release: the intent, the attempt, seen complete.
    #[track_caller]
    pub fn complete(&mut self, name: &str) {
        let effect = self.attempt(name);
        self.progress(name, ReleaseStage::Complete, Some(effect));
    }

    #[track_caller]
    pub fn attempt(&mut self, name: &str) -> EffectId {
        let opened = self.apply(Event::ReleaseIntent {
            release: release(name),
            life: None,
            lingers: None,
            sets_up: true,
        });
        let Some(Opened::Release(order)) = opened.first() else { unreachable!("an intent opens an attempt") };
        order.effect()
    }

    #[track_caller]
    pub fn progress(&mut self, name: &str, stage: ReleaseStage, known: Option<EffectId>) {
        let detail = "said so".to_owned();
        self.apply(Event::ReleaseProgress { release: release(name), stage, detail, known });
    }

    pub fn unfence(&mut self) -> Result<(), Refused> {
        self.try_apply(Event::Unfence { holder: "ops".to_owned(), person: person() }).map(drop)
    }

    #[track_caller]
    pub fn give_up(&mut self, reason: Reason) {
        self.apply(Event::GiveUp { reason, detail: "for the test".to_owned() });
    }

    pub fn on_intent(&mut self, names: &[&str]) -> Result<Vec<Opened>, Refused> {
        self.try_apply(Event::OnIntent { devices: names.iter().map(|name| device(name)).collect() })
    }

    pub fn breach(&mut self, number: u8, name: &str) -> Result<(), Refused> {
        self.try_apply(Event::Breach { id: fence_id(number), device: device(name) }).map(drop)
    }

    pub fn attest(&mut self, looks: &[Look]) -> Result<(), Refused> {
        self.try_apply(Event::Attest { person: person(), looks }).map(drop)
    }

    pub fn back(&mut self) -> Result<(), Refused> {
        self.try_apply(Event::Back { detail: "seen on".to_owned() }).map(drop)
    }

    /// A node that was fenced, released, and is being brought back; nothing is open.
    pub fn unfencing(levels: &[&[DeviceSpec]]) -> Self {
        let mut player = Self::fencing(levels, &[]);
        let first: Vec<DeviceId> = levels[0].iter().map(|spec| spec.id.clone()).collect();
        player.apply(Event::OffIntent { devices: first, identified: Vec::new() });
        player.confirm();
        player.close_all();
        player.unfence().unwrap();
        assert_eq!(player.record().phase, Phase::Unfencing);
        player
    }

    /// What a device answered to a look just now.
    pub fn look(&self, name: &str, power: Option<Power>) -> Look {
        let asked_at = self.clock.boot();
        let reading = power.map(|power| Reading {
            power,
            asked_at,
            answered_at: asked_at,
            epoch: Some(Bench::first_epoch()),
            said: format!("{name} {power:?}"),
            lowered_by: None,
        });
        Look { device: device(name), asked_at, reading }
    }
}
