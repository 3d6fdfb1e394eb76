//! A state's bytes, as they are put together.

use super::setup::Setup;
use super::store::boot;
use crate::ids::EffectId;
use crate::time::BootTime;

/// The bytes of a state, as they are put together.
pub(crate) struct Bytes {
    pub(super) bytes: Vec<u8>,
    pub(super) tick: u64,
    /// An age that no deadline of the check is as long as, but that of an off that is ignored.
    pub(super) old: u64,
    effects: Vec<EffectId>,
}

impl Bytes {
    pub(super) fn new(setup: &Setup, tick: u64, effects: Vec<EffectId>) -> Self {
        let old = setup.life.max(5) + 1;
        Self { bytes: Vec::with_capacity(512), tick, old, effects }
    }

    pub(crate) fn put(&mut self, value: u64) {
        // What is larger is as good as that: none of the numbers that are told apart comes near.
        self.bytes.push(u8::try_from(value).unwrap_or(u8::MAX));
    }

    pub(crate) fn flag(&mut self, value: bool) {
        self.put(u64::from(value));
    }

    /// How long ago, as far as it matters.
    pub(crate) fn age(&mut self, at: u64) {
        self.put(self.tick.saturating_sub(at).min(self.old));
    }

    pub(crate) fn ages(&mut self, at: Option<u64>) {
        self.put(at.map_or(0, |at| 1 + self.tick.saturating_sub(at).min(self.old)));
    }

    /// A moment on the boot-time clock.
    pub(crate) fn moment(&mut self, at: BootTime) {
        self.moment_up_to(at, self.old);
    }

    /// The same, told apart up to so many ticks ago.
    pub(crate) fn moment_up_to(&mut self, at: BootTime, old: u64) {
        let age = boot(self.tick).since(at).as_secs();
        self.put(age.min(old.max(self.old)));
    }

    pub(crate) fn number(&mut self, value: Option<u64>) {
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
