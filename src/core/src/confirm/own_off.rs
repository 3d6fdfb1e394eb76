//! Our own off, as a device took it, and for how long Off must last after it (S2).

use std::time::Duration;

use crate::power::Reading;
use crate::time::BootTime;

/// An off that is ignored is sent again after this.
pub(super) const REPEAT: Duration = Duration::from_secs(15);

/// Why Off must hold for the long window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Long {
    Resumed,
    NoEpochs,
    AlreadyOff,
    NotSeenOn,
    Restarted(Duration),
}

impl Long {
    pub(super) fn words(self) -> &'static str {
        match self {
            Long::Resumed => "the fence was taken over",
            Long::NoEpochs => "the device has no epochs",
            Long::AlreadyOff => "already off",
            Long::NotSeenOn => "not seen on before the off",
            Long::Restarted(_) => "the device restarted, and is trusted",
        }
    }
}

/// Our own off, as the device took it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnOff {
    pub(super) answered_at: BootTime,
    pub(super) epoch: Option<u64>,
    pub(super) long: Option<Long>,
    /// The device took it with a plain yes: neither "already off", nor a refusal.
    pub(super) is_acknowledged: bool,
    /// The node was seen on in this epoch just before it.
    pub(super) fell: bool,
    /// Off was read after it.
    pub(super) worked: bool,
    /// When it was taken again at the end of the long window.
    pub(super) sealed_at: Option<BootTime>,
}

impl OwnOff {
    /// Whether `reading` was asked for after it was taken, in the same life of the device.
    pub(super) fn is_before(&self, reading: &Reading) -> bool {
        reading.asked_at >= self.answered_at && reading.epoch.map(|epoch| epoch.id) == self.epoch
    }

    /// Whether an On that was heard then makes it void. Off and on again is somebody else's power cycle, or a button;
    /// after a while of nothing but On, it was ignored. A node that was seen on may just not have fallen yet.
    pub(super) fn is_void_by_on(&self, heard_at: BootTime) -> bool {
        self.worked || !self.fell || heard_at.since(self.answered_at) >= REPEAT
    }

    /// How long Off must last, where that is asked for.
    pub(super) fn window(&self, longest_cycle: Duration) -> Option<Duration> {
        match self.long? {
            Long::Restarted(dwell) => Some(dwell.max(longest_cycle)),
            _ => Some(longest_cycle),
        }
    }
}
