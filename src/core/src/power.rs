//! What a device says of power, and when it was asked.

use serde::{Deserialize, Serialize};

use crate::time::BootTime;

/// What one authenticated answer says. Everything that is not an explicit `On` or `Off` is `Unknown`,
/// and `Unknown` is never off (S1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Power {
    /// The device says: on.
    On,
    /// The device says: off.
    Off,
    /// Silence, a timeout, a transitional state, an unknown word, not found.
    Unknown,
}

/// How an epoch of a device began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EpochOrigin {
    /// The first one of this process, or the one after a session that we closed ourselves.
    Fresh,
    /// The one before was *lost*: the device stopped answering in it or refused it. The device may have restarted.
    AfterLoss {
        /// When the first question was asked that it left unanswered, or refused, after all that it had answered.
        since: BootTime,
    },
}

impl EpochOrigin {
    /// Whether the one before was lost.
    pub fn is_loss(self) -> bool {
        matches!(self, EpochOrigin::AfterLoss { .. })
    }

    /// Whether the one before was lost at that time or later. What had stopped answering before a fence began was not
    /// lost within it (S2).
    pub fn is_loss_since(self, began: BootTime) -> bool {
        matches!(self, EpochOrigin::AfterLoss { since } if since >= began)
    }
}

/// One uninterrupted life of a device: the same session, no restart of the BMC.
/// Two epochs of one device are the same exactly if their `id` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// Unique for the device within this process; grows.
    pub id: u64,
    /// How it began.
    pub origin: EpochOrigin,
}

/// One answer of one device. A failed call gives none: the judge is told of the silence instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What it says.
    pub power: Power,
    /// When the *first* copy of the request was sent; a retransmission never renews it.
    pub asked_at: BootTime,
    /// When the answer arrived.
    pub answered_at: BootTime,
    /// The life of the device in which it was given; `None` for a device without epochs.
    pub epoch: Option<Epoch>,
    /// The device's own words, short, for people (`chassis status 0x60`).
    pub said: String,
}
