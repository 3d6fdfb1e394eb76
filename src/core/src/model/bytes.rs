//! A state's bytes, as they are put together.

use std::time::Duration;

use super::setup::Setup;
use super::store::boot;
use crate::confirm::Judge;
use crate::ids::EffectId;
use crate::time::BootTime;

/// The bytes of a state, as they are put together.
pub(super) struct Bytes {
    pub(super) bytes: Vec<u8>,
    pub(super) tick: u64,
    /// An age that no deadline of the check is as long as, but those that a judge knows by itself.
    pub(super) old: u64,
    effects: Vec<EffectId>,
}

impl Bytes {
    pub(super) fn new(setup: &Setup, tick: u64, effects: Vec<EffectId>) -> Self {
        let old = setup.life.max(5) + 1;
        Self { bytes: Vec::with_capacity(512), tick, old, effects }
    }

    pub(super) fn put(&mut self, value: u64) {
        // What is larger is as good as that: none of the numbers that are told apart comes near.
        self.bytes.push(u8::try_from(value).unwrap_or(u8::MAX));
    }

    pub(super) fn flag(&mut self, value: bool) {
        self.put(u64::from(value));
    }

    /// How long ago, as far as it matters.
    pub(super) fn age(&mut self, at: u64) {
        self.put(self.tick.saturating_sub(at).min(self.old));
    }

    pub(super) fn ages(&mut self, at: Option<u64>) {
        self.put(at.map_or(0, |at| 1 + self.tick.saturating_sub(at).min(self.old)));
    }

    /// A moment on the boot-time clock.
    pub(super) fn moment(&mut self, at: BootTime) {
        self.put(boot(self.tick).since(at).as_secs().min(self.old));
    }

    pub(super) fn judge(&mut self, judge: &Judge) {
        self.bytes.extend(judge.shape(boot(self.tick), Duration::from_secs(self.old)));
    }

    pub(super) fn number(&mut self, value: Option<u64>) {
        self.put(value.map_or(0, |value| value + 1));
    }

    pub(super) fn effect(&mut self, id: EffectId) {
        let rank = self.effects.binary_search(&id).unwrap_or(self.effects.len());
        self.put(rank as u64);
    }

    pub(super) fn ahead(&mut self, at: u64) {
        self.put(at.saturating_sub(self.tick).min(self.old));
    }
}
